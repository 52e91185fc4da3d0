/* SPDX-License-Identifier: MIT
 *
 * Pruning of whole networks: methods of plugins find the channels. */
#include "lib/prune/prune.h"
#include "core/plugin/internal.h"

/* Returns the name of the only method for networks. Returns NULL and sets the error if there are
 * none or several. */
static const char *only_method(bool may_name)
{
    int64_t count = tn_registry_count(TN_KIND_tn_prune_def);
    tn__text names = { 0 };
    const char *only = NULL;
    int64_t found = 0;

    for (int64_t i = 0; i < count; i++) {
        const char *name = tn_registry_name(TN_KIND_tn_prune_def, i);
        const tn_head *head = name != NULL ? tn_registry_find(TN_KIND_tn_prune_def, name) : NULL;

        if (head == NULL || ((const tn_prune_def *)head)->type != TN_PRUNE_NETWORK)
            continue;
        tn__text_add(&names, "%s%s", found++ > 0 ? ", " : "", name);
        only = name;
    }
    if (found > 1)
        tn_fail(TN_ERR_VALUE,
                may_name ? "how: not given, and there are %lld pruning methods for networks; "
                           "expected one of them: %s"
                         : "there are %lld pruning methods for networks, %s; expected one: exclude "
                           "the plugins of the others (TENON_PLUGINS)",
                (long long)found, names.at != NULL ? names.at : "");
    else if (found == 0 && count >= 0)
        tn_fail(TN_ERR_KEY,
                "no plugin provides a pruning method for networks; `tenon plugins` prints "
                "which plugins were loaded, and why others were not");
    tn__text_free(&names);
    return found == 1 ? only : NULL;
}

static tn_status with_steps(const tn__prune_steps *steps, tn_prune_net *args)
{
    const tn_prune_def *def = tn__prune_def(&steps->at[0]);

    if (steps->count != 1)
        return tn_fail(TN_ERR_TYPE, "how: too many methods, got %lld; expected one",
                       (long long)steps->count);
    if (def->type != TN_PRUNE_NETWORK)
        return tn_fail(TN_ERR_TYPE,
                       "%s: wrong type of pruning method, got one that computes a mask for a "
                       "tensor; expected one for whole networks",
                       def->name);
    return tn__prune_step_net(&steps->at[0], args);
}

static tn_status on_network(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs,
                            const char *how, const char *method, tn_prune_report *report)
{
    tn_prune_report unwanted = { 0 };
    tn_prune_net args = { TN_HEAD(tn_prune_net), .net = net,
                          .inputs = inputs,      .n_inputs = n_inputs,
                          .method = method,      .report = report != NULL ? report : &unwanted };
    tn__prune_steps steps = { 0 };
    tn_status status;

    if (net == NULL || (inputs == NULL && n_inputs != 0))
        return tn_error_null(net == NULL ? "net" : "inputs");
    if (n_inputs < 0)
        return tn_fail(TN_ERR_VALUE, "n_inputs: too small, got %lld; expected 0 or more",
                       (long long)n_inputs);
    for (int64_t i = 0; i < n_inputs; i++)
        if (inputs[i] == NULL)
            return tn__tensor_bad_at(NULL, "inputs", i);
    *args.report = unwanted;
    if (how == NULL)
        how = only_method(method == NULL);
    status = how != NULL ? tn__prune_steps_read(&steps, NULL, how) : tn_error_last_code();
    if (status == TN_OK)
        status = with_steps(&steps, &args);
    tn__prune_steps_free(&steps);
    return status;
}

tn_status tn_prune_channels(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs,
                            const char *method, tn_prune_report *report)
{
    if (method == NULL)
        return tn_error_null("tn_prune_channels: method");
    return on_network(net, inputs, n_inputs, NULL, method, report) == TN_OK
               ? TN_OK
               : tn_error_prefix("tn_prune_channels: ");
}

tn_status tn_prune_compact(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs,
                           const char *how, tn_prune_report *report)
{
    return on_network(net, inputs, n_inputs, how, NULL, report) == TN_OK
               ? TN_OK
               : tn_error_prefix("tn_prune_compact: ");
}

tn_status tn_module_channels(tn_module *module, tn_channels *out)
{
    const char *before;
    tn_status status;

    if (module == NULL || out == NULL)
        return tn__error_null_of("tn_module_channels", "module, out", module, out);
    *out = (tn_channels){ 0 };
    if (module->layer == NULL || module->layer->channels == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: its %s does not describe channels, so how they belong to parameters is "
                       "not known",
                       module->type, module->layer != NULL ? "layer" : "forward");
    before = tn__error_plugin(module->plugin != NULL ? module->plugin->id : "");
    status = tn__error_status_of(module->layer->channels(module, out), module->type);
    tn__error_plugin(before);
    return status;
}
