/* SPDX-License-Identifier: MIT
 *
 * avg_pool of planes, and of rows of windows with the channels last, for type T. Its gradient is in
 * pool_grad_template.h.
 */

/* ---- planes: one image, one channel ---------------------------------------------------------- */

static tn_status NAME(avg)(const struct pool *p, void *image, void *result, int64_t *where)
{
    const T *x = image;
    T *y = result;
    (void)where;
    EACH_WINDOW
    {
        T sum = 0;
        EACH_MEMBER sum += x[IN_IMAGE];
        y[PLACE(p->result_step)] = sum / (T)share_of(p, at);
    }
    return TN_OK;
}

/* ---- channels last --------------------------------------------------------------------------- */

/* Computes the averages of rows of windows [begin, end), for WIDE channels at a time. */
static tn_status NAME(avg_rows_channels_last)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    int64_t channels = p->image->shape[1], lines = p->count[0] * p->count[1];
    for (int64_t line = begin; line < end; line++) {
        int64_t at[DIMS] = { line % lines / p->count[1], line % p->count[1], 0 };
        const T *x = (const T *)(const void *)tn__view_at(p->image) +
                     line / lines * p->image->strides[0];
        T *y = (T *)(void *)tn__view_at(p->result) + line / lines * p->result->strides[0];
        for (; at[2] < p->count[2]; at[2]++) {
            const T share = (T)share_of(p, at);
            for (int64_t c = 0; c < channels; c += WIDE) {
                int64_t n = channels - c < WIDE ? channels - c : WIDE;
                T sum[WIDE], *to = y + PLACE(p->result_step) + c;
                memset(sum, 0, (size_t)n * sizeof(T));
                EACH_MEMBER
                {
                    const T *from = x + IN_IMAGE + c;
                    TN__IVDEP
                    for (int64_t k = 0; k < n; k++)
                        sum[k] += from[k];
                }
                TN__IVDEP
                for (int64_t k = 0; k < n; k++)
                    to[k] = sum[k] / share;
            }
        }
    }
    return TN_OK;
}
