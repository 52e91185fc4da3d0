/* SPDX-License-Identifier: MIT
 *
 * Convolution and the gradient of its weight as products of matrices whose columns are the windows of the input. The columns are made
 * a block at a time on the way into the packed panels of the tiles, never as a whole. The work is cut by shape alone,
 * so the bits do not depend on the number of threads. */
#include <string.h>

#include "cpu.h"

enum {
    DIMS = 3,    /* fewer are filled up with 1 in front */
    DEPTH = 256, /* of a packed panel */
    BLOCK = 256  /* columns that are worked on together */
};

struct windows {
    const tn_view *x;
    int64_t item;
    int64_t images, channels, groups;
    int64_t size[DIMS], kernel[DIMS], count[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS];
    int64_t step[DIMS]; /* of x, in elements */
    int64_t places;     /* windows of an image */
    int64_t members;    /* elements of a window with the channels of a group */
};

/* Neighbouring windows in one row of an image: `length` of them from `at` on. */
struct stretch {
    const char *image; /* of the group's first channel */
    int64_t at, length;
    int64_t first[DIMS]; /* where the first window begins, in the padding when negative */
};

static void read_row(tn_ints given, int32_t dims, int64_t otherwise, int64_t *out)
{
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t own = i - (DIMS - dims);
        out[i] = own < 0 || given.count <= 0 ? otherwise : given.at[given.count == 1 ? 0 : own];
    }
    for (int32_t i = 0; i < DIMS - dims; i++)
        out[i] = otherwise;
}

static void lay_out(struct windows *w, const tn_view *x, const int64_t *kernel,
                    const int64_t *count, tn_ints stride, tn_ints padding, tn_ints dilation,
                    int64_t groups)
{
    int32_t dims = x->ndim - 2;
    w->x = x;
    w->item = tn__view_item(x);
    w->images = x->shape[0];
    w->channels = x->shape[1] / groups;
    w->groups = groups;
    read_row(stride, dims, 1, w->stride);
    read_row(padding, dims, 0, w->padding);
    read_row(dilation, dims, 1, w->dilation);
    w->places = 1;
    w->members = w->channels;
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t own = i - (DIMS - dims);
        w->size[i] = own < 0 ? 1 : x->shape[2 + own];
        w->step[i] = own < 0 ? 0 : x->strides[2 + own];
        w->kernel[i] = own < 0 ? 1 : kernel[own];
        w->count[i] = own < 0 ? 1 : count[own];
        w->places *= w->count[i];
        w->members *= w->kernel[i];
    }
}

/* The stretches of columns [begin, begin + n) of all images together. */
static int64_t find_stretches(const struct windows *w, int64_t group, int64_t begin, int64_t n,
                              struct stretch *out)
{
    int64_t found = 0;
    for (int64_t at = 0; at < n;) {
        int64_t column = begin + at, image = column / w->places, place = column % w->places;
        int64_t row = place / w->count[2], last = place % w->count[2];
        struct stretch *s = &out[found++];
        s->at = at;
        s->length = w->count[2] - last;
        if (s->length > n - at)
            s->length = n - at;
        s->image = tn__view_at(w->x) +
                   (image * w->x->strides[0] + group * w->channels * w->x->strides[1]) * w->item;
        s->first[0] = row / w->count[1] * w->stride[0] - w->padding[0];
        s->first[1] = row % w->count[1] * w->stride[1] - w->padding[1];
        s->first[2] = last * w->stride[2] - w->padding[2];
        at += s->length;
    }
    return found;
}

