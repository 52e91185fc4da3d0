/* SPDX-License-Identifier: MIT
 *
 * The operator convolution_int8, but for depthwise.c. The channels of a group of an image are
 * brought next to each other, with the padding around the image, so that a line of a window is
 * contiguous; windows become rows, which are multiplied with the packed weight. */
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "quant/quant.h"

enum {
    DIMS = TN__QUANT_DIMS,
    QUAD = TN__QUANT_QUAD,
    MOST_PADDED = 1 << 30 /* bytes of a padded image */
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

/* a * b of sizes, at most INT64_MAX: tensors without elements can have any sizes. */
static int64_t times(int64_t a, int64_t b)
{
    return b > 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

static struct tn__quant_geometry geometry_of(const tn_call *call)
{
    const tn_convolution_int8_options *o = call->options;
    const tn_view *x = call->in[TN__QUANT_X], *w = call->in[TN__QUANT_WEIGHT];
    const tn_view *y = call->out[0];
    const int32_t dims = x->ndim - 2;
    struct tn__quant_geometry g = { x->shape[0], x->shape[1], w->shape[0], o->groups, .rows = 1 };

    read_option(o->stride, dims, 1, g.stride);
    read_option(o->padding, dims, 0, g.padding);
    read_option(o->dilation, dims, 1, g.dilation);
    g.inner = g.channels / g.groups;
    g.quads = (g.inner + QUAD - 1) / QUAD * QUAD;
    g.taps = 1;
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t at = i - (DIMS - dims) + 2;

        g.size[i] = at < 2 ? 1 : x->shape[at];
        g.kernel[i] = at < 2 ? 1 : w->shape[at];
        g.count[i] = at < 2 ? 1 : y->shape[at];
        g.padded[i] = g.size[i] + 2 * g.padding[i];
        g.taps = times(g.taps, g.kernel[i]);
        g.rows = times(g.rows, g.count[i]);
    }
    return g;
}

static bool supports_convolution_int8(const tn_call *call, char *reason, size_t size)
{
    const struct tn__quant_geometry g = geometry_of(call);

    if (g.inner == 0) {
        tn_snprint(reason, size, "no input channels");
        return false;
    }
    if ((double)g.taps * (double)g.inner > TN__QUANT_MOST) {
        tn_snprint(reason, size, "more than %d products of each sum", TN__QUANT_MOST);
        return false;
    }
    if ((double)g.padded[0] * (double)g.padded[1] * (double)g.padded[2] * (double)g.quads >
        MOST_PADDED) {
        tn_snprint(reason, size, "a large image with its padding");
        return false;
    }
    if (tn__quant_dense(call->in[TN__QUANT_X]) && tn__quant_dense(call->in[TN__QUANT_WEIGHT]) &&
        tn__quant_dense(call->in[TN__QUANT_RESIDUAL]) && tn__span_result_dense(call))
        return true;
    tn_snprint(reason, size, "an input or the result is not contiguous");
    return false;
}

/* ---- the weight ---- */

static struct tn__quant_source source_of(const tn_call *call, const struct tn__quant_geometry *g,
                                         int64_t group)
{
    const tn_view *w = call->in[TN__QUANT_WEIGHT];
    const int64_t outputs = g->outputs / g->groups;

    return (struct tn__quant_source){ .at = (const uint8_t *)w->data + w->byte_offset +
                                            group * outputs * g->inner * g->taps,
                                      .n = outputs,
                                      .taps = g->taps,
                                      .channels = g->inner,
                                      .n_step = g->inner * g->taps,
                                      .tap_step = 1,
                                      .step = g->taps,
                                      .is_signed = tn__quant_is_signed(w) };
}

/* The bytes of the packed weight of each group. */
static size_t group_bytes(const struct tn__quant_geometry *g)
{
    const struct tn__quant_source from = { .n = g->outputs / g->groups,
                                           .taps = g->taps,
                                           .channels = g->inner };

    return (tn__quant_weight_bytes(&from) + 63) / 64 * 64;
}

static tn_status pack_groups(const tn_call *call, const struct tn__quant_geometry *g, char *to)
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

    return tn__span_view_count(call->in[TN__QUANT_WEIGHT]) >= 1024 &&
                   call->in[TN__QUANT_WEIGHT]->shape[1] > 1
               ? (uint64_t)o->groups
               : 0;
}

