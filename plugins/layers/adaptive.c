/* SPDX-License-Identifier: MIT
 *
 * Losses with parts of their own: AdaptiveLogSoftmaxWithLoss, LinearCrossEntropyLoss and
 * TripletMarginWithDistanceLoss. */
#include "layers.h"

#include <math.h>
#include <string.h>

/* ---- AdaptiveLogSoftmaxWithLoss: frequent classes in the head, the others in clusters ------------ */

struct adaptive {
    int64_t in_features;
    int64_t n_classes;
    tn_ints cutoffs;
    double div_value;
    bool head_bias;
};

static const tn_option adaptive_options[] = {
    TN_OPTION_ROW(struct adaptive, in_features, NULL, "features of a sample", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct adaptive, n_classes, NULL, "classes, the most frequent ones first",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct adaptive, cutoffs, NULL, "the first class of each cluster",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct adaptive, div_value, "4.0",
                  "each cluster has so many times fewer features than the one before",
                  TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct adaptive, head_bias, "False", "whether the head has a bias",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

/* The class behind the last of cluster `i`. */
static int64_t end_of(const struct adaptive *s, int64_t i)
{
    return i + 1 < s->cutoffs.count ? s->cutoffs.at[i + 1] : s->n_classes;
}

static tn_status adaptive_check(const struct adaptive *s)
{
    bool good = s->cutoffs.count > 0 && s->in_features > 0 && s->div_value > 0;

    for (int64_t i = 0; i < s->cutoffs.count && good; i++)
        good = s->cutoffs.at[i] > (i > 0 ? s->cutoffs.at[i - 1] : 0) &&
               s->cutoffs.at[i] <= s->n_classes - 1;
    return good ? TN_OK
                : tn_fail(TN_ERR_VALUE,
                          "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, "
                          "positive integers sorted in an increasing order, where each value is "
                          "between 1 and n_classes-1, and in_features and div_value positive");
}

static tn_status adaptive_build(tn_module *self)
{
    const struct adaptive *s = tn_module_data(self);
    tn_status status = adaptive_check(s);
    tn_module *tail;

    if (status == TN_OK)
        status = layers_child(
            self, "head", "Linear(%lld, %lld, bias=%s)", (long long)s->in_features,
            (long long)(s->cutoffs.at[0] + s->cutoffs.count), layers_truth(s->head_bias));
    if (status == TN_OK)
        status = layers_child(self, "tail", "ModuleList()");
    tail = status == TN_OK ? tn_module_child(self, "tail") : NULL;
    for (int64_t i = 0; i < s->cutoffs.count && status == TN_OK; i++) {
        int64_t inner = (int64_t)floor((double)s->in_features / pow(s->div_value, (double)(i + 1)));
        tn_module *part = tn_module_new(
            "Sequential(Linear(%lld, %lld, bias=False), Linear(%lld, %lld, bias=False))",
            (long long)s->in_features, (long long)inner, (long long)inner,
            (long long)(end_of(s, i) - s->cutoffs.at[i]));

        status = part == NULL ? tn_error_last()->code : tn_list_append(tail, part);
        tn_module_drop(part);
    }
    return status;
}

static tn_status reset_part(void *user, const char *path, tn_module *module)
{
    (void)user;
    (void)path;
    return strcmp(tn_module_type(module), "Linear") == 0 ? tn_module_reset_parameters(module)
                                                         : TN_OK;
}

static tn_status adaptive_reset(tn_module *self)
{
    return tn_module_each(self, false, reset_part, NULL);
}

static tn_tensor *number_like(tn_tensor *like, double value)
{
    return tn_tensor_full(TN_SCALAR_SHAPE, value, tn_tensor_dtype(like), tn_tensor_device(like));
}

static tn_tensor *squeeze_last(tn_tensor *x)
{
    tn_squeeze_options o = TN_SQUEEZE_OPTIONS;
    const int64_t last = -1;

    o.dims = (tn_ints){ &last, 1 };
    return tn_squeeze(x, &o);
}

/* y[i] = x[i, at[i]] */
static tn_tensor *pick(tn_tensor *x, tn_tensor *at)
{
    return squeeze_last(tn_gather(x, tn_unsqueeze(at, 1), 1));
}

/* log p of every class, [N, n_classes] */
static tn_tensor *all_classes(tn_module *self, tn_tensor *x)
{
    const struct adaptive *s = tn_module_data(self);
    tn_module *tail = tn_module_child(self, "tail");
    tn_tensor *head = tn_log_softmax(tn_module_call(tn_module_child(self, "head"), x), 1);
    tn_tensor *all = tn_narrow(head, 1, 0, s->cutoffs.at[0]);

    for (int64_t i = 0; i < s->cutoffs.count && all != NULL; i++) {
        tn_tensor *own = tn_log_softmax(tn_module_call(tn_module_child_at(tail, i), x), 1);
        tn_tensor *both[] = { all, tn_add(own, tn_narrow(head, 1, s->cutoffs.at[0] + i, 1), NULL) };

        all = both[1] == NULL ? NULL : tn_cat(both, 2, 1);
    }
    return all;
}

static tn_status targets_fit(tn_tensor *target, const struct adaptive *s)
{
    double low, high;

    if (tn_tensor_numel(target) == 0)
        return TN_OK;
    low = tn_item(tn_amin(target, NULL));
    high = tn_item(tn_amax(target, NULL));
    if (low >= 0 && high < (double)s->n_classes)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "AdaptiveLogSoftmaxWithLoss: Target values should be in [0, %lld], but values "
                   "in range [%lld, %lld] were found.",
                   (long long)s->n_classes - 1, (long long)low, (long long)high);
}

/* log p of each sample's own class, [N]: a cluster is computed for its samples only. */
static tn_tensor *own_classes(tn_module *self, tn_tensor *x, tn_tensor *target)
{
    const struct adaptive *s = tn_module_data(self);
    tn_module *tail = tn_module_child(self, "tail");
    tn_tensor *head = tn_log_softmax(tn_module_call(tn_module_child(self, "head"), x), 1);
    tn_tensor *place = target, *more = NULL, *sum;

    for (int64_t i = 0; i < s->cutoffs.count; i++) {
        tn_tensor *from = tn_ge(target, number_like(target, (double)s->cutoffs.at[i]));
        tn_tensor *inside = tn_logical_and(
            from, tn_lt(target, number_like(target, (double)end_of(s, i))));
        tn_tensor *rows = squeeze_last(tn_nonzero(inside)), *own, *at;

        place = tn_where(inside, number_like(target, (double)(s->cutoffs.at[0] + i)), place);
        if (rows == NULL || place == NULL)
            return NULL;
        if (tn_tensor_numel(rows) == 0)
            continue;
        own = tn_log_softmax(
            tn_module_call(tn_module_child_at(tail, i), tn_index_select(x, rows, 0)), 1);
        at = tn_add_scalar(tn_index_select(target, rows, 0), -(double)s->cutoffs.at[i]);
        own = pick(own, at);
        if (own == NULL)
            return NULL;
        if (more == NULL)
            more = tn_tensor_full(tn_tensor_shape(target), 0, tn_tensor_dtype(own),
                                  tn_tensor_device(own));
        more = tn_index_add(more, rows, own, 0, NULL);
    }
    sum = pick(head, place);
    return more == NULL ? sum : tn_add(sum, more, NULL);
}

static tn_status adaptive_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static const char *const names[] = { "input", "target" };
    const struct adaptive *s = tn_module_data(self);
    tn_value v[2];
    tn_tensor *x = NULL, *target = NULL, *y;
    bool single;
    tn_status status = layers_take(self, input, names, 2, v);

    if (status == TN_OK)
        status = layers_tensor_of(self, names[0], &v[0], &x);
    if (status == TN_OK && v[1].kind != TN_VALUE_NONE)
        status = layers_tensor_of(self, names[1], &v[1], &target);
    if (status != TN_OK)
        return status;
    single = tn_tensor_ndim(x) == 1;
    if ((!single && tn_tensor_ndim(x) != 2) ||
        (target != NULL && tn_tensor_ndim(target) != (single ? 0 : 1)) ||
        (target != NULL && !single && tn_tensor_size(x, 0) != tn_tensor_size(target, 0)))
        return tn_fail(TN_ERR_RUNTIME,
                       "AdaptiveLogSoftmaxWithLoss: Input and target should have the same size in "
                       "the batch dimension: [N, in_features] and [N], or [in_features] and []");
    x = single ? tn_unsqueeze(x, 0) : x;
    if (target == NULL) {
        y = all_classes(self, x);
        return layers_give(output, single && y != NULL ? tn_select(y, 0, 0) : y);
    }
    target = single ? tn_unsqueeze(target, 0) : target;
    status = targets_fit(target, s);
    if (status != TN_OK)
        return status;
    y = own_classes(self, x, target);
    status = layers_give(output, single && y != NULL ? tn_select(y, 0, 0) : y);
    return status == TN_OK ? layers_give(output, tn_neg(tn_mean(y, NULL))) : status;
}

