/* SPDX-License-Identifier: MIT
 *
 * Calibration and quantization-aware training: tn_module_quantize_prepare, calls or training,
 * tn_module_quantize_convert; accuracy on the digits. */
#include "quantize.h"

#include <tenon/train.h>

/* ---- calibration ----------------------------------------------------------------------------- */

static const char small[] =
    "Sequential(conv=Conv2d(1, 4, 3), relu=ReLU(), drop=Dropout(), flat=Flatten(), "
    "head=Linear(144, 10))";

static void prepared(tn_module *net, const char *scheme)
{
    ck_assert_msg(tn_module_quantize_prepare(net, scheme) == TN_OK, "%s", tn_error_text());
}

static int64_t converted(tn_module *net, tn_tensor *x)
{
    tn_quantize_report report;
    int64_t count;

    ck_assert_msg(tn_module_quantize_convert(net, &x, x != NULL, &report) == TN_OK, "%s",
                  tn_error_text());
    count = report.quantized;
    tn_quantize_report_free(&report);
    return count;
}

START_TEST(calibration_finds_the_scales_of_inputs)
{
    static const char *const schemes[] = { "int8_static(range=MinMaxRange())", "int8_static",
                                           "int8_static(range=MovingAverageRange(1.0))" };
    TN_SCOPE;

    for (int i = 0; i < 3; i++) {
        tn_random_seed((uint64_t)i);
        tn_module *net = eval_of(small), *again;
        tn_tensor *x = tn_randn(TN_SHAPE(8, 1, 8, 8)), *y = called(net, x), *z;
        char spec[2000];

        prepared(net, schemes[i]);
        same_bits(called(net, x), y); /* ranges change nothing */
        ck_assert_ptr_nonnull(tn_module_find_tensor(net, "conv.input_range.min_val"));
        ck_assert_float_eq(tn_item(tn_module_find_tensor(net, "conv.input_range.max_val")),
                           tn_item(tn_amax(x)));
        ck_assert_int_eq(converted(net, x), 2);
        ck_assert_str_eq(tn_module_type(tn_module_child(net, "conv")), "QuantizedConv2d");
        ck_assert_str_eq(tn_module_type(tn_module_child(net, "drop")), "Dropout");
        ck_assert_int_eq(tn_module_slot_kind(tn_module_child(net, "conv"), "input_range"), 0);
        z = called(net, x);
        ck_assert_float_gt(sqnr(y, z), 33);
        if (i == 0)
            ck_assert_double_eq_tol(tn_item(tn_module_find_tensor(net, "conv.input_scale")),
                                    tn_item(tn_sub(tn_amax(x), tn_amin(x))) / 255, 1e-7);
        tn_module_spec(net, spec, sizeof spec);
        again = eval_of(spec);
        tn_state *state = tn_module_state(net);
        ck_assert_msg(tn_module_load_state(again, state, true) == TN_OK, "%s", tn_error_text());
        same_bits(called(again, x), z);
        tn_state_drop(state);
        tn_module_drop(again);
        tn_module_drop(net);
    }
    TN_PROVES("QNT-008");
}
END_TEST

/* The hook of the preparation is gone: nothing keeps the module from being compiled. */
START_TEST(nothing_of_the_preparation_is_left)
{
    TN_SCOPE;
    tn_module *net = eval_of(small), *copy;
    tn_tensor *x = tn_randn(TN_SHAPE(8, 1, 8, 8)), *y;

    prepared(net, "int8_static(types=[Linear], limit=200)");
    called(net, x);
    copy = tn_module_copy(net);
    ck_assert_int_eq(converted(net, NULL), 0); /* below the limit: all stay in float */
    ck_assert_str_eq(tn_module_type(tn_module_child(net, "head")), "Linear");
    ck_assert_int_eq(tn_module_child_count(tn_module_child(net, "head")), 0);
    ck_assert_int_eq(tn_module_slot_kind(tn_module_child(net, "head"), "input_range_hook"), 0);
    y = called(net, x);
    ck_assert_int_eq(tn_module_compile(net, "plan()"), TN_OK);
    tn_grad_begin(false); /* a plan runs, which hooks of modules below prevent */
    ck_assert_float_lt(tn_item(tn_amax(tn_abs(tn_sub(called(net, x), y)))), 1e-5);
    tn_grad_end();
    tn_module_drop(net);
    /* a copy has ranges of its own, and converts alone */
    ck_assert_int_eq(tn_module_option_set(tn_module_find(copy, "head.quantize_scheme"), "limit",
                                          tn_value_float(20)),
                     TN_OK);
    ck_assert_int_eq(converted(copy, NULL), 1);
    ck_assert_float_gt(sqnr(y, called(copy, x)), 33);
    tn_module_drop(copy);
}
END_TEST

