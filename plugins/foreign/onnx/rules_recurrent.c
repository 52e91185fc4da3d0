/* SPDX-License-Identifier: MIT
 *
 * Rules for recurrent networks. ONNX has the gates in another order than Tenon, W for each
 * direction, and activations and a limit as options: with those the steps are computed one by one.
 */
#include "onnx/onnx_rules.h"

#include <math.h>
#include <string.h>

enum cell { RNN, GRU, LSTM };

/* One direction of one layer. */
struct layer {
    enum cell cell;
    tn_tensor *x; /* [L, N, inputs] */
    tn_tensor *w, *r, *wb, *rb, *h, *c, *peephole, *lengths;
    int64_t steps, hidden;
    bool reverse, reset_after, couple;
    double clip;
    const char *activations[3];
    double alpha[3], beta[3];
};

/* ---- activations ----------------------------------------------------------------------------- */

static tn_tensor *activate(const char *name, double alpha, double beta, tn_tensor *x)
{
    if (strcmp(name, "Tanh") == 0)
        return tn_tanh(x);
    if (strcmp(name, "Sigmoid") == 0)
        return tn_sigmoid(x);
    if (strcmp(name, "Relu") == 0)
        return tn_relu(x);
    if (strcmp(name, "Softsign") == 0)
        return tn_softsign(x);
    if (strcmp(name, "Softplus") == 0)
        return tn_softplus(x);
    if (strcmp(name, "Affine") == 0)
        return tn_add_scalar(tn_mul_scalar(x, tn_scalar_float(isnan(alpha) ? 1 : alpha)),
                             tn_scalar_float(isnan(beta) ? 0 : beta));
    if (strcmp(name, "LeakyRelu") == 0)
        return tn_leaky_relu(x, isnan(alpha) ? 0.01 : alpha);
    if (strcmp(name, "ThresholdedRelu") == 0)
        return tn_threshold(x, tn_scalar_float(isnan(alpha) ? 1 : alpha), tn_scalar_float(0.0));
    if (strcmp(name, "Elu") == 0)
        return tn_elu(x, isnan(alpha) ? 1 : alpha);
    if (strcmp(name, "ScaledTanh") == 0)
        return tn_mul_scalar(tn_tanh(tn_mul_scalar(x, tn_scalar_float(isnan(beta) ? 1 : beta))),
                             tn_scalar_float(isnan(alpha) ? 1 : alpha));
    if (strcmp(name, "HardSigmoid") == 0)
        return tn_clamp(tn_add_scalar(tn_mul_scalar(x, tn_scalar_float(isnan(alpha) ? 0.2 : alpha)),
                                      tn_scalar_float(isnan(beta) ? 0.5 : beta)),
                        tn_scalar_float(0.0), tn_scalar_float(1.0));
    tn_fail(TN_ERR_NOT_IMPLEMENTED, "activations: unknown, got %.40s; expected one of ONNX", name);
    return NULL;
}

static tn_tensor *limited(const struct layer *l, tn_tensor *x)
{
    return l->clip > 0 ? tn_clamp(x, tn_scalar_float(-l->clip), tn_scalar_float(l->clip)) : x;
}

