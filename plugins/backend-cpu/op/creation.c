/* SPDX-License-Identifier: MIT
 *
 * Tensors given by a formula: arange, linspace, one_hot, eye, diag_embed, tril, triu. */
#include <string.h>

#include "base/span.h"
#include "op/copy.h"
#include "simd/simd.h"

enum { GRAIN = 16384, TRIANGLE_GRAIN = 32768 };

/* ---- arange and linspace --------------------------------------------------------------------- */

/* Element i is start + i * step if i < turn, otherwise end - (count - 1 - i) * step. */
struct steps {
    const tn_view *y;
    double start, end, step;
    int64_t first, pace; /* start and step for integers */
    int64_t turn;
    bool whole; /* y is a tensor of integers */
    tn__store *store;
};

static tn_status steps_part(void *user, int64_t begin, int64_t end)
{
    const struct steps *s = user;
    int64_t sy = s->y->strides[0] * tn__view_item(s->y), last = s->y->shape[0] - 1;
    union {
        double f[TN__CHUNK];
        int64_t i[TN__CHUNK];
    } numbers;
    for (int64_t at = begin; at < end; at += TN__CHUNK) {
        int64_t n = end - at < TN__CHUNK ? end - at : TN__CHUNK;
        int64_t up = s->turn < at ? 0 : s->turn - at < n ? s->turn - at : n;
        if (s->whole)
            for (int64_t i = 0; i < n; i++)
                numbers.i[i] = (int64_t)((uint64_t)s->first +
                                         (uint64_t)(at + i) * (uint64_t)s->pace);
        for (int64_t i = 0; !s->whole && i < up; i++)
            numbers.f[i] = s->start + (double)(at + i) * s->step;
        for (int64_t i = up; !s->whole && i < n; i++)
            numbers.f[i] = s->end - (double)(last - at - i) * s->step;
        s->store(n, &numbers, tn__view_at(s->y) + at * sy, sy);
    }
    return TN_OK;
}

static tn_status write_steps(struct steps *s)
{
    int64_t count = s->y->shape[0];
    s->store = tn__dtype_store(s->whole ? TN__I64 : TN__F64, tn_view_dtype(s->y));
    if (count <= GRAIN)
        return steps_part(s, 0, count);
    return tn_parallel_for(count, GRAIN, steps_part, s);
}

static tn_status run_arange(const tn_call *call)
{
    const tn_arange_options *o = call->options;
    const tn_view *y = call->out[0];
    struct steps s = { .y = y,
                       .start = tn_scalar_as_float(o->start),
                       .step = tn_scalar_as_float(o->step),
                       .turn = y->shape[0] };
    s.whole = (TN_MASK_FLOAT & TN_BIT(tn_view_dtype(y))) == 0;
    if (s.whole) {
        s.first = tn_scalar_as_int(o->start);
        s.pace = tn_scalar_as_int(o->step);
    }
    return write_steps(&s);
}

/* The second half is computed backwards from the end, so that the last element is exactly `end`. */
static tn_status run_linspace(const tn_call *call)
{
    const tn_linspace_options *o = call->options;
    const tn_view *y = call->out[0];
    int64_t count = y->shape[0];
    struct steps s = { .y = y, .start = o->start, .end = o->end };
    s.step = count > 1 ? (o->end - o->start) / (double)(count - 1) : 0;
    s.turn = count > 1 ? count / 2 : count;
    return write_steps(&s);
}

/* ---- one_hot --------------------------------------------------------------------------------- */

static bool supports_one_hot(const tn_call *call, char *reason, size_t size)
{
    const tn_view *x = call->in[0];
    if (tn_view_dtype(x) == TN_I64 && tn__span_view_dense(x) && tn__span_view_count(x) > 0)
        return true;
    tn_snprint(reason, size, "x: expected a contiguous, non-empty tensor of int64");
    return false;
}

struct ones {
    const int64_t *x;
    int64_t *y, classes;
};

static tn_status ones_part(void *user, int64_t begin, int64_t end)
{
    const struct ones *ones = user;
    int64_t *y = ones->y + begin * ones->classes;
    memset(y, 0, (size_t)((end - begin) * ones->classes) * sizeof *y);
    for (int64_t i = begin; i < end; i++, y += ones->classes)
        y[ones->x[i]] = 1;
    return TN_OK;
}

static tn_status run_one_hot(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t classes = ((const tn_one_hot_options *)call->options)->classes,
            n = tn__span_view_count(x);
    int64_t shape[TN_MAX_DIMS + 1];
    struct ones ones = { .x = (const int64_t *)(const void *)tn__view_at(x) };
    union tn__number least, most;
    tn__simd.reduction->min[TN__I64](n, ones.x, &least);
    tn__simd.reduction->max[TN__I64](n, ones.x, &most);
    if (least.i < 0)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "%s: Class values must be non-negative, not %lld",
                       call->op, (long long)least.i);
    if (classes < 0)
        classes = most.i < INT64_MAX ? most.i + 1 : most.i;
    if (most.i >= classes)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "%s: Class values must be smaller than classes: %lld, of %lld classes",
                       call->op, (long long)most.i, (long long)classes);
    for (int32_t d = 0; d < x->ndim; d++)
        shape[d] = x->shape[d];
    shape[x->ndim] = classes;
    tn_status status = call->make_output(call, 0, (tn_ints){ shape, x->ndim + 1 });
    if (status != TN_OK)
        return status;
    ones.y = (int64_t *)(void *)tn__view_at(call->out[0]);
    ones.classes = classes;
    int64_t grain = GRAIN / classes + 1;
    return n <= grain ? ones_part(&ones, 0, n) : tn_parallel_for(n, grain, ones_part, &ones);
}

