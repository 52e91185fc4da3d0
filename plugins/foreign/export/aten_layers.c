/* SPDX-License-Identifier: MIT
 *
 * Operators whose functions of ATen have other arguments (aten.h): recurrent networks, resampling,
 * indices, new tensors. */
#include "export/aten.h"

#include <math.h>
#include <string.h>

static json_t *boolean(bool value)
{
    return json_pack("{s:b}", "as_bool", (int)value);
}

static json_t *whole(int64_t value)
{
    return json_pack("{s:I}", "as_int", (json_int_t)value);
}

/* ---- recurrent networks ---------------------------------------------------------------------- */

static bool has_input(const tn_node *node, const char *name)
{
    const tn_op_def *def = export_def(node);

    for (int32_t i = 0; i < def->n_inputs && i < tn_node_input_count(node); i++)
        if (strcmp(def->inputs[i].name, name) == 0)
            return tn_node_input(node, i) != TN_NODE_NONE;
    return false;
}

/* Lengths are a packed sequence in PyTorch, and projections are decomposed. */
static bool is_sequence(const tn_node *node)
{
    return !has_input(node, "lengths") && !has_input(node, "w_hr") &&
           has_input(node, "b_ih") == has_input(node, "b_hh");
}

static const char *weights[] = { "w_ih", "w_hh", "b_ih", "b_hh" };

static json_t *weight_list(struct aten_call *call)
{
    json_t *list = json_array();

    for (int i = 0; i < 4; i++)
        if (has_input(call->node, weights[i]) &&
            json_array_append_new(list,
                                  json_pack("{s:s}", "name", aten_make_in(call, weights[i]))) != 0)
            return NULL;
    return json_pack("{s:o}", "as_tensors", list);
}

static const char *flipped(struct aten_call *call, const char *x, bool reverse)
{
    return reverse ? aten_make_view(call, "flip.default", x, "dims", 0) : x;
}

/* One direction of one layer. The other direction runs from the end of the flipped sequence. */
static void sequence(struct aten_call *call)
{
    bool lstm = strcmp(call->def->name, "lstm_sequence") == 0;
    bool gru = strcmp(call->def->name, "gru_sequence") == 0;
    bool reverse = *(const bool *)export_option(call->node, "reverse");
    const char *const *function = export_option(call->node, "nonlinearity");
    const char *x, *state[2] = { NULL, NULL }, *y, *last[2];
    int64_t n_out = lstm ? 3 : 2;

    x = flipped(call, aten_make_in(call, "x"), reverse);
    state[0] = aten_make_view(call, "unsqueeze.default", aten_make_in(call, "h"), "dim", 0);
    if (lstm)
        state[1] = aten_make_view(call, "unsqueeze.default", aten_make_in(call, "c"), "dim", 0);
    aten_make_begin(call, lstm                                                 ? "lstm.input"
                          : gru                                                ? "gru.input"
                          : function != NULL && strcmp(*function, "relu") == 0 ? "rnn_relu.input"
                                                                               : "rnn_tanh.input");
    aten_make_add(call, "input", aten_make_tensor(x), false);
    if (lstm)
        aten_make_add(
            call, "hx",
            json_pack("{s:[{s:s}, {s:s}]}", "as_tensors", "name", state[0], "name", state[1]),
            false);
    else
        aten_make_add(call, "hx", aten_make_tensor(state[0]), false);
    aten_make_add(call, "params", weight_list(call), false);
    aten_make_add(call, "has_biases", boolean(has_input(call->node, "b_ih")), false);
    aten_make_add(call, "num_layers", whole(1), false);
    aten_make_add(call, "dropout", json_pack("{s:f}", "as_float", 0.0), false);
    aten_make_add(call, "train", boolean(false), false);
    aten_make_add(call, "bidirectional", boolean(false), false);
    aten_make_add(call, "batch_first", boolean(false), false);
    y = aten_make_end(call, n_out);
    last[0] = call->out[1];
    last[1] = call->out[2];
    aten_make_give(call, 0, flipped(call, y, reverse));
    for (int i = 0; i < n_out - 1; i++)
        aten_make_give(call, i + 1, aten_make_view(call, "squeeze.dim", last[i], "dim", 0));
}

/* ---- resampling ------------------------------------------------------------------------------ */

static const struct mode {
    const char *mode, *targets[3]; /* with one to three dimensions */
    bool corners;                  /* has the option align_corners */
} modes[] = {
    { "nearest",
      { "upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec" },
      false },
    { "nearest-exact",
      { "_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec",
        "_upsample_nearest_exact3d.vec" },
      false },
    { "linear", { "upsample_linear1d.vec", NULL, NULL }, true },
    { "bilinear", { NULL, "upsample_bilinear2d.vec", NULL }, true },
    { "bicubic", { NULL, "upsample_bicubic2d.vec", NULL }, true },
    { "trilinear", { NULL, NULL, "upsample_trilinear3d.vec" }, true },
};

