/* SPDX-License-Identifier: MIT
 *
 * The elementwise kernels of the reference: a table of functions on real numbers, integers and
 * complex numbers. */
#include "reference.h"

#include <math.h>
#include <string.h>

typedef long double real;

/* Values that the functions may read besides their operands. */
struct extra {
    real value, imaginary; /* the scalar option (alpha, value), which may be complex */
    real low, high;        /* limits of clamp; NAN: no limit */
    int rounding;          /* rounding_mode of div: 0 (none), 't' (trunc) or 'f' (floor) */
    bool single;           /* the operands are float32 or narrower */
};

static const real none = NAN;

/* ---- real ---- */

static real most_of(real a, real b)
{
    return isnan(a) || isnan(b) ? none : a > b ? a : b;
}

static real least_of(real a, real b)
{
    return isnan(a) || isnan(b) ? none : a < b ? a : b;
}

static real floor_mod(real a, real b)
{
    real r = fmodl(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Returns the floor of a quotient, computed from the remainder as in PyTorch, so that the result
 * agrees with the operator `remainder`. */
static real floor_quotient(real a, real b)
{
    real rest, q;

    if (b == 0)
        return a / b;
    rest = fmodl(a, b);
    q = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        q -= 1;
    if (q == 0)
        return copysignl(0, a / b);
    return q - floorl(q) > 0.5L ? floorl(q) + 1 : floorl(q);
}

/* Returns the inverse of erf: an approximate start value, then four iterations of Halley's method.
 * erfc is used for |y| of at least 0.5, where erf loses precision. */
static real inverse_erf(real y)
{
    real x, w;

    if (isnan(y) || fabsl(y) > 1)
        return none;
    if (fabsl(y) == 1)
        return copysignl(INFINITY, y);
    if (y == 0)
        return y;
    w = logl((1 - y) * (1 + y));
    x = 2 / (3.14159265358979323846264338327950288L * 0.147L) + w / 2;
    x = copysignl(sqrtl(sqrtl(x * x - w / 0.147L) - x), y);
    for (int i = 0; i < 4; i++) {
        real slope = 1.12837916709551257389615890312154517L * expl(-x * x);
        real off = (fabsl(y) < 0.5L ? erfl(x) - y
                    : y > 0         ? (1 - y) - erfcl(x)
                                    : erfcl(-x) - (1 + y)) /
                   slope;

        x -= off / (1 + x * off);
    }
    return x;
}

#define R1(name, expr)                                                                             \
    static real name##_r(real a, real b, const struct extra *e)                                    \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        (void)e;                                                                                   \
        return expr;                                                                               \
    }
#define R2(name, expr)                                                                             \
    static real name##_r(real a, real b, const struct extra *e)                                    \
    {                                                                                              \
        (void)e;                                                                                   \
        return expr;                                                                               \
    }
R1(relu, isnan(a) ? a : a > 0 ? a : 0)
R2(relu_grad, b <= 0 ? 0 : a)
R1(sigmoid, 1 / (1 + expl(-a)))
R2(add, a + e->value * b)
R2(sub, a - e->value * b)
R2(mul, a *b)
/* For rounding_mode "trunc", the quotient is computed in the precision of the operands: only then
 * does it jump at the same operands as in a kernel. */
static real div_r(real a, real b, const struct extra *e)
{
    if (e->rounding == 'f')
        return floor_quotient(a, b);
    if (e->rounding == 't')
        return truncl(e->single ? (real)(float)((float)a / (float)b)
                                : (real)((double)a / (double)b));
    return a / b;
}
R2(maximum, most_of(a, b))
R2(minimum, least_of(a, b))
R2(remainder, floor_mod(a, b))
R2(fmod, fmodl(a, b))
R2(pow, powl(a, b))
R2(atan2, atan2l(a, b))
R1(add_scalar, a + e->value)
R1(mul_scalar, a * e->value)
R1(neg, -a)
R1(exp, expl(a))
R1(log, logl(a))
R1(sqrt, sqrtl(a))
R1(abs, fabsl(a))
R1(sign, (a > 0) - (a < 0))
R1(floor, floorl(a))
R1(ceil, ceill(a))
R1(trunc, truncl(a))
R1(round, nearbyintl(a))
R1(expm1, expm1l(a))
R1(log1p, log1pl(a))
R1(log2, log2l(a))
R1(log10, log10l(a))
R1(sin, sinl(a))
R1(cos, cosl(a))
R1(tan, tanl(a))
R1(asin, asinl(a))
R1(acos, acosl(a))
R1(atan, atanl(a))
R1(sinh, sinhl(a))
R1(cosh, coshl(a))
R1(tanh, tanhl(a))
R1(erf, erfl(a))
R1(erfc, erfcl(a))
R1(erfinv, inverse_erf(a))
static real clamp_r(real a, real b, const struct extra *e)
{
    (void)b;
    if (isnan(a))
        return a;
    if (!isnan(e->low) && a < e->low)
        a = e->low;
    return !isnan(e->high) && a > e->high ? e->high : a;
}
R2(eq, a == b)
R2(lt, a < b)
R2(le, a <= b)
R1(fill, e->value)

/* ---- integers: overflow wraps around, as for unsigned integers in C ---- */

#define W2(name, expr)                                                                             \
    static int64_t name##_w(int64_t sa, int64_t sb, const struct extra *e)                         \
    {                                                                                              \
        uint64_t a = (uint64_t)sa, b = (uint64_t)sb;                                               \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        (void)e;                                                                                   \
        return (int64_t)(expr);                                                                    \
    }
W2(add, a + (uint64_t)reference_whole(e->value) * b)
W2(sub, a - (uint64_t)reference_whole(e->value) * b)
W2(mul, a *b)
W2(add_scalar, a + (uint64_t)reference_whole(e->value))
W2(mul_scalar, a *(uint64_t)reference_whole(e->value))
W2(neg, 0 - a)
W2(abs, sa < 0 ? 0 - a : a)
W2(bitwise_and, a &b)
W2(bitwise_or, a | b)
W2(bitwise_xor, a ^ b)
W2(bitwise_not, ~a)
static int64_t pow_w(int64_t a, int64_t b, const struct extra *e)
{
    uint64_t y = 1, x = (uint64_t)a;

    (void)e;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; b > 0; b >>= 1, x *= x)
        if (b & 1)
            y *= x;
    return (int64_t)y;
}

