/* SPDX-License-Identifier: MIT
 *
 * Tensors that a formula gives: numbers at equal steps, ones where an index points. */
#include <string.h>

#include "base/kernels.h"

enum { GRAIN = 16384 };

/* ---- equal steps ----------------------------------------------------------------------------- */

/* Element i is start + i step, from `turn` on end - (count - 1 - i) step. */
struct steps {
    const tn_view *y;
    double start, end, step;
    int64_t first, pace; /* the same for whole numbers */
    int64_t turn;
    bool whole;
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
    s->store = tn__convert_store(s->whole ? TN__I64 : TN__F64, tn_view_dtype(s->y));
    if (count <= GRAIN)
        return steps_part(s, 0, count);
    return tn_parallel_for(count, GRAIN, steps_part, s);
}

tn_status tn__arange(const tn_call *call)
{
    const tn_arange_options *o = call->options;
    const tn_view *y = call->out[0];
    struct steps s = { .y = y, .start = o->start, .step = o->step, .turn = y->shape[0] };
    s.whole = (TN_MASK_FLOAT & TN_BIT(tn_view_dtype(y))) == 0;
    if (s.whole) {
        s.first = (int64_t)o->start;
        s.pace = (int64_t)o->step;
    }
    return write_steps(&s);
}

/* The second half from the end, so that this is met exactly. */
tn_status tn__linspace(const tn_call *call)
{
    const tn_linspace_options *o = call->options;
    const tn_view *y = call->out[0];
    int64_t count = y->shape[0];
    struct steps s = { .y = y, .start = o->start, .end = o->end };
    s.step = count > 1 ? (o->end - o->start) / (double)(count - 1) : 0;
    s.turn = count > 1 ? count / 2 : count;
    return write_steps(&s);
}

/* ---- ones where an index points ---------------------------------------------------------------- */

bool tn__one_hot_takes(const tn_call *call, char *reason, size_t size)
{
    const tn_view *x = call->in[0];
    if (tn_view_dtype(x) == TN_I64 && tn__view_dense(x) && tn__view_count(x) > 0)
        return true;
    tn_snprint(reason, size, "it is for indices of int64 that lie in a row");
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

tn_status tn__one_hot(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t classes = ((const tn_one_hot_options *)call->options)->classes, n = tn__view_count(x);
    int64_t shape[TN_MAX_DIMS + 1];
    struct ones ones = { .x = (const int64_t *)(const void *)tn__view_at(x) };
    union tn__number least, most;
    tn__folds->min[TN__I64](n, ones.x, &least);
    tn__folds->max[TN__I64](n, ones.x, &most);
    if (least.i < 0)
        return tn_fail(TN_ERR_RUNTIME, "%s: Class values must be non-negative, not %lld", call->op,
                       (long long)least.i);
    if (classes < 0)
        classes = most.i < INT64_MAX ? most.i + 1 : most.i;
    if (most.i >= classes)
        return tn_fail(TN_ERR_RUNTIME,
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
