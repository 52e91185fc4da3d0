/* SPDX-License-Identifier: MIT
 *
 * Arithmetic and functions of one or two elements. The common operators have a kernel each. The
 * others share three kernels that take the function as an argument (GPU_F_* of layout.cl); all
 * work items take the same branch. Bitwise operators are among these. */
#ifdef TN_REAL
BINARY(add, A_ + s * B_)
BINARY(mul, (A_ * B_))
/* a NaN on either side stays: it differs from itself */
BINARY(maximum, A_ != A_ ? A_ : (A_ > B_ ? A_ : B_))
#if TN_TYPE != 0
BINARY(sub, A_ - s * B_)
UNARY(add_scalar, A_ + s)
UNARY(mul_scalar, (A_ * s))
UNARY(neg, -A_)
#endif
#ifdef TN_FLOATING
BINARY(div, A_ / B_)
UNARY(exp, exp(A_))
UNARY(log, log(A_))
UNARY(sqrt, sqrt(A_))
#endif

#ifdef TN_FLOATING
/* A rational approximation for the middle and another one for the tails, then Newton's method.
 * The tails use erfc, which keeps the digits that erf loses near 1. */
DEVICE C NAME(erfinv)(C y)
{
    C size = fabs(y), rest = (C)1 - size, x;

    if (!(size < (C)1))
        return size == (C)1 ? y * (C)INFINITY : (y - y) / (y - y);
    if (size <= (C)0.7f) {
        C z = y * y;
        x = size *
            ((((C)-0.140543331f * z + (C)0.914624893f) * z - (C)1.645349621f) * z +
             (C)0.886226899f) /
            (((((C)0.012229801f * z - (C)0.329097515f) * z + (C)1.442710462f) * z -
              (C)2.118377725f) *
                 z +
             (C)1);
        SHORT_LOOP
        for (i32 step = 0; step < 3; step++)
            x -= (erf(x) - size) / ((C)1.1283791671f * exp(-x * x));
    } else {
        C z = sqrt(-log(rest / (C)2));
        x = ((((C)1.641345311f * z + (C)3.429567803f) * z - (C)1.624906493f) * z -
             (C)1.970840454f) /
            (((C)1.637067800f * z + (C)3.543889200f) * z + (C)1);
        SHORT_LOOP
        for (i32 step = 0; step < 3; step++)
            x += (erfc(x) - rest) / ((C)1.1283791671f * exp(-x * x));
    }
    return copysign(x, y);
}

/* The result has the sign of the divisor. */
DEVICE C NAME(remainder)(C a, C b)
{
    C rest = fmod(a, b);

    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

/* floor(a / b), computed from the remainder: a / b itself may be rounded up to an integer. */
DEVICE C NAME(floored)(C a, C b)
{
    C rest = fmod(a, b), quotient = (a - rest) / b, below;

    if (b == 0)
        return a / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        quotient -= (C)1;
    if (quotient == 0)
        return copysign((C)0, a / b);
    below = floor(quotient);
    return quotient - below > (C)0.5f ? below + (C)1 : below;
}
#else
/* b is not zero; the smallest integer divided by -1 wraps around */
DEVICE C NAME(quotient)(C a, C b)
{
    return b == -1 ? (C)(0 - a) : a / b;
}

DEVICE C NAME(rest)(C a, C b)
{
    return b == -1 ? 0 : a % b;
}

DEVICE C NAME(power)(C a, C b)
{
    u64 y = 1, x = (u64)(i64)a;

    if (b < 0)
        return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;
    for (; b > 0; b >>= 1, x *= x)
        y *= (b & 1) ? x : 1;
    return (C)(i64)y;
}
#endif

/* y = f(a) */
KERNEL NAME(map)(GLOBAL S *y, GLOBAL const S *a, const gpu_walk w, const i32 f)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK2(w, i, py, pa)
        C x = LOAD(a, pa), v = x;
        switch (f) {
        case GPU_F_SIGN: v = (C)(x > 0) - (C)(x < 0); break;
#ifdef TN_FLOATING
        case GPU_F_ABS: v = fabs(x); break;
        case GPU_F_FLOOR: v = floor(x); break;
        case GPU_F_CEIL: v = ceil(x); break;
        case GPU_F_TRUNC: v = trunc(x); break;
        case GPU_F_ROUND: v = rint(x); break;
        case GPU_F_EXPM1: v = expm1(x); break;
        case GPU_F_LOG1P: v = log1p(x); break;
        case GPU_F_LOG2: v = log2(x); break;
        case GPU_F_LOG10: v = log10(x); break;
        case GPU_F_SIN: v = sin(x); break;
        case GPU_F_COS: v = cos(x); break;
        case GPU_F_TAN: v = tan(x); break;
        case GPU_F_ASIN: v = asin(x); break;
        case GPU_F_ACOS: v = acos(x); break;
        case GPU_F_ATAN: v = atan(x); break;
        case GPU_F_SINH: v = sinh(x); break;
        case GPU_F_COSH: v = cosh(x); break;
        case GPU_F_TANH: v = tanh(x); break;
        case GPU_F_ERF: v = erf(x); break;
        case GPU_F_ERFC: v = erfc(x); break;
        case GPU_F_ERFINV: v = NAME(erfinv)(x); break;
#else
        case GPU_F_ABS: v = x < 0 ? 0 - x : x; break;
#if TN_TYPE == 0
        case GPU_F_NOT: v = !x; break;
#else
        case GPU_F_NOT: v = ~x; break;
#endif
#endif
        default: break; /* rounding does not change an integer */
        }
        STORE(y, py, v);
    }
}

