/* SPDX-License-Identifier: MIT
 *
 * Elementwise operations on complex numbers of type T, whose parts have type REAL; <tgmath.h>
 * selects the functions for the type. */

typedef T NAME(formula)(T a, T b, REAL p);
static inline void NAME(loop)(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa,
                              const char *bp, int64_t sb, const double *param, NAME(formula) * of)
{
    for (int64_t i = 0; i < n; i++) {
        T a, b, y;
        memcpy(&a, ap + i * sa, sizeof a);
        memcpy(&b, bp + i * sb, sizeof b);
        y = of(a, b, (REAL)*param);
        memcpy(yp + i * sy, &y, sizeof y);
    }
}

/* Multiplies two complex numbers. C's operator * calls a function that treats infinities specially;
 * this is slower, and PyTorch does not do so either. */
static inline T NAME(product)(T a, T b)
{
    REAL x = creal(a), y = cimag(a), u = creal(b), v = cimag(b), parts[2];
    T z;
    parts[0] = x * u - y * v;
    parts[1] = x * v + y * u;
    memcpy(&z, parts, sizeof z);
    return z;
}

/* clang-format off */
LOOP(add, a + b)
LOOP(sub, a - b)
LOOP(add_alpha, a + p * b)
LOOP(mul, NAME(product)(a, b))
LOOP(div, a / b)
LOOP(add_scalar, a + p)
LOOP(mul_scalar, a * p)
LOOP(conj, conj(a))
LOOP(neg, -a)
LOOP(exp, exp(a))
LOOP(log, log(a))
LOOP(sqrt, sqrt(a))
LOOP(square, NAME(product)(a, a))
LOOP(reciprocal, 1 / a)
LOOP(rsqrt, 1 / sqrt(a))
LOOP(sigmoid, 1 / (1 + exp(-a)))
LOOP(log2, log(a) * (REAL)1.44269504088896340736)
LOOP(log10, log(a) * (REAL)0.43429448190325182765)
LOOP(sin, sin(a))
LOOP(cos, cos(a))
LOOP(tan, tan(a))
LOOP(asin, asin(a))
LOOP(acos, acos(a))
LOOP(atan, atan(a))
LOOP(sinh, sinh(a))
LOOP(cosh, cosh(a))
LOOP(tanh, tanh(a))
/* clang-format on */

static void NAME(eq)(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,
                     int64_t sb, const double *param)
{
    (void)param;
    for (int64_t i = 0; i < n; i++) {
        T a, b;
        memcpy(&a, ap + i * sa, sizeof a);
        memcpy(&b, bp + i * sb, sizeof b);
        *(uint8_t *)(yp + i * sy) = (uint8_t)(a == b);
    }
}

static void NAME(ne)(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,
                     int64_t sb, const double *param)
{
    NAME(eq)(n, yp, sy, ap, sa, bp, sb, param);
    for (int64_t i = 0; i < n; i++)
        *(uint8_t *)(yp + i * sy) ^= 1;
}

#undef REAL
