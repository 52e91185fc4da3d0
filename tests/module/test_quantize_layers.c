/* SPDX-License-Identifier: MIT
 *
 * Quantized layers: results, texts, copies, states, conversions, refusals. */
#include "quantize.h"

static const struct {
    const char *net, *scheme, *type;
    tn_ints input;
    double least; /* dB */
} nets[] = {
    { "Sequential(Linear(64, 24))", "int8_dynamic", "QuantizedLinear", TN_SHAPE(5, 64), 38 },
    { "Sequential(Linear(64, 24, bias=False))", "int8_dynamic(activation=tensor)",
      "QuantizedLinear", TN_SHAPE(2, 3, 64), 38 },
    { "Sequential(Linear(64, 24))", "int8_weight", "QuantizedLinear", TN_SHAPE(5, 64), 38 },
    { "Sequential(Linear(64, 24))", "int8_weight(group=16, activation=none)", "QuantizedLinear",
      TN_SHAPE(64), 40 },
    { "Sequential(Linear(64, 24))", "int4_weight", "QuantizedLinear", TN_SHAPE(5, 64), 18 },
    { "Sequential(Linear(64, 24))", "int4_weight(group=16, limit=0)", "QuantizedLinear",
      TN_SHAPE(5, 64), 18 },
    { "Sequential(Linear(64, 24))", "q8_0_weight", "QuantizedLinear", TN_SHAPE(5, 64), 38 },
    { "Sequential(Linear(64, 24))", "q4_0_weight(limit=0)", "QuantizedLinear", TN_SHAPE(5, 64),
      16 },
    { "Sequential(Conv1d(4, 6, 3, padding='same'))", "int8_dynamic", "QuantizedConv1d",
      TN_SHAPE(2, 4, 9), 36 },
    { "Sequential(Conv1d(4, 6, 4, padding='same'))", "int8_dynamic", "QuantizedConv1d",
      TN_SHAPE(2, 4, 9), 36 },
    { "Sequential(Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2, bias=False))", "int8_dynamic",
      "QuantizedConv2d", TN_SHAPE(4, 9, 8), 36 },
    { "Sequential(Conv2d(4, 6, 3, padding=2, dilation=2, padding_mode='circular'))",
      "int8_dynamic(activation=tensor)", "QuantizedConv2d", TN_SHAPE(2, 4, 9, 8), 36 },
    { "Sequential(Conv3d(2, 4, 2, padding='valid'))", "int8_dynamic", "QuantizedConv3d",
      TN_SHAPE(2, 2, 4, 5, 3), 36 },
};

/* Results, the text, a copy, a state, a conversion. */
START_TEST(every_layer_takes_and_gives_floats)
{
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        TN_SCOPE;
        tn_random_seed(i);
        tn_module *net = eval_of(nets[i].net), *again, *copy;
        tn_tensor *x = tn_randn(nets[i].input), *y = called(net, x), *z;
        char spec[1000];

        quantized(net, nets[i].scheme, 1);
        ck_assert_str_eq(tn_module_type(tn_module_child_at(net, 0)), nets[i].type);
        z = called(net, x);
        ck_assert_int_eq(tn_tensor_dtype(z), TN_F32);
        ck_assert_msg(sqnr(y, z) > nets[i].least, "%s: %g dB", nets[i].net, sqnr(y, z));
        ck_assert_int_eq(tn_module_parameter_count(net), 0);

        ck_assert_int_lt(tn_module_spec(net, spec, sizeof spec), (int64_t)sizeof spec);
        again = eval_of(spec);
        tn_state *state = tn_module_state(net);
        ck_assert_msg(tn_module_load_state(again, state, true) == TN_OK, "%s", tn_error_text());
        same_bits(called(again, x), z);
        copy = tn_module_copy(net);
        same_bits(called(copy, x), z);
        ck_assert_int_eq(tn_module_bfloat16(copy), TN_OK);
        z = called(copy, tn_cast(x, TN_BF16));
        ck_assert_int_eq(tn_tensor_dtype(z), TN_BF16);
        ck_assert_msg(sqnr(y, tn_cast(z, TN_F32)) > nets[i].least - 8, "%s: bfloat16", nets[i].net);
        ck_assert_int_lt(tn_module_repr(net, spec, sizeof spec), (int64_t)sizeof spec);
        ck_assert(strstr(spec, nets[i].type) != NULL && strstr(spec, "weight='") != NULL);
        tn_state_drop(state);
        tn_module_drop(copy);
        tn_module_drop(again);
        tn_module_drop(net);
    }
    TN_PROVES("QNT-011");
}
END_TEST

