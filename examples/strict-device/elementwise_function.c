/* SPDX-License-Identifier: MIT
 *
 * More elementwise kernels of the strict device: functions of one or two numbers, comparisons and
 * bitwise operators, which share one kernel and a table; then clamp, where and complex. float32 is
 * computed in double and rounded once. */
#include <math.h>

#include "strict.h"

/* ---- tables ---------------------------------------------------------------------------------- */

struct function {
    const char *op;
    double (*real)(double a, double b);     /* NULL: no floating numbers */
    int64_t (*whole)(int64_t a, int64_t b); /* NULL: no integers */
};

#define REAL(name, expr)                                                                           \
    static double name##_real(double a, double b)                                                  \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return expr;                                                                               \
    }
#define WHOLE(name, expr)                                                                          \
    static int64_t name##_whole(int64_t a, int64_t b)                                              \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return (int64_t)(expr);                                                                    \
    }
#define BOTH(name, expr) REAL(name, expr) WHOLE(name, expr)

REAL(abs, fabs(a))
WHOLE(abs, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)
BOTH(sign, (a > 0) - (a < 0))
REAL(floor, floor(a))
REAL(ceil, ceil(a))
REAL(trunc, trunc(a))
REAL(round, nearbyint(a))
WHOLE(same, a)
REAL(expm1, expm1(a))
REAL(log1p, log1p(a))
REAL(log2, log2(a))
REAL(log10, log10(a))
REAL(sin, sin(a))
REAL(cos, cos(a))
REAL(tan, tan(a))
REAL(asin, asin(a))
REAL(acos, acos(a))
REAL(atan, atan(a))
REAL(sinh, sinh(a))
REAL(cosh, cosh(a))
REAL(tanh, tanh(a))
REAL(erf, erf(a))
REAL(erfc, erfc(a))
REAL(pow, pow(a, b))
REAL(atan2, atan2(a, b))
REAL(fmod, fmod(a, b))
REAL(minimum, a != a || a < b ? a : b)
WHOLE(minimum, a < b ? a : b)
WHOLE(and, a &b)
WHOLE(or, a | b)
WHOLE(xor, a ^ b)
WHOLE(not, ~a)
WHOLE(other, !a)
BOTH(eq, a == b)
BOTH(lt, a < b)
BOTH(le, a <= b)

/* Finds the inverse of erf by bisection. */
static double erfinv_real(double y, double unused)
{
    double low = 0, high = 6, size = fabs(y);
    (void)unused;
    if (!(size < 1))
        return size == 1 ? copysign(INFINITY, y) : NAN;
    for (int step = 0; step < 80; step++) {
        double middle = (low + high) / 2;
        bool below = size < 0.5 ? erf(middle) < size : erfc(middle) > 1 - size;
        if (below)
            low = middle;
        else
            high = middle;
    }
    return copysign((low + high) / 2, y);
}

