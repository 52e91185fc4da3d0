/* SPDX-License-Identifier: MIT
 *
 * The kernels of one reduction: ITEM_NAME (one work item per output) and GROUP_NAME (one group per
 * output, or per piece of an output). Elements of type X are read with LOAD_X and combined with
 * JOIN in type T, beginning with START; results of type Y are stored with STORE_Y. reduction.cl
 * includes this file once per operator and step. */
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
