/* SPDX-License-Identifier: MIT
 *
 * The values of parametrized tensors that a thread keeps between tn_parametrize_cache_begin and
 * tn_parametrize_cache_end. */
#include "core/module/parametrize.h"

/* The values are found by their lists; the cache has a reference to both. A value that was computed
 * while gradients were off has no graph, so a call with gradients on needs a value of its own. */
static _Thread_local struct {
    int32_t depth;
    tn__map values[2]; /* without and with recording */
} cache;

tn_status tn_parametrize_cache_begin(void)
{
    cache.depth++;
    return TN_OK;
}

static void drop_all(tn__map *map)
{
    tn__map values = *map; /* dropping a module may come back here */

    *map = (tn__map){ 0 };
    for (int64_t i = 0; i < values.count; i++) {
        tn_module_drop((tn_module *)values.at[i].key);
        tn_tensor_drop(values.at[i].value);
    }
    tn__map_free(&values);
}

void tn__parametrize_cache_forget(void)
{
    drop_all(&cache.values[0]);
    drop_all(&cache.values[1]);
}

static bool has_below(const tn_module *module, const tn_module *what)
{
    bool found = module == what;

    for (int64_t i = 0; !found && i < module->children.count; i++)
        found = module->children.at[i].child != NULL &&
                has_below(module->children.at[i].child, what);
    return found;
}

void tn__parametrize_cache_changed(const tn_module *module)
{
    bool found = false;

    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; !found && i < cache.values[k].count; i++)
            found = has_below(cache.values[k].at[i].key, module);
    if (found)
        tn__parametrize_cache_forget();
}

bool tn__parametrize_cache_on(void)
{
    return cache.depth > 0;
}

void tn_parametrize_cache_end(void)
{
    if (cache.depth > 0 && --cache.depth == 0)
        tn__parametrize_cache_forget();
}

tn_tensor *tn__parametrize_cache_get(const tn_module *list)
{
    const tn__map *values = &cache.values[tn_grad_enabled()];
    void **value = values->count > 0 ? tn__map_value(values, list) : NULL;

    return value != NULL ? *value : NULL;
}

tn_status tn__parametrize_cache_put(tn_module *list, tn_tensor *value)
{
    tn__map *values = &cache.values[tn_grad_enabled()];
    int added = cache.depth > 0 ? tn__map_add(values, list) : 0;

    if (added < 0)
        return TN_ERR_MEMORY;
    if (added > 0) {
        tn_module_keep(list);
        *tn__map_value(values, list) = tn_tensor_keep(value);
    }
    return TN_OK;
}
