/* SPDX-License-Identifier: MIT
 *
 * Parts of images in one size (ROI align). Each element of a result is the mean of samples, which
 * are interpolated linearly between four elements of the image. The places of the samples are
 * products of places in each direction, and so are their weights: the mean is a product of the
 * image with a matrix from either side. */
#include "vision.h"

#include <math.h>

enum { SAMPLES_MOST = 1 << 16 }; /* of one region in one direction */

/* Samples of one region in one direction. */
struct line {
    int64_t size, out, samples; /* elements of the image; of the result; samples for each of them */
    double start, step;         /* of the elements of the result */
};

/* The two elements around sample s and their weights; false: it is beyond the image. */
static bool sample_at(const struct line *line, int64_t s, int64_t at[2], double weights[2])
{
    double x = line->start + (double)(s / line->samples) * line->step +
               ((double)(s % line->samples) + 0.5) * line->step / (double)line->samples;

    at[0] = at[1] = 0;
    weights[0] = weights[1] = 0;
    if (!(x >= -1 && x <= (double)line->size))
        return false;
    x = x < 0 ? 0 : x;
    at[0] = (int64_t)x;
    if (at[0] >= line->size - 1) {
        at[0] = at[1] = line->size - 1;
        x = (double)at[0];
    } else {
        at[1] = at[0] + 1;
    }
    weights[1] = x - (double)at[0];
    weights[0] = 1 - weights[1];
    return true;
}

static struct line line_of(double from, double to, int64_t size, int64_t out,
                           const struct vision_regions *how)
{
    double offset = how->aligned ? 0.5 : 0, length;
    struct line line = { .size = size, .out = out };

    line.start = from * how->scale - offset;
    length = to * how->scale - offset - line.start;
    if (!how->aligned && !(length >= 1))
        length = 1;
    line.step = length / (double)out;
    /* region_of() refuses steps beyond these limits, and NaN, which becomes the upper one */
    line.samples = how->samples > 0 ? how->samples
                                    : (int64_t)fmax(fmin(ceil(line.step), 1e9), -1e9);
    return line;
}

/* The mean along one direction as a matrix [out, elements from *first on]. */
static tn_tensor *mean_matrix(const struct line *line, tn_tensor *like, int64_t *first,
                              int64_t *count)
{
    int64_t low = line->size, high = -1, at[2];
    double weights[2], *rows;
    tn_tensor *matrix = NULL;

    for (int64_t s = 0; s < line->out * line->samples; s++)
        if (sample_at(line, s, at, weights)) {
            low = at[0] < low ? at[0] : low;
            high = at[1] > high ? at[1] : high;
        }
    *first = high >= 0 ? low : 0;
    *count = high >= 0 ? high - low + 1 : 1;
    rows = tn_calloc((size_t)(line->out * *count), sizeof *rows);
    if (rows == NULL)
        return NULL;
    for (int64_t s = 0; s < line->out * line->samples; s++)
        if (sample_at(line, s, at, weights))
            for (int i = 0; i < 2; i++)
                rows[s / line->samples * *count + at[i] - *first] += weights[i] /
                                                                     (double)line->samples;
    matrix = tn_tensor_from(rows, TN_F64, TN_SHAPE(line->out, *count));
    tn_free(rows);
    return matrix != NULL ? tn_cast(matrix, tn_tensor_dtype(like)) : NULL;
}

static tn_tensor *mean_of(tn_tensor *image, const struct line *y, const struct line *x)
{
    int64_t top, left, height, width;
    tn_tensor *rows = mean_matrix(y, image, &top, &height);
    tn_tensor *columns = mean_matrix(x, image, &left, &width);

    if (rows == NULL || columns == NULL)
        return NULL;
    image = tn_narrow(tn_narrow(image, 1, top, height), 2, left, width);
    return tn_matmul(rows, tn_matmul(image, tn_transpose(columns, 0, 1)));
}

/* The places and weights of all products, in the order [result, sample, corner]. */
static void fill_products(const struct line *y, const struct line *x, int64_t *at, double *weights)
{
    int64_t n = 0, rows[2], columns[2];
    double down[2], across[2];

    for (int64_t i = 0; i < y->out * x->out; i++)
        for (int64_t s = 0; s < y->samples * x->samples; s++) {
            bool in = sample_at(y, i / x->out * y->samples + s / x->samples, rows, down);

            in = sample_at(x, i % x->out * x->samples + s % x->samples, columns, across) && in;
            for (int k = 0; k < 4; k++, n++) {
                at[n] = in ? rows[k / 2] * x->size + columns[k % 2] : 0;
                weights[n] = in ? down[k / 2] * across[k % 2] : 0;
            }
        }
}