/* ---- complex ---- */

typedef long double complex imaginary;

/* Does what CMPLXL does, which not every compiler has. The expression re + im * I would turn
 * infinities into NaN. */
static imaginary of_parts(reference_number n)
{
    union {
        real part[2];
        imaginary whole;
    } u = { { n.re, n.im } };

    return u.whole;
}

#define C2(name, expr)                                                                             \
    static imaginary name##_c(imaginary a, imaginary b, const struct extra *e)                     \
    {                                                                                              \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        (void)e;                                                                                   \
        return expr;                                                                               \
    }
/* The scalar option as a complex number. The functions below use the real number if the imaginary
 * part is 0, because infinity times 0 would be NaN. */
#define VALUE of_parts((reference_number){ e->value, e->imaginary })
C2(add, e->imaginary == 0 ? a + e->value * b : a + VALUE * b)
C2(sub, e->imaginary == 0 ? a - e->value * b : a - VALUE * b)
C2(mul, a *b)
C2(div, a / b)
C2(pow, cpowl(a, b))
C2(add_scalar, a + VALUE)
C2(mul_scalar, e->imaginary == 0 ? a * e->value : a * VALUE)
C2(neg, -a)
C2(exp, cexpl(a))
C2(log, clogl(a))
C2(log10, clogl(a) / 2.302585092994045684017991454684364208L)
C2(log2, clogl(a) / 0.693147180559945309417232121458176568L)
C2(sqrt, csqrtl(a))
C2(abs, cabsl(a))
C2(sin, csinl(a))
C2(cos, ccosl(a))
C2(tan, ctanl(a))
C2(asin, casinl(a))
C2(acos, cacosl(a))
C2(atan, catanl(a))
C2(sinh, csinhl(a))
C2(cosh, ccoshl(a))
C2(tanh, ctanhl(a))
C2(sigmoid, 1 / (1 + cexpl(-a)))
C2(eq, creall(a) == creall(b) && cimagl(a) == cimagl(b))
C2(fill, VALUE)

/* ---- the table ---- */

