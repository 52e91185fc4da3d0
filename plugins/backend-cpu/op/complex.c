/* SPDX-License-Identifier: MIT
 *
 * Complex numbers: their inner loops, compiled once for all instruction sets, and the operators that
 * make them of real numbers. */
#include <complex.h>
#include <string.h>

#include "op/copy.h"
#include "op/elementwise.h"
#include "simd/simd.h"

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
tn__ew_loop *const tn__complex_loops[TN__EW_COUNT][2] = {
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

/* ---- kernels --------------------------------------------------------------------------------- */

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

static tn_status run_abs_complex(const tn_call *call)
{
    int64_t strides[2][TN_MAX_DIMS];
    tn_view re = part_of(call->in[0], 0, strides[0]), im = part_of(call->in[0], 1, strides[1]);
    const tn_view *in[2] = { &re, &im };
    tn_call parts = *call;
    parts.in = in;
    parts.n_in = 2;
    return tn__elementwise_run(&parts, TN__HYPOT, 2, NULL);
}

static tn_status run_complex(const tn_call *call)
{
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && !status; i++) {
        int64_t strides[TN_MAX_DIMS];
        tn_view to = part_of(call->out[0], i, strides);
        status = tn__copy_views(&to, call->in[i]);
    }
    return status;
}

static const tn_kernel kernels[] = {
    TN_KERNEL("abs", "cpu", "tn_abs_complex", TN_MASK_COMPLEX, run_abs_complex),
    TN__KERNEL(complex, TN__FLOATS),
    TN__UNARY_KERNEL(conj, TN_MASK_COMPLEX, TN__CONJ),
};
TN__KERNEL_TABLE(complex);