/* The hook of a copy stays after its conversion; a second preparation uses it, so each call is
 * recorded once: with averaging 0.5, twice would give 0.75 of the way. */
START_TEST(a_copy_that_is_prepared_again_records_once)
{
    TN_SCOPE;
    tn_module *net = eval_of("Sequential(Linear(2, 2))"), *copy;

    prepared(net, "int8_static(limit=300)");
    called(net, VEC(1, 2));
    copy = tn_module_copy(net);
    ck_assert_int_eq(converted(copy, NULL), 0);
    prepared(copy, "int8_static(range=MovingAverageRange(0.5))");
    called(copy, VEC(0, 4));
    called(copy, VEC(0, 8));
    ck_assert_float_eq(tn_item(tn_module_find_tensor(copy, "0.input_range.max_val")), 6);
    ck_assert_int_eq(converted(copy, NULL), 1);
    tn_module_drop(copy);
    tn_module_drop(net);
}
END_TEST

static tn_status refuse_batches(void *user, tn_module *module, const tn_pack *input,
                                const tn_pack *output, tn_pack *replacement,
                                tn_hook_outcome *outcome)
{
    (void)user, (void)module, (void)input, (void)output, (void)replacement, (void)outcome;
    return tn_fail(TN_ERR_RUNTIME, "the hook refuses");
}

static void same_numbers(const tn_state *before, tn_module *net)
{
    tn_state *now = tn_module_state(net);

    ck_assert_int_eq(tn_state_count(now), tn_state_count(before));
    for (int64_t i = 0; i < tn_state_count(before); i++)
        same_bits(tn_cast(tn_state_tensor(now, i), TN_F32),
                  tn_cast(tn_state_tensor(before, i), TN_F32));
    tn_state_drop(now);
}

/* Fails while the network is called with the inputs, then after its first module is made. */
static void convert_in_vain(tn_module *net, tn_tensor *x)
{
    tn_module *b = tn_module_child(net, "b"), *relu = parsed("ReLU()");
    tn_module *scheme = tn_module_keep(tn_module_child(b, "quantize_scheme"));
    tn_hook_handle hook = tn_module_hook_forward(b, refuse_batches, 0, NULL, NULL);

    ck_assert_int_ne(tn_module_quantize_convert(net, &x, 1, NULL), TN_OK);
    FAILED(TN_ERR_RUNTIME, "the hook refuses");
    ck_assert(tn_hook_remove(hook));
    ck_assert_int_eq(tn_module_set_child(b, "quantize_scheme", relu, true), TN_OK);
    ck_assert_int_ne(tn_module_quantize_convert(net, &x, 1, NULL), TN_OK);
    tn_error_clear();
    ck_assert_int_eq(tn_module_set_child(b, "quantize_scheme", scheme, true), TN_OK);
    tn_module_drop(scheme);
    tn_module_drop(relu);
}

/* A conversion that fails leaves ranges and scales as they were, and may be repeated. */
START_TEST(a_conversion_that_fails_changes_nothing)
{
    static const char *const schemes[][2] = {
        { "int8_static(range=MinMaxRange(), limit=0)", "a.weight" },
        { "int8_qat(limit=0)", "a.parametrizations.weight.original" },
    };
    TN_SCOPE;

    for (int i = 0; i < 2; i++) {
        tn_module *net = eval_of("Sequential(a=Linear(4, 4), b=Linear(4, 2))");
        tn_tensor *x = tn_randn(TN_SHAPE(8, 4)), *weight;
        tn_state *before;

        ck_assert_int_eq(tn_module_train(net, i == 1), TN_OK);
        prepared(net, schemes[i][0]);
        called(net, x);
        weight = tn_detach(tn_module_find_tensor(net, schemes[i][1]));
        ck_assert_ptr_nonnull(tn_mul_scalar_(weight, 2.0)); /* as a step of an optimizer does */
        ck_assert_int_eq(tn_module_train(net, false), TN_OK);
        before = tn_module_state(net);
        for (int64_t k = 0; k < tn_state_count(before); k++)
            ck_assert_int_eq(tn_state_set(before, tn_state_name(before, k),
                                          tn_clone(tn_detach(tn_state_tensor(before, k)))),
                             TN_OK);
        convert_in_vain(net, tn_mul_scalar(x, 100.0));
        same_numbers(before, net);
        ck_assert_int_eq(converted(net, x), 2);
        tn_state_drop(before);
        tn_module_drop(net);
    }
}
END_TEST

