/* SPDX-License-Identifier: MIT
 *
 * Operators that work element by element: any strides, broadcasting by stride 0, in place, types
 * that differ converted in chunks. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "base/kernels.h"

/* Fewer elements than this never leave the calling thread; more are cut into pieces of half as many,
 * so that two threads have the same to do of three times as many. */
enum { GRAIN_CHEAP = 32768, GRAIN_COSTLY = 16384 };

/* ---- complex numbers ------------------------------------------------------------------------- */

#define COMPLEX(name, T, expr)                                                                     \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *param)                                              \
    {                                                                                              \
        (void)param;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a, b, y;                                                                             \
            memcpy(&a, ap + i * sa, sizeof a);                                                     \
            memcpy(&b, bp + i * sb, sizeof b);                                                     \
            y = (T)(expr);                                                                         \
            memcpy(yp + i * sy, &y, sizeof y);                                                     \
        }                                                                                          \
    }
/* Without the C library's care for infinities, which costs a call and which PyTorch does without. */
#define COMPLEX_PRODUCT(T, R, s, f)                                                                \
    static inline T product_##s(T a, T b)                                                          \
    {                                                                                              \
        R x = creal##f(a), y = cimag##f(a), u = creal##f(b), v = cimag##f(b), parts[2];            \
        T z;                                                                                       \
                                                                                                   \
        parts[0] = x * u - y * v;                                                                  \
        parts[1] = x * v + y * u;                                                                  \
        memcpy(&z, parts, sizeof z);                                                               \
        return z;                                                                                  \
    }
