/* SPDX-License-Identifier: MIT
 *
 * What the standard layers compute. Names of rows are those of the behaviour specification. */
#include "tests/module/toy_layers.h"

#include <math.h>

static void expect_values(tn_tensor *tensor, const float *values, int64_t count)
{
    float got[64];
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(tensor), count);
    ck_assert_int_eq(tn_tensor_copy_out(tensor, got, (size_t)count * sizeof *got), TN_OK);
    for (int64_t i = 0; i < count; i++)
        ck_assert_float_eq_tol(got[i], values[i], 1e-6);
}

static void expect_shape(tn_tensor *tensor, tn_ints shape)
{
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    tn_ints got = tn_tensor_shape(tensor);
    ck_assert_int_eq(got.count, shape.count);
    for (int64_t i = 0; i < shape.count; i++)
        ck_assert_int_eq(got.at[i], shape.at[i]);
}

static const float row[4] = { -1, 0, 2, 0.5 };

START_TEST(linear_multiplies_and_adds_over_the_last_dimension_lay_002)
{
    TN_SCOPE;
    static const float weight[6] = { 1, 2, 3, 4, 5, 6 }, bias[3] = { 10, 20, 30 };
    tn_module *m = parsed("Linear(2, 3)");
    tn_state *state = tn_state_new();
    tn_state_set(state, "weight", tn_tensor_from(weight, TN_F32, TN_SHAPE(3, 2)));
    tn_state_set(state, "bias", tn_tensor_from(bias, TN_F32, TN_SHAPE(3)));
    ck_assert_int_eq(tn_module_load_state(m, state, true), TN_OK);
    tn_tensor *x = tn_tensor_from(row, TN_F32, TN_SHAPE(2, 2));
    expect_values(tn_module_call(m, x), (const float[]){ 9, 17, 25, 13, 28, 43 }, 6);
    expect_shape(tn_module_call(m, tn_tensor_full(TN_SHAPE(2, 5, 2), 0, TN_F32, NULL)),
                 TN_SHAPE(2, 5, 3));
    expect_shape(tn_module_call(m, tn_tensor_full(TN_SHAPE(2), 0, TN_F32, NULL)), TN_SHAPE(3));
    expect_shape(tn_module_call(m, tn_tensor_full(TN_SHAPE(0, 2), 0, TN_F32, NULL)),
                 TN_SHAPE(0, 3));
    tn_module *bare = parsed("Linear(2, 3, bias=False)");
    tn_state_drop(state);
    state = tn_module_state(bare);
    ck_assert_int_eq(tn_state_count(state), 1);
    expect_shape(tn_module_call(bare, x), TN_SHAPE(2, 3));
    tn_state_drop(state);
    tn_module_drop(bare);
    tn_module_drop(m);
}
END_TEST

START_TEST(activations_and_shapes_compute_what_they_say_lay_010_lay_011)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_from(row, TN_F32, TN_SHAPE(2, 2));
    struct {
        const char *spec;
        float values[4];
    } cases[] = {
        { "ReLU()", { 0, 0, 2, 0.5f } },
        { "Identity(1, a='b')", { -1, 0, 2, 0.5f } },
        { "Sigmoid()", { 0.26894143f, 0.5f, 0.8807971f, 0.62245935f } },
        { "Softmax(1)", { 0.26894143f, 0.7310586f, 0.81757444f, 0.18242551f } },
        { "Softmax()", { 0.26894143f, 0.7310586f, 0.81757444f, 0.18242551f } },
        { "LogSoftmax(dim=0)", { -3.0485873f, -0.974077f, -0.04858735f, -0.474077f } },
        { "ReLUSquared()", { 0, 0, 4, 0.25f } },
        { "ReLU(inplace=True)", { 0, 0, 2, 0.5f } },
    };
    for (int64_t i = 0; i < tn__countof(cases); i++) {
        tn_module *m = parsed(cases[i].spec);
        expect_values(tn_module_call(m, x), cases[i].values, 4);
        tn_module_drop(m);
    }
    expect_values(x, (const float[]){ 0, 0, 2, 0.5f }, 4); /* the last one wrote into it */
    tn_tensor *wide = tn_tensor_full(TN_SHAPE(2, 3, 4, 5), 0, TN_F32, NULL);
    tn_module *m = parsed("Flatten()");
    expect_shape(tn_module_call(m, wide), TN_SHAPE(2, 60));
    tn_module_drop(m);
    m = parsed("Flatten(0, 1)");
    expect_shape(tn_module_call(m, wide), TN_SHAPE(6, 4, 5));
    tn_module_drop(m);
    m = parsed("Unflatten(-2, (2, -1))");
    expect_shape(tn_module_call(m, wide), TN_SHAPE(2, 3, 2, 2, 5));
    tn_module_drop(m);
    m = parsed("Unflatten(7, (2, 2))");
    ck_assert_ptr_null(tn_module_call(m, wide));
    expect_failure(TN_ERR_INDEX, "in Unflatten: dim: out of range, got 7; expected -4 to 3");
    tn_module_drop(m);
}
END_TEST

