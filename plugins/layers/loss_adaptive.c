/* SPDX-License-Identifier: MIT
 *
 * AdaptiveLogSoftmaxWithLoss: frequent classes are in the head, the other classes in clusters. */
#include "helpers.h"
#include <math.h>
#include <string.h>

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
    TN_OPTION_ROW(struct adaptive, n_classes, NULL,
                  "number of classes; the most frequent classes come first", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct adaptive, cutoffs, NULL, "the first class of each cluster",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct adaptive, div_value, "4.0",
                  "factor by which the number of features decreases from cluster to cluster",
                  TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct adaptive, head_bias, "False", "whether the head has a bias",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

/* Returns the number of the class after the last class of cluster `i`. */
static int64_t end_of(const struct adaptive *s, int64_t i)
{
    return i + 1 < s->cutoffs.count ? s->cutoffs.at[i + 1] : s->n_classes;
}

static tn_status adaptive_check(const struct adaptive *s)
{
    bool good = s->cutoffs.count > 0 && s->in_features > 0 && s->div_value > 0;
    char got[80];
    layers_text text = { .out = got, .size = sizeof got };

    for (int64_t i = 0; i < s->cutoffs.count && good; i++)
        good = s->cutoffs.at[i] > (i > 0 ? s->cutoffs.at[i - 1] : 0) &&
               s->cutoffs.at[i] < s->n_classes;
    if (good)
        return TN_OK;
    layers_put_row(&text, s->cutoffs, s->cutoffs.count);
    return tn_fail(TN_ERR_VALUE,
                   /* PyTorch's wording */
                   "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive "
                   "integers sorted in an increasing order, where each value is between 1 and "
                   "n_classes-1, and in_features and div_value positive; got cutoffs %s, n_classes "
                   "%lld, in_features %lld, div_value %g",
                   got, (long long)s->n_classes, (long long)s->in_features, s->div_value);
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
        double inner = floor((double)s->in_features / pow(s->div_value, (double)(i + 1)));
        tn_module *part;

        if (!(inner < 0x1p63)) {
            status = tn_fail(TN_ERR_VALUE,
                             "AdaptiveLogSoftmaxWithLoss: div_value: too small, got %g; expected "
                             "fewer than 2^63 features in each cluster",
                             s->div_value);
            break;
        }
        part = tn_module_new(
            "Sequential(Linear(%lld, %lld, bias=False), Linear(%lld, %lld, bias=False))",
            (long long)s->in_features, (long long)(int64_t)inner, (long long)(int64_t)inner,
            (long long)(end_of(s, i) - s->cutoffs.at[i]));

        status = part == NULL ? tn_error_last_code() : tn_list_append(tail, part);
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
    const int64_t last = -1;

    return tn_squeeze(x, TN_INTS(last));
}

/* y[i] = x[i, at[i]] */
static tn_tensor *pick(tn_tensor *x, tn_tensor *at)
{
    return squeeze_last(tn_gather(x, tn_unsqueeze(at, 1), 1));
}

/* Returns the log-probability of every class, [N, n_classes]. */
static tn_tensor *all_classes(tn_module *self, tn_tensor *x)
{
    const struct adaptive *s = tn_module_data(self);
    tn_module *tail = tn_module_child(self, "tail");
    tn_tensor *head = tn_log_softmax(tn_module_call(tn_module_child(self, "head"), x), 1);
    tn_tensor *all = tn_narrow(head, 1, 0, s->cutoffs.at[0]);

    for (int64_t i = 0; i < s->cutoffs.count && all != NULL; i++) {
        tn_tensor *own = tn_log_softmax(tn_module_call(tn_module_child_at(tail, i), x), 1);
        tn_tensor *both[] = { all, tn_add(own, tn_narrow(head, 1, s->cutoffs.at[0] + i, 1)) };

        all = both[1] == NULL ? NULL : tn_cat(both, 2, 1);
    }
    return all;
}

static tn_status targets_fit(tn_tensor *target, const struct adaptive *s)
{
    tn_scalar least, most;
    double low, high;

    if (tn_tensor_numel(target) == 0)
        return TN_OK;
    if (tn_tensor_scalar(tn_amin(target), &least) != TN_OK ||
        tn_tensor_scalar(tn_amax(target), &most) != TN_OK)
        return tn_error_last_code();
    low = tn_scalar_as_float(least);
    high = tn_scalar_as_float(most);
    if (low >= 0 && high < (double)s->n_classes)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   /* PyTorch's wording */
                   "AdaptiveLogSoftmaxWithLoss: Target values should be in [0, %lld], but values "
                   "in range [%lld, %lld] were found.",
                   (long long)s->n_classes - 1, (long long)tn_scalar_as_int(least),
                   (long long)tn_scalar_as_int(most));
}

/* Returns the log-probability of each sample's target, [N]. Computes each cluster only for the
 * samples whose targets it contains. */
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
        at = tn_add_scalar(tn_index_select(target, rows, 0), -s->cutoffs.at[i]);
        own = pick(own, at);
        if (own == NULL)
            return NULL;
        if (more == NULL)
            more = tn_tensor_full(tn_tensor_shape(target), 0, tn_tensor_dtype(own),
                                  tn_tensor_device(own));
        more = tn_index_add(more, rows, own, 0);
        if (more == NULL)
            return NULL;
    }
    sum = pick(head, place);
    return more == NULL ? sum : tn_add(sum, more);
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
                       /* PyTorch's wording */
                       "AdaptiveLogSoftmaxWithLoss: Input and target should have the same size in "
                       "the batch dimension: [N, in_features] and [N], or [in_features] and []; "
                       "they have %d and %d dimensions, %lld and %lld elements",
                       (int)tn_tensor_ndim(x), target != NULL ? (int)tn_tensor_ndim(target) : 0,
                       (long long)tn_tensor_numel(x),
                       (long long)(target != NULL ? tn_tensor_numel(target) : 0));
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
    return status == TN_OK ? layers_give(output, tn_neg(tn_mean(y))) : status;
}

const tn_layer_def layer_adaptive_log_softmax = {
    TN_HEAD(tn_layer_def),
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
