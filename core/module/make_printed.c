/* SPDX-License-Identifier: MIT
 *
 * Children of modules that are made from text: those of a spec, and those of printed text (repr),
 * which may replace children that the layer has made. */
#include "core/module/internal.h"
#include "core/module/name_table.h"

/* Returns the child that a value of a spec describes, as text or as a module. The caller owns
 * it. */
static tn_module *child_from(const tn_value *value, bool printed)
{
    if (value->kind == TN_VALUE_MODULE)
        return tn_module_keep(value->as.module);
    if (value->kind == TN_VALUE_SPEC)
        return tn__make_parse(value->as.s, printed);
    tn__text text = { 0 };
    tn__value_print(value, &text);
    tn_fail(TN_ERR_TYPE, "module: wrong type, got %s; expected Type(arguments)",
            text.at != NULL ? text.at : "another value");
    tn__text_free(&text);
    return NULL;
}

bool tn__make_lacks_options(const tn_module *module)
{
    uint64_t mark = tn_error_mark();
    bool lacks = module->printed && tn_registry_find(TN_KIND_tn_layer_def, module->type) != NULL;

    tn_error_restore(mark);
    return lacks;
}

bool tn__make_child_lacks_options(const tn_module *module)
{
    for (int64_t i = 0; i < module->children.count; i++)
        if (module->children.at[i].child != NULL &&
            tn__make_lacks_options(module->children.at[i].child))
            return true;
    return false;
}

/* Sets *equal to whether the module has a child of that name with the same spec. With `told`, the
 * options of the module say what its children are; then a child that was printed without options
 * need only be printed alike. */
static tn_status has_equal(tn_module *module, const char *name, tn_module *child, bool told,
                           bool *equal)
{
    const tn__slot *slot = tn__slots_find(&module->children, name);
    tn_module *made = slot != NULL ? slot->child : NULL;
    tn__text texts[2] = { { 0 }, { 0 } };
    char *specs[2] = { NULL, NULL };
    bool silent;
    tn_status status = TN_OK;

    *equal = false;
    if (made == NULL || made->layer == NULL)
        return TN_OK;
    silent = told && strcmp(made->type, child->type) == 0 && tn__make_lacks_options(child);
    if (!silent && made->layer != child->layer)
        return TN_OK;
    for (int i = 0; i < 2 && status == TN_OK; i++) {
        tn_module *one = i == 0 ? made : child;

        status = silent ? tn__module_repr_text(one, &texts[i])
                        : tn__module_spec_text(one, &texts[i]);
        specs[i] = status == TN_OK ? tn__text_take(&texts[i]) : NULL;
        if (status == TN_OK && specs[i] == NULL)
            status = tn_error_last_code();
    }
    *equal = status == TN_OK && strcmp(specs[0], specs[1]) == 0;
    for (int i = 0; i < 2; i++) {
        tn__text_free(&texts[i]);
        tn_free(specs[i]);
    }
    return status;
}

/* A child from printed text is dropped if `build` has made an equal child: the child of `build` may
 * share tensors with other children, or have another initialization. */
static tn_status add_child(tn_module *module, const char *name, const tn_value *value, bool printed,
                           bool told)
{
    tn_module *child = child_from(value, printed);
    bool equal = false;
    tn_status status;

    if (child == NULL) {
        tn_error_prefix("%s, child \"%s\": ", module->type, name);
        return tn_error_last_code();
    }
    status = printed ? has_equal(module, name, child, told, &equal) : TN_OK;
    if (status == TN_OK && !equal)
        status = tn_module_add_child(module, name, child);
    tn_module_drop(child);
    return status;
}

tn_status tn__make_child(tn_module *module, const char *name, const tn_value *value)
{
    return add_child(module, name, value, false, false);
}

tn_status tn__module_add_printed(tn_module *module, const tn_value *values,
                                 const char *const *names, const uint8_t *children, int64_t count,
                                 bool told)
{
    tn__name_table given = { 0 };
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        if (!children[i])
            continue;
        if (tn__name_table_find(&given, names[i], strlen(names[i])) >= 0)
            status = tn_fail(TN_ERR_VALUE, "%s: module \"%s\": given twice; expected once",
                             module->type, names[i]);
        else if (tn__name_table_add(&given, names[i]) < 0)
            status = tn_error_last_code();
        else if (values[i].kind != TN_VALUE_NONE) /* "(name): None" adds no child */
            status = add_child(module, names[i], &values[i], true, told);
        if (status == TN_OK)
            status = tn__module_up.printed(module, names[i]);
    }
    tn__name_table_free(&given);
    return status;
}
