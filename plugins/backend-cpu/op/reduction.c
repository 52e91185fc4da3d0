/* SPDX-License-Identifier: MIT
 *
 * The operators that reduce dimensions. Each describes its reduction in a struct tn__reduction,
 * which reduction_strided.c carries out; aminmax reads contiguous elements once. */
#include <math.h>
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "op/reduction.h"
#include "simd/simd.h"

enum { GRAIN = 24576, BYTES_GRAIN = 262144 }; /* minimum numbers of elements for one thread */

/* Sets goes[i] for each dimension in the option `dims`; for all dimensions if `dims` is empty. */
static tn_status chosen(const tn_call *call, tn_ints dims, bool *goes)
{
    int32_t ndim = call->in[0]->ndim;
    for (int32_t i = 0; i < ndim; i++)
        goes[i] = dims.count <= 0;
    for (int64_t k = 0; k < dims.count; k++) {
        int64_t dim = dims.at[k] < 0 ? dims.at[k] + ndim : dims.at[k];
        if (ndim == 0) /* for a 0-d tensor, dims 0 and -1 are allowed; shape inference checked it */
            continue;
        if (dim < 0 || dim >= ndim)
            return tn__span_bad_dim(call->op, dims.at[k], ndim);
        goes[dim] = true;
    }
    return TN_OK;
}

/* Returns the number of elements that are reduced to one result; *results, unless NULL, is set to
 * the number of results. */
static int64_t members(const tn_view *x, const bool *goes, int64_t *results)
{
    uint64_t gone = 1, kept = 1; /* without elements, products on the way to 0 can be any number */
    for (int32_t i = 0; i < x->ndim; i++)
        *(goes[i] ? &gone : &kept) *= (uint64_t)x->shape[i];
    if (results)
        *results = (int64_t)kept;
    return (int64_t)gone;
}

static tn_status simple(const tn_call *call, enum tn__fold what, tn_ints dims)
{
    struct tn__reduction r = { .what = what };
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, dims, goes);
    return status == TN_OK ? tn__reduction_strided(&r, call->in[0], call->out[0], goes) : status;
}

/* Sums the real parts and the imaginary parts separately, as views of floats. */
static tn_status sum_complex(const tn_view *x, const tn_view *y, const bool *goes)
{
    struct tn__reduction r = { .what = TN__FOLD_SUM };
    for (uint64_t which = 0; which < 2; which++) {
        int64_t xs[TN_MAX_DIMS], ys[TN_MAX_DIMS];
        tn_view px = *x, py = *y;
        for (int32_t i = 0; i < x->ndim; i++)
            xs[i] = x->strides[i] * 2;
        for (int32_t i = 0; i < y->ndim; i++)
            ys[i] = y->strides[i] * 2;
        px.strides = xs;
        py.strides = ys;
        tn__view_as_floats(&px, x->dtype.bits / 2);
        tn__view_as_floats(&py, x->dtype.bits / 2);
        px.byte_offset += which * px.dtype.bits / 8;
        py.byte_offset += which * py.dtype.bits / 8;
        tn_status status = tn__reduction_strided(&r, &px, &py, goes);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status run_sum(const tn_call *call)
{
    const tn_sum_options *o = call->options;
    bool goes[TN_MAX_DIMS];
    if (call->in[0]->dtype.code != 5)
        return simple(call, TN__FOLD_SUM, o->dims);
    tn_status status = chosen(call, o->dims, goes);
    return status == TN_OK ? sum_complex(call->in[0], call->out[0], goes) : status;
}

/* Other dtypes are converted before they are added, which a decomposition does. */
static bool supports_nansum(const tn_call *call, char *reason, size_t size)
{
    tn_dtype dtype = ((const tn_nansum_options *)call->options)->dtype;
    if (dtype == TN_DTYPE_AUTO || dtype == tn_view_dtype(call->in[0]))
        return true;
    tn_snprint(reason, size, "dtype: expected that of x");
    return false;
}

static tn_status run_nansum(const tn_call *call)
{
    struct tn__reduction r = { .what = TN__FOLD_SUM, .before = TN__NO_NAN };
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, ((const tn_nansum_options *)call->options)->dims, goes);
    return status == TN_OK ? tn__reduction_strided(&r, call->in[0], call->out[0], goes) : status;
}

static double scaled(const struct tn__reduction *r, double value, double from)
{
    (void)from;
    return value * r->factor;
}

static tn_status run_mean(const tn_call *call)
{
    const tn_mean_options *o = call->options;
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, o->dims, goes);
    struct tn__reduction r = { .what = TN__FOLD_SUM, .finish = scaled };
    if (status != TN_OK)
        return status;
    r.factor = 1.0 / (double)members(call->in[0], goes, NULL);
    return tn__reduction_strided(&r, call->in[0], call->out[0], goes);
}