START_TEST(steps_in_a_wrong_order_are_refused_with_words)
{
    TN_SCOPE;
    tn_module *net = eval_of(small);
    tn_tensor *x = tn_randn(TN_SHAPE(2, 1, 8, 8));

    ck_assert_int_ne(tn_module_quantize_convert(net, NULL, 0, NULL), TN_OK);
    FAILED(TN_ERR_RUNTIME, "no module is prepared");
    ck_assert_int_ne(tn_module_quantize_prepare(net, "int8_dynamic"), TN_OK);
    FAILED(TN_ERR_VALUE, "int8_dynamic needs no calibration");
    ck_assert_int_ne(tn_module_quantize_prepare(net, "int8_qat"), TN_OK);
    FAILED(TN_ERR_RUNTIME, "it is in evaluation mode; expected training mode for int8_qat");
    ck_assert_int_ne(tn_module_quantize_prepare(net, "int8_static(range=ReLU)"), TN_OK);
    FAILED(TN_ERR_TYPE, "range: wrong type, got str");
    ck_assert_int_eq(tn_module_slot_kind(tn_module_child(net, "conv"), "quantize_scheme"), 0);
    prepared(net, "int8_static(range=MinMaxRange())");
    ck_assert_int_ne(tn_module_quantize_prepare(net, "int8_static"), TN_OK);
    FAILED(TN_ERR_RUNTIME, "conv: it is prepared already");
    ck_assert_int_ne(tn_module_quantize_convert(net, NULL, 0, NULL), TN_OK);
    FAILED(TN_ERR_RUNTIME, "modules without data: conv, head;");
    called(net, tn_mul_scalar(x, INFINITY));
    ck_assert_int_ne(tn_module_quantize_convert(net, NULL, 0, NULL), TN_OK);
    FAILED(TN_ERR_VALUE, "conv: ");
    tn_module_drop(net);
    net = parsed(small);
    ck_assert_int_ne(tn_module_quantize_prepare(net, "int8_static"), TN_OK);
    FAILED(TN_ERR_RUNTIME, "it is in training mode; expected evaluation mode for int8_static");
    tn_module_drop(net);
}
END_TEST

/* States of PyTorch's observers before version 3 have min_vals; channels come with the state. */
START_TEST(old_states_of_ranges_are_read)
{
    TN_SCOPE;
    tn_module *range = parsed("MinMaxRange(dim=0)");
    tn_state *state = tn_state_new(), *now;

    ck_assert_int_eq(tn_state_set(state, "min_vals", VEC(-1, -2, -3)), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "max_vals", VEC(1, 2, 3)), TN_OK);
    ck_assert_int_eq(tn_state_set_version(state, "", 2), TN_OK);
    ck_assert_msg(tn_module_load_state(range, state, true) == TN_OK, "%s", tn_error_text());
    HAS(tn_module_get(range, "min_val"), -1, -2, -3);
    HAS(tn_module_get(range, "max_val"), 1, 2, 3);
    now = tn_module_state(range);
    ck_assert_int_eq(tn_state_version(now, ""), 3);
    ck_assert_int_ge(tn_state_find(now, "min_val"), 0);
    tn_state_drop(now);
    tn_state_drop(state);
    tn_module_drop(range);
    TN_PROVES("VER-007");
}
END_TEST