#define LINE(s, T)                                                                                 \
    /* Member `member` of each window of the stretches. */                                         \
    static void line_##s(const struct windows *w, const struct stretch *list, int64_t count,       \
                         int64_t member, T *to)                                                    \
    {                                                                                              \
        int64_t k2 = member % w->kernel[2], rest = member / w->kernel[2];                          \
        int64_t k1 = rest % w->kernel[1], k0 = rest / w->kernel[1] % w->kernel[0];                 \
        int64_t channel = rest / w->kernel[1] / w->kernel[0] * w->x->strides[1];                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const struct stretch *s = &list[i];                                                    \
            int64_t d = s->first[0] + k0 * w->dilation[0], h = s->first[1] + k1 * w->dilation[1],  \
                    c = s->first[2] + k2 * w->dilation[2], step = w->stride[2];                    \
            T *at = to + s->at;                                                                    \
            if (d < 0 || d >= w->size[0] || h < 0 || h >= w->size[1]) {                            \
                memset(at, 0, (size_t)s->length * sizeof(T));                                      \
                continue;                                                                          \
            }                                                                                      \
            const T *from = (const T *)(const void *)s->image + channel + d * w->step[0] +         \
                            h * w->step[1];                                                        \
            int64_t low = c >= 0 ? 0 : (-c + step - 1) / step;                                     \
            int64_t high = c >= w->size[2] ? 0 : (w->size[2] - 1 - c) / step + 1;                  \
            if (low > s->length)                                                                   \
                low = s->length;                                                                   \
            if (high > s->length)                                                                  \
                high = s->length;                                                                  \
            if (high < low)                                                                        \
                high = low;                                                                        \
            for (int64_t j = 0; j < low; j++)                                                      \
                at[j] = 0;                                                                         \
            int64_t pace = step * w->step[2];                                                      \
            from += c * w->step[2];                                                                \
            if (pace == 1 && high > low)                                                           \
                memcpy(at + low, from + low, (size_t)(high - low) * sizeof(T));                    \
            else                                                                                   \
                for (int64_t j = low; j < high; j++)                                               \
                    at[j] = from[j * pace];                                                        \
            for (int64_t j = high; j < s->length; j++)                                             \
                at[j] = 0;                                                                         \
        }                                                                                          \
    }
LINE(f32, float)
LINE(f64, double)

static void line_of(enum tn__ct ct, const struct windows *w, const struct stretch *list,
                    int64_t count, int64_t member, void *to)
{
    if (ct == TN__F32)
        line_f32(w, list, count, member, to);
    else
        line_f64(w, list, count, member, to);
}

/* n elements, `from_step` apart, to others `to_step` apart. */
static inline void move(int64_t size, int64_t n, const void *from, int64_t from_step, void *to,
                        int64_t to_step)
{
    if (size == 4) {
        const uint32_t *a = from;
        uint32_t *b = to;
        for (int64_t i = 0; i < n; i++)
            b[i * to_step] = a[i * from_step];
    } else {
        const uint64_t *a = from;
        uint64_t *b = to;
        for (int64_t i = 0; i < n; i++)
            b[i * to_step] = a[i * from_step];
    }
}

static int64_t up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

/* ---- forth ----------------------------------------------------------------------------------- */

struct forth {
    struct windows w;
    enum tn__ct ct;
    int64_t size;       /* of an element */
    int64_t outputs;    /* of a group */
    const char *panels; /* the weight, packed: [group][depth block][panel of mr][kc][mr] */
    int64_t group_bytes;
    const tn_view *y, *bias;
    int64_t blocks; /* of columns */
    int64_t y_step[DIMS];
};

/* [rows][depth], `row` and `deep` elements apart, as panels of mr rows, a block of depth after the other. */
static void pack_rows(enum tn__ct ct, const char *from, int64_t rows, int64_t depth, int64_t row,
                      int64_t deep, int64_t mr, char *to)
{
    int64_t size = (int64_t)tn__ct_size(ct);
    for (int64_t k0 = 0; k0 < depth; k0 += DEPTH) {
        int64_t kc = depth - k0 < DEPTH ? depth - k0 : DEPTH;
        for (int64_t first = 0; first < rows; first += mr) {
            int64_t here = rows - first < mr ? rows - first : mr;
            if (here < mr)
                memset(to, 0, (size_t)(mr * kc * size));
            for (int64_t i = 0; i < here; i++) {
                const char *at = from + ((first + i) * row + k0 * deep) * size;
                move(size, kc, at, deep, to + i * size, mr);
            }
            to += mr * kc * size;
        }
    }
}

