/* SPDX-License-Identifier: MIT
 *
 * Checks hooks of layers, for tenon check: forward hooks must run once per call, backward hooks
 * once per backward pass, and hooks that do nothing must not change results. */
#include "layers.h"

static tn_status count_pre(void *user, tn_module *module, const tn_pack *input,
                           tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)module, (void)input, (void)replacement, (void)outcome;
    ((conform_hook_counts *)user)->pre++;
    return TN_OK;
}

static tn_status count_after(void *user, tn_module *module, const tn_pack *input,
                             const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)module, (void)input, (void)output, (void)replacement, (void)outcome;
    ((conform_hook_counts *)user)->after++;
    return TN_OK;
}

static tn_status count_back(void *user, tn_module *module, const tn_pack *grad_input,
                            const tn_pack *grad_output, tn_pack *replacement,
                            tn_hook_outcome *outcome)
{
    (void)module, (void)grad_input, (void)grad_output, (void)replacement, (void)outcome;
    ((conform_hook_counts *)user)->back++;
    return TN_OK;
}

tn_hook_handle conform_layer_count_pre(tn_module *module, conform_hook_counts *counts)
{
    return tn_module_hook_forward_pre(module, count_pre, 0, counts, NULL);
}

tn_hook_handle conform_layer_count_after(tn_module *module, conform_hook_counts *counts)
{
    return tn_module_hook_forward(module, count_after, 0, counts, NULL);
}

tn_hook_handle conform_layer_count_back(tn_module *module, conform_hook_counts *counts)
{
    return tn_module_hook_backward(module, count_back, 0, counts, NULL);
}

static tn_status backward_of(const conform_results *out)
{
    tn_tensor *roots[CONFORM_LAYER_RESULTS], *ones[CONFORM_LAYER_RESULTS];
    int64_t count = 0;

    for (int64_t i = 0; i < out->count; i++)
        if (tn_tensor_requires_grad(out->at[i])) {
            ones[count] = tn_tensor_full(tn_tensor_shape(out->at[i]), 1,
                                         tn_tensor_dtype(out->at[i]), tn_tensor_device(out->at[i]));
            if (ones[count] == NULL)
                return tn_error_last_code();
            roots[count++] = out->at[i];
        }
    return count > 0 ? tn_backward_from(roots, ones, count, NULL) : TN_OK;
}

bool conform_layer_inputs_with_grad(const conform_subject *s, tn_tensor **in)
{
    bool well = conform_layer_inputs(s, s->dtype, in);

    for (int64_t i = 0; well && i < s->one->n_in; i++)
        if (s->one->in[i].grad && tn_tensor_set_requires_grad(in[i], true) != TN_OK)
            well = conform_layer_say(s, "input %d: %s", (int)i, tn_error_text());
    return well;
}

bool conform_layer_hooked(const conform_subject *s, tn_module *module, tn_tensor *const *in,
                          const conform_results *plain, conform_hook_counts *counts,
                          const char *when)
{
    conform_results hooked;
    bool wanted = false;

    *counts = (conform_hook_counts){ 0 };
    if (!conform_layer_called(s, module, in, &hooked, when) ||
        !conform_layer_all_near(s, &hooked, plain, 0, when))
        return false;
    if (counts->pre != 1 || counts->after != 1)
        return conform_layer_say(
            s,
            "%s: in one call the pre-hook ran %d times, the forward hook %d times; "
            "expected once each",
            when, counts->pre, counts->after);
    for (int64_t i = 0; i < hooked.count; i++)
        wanted = wanted || tn_tensor_requires_grad(hooked.at[i]);
    if (backward_of(&hooked) != TN_OK)
        return conform_layer_say(s, "%s: backward: %s", when, tn_error_text());
    if (wanted && counts->back != 1)
        return conform_layer_say(s,
                                 "%s: in one backward the backward hook ran %d times; "
                                 "expected once",
                                 when, counts->back);
    return true;
}

bool conform_layer_hooks(const conform_subject *s, tn_module *module)
{
    tn_tensor *in[CONFORM_LAYER_INPUTS];
    conform_hook_counts counts;
    conform_results plain;
    bool well = conform_layer_inputs_with_grad(s, in);

    tn_module_train(module, false);
    well = well && conform_layer_called(s, module, in, &plain, "");
    if (well) {
        TN_HOOK_BLOCK(conform_layer_count_pre(module, &counts));
        TN_HOOK_BLOCK(conform_layer_count_after(module, &counts));
        TN_HOOK_BLOCK(conform_layer_count_back(module, &counts));
        well = conform_layer_hooked(s, module, in, &plain, &counts, "with hooks that do nothing");
    }
    tn_module_train(module, !s->one->eval);
    tn_module_zero_grad(module);
    return well;
}