/* A sample has the same result whatever else is in its batch. */
START_TEST(scales_of_inputs_are_those_of_a_row_and_of_a_sample)
{
    TN_SCOPE;
    tn_tensor *rows = tn_randn(TN_SHAPE(2, 64)), *images = tn_randn(TN_SHAPE(2, 2, 6, 6));
    tn_module *linear = eval_of("Sequential(Linear(64, 8))");
    tn_module *conv = eval_of("Sequential(Conv2d(2, 3, 3))");

    ck_assert_ptr_nonnull(tn_mul_scalar_(tn_narrow(rows, 0, 1, 1), 1000.0));
    ck_assert_ptr_nonnull(tn_mul_scalar_(tn_narrow(images, 0, 1, 1), 1000.0));
    quantized(linear, "int8_dynamic", 1);
    quantized(conv, "int8_dynamic", 1);
    same_bits(called(linear, tn_narrow(rows, 0, 0, 1)), tn_narrow(called(linear, rows), 0, 0, 1));
    same_bits(called(conv, tn_narrow(images, 0, 0, 1)), tn_narrow(called(conv, images), 0, 0, 1));
    tn_module_drop(linear);
    tn_module_drop(conv);
}
END_TEST

START_TEST(an_embedding_gives_rows_of_its_table)
{
    static const char *const schemes[] = { "int8_weight", "int8_weight(group=16)", "q8_0_weight",
                                           "int4_weight(limit=0)" };
    TN_SCOPE;
    tn_tensor *index = tn_tensor_from((const int64_t[]){ 3, 0, 6, 3 }, TN_I64, TN_SHAPE(2, 2));

    for (int i = 0; i < 4; i++) {
        tn_module *net = eval_of("Sequential(Embedding(7, 32, padding_idx=0))");
        tn_tensor *y = called(net, index), *z;

        quantized(net, schemes[i], 1);
        z = called(net, index);
        ck_assert_int_eq(tn_tensor_ndim(z), 3);
        ck_assert_float_gt(sqnr(y, z), i == 3 ? 18 : 38);
        ck_assert_int_eq(tn_module_bfloat16(net), TN_OK);
        ck_assert_int_eq(tn_tensor_dtype(called(net, index)), TN_BF16);
        ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(net, "0.weight")),
                         i < 2 ? TN_I8 : TN_U8);
        tn_module_drop(net);
    }
}
END_TEST

/* The scale and the integers of a known weight, and what they compute. */
START_TEST(numbers_are_those_of_the_formula)
{
    TN_SCOPE;
    tn_module *net = eval_of("Sequential(Linear(2, 2, bias=False))");
    tn_tensor *weight = tn_tensor_from((const float[]){ 63.75f, -51, 12.75f, 6 }, TN_F32,
                                       TN_SHAPE(2, 2));

    ck_assert_ptr_nonnull(tn_copy_(tn_detach(tn_module_find_tensor(net, "0.weight")), weight));
    quantized(net, "int8_dynamic(limit=0)", 1);
    /* 63.75 / 127.5 = 0.5: 127.5 is clamped to 127, -102; with 0.97 of it -105.15 and 131: worse */
    HAS(tn_module_find_tensor(net, "0.weight"), 127, -102, 127, 60);
    HAS(tn_module_find_tensor(net, "0.weight_scale"), 0.5, 0.1);
    /* x: scale 3 / 255, zero point 170, integers 0 and 255, which are -2 and 1 */
    tn_tensor *y = called(net, VEC(-2, 1));
    ck_assert_double_eq_tol(at(y, 0), -2 * 63.5 + -51, 1e-4);
    ck_assert_double_eq_tol(at(y, 1), -2 * 12.7 + 6, 1e-5);
    tn_module_drop(net);
}
END_TEST

/* Four bits: weights with one large number gain from a smaller scale. */
START_TEST(scales_clip_what_costs_less)
{
    TN_SCOPE;
    tn_random_seed(3);
    tn_module *net = eval_of("Sequential(Linear(64, 8, bias=False))");
    tn_tensor *weight = tn_detach(tn_module_find_tensor(net, "0.weight")), *whole, *zero_point;
    tn_tensor *plain, *scale, *packed;

    ck_assert_ptr_nonnull(tn_normal_(weight));
    ck_assert_int_eq(tn_choose_qparams(weight, &whole, &zero_point, TN_INTS(1), false, INT64_MIN,
                                       TN_I8, true, -8, 7),
                     TN_OK);
    plain = tn_dequantize(tn_quantize(weight, whole, TN_NONE, 0, INT64_MIN, TN_I8, -8, 7), whole);
    quantized(net, "int4_weight(group=0, limit=0)", 1);
    scale = tn_module_find_tensor(net, "0.weight_scale");
    packed = tn_dequantize_packed(tn_module_find_tensor(net, "0.weight"), scale, TN_NONE, "int4");
    ck_assert_float_gt(sqnr(weight, packed), sqnr(weight, plain) + 0.3);
    ck_assert_float_lt(tn_item(tn_amin(tn_div(scale, whole))), 1);
    tn_module_drop(net);
}
END_TEST