/* y = f(a, b) */
KERNEL NAME(zip)(GLOBAL S *y, GLOBAL const S *a, GLOBAL const S *b, GLOBAL gpu_error *error,
                 const gpu_walk w, const i32 f)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK3(w, i, py, pa, pb)
        C p = LOAD(a, pa), q = LOAD(b, pb), v = p;
#ifdef TN_FLOATING
        switch (f) {
        case GPU_F_MINIMUM: v = p != p || p < q ? p : q; break;
        case GPU_F_REMAINDER: v = NAME(remainder)(p, q); break;
        case GPU_F_FMOD: v = fmod(p, q); break;
        case GPU_F_POW: v = pow(p, q); break;
        case GPU_F_ATAN2: v = atan2(p, q); break;
        case GPU_F_DIV_TRUNC: v = trunc(p / q); break;
        case GPU_F_DIV_FLOOR: v = NAME(floored)(p, q); break;
        default: break;
        }
#else
        C rest = 0;
        if (q == 0 && f >= GPU_F_DIVIDES) {
            if (TAKE(&error->taken)) {
                error->op = GPU_ERROR_DIVISION;
                error->place = i;
            }
            q = 1;
        }
        if (f >= GPU_F_DIVIDES)
            rest = NAME(rest)(p, q);
        switch (f) {
        case GPU_F_MINIMUM: v = p < q ? p : q; break;
        case GPU_F_POW: v = NAME(power)(p, q); break;
        case GPU_F_AND: v = p & q; break;
        case GPU_F_OR: v = p | q; break;
        case GPU_F_XOR: v = p ^ q; break;
        case GPU_F_FMOD: v = rest; break;
        case GPU_F_REMAINDER: v = rest != 0 && (rest < 0) != (q < 0) ? rest + q : rest; break;
        case GPU_F_DIV_TRUNC: v = NAME(quotient)(p, q); break;
        case GPU_F_DIV_FLOOR:
            v = NAME(quotient)(p, q) - (rest != 0 && (rest < 0) != (q < 0));
            break;
        default: break;
        }
#endif
        STORE(y, py, v);
    }
}

/* A bound that is NaN is ignored; where low > high the result is high. */
KERNEL NAME(clamp)(GLOBAL S *y, GLOBAL const S *a, const gpu_walk w, const C low, const C high)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK2(w, i, py, pa)
        C v = LOAD(a, pa);
        v = v < low ? low : v;
        v = v > high ? high : v;
        STORE(y, py, v);
    }
}
#endif
