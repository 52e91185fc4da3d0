/* SPDX-License-Identifier: MIT
 *
 * max_pool of planes, and of rows of windows with the channels last, for type T. Its gradient is in
 * pool_grad_template.h.
 */

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

/* ---- channels last --------------------------------------------------------------------------- */

static tn_status NAME(max_rows_channels_last)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    const struct tn__simd_pool_max *loops = tn__simd.pool_max;
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
                    (any ? loops->next : loops->first)[NAME(CT)](n, from, here, best, place);
                    any = true;
                }
                for (int32_t d = 0; !any && d < DIMS; d++)
                    near = near * p->size[d] + nearest(p, at, d);
                for (int64_t k = 0; !any && k < n; k++) {
                    best[k] = -(T)INFINITY;
                    place[k] = (NAME(index))near;
                }
                loops->store[NAME(CT)](1, n, 0, best, place, y + PLACE(p->result_step) + c,
                                       where + PLACE(p->places_step) + c);
            }
    }
    return TN_OK;
}

/* Buffers for a line of windows, with an element for each column and channel of the image. best,
 * place: the maxima of each column over the rows of the window, and their indices. most, index: the
 * maxima of whole windows, and their indices. */
struct NAME(line) {
    int64_t channels, width; /* width: elements of a line */
    T *best, *most;
    NAME(index) * place, *index, *column; /* column: that of each element */
};

static tn_status NAME(line_take)(struct NAME(line) * line, const struct pool *p, int64_t channels)
{
    int64_t width = p->size[2] * channels;
    T *at = tn__scratch_take((size_t)width * (2 * sizeof(T) + 3 * sizeof(NAME(index))));
    if (!at)
        return TN_ERR_MEMORY;
    *line = (struct NAME(line)){ .channels = channels, .width = width, .best = at };
    line->most = at + width;
    line->place = (NAME(index) *)(void *)(at + 2 * width);
    line->index = line->place + width;
    line->column = line->index + width;
    for (int64_t i = 0, k = 0; i < p->size[2]; i++)
        for (int64_t c = 0; c < channels; c++)
            line->column[k++] = (NAME(index))i;
    return TN_OK;
}

/* Computes the maximum of each channel in one window, from the kernel's columns [low, high). If
 * there are no such columns, the maxima are -INFINITY, with the index of the nearest element. */
static void NAME(line_window)(const struct NAME(line) * line, const struct pool *p,
                              const int64_t *at, int64_t low, int64_t high, const T *best,
                              const NAME(index) * place, T *to, int64_t *where)
{
    int64_t channels = line->channels, near = 0, first = at[2] * p->stride[2] - p->padding[2];
    for (int32_t d = 0; d < DIMS; d++)
        near = near * p->size[d] + nearest(p, at, d);
    for (int64_t c = 0; c < channels; c++) {
        T most = -(T)INFINITY;
        NAME(index) index = (NAME(index))near;
        for (int64_t k = low; k < high; k++) {
            int64_t from = (first + k * p->dilation[2]) * channels + c;
            T v = best[from];
            NAME(index) here = place[from];
            bool same = (v == most) | ((v != v) & (most != most));
            if (k == low || (same ? here < index : !(v <= most) & (most == most))) {
                most = v;
                index = here;
            }
        }
        to[c] = most;
        where[c] = index;
    }
}

/* Computes the maxima of a line of windows in two steps. First each column of the image is reduced
 * over the rows of the windows, for all columns and channels at once. Then the columns of each
 * window are reduced: at once for all windows without padding at the sides, else one by one. */
