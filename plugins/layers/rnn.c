/* SPDX-License-Identifier: MIT
 *
 * Recurrent networks over sequences, and their cells. Names, order of gates, initialization and
 * repr are PyTorch's, and so are arguments and results: output, h_n = module(input, h_0), and for
 * LSTM output, (h_n, c_n) = module(input, (h_0, c_0)). The states may also be separate arguments,
 * as tn_module_call_many passes them. The named argument `lengths` is a tensor with the length of
 * each sequence of the batch. */
#include "helpers.h"

#include <math.h>
#include <string.h>

struct recurrent {
    int64_t input_size;
    int64_t hidden_size;
    int64_t num_layers;
    const char *nonlinearity;
    bool bias;
    bool batch_first;
    double dropout;
    bool bidirectional;
    int64_t proj_size; /* LSTM only; 0: no projection */
};

enum kind { RNN, LSTM, GRU };

static const int gates_of[] = { 1, 4, 3 };

#define SIZES                                                                                      \
    TN_OPTION_ROW(struct recurrent, input_size, NULL, "features of an element",                    \
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED),                                         \
        TN_OPTION_ROW(struct recurrent, hidden_size, NULL, "features of the state",                \
                      TN_OPTION_KIND_INT, TN_OPTION_REQUIRED)
#define LAYERS                                                                                     \
    TN_OPTION_ROW(struct recurrent, num_layers, "1", "number of stacked layers",                   \
                  TN_OPTION_KIND_INT, 0)
#define WORD                                                                                       \
    TN_OPTION_ROW(struct recurrent, nonlinearity, "'tanh'", "tanh or relu", TN_OPTION_KIND_STRING, \
                  0)
#define BIAS                                                                                       \
    TN_OPTION_ROW(struct recurrent, bias, "True", "whether biases are learned",                    \
                  TN_OPTION_KIND_BOOL, 0)
#define REST                                                                                       \
    BIAS,                                                                                          \
        TN_OPTION_ROW(struct recurrent, batch_first, "False", "x is [N, L, ...], not [L, N, ...]", \
                      TN_OPTION_KIND_BOOL, 0),                                                     \
        TN_OPTION_ROW(struct recurrent, dropout, "0.0",                                            \
                      "dropout probability between layers, in training", TN_OPTION_KIND_FLOAT, 0), \
        TN_OPTION_ROW(struct recurrent, bidirectional, "False",                                    \
                      "also runs backwards and concatenates the outputs", TN_OPTION_KIND_BOOL, 0)

static const tn_option rnn_options[] = { SIZES, LAYERS, WORD, REST, TN_OPTION_END };
static const tn_option gated_options[] = { SIZES, LAYERS, REST, TN_OPTION_END };
static const tn_option lstm_options[] = { SIZES, LAYERS, REST,
                                          TN_OPTION_ROW(struct recurrent, proj_size, "0",
                                                        "features of the projection of h; 0: none",
                                                        TN_OPTION_KIND_INT, 0),
                                          TN_OPTION_END };
static const tn_option rnn_cell_options[] = { SIZES, BIAS, WORD, TN_OPTION_END };
static const tn_option cell_options[] = { SIZES, BIAS, TN_OPTION_END };

static enum kind kind_of(tn_module *self)
{
    const char *type = tn_module_type(self);

    return strncmp(type, "LSTM", 4) == 0 ? LSTM : strncmp(type, "GRU", 3) == 0 ? GRU : RNN;
}

/* ---- building ---- */

/* Returns the number of features of the output. */
static int64_t output_size(const struct recurrent *s)
{
    return s->proj_size > 0 ? s->proj_size : s->hidden_size;
}