static const struct mode *mode_of(const tn_node *node)
{
    const char *const *mode = export_option(node, "mode");

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].mode, *mode) == 0)
            return &modes[i];
    return NULL;
}

static bool is_resize(const tn_node *node)
{
    const struct mode *mode = mode_of(node);
    tn_meta meta;

    return mode != NULL && tn_node_meta(node, &meta) == TN_OK && meta.ndim >= 3 && meta.ndim <= 5 &&
           mode->targets[meta.ndim - 3] != NULL;
}

static void interpolate(struct aten_call *call)
{
    const tn_interpolate_options *o = call->options;
    const struct mode *mode = mode_of(call->node);
    bool scaled = o->scale_factor.count > 0 && !o->recompute_scale_factor;
    struct export_size at[TN_MAX_DIMS];
    json_t *sizes = json_array(), *scales = json_array();

    (void)export_sizes_of(&call->model->graph, call->node, at);
    for (int32_t i = 2; i < call->meta.ndim; i++) {
        int64_t k = o->scale_factor.count > 1 ? i - 2 : 0;

        if (at[i].a >= 0 && !scaled)
            aten_make_fail(call, "a size that varies; expected a scale factor");
        json_array_append_new(sizes, json_integer((json_int_t)at[i].number));
        if (scaled)
            json_array_append_new(scales, json_real(o->scale_factor.at[k]));
    }
    aten_make_begin(call, mode->targets[call->meta.ndim - 3]);
    aten_make_add(call, "input", aten_make_tensor(aten_make_in(call, "x")), false);
    aten_make_add(call, "output_size",
                  scaled ? aten_make_tensor(NULL) : json_pack("{s:O}", "as_ints", sizes), false);
    if (mode->corners)
        aten_make_add(call, "align_corners", boolean(o->align_corners), false);
    aten_make_add(call, "scale_factors",
                  scaled ? json_pack("{s:O}", "as_floats", scales) : aten_make_tensor(NULL), false);
    json_decref(sizes);
    json_decref(scales);
    aten_make_give(call, 0, aten_make_end(call, 1));
}