static const struct rule {
    const char *op;
    real (*r)(real a, real b, const struct extra *e);
    int64_t (*w)(int64_t a, int64_t b, const struct extra *e);
    imaginary (*c)(imaginary a, imaginary b, const struct extra *e);
} rules[] = {
#define RULE(op, r, w, c) { #op, r, w, c },
    RULE(relu, relu_r, NULL, NULL) RULE(relu_grad, relu_grad_r, NULL, NULL)
        RULE(sigmoid, sigmoid_r, NULL, sigmoid_c) RULE(add, add_r, add_w, add_c) RULE(
            sub, sub_r, sub_w, sub_c) RULE(mul, mul_r, mul_w, mul_c) RULE(div, div_r, NULL, div_c)
            RULE(maximum, maximum_r, NULL, NULL) RULE(minimum, minimum_r, NULL, NULL) RULE(
                remainder, remainder_r, NULL, NULL) RULE(fmod, fmod_r, NULL, NULL)
                RULE(pow, pow_r, pow_w, pow_c) RULE(atan2, atan2_r, NULL, NULL) RULE(
                    add_scalar, add_scalar_r, add_scalar_w,
                    add_scalar_c) RULE(mul_scalar, mul_scalar_r, mul_scalar_w, mul_scalar_c)
                    RULE(neg, neg_r, neg_w, neg_c) RULE(exp, exp_r, NULL, exp_c)
                        RULE(log, log_r, NULL, log_c) RULE(sqrt, sqrt_r, NULL, sqrt_c) RULE(
                            abs, abs_r, abs_w, abs_c) RULE(sign, sign_r, NULL, NULL)
                            RULE(floor, floor_r, NULL, NULL) RULE(ceil, ceil_r, NULL, NULL)
                                RULE(trunc, trunc_r, NULL, NULL) RULE(round, round_r, NULL, NULL)
                                    RULE(expm1, expm1_r, NULL, NULL) RULE(
                                        log1p, log1p_r, NULL, NULL) RULE(log2, log2_r, NULL, log2_c)
                                        RULE(log10, log10_r, NULL, log10_c) RULE(
                                            sin, sin_r, NULL, sin_c) RULE(cos, cos_r, NULL, cos_c)
                                            RULE(tan, tan_r, NULL, tan_c) RULE(
                                                asin, asin_r, NULL, asin_c) RULE(acos, acos_r, NULL,
                                                                                 acos_c)
                                                RULE(atan, atan_r, NULL, atan_c) RULE(
                                                    sinh, sinh_r, NULL,
                                                    sinh_c) RULE(cosh, cosh_r, NULL, cosh_c)
                                                    RULE(tanh, tanh_r, NULL, tanh_c) RULE(
                                                        erf, erf_r, NULL,
                                                        NULL) RULE(erfc, erfc_r, NULL, NULL)
                                                        RULE(erfinv, erfinv_r, NULL,
                                                             NULL) RULE(clamp, clamp_r, NULL, NULL)
                                                            RULE(eq, eq_r, NULL, eq_c) RULE(
                                                                lt, lt_r, NULL,
                                                                NULL) RULE(le, le_r, NULL, NULL)
                                                                RULE(bitwise_and, NULL,
                                                                     bitwise_and_w, NULL)
                                                                    RULE(bitwise_or, NULL,
                                                                         bitwise_or_w, NULL)
                                                                        RULE(bitwise_xor, NULL,
                                                                             bitwise_xor_w, NULL)
                                                                            RULE(bitwise_not, NULL,
                                                                                 bitwise_not_w,
                                                                                 NULL)
                                                                                RULE(fill, fill_r,
                                                                                     NULL, fill_c)
#undef RULE
};

const char *const reference_elementwise_names[] = {
    "relu",        "relu_grad",  "sigmoid",    "add",         "sub",        "mul",
    "div",         "maximum",    "minimum",    "remainder",   "fmod",       "pow",
    "atan2",       "add_scalar", "mul_scalar", "neg",         "exp",        "log",
    "sqrt",        "abs",        "sign",       "floor",       "ceil",       "trunc",
    "round",       "expm1",      "log1p",      "log2",        "log10",      "sin",
    "cos",         "tan",        "asin",       "acos",        "atan",       "sinh",
    "cosh",        "tanh",       "erf",        "erfc",        "erfinv",     "clamp",
    "eq",          "lt",         "le",         "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_not", "fill",       NULL
};