static tn_status check(tn_module *self, bool whole)
{
    const struct recurrent *s = tn_module_data(self);
    const char *type = tn_module_type(self);

    if (!whole && (s->input_size < 0 || s->hidden_size < 0))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: input_size or hidden_size: out of range, got %lld and %lld; expected 0 or more",
            type, (long long)s->input_size, (long long)s->hidden_size);
    if (whole && (s->input_size < 1 || s->hidden_size < 1 || s->num_layers < 1))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: input_size, hidden_size or num_layers: out of range, got %lld, %lld and %lld; "
            "expected 1 or more",
            type, (long long)s->input_size, (long long)s->hidden_size, (long long)s->num_layers);
    if (whole && !(s->dropout >= 0 && s->dropout <= 1))
        return tn_fail(TN_ERR_VALUE,
                       "%s: dropout: out of range, got %g; expected a probability from 0 to 1",
                       type, s->dropout);
    if (s->proj_size < 0 || (s->proj_size > 0 && s->proj_size >= s->hidden_size))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: proj_size: out of range, got %lld; expected 0 to %lld (hidden_size - 1)", type,
            (long long)s->proj_size, (long long)s->hidden_size - 1);
    if (kind_of(self) == RNN && strcmp(s->nonlinearity, "tanh") != 0 &&
        strcmp(s->nonlinearity, "relu") != 0)
        return tn_fail(TN_ERR_VALUE, "%s: nonlinearity: unknown, got %q; expected tanh or relu",
                       type, s->nonlinearity);
    return TN_OK;
}

/* Adds the parameters of one direction of one layer, or of a cell: weight_ih, weight_hh, bias_ih
 * and bias_hh with the suffix `end`, and weight_hr if there is a projection. */
static tn_status add_weights(tn_module *self, int64_t inputs, const char *end)
{
    static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };
    const struct recurrent *s = tn_module_data(self);
    int64_t rows = 0;
    tn_status status = layers_times(self, "hidden_size", s->hidden_size, gates_of[kind_of(self)],
                                    &rows);
    char name[64];

    for (int i = 0; i < 4 && status == TN_OK; i++) {
        tn_snprint(name, sizeof name, "%s%s", names[i], end);
        if (i < 2)
            status = layers_add(self, name, true, TN_SHAPE(rows, i == 0 ? inputs : output_size(s)));
        else if (s->bias)
            status = layers_add(self, name, true, TN_SHAPE(rows));
        else if (end[0] == '\0')
            status = tn_module_add_parameter(self, name, TN_NONE);
    }
    if (status == TN_OK && s->proj_size > 0) {
        tn_snprint(name, sizeof name, "weight_hr%s", end);
        status = layers_add(self, name, true, TN_SHAPE(s->proj_size, s->hidden_size));
    }
    return status;
}

static void end_of(char *out, size_t size, int64_t layer, bool backwards)
{
    tn_snprint(out, size, "_l%lld%s", (long long)layer, backwards ? "_reverse" : "");
}

static tn_status build(tn_module *self)
{
    const struct recurrent *s = tn_module_data(self);
    int64_t directions = s->bidirectional ? 2 : 1, above = 0;
    tn_status status = check(self, true);
    char end[48];

    if (status == TN_OK)
        status = layers_times(self, "hidden_size", output_size(s), directions, &above);

    for (int64_t i = 0; i < s->num_layers && status == TN_OK; i++)
        for (int64_t d = 0; d < directions && status == TN_OK; d++) {
            end_of(end, sizeof end, i, d == 1);
            status = add_weights(self, i == 0 ? s->input_size : above, end);
        }
    return status;
}

static tn_status reset_one(void *user, const char *path, tn_tensor *tensor)
{
    const double *bound = user;

    (void)path;
    return tn_init(tensor, "uniform(a=%g, b=%g)", -*bound, *bound);
}

/* All parameters are uniform in [-b, b] with b = 1/sqrt(hidden_size). */
static tn_status reset(tn_module *self)
{
    const struct recurrent *s = tn_module_data(self);
    double bound = s->hidden_size > 0 ? 1 / sqrt((double)s->hidden_size) : 0;

    return tn_module_each_tensor(self, TN_SLOT_PARAMETER, false, reset_one, &bound);
}

static tn_status cell_build(tn_module *self)
{
    const struct recurrent *s = tn_module_data(self);
    tn_status status = check(self, false);

    return status == TN_OK ? add_weights(self, s->input_size, "") : status;
}

/* ---- cells ---- */

/* Reads the five weights of one direction of one layer into w. Absent biases and an absent
 * projection are TN_NONE. */