/* None as dim: 0 for 0, 1 and 3 dimensions, else 1, as in PyTorch. Along a dimension of n equal
 * numbers each becomes 1 / n. */
START_TEST(softmax_chooses_its_dimension_by_their_number)
{
    static const int64_t sizes[] = { 2, 3, 4, 5, 6 };
    static const double along[] = { 1, 2, 3, 2, 3, 3 };
    static const char *const specs[] = { "Softmax()", "LogSoftmax()", "Softmin()" };
    for (int64_t k = 0; k < tn__countof(specs); k++)
        for (int32_t ndim = 0; ndim <= 5; ndim++) {
            TN_SCOPE;
            tn_module *m = parsed(specs[k]);
            tn_tensor *x = tn_tensor_full((tn_ints){ sizes, ndim }, 0.5, TN_F32, NULL),
                      *y = tn_module_call(m, x);
            ck_assert_msg(y != NULL, "%s, %d dimensions: %s", specs[k], (int)ndim, tn_error_text());
            ck_assert_int_eq(tn_tensor_ndim(y), ndim);
            double value = k == 1 ? -log(along[ndim]) : 1 / along[ndim];
            ck_assert_double_eq_tol(tn_item(tn_mean(y)), value, 1e-6);
            tn_module_drop(m);
        }
}
END_TEST

/* For sequences of 4 and 2 elements, the final state of the second one is the state after its
 * second element, and its further outputs are 0. */
START_TEST(recurrent_layers_respect_lengths)
{
    static const char *const specs[] = { "RNN(2, 3)", "GRU(2, 3)", "LSTM(2, 3)" };
    static const int64_t own[] = { 4, 2 };

    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        tn_module *net = parsed(specs[i]);
        tn_pack *in = tn_pack_new(), *out = tn_pack_new();
        tn_tensor *x = tn_tensor_empty(TN_SHAPE(4, 2, 2), TN_F32, NULL);
        float values[16], y[24], h[6];

        for (int k = 0; k < 16; k++)
            values[k] = 0.1F * (float)(k % 7) - 0.35F;
        ck_assert_int_eq(tn_tensor_copy_in(x, values, sizeof values), TN_OK);
        ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tensor(x)), TN_OK);
        ck_assert_int_eq(
            tn_pack_add(in, "lengths", tn_value_tensor(tn_tensor_from(own, TN_I64, TN_SHAPE(2)))),
            TN_OK);
        ck_assert_msg(tn_module_call_pack(net, in, out) == TN_OK, "%s: %s", specs[i],
                      tn_error_text());
        ck_assert_int_eq(tn_tensor_copy_out(tn_pack_tensor(out, 0), y, sizeof y), TN_OK);
        tn_value states = tn_pack_at(out, 1);
        if (states.kind == TN_VALUE_TUPLE)
            states = states.as.list[0];
        ck_assert_int_eq(tn_tensor_copy_out(states.as.tensor, h, sizeof h), TN_OK);
        for (int k = 0; k < 3; k++) {
            ck_assert(y[2 * 6 + 3 + k] == 0 && y[3 * 6 + 3 + k] == 0); /* beyond the end */
            ck_assert(y[6 + 3 + k] != 0 && h[3 + k] == y[6 + 3 + k]);
            ck_assert(h[k] == y[3 * 6 + k]);
        }
        tn_pack_drop(in);
        tn_pack_drop(out);
        tn_module_drop(net);
    }
}
END_TEST

