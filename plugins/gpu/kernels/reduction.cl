/* SPDX-License-Identifier: MIT
 *
 * Reductions. Many outputs with little each: a work item per output. Else a group per output, or, where outputs are few, per
 * piece of one, and a second call over the pieces. Who adds what depends on shapes alone, so results repeat to the bit. */
#ifdef TN_REAL

/* Place of output o_ in y and of its first element in x. */
#define KEPT(p, o_, py, px)                                                                        \
    i64 py = (p).offset_y, px = (p).offset_x;                                                      \
    {                                                                                              \
        i64 rest_ = (o_);                                                                          \
        SHORT_LOOP                                                                                 \
        for (i32 d_ = (p).kept - 1; d_ >= 0; d_--) {                                               \
            i64 q_ = rest_ / (p).shape[d_];                                                        \
            i64 r_ = rest_ - q_ * (p).shape[d_];                                                   \
            py += r_ * (p).stride_y[d_];                                                           \
            px += r_ * (p).stride_x[d_];                                                           \
            rest_ = q_;                                                                            \
        }                                                                                          \
    }

/* Place in x of element r_ of what goes. */
#define GONE(p, r_, px)                                                                            \
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

#define PIECE(p, g, o, first, last)                                                                \
    i64 o = (g) / (p).pieces;                                                                      \
    i64 first = ((g)-o * (p).pieces) * (p).piece;                                                  \
    i64 last = first + (p).piece < (p).length ? first + (p).piece : (p).length;

/* Elements that are joined one after the other, before that joins the rest: keeps the error of long sums small. */
#define BLOCK 64

/* A reduction of LOAD'ed elements into T: start, r = step(r, v), and how two partial ones join. */
#define REDUCTION(op, TX, LOADX, T, start, join, TY, STOREY)                                       \
    KERNEL TYPED(tn_##op##_item)(GLOBAL TY * y, GLOBAL const TX *x, const gpu_reduce p)            \
    {                                                                                              \
        i64 o = ITEM();                                                                            \
        if (o < p.outputs) {                                                                       \
            KEPT(p, o, py, base)                                                                   \
            T acc = start;                                                                         \
            for (i64 r = 0; r < p.length;) {                                                       \
                i64 stop = r + BLOCK < p.length ? r + BLOCK : p.length;                            \
                T block = start;                                                                   \
                for (; r < stop; r++) {                                                            \
                    i64 px = base;                                                                 \
                    GONE(p, r, px)                                                                 \
                    T v = (T)LOADX(x, px);                                                         \
                    block = join(block, v);                                                        \
                }                                                                                  \
                acc = join(acc, block);                                                            \
            }                                                                                      \
            STOREY(y, py, acc);                                                                    \
        }                                                                                          \
    }                                                                                              \
    GROUP_KERNEL TYPED(tn_##op)(GLOBAL TY * y, GLOBAL const TX *x, const gpu_reduce p)             \
    {                                                                                              \
        LOCAL T part[GROUP];                                                                       \
        PIECE(p, GROUP_ID(), o, first, last)                                                       \
        KEPT(p, o, py, base)                                                                       \
        T acc = start;                                                                             \
        for (i64 r = first + LOCAL_ID(); r < last;) {                                              \
            T block = start;                                                                       \
            for (i32 n = 0; n < BLOCK && r < last; n++, r += GROUP) {                              \
                i64 px = base;                                                                     \
                GONE(p, r, px)                                                                     \
                T v = (T)LOADX(x, px);                                                             \
                block = join(block, v);                                                            \
            }                                                                                      \
            acc = join(acc, block);                                                                \
        }                                                                                          \
        part[LOCAL_ID()] = acc;                                                                    \
        BARRIER();                                                                                 \
        for (i32 half_ = GROUP / 2; half_ > 0; half_ /= 2) {                                       \
            if (LOCAL_ID() < half_)                                                                \
                part[LOCAL_ID()] = join(part[LOCAL_ID()], part[LOCAL_ID() + half_]);               \
            BARRIER();                                                                             \
        }                                                                                          \
        if (LOCAL_ID() == 0)                                                                       \
            STOREY(y, p.pieces > 1 ? p.offset_y + GROUP_ID() : py, part[0]);                       \
    }

#undef STORE_PART
#define STORE_PART(p, i, v) ((p)[i] = (v))
#undef LOAD_PART
#define LOAD_PART(p, i) ((p)[i])
#define JOIN_SUM(a, b) ((a) + (b))
#define JOIN_PRODUCT(a, b) ((a) * (b))
#define JOIN_MIN(a, b) ((a) != (a) ? (a) : ((a) < (b) ? (a) : (b)))
#define JOIN_MAX(a, b) ((a) != (a) ? (a) : ((a) > (b) ? (a) : (b)))

/* sum: x to y. sum_part: x to partial sums. sum_last: partial sums to y. */
REDUCTION(sum, S, LOAD, A, 0, JOIN_SUM, SUM, STORE_SUM)
REDUCTION(sum_part, S, LOAD, A, 0, JOIN_SUM, A, STORE_PART)
REDUCTION(sum_last, A, LOAD_PART, A, 0, JOIN_SUM, SUM, STORE_SUM)
REDUCTION(prod, S, LOAD, A, 1, JOIN_PRODUCT, SUM, STORE_SUM)
REDUCTION(prod_part, S, LOAD, A, 1, JOIN_PRODUCT, A, STORE_PART)
REDUCTION(prod_last, A, LOAD_PART, A, 1, JOIN_PRODUCT, SUM, STORE_SUM)
/* the partial results of a maximum have the type of x */
REDUCTION(amin, S, LOAD, C, HIGHEST, JOIN_MIN, S, STORE)
REDUCTION(amax, S, LOAD, C, LOWEST, JOIN_MAX, S, STORE)

#if TN_TYPE != 0
/* Whether (v, i) goes before (w, j), which may be nothing: larger (smaller), NaN first, the first of equals. */
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
    KEPT(p, o, py, base)
    C value = LOWEST;
    i64 where = p.length;
    for (i64 r = LOCAL_ID(); r < p.length; r += GROUP) {
        i64 px = base;
        GONE(p, r, px)
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
        if (here < half_ && NAME(before)(best[there], at[there], best[here], at[here], p.length, smaller)) {
            best[here] = best[there];
            at[here] = at[there];
        }
        BARRIER();
    }
    if (LOCAL_ID() == 0)
        y[py] = at[0];
}
#endif
#undef REDUCTION
#endif
