/* SPDX-License-Identifier: MIT
 *
 * Kernels of the device of mutant_device.c, with the errors (mutant_choose.h) that kernels can
 * have. They compute in long double, which has all integers of 64 bits on the machines that we
 * test. */
#ifndef TN_TESTS_CONFORM_MUTANT_KERNEL_H
#define TN_TESTS_CONFORM_MUTANT_KERNEL_H

#include <math.h>
#include <pthread.h>

#include "mutant_choose.h"

#define MUTANT_TYPE "mutant"
#define MUTANT_DTYPES                                                                              \
    (TN_BIT(TN_F32) | TN_BIT(TN_F64) | TN_BIT(TN_BF16) | TN_BIT(TN_I64) | TN_BIT(TN_BOOL))

/* ---- elements of a view ---------------------------------------------------------------------- */

static inline float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To bfloat16, to nearest even. */
static inline uint16_t narrow(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return 0x7fc0;
    if (is("bf16-truncated"))
        return (uint16_t)(bits >> 16);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float rounded(long double value)
{
    return from_bits((uint32_t)narrow((float)value) << 16);
}

static inline char *first(const tn_view *view)
{
    return (char *)view->data + view->byte_offset;
}

static inline long double get(const tn_view *view, int64_t at)
{
    const void *data = first(view);

    switch (tn_view_dtype(view)) {
    case TN_F32: return ((const float *)data)[at];
    case TN_F64: return ((const double *)data)[at];
    case TN_BF16: return from_bits((uint32_t)((const uint16_t *)data)[at] << 16);
    case TN_I64:
        return is("int-as-double") ? (double)((const int64_t *)data)[at]
                                   : (long double)((const int64_t *)data)[at];
    default: return ((const uint8_t *)data)[at];
    }
}

static inline void set(const tn_view *view, int64_t at, long double value)
{
    void *data = first(view);

    switch (tn_view_dtype(view)) {
    case TN_F32: ((float *)data)[at] = (float)value; return;
    case TN_F64:
        ((double *)data)[at] = is("double-as-float") ? (float)value : (double)value;
        return;
    case TN_BF16: ((uint16_t *)data)[at] = narrow((float)value); return;
    case TN_I64:
        ((int64_t *)data)[at] = (int64_t)(is("int-rounds")      ? roundl(value)
                                          : is("int-as-double") ? (double)value
                                                                : value);
        return;
    default:
        ((uint8_t *)data)[at] = is("bool-bits") ? (uint8_t)value : value != 0;
        if (is("bool-255") && value != 0)
            ((uint8_t *)data)[at] = 255;
        return;
    }
}

/* The next index in row-major order; false after the last one. */
static inline bool next(int64_t *index, const int64_t *shape, int32_t ndim)
{
    for (int32_t d = ndim; d-- > 0;) {
        if (++index[d] < shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static inline int64_t count_of(const tn_view *view)
{
    int64_t count = 1;

    for (int32_t d = 0; d < view->ndim; d++)
        count *= view->shape[d];
    return count;
}

/* Where element `index` of a result with `ndim` dimensions is in a view that broadcasts to it. */
static inline int64_t place(const tn_view *view, const int64_t *index, int32_t ndim)
{
    int64_t at = 0;

    for (int32_t d = 0; d < view->ndim; d++) {
        int64_t i = index[is("broadcast-left") ? d : d + ndim - view->ndim];
        int64_t stride = view->strides[d];

        if (is("stride-inner") && d == view->ndim - 1)
            stride = 1;
        if (is("stride-rows") && d == 0 && view->ndim == 2)
            stride = view->shape[1];
        if (is("stride-zero") && stride == 0)
            stride = 1;
        if (view->shape[d] != 1 || is("broadcast-one"))
            at += i * stride;
    }
    return at;
}

/* ---- elementwise ----------------------------------------------------------------------------- */

typedef long double function(const tn_call *call, const long double *in);
struct each {
    function *f;
};

static long double copy(const tn_call *call, const long double *in)
{
    (void)call;
    return is("copy-as-double") ? (double)in[0] : in[0];
}

static long double fill_value(const tn_call *call, const long double *in)
{
    (void)in;
    return tn_scalar_as_float(((const tn_fill_options *)call->options)->value);
}

/* The option alpha; one mutant takes options at the same address for the same options. */
static inline double alpha_of(const tn_call *call)
{
    static const void *last;
    static double kept;
    const tn_add_options *o = call->options;

    if (!is("keeps-options") || last != o)
        kept = tn_scalar_as_float(o->alpha);
    last = o;
    return kept;
}

static long double add(const tn_call *call, const long double *in)
{
    double alpha = is("alpha-ignored") ? 1 : alpha_of(call);

    return in[0] + (call->dtype == TN_BOOL ? alpha != 0 : (long double)alpha) * in[1];
}

static long double add_scalar(const tn_call *call, const long double *in)
{
    return in[0] + tn_scalar_as_float(((const tn_add_scalar_options *)call->options)->value);
}

static long double mul_scalar(const tn_call *call, const long double *in)
{
    return in[0] * tn_scalar_as_float(((const tn_mul_scalar_options *)call->options)->value);
}

static long double mul(const tn_call *call, const long double *in)
{
    (void)call;
    return in[0] * in[1];
}

static long double neg(const tn_call *call, const long double *in)
{
    (void)call;
    return is("minus-zero") ? 0 - in[0] : -in[0];
}

static long double relu(const tn_call *call, const long double *in)
{
    (void)call;
    if (is("relu-nan"))
        return in[0] > 0 ? in[0] : 0;
    return in[0] < 0 ? 0 : in[0];
}

static long double le(const tn_call *call, const long double *in)
{
    (void)call;
    return is("compare-nan") ? !(in[0] > in[1]) : in[0] <= in[1];
}

enum { BLOCK = 16 };

/* Mutants that keep a pointer of the last call: to the call, to a view, to the options. */
static inline void look_back(const tn_call *call)
{
    static const tn_call *last;
    static const tn_view *view;
    volatile int64_t seen = last != NULL && is("keeps-call") ? last->n_in : 0;

    if (is("keeps-view") && view != NULL)
        seen = view->ndim;
    last = call, view = call->out[0];
    (void)seen;
}

/* Blocks of results are computed, then written: `y` may be the first input. */
static tn_status each(const tn_call *call)
{
    function *f = ((const struct each *)call->kernel->user)->f;
    const tn_view *y = call->out[0];
    static long double shared[BLOCK];
    long double own[BLOCK], *block = is("static-buffer") ? shared : own;
    int64_t index[TN_MAX_DIMS] = { 0 }, to[TN_MAX_DIMS] = { 0 }, total = count_of(y);
    bool more = true;

    look_back(call);
    if (is("zero-dim") && y->ndim == 0)
        return TN_OK;
    if (is("input-written") && call->n_in > 0 && call->in[0]->data != y->data)
        set(call->in[0], 0, 0);
    while (more) {
        int64_t n = 0, at = 0;

        for (bool left = true; left && n < BLOCK; n++) {
            long double in[2] = { 0, 0 };

            for (int64_t i = 0; i < call->n_in; i++)
                in[i] = get(call->in[i], place(call->in[i], index, y->ndim));
            block[n] = f(call, in);
            left = more = next(index, y->shape, y->ndim);
        }
        if (is("skips-2048") && total > 2048 && index[y->ndim - 1] >= 2048)
            n = 0;
        if (is("tail") && n < BLOCK && total > n)
            n = n / 4 * 4;
        if (is("starts-at-1") && total > 1) {
            next(to, y->shape, y->ndim);
            at = 1;
            mutant_name = "starts-at-1 once";
        }
        for (; at < n; at++) {
            set(y, place(y, to, y->ndim), block[at]);
            next(to, y->shape, y->ndim);
        }
    }
    if (is("starts-at-1 once"))
        mutant_name = "starts-at-1";
    if (is("write-past") && y->ndim == 1)
        set(y, y->shape[0], 0);
    if (is("fails-silently") && y->ndim > 1)
        return TN_ERR_RUNTIME;
    if (is("error-left"))
        tn_fail(TN_ERR_RUNTIME, "mutant: a failure that is not one");
    return TN_OK;
}

/* Two passes as well: y may be a, but not b. */
static tn_status add_reversed(const tn_view *y, const tn_view *a, const tn_view *b, double alpha)
{
    int64_t index[TN_MAX_DIMS] = { 0 };

    do
        set(y, place(y, index, y->ndim), get(a, place(a, index, y->ndim)));
    while (next(index, y->shape, y->ndim));
    memset(index, 0, sizeof index);
    do {
        int64_t at = place(y, index, y->ndim);

        set(y, at, get(y, at) + alpha * get(b, place(b, index, y->ndim)));
    } while (next(index, y->shape, y->ndim));
    return TN_OK;
}

/* In mutants of aliasing: two passes, the second of which reads an input after the first wrote the
 * output. */
static tn_status add_in_passes(const tn_call *call)
{
    const tn_view *y = call->out[0], *a = call->in[0], *b = call->in[1];
    double alpha = tn_scalar_as_float(((const tn_add_options *)call->options)->alpha);
    int64_t index[TN_MAX_DIMS] = { 0 };

    if (is("inplace-second"))
        return add_reversed(y, a, b, alpha);
    if (!is("in-place-alias") && !is("accumulates-in-output") &&
        !(is("in-place-f32") && call->dtype == TN_F32) &&
        !(is("in-place-bf16") && call->dtype == TN_BF16))
        return each(call);
    do
        set(y, place(y, index, y->ndim), alpha * get(b, place(b, index, y->ndim)));
    while (next(index, y->shape, y->ndim));
    memset(index, 0, sizeof index);
    do {
        int64_t at = place(y, index, y->ndim);

        set(y, at, get(y, at) + get(a, place(a, index, y->ndim)));
    } while (next(index, y->shape, y->ndim));
    return TN_OK;
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Dimensions of which one element counts as the sum: writing others would end the process. */
static _Thread_local bool ignored[TN_MAX_DIMS];

/* Whether each dimension is reduced: those of the option, all without it. */
static tn_status reduced_dims(tn_ints dims, int32_t ndim, bool *reduced)
{
    int32_t most = ndim > 0 ? ndim : 1;

    for (int32_t d = 0; d < most; d++) {
        reduced[d] = dims.count < 1;
        ignored[d] = false;
    }
    for (int64_t i = 0; i < dims.count; i++) {
        int64_t d = dims.at[i] < 0 ? dims.at[i] + most : dims.at[i];

        if (d < 0 || d >= most)
            return tn_fail(TN_ERR_INDEX, "dims: out of range, got %lld", (long long)dims.at[i]);
        if (!(is("dims-first-only") && i > 0))
            reduced[d] = true;
        ignored[d] = is("dims-negative") && dims.at[i] < 0;
    }
    return TN_OK;
}

/* One result: `at` is the first of its elements, those with an index in `shape` are its others. */
typedef long double folding(const tn_view *x, int64_t at, const int64_t *shape);

static long double sum_of(const tn_view *x, int64_t at, const int64_t *shape)
{
    static int64_t calls;
    int64_t index[TN_MAX_DIMS] = { 0 }, count = 1, i = 0, skipped;
    bool narrow_sum = is("sum-narrow") && tn_view_dtype(x) == TN_BF16;
    long double total = 0, late = 0;

    for (int32_t d = 0; d < x->ndim; d++)
        count *= shape[d];
    if (count == 0)
        return 0;
    skipped = is("sum-order") && tn_view_dtype(x) == TN_F32 ? calls++ % 7 : -1;
    do {
        int64_t here = at;

        for (int32_t d = 0; d < x->ndim; d++)
            here += index[d] * x->strides[d];
        if (is("sum-tail") && count > 8 && i >= count / 8 * 8)
            break;
        if (is("sum-overwrites") && i > 0 && i % 64 == 0)
            total = 0;
        if (i++ == skipped)
            late = get(x, here);
        else
            total += get(x, here);
        if (narrow_sum)
            total = rounded(total);
        if (is("sum-float") || skipped >= 0)
            total = (float)total;
    } while (next(index, shape, x->ndim));
    if (is("read-past"))
        total += get(x, at + count);
    return total + late;
}

static long double max_of(const tn_view *x, int64_t at, const int64_t *shape)
{
    int64_t index[TN_MAX_DIMS] = { 0 };
    long double largest = is("max-from-0") ? 0 : get(x, at);

    do {
        int64_t here = at;
        long double value;

        for (int32_t d = 0; d < x->ndim; d++)
            here += index[d] * x->strides[d];
        value = get(x, here);
        if (is("max-nan"))
            largest = fmaxl(largest, value);
        else if (value > largest || value != value)
            largest = value;
    } while (next(index, shape, x->ndim));
    return largest;
}

static tn_status fold(const tn_call *call, tn_ints dims, folding *f)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    int64_t index[TN_MAX_DIMS] = { 0 }, kept[TN_MAX_DIMS], within[TN_MAX_DIMS];
    bool reduced[TN_MAX_DIMS], keepdim = y->ndim == x->ndim && !is("keepdim-ignored");
    tn_status status = reduced_dims(dims, x->ndim, reduced);

    if (status != TN_OK)
        return status;
    if (is("empty-unwritten") && count_of(x) == 0)
        return TN_OK;
    for (int32_t d = 0; d < x->ndim; d++) {
        kept[d] = reduced[d] ? 1 : x->shape[d];
        within[d] = reduced[d] && !ignored[d] ? x->shape[d] : 1;
    }
    do {
        int64_t from = 0, to = 0;

        for (int32_t d = 0, k = 0; d < x->ndim; d++) {
            from += index[d] * x->strides[d];
            if (!reduced[d] || keepdim)
                to += index[d] * y->strides[k++];
        }
        set(y, to, f(x, from, within));
    } while (next(index, kept, x->ndim));
    return TN_OK;
}

static tn_status sum(const tn_call *call)
{
    return fold(call, ((const tn_sum_options *)call->options)->dims, sum_of);
}

static tn_status amax(const tn_call *call)
{
    return fold(call, ((const tn_amax_options *)call->options)->dims, max_of);
}

/* ---- bmm, gather ----------------------------------------------------------------------------- */

/* A column of b. */
static size_t bmm_workspace(const tn_call *call)
{
    size_t rows = (size_t)call->in[1]->shape[1];

    return rows * sizeof(double) / (is("workspace-small") ? 2 : 1);
}

/* The columns of a constant b, one after the other. */
static tn_status bmm_prepare(const tn_call *call, tn_prepared_data *out)
{
    const tn_view *b = call->in[1];
    int64_t i[3] = { 0 }, rows = b->shape[1], columns = b->shape[2];
    static double *oldest;
    double *packed;

    if (((call->constant & 2) == 0 && !is("prepare-not-constant")) || count_of(b) == 0)
        return TN_OK;
    packed = malloc((size_t)count_of(b) * sizeof *packed);
    if (packed == NULL)
        return tn_fail(TN_ERR_MEMORY, "mutant: no memory for columns");
    do
        packed[(i[0] * columns + i[2]) * rows + i[1]] = (double)get(b, place(b, i, 3));
    while (next(i, b->shape, 3));
    oldest = oldest != NULL ? oldest : packed;
    out->data = is("prepare-stale") ? oldest : packed;
    out->bytes = (uint64_t)count_of(b) * sizeof *packed;
    return TN_OK;
}

static void bmm_release(const tn_kernel_def *kernel, void *data)
{
    (void)kernel;
    if (!is("prepare-stale"))
        free(data);
}

/* y[n] = a[n] . b[n]; the column of b is copied to the workspace. */
static tn_status bmm(const tn_call *call)
{
    const tn_view *y = call->out[0], *a = call->in[0], *b = call->in[1];
    double *packed = call->prepared;
    int64_t i[3] = { 0 }, depth = a->shape[2]; /* batch, row, column */
    int64_t inner = is("bmm-transposed") ? b->shape[2] : b->strides[1];

    do {
        double *column = depth > 0 ? (double *)(void *)first(call->workspace) : NULL;
        int64_t at_a = i[0] * a->strides[0] + i[1] * a->strides[1];
        int64_t at_b = i[0] * (is("batch-ignored") ? 0 : b->strides[0]) + i[2] * b->strides[2];
        long double total = 0;

        for (int64_t k = 0; k < depth; k++)
            column[k] = packed != NULL ? packed[(i[0] * b->shape[2] + i[2]) * depth + k]
                                       : (double)get(b, at_b + k * inner);
        if (packed != NULL && depth > 0 && is("prepared-written"))
            packed[(i[0] * b->shape[2] + i[2]) * depth] = 0;
        for (int64_t k = 0; k < depth; k++) {
            if (is("bmm-overwrites") && k > 0 && k % 32 == 0)
                total = 0;
            total += get(a, at_a + k * a->strides[2]) * column[k];
            if (is("bmm-narrow") && tn_view_dtype(y) == TN_BF16)
                total = rounded(total);
        }
        set(y, place(y, i, 3), total);
    } while (next(i, y->shape, 3));
    return TN_OK;
}

struct failure {
    int64_t index, size;
};

static void *fail_elsewhere(void *user)
{
    const struct failure *f = user;

    tn_fail(TN_ERR_INDEX, "gather: index: out of range, got %lld; expected less than %lld",
            (long long)f->index, (long long)f->size);
    return NULL;
}

static tn_status wrong_index(int64_t index, int64_t size)
{
    struct failure f = { index, size };
    pthread_t thread;

    if (is("index-silent"))
        return TN_ERR_INDEX;
    if (is("error-of-another-thread") && pthread_create(&thread, NULL, fail_elsewhere, &f) == 0) {
        pthread_join(thread, NULL);
        return TN_ERR_INDEX;
    }
    fail_elsewhere(&f);
    return is("ok-after-failure") ? TN_OK : TN_ERR_INDEX;
}

static tn_status gather(const tn_call *call)
{
    const tn_view *y = call->out[0], *x = call->in[0], *indices = call->in[1];
    int64_t dim = ((const tn_gather_options *)call->options)->dim, index[TN_MAX_DIMS] = { 0 };
    int64_t size = x->ndim > 0 ? x->shape[dim < 0 ? dim + x->ndim : dim] : 1;

    if (dim < 0)
        dim += x->ndim > 0 ? x->ndim : 1;
    do {
        int64_t from = 0, i = (int64_t)get(indices, place(indices, index, y->ndim));

        if (is("index-clamped"))
            i = i < 0 ? 0 : i >= size ? size - 1 : i;
        if (i < 0 || i >= size)
            return wrong_index(i, size);
        for (int32_t d = 0; d < x->ndim; d++)
            from += (d == dim ? i : index[d]) * x->strides[d];
        set(y, place(y, index, y->ndim), get(x, from));
    } while (next(index, y->shape, y->ndim));
    return TN_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool supports(const tn_call *call, char *reason, size_t size)
{
    for (int64_t i = 0; i < call->n_in; i++)
        if (!(TN_BIT(tn_view_dtype(call->in[i])) & MUTANT_DTYPES)) {
            tn_snprint(reason, size, "%s", tn_dtype_name(tn_view_dtype(call->in[i])));
            return false;
        }
    if (is("supports-without-reason") && call->out[0]->ndim > 1)
        return false;
    return true;
}

#define KERNEL(op_, run_, data_)                                                                   \
    {                                                                                              \
        TN_HEAD(tn_kernel_def), .op = op_, .device = MUTANT_TYPE, .name = "tn_" op_,               \
                                .revision = 1, .flags = TN_KERNEL_DETERMINISTIC,                   \
                                .dtypes = MUTANT_DTYPES, .user = data_, .supports = supports,      \
                                .run = run_                                                        \
    }
#define EACH(op_, function_) KERNEL(op_, each, (&(const struct each){ function_ }))

static const tn_kernel_def kernels[] = {
    EACH("copy", copy),
    EACH("fill", fill_value),
    { TN_HEAD(tn_kernel_def), .op = "add", .device = MUTANT_TYPE, .name = "tn_add", .revision = 1,
      .flags = TN_KERNEL_DETERMINISTIC, .dtypes = MUTANT_DTYPES,
      .user = &(const struct each){ add }, .supports = supports, .run = add_in_passes,
      .inplace = 3 },
    EACH("mul", mul),
    EACH("add_scalar", add_scalar),
    EACH("mul_scalar", mul_scalar),
    EACH("neg", neg),
    EACH("relu", relu),
    EACH("le", le),
    KERNEL("sum", sum, NULL),
    KERNEL("amax", amax, NULL),
    { TN_HEAD(tn_kernel_def), .op = "bmm", .device = MUTANT_TYPE, .name = "tn_bmm", .revision = 1,
      .dtypes = TN_BIT(TN_F32) | TN_BIT(TN_F64) | TN_BIT(TN_BF16), .supports = supports,
      .workspace = bmm_workspace, .run = bmm, .prepare = bmm_prepare, .release = bmm_release },
    KERNEL("gather", gather, NULL),
};

#endif