static tn_status weights_of(tn_module *self, const char *end, tn_tensor **w)
{
    static const char *const names[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                         "weight_hr" };
    const struct recurrent *s = tn_module_data(self);
    char name[64];

    for (int i = 0; i < 5; i++) {
        bool absent = i == 4 ? s->proj_size == 0 : i >= 2 && !s->bias;

        tn_snprint(name, sizeof name, "%s%s", names[i], end);
        w[i] = absent ? TN_NONE : tn_module_get(self, name);
        if (w[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status step(tn_module *self, tn_tensor *x, tn_tensor **h, tn_tensor **c,
                      tn_tensor *const *w)
{
    const struct recurrent *s = tn_module_data(self);

    switch (kind_of(self)) {
    case LSTM: return tn_lstm_cell(x, *h, *c, w[0], w[1], w[2], w[3], h, c);
    case GRU: *h = tn_gru_cell(x, *h, w[0], w[1], w[2], w[3]); break;
    case RNN:
        *h = strcmp(s->nonlinearity, "relu") == 0 ? tn_rnn_relu_cell(x, *h, w[0], w[1], w[2], w[3])
                                                  : tn_rnn_tanh_cell(x, *h, w[0], w[1], w[2], w[3]);
        break;
    }
    return status_of(*h);
}

/* ---- calling ---- */

/* Stores the tensor of a state, which may be None. */
static tn_status take_state(tn_module *self, const tn_value *value, tn_tensor **state)
{
    if (value->kind == TN_VALUE_NONE)
        return TN_OK;
    if (value->kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE, "%s: hx: wrong type, got %s; expected a tensor%s",
                       tn_module_type(self), tn_value_kind_name(value->kind),
                       kind_of(self) == LSTM ? ", or a tuple of two: (h_0, c_0)" : "");
    *state = value->as.tensor;
    return TN_OK;
}

/* Reads the argument hx: h_0, or of an LSTM (h_0, c_0). */
static tn_status take_states(tn_module *self, const tn_value *hx, tn_tensor **in)
{
    bool row = hx->kind == TN_VALUE_TUPLE || hx->kind == TN_VALUE_LIST;
    tn_status status;

    if (kind_of(self) != LSTM || hx->kind == TN_VALUE_NONE)
        return take_state(self, hx, &in[1]);
    if (!row || hx->count != 2)
        return tn_fail(TN_ERR_TYPE,
                       "%s: hx: wrong type, got %s of %u; expected a tuple of two: (h_0, c_0)",
                       tn_module_type(self), tn_value_kind_name(hx->kind), tn_value_size(hx));
    status = take_state(self, &hx->as.list[0], &in[1]);
    return status == TN_OK ? take_state(self, &hx->as.list[1], &in[2]) : status;
}

/* Reads the arguments of a call into in: input, h_0, c_0, lengths. What is absent is TN_NONE. Cells
 * have no `lengths`. */
static tn_status take(tn_module *self, const tn_pack *input, bool cell, tn_tensor **in)
{
    static const char *const names[] = { "input", "hx", "lengths" };
    int64_t positional = tn_pack_positional(input);
    bool flat = positional == 3 && kind_of(self) == LSTM;
    tn_value values[3], hx[2];
    tn_status status;

    in[1] = in[2] = in[3] = TN_NONE;
    if (positional > (flat ? 3 : 2))
        return tn_fail(TN_ERR_TYPE, "%s: inputs: wrong number, got %lld; expected input%s",
                       tn_module_type(self), (long long)positional,
                       kind_of(self) == LSTM ? " and (h_0, c_0)" : " and h_0");
    if (flat) {
        memset(values, 0, sizeof values);
        values[0] = tn_pack_at(input, 0);
        hx[0] = tn_pack_at(input, 1);
        hx[1] = tn_pack_at(input, 2);
        values[1] = tn_value_tuple(hx, 2);
        if (tn_pack_find(input, "lengths") >= 0 && !cell)
            values[2] = tn_pack_at(input, tn_pack_find(input, "lengths"));
        status = TN_OK;
        for (int64_t i = positional; i < tn_pack_count(input) && status == TN_OK; i++) {
            const char *name = tn_pack_name(input, i);
            if (cell || strcmp(name, "lengths") != 0)
                status = tn_fail(TN_ERR_TYPE, "%s: argument %q: unknown name; expected %s",
                                 tn_module_type(self), name,
                                 cell ? "no named argument" : "lengths");
        }
    } else {
        status = layers_take(self, input, names, cell ? 2 : 3, values);
        if (cell)
            values[2] = tn_value_none();
    }
    if (status == TN_OK)
        status = layers_tensor_of(self, names[0], &values[0], &in[0]);
    if (status == TN_OK)
        status = take_states(self, &values[1], in);
    if (status == TN_OK && values[2].kind != TN_VALUE_NONE)
        status = layers_tensor_of(self, names[2], &values[2], &in[3]);
    return status;
}

/* Adds h to the results, or with `memory`, of an LSTM, the tuple (h, c). */
static tn_status give_states(tn_pack *output, tn_tensor *h, tn_tensor *c, bool memory)
{
    tn_value states[2];

    if (!memory)
        return layers_give(output, h);
    if (h == NULL || c == NULL)
        return tn_error_last_code();
    states[0] = tn_value_tensor(h);
    states[1] = tn_value_tensor(c);
    return tn_pack_add(output, NULL, tn_value_tuple(states, 2));
}

static tn_tensor *zeros(tn_tensor *like, tn_ints shape)
{
    return tn_tensor_full(shape, 0, tn_tensor_dtype(like), tn_tensor_device(like));
}

/* Runs one direction of one layer: x [L, N, I] to the result [L, N, H]. Replaces *h and *c [N, H]
 * by the last states. */
static tn_tensor *along(tn_module *self, tn_tensor *x, tn_tensor *lengths, int64_t layer,
                        bool backwards, tn_tensor **h, tn_tensor **c)
{
    const struct recurrent *s = tn_module_data(self);
    tn_rnn_sequence_options plain = TN_RNN_SEQUENCE_OPTIONS;
    tn_lstm_sequence_options memory = TN_LSTM_SEQUENCE_OPTIONS;
    tn_gru_sequence_options gated = TN_GRU_SEQUENCE_OPTIONS;
    tn_tensor *w[5], *y = NULL;
    tn_status status;
    char end[48];

    end_of(end, sizeof end, layer, backwards);
    status = weights_of(self, end, w);
    if (status != TN_OK)
        return NULL;
    plain.reverse = memory.reverse = gated.reverse = backwards;
    plain.nonlinearity = s->nonlinearity;
    switch (kind_of(self)) {
    case LSTM:
        status = tn_lstm_sequence(x, *h, *c, w[0], w[1], w[2], w[3], w[4], lengths, &y, h, c,
                                  memory.reverse);
        break;
    case GRU:
        status = tn_gru_sequence(x, *h, w[0], w[1], w[2], w[3], lengths, &y, h, gated.reverse);
        break;
    case RNN:
        status = tn_rnn_sequence(x, *h, w[0], w[1], w[2], w[3], lengths, &y, h, plain.nonlinearity,
                                 plain.reverse);
        break;
    }
    return status == TN_OK ? y : NULL;
}

static tn_tensor *whole(tn_tensor *row, bool batched)
{
    return row == NULL || batched ? row : tn_select(row, 1, 0);
}

/* Returns the initial state [layers * directions, N, features]: the given one, or zeros. */
static tn_status first_state(tn_module *self, tn_tensor *given, tn_tensor *x, bool batched,
                             int64_t features, tn_tensor **out)
{
    const struct recurrent *s = tn_module_data(self);
    int64_t layers = s->num_layers * (s->bidirectional ? 2 : 1), n = tn_tensor_size(x, 1);
    tn_tensor *state;

    if (given == TN_NONE) {
        *out = zeros(x, TN_SHAPE(layers, n, features));
        return status_of(*out);
    }
    if (!batched && tn_tensor_ndim(given) == 2)
        given = tn_unsqueeze(given, 1);
    state = given;
    if (state == NULL)
        return tn_error_last_code();
    if (tn_tensor_ndim(state) != 3 || tn_tensor_size(state, 0) != layers ||
        tn_tensor_size(state, 1) != n || tn_tensor_size(state, 2) != features)
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: state: wrong shape, got %lld dimensions and %lld elements; expected "
                       "[%lld, %lld, %lld]%s",
                       tn_module_type(self), (long long)tn_tensor_ndim(state),
                       (long long)tn_tensor_numel(state), (long long)layers, (long long)n,
                       (long long)features, batched ? "" : ", or without the batch");
    *out = state;
    return TN_OK;
}

static tn_status run(tn_module *self, tn_tensor *x, tn_tensor *lengths, tn_tensor *h0,
                     tn_tensor *c0, tn_tensor **last_h, tn_tensor **last_c, tn_tensor **out)
{
    const struct recurrent *s = tn_module_data(self);
    int64_t directions = s->bidirectional ? 2 : 1;

    for (int64_t i = 0; i < s->num_layers; i++) {
        tn_tensor *parts[2];

        for (int64_t d = 0; d < directions; d++) {
            int64_t at = i * directions + d;
            tn_tensor *h = tn_select(h0, 0, at), *c = c0 == TN_NONE ? NULL : tn_select(c0, 0, at);

            parts[d] = along(self, x, lengths, i, d == 1, &h, &c);
            if (parts[d] == NULL)
                return tn_error_last_code();
            last_h[at] = h;
            last_c[at] = c;
        }
        x = directions == 1 ? parts[0] : tn_cat(parts, 2, -1);
        if (s->dropout > 0 && tn_module_is_training(self) && i < s->num_layers - 1) {
            x = tn_dropout(x, s->dropout);
        }
        if (x == NULL)
            return tn_error_last_code();
    }
    *out = x;
    return TN_OK;
}

static tn_status call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct recurrent *s = tn_module_data(self);
    int64_t states = s->num_layers * (s->bidirectional ? 2 : 1);
    bool memory = kind_of(self) == LSTM, batched, ranked;
    tn_tensor *in[4], *x, *h0, *c0 = TN_NONE, *y = NULL, **last;
    tn_status status = take(self, input, false, in);

    if (status != TN_OK)
        return status;
    x = in[0];
    batched = tn_tensor_ndim(x) == 3;
    ranked = batched || tn_tensor_ndim(x) == 2;
    if (!ranked || tn_tensor_size(x, -1) != s->input_size)
        return tn_fail(
            ranked ? TN_ERR_RUNTIME : TN_ERR_VALUE,
            "%s: input: wrong shape, got %lld dimensions, the last of size %lld; expected "
            "[%s, %lld], or without N",
            tn_module_type(self), (long long)tn_tensor_ndim(x),
            (long long)(tn_tensor_ndim(x) > 0 ? tn_tensor_size(x, -1) : 1),
            s->batch_first ? "N, L" : "L, N", (long long)s->input_size);
    if (!batched)
        x = tn_unsqueeze(x, 1);
    else if (s->batch_first)
        x = tn_transpose(x, 0, 1);
    if (x == NULL)
        return tn_error_last_code();
    if (tn_tensor_size(x, 0) < 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: input: the sequence is empty; expected at least one "
                       "element",
                       tn_module_type(self));
    status = first_state(self, in[1], x, batched, output_size(s), &h0);
    if (status == TN_OK && memory)
        status = first_state(self, in[2], x, batched, s->hidden_size, &c0);
    if (status != TN_OK)
        return status;
    last = tn_malloc((size_t)(2 * states) * sizeof(tn_tensor *));
    if (last == NULL)
        return tn_error_last_code();
    status = run(self, x, in[3], h0, c0, last, last + states, &y);
    if (status == TN_OK) {
        y = !batched ? tn_select(y, 1, 0) : s->batch_first ? tn_transpose(y, 0, 1) : y;
        status = layers_give(output, y);
    }
    if (status == TN_OK)
        status = give_states(output, whole(tn_stack(last, states, 0), batched),
                             memory ? whole(tn_stack(last + states, states, 0), batched) : NULL,
                             memory);
    tn_free(last);
    return status;
}

/* Checks the number of dimensions of an argument of a cell. */
static tn_status cell_rank(tn_module *self, const char *name, tn_tensor *x)
{
    if (x == TN_NONE || tn_tensor_ndim(x) == 1 || tn_tensor_ndim(x) == 2)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: %s: wrong number of dimensions, got %d; expected 1, or 2 with a batch "
                   "dimension",
                   tn_module_type(self), name, (int)tn_tensor_ndim(x));
}

static tn_status cell_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    const struct recurrent *s = tn_module_data(self);
    bool memory = kind_of(self) == LSTM;
    tn_tensor *in[4], *w[5], *h, *c = NULL;
    tn_status status = take(self, input, true, in);
    tn_ints shape;

    if (status == TN_OK)
        status = cell_rank(self, "input", in[0]);
    if (status == TN_OK)
        status = cell_rank(self, memory ? "h_0 of hx" : "hx", in[1]);
    if (status == TN_OK)
        status = cell_rank(self, "c_0 of hx", in[2]);
    if (status == TN_OK)
        status = weights_of(self, "", w);
    if (status != TN_OK)
        return status;
    shape = tn_tensor_ndim(in[0]) == 2 ? TN_SHAPE(tn_tensor_size(in[0], 0), s->hidden_size)
                                       : TN_SHAPE(s->hidden_size);
    h = in[1] == TN_NONE ? zeros(in[0], shape) : in[1];
    if (memory)
        c = in[2] == TN_NONE ? zeros(in[0], shape) : in[2];
    if (h == NULL || (memory && c == NULL))
        return tn_error_last_code();
    status = step(self, in[0], &h, &c, w);
    if (status == TN_OK)
        status = layers_give(output, h);
    return status == TN_OK && memory ? layers_give(output, c) : status;
}

