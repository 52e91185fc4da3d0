/* SPDX-License-Identifier: MIT
 *
 * The negative log-likelihood loss and its derivative. A target out of range is skipped and
 * recorded as an error, which the next synchronization of the stream reports. */
#ifdef TN_FLOATING

/* Records a target that is out of range, unless an error is already recorded. */
DEVICE void NAME(out_of_range)(GLOBAL gpu_error *error, i32 op, i64 index, i64 bound, i64 place)
{
    if (TAKE(&error->taken)) {
        error->op = op;
        error->index = index;
        error->bound = bound;
        error->place = place;
    }
}

/* One group computes everything. total is the number of targets that are in range and not ignored.
 * y is -sum of x[n, target[n]] for GPU_REDUCE_SUM, that divided by total for GPU_REDUCE_MEAN, and
 * y[n] = -x[n, target[n]] for GPU_REDUCE_NONE. */
GROUP_KERNEL NAME(nll_loss)(GLOBAL S *y, GLOBAL S *total, GLOBAL const S *x,
                            GLOBAL const i64 *target, GLOBAL gpu_error *error, const gpu_loss p)
{
    LOCAL C part[GROUP];
    LOCAL i64 counts[GROUP];
    C sum = 0;
    i64 count = 0;

    for (i64 n = LOCAL_ID(); n < p.n; n += GROUP) {
        i64 t = target[p.offset_target + n * p.stride_target];
        C v = 0;
        if (t != p.ignore) {
            if (t < 0 || t >= p.classes) {
                NAME(out_of_range)(error, p.op, t, p.classes, n);
            } else {
                v = LOAD(x, p.offset_x + n * p.stride_x[0] + t * p.stride_x[1]);
                count++;
            }
        }
        sum -= v;
        if (p.reduction == GPU_REDUCE_NONE)
            STORE(y, p.offset_y + n * p.stride_y, -v);
    }
    part[LOCAL_ID()] = sum;
    counts[LOCAL_ID()] = count;
    BARRIER();
    for (i32 half_ = GROUP / 2; half_ > 0; half_ /= 2) {
        if (LOCAL_ID() < half_) {
            part[LOCAL_ID()] += part[LOCAL_ID() + half_];
            counts[LOCAL_ID()] += counts[LOCAL_ID() + half_];
        }
        BARRIER();
    }
    if (LOCAL_ID() == 0) {
        C all = (C)counts[0];
        STORE(total, p.offset_total, all);
        if (p.reduction == GPU_REDUCE_MEAN)
            STORE(y, p.offset_y, part[0] / all);
        else if (p.reduction == GPU_REDUCE_SUM)
            STORE(y, p.offset_y, part[0]);
    }
}

/* gx[n, c] is -gy if c == target[n], divided by total for GPU_REDUCE_MEAN; else 0. Where target[n]
 * is ignored or out of range, gx[n, c] is 0 for all c. The members of p that are named after x and
 * y describe gx and gy. */
KERNEL NAME(nll_loss_grad)(GLOBAL S *gx, GLOBAL const S *gy, GLOBAL const S *total,
                           GLOBAL const i64 *target, GLOBAL gpu_error *error, const gpu_loss p)
{
    i64 i = ITEM();
    if (i < p.n * p.classes) {
        i64 n = i / p.classes, c = i - n * p.classes;
        i64 t = target[p.offset_target + n * p.stride_target];
        C v = 0;
        if (t != p.ignore && (t < 0 || t >= p.classes)) {
            if (c == 0)
                NAME(out_of_range)(error, p.op, t, p.classes, n);
        } else if (t == c && t != p.ignore) {
            v = -LOAD(gy, p.offset_y + (p.reduction == GPU_REDUCE_NONE ? n * p.stride_y : 0));
            if (p.reduction == GPU_REDUCE_MEAN)
                v /= LOAD(total, p.offset_total);
        }
        STORE(gx, p.offset_x + n * p.stride_x[0] + c * p.stride_x[1], v);
    }
}
#endif