static tn_tensor *act(const struct layer *l, int which, tn_tensor *x)
{
    return activate(l->activations[which], l->alpha[which], l->beta[which], limited(l, x));
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Part i of the gates, or of a peephole. */
static tn_tensor *part(const struct layer *l, tn_tensor *x, int64_t dim, int64_t i)
{
    return tn_narrow(x, dim, i * l->hidden, l->hidden);
}

static tn_tensor *peep(const struct layer *l, tn_tensor *x, tn_tensor *c, int64_t i)
{
    return l->peephole == TN_NONE ? x : tn_add(x, tn_mul(part(l, l->peephole, 0, i), c));
}

/* Gates of ONNX: i, o, f, c; z, r, h. gx is x W^T + the bias of x. */
static void one_step(const struct layer *l, tn_tensor *gx, tn_tensor **h, tn_tensor **c)
{
    tn_tensor *gates = tn_add(gx, tn_linear(*h, l->r, l->rb)), *z, *n, *rn, *in, *f;

    if (l->cell == RNN) {
        *h = act(l, 0, gates);
    } else if (l->cell == LSTM) {
        in = act(l, 0, peep(l, part(l, gates, 1, 0), *c, 0));
        f = l->couple ? tn_add_scalar(tn_neg(in), tn_scalar_int(1))
                      : act(l, 0, peep(l, part(l, gates, 1, 2), *c, 2));
        *c = tn_add(tn_mul(f, *c), tn_mul(in, act(l, 1, part(l, gates, 1, 3))));
        *h = tn_mul(act(l, 0, peep(l, part(l, gates, 1, 1), *c, 1)),
                    activate(l->activations[2], l->alpha[2], l->beta[2], *c));
    } else {
        tn_tensor *bias = l->rb == TN_NONE ? TN_NONE : part(l, l->rb, 0, 2);

        z = act(l, 0, part(l, gates, 1, 0));
        rn = act(l, 0, part(l, gates, 1, 1));
        n = l->reset_after ? tn_mul(rn, tn_linear(*h, part(l, l->r, 0, 2), bias))
                           : tn_linear(tn_mul(rn, *h), part(l, l->r, 0, 2), bias);
        n = act(l, 1, tn_add(part(l, gx, 1, 2), n));
        *h = tn_add(tn_mul(tn_sub(*h, n), z), n);
    }
}

/* After the end of a sequence the states stay and the result is 0. */
static tn_status run_steps(tn_rule_call *call, struct layer *l, tn_tensor **y, tn_tensor **h_last,
                           tn_tensor **c_last)
{
    tn_tensor *h = l->h, *c = l->c, **out = rule_memory(call, l->steps, sizeof *out), *gx;

    gx = tn_linear(l->x, l->w, l->wb);
    for (int64_t t = 0; t < l->steps && out != NULL; t++) {
        int64_t at = l->reverse ? l->steps - 1 - t : t;
        tn_tensor *before = h, *c_before = c, *live = NULL;

        one_step(l, tn_select(gx, 0, at), &h, &c);
        out[at] = h;
        if (l->lengths != TN_NONE) {
            live = tn_unsqueeze(
                tn_gt(l->lengths, tn_full(l->lengths, TN_SCALAR_SHAPE, tn_scalar_int(at), TN_I64)),
                1);
            out[at] = tn_mul(h, tn_cast(live, tn_tensor_dtype(l->x)));
            h = tn_where(live, h, before);
            c = l->cell == LSTM ? tn_where(live, c, c_before) : c;
        }
        if (out[at] == NULL)
            return rule_give(call, NULL);
    }
    if (out == NULL)
        return call->status;
    *y = tn_stack(out, l->steps, 0);
    *h_last = h;
    *c_last = c;
    return TN_OK;
}

/* ---- one direction --------------------------------------------------------------------------- */

/* Rows of gates in Tenon's order: i, f, c, o of i, o, f, c; r, z, n of z, r, h. */
static tn_tensor *ordered(const struct layer *l, tn_tensor *w)
{
    static const int lstm[] = { 0, 2, 3, 1 }, gru[] = { 1, 0, 2 };
    tn_tensor *parts[4];
    int count = l->cell == LSTM ? 4 : 3;

    if (w == TN_NONE || w == NULL || l->cell == RNN)
        return w;
    for (int i = 0; i < count; i++)
        parts[i] = part(l, w, 0, l->cell == LSTM ? lstm[i] : gru[i]);
    return tn_cat(parts, count, 0);
}

static bool is_plain(const struct layer *l)
{
    bool names = l->cell == RNN ? strcmp(l->activations[0], "Tanh") == 0 ||
                                      strcmp(l->activations[0], "Relu") == 0
                                : strcmp(l->activations[0], "Sigmoid") == 0 &&
                                      strcmp(l->activations[1], "Tanh") == 0 &&
                                      (l->cell == GRU || strcmp(l->activations[2], "Tanh") == 0);

    return names && l->clip <= 0 && l->peephole == TN_NONE && !l->couple && l->steps > 0 &&
           (l->cell != GRU || l->reset_after) && l->lengths == TN_NONE;
}

static tn_status run_layer(tn_rule_call *call, struct layer *l, tn_tensor **y, tn_tensor **h,
                           tn_tensor **c)
{
    tn_tensor *w, *r, *wb, *rb;
    tn_status status;

    *c = TN_NONE;
    if (!is_plain(l))
        return run_steps(call, l, y, h, c);
    w = ordered(l, l->w), r = ordered(l, l->r);
    wb = ordered(l, l->wb), rb = ordered(l, l->rb);
    if (l->cell == LSTM)
        status = tn_lstm_sequence(l->x, l->h, l->c, w, r, wb, rb, TN_NONE, TN_NONE, y, h, c,
                                  l->reverse);
    else if (l->cell == GRU)
        status = tn_gru_sequence(l->x, l->h, w, r, wb, rb, TN_NONE, y, h, l->reverse);
    else
        status = tn_rnn_sequence(l->x, l->h, w, r, wb, rb, TN_NONE, y, h,
                                 strcmp(l->activations[0], "Relu") == 0 ? "relu" : "tanh",
                                 l->reverse);
    return status == TN_OK ? TN_OK : rule_give(call, NULL);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Slice `direction` of an argument with directions first; TN_NONE if there is none. */
static tn_tensor *of_direction(tn_rule_call *call, const char *name, int64_t direction)
{
    tn_tensor *x = rule_optional(call, name);

    return x == TN_NONE || x == NULL ? x : tn_select(x, 0, direction);
}

/* With layout 1 the batch comes first. */
static tn_tensor *state_of(tn_rule_call *call, const char *name, int64_t direction)
{
    tn_tensor *x = rule_optional(call, name);

    return x == TN_NONE || x == NULL
               ? x
               : tn_select(x, rule_int(call, "layout") != 0 ? 1 : 0, direction);
}

/* The number of constants that an activation has: alpha, and beta. */
static int constants_of(const char *name)
{
    static const char *const both[] = { "Affine", "ScaledTanh", "HardSigmoid" };
    static const char *const alpha[] = { "LeakyRelu", "ThresholdedRelu", "Elu" };

    for (int i = 0; i < 3; i++) {
        if (strcmp(name, both[i]) == 0)
            return 2;
        if (strcmp(name, alpha[i]) == 0)
            return 1;
    }
    return 0;
}

/* The lists have constants only for those activations that use them, in the order of these. */
static void read_activations(tn_rule_call *call, struct layer *l, int64_t direction)
{
    static const char *const usual[][3] = { { "Tanh", "", "" },
                                            { "Sigmoid", "Tanh", "" },
                                            { "Sigmoid", "Tanh", "Tanh" } };
    const tn_value *names = rule_value(call, "activations");
    tn_floats alpha = rule_floats(call, "activation_alpha");
    tn_floats beta = rule_floats(call, "activation_beta");
    int64_t count = l->cell == RNN ? 1 : l->cell == GRU ? 2 : 3, n_alpha = 0, n_beta = 0;

    for (int64_t at = 0; at < (direction + 1) * count; at++) {
        int64_t i = at % count;
        int constants;

        l->activations[i] = usual[l->cell][i];
        if (names->kind == TN_VALUE_LIST && at < (int64_t)names->count &&
            names->as.list[at].kind == TN_VALUE_STRING)
            l->activations[i] = names->as.list[at].as.s;
        constants = constants_of(l->activations[i]);
        l->alpha[i] = constants > 0 && n_alpha < alpha.count ? alpha.at[n_alpha] : (double)NAN;
        l->beta[i] = constants > 1 && n_beta < beta.count ? beta.at[n_beta] : (double)NAN;
        n_alpha += constants > 0;
        n_beta += constants > 1;
    }
}

static tn_status read_layer(tn_rule_call *call, struct layer *l, int64_t direction)
{
    int64_t gates = l->cell == LSTM ? 4 : l->cell == GRU ? 3 : 1, n;
    tn_tensor *bias = of_direction(call, "B", direction);

    l->w = of_direction(call, "W", direction);
    l->r = of_direction(call, "R", direction);
    l->h = state_of(call, "initial_h", direction);
    l->wb = l->rb = l->c = l->peephole = TN_NONE;
    if (call->status != TN_OK || l->w == NULL || l->r == NULL || l->h == NULL || bias == NULL)
        return rule_give(call, NULL);
    if (tn_tensor_ndim(l->r) != 2)
        return rule_fail(call, TN_ERR_VALUE, "R: wrong number of dimensions; expected 3");
    l->hidden = tn_tensor_size(l->r, 1);
    n = gates * l->hidden;
    if (bias != TN_NONE) {
        l->wb = tn_narrow(bias, 0, 0, n);
        l->rb = tn_narrow(bias, 0, n, n);
    }
    if (l->h == TN_NONE)
        l->h = tn_full(l->x, TN_SHAPE(tn_tensor_size(l->x, 1), l->hidden), tn_scalar_int(0),
                       tn_tensor_dtype(l->x));
    if (l->cell == LSTM) {
        l->c = state_of(call, "initial_c", direction);
        l->peephole = of_direction(call, "P", direction);
        if (l->c == TN_NONE)
            l->c = tn_mul_scalar(l->h, tn_scalar_int(0));
        l->couple = rule_int(call, "input_forget") != 0;
    }
    l->reset_after = l->cell == GRU && rule_int(call, "linear_before_reset") != 0;
    read_activations(call, l, direction);
    return l->wb != NULL && l->c != NULL ? call->status : rule_give(call, NULL);
}

static tn_status recurrent(tn_rule_call *call, enum cell cell)
{
    struct layer l = { .cell = cell, .x = rule_tensor(call, "X"), .lengths = TN_NONE };
    bool both = onnx_is(call, "direction", "bidirectional");
    bool reverse = onnx_is(call, "direction", "reverse"), batch_first = rule_int(call, "layout");
    tn_tensor *y[2], *h[2], *c[2];
    int64_t n = both ? 2 : 1;

    if (rule_has(call, "sequence_lens"))
        l.lengths = rule_cast(rule_tensor(call, "sequence_lens"), TN_I64);
    if (rule_has(call, "clip"))
        l.clip = rule_float(call, "clip");
    if (call->status != TN_OK || l.lengths == NULL)
        return rule_give(call, NULL);
    if (tn_tensor_ndim(l.x) != 3)
        return rule_fail(call, TN_ERR_VALUE, "X: %d dimensions; expected 3",
                         (int)tn_tensor_ndim(l.x));
    if (batch_first)
        l.x = tn_transpose(l.x, 0, 1);
    if (l.x == NULL)
        return rule_give(call, NULL);
    l.steps = tn_tensor_size(l.x, 0);
    for (int64_t i = 0; i < n; i++) {
        l.reverse = both ? i == 1 : reverse;
        if (read_layer(call, &l, i) != TN_OK || run_layer(call, &l, &y[i], &h[i], &c[i]) != TN_OK)
            return call->status != TN_OK ? call->status : tn_error_last_code();
    }
    /* [L, directions, N, H], or [N, L, directions, H]. */
    rule_give(call,
              batch_first ? tn_permute(tn_stack(y, n, 1), TN_INTS(2, 0, 1, 3)) : tn_stack(y, n, 1));
    rule_give(call, tn_stack(h, n, batch_first ? 1 : 0));
    return cell == LSTM ? rule_give(call, tn_stack(c, n, batch_first ? 1 : 0)) : call->status;
}

static tn_status rnn(tn_rule_call *call)
{
    return recurrent(call, RNN);
}

static tn_status gru(tn_rule_call *call)
{
    return recurrent(call, GRU);
}

static tn_status lstm(tn_rule_call *call)
{
    return recurrent(call, LSTM);
}

#define INPUTS "(X, W, R, B=None, sequence_lens=None, initial_h=None, "
#define OPTIONS                                                                                    \
    "activations=None, activation_alpha=None, activation_beta=None, clip=None, "                   \
    "direction='forward', hidden_size=*, layout=0, output_sequence=*"

const tn_rule_def onnx_rules_recurrent[] = {
    { "RNN" INPUTS OPTIONS ")", .call = rnn },
    { "GRU" INPUTS OPTIONS ", linear_before_reset=0)", .call = gru },
    { "LSTM" INPUTS "initial_c=None, P=None, " OPTIONS ", input_forget=0)", .call = lstm },
    { .function = NULL },
};
