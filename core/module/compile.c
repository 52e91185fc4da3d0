/* SPDX-License-Identifier: MIT
 *
 * tn_module_compile: selects how the calls of a module run. */
#include "core/module/hooks.h"

_Atomic uint64_t tn__module_epoch;

static tn_status eager(tn_module *module, const tn__spec *spec, tn__compiled **out)
{
    *out = NULL;
    if (spec->count > 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_compile: spec: eager: too many arguments, got %lld; expected 0",
                       (long long)spec->count);
    if (module->compiled == NULL)
        tn_log(TN_LOG_INFO, "tn_module_compile: eager(): nothing to do, %s runs as it is",
               module->type);
    return TN_OK;
}

static tn_status unknown(const char *name)
{
    tn__text text = { 0 };
    tn_status status;

    for (const tn__runner *const *all = tn__runners; *all != NULL; all++)
        tn__text_add(&text, ", %s()", (*all)->name);
    status = tn_fail(TN_ERR_KEY,
                     "tn_module_compile: spec: unknown way to run a module, got %q; expected one "
                     "of: eager()%s",
                     name, text.at != NULL ? text.at : "");
    tn__text_free(&text);
    return status;
}

static tn_status read_spec(tn_module *module, const char *spec, tn__compiled **out)
{
    tn__spec *parsed = tn__spec_parse(spec != NULL ? spec : "eager()");
    const tn__runner *const *row = tn__runners;
    tn_status status;

    if (parsed == NULL)
        return tn_error_prefix("tn_module_compile: spec: ");
    while (*row != NULL && strcmp((*row)->name, parsed->type) != 0)
        row++;
    if (strcmp(parsed->type, "eager") == 0)
        status = eager(module, parsed, out);
    else
        status = *row != NULL ? (*row)->make(parsed, out)
                              : unknown(parsed->type[0] != '\0' ? parsed->type : spec);
    tn__spec_free(parsed);
    return status;
}

tn_status tn_module_compile(tn_module *module, const char *spec)
{
    tn__compiled *made = NULL;
    tn_status status;

    if (module == NULL)
        return tn_error_null("tn_module_compile: module");
    status = read_spec(module, spec, &made);
    if (status == TN_OK && (made != NULL || module->compiled != NULL))
        status = tn__hooks_set_compiled(module, made != NULL);
    if (status != TN_OK) {
        if (made != NULL)
            made->drop(made);
        return status;
    }
    if (module->compiled != NULL)
        module->compiled->drop(module->compiled);
    module->compiled = made;
    return TN_OK;
}

int64_t tn_module_compile_print(tn_module *module, bool steps, char *out, size_t size)
{
    tn__text text = { 0 };

    if (!tn__not_null(module, "tn_module_compile_print: module"))
        return -1;
    tn__text_put(&text, "", 0);
    if (module->compiled != NULL)
        module->compiled->print(module->compiled, steps, &text);
    return tn__text_give(&text, out, size);
}