static double remainder_real(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double div_trunc_real(double a, double b)
{
    return trunc(a / b);
}

/* Computes the quotient from the remainder, because a / b may be rounded up to an integer. */
static double div_floor_real(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (b == 0)
        return a / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    return quotient == 0 ? copysign(0, a / b) : nearbyint(quotient);
}

/* b is not 0, because function_body() checks it. b == -1 is handled apart, because INT64_MIN / -1
 * overflows; here it wraps around. */
static int64_t fmod_whole(int64_t a, int64_t b)
{
    return b == -1 ? 0 : a % b;
}
static int64_t remainder_whole(int64_t a, int64_t b)
{
    int64_t rest = fmod_whole(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static int64_t div_trunc_whole(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static int64_t div_floor_whole(int64_t a, int64_t b)
{
    return div_trunc_whole(a, b) - (fmod_whole(a, b) != remainder_whole(a, b));
}
static int64_t pow_whole(int64_t a, int64_t b)
{
    uint64_t y = 1;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (uint64_t x = (uint64_t)a; b > 0; b /= 2, x *= x)
        y *= b % 2 ? x : 1;
    return (int64_t)y;
}

#define R(name)                                                                                    \
    {                                                                                              \
#name, name##_real, NULL                                                                   \
    }
#define B(name)                                                                                    \
    {                                                                                              \
#name, name##_real, name##_whole                                                           \
    }
#define S(name)                                                                                    \
    {                                                                                              \
#name, name##_real, same_whole                                                             \
    }
#define W(name)                                                                                    \
    {                                                                                              \
        "bitwise_" #name, NULL, name##_whole                                                       \
    }
static const struct function functions[] = {
    B(abs),
    B(sign),
    S(floor),
    S(ceil),
    S(trunc),
    S(round),
    R(expm1),
    R(log1p),
    R(log2),
    R(log10),
    R(sin),
    R(cos),
    R(tan),
    R(asin),
    R(acos),
    R(atan),
    R(sinh),
    R(cosh),
    R(tanh),
    R(erf),
    R(erfc),
    R(erfinv),
    R(atan2),
    B(pow),
    B(fmod),
    B(eq),
    B(minimum),
    B(remainder),
    B(lt),
    B(div_trunc),
    B(div_floor),
    B(le),
    W(and),
    W(or),
    W(xor),
    W(not ),
    { "other_truth", NULL, other_whole },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static bool same_text(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (*a == '\0')
            return true;
    return false;
}

/* ---- the kernel of the table ----------------------------------------------------------------- */

/* The body of the shared kernel; whole[0] is the index in the table. Computes in the dtype of the
 * first input, which for comparisons is not that of the output. */
static tn_status function_body(struct strict_work *work)
{
    const struct function *function = &functions[work->whole[0]];
    const struct strict_view *y = &work->view[0], *a = &work->view[1],
                             *b = &work->view[work->n_in > 1 ? 2 : 1];
    bool divides = function->whole == div_trunc_whole || function->whole == div_floor_whole ||
                   function->whole == fmod_whole || function->whole == remainder_whole;
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do {
        int64_t at_y = strict_place(y, index, y->ndim), at_a = strict_place(a, index, y->ndim),
                at_b = strict_place(b, index, y->ndim);
        if (strict_is_float(a->dtype)) {
            double p = strict_get(work, a, at_a), q = strict_get(work, b, at_b);
            /* for float32, the quotient is rounded to float32 before it is truncated */
            if (a->dtype == TN_F32 && function->real == div_trunc_real)
                strict_set(work, y, at_y, truncf((float)p / (float)q));
            else
                strict_set(work, y, at_y, function->real(p, q));
            continue;
        }
        int64_t p = strict_get_int(work, a, at_a), q = strict_get_int(work, b, at_b);
        if (divides && q == 0)
            return tn_fail(TN_ERR_RUNTIME,
                           "%s: ZeroDivisionError: a whole number is divided by zero", work->op);
        strict_set_int(work, y, at_y, function->whole(p, q));
    } while (strict_step(index, y));
    return TN_OK;
}

static tn_status find(struct strict_work *work, const char *name)
{
    for (int64_t i = 0; i < FUNCTIONS; i++)
        if (same_text(functions[i].op, name)) {
            work->whole[0] = i;
            return TN_OK;
        }
    return tn_fail(TN_ERR_NOT_IMPLEMENTED, "strict: function %s: missing", name);
}

static tn_status fill_function(const tn_call *call, struct strict_work *work)
{
    bool truth = tn_view_dtype(call->in[0]) == TN_BOOL;
    return find(work, truth && same_text(call->kernel->op, "bitwise_not") ? "other_truth"
                                                                          : call->kernel->op);
}

STRICT_KERNEL(function)
{
    return strict_enqueue(call, function_body, fill_function);
}

static tn_status fill_rounded(const tn_call *call, struct strict_work *work)
{
    const char *mode = ((const tn_div_options *)call->options)->rounding_mode;
    return find(work, mode[0] == 'f' ? "div_floor" : "div_trunc");
}

STRICT_KERNEL(div_rounded)
{
    return strict_enqueue(call, function_body, fill_rounded);
}

/* ---- clamp, where ---------------------------------------------------------------------------- */

static tn_status clamp_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1];
    double low = work->real[0], high = work->real[1];
    int64_t least = low != low ? INT64_MIN : work->whole[0];
    int64_t most = high != high ? INT64_MAX : work->whole[1];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do {
        int64_t at_y = strict_place(y, index, y->ndim), at_x = strict_place(x, index, y->ndim);
        /* a bound that is NaN means no bound */
        if (strict_is_float(y->dtype)) {
            double v = strict_get(work, x, at_x);
            v = v < low ? low : v;
            strict_set(work, y, at_y, v > high ? high : v);
        } else {
            int64_t v = strict_get_int(work, x, at_x);
            v = v < least ? least : v;
            strict_set_int(work, y, at_y, v > most ? most : v);
        }
    } while (strict_step(index, y));
    return TN_OK;
}

static tn_status fill_clamp(const tn_call *call, struct strict_work *work)
{
    strict_number(call, work, 0, ((const tn_clamp_options *)call->options)->min);
    strict_number(call, work, 1, ((const tn_clamp_options *)call->options)->max);
    return TN_OK;
}

STRICT_KERNEL(clamp)
{
    return strict_enqueue(call, clamp_body, fill_clamp);
}

static tn_status where_body(struct strict_work *work)
{
    const struct strict_view *y = &work->view[0], *condition = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 };
    if (strict_count(y) == 0)
        return TN_OK;
    do {
        bool first = strict_get_int(work, condition, strict_place(condition, index, y->ndim)) != 0;
        const struct strict_view *from = &work->view[first ? 2 : 3];
        strict_copy_element(work, y, strict_place(y, index, y->ndim), from,
                            strict_place(from, index, y->ndim));
    } while (strict_step(index, y));
    return TN_OK;
}

STRICT_KERNEL(where)
{
    return strict_enqueue(call, where_body, NULL);
}

/* ---- complex: writes real and imaginary parts to y ------------------------------------------- */

static tn_status complex_body(struct strict_work *work)
{
    struct strict_view part = work->view[0];
    int64_t index[TN_MAX_DIMS] = { 0 };
    part.dtype = work->view[1].dtype;
    for (int32_t d = 0; d < part.ndim; d++)
        part.strides[d] *= 2;
    if (strict_count(&part) == 0)
        return TN_OK;
    do
        for (int k = 0; k < 2; k++) {
            const struct strict_view *from = &work->view[1 + k];
            strict_copy_element(work, &part, strict_place(&part, index, part.ndim) + k, from,
                                strict_place(from, index, part.ndim));
        }
    while (strict_step(index, &part));
    return TN_OK;
}

STRICT_KERNEL(complex)
{
    return strict_enqueue(call, complex_body, NULL);
}
