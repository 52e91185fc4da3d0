/* SPDX-License-Identifier: MIT
 *
 * softmax, log_softmax and the derivative of log_softmax. One group computes one row. The largest
 * element of the row is subtracted first, so that e^x does not overflow. */
#ifdef TN_FLOATING

/* Combines the values of all work items of the group, part[], into part[0]. */
#undef JOIN_GROUP
#define JOIN_GROUP(part, join)                                                                     \
    BARRIER();                                                                                     \
    for (i32 half_ = GROUP / 2; half_ > 0; half_ /= 2) {                                           \
        if (LOCAL_ID() < half_)                                                                    \
            part[LOCAL_ID()] = join(part[LOCAL_ID()], part[LOCAL_ID() + half_]);                   \
        BARRIER();                                                                                 \
    }
#undef JOIN_ADD
#undef JOIN_LARGER
#define JOIN_ADD(a, b) ((a) + (b))
#define JOIN_LARGER(a, b) ((a) != (a) ? (a) : ((a) > (b) ? (a) : (b)))

/* With `logarithm`: y = x - max - ln(sum of e^(x - max)). Without: y = e^(x - max) / (sum of
 * e^(x - max)). */
GROUP_KERNEL NAME(softmax)(GLOBAL S *y, GLOBAL const S *x, const gpu_rows p, const i32 logarithm)
{
    LOCAL C part[GROUP];
    ROW_BEGIN3(p, GROUP_ID(), py, px, pz)
    C top = -INFINITY, total = 0, scale;

    (void)pz;
    for (i64 i = LOCAL_ID(); i < p.length; i += GROUP) {
        C v = LOAD(x, px + i * p.along[1]);
        top = JOIN_LARGER(top, v);
    }
    part[LOCAL_ID()] = top;
    JOIN_GROUP(part, JOIN_LARGER)
    top = part[0];
    BARRIER();
    for (i64 i = LOCAL_ID(); i < p.length; i += GROUP)
        total += exp(LOAD(x, px + i * p.along[1]) - top);
    part[LOCAL_ID()] = total;
    JOIN_GROUP(part, JOIN_ADD)
    total = part[0];
    scale = logarithm ? log(total) : (C)1 / total;
    for (i64 i = LOCAL_ID(); i < p.length; i += GROUP) {
        C v = LOAD(x, px + i * p.along[1]) - top;
        STORE(y, py + i * p.along[0], logarithm ? v - scale : exp(v) * scale);
    }
}

/* gx = gy - e^y * (sum of gy). The operands of p are gx, gy and y. */
GROUP_KERNEL NAME(log_softmax_grad)(GLOBAL S *gx, GLOBAL const S *gy, GLOBAL const S *y,
                                    const gpu_rows p)
{
    LOCAL C part[GROUP];
    ROW_BEGIN3(p, GROUP_ID(), pgx, pgy, py)
    C total = 0;

    for (i64 i = LOCAL_ID(); i < p.length; i += GROUP)
        total += LOAD(gy, pgy + i * p.along[1]);
    part[LOCAL_ID()] = total;
    JOIN_GROUP(part, JOIN_ADD)
    total = part[0];
    for (i64 i = LOCAL_ID(); i < p.length; i += GROUP) {
        C v = LOAD(gy, pgy + i * p.along[1]) - exp(LOAD(y, py + i * p.along[2])) * total;
        STORE(gx, pgx + i * p.along[0], v);
    }
}
#endif
