/* SPDX-License-Identifier: MIT
 *
 * Pruning methods with one error each (mutant_choose.h). Without an error, Odd masks every other
 * entry, and Whole finds nothing to remove. */
#include "mutant_choose.h"

static tn_tensor *odd_mask(const tn_prune_def *self, const void *options, tn_tensor *scores,
                           tn_tensor *mask)
{
    static int calls;
    int64_t count = tn_tensor_numel(mask), used = 0, index[1024];
    tn_tensor *flat, *indices, *made;

    (void)options;
    if (is("picky")) {
        tn_fail(TN_ERR_VALUE, "%s: not this one", self->name);
        return NULL;
    }
    calls++;
    for (int64_t i = is("clock") ? calls % 2 : 1; i < count && used < 1024; i += 2)
        index[used++] = i;
    indices = tn_tensor_from(index, TN_I64, TN_SHAPE(used));
    flat = indices != NULL ? tn_reshape(mask, TN_INTS(-1)) : NULL;
    made = flat != NULL ? tn_index_fill(flat, indices, 0, is("revives") ? 2 : 0) : NULL;
    if (made != NULL && is("writes"))
        made = tn_fill_(mask, 0);
    if (made != NULL && is("scores") && tn_fill_(scores, 0) == NULL)
        return NULL;
    return made != NULL ? tn_reshape(made, tn_tensor_shape(mask)) : NULL;
}

static const tn_prune_def odd = {
    TN_HEAD(tn_prune_def),   .name = "Odd",    .help = "masks every other entry",
    .type = TN_PRUNE_GLOBAL, .mask = odd_mask,
};

static tn_status nothing(const tn_prune_net *args)
{
    int64_t count = tn_module_parameter_count(args->net);

    args->report->parameters_before = count;
    args->report->parameters_after = is("counts") ? 0 : count;
    if (is("loses"))
        return tn_init(tn_module_find_tensor(args->net, "4.weight"), "zeros");
    return TN_OK;
}

static const tn_prune_def whole = {
    TN_HEAD(tn_prune_def),    .name = "Whole",     .help = "removes nothing",
    .type = TN_PRUNE_NETWORK, .channels = nothing, .compact = nothing,
};

TN_PLUGIN("org.example.mutant", "1.0.0", &odd, &whole);