static tn_status prepare_convolution_int8(const tn_call *call, tn_prepared_data *out)
{
    const struct tn__quant_geometry g = geometry_of(call);
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
    const struct tn__quant_geometry *g;
    const uint8_t *x; /* the channels of a group of one image */
    int8_t *image;    /* [padded...][quads], signed */
    int32_t *pixels;  /* the sum of each pixel of it */
    int8_t *rows;     /* [rows][taps][quads]; or the image itself */
    int32_t *sums;    /* of each row; or pixels */
    uint8_t flip;
    int8_t zero;   /* what stands for 0, signed */
    bool in_place; /* windows of one pixel, each used once */
};

/* Four channels of a line of n pixels; `count` of them are there. */
static void gather_quad(const struct work *w, const uint8_t *from, int64_t plane, int64_t count,
                        int64_t n, int8_t *to)
{
    const uint8_t flip = w->flip;
    const int64_t step = w->g->quads;

    if (count >= QUAD) {
        const uint8_t *b = from + plane, *c = b + plane, *d = c + plane;

        for (int64_t i = 0; i < n; i++) {
            uint8_t four[QUAD] = { from[i] ^ flip, b[i] ^ flip, c[i] ^ flip, d[i] ^ flip };

            memcpy(to + i * step, four, QUAD);
        }
        return;
    }
    for (int64_t c = 0; c < count; c++)
        for (int64_t i = 0; i < n; i++)
            to[i * step + c] = (int8_t)(from[c * plane + i] ^ flip);
}

static void add_pixels(int64_t n, int64_t step, int64_t count, const int8_t *x, int32_t *sums)
{
    for (int64_t i = 0; i < n; i++, x += step) {
        int32_t sum = 0;

        for (int64_t c = 0; c < count; c++)
            sum += x[c];
        sums[i] = sum;
    }
}

/* Lines [begin, end) of the padded image. */
static tn_status gather_lines(void *user, int64_t begin, int64_t end)
{
    const struct work *w = user;
    const struct tn__quant_geometry *g = w->g;
    const int64_t plane = g->size[0] * g->size[1] * g->size[2], line = g->padded[2] * g->quads;

    for (int64_t i = begin; i < end; i++) {
        const int64_t z = i / g->padded[1] - g->padding[0], y = i % g->padded[1] - g->padding[1];
        const bool inside = z >= 0 && z < g->size[0] && y >= 0 && y < g->size[1];
        const uint8_t *from = w->x + (z * g->size[1] + y) * g->size[2];
        int8_t *to = w->image + i * line;

        if (!inside || g->padding[2] > 0)
            memset(to, w->zero, (size_t)line);
        for (int64_t c = 0; c < g->inner && inside; c += QUAD)
            gather_quad(w, from + c * plane, plane, g->inner - c, g->size[2],
                        to + g->padding[2] * g->quads + c);
        add_pixels(g->padded[2], g->quads, g->inner, to, w->pixels + i * g->padded[2]);
    }
    return TN_OK;
}

/* One line of a window, from pixel `at` on; returns the sum of its pixels. */
static int32_t copy_line(const struct work *w, int64_t at, int8_t *to)
{
    const struct tn__quant_geometry *g = w->g;
    const int64_t apart = g->dilation[2];
    int32_t sum = 0;

    if (apart == 1)
        memcpy(to, w->image + at * g->quads, (size_t)(g->kernel[2] * g->quads));
    for (int64_t i = 0; i < g->kernel[2]; i++, at += apart) {
        sum += w->pixels[at];
        if (apart != 1)
            memcpy(to + i * g->quads, w->image + at * g->quads, (size_t)g->quads);
    }
    return sum;
}

