/* SPDX-License-Identifier: MIT
 *
 * Windows of images as rows of a matrix (im2col). */
#include <string.h>

#include "base/dtype.h"
#include "base/span.h"
#include "conv/conv.h"

static void read_row(tn_ints given, int32_t dims, int64_t otherwise, int64_t *out)
{
    for (int32_t i = 0; i < TN__DIMS; i++) {
        int32_t own = i - (TN__DIMS - dims);
        out[i] = own < 0 || given.count <= 0 ? otherwise : given.at[given.count == 1 ? 0 : own];
    }
}

void tn__im2col_windows(struct tn__windows *w, const tn_view *x, const tn_view *y,
                        const tn_view *weight, tn_ints stride, tn_ints padding, tn_ints dilation,
                        int64_t groups)
{
    int32_t dims = x->ndim - 2;

    w->ct = tn__dtype_ct(tn_view_dtype(x));
    w->item = (int64_t)tn__dtype_ct_size(w->ct);
    w->images = x->shape[0];
    w->groups = groups;
    w->channels = x->shape[1] / groups;
    w->outputs = y->shape[1] / groups;
    read_row(stride, dims, 1, w->stride);
    read_row(padding, dims, 0, w->padding);
    read_row(dilation, dims, 1, w->dilation);
    w->after = NULL;
    for (int32_t i = 0; i < TN__DIMS; i++) {
        int32_t own = i - (TN__DIMS - dims);
        w->size[i] = own < 0 ? 1 : x->shape[2 + own];
        w->kernel[i] = own < 0 ? 1 : weight->shape[2 + own];
        w->count[i] = own < 0 ? 1 : y->shape[2 + own];
    }
    w->places = tn__windows_product(w->count);
    w->taps = tn__windows_product(w->kernel);
}

static inline void move(char *to, const char *from, int64_t bytes)
{
    if (bytes % 16 == 0 && bytes <= 1024) {
        typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
        for (int64_t i = 0; i < bytes; i += 16)
            *(four *)(void *)(to + i) = *(const four *)(const void *)(from + i);
        return;
    }
    if (bytes <= 128) {
        for (; bytes >= 8; bytes -= 8, to += 8, from += 8)
            memcpy(to, from, 8);
        if (bytes > 0)
            memcpy(to, from, 4);
        return;
    }
    memcpy(to, from, (size_t)bytes);
}

static inline void zero(char *to, int64_t bytes)
{
    if (bytes > 64) {
        memset(to, 0, (size_t)bytes);
        return;
    }
    for (; bytes > 0; bytes -= 4, to += 4)
        memset(to, 0, 4);
}

void tn__im2col_rows(const struct tn__windows *w, const struct tn__images *x, int64_t group,
                     int64_t first, int64_t n, int64_t tap, int64_t taps, void *to, int64_t pitch)
{
    int64_t bytes = w->channels * w->item, last = tap + taps;
    int64_t image = first / w->places, place = first % w->places;
    int64_t at[TN__DIMS] = { place / w->count[2] / w->count[1], place / w->count[2] % w->count[1],
                             place % w->count[2] };
    int64_t tap2 = tap % w->kernel[2], tap1 = tap / w->kernel[2] % w->kernel[1],
            tap0 = tap / w->kernel[2] / w->kernel[1];
    bool together = w->dilation[2] == 1 && w->groups == 1 && x->step[2] == w->channels;
    char *row = to;

    for (int64_t i = 0; i < n; i++, row += pitch * w->item) {
        const char *from = x->at + (image * x->image + group * w->channels) * w->item;
        int64_t c = at[2] * w->stride[2] - w->padding[2];
        char *out = row;
        int64_t k2 = tap2, k1 = tap1, k0 = tap0, run;
        for (int64_t t = tap; t < last; t += run, k2 = 0) {
            int64_t begin = c + k2 * w->dilation[2];
            int64_t d = at[0] * w->stride[0] - w->padding[0] + k0 * w->dilation[0],
                    h = at[1] * w->stride[1] - w->padding[1] + k1 * w->dilation[1];
            run = w->kernel[2] - k2 < last - t ? w->kernel[2] - k2 : last - t;
            if (++k1 == w->kernel[1]) {
                k1 = 0;
                k0++;
            }
            if (d < 0 || d >= w->size[0] || h < 0 || h >= w->size[1]) {
                zero(out, run * bytes);
                out += run * bytes;
                continue;
            }
            const char *line = from + (d * x->step[0] + h * x->step[1]) * w->item;
            if (together) {
                int64_t low = begin < 0 ? -begin : 0,
                        high = w->size[2] - begin < run ? w->size[2] - begin : run;
                low = low < run ? low : run;
                high = high > low ? high : low;
                zero(out, low * bytes);
                move(out + low * bytes, line + (begin + low) * bytes, (high - low) * bytes);
                zero(out + high * bytes, (run - high) * bytes);
                out += run * bytes;
                continue;
            }
            for (int64_t k = 0; k < run; k++, out += bytes, begin += w->dilation[2])
                if (begin < 0 || begin >= w->size[2])
                    zero(out, bytes);
                else
                    move(out, line + begin * x->step[2] * w->item, bytes);
        }
        if (++at[2] == w->count[2]) {
            at[2] = 0;
            if (++at[1] == w->count[1]) {
                at[1] = 0;
                if (++at[0] == w->count[0]) {
                    at[0] = 0;
                    image++;
                }
            }
        }
    }
}

bool tn__im2col_plain(const struct tn__windows *w, const struct tn__images *x, int64_t *step)
{
    *step = x->step[TN__DIMS - 1];
    for (int32_t i = 0; i < TN__DIMS; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->padding[i] != 0)
            return false;
    return true;
}