static tn_status run_prod(const tn_call *call)
{
    return simple(call, TN__FOLD_PROD, ((const tn_prod_options *)call->options)->dims);
}

/* ---- largest and smallest elements ----------------------------------------------------------- */

static tn_status extreme(const tn_call *call, enum tn__fold what, tn_ints dims)
{
    struct tn__reduction r = { .what = what };
    bool goes[TN_MAX_DIMS];
    int64_t kept;
    tn_status status = chosen(call, dims, goes);
    if (status != TN_OK)
        return status;
    if (members(call->in[0], goes, &kept) == 0 && kept > 0)
        return tn_fail(TN_ERR_VALUE, "%s: x: empty; expected at least one element", call->op);
    return tn__reduction_strided(&r, call->in[0], call->out[0], goes);
}

static tn_status run_amax(const tn_call *call)
{
    return extreme(call, TN__FOLD_MAX, ((const tn_amax_options *)call->options)->dims);
}

static tn_status run_amin(const tn_call *call)
{
    return extreme(call, TN__FOLD_MIN, ((const tn_amin_options *)call->options)->dims);
}

static tn_status run_argmax(const tn_call *call)
{
    int64_t dim = ((const tn_argmax_options *)call->options)->dim;
    return extreme(call, TN__FOLD_ARGMAX, dim == INT64_MIN ? tn_no_ints() : (tn_ints){ &dim, 1 });
}

static tn_status run_argmin(const tn_call *call)
{
    int64_t dim = ((const tn_argmin_options *)call->options)->dim;
    return extreme(call, TN__FOLD_ARGMIN, dim == INT64_MIN ? tn_no_ints() : (tn_ints){ &dim, 1 });
}

/* ---- aminmax: smallest and largest elements together ----------------------------------------- */

enum { SEGMENT = 65536, BLOCK = 4096 }; /* elements of a piece of work; that are read twice */

/* A call of aminmax. x is contiguous, and the elements that make one result are neighbours. */
struct ends {
    const char *x;
    int64_t n, segments; /* for one result: how many elements, and pieces of work */
    int64_t item;
    enum tn__ct ct;
    int narrow;                   /* tn__integers_index of the dtype */
    tn__load *load;               /* NULL: elements have the compute type */
    union tn__number (*found)[2]; /* of each piece, if a result has several; else NULL */
    const tn_call *call;
};

/* Stores the smallest and largest elements of result `row`. */
static void store_ends(const struct ends *ends, int64_t row, const union tn__number *all)
{
    tn_dtype dtype = tn_view_dtype(ends->call->in[0]);
    for (int k = 0; k < 2; k++)
        tn__dtype_store(ends->ct == TN__I64 ? TN__I64 : TN__F64,
                        dtype)(1, &all[k], tn__view_at(ends->call->out[k]) + row * ends->item, 0);
}

