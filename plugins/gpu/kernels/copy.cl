/* SPDX-License-Identifier: MIT
 *
 * Copies with any strides. The kernel "copy" converts elements: it is compiled for the type of the
 * result and switches over the type of the source, so all work items take the same branch. From a
 * complex number to a real type it converts the real part; bool is false only if both parts are 0.
 * The kernel "move" copies bits. */
#if TN_TYPE != 11 || defined(TN_FP64)

/* V: the type to which a value is converted before it is stored. For narrow integers V is i64, so
 * that a float out of their range wraps in the same way on all devices. */
#undef V
#undef TO_V
#if TN_TYPE == 0
#define V i32
#define TO_V(v) ((v) != 0)
#elif defined(TN_FLOATING) || defined(TN_COMPLEX) || TN_TYPE == 14
#define V C
#define TO_V(v) ((C)(v))
#else
#define V i64
#define TO_V(v) ((i64)(v))
#endif

#undef FROM
#define FROM(number, type)                                                                         \
    case number: v = TO_V(((GLOBAL const type *)x)[px]); break;

KERNEL NAME(copy)(GLOBAL S *y, GLOBAL const void *x, const gpu_walk w, const i32 from)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK2(w, i, py, px)
        V v = 0;
#ifdef TN_COMPLEX
        V imaginary = 0;
#endif
        /* clang-format off */
        switch (from) {
        case 0: v = TO_V(((GLOBAL const u8 *)x)[px] != 0); break;
        FROM(1, u8)
        FROM(2, i8)
        FROM(3, i16)
        FROM(4, i32)
        FROM(5, i64)
        case 6: v = TO_V(F16_LOAD((GLOBAL const u16 *)x, px)); break;
        case 7: v = TO_V(tn_from_bf16(((GLOBAL const u16 *)x)[px])); break;
        FROM(8, float)
        FROM(12, u16)
        FROM(13, u32)
        FROM(14, u64)
        case 10:
            v = TO_V(((GLOBAL const float *)x)[2 * px]);
#ifdef TN_COMPLEX
            imaginary = TO_V(((GLOBAL const float *)x)[2 * px + 1]);
#elif TN_TYPE == 0
            v = v || TO_V(((GLOBAL const float *)x)[2 * px + 1]);
#endif
            break;
#ifdef TN_FP64
        FROM(9, double)
        case 11:
            v = TO_V(((GLOBAL const double *)x)[2 * px]);
#ifdef TN_COMPLEX
            imaginary = TO_V(((GLOBAL const double *)x)[2 * px + 1]);
#elif TN_TYPE == 0
            v = v || TO_V(((GLOBAL const double *)x)[2 * px + 1]);
#endif
            break;
#endif
        default: break;
        }
        /* clang-format on */
#ifdef TN_COMPLEX
        y[2 * py] = v;
        y[2 * py + 1] = imaginary;
#else
        STORE(y, py, v);
#endif
    }
}
#endif

#ifdef BITS
KERNEL NAME(move)(GLOBAL BITS *y, GLOBAL const BITS *x, const gpu_walk w)
{
    i64 i = ITEM();
    if (i < w.count) {
        WALK2(w, i, py, px)
        y[py] = x[px];
    }
}
#endif
