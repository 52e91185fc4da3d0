/* SPDX-License-Identifier: MIT
 *
 * Resize and RandomResizedCrop. The filters are those of torchvision: a triangle (bilinear) or a
 * cubic with a = -0.5 (bicubic), as wide as the distance of the samples if the image becomes
 * smaller and `antialias` is set. Rows first, then columns, in float32. */
#include "data.h"

#include <math.h>
#include <string.h>

/* ---- filters --------------------------------------------------------------------------------- */

enum filter { NEAREST, BILINEAR, BICUBIC };
static const char *const filters[] = { "nearest", "bilinear", "bicubic" };

static int filter_of(const char *who, const char *name)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(filters[i], name) == 0)
            return i;
    tn_fail(TN_ERR_VALUE,
            "%s: interpolation: unknown, got %q; expected nearest, bilinear or bicubic", who, name);
    return -1;
}

/* `a` is -0.5 with antialias and -0.75 without, as in PyTorch. */
static double weight_at(enum filter filter, double x, double a)
{
    x = fabs(x);
    if (filter == BILINEAR)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* For each output position: the first input position, the number of inputs, and their weights, of
 * which there are at most `taps`. */
struct plan {
    int64_t out, taps;
    int64_t *first, *count;
    float *weights;
};

static void plan_free(struct plan *plan)
{
    tn_free(plan->first);
    tn_free(plan->count);
    tn_free(plan->weights);
}

/* The weights of output i, of a part [start, start + size) of a line. */
static void plan_output(struct plan *plan, int64_t i, int64_t start, int64_t size,
                        enum filter filter, bool antialias)
{
    double scale = (double)size / (double)plan->out, center = scale * ((double)i + 0.5);
    double stretch = antialias && scale > 1 ? scale : 1, a = antialias ? -0.5 : -0.75, sum = 0;
    double support = (filter == BICUBIC ? 2 : 1) * stretch;
    int64_t low = (int64_t)(center - support + 0.5), high = (int64_t)(center + support + 0.5);
    float *weights = plan->weights + i * plan->taps;

    low = low > 0 ? low : 0;
    high = high < size ? high : size;
    if (filter == NEAREST) {
        low = (int64_t)((double)i * scale);
        low = low < size ? low : size - 1;
        high = low + 1;
    }
    if (high <= low)
        low = high - 1;
    plan->first[i] = start + low;
    plan->count[i] = high - low;
    for (int64_t k = 0; k < high - low && filter != NEAREST; k++)
        sum += weight_at(filter, ((double)(low + k) - center + 0.5) / stretch, a);
    for (int64_t k = 0; k < high - low; k++) {
        double x = ((double)(low + k) - center + 0.5) / stretch;

        weights[k] = filter == NEAREST ? 1 : (float)(weight_at(filter, x, a) / sum);
    }
}

static tn_status plan_make(struct plan *plan, int64_t start, int64_t size, int64_t out,
                           enum filter filter, bool antialias)
{
    double scale = (double)size / (double)out, stretch = antialias && scale > 1 ? scale : 1;

    plan->out = out;
    plan->taps = filter == NEAREST ? 1
                                   : 2 * (int64_t)ceil((filter == BICUBIC ? 2 : 1) * stretch) + 1;
    plan->first = tn_malloc((size_t)out * sizeof *plan->first);
    plan->count = tn_malloc((size_t)out * sizeof *plan->count);
    plan->weights = tn_malloc((size_t)(out * plan->taps) * sizeof *plan->weights);
    if (plan->first == NULL || plan->count == NULL || plan->weights == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < out; i++)
        plan_output(plan, i, start, size, filter, antialias);
    return TN_OK;
}

/* ---- one plane ------------------------------------------------------------------------------- */

/* A row of the image as float32. */
static void load_row(const struct data_image *x, int64_t row, float *to)
{
    if (x->dtype == TN_F32)
        memcpy(to, x->values + (size_t)(row * x->width) * 4, (size_t)x->width * 4);
    else
        for (int64_t i = 0; i < x->width; i++)
            to[i] = x->values[row * x->width + i];
}

static void resample_row(const struct plan *plan, const float *from, float *to)
{
    for (int64_t i = 0; i < plan->out; i++) {
        const float *at = from + plan->first[i], *w = plan->weights + i * plan->taps;
        float sum = 0;

        for (int64_t k = 0; k < plan->count[i]; k++)
            sum += at[k] * w[k];
        to[i] = sum;
    }
}

static void store_row(tn_dtype dtype, const float *from, int64_t count, unsigned char *to)
{
    if (dtype == TN_F32) {
        memcpy(to, from, (size_t)count * 4);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        float v = from[i] + 0.5f;

        to[i] = v <= 0 ? 0 : v >= 255 ? 255 : (unsigned char)v;
    }
}

/* Rounds values between the two passes to uint8, as torchvision does. */
static void round_row(float *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float v = row[i] + 0.5f;

        row[i] = v <= 0 ? 0 : v >= 255 ? 255 : (float)(int)v;
    }
}