/* Ranges of channels in a load that fails elsewhere: they have numbers, those of the state. */
START_TEST(a_load_that_fails_leaves_ranges_with_numbers)
{
    TN_SCOPE;
    tn_module *net = parsed("Sequential(MinMaxRange(dim=0), FakeQuantize(dim=0), Linear(2, 2))");
    tn_state *state = tn_module_state(net);

    ck_assert_int_eq(tn_state_set(state, "0.min_val", VEC(-1, -2, -3)), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "0.max_val", VEC(1, 2, 3)), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "1.scale", VEC(0.5f, 0.25f)), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "1.zero_point", tn_cast(VEC(3, 4), TN_U8)), TN_OK);
    ck_assert_int_eq(tn_state_set(state, "2.weight", VEC(1)), TN_OK);
    ck_assert_int_ne(tn_module_load_report(net, state, TN_LOAD_STRICT | TN_LOAD_WHOLE, NULL),
                     TN_OK);
    FAILED(TN_ERR_RUNTIME, "size mismatch for 2.weight");
    HAS(tn_module_find_tensor(net, "0.min_val"), -1, -2, -3);
    HAS(tn_module_find_tensor(net, "0.max_val"), 1, 2, 3);
    HAS(tn_module_find_tensor(net, "1.scale"), 0.5, 0.25);
    HAS(tn_module_find_tensor(net, "1.zero_point"), 3, 4);
    tn_state_drop(state);
    tn_module_drop(net);
}
END_TEST

/* ---- training -------------------------------------------------------------------------------- */

START_TEST(training_rounds_inputs_and_weights)
{
    TN_SCOPE;
    tn_random_seed(5);
    tn_module *net = parsed("Sequential(Linear(16, 8))"), *head = tn_module_child(net, "0");
    tn_tensor *weight = tn_module_get(head, "weight"), *x = tn_randn(TN_SHAPE(32, 16));
    tn_tensor *y, *rounded, *z;

    /* one number far from the others: a search for the least error would take a smaller scale */
    ck_assert_ptr_nonnull(tn_mul_scalar_(tn_detach(weight), 2.0));
    ck_assert_ptr_nonnull(tn_fill_(tn_select(tn_detach(weight), 1, 0), 0.503));
    prepared(net, "int8_qat");
    ck_assert_ptr_eq(tn_module_find_tensor(net, "0.parametrizations.weight.original"), weight);
    y = called(net, x);
    rounded = tn_module_get(head, "weight");
    ck_assert_float_gt(tn_item(tn_amax(tn_abs(tn_sub(rounded, weight)))), 0);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_ptr_ne(tn_tensor_grad(weight), TN_NONE);
    /* a number that is clamped has no gradient: the largest is 127.5 scales */
    tn_module *fake = parsed("FakeQuantize(range=MinMaxRange())");
    tn_tensor *row = tn_tensor_from((const float[]){ -1, 0.5f, 1 }, TN_F32, TN_SHAPE(3));
    ck_assert_int_eq(tn_tensor_set_requires_grad(row, true), TN_OK);
    called(fake, row);
    ck_assert_int_eq(tn_module_train(fake, false), TN_OK);
    tn_tensor *far = tn_tensor_from((const float[]){ -3, 0.5f, 3 }, TN_F32, TN_SHAPE(3));
    ck_assert_int_eq(tn_tensor_set_requires_grad(far, true), TN_OK);
    ck_assert_int_eq(tn_backward(tn_sum(called(fake, far))), TN_OK);
    HAS(tn_tensor_grad(far), 0, 1, 0);
    ck_assert_int_eq(tn_module_option_set(fake, "fake", tn_value_bool(false)), TN_OK);
    ck_assert_ptr_eq(called(fake, far), far);
    tn_module_drop(fake);
    /* converted, it computes what it computed in training */
    ck_assert_int_eq(tn_module_train(net, false), TN_OK);
    z = called(net, x);
    ck_assert_int_eq(converted(net, x), 1);
    ck_assert_float_gt(sqnr(z, called(net, x)), 90);
    ck_assert_float_eq(tn_item(tn_amax(tn_abs(tn_sub(
                           tn_module_find_tensor(net, "0.weight_scale"),
                           tn_mul_scalar(tn_amax(tn_abs(weight), TN_INTS(1)), 1 / 127.5))))) > 1e-8,
                       0);
    tn_module_drop(net);
    TN_PROVES("QNT-009");
}
END_TEST

/* ---- the digits ------------------------------------------------------------------------------ */

static const char digits[] = "Sequential(Conv2d(1, 8, 3), ReLU(), "
                             "Conv2d(8, 16, 3), ReLU(), Flatten(), Linear(256, 10))";

