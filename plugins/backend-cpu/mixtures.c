/* SPDX-License-Identifier: MIT
 *
 * Operators that work element by element on three tensors of one type in one go, narrow floats as float32 in
 * buffers, and what else stands for several steps: other types come apart. */
#include <math.h>
#include <string.h>

#include "kernels.h"

enum { GRAIN = 32768 };

struct job {
    struct tn__span span;
    tn__span_body *body;
    double number;
    tn__load *load; /* of narrow floats; NULL: none is needed */
    tn__store *store;
    int32_t inputs;
};

/* Operands: result, a, b, c. */
#define MIX(name, T, expr)                                                                         \
    static void name(void *user, int64_t n, char *const *at, const int64_t *stride)                \
    {                                                                                              \
        const int64_t w = (int64_t)sizeof(T);                                                      \
        const T p = (T)((const struct job *)user)->number;                                         \
        (void)p;                                                                                   \
        if (stride[0] == w && stride[1] == w && stride[2] == w && stride[3] == w) {                \
            T *y = (T *)(void *)at[0];                                                             \
            const T *pa = (const T *)(const void *)at[1], *pb = (const T *)(const void *)at[2],    \
                    *pc = (const T *)(const void *)at[3];                                          \
            TN__IVDEP for (int64_t i = 0; i < n; i++)                                              \
            {                                                                                      \
                const T a = pa[i], b = pb[i], c = pc[i];                                           \
                (void)c;                                                                           \
                y[i] = expr;                                                                       \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T a = *(const T *)(const void *)(at[1] + i * stride[1]),                         \
                    b = *(const T *)(const void *)(at[2] + i * stride[2]),                         \
                    c = *(const T *)(const void *)(at[3] + i * stride[3]);                         \
            (void)c;                                                                               \
            *(T *)(void *)(at[0] + i * stride[0]) = expr;                                          \
        }                                                                                          \
    }
#define MIXTURES(T, s)                                                                             \
    MIX(lerp_##s, T, a + c * (b - a))                                                              \
    MIX(lerp_scalar_##s, T, a + p * (b - a))                                                       \
    MIX(addcmul_##s, T, a + p * (b * c))                                                           \
    MIX(addcdiv_##s, T, a + p * (b / c))
MIXTURES(float, f32)
MIXTURES(double, f64)

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
        job->body(user, count, from, step);
        job->store(count, out, at[0] + done * stride[0], stride[0]);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, job->load ? converted : job->body, job);
    return TN_OK;
}

static tn_status mix(const tn_call *call, double number, tn__span_body *f32, tn__span_body *f64)
{
    const tn_view *y = call->out[0], *last = call->n_in > 2 ? call->in[2] : call->in[1];
    const tn_view *views[4] = { y, call->in[0], call->in[1], last };
    tn_dtype dtype = tn_view_dtype(y);
    struct job job = { .body = dtype == TN_F64 ? f64 : f32,
                       .number = number,
                       .inputs = (int32_t)call->n_in };
    if (tn__narrow_of(dtype) >= 0) {
        job.load = tn__convert_load(dtype, TN__F32);
        job.store = tn__convert_store(TN__F32, dtype);
    }
    tn__span_make(&job.span, 4, views, false);
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
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

/* A run at a time, which stays in the first-level cache: at least b, then at most c. */
static void clamp_run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    static const double none[3] = { 0, 0, 0 };
    const enum tn__ct ct = ((const struct job *)user)->number == 64 ? TN__F64 : TN__F32;
    tn__ew_loop *least = tn__loop_of(TN__MAXIMUM, ct), *most = tn__loop_of(TN__MINIMUM, ct);
    const int64_t size = (int64_t)tn__ct_size(ct);
    _Alignas(64) char y[TN__CHUNK * 8]; /* an operand may be what is written */
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        least(count, y, size, at[1] + done * stride[1], stride[1], at[2] + done * stride[2],
              stride[2], none);
        most(count, at[0] + done * stride[0], stride[0], y, size, at[3] + done * stride[3],
             stride[3], none);
    }
}

tn_status tn__clamp_tensor(const tn_call *call)
{
    return mix(call, call->out[0]->dtype.bits, clamp_run, clamp_run);
}

tn_status tn__lerp(const tn_call *call)
{
    return mix(call, 0, lerp_f32, lerp_f64);
}

tn_status tn__lerp_scalar(const tn_call *call)
{
    return mix(call, ((const tn_lerp_scalar_options *)call->options)->weight, lerp_scalar_f32,
               lerp_scalar_f64);
}

tn_status tn__addcmul(const tn_call *call)
{
    return mix(call, ((const tn_addcmul_options *)call->options)->value, addcmul_f32, addcmul_f64);
}

tn_status tn__addcdiv(const tn_call *call)
{
    return mix(call, ((const tn_addcdiv_options *)call->options)->value, addcdiv_f32, addcdiv_f64);
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
