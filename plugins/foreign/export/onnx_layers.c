/* SPDX-License-Identifier: MIT
 *
 * Normalization and recurrent networks as nodes of ONNX (onnx.h). */
#include "export/onnx.h"

#include <float.h>
#include <string.h>

typedef const struct onnx_value value;

/* A weight, or a list of equal numbers where it is absent. */
static value *weight_or(struct onnx_call *call, const char *name, double number, int64_t count)
{
    value *given = onnx_make_in(call, name);

    return given != NULL ? given : onnx_make_filled(call, number, call->meta.dtype, count);
}

static void norm_by(struct onnx_call *call, const char *op, double eps)
{
    int64_t channels = onnx_make_meta(call, "x").shape[1];
    bool stored = strcmp(op, "BatchNormalization") == 0;
    value *x = onnx_make_in(call, "x"), *scale = weight_or(call, "weight", 1, channels);
    value *bias = weight_or(call, "bias", 0, channels);

    onnx_make_begin(call, op, 1);
    onnx_make_add(call, x);
    onnx_make_add(call, scale);
    onnx_make_add(call, bias);
    if (stored) {
        onnx_make_add(call, onnx_make_in(call, "running_mean"));
        onnx_make_add(call, onnx_make_in(call, "running_var"));
    }
    onnx_make_float(call, "epsilon", eps);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static void batch_norm(struct onnx_call *call)
{
    norm_by(call, "BatchNormalization", ((const tn_batch_norm_options *)call->options)->eps);
}

static bool has_statistics(const tn_node *node)
{
    const bool *training = export_option(node, "training");
    const bool *own = export_option(node, "use_input_stats");

    return (training == NULL || !*training) && (own == NULL || !*own) &&
           tn_node_input(node, 1) != TN_NODE_NONE && tn_node_input(node, 2) != TN_NODE_NONE;
}

static void instance_norm(struct onnx_call *call)
{
    const tn_instance_norm_options *o = call->options;

    norm_by(call, o->use_input_stats ? "InstanceNormalization" : "BatchNormalization", o->eps);
}

static bool is_instance(const tn_node *node)
{
    const bool *own = export_option(node, "use_input_stats");
    tn_meta meta;

    return has_statistics(node) || (*own && tn_node_meta(node, &meta) == TN_OK && meta.ndim >= 3);
}

static void layer_norm(struct onnx_call *call)
{
    const tn_layer_norm_options *o = call->options;
    tn_ints shape = o->normalized_shape;
    int64_t count = 1;
    value *x = onnx_make_in(call, "x"), *scale = onnx_make_in(call, "weight");
    value *bias = onnx_make_in(call, "bias");

    for (int64_t i = 0; i < shape.count; i++)
        count *= shape.at[i];
    if (scale == NULL) {
        scale = onnx_make_filled(call, 1, call->meta.dtype, count);
        if (shape.count > 1)
            scale = onnx_make_2(call, "Reshape", scale,
                                onnx_make_list(call, shape.at, shape.count));
    }
    onnx_make_begin(call, "LayerNormalization", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, scale);
    onnx_make_add(call, bias);
    onnx_make_int(call, "axis", -shape.count);
    onnx_make_float(call, "epsilon", o->eps);
    onnx_make_give(call, 0, onnx_make_end(call));
}

/* A list of the channels as a tensor that broadcasts to x. */
static value *by_channel(struct onnx_call *call, value *list, int64_t channels)
{
    int64_t shape[TN_MAX_DIMS], count = call->meta.ndim > 1 ? call->meta.ndim - 1 : 1;

    for (int64_t i = 0; i < count; i++)
        shape[i] = i == 0 ? channels : 1;
    return onnx_make_2(call, "Reshape", list, onnx_make_list(call, shape, count));
}

/* Each group is normalized as an instance with one channel. */
static void group_norm(struct onnx_call *call)
{
    const tn_group_norm_options *o = call->options;
    int64_t channels = onnx_make_meta(call, "x").shape[1], groups[3] = { 0, o->num_groups, -1 };
    value *x = onnx_make_in(call, "x"), *shape = onnx_make_shape(call), *y, *weight, *bias;

    y = onnx_make_2(call, "Reshape", x, onnx_make_list(call, groups, 3));
    weight = onnx_make_filled(call, 1, call->meta.dtype, o->num_groups);
    bias = onnx_make_filled(call, 0, call->meta.dtype, o->num_groups);
    onnx_make_begin(call, "InstanceNormalization", 1);
    onnx_make_add(call, y);
    onnx_make_add(call, weight);
    onnx_make_add(call, bias);
    onnx_make_float(call, "epsilon", o->eps);
    y = onnx_make_2(call, "Reshape", onnx_make_end(call), shape);
    weight = onnx_make_in(call, "weight");
    bias = onnx_make_in(call, "bias");
    if (weight != NULL)
        y = onnx_make_2(call, "Mul", y, by_channel(call, weight, channels));
    if (bias != NULL)
        y = onnx_make_2(call, "Add", y, by_channel(call, bias, channels));
    onnx_make_give(call, 0, y);
}

static value *mean_of(struct onnx_call *call, value *x, const int64_t *dims, int64_t count)
{
    value *axes = call->model->opset >= 18 ? onnx_make_list(call, dims, count) : NULL;

    onnx_make_begin(call, "ReduceMean", 1);
    onnx_make_add(call, x);
    if (axes != NULL)
        onnx_make_add(call, axes);
    else
        onnx_make_ints(call, "axes", dims, count);
    onnx_make_int(call, "keepdims", 1);
    return onnx_make_end(call);
}

static value *root_of(struct onnx_call *call, value *variance, double eps)
{
    variance = onnx_make_2(call, "Add", variance, onnx_make_number(call, eps, call->meta.dtype));
    return onnx_make_1(call, "Sqrt", variance);
}

static void rms_norm(struct onnx_call *call)
{
    const tn_rms_norm_options *o = call->options;
    bool given = o->eps == o->eps; /* None is NaN */
    double eps = given ? o->eps : call->meta.dtype == TN_F64 ? DBL_EPSILON : FLT_EPSILON;
    int64_t dims[TN_MAX_DIMS];
    value *x = onnx_make_in(call, "x"), *weight = onnx_make_in(call, "weight"), *y;

    for (int64_t i = 0; i < o->normalized_shape.count; i++)
        dims[i] = i - o->normalized_shape.count;
    y = mean_of(call, onnx_make_2(call, "Mul", x, x), dims, o->normalized_shape.count);
    y = onnx_make_2(call, "Div", x, root_of(call, y, eps));
    onnx_make_give(call, 0, weight != NULL ? onnx_make_2(call, "Mul", y, weight) : y);
}

static void standardize(struct onnx_call *call)
{
    const tn_standardize_options *o = call->options;
    value *x = onnx_make_in(call, "x"), *weight = onnx_make_in(call, "weight");
    value *bias = onnx_make_in(call, "bias"), *mean, *variance, *y;

    mean = mean_of(call, x, o->dims.at, o->dims.count);
    y = onnx_make_2(call, "Sub", x, mean);
    variance = mean_of(call, onnx_make_2(call, "Mul", y, y), o->dims.at, o->dims.count);
    y = onnx_make_2(call, "Div", y, root_of(call, variance, o->eps));
    if (weight != NULL)
        y = onnx_make_2(call, "Mul", y, weight);
    if (bias != NULL)
        y = onnx_make_2(call, "Add", y, bias);
    onnx_make_give(call, 0, y);
    onnx_make_give(call, 1, mean);
    onnx_make_give(call, 2, variance);
}

static void local_response_norm(struct onnx_call *call)
{
    const tn_local_response_norm_options *o = call->options;
    value *x = onnx_make_in(call, "x");

    onnx_make_begin(call, "LRN", 1);
    onnx_make_add(call, x);
    onnx_make_int(call, "size", o->neighbours);
    onnx_make_float(call, "alpha", o->alpha);
    onnx_make_float(call, "beta", o->beta);
    onnx_make_float(call, "bias", o->k);
    onnx_make_give(call, 0, onnx_make_end(call));
}

/* Around an even number of channels, ONNX has one more behind. */
static bool is_odd(const tn_node *node)
{
    const int64_t *count = export_option(node, "neighbours");
    tn_meta meta;

    return *count % 2 == 1 && tn_node_meta(node, &meta) == TN_OK && meta.ndim >= 3;
}

/* ---- recurrent networks ---------------------------------------------------------------------- */

/* The gates in ONNX's order. */
static const struct recurrent {
    const char *op, *name;
    int64_t gates, order[4];
} kinds[] = {
    { "LSTM", "lstm_sequence", 4, { 0, 3, 1, 2 } },
    { "GRU", "gru_sequence", 3, { 1, 0, 2 } },
    { "RNN", "rnn_sequence", 1, { 0 } },
};

static value *ordered(struct onnx_call *call, const struct recurrent *kind, const char *name)
{
    value *x = onnx_make_in(call, name), *parts[4];

    if (kind->gates == 1)
        return x;
    parts[0] = onnx_make_split(call, x, 0, kind->gates);
    for (int64_t i = 1; i < kind->gates; i++)
        parts[i] = onnx_make_output(call, i);
    onnx_make_begin(call, "Concat", 1);
    for (int64_t i = 0; i < kind->gates; i++)
        onnx_make_add(call, parts[kind->order[i]]);
    onnx_make_int(call, "axis", 0);
    return onnx_make_end(call);
}

/* With a dimension in front, for the directions. */
static value *of_direction(struct onnx_call *call, value *x)
{
    int64_t first = 0;

    return onnx_make_2(call, "Unsqueeze", x, onnx_make_list(call, &first, 1));
}

static value *biases(struct onnx_call *call, const struct recurrent *kind)
{
    value *parts[2];

    if (onnx_make_source(call, "b_ih") == NULL || onnx_make_source(call, "b_hh") == NULL)
        return NULL;
    parts[0] = ordered(call, kind, "b_ih");
    parts[1] = ordered(call, kind, "b_hh");
    onnx_make_begin(call, "Concat", 1);
    onnx_make_add(call, parts[0]);
    onnx_make_add(call, parts[1]);
    onnx_make_int(call, "axis", 0);
    return of_direction(call, onnx_make_end(call));
}

static void put_kind(struct onnx_call *call, const struct recurrent *kind)
{
    int64_t hidden = onnx_make_meta(call, "w_hh").shape[1];
    const bool *reverse = export_option(call->node, "reverse");
    const char *const *function = export_option(call->node, "nonlinearity");
    const char *word = function != NULL && strcmp(*function, "relu") == 0 ? "Relu" : "Tanh";

    onnx_make_int(call, "hidden_size", hidden);
    onnx_make_word(call, "direction", *reverse ? "reverse" : "forward");
    if (function != NULL)
        onnx_make_words(call, "activations", &word, 1);
    if (strcmp(kind->op, "GRU") == 0)
        onnx_make_int(call, "linear_before_reset", 1);
}

static void sequence(struct onnx_call *call)
{
    const struct recurrent *kind = kinds;
    int64_t first = 0, second = 1;
    value *in[7] = { NULL }, *out[3];

    while (strcmp(kind->name, call->def->name) != 0)
        kind++;
    in[0] = onnx_make_in(call, "x");
    in[1] = of_direction(call, ordered(call, kind, "w_ih"));
    in[2] = of_direction(call, ordered(call, kind, "w_hh"));
    in[3] = biases(call, kind);
    in[4] = onnx_make_in(call, "lengths");
    if (in[4] != NULL)
        in[4] = onnx_make_cast(call, in[4], TN_I32);
    in[5] = of_direction(call, onnx_make_in(call, "h"));
    if (strcmp(kind->op, "LSTM") == 0)
        in[6] = of_direction(call, onnx_make_in(call, "c"));
    onnx_make_begin(call, kind->op, in[6] != NULL ? 3 : 2);
    for (int i = 0; i < 7; i++)
        onnx_make_add(call, in[i]);
    put_kind(call, kind);
    out[0] = onnx_make_end(call);
    out[1] = onnx_make_output(call, 1);
    out[2] = in[6] != NULL ? onnx_make_output(call, 2) : NULL;
    onnx_make_give(call, 0, onnx_make_2(call, "Squeeze", out[0], onnx_make_list(call, &second, 1)));
    for (int i = 1; i < (in[6] != NULL ? 3 : 2); i++)
        onnx_make_give(call, i,
                       onnx_make_2(call, "Squeeze", out[i], onnx_make_list(call, &first, 1)));
}

/* One bias without the other, and projections, are decomposed. */
static bool is_sequence(const tn_node *node)
{
    const tn_op_def *def = export_def(node);
    bool biases[2] = { false, false };

    for (int32_t i = 0; i < def->n_inputs && i < tn_node_input_count(node); i++) {
        bool given = tn_node_input(node, i) != TN_NODE_NONE;

        if (strcmp(def->inputs[i].name, "w_hr") == 0 && given)
            return false;
        if (strcmp(def->inputs[i].name, "b_ih") == 0)
            biases[0] = given;
        if (strcmp(def->inputs[i].name, "b_hh") == 0)
            biases[1] = given;
    }
    return biases[0] == biases[1];
}

const struct onnx_rule onnx_write_layers[] = {
    { "batch_norm", .call = batch_norm, .fits = has_statistics },
    { "instance_norm", .call = instance_norm, .fits = is_instance },
    { "layer_norm", .call = layer_norm },
    { "group_norm", .call = group_norm },
    { "rms_norm", .call = rms_norm },
    { "standardize", .call = standardize },
    { "local_response_norm", .call = local_response_norm, .fits = is_odd },
    { "lstm_sequence", .call = sequence, .fits = is_sequence },
    { "gru_sequence", .call = sequence, .fits = is_sequence },
    { "rnn_sequence", .call = sequence, .fits = is_sequence },
    { .op = NULL },
};
