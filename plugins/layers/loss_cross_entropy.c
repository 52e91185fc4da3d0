/* SPDX-License-Identifier: MIT
 *
 * Classification losses: CrossEntropyLoss, NLLLoss, LinearCrossEntropyLoss. Options after
 * the weight must be given by name, because PyTorch has other options between them. */
#include "helpers.h"

struct loss {
    int64_t ignore_index;
    const char *reduction;
    double label_smoothing;
    tn_value weight; /* only until `build` makes it a buffer */
};

#define WEIGHT(type, flags) LAYERS_WEIGHT(type, weight, "a factor for each class", flags)

static const tn_option cross_entropy_options[] = {
    WEIGHT(struct loss, 0),
    TN_OPTION_ROW(struct loss, ignore_index, "-100",
                  "an index that is ignored; negative with probabilities", TN_OPTION_KIND_INT,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct loss, reduction, "'mean'", "none, mean or sum", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct loss, label_smoothing, "0.0",
                  "fraction of the target that is spread over all classes", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static const tn_option nll_options[] = {
    WEIGHT(struct loss, 0),
    TN_OPTION_ROW(struct loss, ignore_index, "-100", "a target that is ignored", TN_OPTION_KIND_INT,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct loss, reduction, "'mean'", "none, mean or sum", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status check(tn_module *self)
{
    struct loss *s = tn_module_data(self);
    tn_status status = layers_check_reduction(self, s->reduction);

    if (status != TN_OK)
        return status;
    if (!(s->label_smoothing >= 0.0 && s->label_smoothing <= 1.0))
        return tn_fail(
            TN_ERR_VALUE,
            /* PyTorch's wording */ "%s: label_smoothing must be between 0.0 and 1.0. Got: %g",
            tn_module_type(self), s->label_smoothing);
    return layers_weight_add(self, "weight", &s->weight);
}

/* Returns the cross entropy. Uses the operator without weights if there are none and the targets
 * are classes, because that operator is faster. */
static tn_tensor *cross_entropy_of(tn_module *self, tn_tensor *x, tn_tensor *target,
                                   const tn_cross_entropy_options *o)
{
    tn_cross_entropy_weighted_options weighted = TN_CROSS_ENTROPY_WEIGHTED_OPTIONS;
    tn_tensor *weight = tn_module_get(self, "weight");

    if (weight == NULL || x == NULL)
        return NULL;
    if (weight == TN_NONE && tn_tensor_dtype(target) == TN_I64)
        return tn_cross_entropy(x, target, o->reduction, o->ignore_index, o->label_smoothing);
    weighted.reduction = o->reduction;
    weighted.ignore_index = o->ignore_index;
    weighted.label_smoothing = o->label_smoothing;
    return tn_cross_entropy_weighted(x, target, weight, weighted.reduction, weighted.ignore_index,
                                     weighted.label_smoothing);
}

/* Reads input and target, by position or by name. */
static tn_status take_two(const tn_pack *pack, tn_tensor **input, tn_tensor **target)
{
    int64_t positional = tn_pack_positional(pack);
    int64_t at[2] = { positional > 0 ? 0 : tn_pack_find(pack, "input"),
                      positional > 1 ? 1 : tn_pack_find(pack, "target") };
    if (tn_pack_count(pack) != 2 || at[0] < 0 || at[1] < 0 || at[0] == at[1])
        return tn_fail(TN_ERR_TYPE,
                       "inputs: wrong number or names, got %lld; expected 2, input and target",
                       (long long)tn_pack_count(pack));
    *input = tn_pack_tensor(pack, at[0]);
    *target = tn_pack_tensor(pack, at[1]);
    return *input != NULL && *target != NULL ? TN_OK : tn_error_last_code();
}

static tn_status cross_entropy(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct loss *s = tn_module_data(self);
    tn_tensor *x = NULL, *target = NULL;
    tn_status status = take_two(input, &x, &target);
    if (status != TN_OK)
        return status;
    tn_cross_entropy_options options = TN_CROSS_ENTROPY_OPTIONS;
    options.reduction = s->reduction;
    options.ignore_index = s->ignore_index;
    options.label_smoothing = s->label_smoothing;
    return layers_give(output, cross_entropy_of(self, x, target, &options));
}

static tn_status nll(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct loss *s = tn_module_data(self);
    tn_nll_loss_options plain = TN_NLL_LOSS_OPTIONS;
    tn_nll_loss_weighted_options weighted = TN_NLL_LOSS_WEIGHTED_OPTIONS;
    tn_tensor *x = NULL, *target = NULL, *loss = NULL, *total = NULL;
    tn_tensor *weight = tn_module_get(self, "weight");
    tn_status status = take_two(input, &x, &target);

    if (status != TN_OK || weight == NULL)
        return tn_error_last_code();
    plain.reduction = weighted.reduction = s->reduction;
    plain.ignore_index = weighted.ignore_index = s->ignore_index;
    if (weight != TN_NONE || tn_tensor_ndim(x) != 2)
        return layers_give(output, tn_nll_loss_weighted(x, target, weight, weighted.reduction,
                                                        weighted.ignore_index));
    status = tn_nll_loss(x, target, &loss, &total, plain.reduction, plain.ignore_index);
    return status == TN_OK ? layers_give(output, loss) : status;
}

const tn_layer_def layer_cross_entropy_loss = {
    TN_HEAD(tn_layer_def),
    .name = "CrossEntropyLoss",
    .help = "-log_softmax(input)[target], reduced",
    .options = cross_entropy_options,
    .data_size = sizeof(struct loss),
    .version = 1,
    .build = check,
    .call = cross_entropy,
    .repr = layers_no_words,
};

const tn_layer_def layer_nll_loss = {
    TN_HEAD(tn_layer_def),
    .name = "NLLLoss",
    .help = "-input[target], reduced; input has log-probabilities",
    .options = nll_options,
    .data_size = sizeof(struct loss),
    .version = 1,
    .build = check,
    .call = nll,
    .repr = layers_no_words,
};

/* ---- LinearCrossEntropyLoss: cross entropy of the result of a linear layer ---- */

struct linear_loss {
    int64_t in_features;
    int64_t num_classes;
    tn_ints out_features;
    bool bias;
    const char *reduction;
    int64_t ignore_index; /* INT64_MIN (None): -100 */
    double label_smoothing;
    tn_value weight; /* only until `build` makes it a buffer */
    tn_value options;
};

static const tn_option linear_loss_options[] = {
    TN_OPTION_ROW(struct linear_loss, in_features, NULL, "size of each input sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, num_classes, NULL, "classes", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, out_features, "()",
                  "further dimensions of the logits, after the classes", TN_OPTION_KIND_INTS,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, bias, "False", "whether a bias is learned and added",
                  TN_OPTION_KIND_BOOL, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, reduction, "'mean'", "none, mean or sum",
                  TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD),
    WEIGHT(struct linear_loss, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, ignore_index, "None",
                  "an index that is ignored; None: -100, and the only value with probabilities",
                  TN_OPTION_KIND_INT, TN_OPTION_KEYWORD | TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct linear_loss, label_smoothing, "0.0",
                  "fraction of the target that is spread over all classes", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct linear_loss, options, "None",
                  "None: PyTorch's options for computing the loss in parts are not supported",
                  TN_OPTION_KIND_VALUE, TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status linear_loss_build(tn_module *self)
{
    struct linear_loss *s = tn_module_data(self);
    int64_t all = s->num_classes;
    tn_tensor *weight;
    tn_status status = layers_check_reduction(self, s->reduction);

    if (status == TN_OK && s->options.kind != TN_VALUE_NONE)
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                         "LinearCrossEntropyLoss: options: not supported, got %s; expected None",
                         tn_value_kind_name(s->options.kind));
    if (status == TN_OK && !(s->label_smoothing >= 0.0 && s->label_smoothing <= 1.0))
        status = tn_fail(
            TN_ERR_VALUE,
            "LinearCrossEntropyLoss: label_smoothing: out of range, got %g; expected a number "
            "from 0 to 1",
            s->label_smoothing);
    for (int64_t i = 0; i < s->out_features.count && status == TN_OK; i++) {
        if (s->out_features.at[i] < 1)
            status = tn_fail(TN_ERR_VALUE,
                             "LinearCrossEntropyLoss: out_features: wrong size, got %lld; expected "
                             "1 or more",
                             (long long)s->out_features.at[i]);
        else
            status = layers_times(self, "num_classes times out_features", all,
                                  s->out_features.at[i], &all);
    }
    if (status == TN_OK && s->out_features.count > TN_MAX_DIMS - 2)
        status = tn_fail(
            TN_ERR_VALUE,
            "LinearCrossEntropyLoss: out_features: too many dimensions, got %lld; expected at "
            "most %d",
            (long long)s->out_features.count, TN_MAX_DIMS - 2);
    if (status == TN_OK)
        status = layers_weight_add(self, "weight", &s->weight);
    weight = status == TN_OK ? tn_module_get(self, "weight") : TN_NONE;
    if (weight != TN_NONE &&
        (tn_tensor_ndim(weight) != 1 || tn_tensor_size(weight, 0) != s->num_classes))
        status = tn_fail(
            TN_ERR_RUNTIME,
            "LinearCrossEntropyLoss: weight: wrong shape, got %lld dimensions and %lld "
            "elements; expected [%lld], one number for each class",
            (long long)tn_tensor_ndim(weight), (long long)tn_tensor_numel(weight),
            (long long)s->num_classes);
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
        return tn_fail(
            TN_ERR_VALUE,
            "LinearCrossEntropyLoss: input: wrong number of dimensions, got %d; expected [N, "
            "in_features] or [in_features]",
            (int)tn_tensor_ndim(x[0]));
    if (s->ignore_index != INT64_MIN && (TN_MASK_FLOAT & TN_BIT(tn_tensor_dtype(x[1]))) != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "LinearCrossEntropyLoss: ignore_index: not supported, got %lld and probabilities as "
            "target; expected None, or indices as target",
            (long long)s->ignore_index);
    y = tn_module_call(tn_module_child(self, "linear"), x[0]);
    if (y == NULL)
        return tn_error_last_code();
    if (tn_tensor_ndim(y) == 2)
        shape[ndim++] = tn_tensor_size(y, 0);
    shape[ndim++] = s->num_classes;
    for (int64_t i = 0; i < s->out_features.count; i++)
        shape[ndim++] = s->out_features.at[i];
    o.reduction = s->reduction;
    o.ignore_index = s->ignore_index == INT64_MIN ? -100 : s->ignore_index;
    o.label_smoothing = s->label_smoothing;
    return layers_give(output,
                       cross_entropy_of(self, tn_reshape(y, (tn_ints){ shape, ndim }), x[1], &o));
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

const tn_layer_def layer_linear_cross_entropy = {
    TN_HEAD(tn_layer_def),
    .name = "LinearCrossEntropyLoss",
    .help = "the cross entropy of the result of a linear layer: loss = module(input, target)",
    .options = linear_loss_options,
    .data_size = sizeof(struct linear_loss),
    .version = 1,
    .build = linear_loss_build,
    .call = linear_loss_call,
    .repr = linear_loss_repr,
};