/* All samples of a split as one batch. */
static tn_tensor *all_of(const char *spec, tn_tensor **targets)
{
    tn_dataset *data = tn_dataset_parse(spec);
    tn_loader *loader;
    tn_pack *batch;
    tn_tensor *x;

    ck_assert_msg(data != NULL, "%s", tn_error_text());
    loader = tn_loader_new(data, "batch_size=%lld", (long long)tn_dataset_count(data));
    batch = tn_loader_next(loader);
    ck_assert_msg(batch != NULL, "%s", tn_error_text());
    x = tn_tensor_to_scope(tn_tensor_keep(tn_pack_tensor(batch, 0)));
    *targets = tn_tensor_to_scope(tn_tensor_keep(tn_pack_tensor(batch, 1)));
    tn_loader_drop(loader);
    tn_dataset_drop(data);
    return tn_cast(x, TN_F32);
}

static double accuracy(tn_module *net, tn_tensor *x, tn_tensor *targets)
{
    tn_tensor *y;

    ck_assert_int_eq(tn_module_train(net, false), TN_OK);
    tn_grad_begin(false);
    y = called(net, x);
    tn_grad_end();
    return 100 * tn_item(tn_mean(tn_cast(tn_eq(tn_argmax(y, 1), targets), TN_F32)));
}

static void train(tn_module *net, tn_tensor *x, tn_tensor *targets, int epochs)
{
    tn_optimizer *adam = tn_optimizer_new(net, "Adam(lr=0.004)");
    tn_module *loss = parsed("CrossEntropyLoss()");
    const int64_t count = tn_tensor_size(x, 0), size = 64;

    ck_assert_msg(adam != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_module_train(net, true), TN_OK);
    for (int64_t at = 0; at < epochs * (count / size); at++) {
        TN_SCOPE;
        int64_t begin = at % (count / size) * size;
        tn_tensor *in[2] = { tn_narrow(x, 0, begin, size), tn_narrow(targets, 0, begin, size) };
        tn_tensor *value;

        tn_module_zero_grad(net);
        in[0] = called(net, in[0]);
        ck_assert_int_eq(tn_module_call_many(loss, in, 2, &value, 1), TN_OK);
        ck_assert_int_eq(tn_backward(value), TN_OK);
        ck_assert_int_eq(tn_optimizer_step(adam), TN_OK);
    }
    tn_optimizer_drop(adam);
    tn_module_drop(loss);
}

START_TEST(the_digits_lose_no_accuracy)
{
    TN_SCOPE;
    tn_random_seed(11);
    tn_module *net = parsed(digits), *copy;
    tn_tensor *targets, *x = all_of("Digits(split='train')", &targets), *first;
    double before, after;

    x = tn_div(x, tn_amax(x));
    train(net, x, targets, 10);
    before = accuracy(net, x, targets);
    ck_assert_float_gt(before, 93);
    first = tn_narrow(x, 0, 0, 64);

    copy = tn_module_copy(net);
    quantized(copy, "int8_dynamic", 3);
    ck_assert_float_ge(accuracy(copy, x, targets), before - 0.2);
    tn_module_drop(copy);

    copy = tn_module_copy(net);
    prepared(copy, "int8_static");
    called(copy, first);
    ck_assert_int_eq(converted(copy, first), 3);
    ck_assert_float_ge(accuracy(copy, x, targets), before - 0.2);
    tn_module_drop(copy);

    ck_assert_int_eq(tn_module_train(net, true), TN_OK);
    prepared(net, "int8_qat");
    train(net, x, targets, 3);
    ck_assert_int_eq(tn_module_train(net, false), TN_OK);
    after = accuracy(net, x, targets);
    ck_assert_float_ge(after, before - 0.3);
    ck_assert_int_eq(converted(net, first), 3);
    ck_assert_float_ge(accuracy(net, x, targets), after - 0.2);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("flows");
    Suite *suite = suite_create("calibration and quantization-aware training");

    tcase_add_test(tcase, calibration_finds_the_scales_of_inputs);
    tcase_add_test(tcase, nothing_of_the_preparation_is_left);
    tcase_add_test(tcase, a_copy_that_is_prepared_again_records_once);
    tcase_add_test(tcase, a_conversion_that_fails_changes_nothing);
    tcase_add_test(tcase, steps_in_a_wrong_order_are_refused_with_words);
    tcase_add_test(tcase, old_states_of_ranges_are_read);
    tcase_add_test(tcase, a_load_that_fails_leaves_ranges_with_numbers);
    tcase_add_test(tcase, training_rounds_inputs_and_weights);
    tcase_add_test(tcase, the_digits_lose_no_accuracy);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