static void ends_of_block(const struct ends *ends, int64_t n, const char *x,
                          union tn__number *least, union tn__number *most)
{
    _Alignas(64) char buffer[BLOCK * sizeof(double)];
    if (ends->narrow >= 0) {
        least->i = tn__simd.integers->min[ends->narrow](n, x);
        most->i = tn__simd.integers->max[ends->narrow](n, x);
        return;
    }
    if (ends->load) {
        ends->load(n, x, ends->item, buffer);
        x = buffer;
    }
    tn__simd.reduction->min[ends->ct](n, x, least);
    tn__simd.reduction->max[ends->ct](n, x, most);
}

/* Makes `all` the smallest and largest of both; NaN if a number is. */
static void widen(const struct ends *ends, union tn__number *all, const union tn__number *more)
{
    if (ends->ct == TN__I64) {
        all[0].i = more[0].i < all[0].i ? more[0].i : all[0].i;
        all[1].i = more[1].i > all[1].i ? more[1].i : all[1].i;
        return;
    }
    all[0].f = more[0].f < all[0].f || isnan(more[0].f) ? more[0].f : all[0].f;
    all[1].f = more[1].f > all[1].f || isnan(more[1].f) ? more[1].f : all[1].f;
}

static tn_status ends_part(void *user, int64_t begin, int64_t end)
{
    const struct ends *ends = user;
    for (int64_t p = begin; p < end; p++) {
        int64_t first = p % ends->segments * SEGMENT, last = first + SEGMENT;
        const char *row = ends->x + p / ends->segments * ends->n * ends->item;
        union tn__number block[2], whole[2], *all = ends->found ? ends->found[p] : whole;
        last = last < ends->n ? last : ends->n;
        for (int64_t i = first; i < last; i += BLOCK) {
            int64_t n = last - i < BLOCK ? last - i : BLOCK;
            ends_of_block(ends, n, row + i * ends->item, &block[0], &block[1]);
            if (i == first)
                memcpy(all, block, sizeof block);
            else
                widen(ends, all, block);
        }
        if (!ends->found)
            store_ends(ends, p, all);
    }
    return TN_OK;
}

static bool supports_aminmax(const tn_call *call, char *reason, size_t size)
{
    const tn_view *x = call->in[0];
    int64_t dim = ((const tn_aminmax_options *)call->options)->dim;
    if (tn__span_view_dense(x) && tn__span_view_count(x) > 0 &&
        (dim == INT64_MIN || dim == -1 || dim == x->ndim - 1))
        return true;
    tn_snprint(reason, size, "expected elements of each result next to each other");
    return false;
}

static tn_status run_aminmax(const tn_call *call)
{
    const tn_view *x = call->in[0];
    tn_dtype dtype = tn_view_dtype(x);
    int64_t dim = ((const tn_aminmax_options *)call->options)->dim, count = tn__span_view_count(x);
    struct ends ends = { .x = tn__view_at(x), .n = count, .item = tn__view_item(x), .call = call };
    if (dim != INT64_MIN && x->ndim > 0)
        ends.n = x->shape[x->ndim - 1];
    ends.ct = tn__dtype_ct(dtype);
    ends.narrow = tn__integers_index(dtype == TN_BOOL ? TN_U8 : dtype);
    if (tn__dtype_of_ct(ends.ct) != dtype)
        ends.load = tn__dtype_load(dtype, ends.ct);
    ends.segments = (ends.n + SEGMENT - 1) / SEGMENT;
    int64_t rows = count / ends.n, pieces = rows * ends.segments, grain = GRAIN / ends.n;
    if (ends.segments > 1) {
        ends.found = tn__scratch_take((size_t)pieces * sizeof *ends.found);
        if (!ends.found)
            return TN_ERR_MEMORY;
    }
    tn_status status = count <= GRAIN
                           ? ends_part(&ends, 0, pieces)
                           : tn_parallel_for(pieces, grain > 0 ? grain : 1, ends_part, &ends);
    for (int64_t r = 0; ends.found && status == TN_OK && r < rows; r++) {
        union tn__number *all = ends.found[r * ends.segments];
        for (int64_t s = 1; s < ends.segments; s++)
            widen(&ends, all, ends.found[r * ends.segments + s]);
        store_ends(&ends, r, all);
    }
    tn__scratch_give(ends.found);
    return status;
}

