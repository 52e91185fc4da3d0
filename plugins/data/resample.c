/* SPDX-License-Identifier: MIT
 *
 * Resampling of an image of uint8 or float32. */
#include "resample.h"

#include <string.h>

/* ---- float32 --------------------------------------------------------------------------------- */

static void float_row(const struct resample_plan *plan, const float *from, float *to)
{
    for (int64_t i = 0; i < plan->out; i++) {
        const float *at = from + plan->first[i], *w = plan->weights + i * plan->taps;
        float sum = 0;

        for (int64_t k = 0; k < plan->count[i]; k++)
            sum += at[k] * w[k];
        to[i] = sum;
    }
}

static void float_plane(const struct resample *r, const float *plane, int64_t width, float *rows,
                        float *to)
{
    int64_t out = r->across.out;

    for (int64_t i = 0; i < r->part.height; i++)
        float_row(&r->across, plane + (r->part.top + i) * width, rows + i * out);
    for (int64_t i = 0; i < r->down.out; i++, to += out) {
        const float *w = r->down.weights + i * r->down.taps;
        const float *row = rows + (r->down.first[i] - r->part.top) * out;

        memset(to, 0, (size_t)out * sizeof *to);
        for (int64_t k = 0; k < r->down.count[i]; k++, row += out)
            for (int64_t j = 0; j < out; j++)
                to[j] += w[k] * row[j];
    }
}

static tn_tensor *of_floats(const struct resample *r, const struct data_image *x)
{
    int64_t plane = r->down.out * r->across.out;
    float *rows = tn_malloc((size_t)(r->part.height * r->across.out) * sizeof *rows);
    unsigned char *to = NULL;
    tn_tensor *y = rows != NULL
                       ? data_image_new(x->channels, r->down.out, r->across.out, TN_F32, &to)
                       : NULL;

    for (int64_t c = 0; c < x->channels && y != NULL; c++)
        float_plane(r, (const float *)(const void *)x->values + c * x->height * x->width, x->width,
                    rows, (float *)(void *)to + c * plane);
    tn_free(rows);
    return y;
}

/* ---- uint8 ----------------------------------------------------------------------------------- */

/* The rows of the image after resampling along the width, before resampling along the height. */
struct bytes {
    const struct resample *r;
    int64_t channels;
    int64_t line;   /* bytes of one row and channel */
    int64_t stride; /* bytes of one row, all channels */
    unsigned char *rows;
};

static tn_status bytes_make(struct bytes *b, const struct resample *r, int64_t channels)
{
    b->r = r;
    b->channels = channels;
    b->line = r->across.out;
    b->stride = channels * b->line;
    b->rows = tn_malloc((size_t)(r->part.height * b->stride) + RESAMPLE_SLACK);
    if (b->rows == NULL)
        return TN_ERR_MEMORY;
    memset(b->rows + r->part.height * b->stride, 0, RESAMPLE_SLACK); /* is read, but not used */
    return TN_OK;
}

/* A row that a decoder gives. */
static void take_row(void *user, int64_t row, const unsigned char *rgb)
{
    const struct bytes *b = user;

    resample_bytes_across_rgb(&b->r->across, b->r->part.left, rgb,
                              b->rows + (row - b->r->part.top) * b->stride, b->line);
}

static tn_status bytes_of_tensor(const struct bytes *b, const struct data_image *x)
{
    const struct image_part *part = &b->r->part;
    size_t size = (size_t)(part->left + part->width);
    unsigned char *line = tn_calloc(1, size + (size_t)b->r->across.taps + RESAMPLE_SLACK);
    unsigned char *result = tn_malloc((size_t)b->line + RESAMPLE_SLACK);
    tn_status status = line != NULL && result != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < part->height && status == TN_OK; i++)
        for (int64_t c = 0; c < b->channels; c++) {
            memcpy(line, x->values + (c * x->height + part->top + i) * x->width, size);
            resample_bytes_across(&b->r->across, line, result);
            memcpy(b->rows + i * b->stride + c * b->line, result, (size_t)b->line);
        }
    tn_free(line);
    tn_free(result);
    return status;
}

static tn_tensor *bytes_down(const struct bytes *b)
{
    const struct resample *r = b->r;
    int64_t plane = r->down.out * b->line;
    unsigned char *to = NULL, *row = tn_malloc((size_t)b->stride);
    tn_tensor *y = row != NULL ? data_image_new(b->channels, r->down.out, b->line, TN_U8, &to)
                               : NULL;

    for (int64_t i = 0; i < r->down.out && y != NULL; i++) {
        const unsigned char *from = b->rows + (r->down.first[i] - r->part.top) * b->stride;

        resample_bytes_down(&r->down, i, from, b->stride, b->stride, row);
        for (int64_t c = 0; c < b->channels; c++)
            memcpy(to + c * plane + i * b->line, row + c * b->line, (size_t)b->line);
    }
    tn_free(row);
    return y;
}

static tn_tensor *of_bytes(const struct resample *r, struct image_entry *entry)
{
    struct bytes b;
    tn_status status = bytes_make(&b, r, entry->image.channels);
    tn_tensor *y = NULL;

    if (status == TN_OK)
        status = entry->encoded ? image_file_read(&entry->file, &r->part, take_row, &b)
                                : bytes_of_tensor(&b, &entry->image);
    if (status == TN_OK)
        y = bytes_down(&b);
    tn_free(b.rows);
    return y;
}

/* ---- either ---------------------------------------------------------------------------------- */

tn_tensor *resample_entry(struct image_entry *entry, const struct image_part *part, int64_t height,
                          int64_t width, enum resample_filter filter, bool antialias)
{
    struct resample r = { .part = *part };
    tn_status status = resample_plan_make(&r.across, part->left, part->width, width, filter,
                                          antialias);
    tn_tensor *y = NULL;

    if (status == TN_OK)
        status = resample_plan_make(&r.down, part->top, part->height, height, filter, antialias);
    if (status == TN_OK)
        y = entry->image.dtype == TN_U8 ? of_bytes(&r, entry) : of_floats(&r, &entry->image);
    resample_plan_free(&r.across);
    resample_plan_free(&r.down);
    return y;
}
