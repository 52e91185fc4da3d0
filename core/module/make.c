/* SPDX-License-Identifier: MIT
 *
 * Making modules: from the text of a spec or of repr, and from typed values. */
#include "core/module/internal.h"

/* Text of all arguments that are no children, as repr showed them. */
static char *tree_extra(const tn_value *values, const char *const *names, const uint8_t *children,
                        int64_t count)
{
    tn__text text = { 0 };
    tn__text_put(&text, "", 0);
    for (int64_t i = 0; i < count; i++) {
        if (children[i])
            continue;
        if (text.length > 0)
            tn__text_put(&text, ", ", 2);
        if (names != NULL && names[i] != NULL)
            tn__text_add(&text, "%s=", names[i]);
        tn__value_print(&values[i], &text);
    }
    return tn__text_take(&text);
}

tn_module *tn__module_new(const char *type)
{
    tn_module *module = tn_calloc(1, sizeof *module);
    if (module == NULL)
        return NULL;
    atomic_init(&module->refs, 1);
    module->training = true;
    module->type = type;
    return module;
}

/* A child that a spec names: the text of one, or a module. The result is the caller's. */
static tn_module *child_from(const tn_value *value)
{
    if (value->kind == TN_VALUE_MODULE)
        return tn_module_keep(value->as.module);
    if (value->kind == TN_VALUE_SPEC)
        return tn_module_parse(value->as.s);
    tn__text text = { 0 };
    tn__value_print(value, &text);
    tn_fail(TN_ERR_TYPE, "expected a module, Type(arguments), got %s",
            text.at != NULL ? text.at : "another value");
    tn__text_free(&text);
    return NULL;
}

static bool came_before(const char *const *names, const uint8_t *children, int64_t index)
{
    for (int64_t i = 0; i < index; i++)
        if (children[i] && strcmp(names[i], names[index]) == 0)
            return true;
    return false;
}

static tn_status add_children(tn_module *module, const tn_value *values, const char *const *names,
                              const uint8_t *children, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!children[i])
            continue;
        /* "(name): None" is a child slot without a module; nothing is lost by leaving it out. */
        if (values[i].kind == TN_VALUE_NONE)
            continue;
        if (came_before(names, children, i))
            return tn_fail(TN_ERR_VALUE, "%s: module \"%s\" was given twice", module->type,
                           names[i]);
        tn_module *child = child_from(&values[i]);
        tn_status status = TN_OK;
        if (child == NULL) {
            tn_error_prefix("%s, child \"%s\": ", module->type, names[i]);
            status = tn_error_last()->code;
        } else {
            status = tn_module_add_child(module, names[i], child);
        }
        tn_module_drop(child);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* Text of a module whose type nobody provides, with its children: a tree that can be looked at, loaded and saved. */
static tn_module *tree_new(const char *type, const tn_value *values, const char *const *names,
                           const uint8_t *children, int64_t count)
{
    tn_module *module = tn__module_new("");
    if (module == NULL)
        return NULL;
    module->tree_type = tn_strdup(type);
    module->tree_extra = tree_extra(values, names, children, count);
    if (module->tree_type == NULL || module->tree_extra == NULL) {
        tn_module_drop(module);
        return NULL;
    }
    module->type = module->tree_type;
    if (add_children(module, values, names, children, count) != TN_OK) {
        tn_module_drop(module);
        return NULL;
    }
    return module;
}

static bool takes_many(const tn_option *table)
{
    for (; table != NULL && table->kind != TN_OPTION_KIND_END; table++)
        if ((table->flags & TN_OPTION_MANY) != 0)
            return true;
    return false;
}

/* The arguments that are options: all of them for a layer that takes many (its build makes the children), else those that are not children. */
struct arguments {
    tn_value *values;
    const char **names;
    int32_t *columns;
    int64_t count;
};

static void arguments_free(struct arguments *a)
{
    tn_free(a->values);
    tn_free((void *)a->names);
    tn_free(a->columns);
}

static tn_status arguments_pick(struct arguments *a, const tn_value *values,
                                const char *const *names, const int32_t *columns,
                                const uint8_t *children, int64_t count)
{
    size_t room = (size_t)(count > 0 ? count : 1);
    a->values = tn_calloc(room, sizeof *a->values);
    a->names = tn_calloc(room, sizeof *a->names);
    a->columns = tn_calloc(room, sizeof *a->columns);
    if (a->values == NULL || a->names == NULL || a->columns == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        if (children[i])
            continue;
        a->values[a->count] = values[i];
        a->names[a->count] = names != NULL ? names[i] : NULL;
        a->columns[a->count] = columns != NULL ? columns[i] : 0;
        a->count++;
    }
    return TN_OK;
}

