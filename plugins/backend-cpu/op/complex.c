/* SPDX-License-Identifier: MIT
 *
 * Complex numbers: their inner loops, which are compiled once, not for each instruction set, and
 * the operators complex, conj and abs. */
#include <string.h>
#include <tgmath.h>

#include "op/copy.h"
#include "op/elementwise.h"
#include "simd/simd.h"

#define LOOP(name, expr)                                                                           \
    static inline T NAME(name##_formula)(T a, T b, REAL p)                                         \
    {                                                                                              \
        return (void)b, (void)p, (T)(expr);                                                        \
    }                                                                                              \
    static void NAME(name)(int64_t n, char *y, int64_t sy, const char *a, int64_t sa,              \
                           const char *b, int64_t sb, const double *param)                         \
    {                                                                                              \
        NAME(loop)(n, y, sy, a, sa, b, sb, param, NAME(name##_formula));                           \
    }
#define T float complex
#define NAME(x) x##_c64
#define REAL float
#include "op/complex_template.h"
#undef T
#undef NAME
#define T double complex
#define NAME(x) x##_c128
#define REAL double
#include "op/complex_template.h"
#undef T
#undef NAME

#define PAIR(name)                                                                                 \
    {                                                                                              \
        name##_c64, name##_c128                                                                    \
    }
tn__ew_loop *const tn__complex_loops[TN__EW_COUNT][2] = {
    [TN__EW_add] = PAIR(add),
    [TN__EW_sub] = PAIR(sub),
    [TN__EW_add_alpha] = PAIR(add_alpha),
    [TN__EW_mul] = PAIR(mul),
    [TN__EW_div] = PAIR(div),
    [TN__EW_add_scalar] = PAIR(add_scalar),
    [TN__EW_mul_scalar] = PAIR(mul_scalar),
    [TN__EW_neg] = PAIR(neg),
    [TN__EW_eq] = PAIR(eq),
    [TN__EW_ne] = PAIR(ne),
    [TN__EW_conj] = PAIR(conj),
    [TN__EW_exp] = PAIR(exp),
    [TN__EW_log] = PAIR(log),
    [TN__EW_sqrt] = PAIR(sqrt),
    [TN__EW_square] = PAIR(square),
    [TN__EW_reciprocal] = PAIR(reciprocal),
    [TN__EW_rsqrt] = PAIR(rsqrt),
    [TN__EW_sigmoid] = PAIR(sigmoid),
    [TN__EW_log2] = PAIR(log2),
    [TN__EW_log10] = PAIR(log10),
    [TN__EW_sin] = PAIR(sin),
    [TN__EW_cos] = PAIR(cos),
    [TN__EW_tan] = PAIR(tan),
    [TN__EW_asin] = PAIR(asin),
    [TN__EW_acos] = PAIR(acos),
    [TN__EW_atan] = PAIR(atan),
    [TN__EW_sinh] = PAIR(sinh),
    [TN__EW_cosh] = PAIR(cosh),
    [TN__EW_tanh] = PAIR(tanh),
};

/* ---- kernels --------------------------------------------------------------------------------- */

/* Returns a view of the real parts (which = 0) or imaginary parts (1) of a complex view. `strides`
 * is memory for its strides. */
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
    return tn__elementwise_run(&parts, TN__EW_hypot, 2, NULL);
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

static const tn_kernel_def kernels[] = {
    TN_KERNEL("abs", "cpu", "tn_abs_complex", TN_MASK_COMPLEX, run_abs_complex),
    TN__KERNEL(complex, TN__FLOATS),
    TN__UNARY_KERNEL(conj, TN_MASK_COMPLEX, TN__EW_conj),
};
TN__KERNEL_TABLE(complex);