START_TEST(specs_of_quantized_layers_are_checked)
{
    static const struct {
        const char *spec, *words;
    } wrong[] = {
        { "QuantizedLinear(0, 4)", "out of range, got 0 and 4" },
        { "QuantizedLinear(8, 4, weight='int3')", "unknown format, got \"int3\"" },
        { "QuantizedLinear(8, 4, group=3)", "does not divide the row" },
        { "QuantizedLinear(8, 4, group=-8)", "group: negative" },
        { "QuantizedLinear(32, 4, weight='q8_0', group=32)", "the format has its own" },
        { "QuantizedLinear(8, 4, weight='int4')", "expected one of none, block" },
        { "QuantizedLinear(8, 4, activation='rows')", "got \"rows\"" },
        { "QuantizedConv2d(3, 4, 3, groups=2)", "do not fit, got 3, 4 and 2" },
        { "QuantizedConv2d(3, 4, (3, 3, 3))", "kernel_size: wrong count, got 3" },
        { "QuantizedConv2d(3, 4, 3, stride=0)", "stride: out of range, got 0" },
        { "QuantizedConv2d(3, 4, 3, padding='some')", "padding: wrong value" },
        { "QuantizedConv2d(3, 4, 3, padding='same', stride=2)", "not possible with" },
        { "QuantizedConv2d(3, 4, 3, padding_mode='odd')", "padding_mode: unknown" },
        { "QuantizedConv2d(3, 4, 3, weight='int4')", "expected int8" },
        { "QuantizedConv2d(3, 4, 3, activation='block')", "activation: not possible" },
        { "QuantizedEmbedding(3, 0)", "out of range, got 3 and 0" },
        { "QuantizedEmbedding(3, 4, padding_idx=3)", "padding_idx: out of range, got 3" },
        { "HistogramRange(1)", "bins: out of range" },
        { "MovingAverageRange(1.5)", "averaging: out of range" },
        { "FakeQuantize(dtype=float32)", "expected int8 or uint8" },
        { "FakeQuantize(range=3)", "range: wrong type, got int" },
        { "FakeQuantize(dim=0, range=MinMaxRange(dim=0))", "dim: not possible with a range" },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_ptr_null(tn_module_parse(wrong[i].spec));
        ck_assert_msg(strstr(tn_error_text(), wrong[i].words) != NULL, "%s: %s", wrong[i].spec,
                      tn_error_text());
        tn_error_clear();
    }
}
END_TEST

