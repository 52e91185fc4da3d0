/* SPDX-License-Identifier: MIT
 *
 * Masks of several pruning methods: each sees only what the masks before it have left, by the rules
 * of PyTorch's PruningContainer. */
#include "lib/prune/prune.h"
#include "core/op/internal.h"
#include "core/op/needed.h"

#include <tenon/ops.h>

/* ---- small steps ----------------------------------------------------------------------------- */

tn_status tn__prune_same_shape(const tn_tensor *tensor, const tn_tensor *like, const char *what)
{
    tn_ints got = tn__shape(tensor), wanted = tn__shape(like);
    tn__text text = { 0 };
    tn_status status;

    if (got.count == wanted.count &&
        (got.count == 0 || memcmp(got.at, wanted.at, (size_t)got.count * sizeof *got.at) == 0))
        return TN_OK;
    tn__tensor_text_ints(&text, got);
    tn__text_add(&text, "; expected ");
    tn__tensor_text_ints(&text, wanted);
    status = tn_fail(TN_ERR_VALUE, "%s: wrong shape, got %s", what, text.at != NULL ? text.at : "");
    tn__text_free(&text);
    return status;
}

/* Calls an operator with one result, which belongs to the scope. */
static tn_tensor *call(enum tn__need which, tn_tensor *const *in, int64_t n_in, const void *options)
{
    const tn_op *op = tn__op_needed(which);
    tn_tensor *out = NULL;

    return op != NULL && tn_op_call(op, in, n_in, options, &out, 1) == TN_OK ? out : NULL;
}

/* Returns the tensor itself if it has the dtype, otherwise a cast that belongs to the scope. */
static tn_tensor *cast(tn_tensor *tensor, tn_dtype dtype)
{
    tn_cast_options options = TN_CAST_OPTIONS;

    options.dtype = dtype;
    return tn_tensor_dtype(tensor) == dtype ? tensor : call(TN__NEED_cast, &tensor, 1, &options);
}

tn_tensor *tn__prune_product(tn_tensor *tensor, tn_tensor *mask)
{
    tn_tensor *in[2] = { tensor, cast(mask, tn_tensor_dtype(tensor)) };

    return in[1] != NULL ? call(TN__NEED_product, in, 2, NULL) : NULL;
}

tn_tensor *tn__prune_ones(const tn_tensor *like)
{
    return tn_tensor_full(tn__shape(like), tn_scalar_int(1), tn_tensor_dtype(like),
                          tn_tensor_device(like));
}

tn_tensor *tn__prune_copy(tn_tensor *tensor, tn_dtype dtype)
{
    tn_tensor *copy = tn_tensor_empty(tn__shape(tensor), dtype, tn_tensor_device(tensor));

    return copy != NULL && tn__copy(copy, tensor) == TN_OK ? copy : NULL;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Sets *dim to the dimension of a structured method. */
static tn_status dim_of(const tn__prune_step *step, const tn_tensor *mask, int32_t *dim)
{
    const tn_prune_def *def = tn__prune_def(step);
    int64_t given = def->dim(def, step->data), ndim = tn_tensor_ndim(mask);

    if (given < -ndim || given >= ndim)
        return tn_fail(TN_ERR_INDEX, "%s: dim: out of range, got %lld; expected %lld to %lld",
                       def->name, (long long)given, (long long)-ndim, (long long)ndim - 1);
    *dim = (int32_t)(given < 0 ? given + ndim : given);
    return TN_OK;
}

/* Returns the indices of the slices along a dimension that have a sum other than 0. Belongs to the
 * scope. */
static tn_tensor *slices_left(tn_tensor *mask, int32_t dim)
{
    int64_t shape[TN_MAX_DIMS], count = tn_tensor_size(mask, dim), left = 0;
    int32_t ndim = tn_tensor_ndim(mask);
    tn_sum_to_options options = TN_SUM_TO_OPTIONS;
    tn_tensor *sums = cast(mask, TN_F64), *indices = NULL;
    double *sum = tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *sum);
    int64_t *index = tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *index);

    for (int32_t i = 0; i < ndim; i++)
        shape[i] = i == dim ? count : 1;
    options.shape = (tn_ints){ shape, ndim };
    sums = sums != NULL && sum != NULL && index != NULL ? call(TN__NEED_sum_to, &sums, 1, &options)
                                                        : NULL;
    if (sums != NULL && tn_tensor_copy_out(sums, sum, (size_t)count * sizeof *sum) == TN_OK) {
        for (int64_t i = 0; i < count; i++)
            if (sum[i] != 0)
                index[left++] = i;
        indices = tn_tensor_empty(TN_SHAPE(left), TN_I64, tn_tensor_device(mask));
        if (indices != NULL &&
            tn_tensor_copy_in(indices, index, (size_t)left * sizeof *index) != TN_OK)
            indices = NULL;
    }
    tn_free(sum);
    tn_free(index);
    return indices;
}

