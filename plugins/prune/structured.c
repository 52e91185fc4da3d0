/* SPDX-License-Identifier: MIT
 *
 * Methods that prune whole slices along a dimension: RandomStructured, LnStructured. */
#include "prune.h"

#include <math.h>
#include <string.h>

struct random_structured {
    tn_scalar amount;
    int64_t dim;
};

struct ln_structured {
    tn_scalar amount;
    tn_value n;
    int64_t dim;
};

#define AMOUNT_HELP "a number of slices, such as 3, or a fraction, such as 0.3"

static const tn_option random_options[] = {
    TN_OPTION_ROW(struct random_structured, amount, NULL, AMOUNT_HELP, TN_OPTION_KIND_SCALAR,
                  TN_OPTION_REQUIRED),
    TN_OPTION_INT(struct random_structured, dim, "-1", "the dimension of the slices"), TN_OPTION_END
};

static const tn_option ln_options[] = {
    TN_OPTION_ROW(struct ln_structured, amount, NULL, AMOUNT_HELP, TN_OPTION_KIND_SCALAR,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct ln_structured, n, NULL,
                  "order of the norm: a number, inf, -inf or 'fro', which is 2",
                  TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
    TN_OPTION_INT(struct ln_structured, dim, "-1", "the dimension of the slices"), TN_OPTION_END
};

/* ---- what both share ------------------------------------------------------------------------- */

/* Fails if the tensor has no slices along a dimension. Sets *dim to the dimension from the start,
 * and *count to the number of slices to prune. */
static tn_status plan(const tn_prune_def *self, const tn_tensor *scores, int64_t given,
                      tn_scalar amount, int64_t *dim, int64_t *count)
{
    int64_t ndim = tn_tensor_ndim(scores);

    if (ndim <= 1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: tensor: no slices, got %lld dimension%s; expected at least 2",
                       self->name, (long long)ndim, ndim == 1 ? "" : "s");
    if (given >= ndim || given < -ndim)
        return tn_fail(TN_ERR_INDEX, "%s: dim: out of range, got %lld; expected %lld to %lld",
                       self->name, (long long)given, (long long)-ndim, (long long)ndim - 1);
    *dim = given < 0 ? given + ndim : given;
    *count = prune_amount_of(self->name, amount, tn_tensor_size(scores, *dim));
    return *count < 0 ? tn_error_last_code() : TN_OK;
}

/* Masks the `count` slices with the smallest ranks. Of equal ranks the first ones stay. */
static tn_tensor *mask_slices(tn_tensor *ranks, tn_tensor *mask, int64_t dim, int64_t count)
{
    int64_t size = tn_tensor_size(mask, dim);
    tn_tensor *values, *index, *keep, *kept;

    if (tn_topk(ranks, size - count, &values, &index) != TN_OK)
        return NULL;
    keep = tn_tensor_full(tn_tensor_shape(mask), 0, tn_tensor_dtype(mask), tn_tensor_device(mask));
    kept = tn_index_select(mask, index, dim);
    return keep != NULL && kept != NULL ? tn_index_copy(keep, index, kept, dim) : NULL;
}

/* ---- RandomStructured ------------------------------------------------------------------------ */

static tn_status random_check(const tn_prune_def *self, const void *data)
{
    return prune_amount_check(self->name, ((const struct random_structured *)data)->amount);
}

static int64_t random_dim(const tn_prune_def *self, const void *data)
{
    (void)self;
    return ((const struct random_structured *)data)->dim;
}

static tn_tensor *random_slices(const tn_prune_def *self, const void *data, tn_tensor *scores,
                                tn_tensor *mask)
{
    const struct random_structured *s = data;
    int64_t dim = 0, count = 0;
    tn_tensor *draws;

    if (plan(self, scores, s->dim, s->amount, &dim, &count) != TN_OK)
        return NULL;
    if (count == 0)
        return mask;
    draws = tn_tensor_empty(TN_SHAPE(tn_tensor_size(mask, dim)), TN_F32, tn_tensor_device(mask));
    draws = draws != NULL ? tn_uniform_(draws) : NULL;
    return draws != NULL ? mask_slices(draws, mask, dim, count) : NULL;
}

/* ---- LnStructured ---------------------------------------------------------------------------- */

/* Returns the order of the norm, NaN if it is none. */
static double order_of(const tn_value *n)
{
    switch (n->kind) {
    case TN_VALUE_INT: return (double)n->as.i;
    case TN_VALUE_FLOAT: return n->as.f;
    case TN_VALUE_STRING: return strcmp(n->as.s, "fro") == 0 ? 2 : NAN;
    default: return NAN;
    }
}

static tn_status ln_check(const tn_prune_def *self, const void *data)
{
    const struct ln_structured *s = data;
    tn_status status = prune_amount_check(self->name, s->amount);
    char got[64];

    if (status != TN_OK || !isnan(order_of(&s->n)))
        return status;
    if (s->n.kind == TN_VALUE_STRING)
        tn_snprint(got, sizeof got, "%q", s->n.as.s);
    else
        tn_snprint(got, sizeof got, "%s", s->n.kind == TN_VALUE_FLOAT ? "nan" : "another type");
    return tn_fail(TN_ERR_VALUE,
                   "%s: n: not the order of a norm, got %s; expected a number, inf, -inf or 'fro'",
                   self->name, got);
}

static int64_t ln_dim(const tn_prune_def *self, const void *data)
{
    (void)self;
    return ((const struct ln_structured *)data)->dim;
}

static tn_tensor *ln_slices(const tn_prune_def *self, const void *data, tn_tensor *scores,
                            tn_tensor *mask)
{
    const struct ln_structured *s = data;
    int64_t dim = 0, count = 0, dims[TN_MAX_DIMS], n = 0;
    tn_tensor *ranks;

    if (plan(self, scores, s->dim, s->amount, &dim, &count) != TN_OK)
        return NULL;
    if (count == 0)
        return mask;
    for (int64_t i = 0; i < tn_tensor_ndim(scores); i++)
        if (i != dim)
            dims[n++] = i;
    ranks = tn_norm(scores, order_of(&s->n), ((tn_ints){ dims, n }));
    return ranks != NULL ? mask_slices(ranks, mask, dim, count) : NULL;
}

const tn_prune_def prune_random_structured = {
    TN_HEAD(tn_prune_def),
    .name = "RandomStructured",
    .help = "prunes random slices along a dimension, drawn from the generator (tn_random_seed)",
    .options = random_options,
    .data_size = sizeof(struct random_structured),
    .type = TN_PRUNE_STRUCTURED,
    .mask = random_slices,
    .check = random_check,
    .dim = random_dim,
};

const tn_prune_def prune_ln_structured = {
    TN_HEAD(tn_prune_def),
    .name = "LnStructured",
    .help = "prunes the slices along a dimension that have the smallest norm",
    .options = ln_options,
    .data_size = sizeof(struct ln_structured),
    .type = TN_PRUNE_STRUCTURED,
    .mask = ln_slices,
    .check = ln_check,
    .dim = ln_dim,
};