/* ---- in two passes --------------------------------------------------------------------------- */

/* Reduces twice: `first` computes a number for each result (a mean, say), which `then` uses as its
 * `from`. */
static tn_status twice(const tn_call *call, const bool *goes, struct tn__reduction *first,
                       struct tn__reduction *then)
{
    int64_t kept;
    members(call->in[0], goes, &kept);
    double *from = tn__scratch_take((size_t)(kept > 0 ? kept : 1) * sizeof *from);
    if (!from)
        return TN_ERR_MEMORY;
    first->into = from;
    then->from = from;
    tn_status status = tn__reduction_strided(first, call->in[0], call->out[0], goes);
    if (status == TN_OK)
        status = tn__reduction_strided(then, call->in[0], call->out[0], goes);
    tn__scratch_give(from);
    return status;
}

static double scaled_root(const struct tn__reduction *r, double value, double from)
{
    (void)from;
    return sqrt(value * r->factor);
}

static tn_status spread(const tn_call *call, tn_ints dims, double correction, bool root)
{
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, dims, goes);
    if (status != TN_OK)
        return status;
    double n = (double)members(call->in[0], goes, NULL);
    struct tn__reduction mean = { .what = TN__FOLD_SUM, .finish = scaled, .factor = 1.0 / n };
    struct tn__reduction r = { .what = TN__FOLD_SQUARES,
                               .before = TN__APART,
                               .finish = root ? scaled_root : scaled,
                               .factor = 1.0 / (n - correction > 0 ? n - correction : 0) };
    return twice(call, goes, &mean, &r);
}

static tn_status run_var(const tn_call *call)
{
    const tn_var_options *o = call->options;
    return spread(call, o->dims, o->correction, false);
}

static tn_status run_std(const tn_call *call)
{
    const tn_std_options *o = call->options;
    return spread(call, o->dims, o->correction, true);
}

/* Returns the largest element, which logsumexp subtracts from all elements. If it is infinite,
 * returns 0, because infinity - infinity would be NaN. */
static double when_finite(const struct tn__reduction *r, double value, double from)
{
    (void)r, (void)from;
    return isfinite(value) ? value : 0;
}

static double log_from(const struct tn__reduction *r, double value, double from)
{
    (void)r;
    return log(value) + from;
}

static tn_status run_logsumexp(const tn_call *call)
{
    const tn_logsumexp_options *o = call->options;
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, o->dims, goes);
    if (status != TN_OK)
        return status;
    struct tn__reduction top = { .what = TN__FOLD_MAX, .finish = when_finite };
    struct tn__reduction r = { .what = TN__FOLD_SUM, .before = TN__EXP_FROM, .finish = log_from };
    return twice(call, goes, &top, &r);
}

/* ---- norms ----------------------------------------------------------------------------------- */

static double root(const struct tn__reduction *r, double value, double from)
{
    (void)from;
    return r->p == 2 ? sqrt(value) : pow(value, 1 / r->p);
}

static tn_status run_norm(const tn_call *call)
{
    const tn_norm_options *o = call->options;
    bool goes[TN_MAX_DIMS];
    tn_status status = chosen(call, o->dims, goes);
    struct tn__reduction r = {
        .what = TN__FOLD_SUM, .before = TN__POWER, .p = o->p, .finish = root
    };
    if (status != TN_OK)
        return status;
    if (o->p == 2) {
        r.what = TN__FOLD_SQUARES;
        r.before = TN__AS_IT_IS;
    } else if (o->p == 1 || o->p == 0) {
        r.before = o->p == 1 ? TN__SIZE : TN__TRUTH;
        r.finish = NULL;
    } else if (isinf(o->p)) {
        r.before = TN__SIZE;
        r.finish = NULL;
        r.what = o->p > 0 ? TN__FOLD_MAX : TN__FOLD_MIN;
    }
    return tn__reduction_strided(&r, call->in[0], call->out[0], goes);
}