struct resampling {
    struct plan across, down;
    int64_t top, bottom; /* the rows that `down` reads */
    float *line;         /* one input row */
    float *rows;         /* the rows from top to bottom, resampled across */
    float *sum;          /* one output row */
};

static void resample_plane(const struct data_image *x, int64_t channel, struct resampling *r,
                           unsigned char *to)
{
    int64_t width = r->across.out;

    for (int64_t i = r->top; i < r->bottom; i++) {
        load_row(x, channel * x->height + i, r->line);
        resample_row(&r->across, r->line, r->rows + (i - r->top) * width);
        if (x->dtype == TN_U8)
            round_row(r->rows + (i - r->top) * width, width);
    }
    for (int64_t i = 0; i < r->down.out; i++, to += (size_t)width * x->item) {
        const float *w = r->down.weights + i * r->down.taps;
        int64_t first = r->down.first[i];

        memset(r->sum, 0, (size_t)width * sizeof *r->sum);
        for (int64_t k = 0; k < r->down.count[i]; k++) {
            const float *row = r->rows + (first + k - r->top) * width;

            for (int64_t j = 0; j < width; j++)
                r->sum[j] += w[k] * row[j];
        }
        store_row(x->dtype, r->sum, width, to);
    }
}

/* A part of an image: top, left, height, width. */
struct part {
    int64_t top, left, height, width;
};