/* A float weight with rows of another size, some of which have as many floats as own bytes. */
START_TEST(float_weights_that_do_not_fit_are_refused)
{
    static const struct {
        const char *from, *to, *words;
    } cases[] = {
        { "Linear(16, 10)", "QuantizedLinear(64, 10, weight='int4', group=32, activation='block')",
          "weight: wrong size of rows, got 16 floats; expected 64" },
        { "Linear(32, 10)", "QuantizedLinear(64, 10, weight='int4', group=32, activation='block')",
          "weight: wrong size of rows, got 32 floats; expected 64" },
        { "Linear(68, 10)", "QuantizedLinear(64, 10, weight='q8_0', activation='block')",
          "weight: wrong size of rows, got 68 floats; expected 64" },
        { "Linear(16, 10)", "QuantizedLinear(64, 10, group=32, activation='block')",
          "size mismatch for weight" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TN_SCOPE;
        tn_module *from = parsed(cases[i].from), *to = parsed(cases[i].to);
        tn_state *state = tn_module_state(from);

        ck_assert_ptr_nonnull(state);
        ck_assert_int_ne(tn_module_load_state(to, state, false), TN_OK);
        ck_assert_msg(strstr(tn_error_text(), cases[i].words) != NULL, "%s", tn_error_text());
        tn_error_clear();
        ck_assert_int_eq(tn_state_set(state, "weight_scale", tn_ones(TN_SHAPE(3))), TN_OK);
        ck_assert_int_ne(tn_module_load_state(to, state, false), TN_OK);
        tn_error_clear();
        tn_state_drop(state);
        tn_module_drop(from);
        tn_module_drop(to);
    }
}
END_TEST

/* Loads a state in which one entry is another one, and returns the words of the refusal. */
static void refused_entry(const char *spec, const char *key, tn_tensor *value, const char *words)
{
    tn_module *net = parsed(spec);
    tn_state *state = tn_module_state(net);

    ck_assert_int_ge(tn_state_find(state, key), 0);
    ck_assert_int_eq(tn_state_set(state, key, value), TN_OK);
    ck_assert_int_ne(tn_module_load_state(net, state, false), TN_OK);
    FAILED(TN_ERR_VALUE, words);
    tn_state_drop(state);
    tn_module_drop(net);
}

START_TEST(scales_that_are_none_are_refused)
{
    static const float bad[] = { NAN, INFINITY, 0, -0.5f };
    static const char *const words[] = { "got nan", "got inf", "got 0.0", "got -0.5" };
    static const char linear[] = "Sequential(QuantizedLinear(4, 3, activation='static'))";
    TN_SCOPE;

    for (int i = 0; i < 4; i++) {
        char text[100];

        tn_snprint(text, sizeof text, "0.weight_scale: wrong number, %s at element 2", words[i]);
        refused_entry(linear, "0.weight_scale", VEC(1, 1, bad[i]), text);
        refused_entry("Sequential(QuantizedConv2d(2, 3, 3))", "0.weight_scale", VEC(1, 1, bad[i]),
                      text);
        refused_entry("Sequential(QuantizedEmbedding(3, 4))", "0.weight_scale", VEC(1, 1, bad[i]),
                      text);
        tn_snprint(text, sizeof text, "0.input_scale: wrong number, %s at element 0", words[i]);
        refused_entry(linear, "0.input_scale",
                      tn_tensor_full(tn_no_ints(), TN_SCALAR(bad[i]), TN_F32, NULL), text);
        tn_snprint(text, sizeof text, "0.scale: wrong number, %s at element 0", words[i]);
        refused_entry("Sequential(FakeQuantize())", "0.scale",
                      tn_tensor_full(tn_no_ints(), TN_SCALAR(bad[i]), TN_F32, NULL), text);
    }
    /* in double precision it is positive, but not in that of the buffer */
    refused_entry(linear, "0.input_scale",
                  tn_tensor_full(tn_no_ints(), TN_SCALAR(1e-60), TN_F64, NULL), "got 0.0");
    refused_entry(linear, "0.weight", tn_tensor_full(TN_SHAPE(3, 4), TN_SCALAR(NAN), TN_F32, NULL),
                  "0.weight: wrong number, got nan at element 0; expected finite numbers");
}
END_TEST

START_TEST(integers_of_another_dtype_are_refused)
{
    TN_SCOPE;

    refused_entry("QuantizedLinear(8, 3, weight='int4', activation='block')", "weight",
                  tn_tensor_full(TN_SHAPE(3, 4), TN_SCALAR(1), TN_I8, NULL),
                  "weight: wrong dtype, got int8; expected uint8, as int4 is stored, or floats");
    refused_entry("QuantizedEmbedding(3, 32, weight='q8_0')", "weight",
                  tn_tensor_full(TN_SHAPE(3, 34), TN_SCALAR(1), TN_I8, NULL),
                  "got int8; expected uint8, as q8_0 is stored");
    refused_entry("QuantizedConv1d(2, 3, 3)", "weight",
                  tn_tensor_full(TN_SHAPE(3, 2, 3), TN_SCALAR(200), TN_U8, NULL),
                  "got uint8; expected int8, as int8 is stored");
}
END_TEST

START_TEST(gradients_of_integers_are_refused)
{
    TN_SCOPE;
    tn_module *net = parsed("Sequential(Linear(8, 8), QuantizedLinear(8, 4))");

    ck_assert_ptr_null(tn_module_call(net, tn_randn(TN_SHAPE(2, 8))));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "input: requires a gradient");
    tn_module_drop(net);
    /* a weight alone in integers has one for its input */
    net = parsed("Sequential(QuantizedLinear(8, 4, weight='int8', activation='none'))");
    tn_tensor *x = tn_randn(TN_SHAPE(2, 8));
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    ck_assert_msg(tn_backward(tn_sum(called(net, x))) == TN_OK, "%s", tn_error_text());
    ck_assert_ptr_ne(tn_tensor_grad(x), TN_NONE);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("layers");
    Suite *suite = suite_create("quantized layers");

    tcase_add_test(tcase, every_layer_takes_and_gives_floats);
    tcase_add_test(tcase, scales_of_inputs_are_those_of_a_row_and_of_a_sample);
    tcase_add_test(tcase, an_embedding_gives_rows_of_its_table);
    tcase_add_test(tcase, numbers_are_those_of_the_formula);
    tcase_add_test(tcase, scales_clip_what_costs_less);
    tcase_add_test(tcase, specs_of_quantized_layers_are_checked);
    tcase_add_test(tcase, float_weights_that_do_not_fit_are_refused);
    tcase_add_test(tcase, scales_that_are_none_are_refused);
    tcase_add_test(tcase, integers_of_another_dtype_are_refused);
    tcase_add_test(tcase, gradients_of_integers_are_refused);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
