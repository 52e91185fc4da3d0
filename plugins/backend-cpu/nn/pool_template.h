/* SPDX-License-Identifier: MIT
 *
 * Pooling of planes, and of rows of windows with the channels last, for type T. */

/* ---- planes: one image, one channel ---------------------------------------------------------- */

static tn_status NAME(max)(const struct pool *p, void *image, void *result, int64_t *where)
{
    const T *x = image;
    T *y = result;
    EACH_WINDOW
    {
        T best = -(T)INFINITY;
        int64_t place = -1;
        EACH_MEMBER
        {
            T value = x[IN_IMAGE];
            if (value > best || value != value || place < 0) {
                if (place >= 0 && best != best)
                    continue; /* best is NaN: the first NaN of a window is the maximum */
                best = value;
                place = (MEMBER(0, k0) * p->size[1] + MEMBER(1, k1)) * p->size[2] + MEMBER(2, k2);
            }
        }
        if (place < 0) /* the whole window is padding: the index is that of the nearest element */
            for (int32_t d = 0; d < DIMS; d++)
                place = (place < 0 ? 0 : place) * p->size[d] + nearest(p, at, d);
        y[PLACE(p->result_step)] = best;
        where[PLACE(p->places_step)] = place;
    }
    return TN_OK;
}

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

static tn_status NAME(max_grad)(const struct pool *p, void *image, void *result, int64_t *where)
{
    T *gx = image;
    const T *gy = result;
    int64_t plane = p->size[1] * p->size[2], most = p->size[0] * plane;
    EACH_WINDOW
    {
        int64_t place = where[PLACE(p->places_step)];
        if (place < 0 || place >= most)
            return out_of_range(place, most);
        gx[place / plane * p->image_step[0] + place / p->size[2] % p->size[1] * p->image_step[1] +
           place % p->size[2] * p->image_step[2]] += gy[PLACE(p->result_step)];
    }
    return TN_OK;
}

/* ---- channels last --------------------------------------------------------------------------- */

/* Updates the maxima `best` of n channels, and their indices `place`, with the elements x at index
 * `at`. NaN is larger than any number, and the first NaN stays. */
static void NAME(side_max)(int64_t n, const T *x, int64_t at, T *best, NAME(index) * place)
{
    const NAME(index) here = (NAME(index))at;
    TN__IVDEP
    for (int64_t k = 0; k < n; k++) {
        T v = x[k], b = best[k];
        NAME(index) old = place[k];
        bool more = !(v <= b) & (b == b);
        best[k] = more ? v : b;
        place[k] = more ? here : old;
    }
}

static tn_status NAME(side_max_rows)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    int64_t channels = p->image->shape[1], lines = p->count[0] * p->count[1];
    T best[WIDE];
    NAME(index) place[WIDE];
    for (int64_t line = begin; line < end; line++) {
        int64_t at[DIMS] = { line % lines / p->count[1], line % p->count[1], 0 };
        const T *x = (const T *)(const void *)tn__view_at(p->image) +
                     line / lines * p->image->strides[0];
        T *y = (T *)(void *)tn__view_at(p->result) + line / lines * p->result->strides[0];
        int64_t *where = (int64_t *)(void *)tn__view_at(p->places) +
                         line / lines * p->places->strides[0];
        for (; at[2] < p->count[2]; at[2]++)
            for (int64_t c = 0; c < channels; c += WIDE) {
                int64_t n = channels - c < WIDE ? channels - c : WIDE, near = 0;
                bool any = false;
                EACH_MEMBER
                {
                    const T *from = x + IN_IMAGE + c;
                    int64_t here = (MEMBER(0, k0) * p->size[1] + MEMBER(1, k1)) * p->size[2] +
                                   MEMBER(2, k2);
                    if (any) {
                        NAME(side_max)(n, from, here, best, place);
                        continue;
                    }
                    any = true;
                    for (int64_t k = 0; k < n; k++) {
                        best[k] = from[k];
                        place[k] = (NAME(index))here;
                    }
                }
                for (int32_t d = 0; !any && d < DIMS; d++)
                    near = near * p->size[d] + nearest(p, at, d);
                for (int64_t k = 0; !any && k < n; k++) {
                    best[k] = -(T)INFINITY;
                    place[k] = (NAME(index))near;
                }
                memcpy(y + PLACE(p->result_step) + c, best, (size_t)n * sizeof(T));
                for (int64_t k = 0; k < n; k++)
                    where[PLACE(p->places_step) + c + k] = place[k];
            }
    }
    return TN_OK;
}