/* Where column `column` of all images lies in y, in elements, and for how many columns the step is the last dimension's. */
static int64_t place_of(const struct forth *f, int64_t column, int64_t *run)
{
    const struct windows *w = &f->w;
    int64_t image = column / w->places, place = column % w->places;
    int64_t last = place % w->count[2], row = place / w->count[2];
    *run = w->count[2] - last;
    return image * f->y->strides[0] + row / w->count[1] * f->y_step[0] +
           row % w->count[1] * f->y_step[1] + last * f->y_step[2];
}

#define STORE(s, T)                                                                                \
    static void store_##s(const struct forth *f, int64_t group, int64_t begin, int64_t n,          \
                          const T *sums, int64_t width)                                            \
    {                                                                                              \
        T *y = (T *)(void *)tn__view_at(f->y);                                                     \
        for (int64_t at = 0, run; at < n; at += run) {                                             \
            int64_t place = place_of(f, begin + at, &run), step = f->y_step[2];                    \
            run = run < n - at ? run : n - at;                                                     \
            for (int64_t m = 0; m < f->outputs; m++) {                                             \
                int64_t output = group * f->outputs + m;                                           \
                const T *from = sums + m * width + at;                                             \
                T *to = y + place + output * f->y->strides[1], more = 0;                           \
                if (f->bias)                                                                       \
                    more = ((const T *)(const void *)tn__view_at(                                  \
                        f->bias))[output * f->bias->strides[0]];                                   \
                if (step == 1)                                                                     \
                    for (int64_t j = 0; j < run; j++)                                              \
                        to[j] = from[j] + more;                                                    \
                else                                                                               \
                    for (int64_t j = 0; j < run; j++)                                              \
                        to[j * step] = from[j] + more;                                             \
            }                                                                                      \
        }                                                                                          \
    }
STORE(f32, float)
STORE(f64, double)

static tn_status forth_block(const struct forth *f, int64_t index)
{
    const struct windows *w = &f->w;
    const struct tn__tile *tile = &tn__products->tile[f->ct];
    int64_t group = index / f->blocks, begin = index % f->blocks * BLOCK;
    int64_t all = w->images * w->places, n = all - begin < BLOCK ? all - begin : BLOCK;
    int64_t width = up(n, tile->nr), rows = up(f->outputs, tile->mr), size = f->size;
    struct stretch list[BLOCK];
    int64_t stretches = find_stretches(w, group, begin, n, list);
    char *memory = tn__scratch_take((size_t)(size * (rows * width + DEPTH * width + width)) + 64);
    if (!memory)
        return TN_ERR_MEMORY;
    char *sums = memory, *columns = sums + rows * width * size,
         *line = columns + DEPTH * width * size;
    const char *panels = f->panels + group * f->group_bytes;
    memset(sums, 0, (size_t)(rows * width * size));
    memset(line, 0, (size_t)(width * size));
    for (int64_t k0 = 0; k0 < w->members; k0 += DEPTH) {
        int64_t kc = w->members - k0 < DEPTH ? w->members - k0 : DEPTH;
        for (int64_t k = 0; k < kc; k++) {
            line_of(f->ct, w, list, stretches, k0 + k, line);
            for (int64_t j = 0; j < width; j += tile->nr)
                memcpy(columns + (j * kc + k * tile->nr) * size, line + j * size,
                       (size_t)(tile->nr * size));
        }
        for (int64_t j = 0; j < width; j += tile->nr)
            for (int64_t i = 0; i < rows; i += tile->mr)
                tile->run(kc, panels + (k0 * rows + i * kc) * size, columns + j * kc * size,
                          sums + (i * width + j) * size, width);
    }
    if (f->ct == TN__F32)
        store_f32(f, group, begin, n, (const float *)(const void *)sums, width);
    else
        store_f64(f, group, begin, n, (const double *)(const void *)sums, width);
    tn__scratch_give(memory);
    return TN_OK;
}