/* Converts a scalar to long double; integers keep all 64 bits. */
static real number_of(tn_scalar scalar)
{
    return scalar.kind == TN_SCALAR_INT || scalar.kind == TN_SCALAR_BOOL ? (real)scalar.as.i
           : scalar.kind == TN_SCALAR_UINT                               ? (real)scalar.as.u
                                           : (real)tn_scalar_as_float(scalar);
}

static void take(struct extra *e, tn_scalar scalar)
{
    e->value = number_of(scalar);
    e->imaginary = tn_scalar_imag(scalar);
}

/* Collects the options of a call that the functions read. */
static struct extra extra_of(const tn_call *call)
{
    struct extra e = { 1, 0, none, none, 0, tn_dtype_size(call->dtype) <= 4 };
    const char *op = call->op;

    if (strcmp(op, "add") == 0) {
        take(&e, ((const tn_add_options *)call->options)->alpha);
    } else if (strcmp(op, "sub") == 0) {
        take(&e, ((const tn_sub_options *)call->options)->alpha);
    } else if (strcmp(op, "add_scalar") == 0) {
        take(&e, ((const tn_add_scalar_options *)call->options)->value);
    } else if (strcmp(op, "mul_scalar") == 0) {
        take(&e, ((const tn_mul_scalar_options *)call->options)->value);
    } else if (strcmp(op, "fill") == 0) {
        take(&e, ((const tn_fill_options *)call->options)->value);
    } else if (strcmp(op, "clamp") == 0) {
        e.low = number_of(((const tn_clamp_options *)call->options)->min);
        e.high = number_of(((const tn_clamp_options *)call->options)->max);
    } else if (strcmp(op, "div") == 0) {
        const char *mode = ((const tn_div_options *)call->options)->rounding_mode;

        e.rounding = mode != NULL ? mode[0] : 0;
    }
    return e;
}

/* Computes one element with the function for the input dtype. */
static reference_number one(const struct rule *rule, reference_number a, reference_number b,
                            tn_dtype in, const struct extra *e)
{
    reference_number y = { 0, 0 };

    if (reference_is_complex(in) && rule->c != NULL) {
        imaginary z = rule->c(of_parts(a), of_parts(b), e);

        y.re = creall(z);
        y.im = cimagl(z);
    } else if (!reference_is_float(in) && rule->w != NULL) {
        y.re = rule->w(reference_whole(a.re), reference_whole(b.re), e);
        if (in == TN_BOOL && rule->r == NULL)
            y.re = reference_whole(y.re) & 1;
    } else {
        y.re = rule->r(a.re, b.re, e);
    }
    return y;
}

tn_status reference_elementwise(const tn_call *call)
{
    const struct rule *rule = rules;
    struct extra e = extra_of(call);
    reference_row a, b = { NULL, 0, TN_BOOL };
    tn_status status;

    while (strcmp(rule->op, call->op) != 0)
        rule++;
    status = reference_load(call->in[0], call->out[0], &a);
    if (status == TN_OK && call->n_in > 1)
        status = reference_load(call->in[1], call->out[0], &b);
    if (status == TN_OK) {
        bool whole = !reference_is_float(a.dtype) && !reference_is_complex(a.dtype);

        if (a.dtype == TN_BOOL && rule->w == add_w) /* alpha is converted to bool, too */
            e.value = e.value != 0;

        if (rule->r == div_r && whole && e.rounding != 0)
            for (int64_t i = 0; i < b.count; i++)
                if (b.at[i].re == 0) {
                    status = tn_fail(TN_ERR_VALUE, "%s: divisor: it is 0; expected another integer",
                                     call->op);
                    break;
                }
        for (int64_t i = 0; i < a.count && status == TN_OK; i++)
            a.at[i] = one(rule, a.at[i], b.at != NULL ? b.at[i] : (reference_number){ 0, 0 },
                          a.dtype, &e);
        if (status == TN_OK)
            reference_store(call->out[0], a.at);
    }
    reference_drop(&a);
    reference_drop(&b);
    return status;
}