/* ---- any and all ----------------------------------------------------------------------------- */

static double is_any(const struct tn__reduction *r, double value, double from)
{
    (void)r, (void)from;
    return value != 0;
}

static double is_all(const struct tn__reduction *r, double value, double from)
{
    (void)from;
    return value == r->factor;
}

/* The reductions any and all (if `all`) over contiguous rows of n bytes, each 0 or 1. */
struct bytes {
    const char *x;
    char *y;
    int64_t n;
    bool all;
};

static tn_status bytes_part(void *user, int64_t begin, int64_t end)
{
    const struct bytes *rows = user;
    for (int64_t r = begin; r < end; r++)
        rows->y[r] = (memchr(rows->x + r * rows->n, rows->all ? 0 : 1, (size_t)rows->n) != NULL) !=
                     rows->all;
    return TN_OK;
}

/* Returns whether x is a contiguous tensor of bool whose last dimensions are reduced, so that each
 * result comes from a contiguous row. */
static bool in_rows(const tn_view *x, const tn_view *y, const bool *goes)
{
    for (int32_t i = 1; i < x->ndim; i++)
        if (goes[i - 1] && !goes[i])
            return false;
    return tn_view_dtype(x) == TN_BOOL && tn__span_view_dense(x) && tn__span_view_dense(y);
}

static tn_status truth(const tn_call *call, tn_ints dims, bool all)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    bool goes[TN_MAX_DIMS];
    int64_t kept;
    tn_status status = chosen(call, dims, goes);
    if (status != TN_OK)
        return status;
    if (dims.count == 0) /* as in PyTorch, an empty list reduces no dimension here */
        memset(goes, 0, sizeof goes);
    int64_t n = members(x, goes, &kept);
    if (n > 0 && in_rows(x, y, goes)) {
        struct bytes rows = { tn__view_at(x), tn__view_at(y), n, all };
        int64_t grain = BYTES_GRAIN / n;
        return kept <= grain ? bytes_part(&rows, 0, kept)
                             : tn_parallel_for(kept, grain > 0 ? grain : 1, bytes_part, &rows);
    }
    struct tn__reduction r = { .what = TN__FOLD_SUM,
                               .before = TN__TRUTH,
                               .finish = all ? is_all : is_any,
                               .factor = (double)n };
    return tn__reduction_strided(&r, x, y, goes);
}

static tn_status run_any(const tn_call *call)
{
    return truth(call, ((const tn_any_options *)call->options)->dims, false);
}

static tn_status run_all(const tn_call *call)
{
    return truth(call, ((const tn_all_options *)call->options)->dims, true);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(sum, TN__NUMBERS_BOOL),
    TN__KERNEL_SUPPORTS(nansum, TN__FLOATS, supports_nansum),
    TN__KERNEL(amax, TN__REALS_BOOL),
    TN__KERNEL_SUPPORTS(aminmax, TN__REALS_BOOL &TN__NOT_U64, supports_aminmax),
    TN__KERNEL(argmax, TN__REALS),
    TN__KERNEL(mean, TN__FLOATS),
    TN__KERNEL(var, TN__FLOATS),
    TN__KERNEL(std, TN__FLOATS),
    TN__KERNEL(norm, TN__FLOATS),
    TN__KERNEL(logsumexp, TN__FLOATS),
    TN__KERNEL(any, TN_BIT(TN_BOOL)),
    TN__KERNEL(all, TN_BIT(TN_BOOL)),
    TN__KERNEL(prod, TN__REALS_BOOL),
    TN__KERNEL(amin, TN__REALS_BOOL &TN__NOT_U64),
    TN__KERNEL(argmin, TN__REALS &TN__NOT_U64),
};
TN__KERNEL_TABLE(reduction);
