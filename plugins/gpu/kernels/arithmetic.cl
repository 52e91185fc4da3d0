/* SPDX-License-Identifier: MIT
 *
 * Elementwise arithmetic on two tensors, or on a tensor and a number. The common operators have a
 * kernel each. Less common ones and the bitwise operators share the kernel "zip", which takes the
 * function as an argument (GPU_F_* of layout.cl); so all work items take the same branch. */
#ifdef TN_REAL
BINARY(add, A_ + s * B_)
BINARY(mul, (A_ * B_))
/* If either operand is NaN, the result is NaN. (A_ != A_ is true only for NaN.) */
BINARY(maximum, A_ != A_ ? A_ : (A_ > B_ ? A_ : B_))
#if TN_TYPE != 0
BINARY(sub, A_ - s * B_)
UNARY(add_scalar, A_ + s)
UNARY(mul_scalar, (A_ * s))
UNARY(neg, -A_)
#endif
#ifdef TN_FLOATING
BINARY(div, A_ / B_)
#endif

#ifdef TN_FLOATING
/* The result has the sign of the divisor. */
DEVICE C NAME(remainder)(C a, C b)
{
    C rest = fmod(a, b);

    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

/* floor(a / b), computed with the remainder, because a / b may be rounded up to an integer. */
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
/* Integer division; b must not be 0. b == -1 is a case of its own, so that the smallest integer
 * divided by -1 wraps around instead of overflowing. */
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

/* y = f(a, b), where f is one of GPU_F_* */
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

/* A bound that is NaN has no effect. If low > high, the result is high. */
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
