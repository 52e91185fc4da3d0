/* SPDX-License-Identifier: MIT
 *
 * NOfM: of each M consecutive entries, the N largest stay. 2 of 4 is the pattern that some devices
 * compute with at twice the speed. */
#include "prune.h"

struct n_of_m {
    int64_t n;
    int64_t m;
    int64_t dim;
};

static const tn_option options[] = {
    TN_OPTION_INT(struct n_of_m, n, "2", "number of entries that stay"),
    TN_OPTION_INT(struct n_of_m, m, "4", "number of entries in each group"),
    TN_OPTION_INT(struct n_of_m, dim, "1",
                  "the dimension along which the groups lie; of a weight 1, "
                  "the inputs"),
    TN_OPTION_END
};

static tn_status check(const tn_prune_def *self, const void *data)
{
    const struct n_of_m *s = data;

    if (s->n >= 0 && s->m >= 1 && s->n <= s->m)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: n or m: out of range, got %lld and %lld; expected m of 1 or more, and n "
                   "from 0 to m",
                   self->name, (long long)s->n, (long long)s->m);
}

static tn_status plan(const tn_prune_def *self, const struct n_of_m *s, const tn_tensor *mask,
                      int64_t *dim)
{
    int64_t ndim = tn_tensor_ndim(mask), size;

    if (s->dim >= ndim || s->dim < -ndim)
        return tn_fail(TN_ERR_INDEX, "%s: dim: out of range, got %lld; expected %lld to %lld",
                       self->name, (long long)s->dim, (long long)-ndim, (long long)ndim - 1);
    *dim = s->dim < 0 ? s->dim + ndim : s->dim;
    size = tn_tensor_size(mask, *dim);
    if (size % s->m == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: tensor: dimension %lld has no whole groups, got the size %lld; expected a "
                   "multiple of %lld",
                   self->name, (long long)*dim, (long long)size, (long long)s->m);
}

/* Moves the dimension to the end, and splits it into groups. */
static tn_tensor *groups_of(tn_tensor *tensor, int64_t dim, int64_t m)
{
    tn_tensor *last = tn_transpose(tensor, dim, -1);

    return last != NULL ? tn_reshape(last, TN_INTS(-1, m)) : NULL;
}

/* Returns |scores|, with -1 for entries that are masked already, so that they are smaller than all
 * others. */
static tn_tensor *ranks_of(tn_tensor *scores, tn_tensor *mask)
{
    tn_tensor *sizes = tn_abs(scores), *left = tn_cast(mask, TN_BOOL);
    tn_tensor *least = sizes != NULL ? tn_fill(sizes, -1) : NULL;

    return least != NULL && left != NULL ? tn_where(left, sizes, least) : NULL;
}

static tn_tensor *n_of_m(const tn_prune_def *self, const void *data, tn_tensor *scores,
                         tn_tensor *mask)
{
    const struct n_of_m *s = data;
    tn_tensor *ranks, *old, *values, *index, *made, *moved;
    int64_t dim = 0;

    if (plan(self, s, mask, &dim) != TN_OK)
        return NULL;
    if (tn_tensor_numel(mask) == 0)
        return mask;
    ranks = ranks_of(scores, mask);
    ranks = ranks != NULL ? groups_of(ranks, dim, s->m) : NULL;
    old = ranks != NULL ? groups_of(mask, dim, s->m) : NULL;
    if (old == NULL || tn_topk(ranks, s->m - s->n, &values, &index, -1, false) != TN_OK)
        return NULL;
    values = tn_tensor_full(tn_tensor_shape(index), 0, tn_tensor_dtype(mask),
                            tn_tensor_device(mask));
    made = values != NULL ? tn_scatter(old, index, values, 1) : NULL;
    moved = made != NULL ? tn_transpose(mask, dim, -1) : NULL;
    made = moved != NULL ? tn_reshape(made, tn_tensor_shape(moved)) : NULL;
    return made != NULL ? tn_transpose(made, dim, -1) : NULL;
}

const tn_prune_def prune_n_of_m = {
    TN_HEAD(tn_prune_def),
    .name = "NOfM",
    .help = "of each m consecutive entries along a dimension, the n with the largest absolute "
            "values stay",
    .options = options,
    .data_size = sizeof(struct n_of_m),
    .type = TN_PRUNE_GLOBAL,
    .mask = n_of_m,
    .check = check,
};