static tn_status forth_part(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = forth_block(user, i);
    return status;
}

tn_status tn__convolution(const tn_call *call)
{
    const tn_convolution_options *o = call->options;
    const tn_view *x = call->in[0], *weight = call->in[1], *y = call->out[0];
    struct forth f = { .ct = tn__ct_of(tn_view_dtype(x)), .y = y, .bias = call->in[2] };
    const tn_view *dense = weight;
    tn_view copy = *weight;
    int64_t strides[TN_MAX_DIMS], next = 1;
    tn_status status = TN_OK;
    char *packed = NULL, *plain = NULL;

    if (tn__view_count(y) == 0)
        return TN_OK;
    f.size = (int64_t)tn__ct_size(f.ct);
    lay_out(&f.w, x, weight->shape + 2, y->shape + 2, o->stride, o->padding, o->dilation,
            o->groups);
    f.outputs = y->shape[1] / o->groups;
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t own = i - (DIMS - (y->ndim - 2));
        f.y_step[i] = own < 0 ? 0 : y->strides[2 + own];
    }
    f.blocks = (f.w.images * f.w.places + BLOCK - 1) / BLOCK;
    const struct tn__tile *tile = &tn__products->tile[f.ct];
    f.group_bytes = up(f.outputs, tile->mr) * f.w.members * f.size;
    packed = tn__scratch_take((size_t)(f.group_bytes * o->groups) + 64);
    if (!packed)
        return TN_ERR_MEMORY;
    if (!tn__view_dense(weight)) {
        for (int32_t d = weight->ndim; d-- > 0; next *= weight->shape[d])
            strides[d] = next;
        plain = tn__scratch_take((size_t)(next * f.size) + 64);
        copy.data = plain;
        copy.byte_offset = 0;
        copy.strides = strides;
        dense = &copy;
        status = plain ? tn__copy_views(&copy, weight) : TN_ERR_MEMORY;
    }
    for (int64_t g = 0; g < o->groups && status == TN_OK; g++)
        pack_rows(f.ct, tn__view_at(dense) + g * f.outputs * f.w.members * f.size, f.outputs,
                  f.w.members, f.w.members, 1, tile->mr, packed + g * f.group_bytes);
    f.panels = packed;
    if (status == TN_OK)
        status = tn_parallel_for(f.blocks * o->groups, 1, forth_part, &f);
    tn__scratch_give(packed);
    if (plain)
        tn__scratch_give(plain);
    return status;
}

/* ---- the weight's gradient ------------------------------------------------------------------- */

struct weigh {
    struct windows w;
    enum tn__ct ct;
    int64_t size, outputs;
    const tn_view *gy, *gw;
    int64_t blocks; /* of members */
    int64_t width;
    int64_t gy_step[DIMS];
};

/* Row `output` of gy over the columns of the stretches' block [begin, begin + n). */
static void gradient_line(const struct weigh *f, int64_t output, int64_t begin, int64_t n, char *to,
                          int64_t pace)
{
    const struct windows *w = &f->w;
    for (int64_t at = 0; at < n;) {
        int64_t column = begin + at, image = column / w->places, place = column % w->places;
        int64_t last = place % w->count[2], row = place / w->count[2], run = w->count[2] - last;
        const char *from = tn__view_at(f->gy) +
                           (image * f->gy->strides[0] + output * f->gy->strides[1] +
                            row / w->count[1] * f->gy_step[0] + row % w->count[1] * f->gy_step[1] +
                            last * f->gy_step[2]) *
                               f->size;
        run = run < n - at ? run : n - at;
        move(f->size, run, from, f->gy_step[2], to + at * pace * f->size, pace);
        at += run;
    }
}