/* ---- the three types of methods -------------------------------------------------------------- */

static tn_tensor *entries(const tn__prune_step *step, tn_tensor *scores, tn_tensor *mask)
{
    tn_tensor *left = cast(mask, TN_BOOL);
    tn_tensor *in[3] = { scores, left, NULL }, *rest[2] = { mask, left };
    tn_tensor *some = left != NULL ? call(TN__NEED_masked_select, in, 2, NULL) : NULL;
    tn_tensor *part = some != NULL ? call(TN__NEED_masked_select, rest, 2, NULL) : NULL;

    in[0] = mask;
    in[2] = part != NULL ? tn__prune_step_mask(step, some, part) : NULL;
    in[2] = in[2] != NULL ? cast(in[2], tn_tensor_dtype(mask)) : NULL;
    return in[2] != NULL ? call(TN__NEED_masked_scatter, in, 3, NULL) : NULL;
}

static tn_tensor *slices(const tn__prune_step *step, tn_tensor *scores, tn_tensor *mask)
{
    tn_index_select_options select = TN_INDEX_SELECT_OPTIONS;
    tn_index_copy_options copy = TN_INDEX_COPY_OPTIONS;
    tn_tensor *in[3] = { scores, NULL, NULL }, *rest[2] = { mask, NULL }, *some, *part;
    int32_t dim = 0;

    if (dim_of(step, mask, &dim) != TN_OK)
        return NULL;
    in[1] = rest[1] = slices_left(mask, dim);
    select.dim = copy.dim = dim;
    some = in[1] != NULL ? call(TN__NEED_index_select, in, 2, &select) : NULL;
    part = some != NULL ? call(TN__NEED_index_select, rest, 2, &select) : NULL;
    in[0] = mask;
    in[2] = part != NULL ? tn__prune_step_mask(step, some, part) : NULL;
    in[2] = in[2] != NULL ? cast(in[2], tn_tensor_dtype(mask)) : NULL;
    return in[2] != NULL ? call(TN__NEED_index_copy, in, 3, &copy) : NULL;
}

static tn_tensor *next_mask(const tn__prune_step *step, tn_tensor *scores, tn_tensor *mask,
                            bool whole)
{
    uint32_t type = tn__prune_def(step)->type;

    if (type == TN_PRUNE_NETWORK) {
        tn_fail(TN_ERR_TYPE,
                "%s: wrong type of pruning method, got one for whole networks; expected one that "
                "computes a mask for a tensor",
                tn__prune_def(step)->name);
        return NULL;
    }
    if (whole || type == TN_PRUNE_GLOBAL)
        return tn__prune_step_mask(step, scores, mask);
    return type == TN_PRUNE_UNSTRUCTURED ? entries(step, scores, mask) : slices(step, scores, mask);
}

tn_tensor *tn__prune_mask_of(const tn__prune_steps *steps, tn_tensor *values, tn_tensor *scores,
                             tn_tensor *mask, uint32_t flags)
{
    tn_tensor *now = mask != NULL ? mask : tn__prune_ones(values);
    bool whole = mask == NULL || (flags & TN__PRUNE_WHOLE) != 0;
    bool product = mask != NULL && (flags & TN__PRUNE_MASKED) != 0;

    for (int64_t i = 0; i < steps->count && now != NULL; i++) {
        tn_tensor *ranks = scores;

        if (ranks == NULL)
            ranks = i > 0 || product ? tn__prune_product(values, now) : tn_tensor_detach(values);
        now = ranks != NULL ? next_mask(&steps->at[i], ranks, now, whole && i == 0) : NULL;
    }
    return now != NULL ? tn__prune_copy(now, tn_tensor_dtype(values)) : NULL;
}