/* Options into data, then the layer's build: with a scope of its own and without recording. */
static tn_status fill_and_build(tn_module *module, const char *spec_text, const tn_value *values,
                                const char *const *names, const int32_t *columns,
                                const uint8_t *children, int64_t count)
{
    const tn_layer *layer = module->layer;
    struct arguments picked = { 0 };
    bool split = children != NULL && !takes_many(layer->options);
    tn_status status = TN_OK;
    if (split) {
        status = arguments_pick(&picked, values, names, columns, children, count);
    } else {
        picked = (struct arguments){ (tn_value *)values, (const char **)names, (int32_t *)columns,
                                     count };
    }
    if (status == TN_OK) {
        char what[128];
        tn_snprint(what, sizeof what, "layer %s", layer->name);
        status = tn__options_fill(layer->options, module->data, what, spec_text, picked.values,
                                  picked.names, picked.columns, picked.count, &module->keep);
    }
    if (split)
        arguments_free(&picked);
    module->build_began = status == TN_OK;
    if (status == TN_OK && layer->build != NULL) {
        const char *before = tn__error_plugin(module->plugin != NULL ? module->plugin->id : "");
        uint64_t failures = tn_error_mark();
        uint64_t scope = tn_scope_begin();
        tn_grad_begin(false);
        status = layer->build(module);
        tn_grad_end();
        tn_scope_end(scope);
        if (status != TN_OK && tn_error_mark() == failures)
            tn_fail(status, "layer %s: its build failed without words (%s)", layer->name,
                    tn_status_name(status));
        tn__error_plugin(before);
    }
    if (status == TN_OK && split)
        status = add_children(module, values, names, children, count);
    return status;
}

static bool any_child(const uint8_t *children, int64_t count)
{
    for (int64_t i = 0; children != NULL && i < count; i++)
        if (children[i])
            return true;
    return false;
}

tn_module *tn__module_make(const char *type, const char *spec_text, const tn_value *values,
                           const char *const *names, const int32_t *columns,
                           const uint8_t *children, int64_t count)
{
    bool printed = any_child(children, count);
    uint64_t mark = tn_error_mark();
    const tn__entry *entry = tn__registry_use(TN_KIND_tn_layer, type);
    if (entry == NULL) {
        if (!printed || tn_error_last()->code != TN_ERR_KEY)
            return NULL;
        tn_error_restore(mark);
        return tree_new(type, values, names, children, count);
    }
    tn_module *module = tn__module_new(entry->name);
    if (module == NULL)
        return NULL;
    const tn_layer *layer = (const tn_layer *)entry->contribution;
    module->plugin = entry->plugin;
    module->data = tn_calloc(1, layer->data_size > 0 ? layer->data_size : 1);
    if (module->data != NULL) {
        module->layer = layer;
        if (fill_and_build(module, spec_text, values, names, columns, printed ? children : NULL,
                           count) == TN_OK)
            return module;
    }
    tn_module_drop(module);
    return NULL;
}

tn_module *tn_module_parse(const char *text)
{
    if (text == NULL) {
        tn__null_input("an argument of tn_module_parse");
        return NULL;
    }
    tn__spec *spec = tn__spec_parse(text);
    if (spec == NULL)
        return NULL;
    tn_module *module = NULL;
    if (spec->type[0] == '\0')
        tn_fail(TN_ERR_FORMAT, "%q is not a module: write Type(arguments)", text);
    else
        module = tn__module_make(spec->type, spec->text, spec->values, spec->names, spec->columns,
                                 spec->children, spec->count);
    tn__spec_free(spec);
    return module;
}

tn_module *tn_module_newv(const char *format, va_list args)
{
    if (format == NULL) {
        tn__null_input("an argument of tn_module_new");
        return NULL;
    }
    char *text = tn__format_take(format, args);
    tn_module *module = text != NULL ? tn_module_parse(text) : NULL;
    tn_free(text);
    return module;
}

tn_module *tn_module_new(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_module *module = tn_module_newv(format, args);
    va_end(args);
    return module;
}

tn_module *tn_module_make(const char *type, const tn_value *values, const char *const *names,
                          int64_t count)
{
    if (type == NULL || (values == NULL && count > 0)) {
        tn__null_input("an argument of tn_module_make");
        return NULL;
    }
    if (count < 0) {
        tn_fail(TN_ERR_VALUE, "tn_module_make: the number of arguments is %lld", (long long)count);
        return NULL;
    }
    return tn__module_make(type, NULL, values, names, NULL, NULL, count);
}
