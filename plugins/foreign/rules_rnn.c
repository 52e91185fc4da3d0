/* SPDX-License-Identifier: MIT
 *
 * Rules for recurrent networks: one call in PyTorch has all layers and both directions. */
#include "rules.h"

enum { TANH, RELU, GRU, LSTM };

struct network {
    int kind;
    int64_t layers, directions;
    tn_tensor **params; /* of each layer and direction: w_ih, w_hh, b_ih, b_hh, w_hr */
    int64_t per_step;   /* of them, for a layer and direction */
    bool biases;
    int64_t n_states;
    tn_tensor *states[2]; /* h, c: [layers * directions, N, size] */
    tn_tensor **last[2];  /* one for each layer and direction */
};

static tn_status wrong_count(tn_rule_call *call, int64_t got)
{
    return rule_fail(call, TN_ERR_VALUE,
                     "params: wrong count, got %lld; expected two to five tensors for each layer "
                     "and direction",
                     (long long)got);
}

static tn_status read_network(tn_rule_call *call, int kind, struct network *net)
{
    int64_t n, n_states = 1, steps;
    tn_tensor **states;

    *net = (struct network){ .kind = kind, .n_states = kind == LSTM ? 2 : 1 };
    net->layers = rule_int(call, "num_layers");
    net->directions = rule_bool(call, "bidirectional") ? 2 : 1;
    net->biases = rule_bool(call, "has_biases");
    net->params = rule_tensors(call, "params", &n);
    if (kind == LSTM) {
        states = rule_tensors(call, "hx", &n_states);
        for (int64_t i = 0; i < 2 && i < n_states; i++)
            net->states[i] = states[i];
    } else {
        net->states[0] = rule_tensor(call, "hx");
    }
    if (call->status != TN_OK)
        return call->status;
    if (n_states != net->n_states)
        return rule_fail(call, TN_ERR_VALUE, "hx: wrong count, got %lld; expected %lld",
                         (long long)n_states, (long long)net->n_states);
    if (net->layers < 1 || net->layers > n || n % (net->layers * net->directions) != 0)
        return wrong_count(call, n);
    steps = net->layers * net->directions;
    net->per_step = n / steps;
    /* An odd one is the projection, which only an LSTM has. */
    if (net->per_step < (net->biases ? 4 : 2) || net->per_step > (net->biases ? 5 : 3) ||
        (net->per_step % 2 != 0 && kind != LSTM))
        return wrong_count(call, n);
    for (int i = 0; i < net->n_states; i++) {
        if (tn_tensor_ndim(net->states[i]) != 3 || tn_tensor_size(net->states[i], 0) != steps)
            return rule_fail(call, TN_ERR_VALUE,
                             "hx: wrong shape; expected %lld states of [N, size]",
                             (long long)steps);
        net->last[i] = rule_memory(call, steps, sizeof(tn_tensor *));
    }
    return call->status;
}

/* One direction of one layer, `at`. */
static tn_tensor *step(const struct network *net, tn_tensor *x, int64_t at)
{
    tn_tensor **p = net->params + at * net->per_step, *y = NULL, *h, *c;
    tn_tensor *b_ih = net->biases ? p[2] : TN_NONE, *b_hh = net->biases ? p[3] : TN_NONE;
    tn_tensor *w_hr = net->per_step % 2 != 0 ? p[net->per_step - 1] : TN_NONE;
    bool reverse = at % net->directions != 0;
    tn_status status;

    h = tn_select(net->states[0], 0, at);
    switch (net->kind) {
    case LSTM:
        c = tn_select(net->states[1], 0, at);
        status = tn_lstm_sequence(x, h, c, p[0], p[1], b_ih, b_hh, w_hr, TN_NONE, &y,
                                  &net->last[0][at], &net->last[1][at], reverse);
        break;
    case GRU:
        status = tn_gru_sequence(x, h, p[0], p[1], b_ih, b_hh, TN_NONE, &y, &net->last[0][at],
                                 reverse);
        break;
    default:
        status = tn_rnn_sequence(x, h, p[0], p[1], b_ih, b_hh, TN_NONE, &y, &net->last[0][at],
                                 net->kind == RELU ? "relu" : "tanh", reverse);
    }
    return status == TN_OK ? y : NULL;
}

static tn_tensor *layer(const struct network *net, tn_tensor *x, int64_t at)
{
    tn_tensor *y[2];

    for (int64_t d = 0; d < net->directions; d++) {
        y[d] = step(net, x, at * net->directions + d);
        if (y[d] == NULL)
            return NULL;
    }
    return net->directions == 1 ? y[0] : tn_cat(y, 2, -1);
}

static tn_status run(tn_rule_call *call, int kind)
{
    bool batch_first = rule_bool(call, "batch_first");
    tn_tensor *x = rule_tensor(call, "input");
    double p = rule_training(call) ? rule_float(call, "dropout") : 0;
    struct network net;

    if (read_network(call, kind, &net) != TN_OK)
        return call->status;
    if (batch_first)
        x = tn_transpose(x, 0, 1);
    for (int64_t i = 0; i < net.layers && x != NULL; i++) {
        x = layer(&net, x, i);
        if (p > 0 && i < net.layers - 1)
            x = tn_dropout(x, p, true);
    }
    rule_give(call, batch_first ? tn_transpose(x, 0, 1) : x);
    for (int64_t i = 0; i < net.n_states && call->status == TN_OK; i++)
        rule_give(call, tn_stack(net.last[i], net.layers * net.directions, 0));
    return call->status;
}

static tn_status lstm(tn_rule_call *call)
{
    return run(call, LSTM);
}

static tn_status gru(tn_rule_call *call)
{
    return run(call, GRU);
}

static tn_status rnn_tanh(tn_rule_call *call)
{
    return run(call, TANH);
}

static tn_status rnn_relu(tn_rule_call *call)
{
    return run(call, RELU);
}

static tn_status lstm_cell(tn_rule_call *call)
{
    int64_t n;
    tn_tensor **states = rule_tensors(call, "hx", &n), *next[2] = { NULL, NULL };

    if (call->status == TN_OK && n != 2)
        return rule_fail(call, TN_ERR_VALUE, "hx: wrong count, got %lld; expected 2", (long long)n);
    if (call->status == TN_OK)
        (void)tn_lstm_cell(rule_tensor(call, "input"), states[0], states[1],
                           rule_tensor(call, "w_ih"), rule_tensor(call, "w_hh"),
                           rule_optional(call, "b_ih"), rule_optional(call, "b_hh"), &next[0],
                           &next[1]);
    return rule_give_all(call, next, 2);
}

#define NETWORK "hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)"
#define CELL "(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)"

const tn_rule_def rules_rnn[] = {
    { "aten.lstm.input(input, " NETWORK, .call = lstm, .mode = "train" },
    { "aten.gru.input(input, " NETWORK, .call = gru, .mode = "train" },
    { "aten.rnn_tanh.input(input, " NETWORK, .call = rnn_tanh, .mode = "train" },
    { "aten.rnn_relu.input(input, " NETWORK, .call = rnn_relu, .mode = "train" },
    { "aten.lstm_cell" CELL, .call = lstm_cell },
    { "aten.gru_cell" CELL, .text = "gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh)" },
    { "aten.rnn_tanh_cell" CELL, .text = "rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih, b_hh)" },
    { "aten.rnn_relu_cell" CELL, .text = "rnn_relu_cell(input, hx, w_ih, w_hh, b_ih, b_hh)" },
    { .function = NULL },
};
