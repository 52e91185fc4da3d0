/* SPDX-License-Identifier: MIT
 *
 * A reduction: the kernels ITEM_NAME (a work item per output) and GROUP_NAME (a group per output
 * or piece of one). Elements of type X, read by LOAD_X, are joined in type T from START on;
 * results of type Y are stored by STORE_Y. Included by reduction.cl once per operator and step. */
KERNEL ITEM_NAME(GLOBAL Y *y, GLOBAL const X *x, const gpu_reduce p)
{
    i64 o = ITEM();
    if (o < p.outputs) {
        OUTPUT_BEGIN(p, o, py, base)
        T acc = START;
        for (i64 r = 0; r < p.length;) {
            i64 stop = r + BLOCK < p.length ? r + BLOCK : p.length;
            T block = START;
            for (; r < stop; r++) {
                i64 px = base;
                REDUCED(p, r, px)
                T v = (T)LOAD_X(x, px);
                block = JOIN(block, v);
            }
            acc = JOIN(acc, block);
        }
        STORE_Y(y, py, acc);
    }
}

GROUP_KERNEL GROUP_NAME(GLOBAL Y *y, GLOBAL const X *x, const gpu_reduce p)
{
    LOCAL T part[GROUP];
    PIECE(p, GROUP_ID(), o, first, last)
    OUTPUT_BEGIN(p, o, py, base)
    T acc = START;
    for (i64 r = first + LOCAL_ID(); r < last;) {
        T block = START;
        for (i32 n = 0; n < BLOCK && r < last; n++, r += GROUP) {
            i64 px = base;
            REDUCED(p, r, px)
            T v = (T)LOAD_X(x, px);
            block = JOIN(block, v);
        }
        acc = JOIN(acc, block);
    }
    part[LOCAL_ID()] = acc;
    BARRIER();
    for (i32 half_ = GROUP / 2; half_ > 0; half_ /= 2) {
        if (LOCAL_ID() < half_)
            part[LOCAL_ID()] = JOIN(part[LOCAL_ID()], part[LOCAL_ID() + half_]);
        BARRIER();
    }
    if (LOCAL_ID() == 0)
        STORE_Y(y, p.pieces > 1 ? p.offset_y + GROUP_ID() : py, part[0]);
}

#undef GROUP_NAME
#undef ITEM_NAME
#undef X
#undef LOAD_X
#undef Y
#undef STORE_Y