/* As side_max_rows, for few channels: first the maxima over the lines of the image that a line of
 * windows reads, for all columns and channels at once, then those over the columns of a window. The
 * first of equal elements, or of NaN, is the one with the smaller index. */
static tn_status NAME(side_max_few)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    const int64_t channels = p->image->shape[1], lines = p->count[0] * p->count[1],
                  width = p->size[2] * channels;
    T *best = tn__scratch_take((size_t)width * (sizeof(T) + sizeof(NAME(index))));
    if (!best)
        return TN_ERR_MEMORY;
    NAME(index) *row = (NAME(index) *)(void *)(best + width);
    for (int64_t line = begin; line < end; line++) {
        int64_t at[DIMS] = { line % lines / p->count[1], line % p->count[1], 0 };
        int64_t low[DIMS], high[DIMS], first[DIMS];
        const T *x = (const T *)(const void *)tn__view_at(p->image) +
                     line / lines * p->image->strides[0];
        T *y = (T *)(void *)tn__view_at(p->result) + line / lines * p->result->strides[0];
        int64_t *where = (int64_t *)(void *)tn__view_at(p->places) +
                         line / lines * p->places->strides[0];
        bool any = false;
        for (int32_t d = 0; d < 2; d++) {
            inside(p, d, at[d], &low[d], &high[d]);
            first[d] = at[d] * p->stride[d] - p->padding[d];
        }
        for (int64_t k0 = low[0]; k0 < high[0]; k0++)
            for (int64_t k1 = low[1]; k1 < high[1]; k1++) {
                int64_t here = MEMBER(0, k0) * p->size[1] + MEMBER(1, k1);
                const T *from = x + MEMBER(0, k0) * p->image_step[0] +
                                MEMBER(1, k1) * p->image_step[1];
                if (any) {
                    NAME(side_max)(width, from, here, best, row);
                    continue;
                }
                any = true;
                memcpy(best, from, (size_t)width * sizeof(T));
                for (int64_t k = 0; k < width; k++)
                    row[k] = (NAME(index))here;
            }
        for (; at[2] < p->count[2]; at[2]++) {
            T *to = y + PLACE(p->result_step);
            int64_t *place = where + PLACE(p->places_step), near = 0;
            inside(p, 2, at[2], &low[2], &high[2]);
            first[2] = at[2] * p->stride[2] - p->padding[2];
            if (!any || low[2] >= high[2]) {
                for (int32_t d = 0; d < DIMS; d++)
                    near = near * p->size[d] + nearest(p, at, d);
                for (int64_t c = 0; c < channels; c++) {
                    to[c] = -(T)INFINITY;
                    place[c] = near;
                }
                continue;
            }
            T most[FEW];
            NAME(index) index[FEW], column = (NAME(index))MEMBER(2, low[2]);
            const NAME(index) wide = (NAME(index))p->size[2];
            for (int64_t c = 0; c < channels; c++) {
                most[c] = best[column * channels + c];
                index[c] = row[column * channels + c] * wide + column;
            }
            for (int64_t k = low[2] + 1; k < high[2]; k++) {
                column = (NAME(index))MEMBER(2, k);
                const T *from = best + column * channels;
                const NAME(index) *from_row = row + column * channels;
                TN__IVDEP
                for (int64_t c = 0; c < channels; c++) {
                    T v = from[c], b = most[c];
                    NAME(index) here = from_row[c] * wide + column, old = index[c];
                    bool same = (v == b) | ((v != v) & (b != b));
                    bool more = (same & (here < old)) | (!same & !(v <= b) & (b == b));
                    most[c] = more ? v : b;
                    index[c] = more ? here : old;
                }
            }
            memcpy(to, most, (size_t)channels * sizeof(T));
            for (int64_t c = 0; c < channels; c++)
                place[c] = index[c];
        }
    }
    tn__scratch_give(best);
    return TN_OK;
}

/* Adds gy to gx at the indices of the maxima. A piece is WIDE channels of one image. */
static tn_status NAME(side_grad)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    int64_t channels = p->image->shape[1], blocks = (channels + WIDE - 1) / WIDE;
    int64_t plane = p->size[1] * p->size[2], most = p->size[0] * plane;
    bool even = p->image_step[1] == p->size[2] * p->image_step[2] &&
                (p->size[0] == 1 || p->image_step[0] == p->size[1] * p->image_step[1]);
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

/* The averages of rows of windows, as side_max_rows. */
static tn_status NAME(side_avg_rows)(void *user, int64_t begin, int64_t end)
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

/* Adds the shares of gy to gx. A piece is WIDE channels of one image. */
static tn_status NAME(side_avg_grad)(void *user, int64_t begin, int64_t end)
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