static int64_t place_in(const char *word, const char *const *words)
{
    for (int64_t i = 0; i < 3; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return 0;
}

static void grid_sample(struct aten_call *call)
{
    static const char *const kinds[] = { "bilinear", "nearest", "bicubic" };
    static const char *const paddings[] = { "zeros", "border", "reflection" };
    const tn_grid_sample_options *o = call->options;

    aten_make_begin(call, "grid_sampler.default");
    aten_make_add(call, "input", aten_make_tensor(aten_make_in(call, "x")), false);
    aten_make_add(call, "grid", aten_make_tensor(aten_make_in(call, "grid")), false);
    aten_make_add(call, "interpolation_mode", whole(place_in(o->mode, kinds)), false);
    aten_make_add(call, "padding_mode", whole(place_in(o->padding_mode, paddings)), false);
    aten_make_add(call, "align_corners", boolean(o->align_corners), false);
    aten_make_give(call, 0, aten_make_end(call, 1));
}

/* ---- convolutions, indices, new tensors ------------------------------------------------------ */

static void list_or(struct aten_call *call, const char *name, int64_t otherwise, int64_t n)
{
    const tn_ints *given = export_option(call->node, name);
    int64_t at[3] = { otherwise, otherwise, otherwise };

    aten_make_add(call, name,
                  aten_make_list(given != NULL && given->count > 0 ? given : &(tn_ints){ at, n }),
                  false);
}

static void convolution(struct aten_call *call)
{
    int64_t n = call->meta.ndim - 2;

    aten_make_begin(call, "convolution.default");
    aten_make_add(call, "input", aten_make_tensor(aten_make_in(call, "x")), false);
    aten_make_add(call, "weight", aten_make_tensor(aten_make_in(call, "weight")), false);
    aten_make_add(call, "bias", aten_make_tensor(aten_make_in(call, "bias")), false);
    list_or(call, "stride", 1, n);
    list_or(call, "padding", 0, n);
    list_or(call, "dilation", 1, n);
    aten_make_add(call, "transposed", boolean(false), false);
    list_or(call, "output_padding", 0, n);
    aten_make_add(call, "groups", aten_make_option(call, "groups"), false);
    aten_make_give(call, 0, aten_make_end(call, 1));
}

/* Padding by a word, and strides that are not given. */
static void conv(struct aten_call *call)
{
    const char *const *word = export_option(call->node, "auto_padding");
    int64_t n = call->def->name[4] - '0';
    char target[40];

    tn_snprint(target, sizeof target, "%s.%s", call->def->name,
               *word != NULL ? "padding" : "default");
    aten_make_begin(call, target);
    aten_make_add(call, "input", aten_make_tensor(aten_make_in(call, "x")), false);
    aten_make_add(call, "weight", aten_make_tensor(aten_make_in(call, "weight")), false);
    aten_make_add(call, "bias", aten_make_tensor(aten_make_in(call, "bias")), false);
    list_or(call, "stride", 1, n);
    if (*word != NULL)
        aten_make_add(call, "padding", aten_make_option(call, "auto_padding"), false);
    else
        list_or(call, "padding", 0, n);
    list_or(call, "dilation", 1, n);
    aten_make_add(call, "groups", aten_make_option(call, "groups"), false);
    aten_make_give(call, 0, aten_make_end(call, 1));
}

/* The functions need a size for each dimension; those of maxima also give indices. */
static void adaptive_pool(struct aten_call *call)
{
    const tn_ints *given = export_option(call->node, "output_size");
    bool largest = strncmp(call->def->name, "adaptive_max", 12) == 0;
    int64_t n = strpbrk(call->def->name, "123")[0] - '0', at[3];
    char target[60];

    for (int64_t i = 0; i < n; i++) {
        at[i] = given->at[given->count > 1 ? i : 0];
        if (at[i] < 0 && call->model->graph.n_symbols > 0)
            aten_make_fail(call, "the size of the input as output_size, and sizes vary; expected a "
                                 "number");
        at[i] = at[i] < 0 ? call->meta.shape[call->meta.ndim - n + i] : at[i];
    }
    tn_snprint(target, sizeof target, "%s.default", call->def->name);
    aten_make_begin(call, target);
    aten_make_add(call, "self", aten_make_tensor(aten_make_in(call, "x")), false);
    aten_make_add(call, "output_size", aten_make_list(&(tn_ints){ at, n }), false);
    aten_make_give(call, 0, aten_make_end(call, largest ? 2 : 1));
}

/* Dimensions without an index have None. */
static void index_of(struct aten_call *call)
{
    const tn_ints *dims = export_option(call->node, "dims");
    int64_t count = tn_node_input_count(call->node), next = 0;
    json_t *list = json_array();

    for (int64_t i = 1; i < count; i++) {
        tn_meta meta;
        tn_node *input = tn_node_input(call->node, i);
        int64_t dim = dims != NULL && dims->count > 0 ? dims->at[i - 1] : next;

        for (; next < dim; next++)
            json_array_append_new(list, json_pack("{s:b}", "as_none", 1));
        json_array_append_new(list, aten_make_tensor(aten_make_of(call->model, input)));
        next += tn_node_meta(input, &meta) == TN_OK && meta.dtype == TN_BOOL ? meta.ndim : 1;
    }
    aten_make_begin(call, "index.Tensor");
    aten_make_add(call, "self", aten_make_tensor(aten_make_in(call, "x")), false);
    aten_make_add(call, "indices", json_pack("{s:o}", "as_optional_tensors", list), false);
    aten_make_give(call, 0, aten_make_end(call, 1));
}

static void add_dtype(struct aten_call *call)
{
    json_t *meta = aten_make_meta(call->model, tn_node_item(call->node, 0), NULL, false);

    aten_make_add(call, "dtype",
                  json_pack("{s:O}", "as_scalar_type", json_object_get(meta, "dtype")), true);
    json_decref(meta);
}

static void full(struct aten_call *call)
{
    aten_make_begin(call, "full.default");
    aten_make_add(call, "size", aten_make_option(call, "shape"), false);
    aten_make_add(call, "fill_value", aten_make_option(call, "value"), false);
    add_dtype(call);
    aten_make_give(call, 0, aten_make_end(call, 1));
}

static void arange(struct aten_call *call)
{
    aten_make_begin(call, "arange.start_step");
    aten_make_add(call, "start", aten_make_option(call, "start"), false);
    aten_make_add(call, "end", aten_make_option(call, "end"), false);
    aten_make_add(call, "step", aten_make_option(call, "step"), false);
    add_dtype(call);
    aten_make_give(call, 0, aten_make_end(call, 1));
}

const struct aten_rule aten_write_layers[] = {
    { "lstm_sequence", .call = sequence, .fits = is_sequence },
    { "gru_sequence", .call = sequence, .fits = is_sequence },
    { "rnn_sequence", .call = sequence, .fits = is_sequence },
    { "interpolate", .call = interpolate, .fits = is_resize },
    { "grid_sample", .call = grid_sample },
    { "convolution", .call = convolution },
    { "conv1d", .call = conv },
    { "conv2d", .call = conv },
    { "conv3d", .call = conv },
    { "adaptive_avg_pool1d", .call = adaptive_pool },
    { "adaptive_avg_pool2d", .call = adaptive_pool },
    { "adaptive_avg_pool3d", .call = adaptive_pool },
    { "adaptive_max_pool1d", .call = adaptive_pool },
    { "adaptive_max_pool2d", .call = adaptive_pool },
    { "adaptive_max_pool3d", .call = adaptive_pool },
    { "index", .call = index_of },
    { "full", .call = full },
    { "arange", .call = arange },
    { .op = NULL },
};
