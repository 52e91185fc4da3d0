/* SPDX-License-Identifier: MIT
 *
 * Checks pruning methods, for tenon check: a mask has the shape of the mask that it starts from,
 * is 0 where an entry is pruned and unchanged elsewhere, and neither that mask nor the scores are
 * changed; a seed of the generator always gives the same mask. A method for networks must not
 * change what a network computes. The specs come from lines `prune SPEC` of the cases. */
#include "conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The shapes of the tensors that each method gets. */
static const struct {
    int32_t ndim;
    int64_t at[4];
} shapes[] = { { 1, { 12 } }, { 2, { 8, 12 } }, { 4, { 8, 4, 3, 3 } }, { 2, { 1, 4 } } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool wrong(conform *c, const char *spec, const tn_tensor *t, const char *words)
{
    char shape[128] = "";
    tn_ints sizes = tn_tensor_shape(t);
    size_t used = 0;

    for (int64_t i = 0; i < sizes.count; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)sizes.at[i]);
    return conform_fail(c, "%s: a tensor float32[%s]: %s", spec, shape, words);
}

/* Returns a tensor of scores, different from one another; or a mask with every third entry 0. */
static tn_tensor *example(conform *c, int shape, bool mask)
{
    tn_ints sizes = { shapes[shape].at, shapes[shape].ndim };
    tn_tensor *made = tn_tensor_empty(sizes, TN_F64, c->plugin->device);
    int64_t count = made != NULL ? tn_tensor_numel(made) : 0;
    double *values = malloc((size_t)(count + 1) * sizeof *values);

    for (int64_t i = 0; values != NULL && i < count; i++)
        values[i] = mask ? i % 3 != 0 : sin(1.7 * (double)i + 1);
    if (values == NULL || made == NULL ||
        tn_tensor_copy_in(made, values, (size_t)count * sizeof *values) != TN_OK)
        made = NULL;
    free(values);
    return made != NULL ? tn_cast(made, TN_F32) : NULL;
}

static bool same(tn_tensor *a, tn_tensor *b)
{
    return conform_same_value(tn_value_tensor(a), tn_value_tensor(b));
}

/* Whether each entry of `mask` is 0 or that of `before`. */
static bool is_mask(conform *c, const char *spec, tn_tensor *mask, tn_tensor *before)
{
    int64_t count, also;
    double *a = conform_values(mask, &count), *b = conform_values(before, &also);
    bool well = a != NULL && b != NULL && count == also;

    for (int64_t i = 0; well && i < count; i++)
        well = a[i] == 0 || a[i] == b[i];
    free(a);
    free(b);
    return well || wrong(c, spec, before,
                         "the mask has an entry that is neither 0 nor that of the mask before");
}

/* Calls the method; NULL if it refuses the tensor. */
static tn_tensor *mask_of(conform *c, const char *spec, tn_tensor *scores, tn_tensor *mask)
{
    c->checks++;
    tn_random_seed(c->plugin->options->seed);
    return tn_prune_mask(scores, mask, TN_NONE, spec);
}

static bool check_mask(conform *c, const char *spec, int shape, bool masked, int *taken)
{
    tn_tensor *scores = example(c, shape, false), *mask = example(c, shape, true), *old, *kept;
    tn_tensor *made, *again;

    if (scores == NULL || mask == NULL)
        return conform_fail(c, "%s", tn_error_text());
    kept = tn_clone(scores);
    old = masked ? tn_clone(mask)
                 : tn_tensor_full(tn_tensor_shape(mask), 1, TN_F32, c->plugin->device);
    if (kept == NULL || old == NULL)
        return conform_fail(c, "%s", tn_error_text());
    made = mask_of(c, spec, scores, masked ? mask : TN_NONE);
    if (made == NULL) {
        bool message = tn_error_text()[0] != '\0';

        tn_error_clear();
        return message || wrong(c, spec, scores, "refused without a message");
    }
    (*taken)++;
    again = mask_of(c, spec, scores, masked ? mask : TN_NONE);
    if (again == NULL || !same(made, again))
        return wrong(c, spec, scores, "another mask when it is called again with the same seed");
    if (!same(scores, kept))
        return wrong(c, spec, scores, "the method changes the scores");
    if (masked && !same(mask, old))
        return wrong(c, spec, scores, "the method changes the mask that it got");
    return is_mask(c, spec, made, old);
}

/* ---- networks -------------------------------------------------------------------------------- */

static bool check_network(conform *c, const char *spec)
{
    tn_module *net = tn_module_new("Sequential(Linear(6, 8), ReLU(), Linear(8, 5), ReLU(), "
                                   "Linear(5, 3))");
    tn_tensor *x = example(c, 1, false), *before, *after;
    tn_prune_report report;
    bool well;

    x = x != NULL ? tn_reshape(x, TN_INTS(16, 6)) : NULL;
    if (net == NULL || x == NULL)
        return conform_fail(c, "%s", tn_error_text());
    c->checks += 3;
    if (tn_prune(net, "0.weight", "LnStructured(amount=3, n=2, dim=0)") != TN_OK ||
        tn_prune(net, "0.bias", "L1Unstructured(amount=1.0)") != TN_OK) {
        tn_module_drop(net);
        conform_skip(c, "needs the methods LnStructured and L1Unstructured");
        return true;
    }
    before = tn_module_call(net, x);
    well = tn_prune_compact(net, &x, 1, spec, &report) == TN_OK ||
           conform_fail(c, "%s: %s", spec, tn_error_text());
    after = well ? tn_module_call(net, x) : NULL;
    if (well && report.parameters_after != tn_module_parameter_count(net))
        well = conform_fail(c, "%s: report: wrong parameters_after, got %lld; expected %lld", spec,
                            (long long)report.parameters_after,
                            (long long)tn_module_parameter_count(net));
    if (well && (before == NULL || after == NULL || tn_allclose(before, after, 1e-5, 1e-6) != 1))
        well = conform_fail(c, "%s: the results of the network have changed", spec);
    tn_module_drop(net);
    return well;
}

/* ---- specs ----------------------------------------------------------------------------------- */

static bool check_method(conform *c, const char *spec)
{
    const tn_prune_def *def = (const tn_prune_def *)tn_registry_find(TN_KIND_tn_prune_def,
                                                                     c->subject);
    uint64_t scope = tn_scope_begin();
    bool well = def != NULL || conform_fail(c, "%s", tn_error_text());
    int taken = 0;

    if (well && def->type == TN_PRUNE_NETWORK)
        well = check_network(c, spec);
    else
        for (int i = 0; well && i < SHAPES; i++)
            well = check_mask(c, spec, i, false, &taken) && check_mask(c, spec, i, true, &taken);
    if (well && def->type != TN_PRUNE_NETWORK && taken == 0)
        well = conform_fail(c, "%s: refuses every tensor", spec);
    tn_scope_end(scope);
    return well;
}

void conform_pruning(conform *c)
{
    const tn_prune_def *def = (const tn_prune_def *)tn_registry_find(TN_KIND_tn_prune_def,
                                                                     c->subject);

    if (def == NULL)
        conform_fail(c, "%s", tn_error_text());
    else
        conform_check_specs(c, "prune ", def->options, check_method);
}
