/* SPDX-License-Identifier: MIT
 *
 * Initialization of tensors with inits that plugins provide. */
#include "core/module/internal.h"
#include "core/tensor/boundary.h"

/* True while this thread makes a module without initializing it (tn_module_parse_skip_init). */
static _Thread_local bool skipped;

bool tn__init_skip(bool skip)
{
    bool before = skipped;
    skipped = skip;
    return before;
}

bool tn__init_skipped(void)
{
    return skipped;
}

static tn_status fill(const tn__entry *entry, const tn__spec *spec, tn_tensor *tensor)
{
    const tn_init_def *init = (const tn_init_def *)entry->contribution;
    void *data = tn_calloc(1, init->data_size > 0 ? init->data_size : 1);
    if (data == NULL)
        return TN_ERR_MEMORY;
    char what[128];
    tn_snprint(what, sizeof what, "init %s", init->name);
    tn__option_block *block = NULL;
    tn_status status = tn__options_fill(init->options, data, what, spec->text, spec->values,
                                        spec->names, spec->columns, spec->count, &block);
    if (status == TN_OK)
        status = tn__build_limit_step();
    if (status == TN_OK && !skipped) {
        const char *before = tn__error_plugin(entry->plugin != NULL ? entry->plugin->id : "");
        uint64_t scope = tn_scope_begin();
        tn_grad_begin(false);
        tn__boundary_thread thread;
        tn__boundary_enter(&thread);
        status = tn__boundary_leave(&thread, entry->plugin != NULL ? entry->plugin->id : "", what,
                                    tn__error_status_of(init->fill(init, data, tensor), what));
        tn_grad_end();
        tn_scope_end(scope);
        tn__error_plugin(before);
    }
    tn__options_release(block);
    tn_free(data);
    return status;
}

tn_status tn_initv(tn_tensor *tensor, const char *format, va_list args)
{
    if (tensor == NULL || format == NULL)
        return tn__error_null_of("tn_init", "tensor, format", tensor, format);
    if (tn__is_none(tensor))
        return tn_fail(TN_ERR_TYPE, "tn_init: tensor: it is TN_NONE; expected a tensor");
    char *text = tn__text_from_format(format, args);
    if (text == NULL)
        return tn_error_last_code();
    tn_status status = TN_OK;
    tn__spec *spec = tn__spec_parse(text);
    const tn__entry *entry = NULL;
    if (spec == NULL)
        status = tn_error_last_code();
    else if (spec->type[0] == '\0')
        status = tn_fail(TN_ERR_FORMAT, "init: wrong form, got %q; expected name(arguments)", text);
    else if ((entry = tn__registry_use(TN_KIND_tn_init_def, spec->type)) == NULL)
        status = tn_error_last_code();
    else
        status = fill(entry, spec, tensor);
    tn__spec_free(spec);
    tn_free(text);
    return status;
}

tn_status tn_init(tn_tensor *tensor, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_status status = tn_initv(tensor, format, args);
    va_end(args);
    return status;
}

tn_status tn_init_parse(tn_tensor *tensor, const char *text)
{
    if (tensor == NULL || text == NULL)
        return tn__error_null_of("tn_init_parse", "tensor, text", tensor, text);
    return tn_init(tensor, "%s", text);
}