static tn_status weigh_block(const struct weigh *f, int64_t index)
{
    const struct windows *w = &f->w;
    const struct tn__tile *tile = &tn__products->tile[f->ct];
    int64_t group = index / f->blocks, first = index % f->blocks * f->width;
    int64_t n = w->members - first < f->width ? w->members - first : f->width;
    int64_t width = up(n, tile->nr), rows = up(f->outputs, tile->mr), size = f->size;
    int64_t all = w->images * w->places;
    struct stretch list[DEPTH];
    char *memory = tn__scratch_take(
        (size_t)(size * (rows * width + DEPTH * width + DEPTH * rows + DEPTH)) + 64);
    if (!memory)
        return TN_ERR_MEMORY;
    char *sums = memory, *columns = sums + rows * width * size,
         *panels = columns + DEPTH * width * size, *line = panels + DEPTH * rows * size;
    memset(sums, 0, (size_t)(rows * width * size));
    for (int64_t k0 = 0; k0 < all; k0 += DEPTH) {
        int64_t kc = all - k0 < DEPTH ? all - k0 : DEPTH;
        int64_t stretches = find_stretches(w, group, k0, kc, list);
        if (n < width)
            memset(columns, 0, (size_t)(kc * width * size));
        if (f->outputs < rows)
            memset(panels, 0, (size_t)(kc * rows * size));
        for (int64_t j = 0; j < n; j++) {
            char *to = columns + (j / tile->nr * tile->nr * kc + j % tile->nr) * size;
            line_of(f->ct, w, list, stretches, first + j, line);
            move(size, kc, line, 1, to, tile->nr);
        }
        for (int64_t i = 0; i < f->outputs; i++)
            gradient_line(f, group * f->outputs + i, k0, kc,
                          panels + (i / tile->mr * tile->mr * kc + i % tile->mr) * size, tile->mr);
        for (int64_t j = 0; j < width; j += tile->nr)
            for (int64_t i = 0; i < rows; i += tile->mr)
                tile->run(kc, panels + i * kc * size, columns + j * kc * size,
                          sums + (i * width + j) * size, width);
    }
    for (int64_t i = 0; i < f->outputs; i++)
        memcpy(tn__view_at(f->gw) + ((group * f->outputs + i) * w->members + first) * size,
               sums + i * width * size, (size_t)(n * size));
    tn__scratch_give(memory);
    return TN_OK;
}

static tn_status weigh_part(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = weigh_block(user, i);
    return status;
}

tn_status tn__convolution_grad_weight(const tn_call *call)
{
    const tn_convolution_grad_weight_options *o = call->options;
    const tn_view *gy = call->in[0], *x = call->in[1], *gw = call->out[0];
    struct weigh f = { .ct = tn__ct_of(tn_view_dtype(x)), .gy = gy, .gw = gw };

    if (tn__view_count(gw) == 0)
        return TN_OK;
    f.size = (int64_t)tn__ct_size(f.ct);
    lay_out(&f.w, x, gw->shape + 2, gy->shape + 2, o->stride, o->padding, o->dilation, o->groups);
    f.outputs = gw->shape[0] / o->groups;
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t own = i - (DIMS - (gy->ndim - 2));
        f.gy_step[i] = own < 0 ? 0 : gy->strides[2 + own];
    }
    /* Blocks of members: a few panels each, so that there is work for several threads; gy is packed once a block. */
    f.width = 8 * tn__products->tile[f.ct].nr;
    f.blocks = (f.w.members + f.width - 1) / f.width;
    return tn_parallel_for(f.blocks * o->groups, 1, weigh_part, &f);
}

/* The result lies row by row: the core makes it so unless it was given. */
bool tn__convolution_plain(const tn_call *call, char *reason, size_t size)
{
    if (call->out == NULL || call->out[0] == NULL || tn__view_dense(call->out[0]))
        return true;
    tn_snprint(reason, size, "the gradient of a weight is written row by row only");
    return false;
}