static tn_status note_arities(void *user, tn_module *module, const tn_pack *input,
                              const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    int64_t *arities = user;

    (void)module, (void)replacement, (void)outcome;
    arities[0] = tn_pack_count(input);
    arities[1] = tn_pack_count(output);
    arities[2] = tn_pack_at(output, tn_pack_count(output) - 1).kind;
    return TN_OK;
}

/* A hook sees what a hook in PyTorch sees: x, (h, c) and output, (h, c). */
START_TEST(an_lstm_takes_and_returns_its_states_as_a_tuple)
{
    TN_SCOPE;
    tn_module *net = parsed("LSTM(2, 3)"), *cell = parsed("LSTMCell(2, 3)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(4, 2, 2), 0.5, TN_F32, NULL), *flat[3], *out[3];
    tn_tensor *state = tn_tensor_full(TN_SHAPE(1, 2, 3), 0.25, TN_F32, NULL);
    tn_value states[3] = { tn_value_tensor(state), tn_value_tensor(state), tn_value_int(1) };
    tn_pack *in = tn_pack_new(), *results = tn_pack_new();
    int64_t arities[3] = { 0 };

    tn_module_hook_forward(net, note_arities, 0, arities, NULL);
    ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tensor(x)), TN_OK);
    ck_assert_int_eq(tn_pack_add(in, NULL, tn_value_tuple(states, 2)), TN_OK);
    ck_assert_msg(tn_module_call_pack(net, in, results) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(arities[0], 2);
    ck_assert_int_eq(arities[1], 2);
    ck_assert_int_eq(arities[2], TN_VALUE_TUPLE);
    flat[0] = x;
    flat[1] = flat[2] = state;
    ck_assert_msg(tn_module_call_many(net, flat, 3, out, 3) == TN_OK, "%s", tn_error_text());
    ck_assert_double_eq(tn_item(tn_sum(out[2])),
                        tn_item(tn_sum(tn_pack_at(results, 1).as.list[1].as.tensor)));
    flat[1] = flat[2] = TN_NONE; /* as if they were absent */
    ck_assert_msg(tn_module_call_many(net, flat, 3, out, 1) == TN_OK, "%s", tn_error_text());
    tn_pack_drop(results);
    results = tn_pack_new();
    ck_assert_int_eq(tn_pack_set(in, 1, tn_value_tuple(states, 3)), TN_OK);
    ck_assert_int_eq(tn_module_call_pack(net, in, results), TN_ERR_TYPE);
    ck_assert(strstr(tn_error_text(),
                     "LSTM: hx: wrong type, got tuple of 3; expected a tuple of two") != NULL);
    tn_error_clear();
    ck_assert_int_eq(tn_pack_set(in, 1, tn_value_tensor(state)), TN_OK);
    ck_assert_int_eq(tn_module_call_pack(cell, in, results), TN_ERR_TYPE);
    tn_error_clear();
    tn_pack_drop(in);
    tn_pack_drop(results);
    tn_module_drop(net);
    tn_module_drop(cell);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        linear_multiplies_and_adds_over_the_last_dimension_lay_002,
        activations_and_shapes_compute_what_they_say_lay_010_lay_011,
        softmax_chooses_its_dimension_by_their_number,
        recurrent_layers_respect_lengths,
        an_lstm_takes_and_returns_its_states_as_a_tuple,
        NULL,
    };
    return suite_run("layer values", tests);
}