/* ---- repr ---- */

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct recurrent *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "%lld, %lld", (long long)s->input_size, (long long)s->hidden_size);
    if (s->proj_size != 0)
        layers_put(&text, ", proj_size=%lld", (long long)s->proj_size);
    if (s->num_layers != 1)
        layers_put(&text, ", num_layers=%lld", (long long)s->num_layers);
    if (!s->bias)
        layers_put(&text, ", bias=False");
    if (s->batch_first)
        layers_put(&text, ", batch_first=True");
    if (s->dropout != 0)
        layers_put(&text, ", dropout=%g", s->dropout);
    if (s->bidirectional)
        layers_put(&text, ", bidirectional=True");
    return text.used;
}

static int64_t cell_repr(tn_module *self, char *out, size_t size)
{
    const struct recurrent *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "%lld, %lld", (long long)s->input_size, (long long)s->hidden_size);
    if (!s->bias)
        layers_put(&text, ", bias=False");
    if (kind_of(self) == RNN && strcmp(s->nonlinearity, "tanh") != 0)
        layers_put(&text, ", nonlinearity=%s", s->nonlinearity);
    return text.used;
}

/* ---- the layers ---- */

#define SEQUENCE                                                                                   \
    .data_size = sizeof(struct recurrent), .build = build, .reset = reset, .call = call,           \
    .repr = repr
#define CELL                                                                                       \
    .data_size = sizeof(struct recurrent), .build = cell_build, .reset = reset, .call = cell_call, \
    .repr = cell_repr
#define ONE_STATE " over a sequence: output, h_n = module(input, h_0); h_0 is optional"
#define TWO_STATES                                                                                 \
    " over a sequence: output, (h_n, c_n) = module(input, (h_0, c_0)); the states are optional"
LAYER(rnn, "RNN", SEQUENCE, .options = rnn_options, .help = "Elman's network" ONE_STATE);
LAYER(rnn_cell, "RNNCell", CELL, .options = rnn_cell_options,
      .help = "one step of Elman's network");
LAYER(lstm, "LSTM", SEQUENCE, .options = lstm_options, .help = "long short-term memory" TWO_STATES);
LAYER(lstm_cell, "LSTMCell", CELL, .options = cell_options,
      .help = "one step of long short-term memory");
LAYER(gru, "GRU", SEQUENCE, .options = gated_options, .help = "gated recurrent units" ONE_STATE);
LAYER(gru_cell, "GRUCell", CELL, .options = cell_options,
      .help = "one step of gated recurrent units");