static tn_status make_rows(void *user, int64_t begin, int64_t end)
{
    const struct work *w = user;
    const struct tn__quant_geometry *g = w->g;
    const int64_t plane = g->padded[1] * g->padded[2];

    for (int64_t i = begin; i < end; i++) {
        const int64_t z = i / (g->count[1] * g->count[2]) * g->stride[0];
        const int64_t y = i / g->count[2] % g->count[1] * g->stride[1];
        const int64_t at = z * plane + y * g->padded[2] + i % g->count[2] * g->stride[2];
        int8_t *to = w->rows + i * g->taps * g->quads;
        int32_t sum = 0;

        for (int64_t a = 0; a < g->kernel[0]; a++)
            for (int64_t b = 0; b < g->kernel[1]; b++, to += g->kernel[2] * g->quads)
                sum += copy_line(
                    w, at + a * g->dilation[0] * plane + b * g->dilation[1] * g->padded[2], to);
        w->sums[i] = sum;
    }
    return TN_OK;
}

/* ---- the call ---- */

/* One group of one image. */
static tn_status compute(struct work *w, int64_t image, int64_t group, struct tn__quant_run *run)
{
    const struct tn__quant_geometry *g = w->g;
    const tn_view *x = w->call->in[TN__QUANT_X], *y = w->call->out[0];
    const int64_t plane = g->size[0] * g->size[1] * g->size[2], item = tn__view_item(y);
    const int64_t outputs = g->outputs / g->groups;
    const int64_t first = (image * g->outputs + group * outputs) * g->rows;
    tn_status status;

    w->x = (const uint8_t *)tn__view_at(x) + (image * g->channels + group * g->inner) * plane;
    status = tn_parallel_for(g->padded[0] * g->padded[1], 1 + 16384 / (1 + g->padded[2] * g->quads),
                             gather_lines, w);
    if (status == TN_OK && !w->in_place)
        status = tn_parallel_for(g->rows, 1 + 16384 / (1 + g->taps * g->quads), make_rows, w);
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
    w->zero = (int8_t)zero[0];
}

/* Groups one after the other, so that the vectors of channels are made once for each. */
static tn_status run_group(const tn_call *call, struct work *w, int64_t group, const char *packed,
                           struct tn__quant_run *run)
{
    const struct tn__quant_geometry *g = w->g;
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

/* Memory for an image, its rows and what belongs to them. NULL: none is left. */
static void *take_memory(struct work *w, struct tn__quant_run *run)
{
    const struct tn__quant_geometry *g = w->g;
    const int64_t pixels = g->padded[0] * g->padded[1] * g->padded[2], row = g->taps * g->quads;
    const int64_t copied = w->in_place ? 0 : g->rows;
    float *memory = tn__scratch_take((size_t)(pixels * (g->quads + 4) + copied * (row + 4)) +
                                     (size_t)g->rows * 8);

    if (memory == NULL)
        return NULL;
    run->x_scale = memory;
    run->x_zero = (int32_t *)(void *)(memory + g->rows);
    w->pixels = (int32_t *)(void *)(memory + 2 * g->rows);
    w->sums = w->in_place ? w->pixels : w->pixels + pixels;
    w->image = (int8_t *)(w->pixels + pixels + copied);
    w->rows = w->in_place ? w->image : w->image + pixels * g->quads;
    run->x = w->rows;
    run->x_sum = w->sums;
    run->x_step = row;
    return memory;
}

static bool is_in_place(const struct tn__quant_geometry *g)
{
    for (int i = 0; i < DIMS; i++)
        if (g->kernel[i] != 1 || g->stride[i] != 1 || g->padding[i] != 0)
            return false;
    return true;
}

static tn_status run_convolution_int8(const tn_call *call)
{
    const tn_convolution_int8_options *o = call->options;
    const struct tn__quant_geometry g = geometry_of(call);
    struct work w = { .call = call,
                      .g = &g,
                      .in_place = is_in_place(&g),
                      .flip = tn__quant_is_signed(call->in[TN__QUANT_X]) ? 0 : 128 };
    struct tn__quant_run run = { .min = (float)o->min, .max = (float)o->max, .rows = g.rows };
    char *own = NULL;
    void *memory;
    const char *packed = call->prepared;
    tn_status status = TN_OK;

    if (tn__span_view_count(call->out[0]) == 0)
        return TN_OK;
    if (g.inner == 1)
        return tn__quant_depthwise(call, &g);
    memory = take_memory(&w, &run);
    if (packed == NULL)
        packed = own = tn__scratch_take(group_bytes(&g) * (size_t)g.groups);
    if (memory == NULL || packed == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK && own != NULL)
        status = pack_groups(call, &g, own);
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
