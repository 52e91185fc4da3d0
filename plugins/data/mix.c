/* SPDX-License-Identifier: MIT
 *
 * Transforms of batches: MixUp and CutMix. Each image is mixed with the one before it in the batch,
 * the first one with the last, and so are the labels, which become probabilities. */
#include "data.h"

#include <math.h>
#include <string.h>

struct mix {
    double alpha;
    int64_t num_classes;
};
static const tn_option options[] = {
    TN_OPTION_FLOAT(struct mix, alpha, "1.0", "both parameters of the beta distribution"),
    TN_OPTION_ROW(struct mix, num_classes, "None",
                  "number of classes; None: that of the dataset, or of the labels",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

static tn_status check(const tn_transform_def *self, const void *data)
{
    const struct mix *o = data;

    if (!(o->alpha > 0) || isinf(o->alpha))
        return tn_fail(TN_ERR_VALUE,
                       "%s: alpha: out of range, got %g; expected a finite number above 0",
                       self->name, o->alpha);
    if (o->num_classes != INT64_MIN && o->num_classes < 1)
        return tn_fail(TN_ERR_VALUE, "%s: num_classes: out of range, got %lld; expected 1 or more",
                       self->name, (long long)o->num_classes);
    return TN_OK;
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* Returns the logarithm of a number of the gamma distribution, by the method of Marsaglia and
 * Tsang. */
static double log_gamma_of(double shape, tn_random_key *key)
{
    double boost = shape < 1 ? log1p(-tn_random_between(key, 0, 1)) / shape : 0;
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        double x = data_normal(key), v = 1 + c * x, u;

        if (v <= 0)
            continue;
        v = v * v * v;
        u = 1 - tn_random_between(key, 0, 1);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d) + log(v) + boost;
    }
}

/* Returns a number of the beta distribution with two equal parameters. */
static double beta_of(double alpha, tn_random_key *key)
{
    double a = log_gamma_of(alpha, key), b = log_gamma_of(alpha, key);

    return 1 / (1 + exp(b - a));
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The classes in entry 1: int64 [N], or probabilities as float32 [N, classes]. */
struct labels {
    int64_t count, classes;
    const int64_t *numbers; /* or NULL */
    const float *shares;    /* or NULL */
};

static tn_status wrong_labels(const char *who, const char *what)
{
    return tn_fail(TN_ERR_TYPE,
                   "%s: entry 1 of the batch: %s; expected labels, int64 [N] or float32 [N, "
                   "classes]",
                   who, what);
}

static tn_status check_numbers(const char *who, const struct labels *labels)
{
    for (int64_t i = 0; i < labels->count; i++)
        if (labels->numbers[i] < 0 || labels->numbers[i] >= labels->classes)
            return tn_fail(TN_ERR_VALUE,
                           "%s: label of sample %lld of the batch: out of range, got %lld; "
                           "expected 0 to %lld",
                           who, (long long)i, (long long)labels->numbers[i],
                           (long long)labels->classes - 1);
    return TN_OK;
}

static tn_status labels_get(const tn_transform_args *args, struct labels *labels)
{
    const struct mix *o = args->options;
    const char *who = args->def->name;
    const tn_value value = tn_pack_count(args->in) > 1 ? tn_pack_at(args->in, 1) : tn_value_none();
    tn_tensor *x = value.kind == TN_VALUE_TENSOR ? value.as.tensor : NULL;
    bool numbers;
    char words[96];

    *labels = (struct labels){ 0 };
    if (x == NULL)
        return wrong_labels(who, "no tensor");
    numbers = tn_tensor_dtype(x) == TN_I64 && tn_tensor_ndim(x) == 1;
    if (!numbers && (tn_tensor_dtype(x) != TN_F32 || tn_tensor_ndim(x) != 2)) {
        tn_snprint(words, sizeof words, "wrong dtype or shape, got %s with %d dimensions",
                   tn_dtype_name(tn_tensor_dtype(x)), (int)tn_tensor_ndim(x));
        return wrong_labels(who, words);
    }
    x = tn_tensor_is_contiguous(x) ? x : tn_copy(x);
    if (x == NULL)
        return tn_error_last_code();
    labels->count = tn_tensor_size(x, 0);
    labels->classes = !numbers                      ? tn_tensor_size(x, 1)
                      : o->num_classes != INT64_MIN ? o->num_classes
                                                    : args->classes;
    labels->numbers = numbers ? tn_tensor_data(x) : NULL;
    labels->shares = numbers ? NULL : tn_tensor_data(x);
    if (numbers && labels->classes < 1)
        return tn_fail(TN_ERR_VALUE,
                       "%s: num_classes: None, but the dataset does not say how many "
                       "classes it has; expected a number",
                       who);
    if (!numbers && o->num_classes != INT64_MIN && o->num_classes != labels->classes)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: num_classes: wrong number, got %lld, but the labels have %lld; expected None", who,
            (long long)o->num_classes, (long long)labels->classes);
    return numbers ? check_numbers(who, labels) : TN_OK;
}

/* lam * labels[i] + (1 - lam) * labels[i - 1]: float32 [N, classes]. */
static tn_tensor *labels_mixed(const struct labels *labels, float lam)
{
    int64_t n = labels->count, width = labels->classes;
    tn_tensor *y = tn_tensor_empty(TN_SHAPE(n, width), TN_F32, tn_default_device());
    float *to = y != NULL ? tn_tensor_data(y) : NULL;

    if (to != NULL)
        memset(to, 0, (size_t)(n * width) * sizeof *to);
    for (int64_t i = 0; i < n && to != NULL; i++) {
        int64_t before = i > 0 ? i - 1 : n - 1;

        if (labels->numbers != NULL) {
            to[i * width + labels->numbers[before]] += 1.0f - lam;
            to[i * width + labels->numbers[i]] += lam;
        } else {
            for (int64_t k = 0; k < width; k++)
                to[i * width + k] = labels->shares[before * width + k] * (1.0f - lam) +
                                    labels->shares[i * width + k] * lam;
        }
    }
    return y;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Gets entry 0: a contiguous tensor with as many samples as there are labels. */
static tn_tensor *images_get(const tn_transform_args *args, const struct labels *labels)
{
    const char *who = args->def->name;
    const tn_value value = tn_pack_at(args->in, 0);
    tn_tensor *x = value.kind == TN_VALUE_TENSOR ? value.as.tensor : NULL;

    if (x == NULL) {
        tn_fail(TN_ERR_TYPE, "%s: entry 0 of the batch: no tensor; expected images", who);
        return NULL;
    }
    if (tn_tensor_ndim(x) < 1 || tn_tensor_size(x, 0) != labels->count) {
        tn_fail(TN_ERR_VALUE,
                "%s: entry 0 of the batch: wrong size of dimension 0, got %lld; expected %lld, the "
                "number of labels",
                who, (long long)(tn_tensor_ndim(x) < 1 ? 1 : tn_tensor_size(x, 0)),
                (long long)labels->count);
        return NULL;
    }
    return tn_tensor_is_contiguous(x) ? x : tn_copy(x);
}

static tn_status put(tn_transform_args *args, tn_tensor *images, tn_tensor *labels)
{
    tn_status status = images != NULL && labels != NULL
                           ? tn_pack_add(args->out, tn_pack_name(args->in, 0),
                                         tn_value_tensor(images))
                           : tn_error_last_code();

    if (status == TN_OK)
        status = tn_pack_add(args->out, tn_pack_name(args->in, 1), tn_value_tensor(labels));
    return status == TN_OK ? data_rest(args, 2) : status;
}

/* ---- MixUp ----------------------------------------------------------------------------------- */

static tn_tensor *blended(tn_tensor *x, float lam)
{
    tn_tensor *y = tn_tensor_empty(tn_tensor_shape(x), TN_F32, tn_default_device());
    int64_t n = tn_tensor_size(x, 0), each = n > 0 ? tn_tensor_numel(x) / n : 0;
    const float *from = tn_tensor_data(x);
    float *to = y != NULL ? tn_tensor_data(y) : NULL;

    for (int64_t i = 0; i < n && to != NULL && from != NULL; i++) {
        const float *before = from + (i > 0 ? i - 1 : n - 1) * each, *own = from + i * each;

        for (int64_t k = 0; k < each; k++)
            to[i * each + k] = before[k] * (1.0f - lam) + own[k] * lam;
    }
    return y;
}

static tn_status mix_up_apply(tn_transform_args *args)
{
    const struct mix *o = args->options;
    float lam = (float)beta_of(o->alpha, &args->random);
    struct labels labels;
    tn_status status = labels_get(args, &labels);
    tn_tensor *x = status == TN_OK ? images_get(args, &labels) : NULL;

    if (x == NULL)
        return tn_error_last_code();
    if (tn_tensor_dtype(x) != TN_F32)
        return tn_fail(
            TN_ERR_TYPE,
            "MixUp: entry 0 of the batch: wrong dtype, got %s; expected float32, use ToFloat "
            "before",
            tn_dtype_name(tn_tensor_dtype(x)));
    return put(args, blended(x, lam), labels_mixed(&labels, lam));
}

/* ---- CutMix ---------------------------------------------------------------------------------- */

struct box {
    int64_t top, left, bottom, right;
};

/* A box around a random point. Before the cut at the border, its share of the image is 1 - lam. */
static struct box draw(double alpha, tn_random_key *key, int64_t height, int64_t width)
{
    double half = 0.5 * sqrt(1 - beta_of(alpha, key));
    int64_t x = tn_random_below(key, width), y = tn_random_below(key, height);
    int64_t across = (int64_t)(half * (double)width), down = (int64_t)(half * (double)height);
    struct box box = { y - down, x - across, y + down, x + across };

    box.top = box.top > 0 ? box.top : 0;
    box.left = box.left > 0 ? box.left : 0;
    box.bottom = box.bottom < height ? box.bottom : height;
    box.right = box.right < width ? box.right : width;
    return box;
}

/* A copy of the images, with the box from the image before. */
static tn_tensor *pasted(tn_tensor *x, const struct box *box)
{
    int64_t n = tn_tensor_size(x, 0), channels = tn_tensor_size(x, 1);
    int64_t height = tn_tensor_size(x, 2), width = tn_tensor_size(x, 3);
    size_t item = tn_dtype_size(tn_tensor_dtype(x)), row = (size_t)width * item;
    size_t image = (size_t)(channels * height) * row;
    tn_tensor *y = tn_tensor_empty(tn_tensor_shape(x), tn_tensor_dtype(x), tn_default_device());
    const char *from = tn_tensor_data(x);
    char *to = y != NULL ? tn_tensor_data(y) : NULL;

    for (int64_t i = 0; i < n && to != NULL && from != NULL; i++) {
        const char *before = from + (size_t)(i > 0 ? i - 1 : n - 1) * image;
        char *own = to + (size_t)i * image;

        memcpy(own, from + (size_t)i * image, image);
        for (int64_t c = 0; c < channels; c++)
            for (int64_t k = box->top; k < box->bottom; k++) {
                size_t at = (size_t)(c * height + k) * row + (size_t)box->left * item;

                memcpy(own + at, before + at, (size_t)(box->right - box->left) * item);
            }
    }
    return y;
}

static tn_status cut_mix_apply(tn_transform_args *args)
{
    const struct mix *o = args->options;
    struct labels labels;
    tn_status status = labels_get(args, &labels);
    tn_tensor *x = status == TN_OK ? images_get(args, &labels) : NULL;
    int64_t height, width, area;
    struct box box;

    if (x == NULL)
        return tn_error_last_code();
    if (tn_tensor_ndim(x) != 4 || tn_tensor_size(x, 2) < 1 || tn_tensor_size(x, 3) < 1)
        return tn_fail(
            TN_ERR_VALUE,
            "CutMix: entry 0 of the batch: wrong shape, got %lld dimensions; expected images "
            "[N, C, H, W] with H and W of at least 1",
            (long long)tn_tensor_ndim(x));
    height = tn_tensor_size(x, 2);
    width = tn_tensor_size(x, 3);
    box = draw(o->alpha, &args->random, height, width);
    area = (box.bottom - box.top) * (box.right - box.left);
    return put(args, pasted(x, &box),
               labels_mixed(&labels, (float)(1 - (double)area / ((double)height * (double)width))));
}

/* ---- tables ---------------------------------------------------------------------------------- */

const tn_transform_def data_mix_up = {
    TN_HEAD(tn_transform_def),
    .name = "MixUp",
    .help = "batches: mixes each image and label with the one before it",
    .options = options,
    .data_size = sizeof(struct mix),
    .flags = TN_TRANSFORM_BATCH,
    .check = check,
    .apply = mix_up_apply,
};
const tn_transform_def data_cut_mix = {
    TN_HEAD(tn_transform_def),
    .name = "CutMix",
    .help = "batches: pastes a rectangle of the image before into each image",
    .options = options,
    .data_size = sizeof(struct mix),
    .flags = TN_TRANSFORM_BATCH,
    .check = check,
    .apply = cut_mix_apply,
};
