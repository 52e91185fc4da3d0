/* SPDX-License-Identifier: MIT
 *
 * Reductions. The host (plugins/gpu/reduction.c) chooses one of three ways. If outputs have few
 * elements each, or there are thousands of outputs, one work item computes an output. If there are
 * few outputs of many elements, each output is divided into pieces, one group reduces one piece,
 * and a second kernel reduces the results of the pieces. Otherwise one group computes an output.
 * The order of operations depends only on shapes, so repeated runs give the same bits. */
#ifdef TN_REAL

/* Declares py, the offset in y of output element number o_, and px, the offset in x of the first of
 * the elements that are reduced into this output. */
#define OUTPUT_BEGIN(p, o_, py, px)                                                                \
    i64 py = (p).offset_y, px = (p).offset_x;                                                      \
    EACH_DIM(p, (p).kept, o_, py += r_ * (p).stride_y[d_]; px += r_ * (p).stride_x[d_];)

/* Adds to px the offset in x of element number r_, counted within the reduced dimensions. */
#define REDUCED(p, r_, px)                                                                         \
    {                                                                                              \
        i64 rest_ = (r_);                                                                          \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (p).ndim - 1; d_ > (p).kept; d_--) {                                         \
            i64 q_ = rest_ / (p).shape[d_];                                                        \
            px += (rest_ - q_ * (p).shape[d_]) * (p).stride_x[d_];                                 \
            rest_ = q_;                                                                            \
        }                                                                                          \
        px += rest_ * (p).stride_x[(p).kept];                                                      \
    }

/* Declares o, the output of which group g reduces a piece, and the range first to last - 1 of that
 * piece. */
#define PIECE(p, g, o, first, last)                                                                \
    i64 o = (g) / (p).pieces;                                                                      \
    i64 first = ((g)-o * (p).pieces) * (p).piece;                                                  \
    i64 last = first + (p).piece < (p).length ? first + (p).piece : (p).length;

/* Number of elements that are added up before their sum is added to the total. This keeps the
 * rounding error of long sums small. */
#define BLOCK 64

/* Partial results of sums and products are stored in type A, without conversion. */
#undef STORE_PART
#define STORE_PART(p, i, v) ((p)[i] = (v))
#undef LOAD_PART
#define LOAD_PART(p, i) ((p)[i])
#define JOIN_SUM(a, b) ((a) + (b))
#define JOIN_PRODUCT(a, b) ((a) * (b))
#define JOIN_MIN(a, b) ((a) != (a) ? (a) : ((a) < (b) ? (a) : (b)))
#define JOIN_MAX(a, b) ((a) != (a) ? (a) : ((a) > (b) ? (a) : (b)))

/* sum: from x to y. sum_part: from x to partial sums. sum_last: from partial sums to y. */
#define T A
#define START 0
#define JOIN JOIN_SUM
#define GROUP_NAME NAME(sum)
#define ITEM_NAME NAME(sum_item)
#define X S
#define LOAD_X LOAD
#define Y SUM
#define STORE_Y STORE_SUM
#include "reduction_template.cl"

#define GROUP_NAME NAME(sum_part)
#define ITEM_NAME NAME(sum_part_item)
#define X S
#define LOAD_X LOAD
#define Y A
#define STORE_Y STORE_PART
#include "reduction_template.cl"

#define GROUP_NAME NAME(sum_last)
#define ITEM_NAME NAME(sum_last_item)
#define X A
#define LOAD_X LOAD_PART
#define Y SUM
#define STORE_Y STORE_SUM
#include "reduction_template.cl"
#undef T
#undef START
#undef JOIN

/* prod, prod_part and prod_last: like the three kernels of sum */
#define T A
#define START 1
#define JOIN JOIN_PRODUCT
#define GROUP_NAME NAME(prod)
#define ITEM_NAME NAME(prod_item)
#define X S
#define LOAD_X LOAD
#define Y SUM
#define STORE_Y STORE_SUM
#include "reduction_template.cl"

#define GROUP_NAME NAME(prod_part)
#define ITEM_NAME NAME(prod_part_item)
#define X S
#define LOAD_X LOAD
#define Y A
#define STORE_Y STORE_PART
#include "reduction_template.cl"

#define GROUP_NAME NAME(prod_last)
#define ITEM_NAME NAME(prod_last_item)
#define X A
#define LOAD_X LOAD_PART
#define Y SUM
#define STORE_Y STORE_SUM
#include "reduction_template.cl"
#undef T
#undef START
#undef JOIN

/* amin; partial results have the type of x, so one kernel serves both passes */
#define T C
#define START HIGHEST
#define JOIN JOIN_MIN
#define GROUP_NAME NAME(amin)
#define ITEM_NAME NAME(amin_item)
#define X S
#define LOAD_X LOAD
#define Y S
#define STORE_Y STORE
#include "reduction_template.cl"
#undef T
#undef START
#undef JOIN

/* amax, like amin */
#define T C
#define START LOWEST
#define JOIN JOIN_MAX
#define GROUP_NAME NAME(amax)
#define ITEM_NAME NAME(amax_item)
#define X S
#define LOAD_X LOAD
#define Y S
#define STORE_Y STORE
#include "reduction_template.cl"
#undef T
#undef START
#undef JOIN

#if TN_TYPE != 0
/* Returns whether value v at index i is a better result of argmax (argmin if `smaller`) than value
 * w at index j. NaN is better than any number; of equal values the first is better. An index equal
 * to `nothing` means that there is no value. */
DEVICE i32 NAME(before)(C v, i64 i, C w, i64 j, i64 nothing, i32 smaller)
{
    if (i == nothing || j == nothing)
        return i != nothing;
    if (v != v)
        return w == w || i < j;
    if (w != w)
        return 0;
    return (smaller ? v < w : v > w) || (v == w && i < j);
}

GROUP_KERNEL NAME(argmax)(GLOBAL i64 *y, GLOBAL const S *x, const gpu_reduce p, const i32 smaller)
{
    LOCAL C best[GROUP];
    LOCAL i64 at[GROUP];
    i64 o = GROUP_ID();
    OUTPUT_BEGIN(p, o, py, base)
    C value = LOWEST;
    i64 where = p.length;
    for (i64 r = LOCAL_ID(); r < p.length; r += GROUP) {
        i64 px = base;
        REDUCED(p, r, px)
        C v = LOAD(x, px);
        if (NAME(before)(v, r, value, where, p.length, smaller)) {
            value = v;
            where = r;
        }
    }
    best[LOCAL_ID()] = value;
    at[LOCAL_ID()] = where;
    BARRIER();
    for (i32 half_ = GROUP / 2; half_ > 0; half_ /= 2) {
        i32 here = LOCAL_ID(), there = LOCAL_ID() + half_;
        if (here < half_ &&
            NAME(before)(best[there], at[there], best[here], at[here], p.length, smaller)) {
            best[here] = best[there];
            at[here] = at[there];
        }
        BARRIER();
    }
    if (LOCAL_ID() == 0)
        y[py] = at[0];
}
#endif
#endif