static tn_tensor *largest_of(tn_tensor *image, const struct line *y, const struct line *x)
{
    int64_t each = y->samples * x->samples * 4, count = y->out * x->out * each;
    int64_t channels = tn_tensor_size(image, 0);
    int64_t *at = tn_calloc((size_t)count + 1, sizeof *at);
    double *weights = tn_calloc((size_t)count + 1, sizeof *weights);
    tn_tensor *factors = NULL, *index = NULL, *products;

    if (at != NULL && weights != NULL) {
        fill_products(y, x, at, weights);
        index = tn_tensor_from(at, TN_I64, TN_SHAPE(count));
        factors = tn_tensor_from(weights, TN_F64, TN_SHAPE(count));
    }
    tn_free(at);
    tn_free(weights);
    if (index == NULL || factors == NULL)
        return NULL;
    factors = tn_cast(factors, tn_tensor_dtype(image));
    products = tn_mul(tn_index_select(tn_reshape(image, TN_SHAPE(channels, -1)), index, 1),
                      factors);
    products = tn_amax(tn_reshape(products, TN_SHAPE(channels, y->out * x->out, each)),
                       TN_INTS(-1));
    return tn_reshape(products, TN_SHAPE(channels, y->out, x->out));
}

static tn_tensor *zeros(tn_tensor *x, int64_t n, const struct vision_regions *how)
{
    return tn_full(x, TN_SHAPE(n, tn_tensor_size(x, 1), how->height, how->width), tn_scalar_int(0),
                   tn_tensor_dtype(x));
}

/* One region, or NULL. */
static tn_tensor *region_of(tn_tensor *x, const double *region, const struct vision_regions *how)
{
    struct line down = line_of(region[2], region[4], tn_tensor_size(x, 2), how->height, how);
    struct line across = line_of(region[1], region[3], tn_tensor_size(x, 3), how->width, how);
    tn_tensor *image;

    if (!(region[0] >= 0 && region[0] < (double)tn_tensor_size(x, 0))) {
        tn_fail(TN_ERR_INDEX, "regions: image out of range, got %g; expected 0 to %lld", region[0],
                (long long)tn_tensor_size(x, 0) - 1);
        return NULL;
    }
    if (!(fabs(down.start) < 1e9 && fabs(across.start) < 1e9 && fabs(down.step) < 1e9 &&
          fabs(across.step) < 1e9) ||
        down.samples > SAMPLES_MOST / down.out || across.samples > SAMPLES_MOST / across.out ||
        (how->largest && down.samples > 0 && across.samples > 0 &&
         down.samples * down.out > (1 << 24) / (across.samples * across.out))) {
        tn_fail(TN_ERR_REFUSED, "regions: more than %d samples; expected smaller regions",
                SAMPLES_MOST);
        return NULL;
    }
    image = tn_select(x, 0, (int64_t)region[0]);
    if (image == NULL)
        return NULL;
    if (down.samples < 1 || across.samples < 1) /* a region without elements */
        return tn_select(zeros(x, 1, how), 0, 0);
    return how->largest ? largest_of(image, &down, &across) : mean_of(image, &down, &across);
}

tn_tensor *vision_regions(tn_tensor *x, const double *regions, int64_t n,
                          const struct vision_regions *how)
{
    tn_tensor **out, *made = NULL;
    int64_t i = 0;

    if (how->height < 1 || how->width < 1 || how->height > SAMPLES_MOST ||
        how->width > SAMPLES_MOST || how->samples > SAMPLES_MOST || tn_tensor_ndim(x) != 4 ||
        tn_tensor_size(x, 2) < 1 || tn_tensor_size(x, 3) < 1) {
        tn_fail(TN_ERR_VALUE,
                "x, output size: %d dimensions, %lld x %lld; expected images [N, C, H, W], and "
                "sizes from 1 to %d",
                (int)tn_tensor_ndim(x), (long long)how->height, (long long)how->width,
                SAMPLES_MOST);
        return NULL;
    }
    if (n == 0)
        return zeros(x, 0, how);
    out = tn_calloc((size_t)n, sizeof *out);
    while (out != NULL && i < n && (out[i] = region_of(x, regions + 5 * i, how)) != NULL)
        i++;
    if (out != NULL && i == n)
        made = tn_stack(out, n, 0);
    tn_free(out);
    return made;
}