static tn_status prepare(struct resampling *r, const struct data_image *x, const struct part *part,
                         int64_t height, int64_t width, enum filter filter, bool antialias)
{
    tn_status status = plan_make(&r->across, part->left, part->width, width, filter, antialias);

    if (status == TN_OK)
        status = plan_make(&r->down, part->top, part->height, height, filter, antialias);
    if (status != TN_OK)
        return status;
    r->top = part->top;
    r->bottom = part->top + part->height;
    r->line = tn_malloc((size_t)x->width * sizeof *r->line);
    r->rows = tn_malloc((size_t)(part->height * width) * sizeof *r->rows);
    r->sum = tn_malloc((size_t)width * sizeof *r->sum);
    return r->line != NULL && r->rows != NULL && r->sum != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_tensor *resized(const struct data_image *x, const struct part *part, int64_t height,
                          int64_t width, enum filter filter, bool antialias)
{
    struct resampling r = { 0 };
    unsigned char *to = NULL;
    tn_tensor *y = NULL;

    if (prepare(&r, x, part, height, width, filter, antialias) == TN_OK)
        y = data_image_new(x->channels, height, width, x->dtype, &to);
    for (int64_t c = 0; c < x->channels && y != NULL; c++)
        resample_plane(x, c, &r, to + (size_t)(c * height * width) * x->item);
    plan_free(&r.across);
    plan_free(&r.down);
    tn_free(r.line);
    tn_free(r.rows);
    tn_free(r.sum);
    return y;
}

static tn_status check_size(const char *who, tn_ints size)
{
    bool good = size.count == 1 || size.count == 2;

    for (int64_t i = 0; i < size.count; i++)
        good &= size.at[i] >= 1 && size.at[i] <= 1 << 20;
    return good ? TN_OK
                : tn_fail(TN_ERR_VALUE,
                          "%s: size: wrong; expected one or two numbers from 1 to "
                          "%d",
                          who, 1 << 20);
}

static tn_status check_not_empty(const char *who, const struct data_image *x)
{
    if (x->height > 0 && x->width > 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: the image is empty, got %lld x %lld", who,
                   (long long)x->height, (long long)x->width);
}

/* ---- Resize ---------------------------------------------------------------------------------- */

struct resize {
    tn_ints size;
    const char *interpolation;
    int64_t max_size;
    bool antialias;
};
static const tn_option resize_options[] = {
    TN_OPTION_ROW(struct resize, size, NULL,
                  "height and width; one number: size of the shorter side, the other one in "
                  "proportion",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_STRING(struct resize, interpolation, "'bilinear'", "nearest, bilinear or bicubic"),
    TN_OPTION_ROW(struct resize, max_size, "None", "largest size of the longer side",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_BOOL(struct resize, antialias, "True", "averages when the image becomes smaller"),
    TN_OPTION_END
};

static tn_status resize_check(const tn_transform_def *self, const void *options)
{
    const struct resize *o = options;
    tn_status status = check_size(self->name, o->size);

    if (status == TN_OK && filter_of(self->name, o->interpolation) < 0)
        return tn_error_last_code();
    if (status == TN_OK && o->max_size != INT64_MIN &&
        (o->size.count != 1 || o->max_size <= o->size.at[0]))
        status = tn_fail(TN_ERR_VALUE,
                         "Resize: max_size: got %lld; expected more than the size, which must be "
                         "one number",
                         (long long)o->max_size);
    return status;
}

/* The size of the result, as in torchvision. */
static void target_size(const struct resize *o, const struct data_image *x, int64_t *height,
                        int64_t *width)
{
    int64_t low = x->height < x->width ? x->height : x->width;
    int64_t high = x->height < x->width ? x->width : x->height, shorter, longer;

    if (o->size.count == 2) {
        *height = o->size.at[0];
        *width = o->size.at[1];
        return;
    }
    shorter = o->size.at[0];
    longer = (int64_t)((double)shorter * (double)high / (double)low);
    if (o->max_size != INT64_MIN && longer > o->max_size) {
        shorter = (int64_t)((double)o->max_size * (double)shorter / (double)longer);
        longer = o->max_size;
    }
    shorter = shorter > 0 ? shorter : 1;
    *height = x->height <= x->width ? shorter : longer;
    *width = x->height <= x->width ? longer : shorter;
}

static tn_status resize_apply(tn_transform_args *args)
{
    const struct resize *o = args->options;
    struct data_image x;
    struct part all = { 0 };
    int64_t height, width;
    tn_status status = data_image_get(args, &x);

    if (status == TN_OK)
        status = check_not_empty("Resize", &x);
    if (status != TN_OK)
        return status;
    target_size(o, &x, &height, &width);
    if (height == x.height && width == x.width)
        return data_same(args);
    all.height = x.height;
    all.width = x.width;
    return data_image_put(args, resized(&x, &all, height, width,
                                        (enum filter)filter_of("Resize", o->interpolation),
                                        o->antialias));
}

/* ---- RandomResizedCrop ----------------------------------------------------------------------- */

struct random_resized_crop {
    tn_ints size;
    tn_floats scale, ratio;
    const char *interpolation;
    bool antialias;
};
static const tn_option random_resized_crop_options[] = {
    TN_OPTION_ROW(struct random_resized_crop, size, NULL,
                  "height and width, or one number for both", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED),
    TN_OPTION_FLOATS(struct random_resized_crop, scale, "(0.08, 1.0)",
                     "smallest and largest part of the area"),
    TN_OPTION_FLOATS(struct random_resized_crop, ratio, "(0.75, 1.3333333333333333)",
                     "smallest and largest width / height"),
    TN_OPTION_STRING(struct random_resized_crop, interpolation, "'bilinear'",
                     "nearest, bilinear or bicubic"),
    TN_OPTION_BOOL(struct random_resized_crop, antialias, "True",
                   "averages when the image becomes smaller"),
    TN_OPTION_END
};

static bool is_range(tn_floats range, double low, double high)
{
    return range.count == 2 && range.at[0] >= low && range.at[0] <= range.at[1] &&
           range.at[1] <= high;
}

static tn_status random_resized_crop_check(const tn_transform_def *self, const void *options)
{
    const struct random_resized_crop *o = options;
    tn_status status = check_size(self->name, o->size);

    if (status == TN_OK && filter_of(self->name, o->interpolation) < 0)
        return tn_error_last_code();
    if (status == TN_OK && !is_range(o->scale, 1e-9, 1))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: scale: no range; expected two numbers above 0, at most "
                         "1, the smaller first",
                         self->name);
    if (status == TN_OK && !is_range(o->ratio, 1e-6, 1e6))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: ratio: no range; expected two numbers above 0, the "
                         "smaller first",
                         self->name);
    return status;
}

/* Draws a part of the image. If ten tries do not fit, the middle with the nearest ratio. */
static void draw_part(const struct random_resized_crop *o, tn_random_key *key,
                      const struct data_image *x, struct part *part)
{
    double area = (double)x->height * (double)x->width, ratio;

    for (int i = 0; i < 10; i++) {
        double share = area * tn_random_between(key, o->scale.at[0], o->scale.at[1]);

        ratio = exp(tn_random_between(key, log(o->ratio.at[0]), log(o->ratio.at[1])));
        part->width = (int64_t)rint(sqrt(share * ratio));
        part->height = (int64_t)rint(sqrt(share / ratio));
        if (part->width < 1 || part->width > x->width || part->height < 1 ||
            part->height > x->height)
            continue;
        part->top = tn_random_below(key, x->height - part->height + 1);
        part->left = tn_random_below(key, x->width - part->width + 1);
        return;
    }
    ratio = (double)x->width / (double)x->height;
    part->width = x->width;
    part->height = x->height;
    if (ratio < o->ratio.at[0])
        part->height = (int64_t)rint((double)x->width / o->ratio.at[0]);
    else if (ratio > o->ratio.at[1])
        part->width = (int64_t)rint((double)x->height * o->ratio.at[1]);
    part->height = part->height > 0 ? part->height : 1;
    part->width = part->width > 0 ? part->width : 1;
    part->top = (x->height - part->height) / 2;
    part->left = (x->width - part->width) / 2;
}

static tn_status random_resized_crop_apply(tn_transform_args *args)
{
    const struct random_resized_crop *o = args->options;
    const char *who = args->def->name;
    struct data_image x;
    struct part part;
    tn_status status = data_image_get(args, &x);

    if (status == TN_OK)
        status = check_not_empty(who, &x);
    if (status != TN_OK)
        return status;
    draw_part(o, &args->random, &x, &part);
    return data_image_put(args,
                          resized(&x, &part, o->size.at[0], o->size.at[o->size.count - 1],
                                  (enum filter)filter_of(who, o->interpolation), o->antialias));
}

const tn_transform_def data_resize = {
    TN_HEAD(tn_transform_def),
    .name = "Resize",
    .help = "an image in another size",
    .options = resize_options,
    .data_size = sizeof(struct resize),
    .check = resize_check,
    .apply = resize_apply,
};
const tn_transform_def data_random_resized_crop = {
    TN_HEAD(tn_transform_def),
    .name = "RandomResizedCrop",
    .help = "a random part of an image in another size",
    .options = random_resized_crop_options,
    .data_size = sizeof(struct random_resized_crop),
    .check = random_resized_crop_check,
    .apply = random_resized_crop_apply,
};