const tn_layer layer_adaptive_log_softmax = {
    TN_HEAD(tn_layer),
    .name = "AdaptiveLogSoftmaxWithLoss",
    .help = "output, loss = module(input, target): log p of each target, and the mean of -output; "
            "module(input): log p of every class",
    .options = adaptive_options,
    .data_size = sizeof(struct adaptive),
    .version = 1,
    .build = adaptive_build,
    .reset = adaptive_reset,
    .call = adaptive_call,
    .repr = layers_no_words,
};

/* ---- TripletMarginWithDistanceLoss: any module of two inputs as the distance --------------------- */

struct triplet {
    tn_value distance_function;
    double margin;
    bool swap;
    const char *reduction;
};

static const tn_option triplet_options[] = {
    TN_OPTION_ROW(struct triplet, distance_function, "None",
                  "a module of two inputs; None: PairwiseDistance()", TN_OPTION_KIND_VALUE,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct triplet, margin, "1.0", "how far apart", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct triplet, swap, "False", "the nearer pair counts", TN_OPTION_KIND_BOOL,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct triplet, reduction, "'mean'", "none, mean or sum", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status reduction_known(tn_module *self, const char *word)
{
    if (strcmp(word, "mean") == 0 || strcmp(word, "sum") == 0 || strcmp(word, "none") == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: %q is not a valid value for reduction; none, mean and sum are",
                   tn_module_type(self), word);
}

static tn_status triplet_build(tn_module *self)
{
    const struct triplet *s = tn_module_data(self);
    tn_status status = reduction_known(self, s->reduction);

    if (status == TN_OK && !(s->margin > 0))
        status = tn_fail(TN_ERR_VALUE,
                         "TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                         "got %g instead",
                         s->margin);
    if (status != TN_OK)
        return status;
    return s->distance_function.kind == TN_VALUE_NONE
               ? layers_child(self, "distance_function", "PairwiseDistance()")
               : layers_child_value(self, "distance_function", &s->distance_function);
}

static tn_tensor *distance(tn_module *self, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *const in[] = { a, b };

    return layers_call(tn_module_child(self, "distance_function"), in, 2, NULL, NULL, 0);
}

static tn_status triplet_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static const char *const names[] = { "anchor", "positive", "negative" };
    const struct triplet *s = tn_module_data(self);
    tn_clamp_options above = TN_CLAMP_OPTIONS;
    tn_value v[3];
    tn_tensor *x[3] = { NULL, NULL, NULL }, *near, *far, *y;
    tn_status status = layers_take(self, input, names, 3, v);

    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = layers_tensor_of(self, names[i], &v[i], &x[i]);
    if (status != TN_OK)
        return status;
    near = distance(self, x[0], x[1]);
    far = near != NULL ? distance(self, x[0], x[2]) : NULL;
    if (far != NULL && s->swap)
        far = tn_minimum(far, distance(self, x[1], x[2]));
    above.min = 0;
    y = tn_clamp(tn_add_scalar(tn_sub(near, far, NULL), s->margin), &above);
    if (strcmp(s->reduction, "mean") == 0)
        y = tn_mean(y, NULL);
    else if (strcmp(s->reduction, "sum") == 0)
        y = tn_sum(y, NULL);
    return layers_give(output, y);
}

const tn_layer layer_triplet_with_distance = {
    TN_HEAD(tn_layer),
    .name = "TripletMarginWithDistanceLoss",
    .help = "max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced",
    .options = triplet_options,
    .data_size = sizeof(struct triplet),
    .version = 1,
    .build = triplet_build,
    .call = triplet_call,
    .repr = layers_no_words,
};

/* ---- LinearCrossEntropyLoss: a linear layer and the cross entropy of what it gives ---------------- */

struct linear_loss {
    int64_t in_features;
    int64_t num_classes;
    tn_ints out_features;
    bool bias;
    const char *reduction;
    int64_t ignore_index; /* INT64_MIN: -100 */
    double label_smoothing;
};

static const tn_option linear_loss_options[] = {
    TN_OPTION_ROW(struct linear_loss, in_features, NULL, "size of each input sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, num_classes, NULL, "classes", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, out_features, "()",
                  "further dimensions of the logits, behind the classes", TN_OPTION_KIND_INTS,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, bias, "False", "whether a bias is learned and added",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, reduction, "'mean'", "none, mean or sum",
                  TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, ignore_index, "None",
                  "a target that does not count; None: -100", TN_OPTION_KIND_INT,
                  TN_OPTION_KEYWORD | TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct linear_loss, label_smoothing, "0.0",
                  "share of the target that is spread over all classes", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status linear_loss_build(tn_module *self)
{
    const struct linear_loss *s = tn_module_data(self);
    int64_t all = s->num_classes;
    tn_status status = reduction_known(self, s->reduction);

    if (status == TN_OK && !(s->label_smoothing >= 0.0 && s->label_smoothing <= 1.0))
        status = tn_fail(TN_ERR_VALUE,
                         "LinearCrossEntropyLoss: label_smoothing is %g; expected a number from "
                         "0 to 1",
                         s->label_smoothing);
    for (int64_t i = 0; i < s->out_features.count && status == TN_OK; i++) {
        if (s->out_features.at[i] < 1)
            status = tn_fail(TN_ERR_VALUE,
                             "LinearCrossEntropyLoss: out_features has %lld; sizes from 1 are "
                             "taken",
                             (long long)s->out_features.at[i]);
        else
            status = layers_times(self, "num_classes, times out_features,", all,
                                  s->out_features.at[i], &all);
    }
    if (status == TN_OK && s->out_features.count > TN_MAX_DIMS - 2)
        status = tn_fail(TN_ERR_VALUE, "LinearCrossEntropyLoss: out_features has %lld dimensions",
                         (long long)s->out_features.count);
    return status == TN_OK
               ? layers_child(self, "linear", "Linear(%lld, %lld, bias=%s)",
                              (long long)s->in_features, (long long)all, layers_truth(s->bias))
               : status;
}

static tn_status linear_loss_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static const char *const names[] = { "input", "target" };
    const struct linear_loss *s = tn_module_data(self);
    tn_cross_entropy_options o = TN_CROSS_ENTROPY_OPTIONS;
    int64_t shape[TN_MAX_DIMS], ndim = 0;
    tn_value v[2];
    tn_tensor *x[2] = { NULL, NULL }, *y;
    tn_status status = layers_take(self, input, names, 2, v);

    for (int i = 0; i < 2 && status == TN_OK; i++)
        status = layers_tensor_of(self, names[i], &v[i], &x[i]);
    if (status != TN_OK)
        return status;
    if (tn_tensor_ndim(x[0]) != 1 && tn_tensor_ndim(x[0]) != 2)
        return tn_fail(TN_ERR_VALUE,
                       "LinearCrossEntropyLoss: input is [N, in_features] or [in_features]; got "
                       "%d dimension%s",
                       (int)tn_tensor_ndim(x[0]), tn_tensor_ndim(x[0]) == 1 ? "" : "s");
    y = tn_module_call(tn_module_child(self, "linear"), x[0]);
    if (y == NULL)
        return tn_error_last()->code;
    if (tn_tensor_ndim(y) == 2)
        shape[ndim++] = tn_tensor_size(y, 0);
    shape[ndim++] = s->num_classes;
    for (int64_t i = 0; i < s->out_features.count; i++)
        shape[ndim++] = s->out_features.at[i];
    o.reduction = s->reduction;
    o.ignore_index = s->ignore_index == INT64_MIN ? -100 : s->ignore_index;
    o.label_smoothing = s->label_smoothing;
    return layers_give(output, tn_cross_entropy(tn_reshape(y, (tn_ints){ shape, ndim }), x[1], &o));
}

static int64_t linear_loss_repr(tn_module *self, char *out, size_t size)
{
    const struct linear_loss *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text,
               "in_features=%lld, num_classes=%lld, out_features=", (long long)s->in_features,
               (long long)s->num_classes);
    if (s->out_features.count == 0)
        layers_put(&text, "()");
    else
        layers_put_row(&text, s->out_features, s->out_features.count);
    layers_put(&text, ", bias=%s, reduction=%s, ignore_index=", layers_truth(s->bias),
               s->reduction);
    if (s->ignore_index == INT64_MIN)
        layers_put(&text, "None");
    else
        layers_put(&text, "%lld", (long long)s->ignore_index);
    layers_put(&text, ", label_smoothing=%g, options=None", s->label_smoothing);
    return text.used;
}

const tn_layer layer_linear_cross_entropy = {
    TN_HEAD(tn_layer),
    .name = "LinearCrossEntropyLoss",
    .help = "the cross entropy of a linear layer of the input: loss = module(input, target)",
    .options = linear_loss_options,
    .data_size = sizeof(struct linear_loss),
    .version = 1,
    .build = linear_loss_build,
    .call = linear_loss_call,
    .repr = linear_loss_repr,
};
