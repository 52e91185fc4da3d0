/* SPDX-License-Identifier: MIT
 *
 * Functions and macros for several kernel texts; they do not depend on the dtype. */

DEVICE float tn_from_bf16(u16 x)
{
    return BITS_FLOAT((u32)x << 16);
}

/* Rounds to nearest, ties to even; a NaN stays a NaN. */
DEVICE u16 tn_to_bf16(float x)
{
    u32 bits = FLOAT_BITS(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (u16)((bits >> 16) | 0x40u);
    return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* a / b. If `small` is true, both fit into 32 bits; a 32-bit division is several times as fast as
 * a 64-bit division on a GPU. */
#define QUOTIENT(a, b, small) ((small) ? (i64)((u32)(a) / (u32)(b)) : (a) / (b))

/* The loops below split the number of an element into its index r_ in each dimension d_, and do
 * `step` for each dimension; the step adds r_ times a stride to offsets. They are macros and not
 * functions, because passing a pointer to a kernel parameter would copy the parameter. */

/* Does `step` for each dimension of the gpu_walk w, last dimension first, for element number i_. */
#define WALK(w, i_, step)                                                                          \
    {                                                                                              \
        i64 rest_ = (i_), q_;                                                                      \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (w).ndim - 1; d_ > 0; d_--, rest_ = q_) {                                    \
            q_ = QUOTIENT(rest_, (w).shape[d_], (w).small);                                        \
            i64 r_ = rest_ - q_ * (w).shape[d_];                                                   \
            step                                                                                   \
        }                                                                                          \
        { const i64 r_ = rest_; const i32 d_ = 0; step }                                           \
    }
#define WALK1(w, i_, p0)                                                                           \
    i64 p0 = (w).offset[0];                                                                        \
    WALK(w, i_, p0 += r_ * (w).stride[0][d_];)
#define WALK2(w, i_, p0, p1)                                                                       \
    i64 p0 = (w).offset[0], p1 = (w).offset[1];                                                    \
    WALK(w, i_, p0 += r_ * (w).stride[0][d_]; p1 += r_ * (w).stride[1][d_];)
#define WALK3(w, i_, p0, p1, p2)                                                                   \
    i64 p0 = (w).offset[0], p1 = (w).offset[1], p2 = (w).offset[2];                                \
    WALK(w, i_, p0 += r_ * (w).stride[0][d_]; p1 += r_ * (w).stride[1][d_];                        \
                p2 += r_ * (w).stride[2][d_];)
/* Declares the offset of the fourth operand of a gpu_walk4. */
#define WALK_FOURTH(w, i_, p3)                                                                     \
    i64 p3 = (w).offset[3];                                                                        \
    WALK(w, i_, p3 += r_ * (w).stride[3][d_];)

/* Does `step` for each of the first `dims` dimensions of p, last dimension first, for element
 * number i_ of these dimensions. */
#define EACH_DIM(p, dims, i_, step)                                                                \
    {                                                                                              \
        i64 rest_ = (i_), q_;                                                                      \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (dims) - 1; d_ >= 0; d_--, rest_ = q_) {                                     \
            q_ = rest_ / (p).shape[d_];                                                            \
            i64 r_ = rest_ - q_ * (p).shape[d_];                                                   \
            step                                                                                   \
        }                                                                                          \
    }
/* Declares `at`, the offset of row number `row` of operand k. */
#define ROW_BEGIN(p, row, k, at)                                                                   \
    i64 at = (p).offset[k];                                                                        \
    EACH_DIM(p, (p).ndim, row, at += r_ * (p).stride[k][d_];)
/* Declares the offsets of row number `row` of three operands. */
#define ROW_BEGIN3(p, row, p0, p1, p2)                                                             \
    i64 p0 = (p).offset[0], p1 = (p).offset[1], p2 = (p).offset[2];                                \
    EACH_DIM(p, (p).ndim, row, p0 += r_ * (p).stride[0][d_]; p1 += r_ * (p).stride[1][d_];         \
                               p2 += r_ * (p).stride[2][d_];)

/* Records an error: index t_ is out of bounds of the gpu_index `at`. Does nothing if an error is
 * already recorded. */
#define OUT_OF_BOUNDS(error, at, t_)                                                               \
    if (TAKE(&(error)->taken)) {                                                                   \
        (error)->op = (at).op;                                                                     \
        (error)->index = (t_);                                                                     \
        (error)->bound = (at).bound;                                                               \
        (error)->place = (at).dim;                                                                 \
    }

/* Defines an elementwise kernel y = f(a, b). The expression finds the elements in A_ and B_, and a
 * number from the host in s. */
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

/* Defines an elementwise kernel y = f(a). The expression finds the element in A_, and a number from
 * the host in s. */
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

/* An element of 16 bytes, for kernels that move elements without using their values. */
typedef struct tn_wide {
    u64 low, high;
} tn_wide;
