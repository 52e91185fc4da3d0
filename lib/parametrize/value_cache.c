/* SPDX-License-Identifier: MIT
 *
 * Values that modules have computed, which a thread keeps for a while: those of parametrized
 * tensors between tn_parametrize_cache_begin and tn_parametrize_cache_end. */
#include "lib/parametrize/value_cache.h"

#include "core/base/map.h"

/* The values are found by their modules; the cache has a reference to both. A value that was
 * computed while gradients were off has no graph, so a call with gradients on needs a value of its
 * own. */
static _Thread_local struct {
    int32_t depth;
    tn__map values[2]; /* without and with recording */
} cache;

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

void tn__value_cache_forget(void)
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

/* For tn__module_changed_here: drops all values if the thread keeps one of a module that has this
 * module. */
static void changed(const tn_module *module)
{
    bool found = module == NULL;

    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; !found && i < cache.values[k].count; i++)
            found = has_below(cache.values[k].at[i].key, module);
    if (found)
        tn__value_cache_forget();
}

void tn__value_cache_begin(void)
{
    cache.depth++;
    tn__module_changed_here = changed;
}

bool tn__value_cache_on(void)
{
    return cache.depth > 0;
}

void tn__value_cache_end(void)
{
    if (cache.depth == 0 || --cache.depth > 0)
        return;
    tn__module_changed_here = NULL;
    tn__value_cache_forget();
}

tn_tensor *tn__value_cache_get(const tn_module *module)
{
    const tn__map *values = &cache.values[tn_grad_enabled()];
    void **value = values->count > 0 ? tn__map_value(values, module) : NULL;

    return value != NULL ? *value : NULL;
}

tn_status tn__value_cache_put(tn_module *module, tn_tensor *value)
{
    tn__map *values = &cache.values[tn_grad_enabled()];
    int added = cache.depth > 0 ? tn__map_add(values, module) : 0;

    if (added < 0)
        return TN_ERR_MEMORY;
    if (added > 0) {
        tn_module_keep(module);
        *tn__map_value(values, module) = tn_tensor_keep(value);
    }
    return TN_OK;
}
