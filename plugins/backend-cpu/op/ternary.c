/* SPDX-License-Identifier: MIT
 *
 * Operators that work element by element on three tensors of one type in one go, narrow floats as float32 in
 * buffers, and what else stands for several steps: other types come apart. */
#include <math.h>
#include <string.h>

#include "base/kernels.h"

enum { GRAIN = 32768 }; /* pieces: see elementwise.c */

struct job {
    struct tn__span span;
    enum tn__mix mix;
    enum tn__ct ct;
    double number;
    void (*narrow)(int64_t n, char *const *at, const int64_t *stride, double number);
    tn__load *load; /* of narrow floats; NULL: none is needed */
    tn__store *store;
    int32_t inputs;
};

static void run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    tn__loops->mix[job->mix][job->ct](n, at, stride, job->number);
}

/* What stands still is loaded once. */
static void converted(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    _Alignas(64) float in[3][TN__CHUNK], out[TN__CHUNK];
    char *from[4] = { (char *)out, (char *)in[0], (char *)in[1], (char *)in[2] };
    int64_t step[4] = { sizeof(float), 0, 0, 0 };
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        for (int32_t k = 1; k <= job->inputs; k++) {
            step[k] = stride[k] ? (int64_t)sizeof(float) : 0;
            if (stride[k] || done == 0)
                job->load(stride[k] ? count : 1, at[k] + done * stride[k], stride[k], from[k]);
        }
        if (job->inputs == 2) {
            from[3] = from[2];
            step[3] = step[2];
        }
        run(user, count, from, step);
        job->store(count, out, at[0] + done * stride[0], stride[0]);
    }
}

static void as_they_lie(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    job->narrow(n, at, stride, job->number);
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end,
                  job->narrow ? as_they_lie
                  : job->load ? converted
                              : run,
                  job);
    return TN_OK;
}

static tn_status mix(const tn_call *call, double number, enum tn__mix which)
{
    const tn_view *y = call->out[0], *last = call->n_in > 2 ? call->in[2] : call->in[1];
    const tn_view *views[4] = { y, call->in[0], call->in[1], last };
    tn_dtype dtype = tn_view_dtype(y);
    struct job job = { .mix = which,
                       .ct = dtype == TN_F64 ? TN__F64 : TN__F32,
                       .number = number,
                       .inputs = (int32_t)call->n_in };
    tn__span_make(&job.span, 4, views, false);
    int narrow = tn__narrow_of(dtype);
    if (narrow >= 0 && tn__narrow_lies(&job.span))
        job.narrow = tn__narrow->mix[which][narrow];
    if (narrow >= 0 && !job.narrow) {
        job.load = tn__convert_load(dtype, TN__F32);
        job.store = tn__convert_store(TN__F32, dtype);
    }
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN / 2, part, &job);
}

bool tn__mixtures_take(const tn_call *call, char *reason, size_t size)
{
    for (int64_t i = 0; i < call->n_in; i++) {
        if (!call->in[i] || memcmp(&call->in[i]->dtype, &call->out[0]->dtype, 4) != 0) {
            tn_snprint(reason, size, "all inputs are needed, in the result's dtype");
            return false;
        }
    }
    return true;
}

tn_status tn__clamp_tensor(const tn_call *call)
{
    return mix(call, 0, TN__MIX_CLAMP_TENSOR);
}

tn_status tn__lerp(const tn_call *call)
{
    return mix(call, 0, TN__MIX_LERP);
}

tn_status tn__lerp_scalar(const tn_call *call)
{
    return mix(call, ((const tn_lerp_scalar_options *)call->options)->weight, TN__MIX_LERP_SCALAR);
}

tn_status tn__addcmul(const tn_call *call)
{
    return mix(call, ((const tn_addcmul_options *)call->options)->value, TN__MIX_ADDCMUL);
}

tn_status tn__addcdiv(const tn_call *call)
{
    return mix(call, ((const tn_addcdiv_options *)call->options)->value, TN__MIX_ADDCDIV);
}

/* ---- triangles and ones on the diagonal -------------------------------------------------------- */

struct triangle {
    const tn_view *y, *x;
    int64_t diagonal, item;
    bool upper;
};

/* Row `index` of all: the columns [from, to) are x's, the others 0. */
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
    if (tn__view_count(y) == 0)
        return TN_OK;
    t.diagonal = diagonal > most ? most : diagonal < -most ? -most : diagonal;
    int64_t columns = y->shape[y->ndim - 1], rows = tn__view_count(y) / columns;
    return tn_parallel_for(rows, GRAIN / columns + 1, triangle_part, &t);
}

tn_status tn__tril(const tn_call *call)
{
    return triangle(call, ((const tn_tril_options *)call->options)->diagonal, false);
}

tn_status tn__triu(const tn_call *call)
{
    return triangle(call, ((const tn_triu_options *)call->options)->diagonal, true);
}

tn_status tn__eye(const tn_call *call)
{
    const tn_view *y = call->out[0];
    int64_t n = y->shape[0] < y->shape[1] ? y->shape[0] : y->shape[1], shape[1] = { n };
    int64_t strides[1] = { y->strides[0] + y->strides[1] };
    tn_view diagonal = *y;
    tn_status status = tn__copy_zero(y);
    diagonal.ndim = 1;
    diagonal.shape = shape;
    diagonal.strides = strides;
    return status || n == 0 ? status : tn__copy_value(&diagonal, 1);
}

/* ---- a gate: a sigmoid(b), a and b the halves ------------------------------------------------- */

tn_status tn__glu(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t dim = ((const tn_glu_options *)call->options)->dim;
    dim = dim < 0 ? dim + x->ndim : dim;
    tn_view a = *x, b = *x;
    const tn_view *in[2] = { &a, &b };
    tn_call halves = *call;
    a.shape = b.shape = call->out[0]->shape;
    b.byte_offset += (uint64_t)(call->out[0]->shape[dim] * x->strides[dim] * tn__view_item(x));
    halves.in = in;
    halves.n_in = 2;
    return tn__gate(&halves);
}
