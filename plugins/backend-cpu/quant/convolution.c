/* SPDX-License-Identifier: MIT
 *
 * The operator convolution_int8: the windows of one image become rows, which are multiplied with
 * the packed weight of each group. */
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "quant/quant.h"

enum { DIMS = 3, QUAD = TN__QUANT_QUAD };

/* Sizes with three dimensions each; missing ones come first and have size 1. */
struct geometry {
    int64_t images, channels, outputs, groups;
    int64_t size[DIMS], kernel[DIMS], count[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS];
    int64_t k, rows; /* of one group; windows of one image */
};

/* One number for all dimensions, one for each, or none. */
static void read_option(tn_ints given, int32_t dims, int64_t otherwise, int64_t *to)
{
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t at = i - (DIMS - dims);

        to[i] = at < 0 || given.count <= 0 ? otherwise : given.at[given.count == 1 ? 0 : at];
    }
    for (int32_t i = 0; i < DIMS - dims; i++)
        to[i] = otherwise;
}

static struct geometry geometry_of(const tn_call *call)
{
    const tn_convolution_int8_options *o = call->options;
    const tn_view *x = call->in[TN__QUANT_X], *w = call->in[TN__QUANT_WEIGHT];
    const tn_view *y = call->out[0];
    const int32_t dims = x->ndim - 2;
    struct geometry g = { x->shape[0], x->shape[1], w->shape[0], o->groups, .rows = 1 };

    read_option(o->stride, dims, 1, g.stride);
    read_option(o->padding, dims, 0, g.padding);
    read_option(o->dilation, dims, 1, g.dilation);
    g.k = g.channels / g.groups;
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t at = i - (DIMS - dims) + 2;

        g.size[i] = at < 2 ? 1 : x->shape[at];
        g.kernel[i] = at < 2 ? 1 : w->shape[at];
        g.count[i] = at < 2 ? 1 : y->shape[at];
        g.k *= g.kernel[i];
        g.rows *= g.count[i];
    }
    return g;
}

static bool supports_convolution_int8(const tn_call *call, char *reason, size_t size)
{
    const struct geometry g = geometry_of(call);

    if (g.k > TN__QUANT_MOST) {
        tn_snprint(reason, size, "more than %d products of each sum", TN__QUANT_MOST);
        return false;
    }
    if (tn__quant_dense(call->in[TN__QUANT_X]) && tn__quant_dense(call->in[TN__QUANT_WEIGHT]) &&
        tn__quant_dense(call->in[TN__QUANT_RESIDUAL]) && tn__span_result_dense(call))
        return true;
    tn_snprint(reason, size, "an input or the result is not contiguous");
    return false;
}

/* ---- the weight ---- */

static struct tn__quant_source source_of(const tn_call *call, const struct geometry *g,
                                         int64_t group)
{
    const tn_view *w = call->in[TN__QUANT_WEIGHT];
    const int64_t outputs = g->outputs / g->groups;

    return (struct tn__quant_source){ .at = (const uint8_t *)w->data + w->byte_offset +
                                            group * outputs * g->k,
                                      .n = outputs,
                                      .k = g->k,
                                      .n_step = g->k,
                                      .k_step = 1,
                                      .is_signed = tn__quant_is_signed(w) };
}

/* The bytes of the packed weight of each group. */
static size_t group_bytes(const struct geometry *g)
{
    const struct tn__quant_source from = { .n = g->outputs / g->groups, .k = g->k };

    return (tn__quant_weight_bytes(&from) + 63) / 64 * 64;
}

