/* SPDX-License-Identifier: MIT
 *
 * Modules without a layer: those of the program (tn_module_plain) and those of printed text whose
 * type no plugin provides. */
#include "core/module/internal.h"

/* Appends the spaces by which the line of byte `at` is indented more than the line of byte `base`,
 * but at least two. */
static void indent_as_written(tn__text *out, const char *text, size_t at, size_t base)
{
    size_t width[2];

    for (int i = 0; i < 2; i++) {
        size_t line = i == 0 ? at : base;
        while (line > 0 && text[line - 1] != '\n')
            line--;
        width[i] = strspn(text + line, " ");
    }
    size_t more = width[0] > width[1] + 2 ? width[0] - width[1] : 2;
    tn__text_add(out, "%*s", (int)(more < 80 ? more : 80), "");
}

/* Returns the text of all arguments that are not children, as repr prints them. If these arguments
 * are on separate lines in `spec_text`, they are on separate lines in the result:
 * "\n    A()\n    B()\n". The caller frees it with tn_free(). */
static char *tree_extra(const char *spec_text, const tn_value *values, const char *const *names,
                        const int32_t *columns, const uint8_t *children, int64_t count)
{
    tn__text text = { 0 };
    bool lines = false;

    for (int64_t i = 0; i < count && spec_text != NULL && columns != NULL; i++)
        lines = lines || (!children[i] && tn__spec_own_line(spec_text, columns[i]));
    tn__text_put(&text, "", 0);
    for (int64_t i = 0; i < count; i++) {
        if (children[i])
            continue;
        if (lines) {
            tn__text_put(&text, "\n", 1);
            indent_as_written(&text, spec_text, (size_t)columns[i] - 1, strlen(spec_text));
        } else if (text.length > 0) {
            tn__text_put(&text, ", ", 2);
        }
        if (names != NULL && names[i] != NULL)
            tn__text_add(&text, "%s=", names[i]);
        tn__value_print(&values[i], &text);
    }
    if (lines)
        tn__text_put(&text, "\n", 1);
    return tn__text_take(&text);
}

tn_module *tn__module_tree(const char *type, const char *spec_text, const tn_value *values,
                           const char *const *names, const int32_t *columns,
                           const uint8_t *children, int64_t count)
{
    tn_module *module = tn__module_new("");

    if (module == NULL)
        return NULL;
    module->tree_type = tn_strdup(type);
    module->tree_extra = tree_extra(spec_text, values, names, columns, children, count);
    if (module->tree_type == NULL || module->tree_extra == NULL) {
        tn_module_drop(module);
        return NULL;
    }
    module->type = module->tree_type;
    if (tn__module_add_printed(module, values, names, children, count, false) != TN_OK) {
        tn_module_drop(module);
        return NULL;
    }
    return module;
}

tn_module *tn_module_plain(const char *type)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.";

    if (type == NULL) {
        tn_error_null("tn_module_plain: type");
        return NULL;
    }
    if (type[0] == '\0' || strspn(type, word) != strlen(type) ||
        (type[0] >= '0' && type[0] <= '9')) {
        tn_fail(TN_ERR_VALUE,
                "tn_module_plain: type: not a name, got %q; expected letters, digits, "
                "`_` and dots, no digit first",
                type);
        return NULL;
    }
    return tn__module_tree(type, NULL, NULL, NULL, NULL, NULL, 0);
}
