/* SPDX-License-Identifier: MIT
 *
 * Elementwise functions of one tensor. exp, log and sqrt have a kernel each. All other functions,
 * bitwise_not too, share the kernel "map", which takes the function as an argument (GPU_F_* of
 * layout.cl); so all work items take the same branch. */
#ifdef TN_REAL
#ifdef TN_FLOATING
UNARY(exp, exp(A_))
UNARY(log, log(A_))
UNARY(sqrt, sqrt(A_))

/* Starts with a rational approximation, one for |y| <= 0.7 and another for larger |y|, and improves
 * it with three steps of Newton's method. For larger |y| the steps use erfc, because erf loses
 * digits near 1. */
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
#endif

/* y = f(a), where f is one of GPU_F_* */
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
        default: break; /* of the other functions, integers have only rounding: v stays x */
        }
        STORE(y, py, v);
    }
}
#endif
