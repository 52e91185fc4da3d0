/* SPDX-License-Identifier: MIT
 *
 * Methods that prune single entries: Identity, RandomUnstructured, L1Unstructured. */
#include "prune.h"

struct unstructured {
    tn_scalar amount;
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct unstructured, amount, NULL,
                  "a number of entries, such as 3, or a fraction, such as 0.3",
                  TN_OPTION_KIND_SCALAR, TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static tn_status check(const tn_prune_def *self, const void *data)
{
    return prune_amount_check(self->name, ((const struct unstructured *)data)->amount);
}

/* Masks `count` entries: the largest or the smallest of a vector. */
static tn_tensor *mask_first(tn_tensor *ranks, tn_tensor *mask, int64_t count, bool largest)
{
    tn_ints shape = tn_tensor_shape(mask);
    tn_tensor *values, *index, *flat = tn_reshape(mask, TN_INTS(-1));

    if (flat == NULL || tn_topk(ranks, count, &values, &index, -1, largest) != TN_OK)
        return NULL;
    flat = tn_index_fill(flat, index, 0, 0);
    return flat != NULL ? tn_reshape(flat, shape) : NULL;
}

static tn_tensor *identity(const tn_prune_def *self, const void *data, tn_tensor *scores,
                           tn_tensor *mask)
{
    (void)self, (void)data, (void)scores;
    return mask;
}

static tn_tensor *l1(const tn_prune_def *self, const void *data, tn_tensor *scores, tn_tensor *mask)
{
    const struct unstructured *s = data;
    int64_t count = prune_amount_of(self->name, s->amount, tn_tensor_numel(scores));
    tn_tensor *sizes;

    if (count <= 0)
        return count == 0 ? mask : NULL;
    sizes = tn_abs(scores);
    sizes = sizes != NULL ? tn_reshape(sizes, TN_INTS(-1)) : NULL;
    return sizes != NULL ? mask_first(sizes, mask, count, false) : NULL;
}

static tn_tensor *random_entries(const tn_prune_def *self, const void *data, tn_tensor *scores,
                                 tn_tensor *mask)
{
    const struct unstructured *s = data;
    int64_t size = tn_tensor_numel(scores);
    int64_t count = prune_amount_of(self->name, s->amount, size);
    tn_tensor *draws;

    if (count <= 0)
        return count == 0 ? mask : NULL;
    draws = tn_tensor_empty(TN_SHAPE(size), TN_F32, tn_tensor_device(mask));
    draws = draws != NULL ? tn_uniform_(draws) : NULL;
    return draws != NULL ? mask_first(draws, mask, count, true) : NULL;
}

const tn_prune_def prune_identity = {
    TN_HEAD(tn_prune_def),         .name = "Identity", .help = "prunes nothing, but adds the mask",
    .type = TN_PRUNE_UNSTRUCTURED, .mask = identity,
};

const tn_prune_def prune_random_unstructured = {
    TN_HEAD(tn_prune_def),
    .name = "RandomUnstructured",
    .help = "prunes random entries, drawn from the generator (tn_random_seed)",
    .options = options,
    .data_size = sizeof(struct unstructured),
    .type = TN_PRUNE_UNSTRUCTURED,
    .mask = random_entries,
    .check = check,
};

const tn_prune_def prune_l1_unstructured = {
    TN_HEAD(tn_prune_def),
    .name = "L1Unstructured",
    .help = "prunes the entries with the smallest absolute values",
    .options = options,
    .data_size = sizeof(struct unstructured),
    .type = TN_PRUNE_UNSTRUCTURED,
    .mask = l1,
    .check = check,
};
