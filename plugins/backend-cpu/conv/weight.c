/* SPDX-License-Identifier: MIT
 *
 * The weight of a convolution in the order in which products read it: packed into panels, or
 * transformed (winograd.c). Inference keeps it between calls (tn_kernel_def.prepare_key). */
#include <string.h>

#include "base/scratch.h"
#include "base/span.h"
#include "conv/weight.h"
#include "conv/winograd.h"
#include "matmul/gemm.h"
#include "op/copy.h"

enum { SMALL = 1024 }; /* elements of a weight for which keeping a copy does not pay */

/* ---- panels ---------------------------------------------------------------------------------- */

struct tn__panels tn__weight_panels(const struct tn__windows *w, bool turned)
{
    return (struct tn__panels){ .ct = w->ct,
                                .item = w->item,
                                .groups = w->groups,
                                .turned = turned,
                                .columns = w->outputs,
                                .inner = w->channels,
                                .taps = w->taps,
                                .depth = w->taps * w->channels,
                                .width = tn__gemm_width(w->ct, w->outputs) };
}

static void pack_panel(const struct tn__panels *p, int64_t index)
{
    int64_t each = tn__up(p->columns, p->width) / p->width, group = index / each,
            first = index % each * p->width, item = p->item;
    int64_t here = p->columns - first < p->width ? p->columns - first : p->width;
    char *to = p->to + index * p->depth * p->width * item;
    const char *from = p->weight + group * p->columns * p->depth * item;
    /* A column is an output or, for the gradient, a channel. `column` is the distance in the weight
     * from one column to the next, `along` the distance along the inner dimension. */
    int64_t column = (p->turned ? p->taps : p->depth) * item,
            along = (p->turned ? p->columns * p->taps : p->taps) * item;
    int64_t line = p->width * item, step = p->inner * line;

    from += first * column;
    if (here < p->width)
        memset(to, 0, (size_t)(p->depth * line));
    if (p->taps == 1) {
        tn__gemm_pack(p->ct, p->depth, here, p->width, from, p->turned ? p->columns : 1,
                      p->turned ? 1 : p->depth, to);
        return;
    }
    for (int64_t i = 0; i < p->inner; i++) {
        const char *x = from + i * along;
        char *y = to + i * line + (p->turned ? (p->taps - 1) * step : 0);
        if (item == 4)
            tn__copy_transpose_4(p->taps, here, y, p->turned ? -step : step, x, column);
        else
            tn__copy_transpose_8(p->taps, here, y, p->turned ? -step : step, x, column);
    }
}

static tn_status pack_part(void *user, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        pack_panel(user, i);
    return TN_OK;
}

static tn_status pack_all(struct tn__panels *p)
{
    int64_t count = p->groups * (tn__up(p->columns, p->width) / p->width);

    return tn_parallel_for(count, 1 + 65536 / (1 + p->depth * p->width), pack_part, p);
}

tn_status tn__weight_plain(const tn_view *weight, enum tn__ct ct, const char **at, void **copy)
{
    const tn_dtype dtype = tn__dtype_of_ct(ct);
    int64_t strides[TN_MAX_DIMS], next = 1;
    tn_view dense = *weight;
    tn_status status;

    *copy = NULL;
    *at = tn__view_at(weight);
    if (tn__span_view_dense(weight) && tn_view_dtype(weight) == dtype)
        return TN_OK;
    for (int32_t d = weight->ndim; d-- > 0; next *= weight->shape[d])
        strides[d] = next;
    *copy = tn__scratch_take((size_t)next * tn__dtype_ct_size(ct));
    if (!*copy)
        return TN_ERR_MEMORY;
    tn__view_as_floats(&dense, 8 * (int)tn__dtype_ct_size(ct));
    dense.data = *copy;
    dense.byte_offset = 0;
    dense.strides = strides;
    *at = *copy;
    status = tn__copy_views(&dense, weight);
    if (status != TN_OK) {
        tn__scratch_give(*copy);
        *copy = NULL;
    }
    return status;
}

/* ---- taps ------------------------------------------------------------------------------------ */

struct taps {
    const struct tn__windows *w;
    const char *weight;
    char *to;
    int64_t width, full; /* columns of a panel; channels rounded up to whole panels */
};

/* Packs panels [begin, end), counted over all groups, of all taps: the taps of a channel are
 * neighbours in the weight, and are read together. */
static tn_status pack_taps(void *user, int64_t begin, int64_t end)
{
    const struct taps *t = user;
    const struct tn__windows *w = t->w;
    const int64_t item = w->item, panels = t->full / t->width, line = t->width * item;
    const int64_t next = w->outputs * t->full * item; /* from one tap to the next */

    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / panels, first = i % panels * t->width,
                      here = w->channels - first < t->width ? w->channels - first : t->width;
        const char *from = t->weight + (group * w->outputs * w->channels + first) * w->taps * item;
        char *to = t->to + group * w->taps * next + i % panels * w->outputs * line;

        for (int64_t tap = 0; tap < w->taps && here < t->width; tap++)
            memset(to + tap * next, 0, (size_t)(w->outputs * line));
        for (int64_t o = 0; o < w->outputs; o++) {
            const char *x = from + o * w->channels * w->taps * item;
            if (item == 4)
                tn__copy_transpose_4(w->taps, here, to + o * line, next, x, w->taps * 4);
            else
                tn__copy_transpose_8(w->taps, here, to + o * line, next, x, w->taps * 8);
        }
    }
    return TN_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