static void NAME(line_max)(const struct NAME(line) * line, const struct pool *p, int64_t *at,
                           const T *x, T *y, int64_t *where)
{
    const struct tn__simd_pool_max *loops = tn__simd.pool_max;
    int64_t low[DIMS], high[DIMS], first[DIMS], channels = line->channels;
    int64_t gap = p->dilation[2], reach = (p->kernel[2] - 1) * gap, stride = p->stride[2];
    int64_t begin = (p->padding[2] + stride - 1) / stride, end = p->size[2] - 1 - reach;
    const T *best = line->best;
    const NAME(index) *best_place = line->place;
    bool any = false;
    for (int32_t d = 0; d < 2; d++) {
        inside(p, d, at[d], &low[d], &high[d]);
        first[d] = at[d] * p->stride[d] - p->padding[d];
    }
    bool single = p->size[0] * p->size[1] == 1 && low[0] < high[0] && low[1] < high[1];
    if (single) { /* the image is one line, and the index of an element is its column */
        any = true;
        best = x;
        best_place = line->column;
    }
    for (int64_t k0 = low[0]; k0 < high[0] && !single; k0++)
        for (int64_t k1 = low[1]; k1 < high[1]; k1++) {
            const T *from = x + MEMBER(0, k0) * p->image_step[0] + MEMBER(1, k1) * p->image_step[1];
            (any ? loops->next : loops->first)[NAME(CT)](line->width, from,
                                                         MEMBER(0, k0) * p->size[1] + MEMBER(1, k1),
                                                         line->best, line->place);
            any = true;
        }
    if (any && !single)
        loops->flatten[NAME(CT)](line->width, p->size[2], line->column, line->place);
    end = end + p->padding[2] < 0 ? 0 : (end + p->padding[2]) / stride + 1;
    end = any ? (end < p->count[2] ? end : p->count[2]) : 0;
    for (at[2] = 0; at[2] < p->count[2]; at[2]++) {
        T *to = y + PLACE(p->result_step);
        int64_t *place = where + PLACE(p->places_step);
        if (at[2] < begin || at[2] >= end) {
            inside(p, 2, at[2], &low[2], &high[2]);
            NAME(line_window)
            (line, p, at, low[2], any ? high[2] : low[2], best, best_place, to, place);
            continue;
        }
        int64_t from = (at[2] * stride - p->padding[2]) * channels;
        int64_t n = ((end - 1 - at[2]) * stride + 1) * channels;
        const T *most = best + from;
        const NAME(index) *index = best_place + from;
        if (channels == 1 && stride == 2 && p->kernel[2] == 2 && gap == 1) {
            loops->pairs[NAME(CT)](end - at[2], most, index, to, place);
            at[2] = end - 1;
            continue;
        }
        for (int64_t k = 1; k < p->kernel[2]; k++) {
            int64_t other = from + k * gap * channels;
            loops->larger[NAME(CT)](n, most, index, best + other, best_place + other, line->most,
                                    line->index);
            most = line->most;
            index = line->index;
        }
        loops->store[NAME(CT)](end - at[2], channels, stride * channels, most, index, to, place);
        at[2] = end - 1;
    }
}

/* As max_rows_channels_last, for few channels. */
static tn_status NAME(max_few_channels_last)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    const int64_t lines = p->count[0] * p->count[1];
    struct NAME(line) line;
    tn_status status = NAME(line_take)(&line, p, p->image->shape[1]);
    for (int64_t i = begin; i < end && status == TN_OK; i++) {
        int64_t at[DIMS] = { i % lines / p->count[1], i % p->count[1], 0 }, image = i / lines;
        NAME(line_max)
        (&line, p, at, (T *)(void *)tn__view_at(p->image) + image * p->image->strides[0],
         (T *)(void *)tn__view_at(p->result) + image * p->result->strides[0],
         (int64_t *)(void *)tn__view_at(p->places) + image * p->places->strides[0]);
    }
    if (status == TN_OK)
        tn__scratch_give(line.best);
    return status;
}

/* As max_few_channels_last, for planes whose rows are contiguous, in the image, the result and the
 * indices. */
static tn_status NAME(max_planes)(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    struct NAME(line) line;
    tn_status status = NAME(line_take)(&line, p, 1);
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        for (int64_t k = 0; k < p->count[0] * p->count[1]; k++) {
            int64_t at[DIMS] = { k / p->count[1], k % p->count[1], 0 };
            NAME(line_max)
            (&line, p, at, plane_of(p->image, i), plane_of(p->result, i), plane_of(p->places, i));
        }
    if (status == TN_OK)
        tn__scratch_give(line.best);
    return status;
}
