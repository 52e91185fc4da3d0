/* SPDX-License-Identifier: MIT
 *
 * tn_module_compile: selects how the calls of a module run. Modules are not compiled to graphs yet,
 * so the only choice is "eager()", which changes nothing. */
#include "core/module/internal.h"

tn_status tn_module_compile(tn_module *module, const char *spec)
{
    tn_status status = TN_OK;

    if (module == NULL)
        return tn__error_null_input("tn_module_compile: argument");
    tn__spec *parsed = tn__spec_parse(spec != NULL ? spec : "eager()");
    if (parsed == NULL)
        return tn_error_prefix("tn_module_compile: spec: ");
    if (strcmp(parsed->type, "eager") != 0)
        status = tn_fail(TN_ERR_KEY,
                         "tn_module_compile: spec: unknown way to run a module, got %q; expected "
                         "one of: eager()",
                         parsed->type[0] != '\0' ? parsed->type : spec);
    else if (parsed->count > 0)
        status = tn_fail(TN_ERR_VALUE,
                         "tn_module_compile: spec: eager: too many arguments, got %lld; expected 0",
                         (long long)parsed->count);
    else
        tn_log(TN_LOG_INFO,
               "tn_module_compile: eager(): nothing to do, %s runs as it is; there are no graphs "
               "to compile to yet",
               module->type);
    tn__spec_free(parsed);
    return status;
}