static tn_status pack_groups(const tn_call *call, const struct geometry *g, char *to)
{
    for (int64_t i = 0; i < g->groups; i++, to += group_bytes(g)) {
        struct tn__quant_source from = source_of(call, g, i);

        if (tn__quant_weight_pack(&from, to) == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

static uint64_t key_convolution_int8(const tn_call *call)
{
    const tn_convolution_int8_options *o = call->options;

    return tn__span_view_count(call->in[TN__QUANT_WEIGHT]) >= 1024 ? (uint64_t)o->groups : 0;
}

static tn_status prepare_convolution_int8(const tn_call *call, tn_prepared_data *out)
{
    const struct geometry g = geometry_of(call);
    tn_status status;

    if (!(call->constant >> TN__QUANT_WEIGHT & 1) || g.outputs == 0)
        return TN_OK;
    out->bytes = group_bytes(&g) * (size_t)g.groups;
    out->data = tn__scratch_own((size_t)out->bytes);
    if (out->data == NULL)
        return TN_ERR_MEMORY;
    status = pack_groups(call, &g, out->data);
    if (status != TN_OK) {
        tn__scratch_free(out->data);
        out->data = NULL;
    }
    return status;
}

static void release(const tn_kernel_def *kernel, void *data)
{
    (void)kernel;
    tn__scratch_free(data);
}

/* ---- rows ---- */

struct work {
    const tn_call *call;
    const struct geometry *g;
    const uint8_t *x; /* the channels of a group of one image */
    int8_t *rows;
    int32_t *sums;
    int64_t step;
    uint8_t flip, zero; /* zero: what stands for 0 in the padding */
};

/* One row of a window in one channel: kernel[2] elements. */
static void copy_line(const struct work *w, const uint8_t *line, int64_t column, uint8_t *to)
{
    const struct geometry *g = w->g;

    for (int64_t i = 0; i < g->kernel[2]; i++, column += g->dilation[2])
        to[i] = line != NULL && column >= 0 && column < g->size[2] ? line[column] : w->zero;
}

/* The window at `place` as a row: [channels][kernel...]. */
static void copy_window(const struct work *w, const int64_t *place, uint8_t *to)
{
    const struct geometry *g = w->g;
    const int64_t plane = g->size[0] * g->size[1] * g->size[2];
    int64_t from[DIMS];

    for (int i = 0; i < DIMS; i++)
        from[i] = place[i] * g->stride[i] - g->padding[i];
    for (int64_t c = 0; c < g->channels / g->groups; c++)
        for (int64_t a = 0; a < g->kernel[0]; a++)
            for (int64_t b = 0; b < g->kernel[1]; b++, to += g->kernel[2]) {
                int64_t z = from[0] + a * g->dilation[0], y = from[1] + b * g->dilation[1];
                bool inside = z >= 0 && z < g->size[0] && y >= 0 && y < g->size[1];

                copy_line(w, inside ? w->x + c * plane + (z * g->size[1] + y) * g->size[2] : NULL,
                          from[2], to);
            }
}

static tn_status make_rows(void *user, int64_t begin, int64_t end)
{
    const struct work *w = user;
    const struct geometry *g = w->g;
    bool dot;
    const struct tn__quant_loops *loops = tn__quant_loops_chosen(&dot);

    for (int64_t i = begin; i < end; i++) {
        int8_t *to = w->rows + i * w->step;
        const int64_t place[DIMS] = { i / (g->count[1] * g->count[2]),
                                      i / g->count[2] % g->count[1], i % g->count[2] };

        copy_window(w, place, (uint8_t *)to);
        w->sums[i] = (int32_t)loops->flip(g->k, to, w->flip, to);
        memset(to + g->k, 0, (size_t)(w->step - g->k));
    }
    return TN_OK;
}

/* ---- the call ---- */

/* One group of one image. */
static tn_status compute(struct work *w, int64_t image, int64_t group, struct tn__quant_run *run)
{
    const struct geometry *g = w->g;
    const tn_view *x = w->call->in[TN__QUANT_X], *y = w->call->out[0];
    const int64_t plane = g->size[0] * g->size[1] * g->size[2], item = tn__view_item(y);
    const int64_t outputs = g->outputs / g->groups, channels = g->channels / g->groups;
    const int64_t first = (image * g->outputs + group * outputs) * g->rows;
    tn_status status;

    w->x = (const uint8_t *)tn__view_at(x) + (image * g->channels + group * channels) * plane;
    status = tn_parallel_for(g->rows, 1 + 16384 / (1 + g->k), make_rows, w);
    run->y = tn__view_at(y) + first * item;
    run->y_row = item;
    run->y_column = g->rows * item;
    run->residual_offset = first;
    return status == TN_OK ? tn__quant_run(run) : status;
}

/* The scale and zero point of an image for each of its rows. */
static void set_image(struct work *w, int64_t image, float *scale, int32_t *zero)
{
    const bool one = tn__span_view_count(w->call->in[TN__QUANT_X_SCALE]) == 1;

    tn__quant_row_scale(w->call, one ? 0 : image, scale, zero);
    for (int64_t i = 1; i < w->g->rows; i++) {
        scale[i] = scale[0];
        zero[i] = zero[0];
    }
    w->zero = (uint8_t)(zero[0] + (w->flip != 0 ? 128 : 0));
}

/* Groups one after the other, so that the vectors of channels are made once for each. */
static tn_status run_group(const tn_call *call, struct work *w, int64_t group, const char *packed,
                           struct tn__quant_run *run)
{
    const struct geometry *g = w->g;
    const int64_t outputs = g->outputs / g->groups;
    void *channels = tn__quant_channels(call, group * outputs, outputs, run);
    tn_status status = channels != NULL ? TN_OK : TN_ERR_MEMORY;
    float *scale = (float *)(uintptr_t)run->x_scale;
    int32_t *zero = (int32_t *)(uintptr_t)run->x_zero;

    run->w = (const struct tn__quant_weight *)(const void *)(packed +
                                                             (size_t)group * group_bytes(g));
    for (int64_t image = 0; image < g->images && status == TN_OK; image++) {
        set_image(w, image, scale, zero);
        status = compute(w, image, group, run);
    }
    tn__scratch_give(channels);
    return status;
}

static tn_status run_convolution_int8(const tn_call *call)
{
    const tn_convolution_int8_options *o = call->options;
    const struct geometry g = geometry_of(call);
    struct work w = { .call = call,
                      .g = &g,
                      .step = (g.k + QUAD - 1) / QUAD * QUAD,
                      .flip = tn__quant_is_signed(call->in[TN__QUANT_X]) ? 0 : 128 };
    struct tn__quant_run run = { .min = (float)o->min, .max = (float)o->max, .rows = g.rows };
    char *own = NULL, *memory;
    const char *packed = call->prepared;
    tn_status status = TN_OK;

    if (tn__span_view_count(call->out[0]) == 0)
        return TN_OK;
    memory = tn__scratch_take((size_t)g.rows * (size_t)(w.step + 12));
    if (packed == NULL)
        packed = own = tn__scratch_take(group_bytes(&g) * (size_t)g.groups);
    if (memory == NULL || packed == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK && own != NULL)
        status = pack_groups(call, &g, own);
    if (memory != NULL) {
        run.x_scale = (float *)(void *)memory;
        run.x_zero = (int32_t *)(void *)(memory + g.rows * 4);
        run.x_sum = w.sums = (int32_t *)(void *)(memory + g.rows * 8);
        run.x = w.rows = (int8_t *)memory + g.rows * 12;
        run.x_step = w.step;
    }
    for (int64_t group = 0; group < g.groups && status == TN_OK; group++)
        status = run_group(call, &w, group, packed, &run);
    tn__scratch_give(own);
    tn__scratch_give(memory);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_KEEPS(convolution_int8, TN_BIT(TN_I8) | TN_BIT(TN_U8),
                     .supports = supports_convolution_int8,
                     .operand_dtypes = tn__quant_product_dtypes, .weights = 1 << TN__QUANT_WEIGHT,
                     .prepare_key = key_convolution_int8, .prepare = prepare_convolution_int8,
                     .release = release),
};
TN__KERNEL_TABLE(quant_convolution);
