/* SPDX-License-Identifier: MIT
 *
 * The values of parametrized tensors that a thread keeps between tn_parametrize_cache_begin and
 * tn_parametrize_cache_end. */
#include "core/module/parametrize.h"

static _Thread_local struct {
    int32_t depth;
    tn__map values; /* from each list to its value; the cache has a reference to both */
} cache;

tn_status tn_parametrize_cache_begin(void)
{
    cache.depth++;
    return TN_OK;
}

void tn__parametrize_cache_forget(void)
{
    for (int64_t i = 0; i < cache.values.count; i++) {
        tn_module_drop((tn_module *)cache.values.at[i].key);
        tn_tensor_drop(cache.values.at[i].value);
    }
    tn__map_free(&cache.values);
}

void tn_parametrize_cache_end(void)
{
    if (cache.depth > 0 && --cache.depth == 0)
        tn__parametrize_cache_forget();
}

tn_tensor *tn__parametrize_cache_get(const tn_module *list)
{
    void **value = cache.values.count > 0 ? tn__map_value(&cache.values, list) : NULL;

    return value != NULL ? *value : NULL;
}

tn_status tn__parametrize_cache_put(tn_module *list, tn_tensor *value)
{
    int added = cache.depth > 0 ? tn__map_add(&cache.values, list) : 0;

    if (added < 0)
        return TN_ERR_MEMORY;
    if (added > 0) {
        tn_module_keep(list);
        *tn__map_value(&cache.values, list) = tn_tensor_keep(value);
    }
    return TN_OK;
}
