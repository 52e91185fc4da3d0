/* SPDX-License-Identifier: MIT
 *
 * Makes the module of a state that has the spec of its module: as metadata, as a file of weights
 * has it, or as a value, as a checkpoint of a training has it. */
#include "lib/io/private.h"

/* The names are a contract with programs that write such files (docs/guides/formats.md). */
static const char spec_key[] = "tenon.spec", spec_value[] = "value.spec", part_name[] = "model.";

/* Returns the spec in a state, NULL if it has none. *part tells whether the weights are a part of
 * the state. */
static const char *spec_of(const tn_state *state, bool *part)
{
    const char *spec = tn_state_meta(state, spec_key);
    int64_t at = tn_state_find(state, spec_value);
    *part = spec == NULL;
    if (spec == NULL && at >= 0 && tn_state_value(state, at).kind == TN_VALUE_STRING)
        spec = tn_state_value(state, at).as.s;
    return spec;
}

static tn_status load_all(tn_module *module, const tn_state *state, bool part)
{
    if (!part)
        return tn_module_load_report(module, state, TN_LOAD_STRICT | TN_LOAD_WHOLE, NULL);
    tn_state *own = tn_state_part(state, part_name);
    tn_status status = own != NULL ? tn_module_load_report(module, own,
                                                           TN_LOAD_STRICT | TN_LOAD_WHOLE, NULL)
                                   : tn_error_last_code();
    tn_state_drop(own);
    return status;
}

tn_module *tn__state_module(const tn_state *state, const char *path, const char *format)
{
    bool part;
    const char *spec = spec_of(state, &part);
    if (spec == NULL) {
        tn_fail(TN_ERR_FORMAT,
                "%s: format %s: stores a state, not a module; make the module, then "
                "tn_module_load, or write the spec of the module as metadata \"%s\"",
                path, format, spec_key);
        return NULL;
    }
    tn_module *module = tn_module_parse(spec);
    if (module != NULL && load_all(module, state, part) == TN_OK)
        return module;
    tn_error_prefix("%s: ", path);
    tn_module_drop(module);
    return NULL;
}
