/* SPDX-License-Identifier: MIT
 *
 * Sequential: modules one after the other. */
#include "layers.h"

#include <string.h>

struct sequential {
    tn_values modules;
};

static const tn_option sequential_options[] = {
    TN_OPTION_ROW(struct sequential, modules, NULL,
                  "the modules in order; positional ones are named 0, 1, ...", TN_OPTION_KIND_VALUE,
                  TN_OPTION_MANY),
    TN_OPTION_END
};

static bool has_child(tn_module *self, const char *name)
{
    for (int64_t i = 0; i < tn_module_child_count(self); i++)
        if (strcmp(tn_module_child_name(self, i), name) == 0)
            return true;
    return false;
}

static tn_status add(tn_module *self, const char *name, const tn_value *value)
{
    tn_module *child = NULL;
    if (has_child(self, name))
        return tn_fail(TN_ERR_VALUE, "Sequential: module \"%s\" was given twice", name);
    if (value->kind == TN_VALUE_SPEC)
        child = tn_module_parse(value->as.s);
    else if (value->kind == TN_VALUE_MODULE)
        child = tn_module_keep(value->as.module);
    else
        tn_fail(TN_ERR_TYPE, "expected a module, as in Linear(4, 3)");
    tn_status status = child != NULL ? tn_module_add_child(self, name, child)
                                     : tn_error_prefix("Sequential, module \"%s\": ", name);
    tn_module_drop(child);
    return status;
}

static tn_status build(tn_module *self)
{
    const struct sequential *s = tn_module_data(self);
    for (int64_t i = 0; i < s->modules.count; i++) {
        char place[24];
        const char *name = s->modules.names != NULL ? s->modules.names[i] : NULL;
        tn_snprint(place, sizeof place, "%lld", (long long)i);
        tn_status status = add(self, name != NULL ? name : place, &s->modules.at[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_tensor *forward(tn_module *self, tn_tensor *input)
{
    int64_t count = tn_module_child_count(self);
    for (int64_t i = 0; i < count && input != NULL; i++)
        input = tn_module_call(tn_module_child_at(self, i), input);
    return input;
}

const tn_layer layer_sequential = {
    TN_HEAD(tn_layer),
    .name = "Sequential",
    .help = "feeds its input through its modules in order",
    .options = sequential_options,
    .data_size = sizeof(struct sequential),
    .version = 1,
    .build = build,
    .forward = forward,
};
