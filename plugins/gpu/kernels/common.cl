/* SPDX-License-Identifier: MIT
 *
 * What several kernel texts use; independent of the element type. */

DEVICE float tn_from_bf16(u16 x)
{
    return BITS_FLOAT((u32)x << 16);
}

/* Nearest even; a NaN stays one. */
DEVICE u16 tn_to_bf16(float x)
{
    u32 bits = FLOAT_BITS(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (u16)((bits >> 16) | 0x40u);
    return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Quotient and rest of an index; 32-bit division is several times as fast on a GPU. */
#define QUOTIENT(a, b, small) ((small) ? (i64)((u32)(a) / (u32)(b)) : (a) / (b))

/* Places of element i_ of walk w for one, two, three operands. Macros: a pointer to a parameter would cost a copy. */
#define WALK1(w, i_, p0)                                                                           \
    i64 p0 = (w).offset[0];                                                                        \
    {                                                                                              \
        i64 rest_ = (i_);                                                                          \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (w).ndim - 1; d_ > 0; d_--) {                                                \
            i64 q_ = QUOTIENT(rest_, (w).shape[d_], (w).small);                                    \
            p0 += (rest_ - q_ * (w).shape[d_]) * (w).stride[0][d_];                                \
            rest_ = q_;                                                                            \
        }                                                                                          \
        p0 += rest_ * (w).stride[0][0];                                                            \
    }
#define WALK2(w, i_, p0, p1)                                                                       \
    i64 p0 = (w).offset[0], p1 = (w).offset[1];                                                    \
    {                                                                                              \
        i64 rest_ = (i_);                                                                          \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (w).ndim - 1; d_ > 0; d_--) {                                                \
            i64 q_ = QUOTIENT(rest_, (w).shape[d_], (w).small);                                    \
            i64 r_ = rest_ - q_ * (w).shape[d_];                                                   \
            p0 += r_ * (w).stride[0][d_];                                                          \
            p1 += r_ * (w).stride[1][d_];                                                          \
            rest_ = q_;                                                                            \
        }                                                                                          \
        p0 += rest_ * (w).stride[0][0];                                                            \
        p1 += rest_ * (w).stride[1][0];                                                            \
    }
#define WALK3(w, i_, p0, p1, p2)                                                                   \
    i64 p0 = (w).offset[0], p1 = (w).offset[1], p2 = (w).offset[2];                                \
    {                                                                                              \
        i64 rest_ = (i_);                                                                          \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (w).ndim - 1; d_ > 0; d_--) {                                                \
            i64 q_ = QUOTIENT(rest_, (w).shape[d_], (w).small);                                    \
            i64 r_ = rest_ - q_ * (w).shape[d_];                                                   \
            p0 += r_ * (w).stride[0][d_];                                                          \
            p1 += r_ * (w).stride[1][d_];                                                          \
            p2 += r_ * (w).stride[2][d_];                                                          \
            rest_ = q_;                                                                            \
        }                                                                                          \
        p0 += rest_ * (w).stride[0][0];                                                            \
        p1 += rest_ * (w).stride[1][0];                                                            \
        p2 += rest_ * (w).stride[2][0];                                                            \
    }
/* The place of the fourth operand alone. */
#define WALK_FOURTH(w, i_, p3)                                                                     \
    i64 p3 = (w).offset[3];                                                                        \
    {                                                                                              \
        i64 rest_ = (i_);                                                                          \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (w).ndim - 1; d_ > 0; d_--) {                                                \
            i64 q_ = QUOTIENT(rest_, (w).shape[d_], (w).small);                                    \
            p3 += (rest_ - q_ * (w).shape[d_]) * (w).stride[3][d_];                                \
            rest_ = q_;                                                                            \
        }                                                                                          \
        p3 += rest_ * (w).stride[3][0];                                                            \
    }

/* Remembers the first index t_ that was out of bounds. */
#define OUT_OF_BOUNDS(error, at, t_)                                                               \
    if (TAKE(&(error)->taken)) {                                                                   \
        (error)->op = (at).op;                                                                     \
        (error)->index = (t_);                                                                     \
        (error)->bound = (at).bound;                                                               \
        (error)->place = (at).dim;                                                                 \
    }

/* Where row `row` of operand k begins. */
#define ROW_BEGIN(p, row, k, at)                                                                   \
    i64 at = (p).offset[k];                                                                        \
    {                                                                                              \
        i64 rest_ = (row);                                                                         \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (p).ndim - 1; d_ >= 0; d_--) {                                               \
            i64 q_ = rest_ / (p).shape[d_];                                                        \
            at += (rest_ - q_ * (p).shape[d_]) * (p).stride[k][d_];                                \
            rest_ = q_;                                                                            \
        }                                                                                          \
    }

/* y = f(a, b), with what is to be computed from A_ and B_ */
#define BINARY(op, expression)                                                                     \
    KERNEL TYPED(tn_##op)(GLOBAL S * y, GLOBAL const S *a, GLOBAL const S *b, const gpu_walk w,    \
                          const C s)                                                               \
    {                                                                                              \
        i64 i = ITEM();                                                                            \
        if (i < w.count) {                                                                         \
            WALK3(w, i, py, pa, pb)                                                                \
            C A_ = LOAD(a, pa), B_ = LOAD(b, pb);                                                  \
            STORE(y, py, expression);                                                              \
        }                                                                                          \
    }

/* y = f(a) */
#define UNARY(op, expression)                                                                      \
    KERNEL TYPED(tn_##op)(GLOBAL S * y, GLOBAL const S *a, const gpu_walk w, const C s)            \
    {                                                                                              \
        i64 i = ITEM();                                                                            \
        if (i < w.count) {                                                                         \
            WALK2(w, i, py, pa)                                                                    \
            C A_ = LOAD(a, pa);                                                                    \
            STORE(y, py, expression);                                                              \
        }                                                                                          \
    }

/* 16 bytes, for kernels that move elements without looking at them. */
typedef struct tn_wide {
    u64 low, high;
} tn_wide;
