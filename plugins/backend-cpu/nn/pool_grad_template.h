/* SPDX-License-Identifier: MIT
 *
 * The gradients of max_pool and avg_pool for type T: of planes, and of images with the channels
 * last.
 */

/* ---- planes: one image, one channel ---------------------------------------------------------- */

static tn_status NAME(max_grad)(const struct pool *p, void *image, void *result, int64_t *where)
{
    T *gx = image;
    const T *gy = result;
    int64_t plane = p->size[1] * p->size[2], most = p->size[0] * plane;
    bool even = is_even(p);
    EACH_WINDOW
    {
        int64_t place = where[PLACE(p->places_step)];
        if (place < 0 || place >= most)
            return out_of_range(place, most);
        if (even)
            gx[place * p->image_step[2]] += gy[PLACE(p->result_step)];
        else
            gx[place / plane * p->image_step[0] +
               place / p->size[2] % p->size[1] * p->image_step[1] +
               place % p->size[2] * p->image_step[2]] += gy[PLACE(p->result_step)];
    }
    return TN_OK;
}

static tn_status NAME(avg_grad)(const struct pool *p, void *image, void *result, int64_t *where)
{
    T *gx = image;
    const T *gy = result;
    (void)where;
    EACH_WINDOW
    {
        T each = gy[PLACE(p->result_step)] / (T)share_of(p, at);
        EACH_MEMBER gx[IN_IMAGE] += each;
    }
    return TN_OK;
}

/* ---- channels last --------------------------------------------------------------------------- */

/* Adds gy to gx at the indices of the maxima. A piece is WIDE channels of one image. */
static tn_status NAME(max_grad_channels_last)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    int64_t channels = p->image->shape[1], blocks = (channels + WIDE - 1) / WIDE;
    int64_t plane = p->size[1] * p->size[2], most = p->size[0] * plane;
    bool even = is_even(p);
    for (int64_t i = begin; i < end; i++) {
        int64_t c = i % blocks * WIDE, n = channels - c < WIDE ? channels - c : WIDE;
        T *gx = (T *)(void *)tn__view_at(p->image) + i / blocks * p->image->strides[0] + c;
        const T *gy = (const T *)(const void *)tn__view_at(p->result) +
                      i / blocks * p->result->strides[0] + c;
        const int64_t *where = (const int64_t *)(const void *)tn__view_at(p->places) +
                               i / blocks * p->places->strides[0] + c;
        EACH_WINDOW
        for (int64_t k = 0; k < n; k++) {
            int64_t place = where[PLACE(p->places_step) + k];
            if (place < 0 || place >= most)
                return out_of_range(place, most);
            int64_t to = even ? place * p->image_step[2]
                              : place / plane * p->image_step[0] +
                                    place / p->size[2] % p->size[1] * p->image_step[1] +
                                    place % p->size[2] * p->image_step[2];
            gx[to + k] += gy[PLACE(p->result_step) + k];
        }
    }
    return TN_OK;
}

/* Adds the shares of gy to gx. A piece is WIDE channels of one image. */
static tn_status NAME(avg_grad_channels_last)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    int64_t channels = p->image->shape[1], blocks = (channels + WIDE - 1) / WIDE;
    for (int64_t i = begin; i < end; i++) {
        int64_t c = i % blocks * WIDE, n = channels - c < WIDE ? channels - c : WIDE;
        T *gx = (T *)(void *)tn__view_at(p->image) + i / blocks * p->image->strides[0] + c;
        const T *gy = (const T *)(const void *)tn__view_at(p->result) +
                      i / blocks * p->result->strides[0] + c;
        EACH_WINDOW
        {
            const T share = (T)share_of(p, at), *from = gy + PLACE(p->result_step);
            T each[WIDE];
            TN__IVDEP
            for (int64_t k = 0; k < n; k++)
                each[k] = from[k] / share;
            EACH_MEMBER
            {
                T *to = gx + IN_IMAGE;
                TN__IVDEP
                for (int64_t k = 0; k < n; k++)
                    to[k] += each[k];
            }
        }
    }
    return TN_OK;
}