/* ---- tril, triu, eye ------------------------------------------------------------------------- */

struct triangle {
    const tn_view *y, *x;
    int64_t diagonal, item;
    bool upper;
};

/* Computes rows [begin, end), counted over all matrices. In each row, columns [from, to) are copied
 * from x and the others are 0. */
static tn_status triangle_part(void *user, int64_t begin, int64_t end)
{
    const struct triangle *t = user;
    const tn_view *y = t->y, *x = t->x;
    int64_t columns = y->shape[y->ndim - 1], rows = y->shape[y->ndim - 2];
    int64_t sy = y->strides[y->ndim - 1] * t->item, sx = x->strides[x->ndim - 1] * t->item;
    for (int64_t index = begin; index < end; index++) {
        int64_t rest = index, middle = index % rows + t->diagonal, from, to;
        char *at = tn__view_at(y);
        const char *source = tn__view_at(x);
        for (int32_t d = y->ndim - 1; d-- > 0; rest /= y->shape[d]) {
            at += rest % y->shape[d] * y->strides[d] * t->item;
            source += rest % y->shape[d] * x->strides[d] * t->item;
        }
        from = t->upper ? middle : 0;
        to = t->upper ? columns : middle + 1;
        from = from < 0 ? 0 : from > columns ? columns : from;
        to = to < 0 ? 0 : to > columns ? columns : to;
        if (sy == t->item && sx == t->item) {
            memset(at, 0, (size_t)(from * sy));
            memmove(at + from * sy, source + from * sx, (size_t)((to - from) * sy));
            memset(at + to * sy, 0, (size_t)((columns - to) * sy));
            continue;
        }
        for (int64_t j = 0; j < columns; j++) {
            if (j >= from && j < to)
                memcpy(at + j * sy, source + j * sx, (size_t)t->item);
            else
                memset(at + j * sy, 0, (size_t)t->item);
        }
    }
    return TN_OK;
}

static tn_status triangle(const tn_call *call, int64_t diagonal, bool upper)
{
    const tn_view *y = call->out[0];
    int64_t most = INT64_MAX / 4;
    struct triangle t = { .y = y, .x = call->in[0], .item = tn__view_item(y), .upper = upper };
    if (tn__span_view_count(y) == 0)
        return TN_OK;
    t.diagonal = diagonal > most ? most : diagonal < -most ? -most : diagonal;
    int64_t columns = y->shape[y->ndim - 1], rows = tn__span_view_count(y) / columns;
    return tn_parallel_for(rows, TRIANGLE_GRAIN / columns + 1, triangle_part, &t);
}

static tn_status run_tril(const tn_call *call)
{
    return triangle(call, ((const tn_tril_options *)call->options)->diagonal, false);
}

static tn_status run_triu(const tn_call *call)
{
    return triangle(call, ((const tn_triu_options *)call->options)->diagonal, true);
}

static tn_status run_eye(const tn_call *call)
{
    const tn_view *y = call->out[0];
    int64_t n = y->shape[0] < y->shape[1] ? y->shape[0] : y->shape[1], shape[1] = { n };
    int64_t strides[1] = { y->strides[0] + y->strides[1] };
    tn_view diagonal = *y;
    tn_status status = tn__copy_zero(y);
    diagonal.ndim = 1;
    diagonal.shape = shape;
    diagonal.strides = strides;
    return status || n == 0 ? status : tn__copy_value(&diagonal, tn_scalar_int(1));
}

/* ---- diag_embed ------------------------------------------------------------------------------ */

static tn_status run_diag_embed(const tn_call *call)
{
    const tn_diag_embed_options *o = call->options;
    const tn_view *x = call->in[0], *y = call->out[0];
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS], start;
    int32_t rows = (int32_t)(o->dim1 < 0 ? o->dim1 + y->ndim : o->dim1);
    int32_t columns = (int32_t)(o->dim2 < 0 ? o->dim2 + y->ndim : o->dim2), ndim = 0;
    tn_view diagonal = *y;
    tn_status status = tn__copy_zero(y);
    for (int32_t d = 0; d < y->ndim; d++)
        if (d != rows && d != columns) {
            shape[ndim] = y->shape[d];
            strides[ndim++] = y->strides[d];
        }
    shape[ndim] = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
    strides[ndim++] = y->strides[rows] + y->strides[columns];
    start = o->offset < 0 ? -o->offset * y->strides[rows] : o->offset * y->strides[columns];
    diagonal.ndim = ndim;
    diagonal.shape = shape;
    diagonal.strides = strides;
    diagonal.byte_offset += (uint64_t)(start * tn__view_item(y));
    return status == TN_OK ? tn__copy_views(&diagonal, x) : status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(arange, TN__REALS),
    TN__KERNEL(linspace, TN__FLOATS),
    TN__KERNEL_SUPPORTS(one_hot, TN_BIT(TN_I64), supports_one_hot),
    TN__KERNEL(eye, TN__REALS_BOOL),
    TN__KERNEL(diag_embed, TN__REALS_BOOL),
    TN__KERNEL(tril, TN__REALS_BOOL),
    TN__KERNEL(triu, TN__REALS_BOOL),
};
TN__KERNEL_TABLE(creation);