static tn_status pack_windows(const struct tn__windows *w, const char *weight, char *to)
{
    const int64_t item = w->item, n = w->taps * w->channels, width = tn__gemm_width(w->ct, n);
    char *line = tn__scratch_take((size_t)(tn__up(n, width) * item));

    if (!line)
        return TN_ERR_MEMORY;
    memset(line + n * item, 0, (size_t)((tn__up(n, width) - n) * item));
    for (int64_t o = 0; o < w->outputs; o++) {
        const char *from = weight + o * n * item;
        if (item == 4)
            tn__copy_transpose_4(w->taps, w->channels, line, w->channels * 4, from, w->taps * 4);
        else
            tn__copy_transpose_8(w->taps, w->channels, line, w->channels * 8, from, w->taps * 8);
        for (int64_t j = 0; j < n; j += width)
            memcpy(to + (j * w->outputs + o * width) * item, line + j * item,
                   (size_t)(width * item));
    }
    tn__scratch_give(line);
    return TN_OK;
}

/* ---- any order ------------------------------------------------------------------------------- */

int64_t tn__weight_bytes(const struct tn__windows *w, enum tn__reading how)
{
    const int64_t taps = w->groups * w->taps * w->item;

    if (how == TN__READ_TRANSFORMED)
        return tn__winograd_bytes(w);
    if (how == TN__READ_WINDOWS)
        return w->outputs * w->item *
               tn__up(w->taps * w->channels, tn__gemm_width(w->ct, w->taps * w->channels));
    if (how == TN__READ_TAPS)
        return taps * w->outputs * tn__up(w->channels, tn__gemm_width(w->ct, w->channels));
    return taps * w->channels * tn__up(w->outputs, tn__gemm_width(w->ct, w->outputs));
}

tn_status tn__weight_order(const struct tn__windows *w, enum tn__reading how, bool turned,
                           const tn_view *weight, void *to)
{
    struct tn__panels p = tn__weight_panels(w, turned);
    struct taps t = { .w = w, .to = to, .width = tn__gemm_width(w->ct, w->channels) };
    void *copy;
    tn_status status = tn__weight_plain(weight, w->ct, &p.weight, &copy);

    p.to = to;
    t.weight = p.weight;
    t.full = tn__up(w->channels, t.width);
    if (status != TN_OK)
        return status;
    switch (how) {
    case TN__READ_TRANSFORMED: status = tn__winograd_transform(w, p.weight, turned, to); break;
    case TN__READ_TAPS:
        status = tn_parallel_for(w->groups * (t.full / t.width), 1, pack_taps, &t);
        break;
    case TN__READ_WINDOWS: status = pack_windows(w, p.weight, to); break;
    case TN__READ_IN_PLACE:
    case TN__READ_PANELS: status = pack_all(&p); break;
    }
    tn__scratch_give(copy);
    return status;
}

tn_status tn__weight_take(const struct tn__windows *w, enum tn__reading how, bool turned,
                          const tn_view *weight, const void *prepared, const char **at, void **copy)
{
    tn_status status = TN_OK;

    *copy = NULL;
    *at = prepared;
    if (prepared)
        return TN_OK;
    *at = *copy = tn__scratch_take((size_t)tn__weight_bytes(w, how));
    status = *copy ? tn__weight_order(w, how, turned, weight, *copy) : TN_ERR_MEMORY;
    if (status != TN_OK) {
        tn__scratch_give(*copy);
        *copy = NULL;
    }
    return status;
}

/* ---- kept between calls ---------------------------------------------------------------------- */

uint64_t tn__weight_key(const struct tn__windows *w, enum tn__reading how)
{
    if (how == TN__READ_IN_PLACE || w->groups * w->outputs * w->channels * w->taps < SMALL)
        return 0;
    return (uint64_t)w->groups << 8 | how;
}

tn_status tn__weight_prepare(const tn_call *call, const struct tn__windows *w, enum tn__reading how,
                             bool turned, tn_prepared_data *out)
{
    const int64_t bytes = tn__weight_bytes(w, how);
    tn_status status;

    if (how == TN__READ_IN_PLACE || !(call->constant >> 1 & 1))
        return TN_OK;
    out->data = tn__scratch_own((size_t)bytes);
    out->bytes = (uint64_t)bytes;
    if (!out->data)
        return TN_ERR_MEMORY;
    status = tn__weight_order(w, how, turned, call->in[1], out->data);
    if (status != TN_OK) {
        tn__scratch_free(out->data);
        out->data = NULL;
    }
    return status;
}

void tn__weight_release(const tn_kernel_def *kernel, void *data)
{
    (void)kernel;
    tn__scratch_free(data);
}