COMPLEX_PRODUCT(float complex, float, c64, f)
COMPLEX_PRODUCT(double complex, double, c128, )
#define COMPLEX_LOOPS(T, R, s, f)                                                                  \
    COMPLEX(add_##s, T, a + b)                                                                     \
    COMPLEX(sub_##s, T, a - b)                                                                     \
    COMPLEX(add_alpha_##s, T, a + (R)*param * b)                                                   \
    COMPLEX(mul_##s, T, product_##s(a, b))                                                         \
    COMPLEX(div_##s, T, a / b)                                                                     \
    COMPLEX(add_scalar_##s, T, a + (R)*param)                                                      \
    COMPLEX(mul_scalar_##s, T, a *(R)*param)                                                       \
    COMPLEX(conj_##s, T, conj##f(a))                                                               \
    COMPLEX(neg_##s, T, -a)                                                                        \
    COMPLEX(exp_##s, T, cexp##f(a))                                                                \
    COMPLEX(log_##s, T, clog##f(a))                                                                \
    COMPLEX(sqrt_##s, T, csqrt##f(a))                                                              \
    COMPLEX(square_##s, T, product_##s(a, a))                                                      \
    COMPLEX(reciprocal_##s, T, 1 / a)                                                              \
    COMPLEX(rsqrt_##s, T, 1 / csqrt##f(a))                                                         \
    COMPLEX(sigmoid_##s, T, 1 / (1 + cexp##f(-a)))                                                 \
    COMPLEX(log2_##s, T, clog##f(a) * (R)1.44269504088896340736)                                   \
    COMPLEX(log10_##s, T, clog##f(a) * (R)0.43429448190325182765)                                  \
    COMPLEX(sin_##s, T, csin##f(a))                                                                \
    COMPLEX(cos_##s, T, ccos##f(a))                                                                \
    COMPLEX(tan_##s, T, ctan##f(a))                                                                \
    COMPLEX(asin_##s, T, casin##f(a))                                                              \
    COMPLEX(acos_##s, T, cacos##f(a))                                                              \
    COMPLEX(atan_##s, T, catan##f(a))                                                              \
    COMPLEX(sinh_##s, T, csinh##f(a))                                                              \
    COMPLEX(cosh_##s, T, ccosh##f(a))                                                              \
    COMPLEX(tanh_##s, T, ctanh##f(a))
#define COMPLEX_COMPARE(name, T, expr)                                                             \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *param)                                              \
    {                                                                                              \
        (void)param;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a, b;                                                                                \
            memcpy(&a, ap + i * sa, sizeof a);                                                     \
            memcpy(&b, bp + i * sb, sizeof b);                                                     \
            *(uint8_t *)(yp + i * sy) = (uint8_t)(expr);                                           \
        }                                                                                          \
    }
COMPLEX_COMPARE(eq_c64, float complex, a == b)
COMPLEX_COMPARE(ne_c64, float complex, a != b)
COMPLEX_COMPARE(eq_c128, double complex, a == b)
COMPLEX_COMPARE(ne_c128, double complex, a != b)
COMPLEX_LOOPS(float complex, float, c64, f)
COMPLEX_LOOPS(double complex, double, c128, )

#define PAIR(name)                                                                                 \
    {                                                                                              \
        name##_c64, name##_c128                                                                    \
    }
tn__ew_loop *const tn__loops_complex[TN__EW_COUNT][2] = {
    [TN__ADD] = PAIR(add),
    [TN__SUB] = PAIR(sub),
    [TN__ADD_ALPHA] = PAIR(add_alpha),
    [TN__MUL] = PAIR(mul),
    [TN__DIV] = PAIR(div),
    [TN__ADD_SCALAR] = PAIR(add_scalar),
    [TN__MUL_SCALAR] = PAIR(mul_scalar),
    [TN__NEG] = PAIR(neg),
    [TN__EQ] = PAIR(eq),
    [TN__NE] = PAIR(ne),
    [TN__CONJ] = PAIR(conj),
    [TN__EXP] = PAIR(exp),
    [TN__LOG] = PAIR(log),
    [TN__SQRT] = PAIR(sqrt),
    [TN__SQUARE] = PAIR(square),
    [TN__RECIPROCAL] = PAIR(reciprocal),
    [TN__RSQRT] = PAIR(rsqrt),
    [TN__SIGMOID] = PAIR(sigmoid),
    [TN__LOG2] = PAIR(log2),
    [TN__LOG10] = PAIR(log10),
    [TN__SIN] = PAIR(sin),
    [TN__COS] = PAIR(cos),
    [TN__TAN] = PAIR(tan),
    [TN__ASIN] = PAIR(asin),
    [TN__ACOS] = PAIR(acos),
    [TN__ATAN] = PAIR(atan),
    [TN__SINH] = PAIR(sinh),
    [TN__COSH] = PAIR(cosh),
    [TN__TANH] = PAIR(tanh),
};

static inline tn__ew_loop *find_loop(enum tn__ew op, enum tn__ct ct)
{
    if (ct > TN__I64)
        return tn__loops_complex[op][ct - TN__C64];
    return tn__loop_of(op, ct);
}

/* ---- any layout and type --------------------------------------------------------------------- */

struct job {
    struct tn__span span;
    tn__ew_loop *loop;
    const double *numbers;
    int64_t size;      /* of a number of the compute type */
    tn__load *load[2]; /* NULL: the operand has the compute type */
    tn__store *store;  /* the same for the result */
    int32_t inputs;
};

static void direct(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    int b = job->inputs > 1 ? 2 : 1;
    job->loop(n, at[0], stride[0], at[1], stride[1], at[b], stride[b], job->numbers);
}

/* Through buffers: what has another type than the numbers are worked on in. */
static void converted(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    _Alignas(64) char in[2][TN__CHUNK * TN__CT_MAX_SIZE], out[TN__CHUNK * TN__CT_MAX_SIZE];
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        const char *from[2] = { NULL, NULL };
        int64_t step[2] = { 0, 0 };
        for (int32_t k = 0; k < job->inputs; k++) {
            from[k] = at[k + 1] + done * stride[k + 1];
            step[k] = stride[k + 1];
            if (job->load[k]) {
                job->load[k](step[k] ? count : 1, from[k], step[k], in[k]);
                from[k] = in[k];
                step[k] = step[k] ? job->size : 0;
            }
        }
        if (job->inputs == 1)
            from[1] = from[0], step[1] = step[0];
        char *to = at[0] + done * stride[0];
        job->loop(count, job->store ? out : to, job->store ? job->size : stride[0], from[0],
                  step[0], from[1], step[1], job->numbers);
        if (job->store)
            job->store(count, out, to, stride[0]);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end,
                  job->load[0] || job->load[1] || job->store ? converted : direct, job);
    return TN_OK;
}

/* For narrow floats that lie in a row or stand still: without a buffer, where there is such a loop. */
static tn__ew_loop *narrow_loop(const tn_call *call, enum tn__ew op, const struct tn__span *span)
{
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    int narrow = tn__narrow_of(dtype);
    for (int32_t k = 1; k < span->operands; k++)
        narrow = tn_view_dtype(call->in[k - 1]) == dtype ? narrow : -1;
    return narrow >= 0 && tn__narrow_lies(span) ? tn__narrow->ew[op][narrow] : NULL;
}

static TN_ATTR(noinline) tn_status
    run_any(const tn_call *call, enum tn__ew op, int32_t inputs, const double *numbers)
{
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    /* Comparisons are worked on in the inputs' type. All others in the result's, such as a sum of
     * integers and a number that is not whole (add_scalar). */
    bool compares = op >= TN__EQ && op <= TN__GE;
    enum tn__ct ct = tn__ct_of(compares ? tn_view_dtype(call->in[0]) : dtype);
    struct job job = { .loop = find_loop(op, ct),
                       .numbers = numbers,
                       .inputs = inputs,
                       .size = (int64_t)tn__ct_size(ct) };
    if (!job.loop)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: the CPU backend has no code for %s", call->op,
                       tn_dtype_name(dtype));
    const tn_view *views[3] = { call->out[0], call->in[0], inputs > 1 ? call->in[1] : NULL };
    tn__span_make(&job.span, inputs + 1, views, false);
    tn__ew_loop *as_they_lie = compares ? NULL : narrow_loop(call, op, &job.span);
    if (as_they_lie)
        job.loop = as_they_lie;
    if (!compares && !as_they_lie && dtype != tn__ct_dtype(ct))
        job.store = tn__convert_store(ct, dtype);
    for (int32_t k = 0; k < inputs; k++) {
        tn_dtype from = tn_view_dtype(call->in[k]);
        if (!as_they_lie && from != tn__ct_dtype(ct))
            job.load[k] = tn__convert_load(from, ct);
    }
    int64_t grain = op >= TN__EXP ? GRAIN_COSTLY : GRAIN_CHEAP;
    if (job.span.count <= grain)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, grain / 2, part, &job);
}

/* ---- the frequent case: float32 or float64, one shape, no gaps ------------------------------- */

/* Number of elements when y, a and b have one shape, one type and one dense row-major layout; -1
 * otherwise. */
static inline int64_t same_dense(const tn_view *y, const tn_view *a, const tn_view *b)
{
    int32_t ndim = y->ndim;
    if (a->ndim != ndim || b->ndim != ndim || memcmp(&a->dtype, &y->dtype, 4) != 0 ||
        memcmp(&b->dtype, &y->dtype, 4) != 0)
        return -1;
    int64_t count = 1;
    for (int32_t i = ndim; i-- > 0;) {
        int64_t size = y->shape[i];
        if (a->shape[i] != size || b->shape[i] != size || y->strides[i] != count ||
            a->strides[i] != count || b->strides[i] != count)
            return -1;
        count *= size;
    }
    return count;
}

static inline tn_status run(const tn_call *call, enum tn__ew op, int32_t inputs,
                            const double *numbers)
{
    const tn_view *y = call->out[0], *a = call->in[0], *b = inputs > 1 ? call->in[1] : a;
    if (y->dtype.code == 2 && y->dtype.bits >= 32) {
        enum tn__ct ct = y->dtype.bits == 32 ? TN__F32 : TN__F64;
        int64_t count = same_dense(y, a, b), size = y->dtype.bits / 8;
        if (count >= 0 && count <= (op >= TN__EXP ? GRAIN_COSTLY : GRAIN_CHEAP)) {
            find_loop(op, ct)(count, tn__view_at(y), size, tn__view_at(a), size, tn__view_at(b),
                              size, numbers);
            return TN_OK;
        }
    }
    return run_any(call, op, inputs, numbers);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static const double no_numbers[3];

tn_status tn__elementwise(const tn_call *call)
{
    const struct tn__ew_row *row = call->kernel->data;
    double numbers[3] = { 0 };
    if (!row->fill)
        return run(call, row->op, row->inputs, no_numbers);
    row->fill(call->options, numbers);
    return run(call, row->op, row->inputs, numbers);
}

tn_status tn__elementwise_run(const tn_call *call, enum tn__ew op, int32_t inputs)
{
    return run(call, op, inputs, no_numbers);
}

tn_status tn__add(const tn_call *call)
{
    double alpha = ((const tn_add_options *)call->options)->alpha;
    if (tn_view_dtype(call->out[0]) == TN_BOOL)
        alpha = alpha != 0; /* as in PyTorch it has the result's type */
    const double numbers[3] = { alpha };
    return run(call, alpha == 1 ? TN__ADD : TN__ADD_ALPHA, 2, numbers);
}

tn_status tn__sub(const tn_call *call)
{
    double alpha = ((const tn_sub_options *)call->options)->alpha;
    const double numbers[3] = { -alpha };
    return run(call, alpha == 1 ? TN__SUB : TN__ADD_ALPHA, 2, numbers);
}

static void find_zero(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    bool *found = user;
    int64_t b;
    for (int64_t i = 0; i < n; i++) {
        memcpy(&b, at[0] + i * stride[0], sizeof b);
        *found |= b == 0;
    }
}

/* Whole numbers cannot be divided by zero. */
static tn_status check_divisor(const tn_call *call)
{
    const tn_view *b = call->in[1];
    tn_dtype dtype = tn_view_dtype(b);
    if (!(TN_MASK_INT & TN_BIT(dtype)))
        return TN_OK;
    struct tn__span span;
    bool found = false;
    tn__span_make(&span, 1, &b, false);
    if (dtype == TN_I64) {
        tn__span_walk(&span, 0, span.count, find_zero, &found);
    } else {
        tn__load *load = tn__convert_load(dtype, TN__I64);
        for (int64_t i = 0; i < span.count && !found; i++) {
            int64_t rest = i, number;
            const char *at = span.base[0];
            for (int32_t d = span.ndim; d-- > 0; rest /= span.shape[d])
                at += rest % span.shape[d] * span.stride[0][d];
            load(1, at, 0, &number);
            found = number == 0;
        }
    }
    return found
               ? tn_fail(TN_ERR_RUNTIME, "%s: ZeroDivisionError: b (%s) has a zero; expected none",
                         call->op, tn_dtype_name(dtype))
               : TN_OK;
}

tn_status tn__div(const tn_call *call)
{
    const char *mode = ((const tn_div_options *)call->options)->rounding_mode;
    if (!mode)
        return run(call, TN__DIV, 2, no_numbers);
    tn_status status = check_divisor(call);
    return status ? status
                  : run(call, mode[0] == 'f' ? TN__DIV_FLOOR : TN__DIV_TRUNC, 2, no_numbers);
}

tn_status tn__rest(const tn_call *call)
{
    tn_status status = check_divisor(call);
    return status ? status : tn__elementwise(call);
}

tn_status tn__bitwise_not(const tn_call *call)
{
    bool truth = tn_view_dtype(call->in[0]) == TN_BOOL;
    return run(call, truth ? TN__LOGICAL_NOT : TN__BITWISE_NOT, 1, no_numbers);
}

/* The real or imaginary parts of complex numbers as numbers of their own. */
static tn_view part_of(const tn_view *view, int which, int64_t *strides)
{
    tn_view part = *view;
    tn__view_as_floats(&part, view->dtype.bits / 2);
    part.byte_offset += (uint64_t)(which * (part.dtype.bits / 8));
    for (int32_t d = 0; d < view->ndim; d++)
        strides[d] = 2 * view->strides[d];
    part.strides = strides;
    return part;
}

tn_status tn__abs_complex(const tn_call *call)
{
    int64_t strides[2][TN_MAX_DIMS];
    tn_view re = part_of(call->in[0], 0, strides[0]), im = part_of(call->in[0], 1, strides[1]);
    const tn_view *in[2] = { &re, &im };
    tn_call parts = *call;
    parts.in = in;
    parts.n_in = 2;
    return run(&parts, TN__HYPOT, 2, no_numbers);
}

tn_status tn__complex(const tn_call *call)
{
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && !status; i++) {
        int64_t strides[TN_MAX_DIMS];
        tn_view to = part_of(call->out[0], i, strides);
        status = tn__copy_views(&to, call->in[i]);
    }
    return status;
}

tn_status tn__gelu(const tn_call *call)
{
    bool tanh = strcmp(((const tn_gelu_options *)call->options)->approximate, "tanh") == 0;
    return run(call, tanh ? TN__GELU_TANH : TN__GELU, 1, no_numbers);
}

tn_status tn__gelu_grad(const tn_call *call)
{
    bool tanh = strcmp(((const tn_gelu_grad_options *)call->options)->approximate, "tanh") == 0;
    return run(call, tanh ? TN__GELU_TANH_GRAD : TN__GELU_GRAD, 2, no_numbers);
}

tn_status tn__gate(const tn_call *call)
{
    return run(call, TN__GATE, 2, no_numbers);
}

/* The weight is one number or one for each place of dimension 1. */
tn_status tn__prelu(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS] = { 0 };
    tn_view weight = *call->in[1];
    const tn_view *in[2] = { x, &weight };
    tn_call aligned = *call;
    aligned.in = in;
    if (tn__view_count(&weight) != 1) {
        for (int32_t d = 0; d < x->ndim - 1; d++)
            shape[d] = 1;
        shape[0] = weight.shape[0];
        strides[0] = weight.strides[0];
        weight.ndim = x->ndim - 1;
    } else {
        weight.ndim = 0;
    }
    weight.shape = shape;
    weight.strides = strides;
    return run(&aligned, TN__PRELU, 2, no_numbers);
}

bool tn__pow_scalar_takes(const tn_call *call, char *reason, size_t size)
{
    if (((const tn_pow_scalar_options *)call->options)->exponent == 3)
        return true;
    tn_snprint(reason, size, "it is for the exponent 3");
    return false;
}

tn_status tn__pow_scalar(const tn_call *call)
{
    return run(call, TN__CUBE, 1, no_numbers);
}

/* The largest number of the dtype stands for an infinity where no other is given. */
tn_status tn__nan_to_num(const tn_call *call)
{
    const tn_nan_to_num_options *o = call->options;
    tn_dtype dtype = tn_view_dtype(call->out[0]);
    double most = dtype == TN_F16    ? 65504.0
                  : dtype == TN_BF16 ? 0x1.fep127
                  : dtype == TN_F64  ? 1.7976931348623157e308
                                     : 0x1.fffffep127;
    const double numbers[3] = { isnan(o->nan) ? 0 : o->nan, isnan(o->posinf) ? most : o->posinf,
                                isnan(o->neginf) ? -most : o->neginf };
    return run(call, TN__NAN_TO_NUM, 1, numbers);
}
