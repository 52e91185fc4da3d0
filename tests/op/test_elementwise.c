/* SPDX-License-Identifier: MIT
 *
 * Errors of arithmetic, comparison and activations, with their messages, and the in-place forms. */
#include "tests/op/suite.h"

#define INTS(...)                                                                                  \
    tn_tensor_from((const int64_t[]){ __VA_ARGS__ }, TN_I64,                                       \
                   TN_SHAPE((int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))))

/* The call failed with this status, and this text is in the message. */
#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        ck_assert_ptr_null(call);                                                                  \
        ck_assert_msg(tn_error_code() == (status) && strstr(tn_error_text(), words) != NULL,       \
                      "%s: wanted \"%s\", got: %s", #call, words, tn_error_text());                \
        tn_error_clear();                                                                          \
    } while (0)

START_TEST(whole_numbers_are_not_divided_by_zero)
{
    TN_SCOPE;
    tn_tensor *a = INTS(4, 5, 6), *b = INTS(1, 0, 2), *narrow = tn_cast(b, TN_I8);

    REFUSED(tn_div(a, b, "trunc"), TN_ERR_RUNTIME, "div: ZeroDivisionError");
    REFUSED(tn_div(a, b, "floor"), TN_ERR_RUNTIME, "div: ZeroDivisionError");
    REFUSED(tn_remainder(a, b), TN_ERR_RUNTIME, "remainder: ZeroDivisionError");
    REFUSED(tn_fmod(a, b), TN_ERR_RUNTIME, "fmod: ZeroDivisionError");
    REFUSED(tn_fmod(tn_cast(a, TN_I8), narrow), TN_ERR_RUNTIME, "int8");
    ck_assert(isinf(at(tn_div(a, b), 1)));
    ck_assert(isnan(at(tn_remainder(VEC(1), VEC(0)), 0)));
    /* the smallest number over -1 wraps around instead of trapping */
    ck_assert_double_eq(at(tn_div(INTS(INT64_MIN), INTS(-1), "trunc"), 0), -0x1p63);
    ck_assert_double_eq(at(tn_remainder(INTS(INT64_MIN), INTS(-1)), 0), 0);
}
END_TEST

START_TEST(options_out_of_range_are_refused)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3), *i = INTS(1, 2, 3);

    REFUSED(tn_div(x, x, "up"), TN_ERR_VALUE,
            "rounding_mode: unknown, got \"up\"; expected None, trunc or floor");
    REFUSED(tn_pow_scalar(i, -2), TN_ERR_RUNTIME, "Integers to negative integer powers");
    REFUSED(tn_clamp(x), TN_ERR_VALUE, "clamp: min or max: both are missing");
    REFUSED(tn_clamp_tensor(x, TN_NONE, TN_NONE), TN_ERR_VALUE, "min or max: both are missing");
    REFUSED(tn_addcmul(i, i, i, 0.5), TN_ERR_VALUE, "value: not an integer, got 0.5 for int64");
    REFUSED(tn_masked_fill(i, tn_eq(i, i), 0.5), TN_ERR_RUNTIME,
            "value: not an integer, got 0.5 for int64");
    REFUSED(tn_gelu(x, "sine"), TN_ERR_VALUE,
            "approximate: unknown, got \"sine\"; expected none or tanh");
    REFUSED(tn_gelu(x, NULL), TN_ERR_VALUE,
            "approximate: no text, got NULL; expected none or tanh");
    REFUSED(tn_mse_loss(x, x, NULL), TN_ERR_VALUE, "reduction: no text, got NULL; expected ");
    REFUSED(tn_celu(x, 0.0), TN_ERR_VALUE, "alpha: out of range, got 0");
    REFUSED(tn_softshrink(x, -1.0), TN_ERR_VALUE,
            "lambd: out of range, got -1.0; expected 0 or more");
    REFUSED(tn_hardtanh(x, 1.0, -1.0), TN_ERR_VALUE, "expected min_val <= max_val");
    REFUSED(tn_glu(x), TN_ERR_RUNTIME, "Halving dimension must be even, but dimension 0 is size 3");
    REFUSED(tn_glu(tn_select(x, 0, 0)), TN_ERR_RUNTIME, "0-dimensional");
    REFUSED(tn_softmin(x, 1), TN_ERR_INDEX, "softmin");
}
END_TEST

START_TEST(shapes_and_dtypes_that_do_not_fit_are_refused)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3), *y = VEC(1, 2), *i = INTS(1, 2, 3);
    tn_tensor *table = tn_reshape(VEC(1, 2, 3, 4, 5, 6), TN_SHAPE(2, 3));

    REFUSED(tn_pow(x, y), TN_ERR_RUNTIME,
            "pow: The size of tensor a (3) must match the size of tensor b (2)");
    REFUSED(tn_eq(x, y), TN_ERR_RUNTIME, "eq: The size");
    REFUSED(tn_where(tn_eq(x, x), x, y), TN_ERR_RUNTIME, "where: The size");
    REFUSED(tn_lerp(x, x, y), TN_ERR_RUNTIME, "lerp: The size");
    REFUSED(tn_where(x, x, x), TN_ERR_TYPE, "where: condition is float32");
    REFUSED(tn_bitwise_and(x, x), TN_ERR_TYPE, "bitwise_and: a is float32");
    REFUSED(tn_abs(tn_eq(x, x)), TN_ERR_TYPE, "abs: x is bool");
    REFUSED(tn_sub(tn_eq(x, x), tn_eq(x, x)), TN_ERR_TYPE, "sub: a is bool");
    REFUSED(tn_sub(i, tn_eq(x, x)), TN_ERR_TYPE, "sub: b is bool");
    REFUSED(tn_add(tn_eq(x, x), tn_eq(x, x), 0.5), TN_ERR_RUNTIME,
            "alpha must not be a floating point number");
    REFUSED(tn_gelu(i), TN_ERR_TYPE, "gelu: x is int64");
    REFUSED(tn_prelu(table, y), TN_ERR_RUNTIME, "2 weights and 3 channels");
    REFUSED(tn_prelu(table, table), TN_ERR_RUNTIME, "expected a vector or a single number");
    REFUSED(tn_prelu(x, tn_cast(y, TN_F64)), TN_ERR_RUNTIME, "weights");
    REFUSED(tn_sin_(i), TN_ERR_RUNTIME, "sin");
    REFUSED(tn_div_(i, i), TN_ERR_RUNTIME, "div");
    REFUSED(tn_minimum_(tn_select(table, 0, 0), table), TN_ERR_RUNTIME, "minimum");
}
END_TEST

START_TEST(targets_of_ctc_are_classes_and_not_the_blank)
{
    TN_SCOPE;
    tn_tensor *chances = tn_tensor_full(TN_SHAPE(4, 1, 3), -1, TN_F32, NULL), *four = INTS(4),
              *two = INTS(2), *fits = tn_reshape(INTS(1, 2), TN_SHAPE(1, 2));

    ck_assert_ptr_nonnull(tn_ctc_loss(chances, fits, four, two));
    REFUSED(tn_ctc_loss(chances, tn_reshape(INTS(1, 3), TN_SHAPE(1, 2)), four, two), TN_ERR_RUNTIME,
            "target 1 of sequence 0: out of range, got 3");
    REFUSED(tn_ctc_loss(chances, tn_reshape(INTS(-1, 2), TN_SHAPE(1, 2)), four, two),
            TN_ERR_RUNTIME, "target 0 of sequence 0: out of range, got -1");
    REFUSED(tn_ctc_loss(chances, tn_reshape(INTS(0, 2), TN_SHAPE(1, 2)), four, two), TN_ERR_RUNTIME,
            "other than the blank 0");
    REFUSED(tn_ctc_loss(chances, fits, INTS(5), two), TN_ERR_RUNTIME,
            "got input length 5 (expected 0 to 4)");
    REFUSED(tn_ctc_loss(chances, fits, INTS(-1), two), TN_ERR_RUNTIME,
            "got input length -1 (expected 0 to 4)");
    REFUSED(tn_ctc_loss(chances, fits, four, INTS(-1)), TN_ERR_RUNTIME, "target length -1");
    REFUSED(tn_ctc_loss(chances, fits, four, INTS(3)), TN_ERR_RUNTIME, "target length 3");
}
END_TEST

/* A single weight [1] has more dimensions than a number: the result and both gradients keep their
 * own shapes. */
START_TEST(prelu_of_a_number_takes_a_single_weight)
{
    static const double values[] = { -3, 2 }, results[] = { -0.75, 2 }, slopes[] = { 0.25, 1 },
                        weights[] = { -3, 0 };
    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_full(TN_SHAPE(), values[i], TN_F32, NULL), *w = LEAF(0.25f), *y;
        with_grad(x);
        y = tn_prelu(x, w);
        ck_assert_ptr_nonnull(y);
        ck_assert_int_eq(tn_tensor_ndim(y), 0);
        ck_assert_double_eq(at(y, 0), results[i]);
        ck_assert_int_eq(tn_backward(y), TN_OK);
        ck_assert_int_eq(tn_tensor_ndim(tn_tensor_grad(x)), 0);
        ck_assert_double_eq(at(tn_tensor_grad(x), 0), slopes[i]);
        ck_assert_int_eq(tn_tensor_ndim(tn_tensor_grad(w)), 1);
        ck_assert_double_eq(at(tn_tensor_grad(w), 0), weights[i]);
    }
}
END_TEST

START_TEST(in_place_forms_write_into_their_input)
{
    TN_SCOPE;
    tn_tensor *x = VEC(-2, 0.5f, 3), *i = INTS(7, -7, 4);

    ck_assert_ptr_eq(tn_clamp_(x, -1.0, 1.0), x);
    ck_assert_double_eq(at(x, 0), -1);
    ck_assert_double_eq(at(x, 2), 1);
    tn_masked_fill_(x, tn_lt(x, tn_fill(x, 0)), 9);
    ck_assert_double_eq(at(x, 0), 9);
    ck_assert_double_eq(at(x, 1), 0.5);
    tn_lerp_scalar_(x, VEC(1, 1, 1), 1);
    ck_assert_double_eq(at(x, 0), 1);
    tn_div_(i, INTS(2, 2, 2), "floor");
    ck_assert_double_eq(at(i, 0), 3);
    ck_assert_double_eq(at(i, 1), -4);
    tn_bitwise_xor_(i, INTS(1, 1, 1));
    ck_assert_double_eq(at(i, 0), 2);
    tn_pow_scalar_(i, 2);
    ck_assert_double_eq(at(i, 0), 4);
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}
END_TEST

START_TEST(an_activation_in_place_keeps_the_gradient_right)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(-1, 2), *y = tn_tanh_(tn_mul_scalar(x, 0.5));

    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_double_eq_tol(at(tn_tensor_grad(x), 0), 0.5 * (1 - tanh(0.5) * tanh(0.5)), 1e-6);
    tn_tensor_set_grad(x, TN_NONE);
    y = tn_silu_(tn_mul_scalar(x, 1)); /* needs its input as it was */
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_double_eq_tol(at(tn_tensor_grad(x), 0), 0.0723294, 1e-6);
}
END_TEST

/* Operands that begin at the same address are not the same operand: a matrix and its transpose, or
 * its first column. */
START_TEST(operands_may_begin_at_the_same_address)
{
    const int64_t count = tn_registry_count(TN_KIND_tn_op_def);
    int compared = 0;

    for (int64_t i = 0; i < count; i++) {
        TN_SCOPE;
        const tn_op *op = tn_op_find(tn_registry_name(TN_KIND_tn_op_def, i), 0);
        const tn_op_def *def = tn_op_definition(op);

        if (def->n_inputs != 2 || def->n_outputs != 1 || (def->flags & TN_OP_POINTWISE) == 0)
            continue;
        tn_tensor *x = tn_reshape(VEC(0.6, 0.1, 0.35, 0.5, 0.2, 0.3, 0.75, 0.25, 0.9),
                                  TN_SHAPE(3, 3));
        tn_tensor *turned = tn_transpose(x, 0, 1), *first = tn_narrow(x, 1, 0, 1);
        tn_tensor *pairs[][2] = { { x, turned }, { turned, x }, { x, first }, { first, x } };
        for (int k = 0; k < 4; k++) {
            tn_tensor *apart[] = { tn_copy(pairs[k][0]), tn_copy(pairs[k][1]) }, *got, *expected;
            if (tn_op_call(op, apart, 2, NULL, &expected, 1) != TN_OK) {
                tn_error_clear(); /* it needs options, or other dtypes */
                continue;
            }
            ck_assert_int_eq(tn_op_call(op, pairs[k], 2, NULL, &got, 1), TN_OK);
            ck_assert_msg(tn_equal(got, expected) == 1, "%s, pair %d", def->name, k);
            compared++;
        }
    }
    ck_assert_int_ge(compared, 100);
}
END_TEST

/* Also if they are decomposed into operators that have gradients. */
START_TEST(operators_of_inputs_without_gradients_record_nothing)
{
    const int64_t count = tn_registry_count(TN_KIND_tn_op_def);
    int called = 0;

    for (int64_t i = 0; i < count; i++) {
        TN_SCOPE;
        const tn_op *op = tn_op_find(tn_registry_name(TN_KIND_tn_op_def, i), 0);
        const tn_op_def *def = tn_op_definition(op);
        tn_tensor *in[] = { LEAF(-1, 0, 2), LEAF(3, 5, 7) }, *out;
        bool none = def->n_inputs > 0 && def->n_inputs <= 2 && def->n_outputs == 1;

        for (int32_t k = 0; none && k < def->n_inputs; k++)
            none = (def->inputs[k].flags & TN_OPERAND_NO_GRAD) != 0 &&
                   (def->inputs[k].flags & TN_OPERAND_LIST) == 0;
        if (!none)
            continue;
        if (tn_op_call(op, in, def->n_inputs, NULL, &out, 1) == TN_OK) {
            ck_assert_msg(!tn_tensor_requires_grad(out), "%s", def->name);
            called++;
        }
        tn_error_clear(); /* it needs options, or other dtypes */
    }
    ck_assert_int_ge(called, 20);
}
END_TEST

START_TEST(comparisons_record_nothing_and_logic_takes_any_dtype)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(-1, 0, NAN), *y = tn_gt(x, x);

    ck_assert(!tn_tensor_requires_grad(y));
    ck_assert_int_eq(tn_tensor_dtype(y), TN_BOOL);
    y = tn_logical_and(x, INTS(1, 1, 1));
    ck_assert(!tn_tensor_requires_grad(y));
    ck_assert_double_eq(at(y, 0), 1);
    ck_assert_double_eq(at(y, 1), 0);
    ck_assert_double_eq(at(y, 2), 1);
}
END_TEST

START_TEST(parts_of_complex_numbers_are_views)
{
    TN_SCOPE;
    tn_tensor *re = VEC(1, 2), *z = tn_complex(re, VEC(3, 4)), *im = tn_imag(z), *leaf;

    ck_assert(tn_tensor_shares_storage(z, im));
    tn_mul_scalar_(im, 10);
    ck_assert_double_eq(at(tn_imag(z), 1), 40);
    ck_assert_double_eq(at(tn_real(z), 1), 2);
    ck_assert_double_eq(at(tn_abs(tn_complex(VEC(3), VEC(4))), 0), 5);
    ck_assert_ptr_eq(tn_conj(re), re);
    REFUSED(tn_imag(re), TN_ERR_TYPE, "imag: x is float32");
    REFUSED(tn_abs_(z), TN_ERR_RUNTIME,
            "abs: no in-place form for complex64, because the result is float32");
    ck_assert_double_eq(at(tn_imag(z), 1), 40);
    ck_assert_ptr_nonnull(tn_mul_(z, re)); /* a real factor leaves complex numbers */
    ck_assert_double_eq(at(tn_imag(z), 1), 80);

    leaf = LEAF(1, 2);
    z = tn_complex(leaf, leaf);
    ck_assert_ptr_nonnull(tn_mul_scalar_(tn_real(z), 3));
    ck_assert_double_eq(at(tn_real(z), 1), 6);
    ck_assert_double_eq(at(tn_imag(z), 1), 2);
    im = tn_imag(z);
    tn_mul_scalar_(z, 2);
    /* (6 leaf) (2 leaf), of which the slope is 24 leaf */
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(tn_real(z), im))), TN_OK);
    ck_assert_double_eq(at(tn_tensor_grad(leaf), 0), 24);
    ck_assert_double_eq(at(tn_tensor_grad(leaf), 1), 48);
}
END_TEST

/* Below eps the value is eps, above 1 - eps it is 1 - eps. If both hold, it is eps, as in PyTorch.
 */
START_TEST(logit_with_limits_that_cross)
{
    TN_SCOPE;
    const double values[] = { 0.3, 0.5, 0.7, 0.9, NAN };
    tn_tensor *x = tn_tensor_from(values, TN_F64, TN_SHAPE(5)), *y;

    y = tn_logit(x, 0.6);
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_double_eq_tol(at(y, 0), log(0.6 / 0.4), 1e-14);
    ck_assert_double_eq_tol(at(y, 1), log(0.6 / 0.4), 1e-14);
    ck_assert_double_eq_tol(at(y, 2), log(0.4 / 0.6), 1e-14);
    ck_assert_double_eq_tol(at(y, 3), log(0.4 / 0.6), 1e-14);
    ck_assert(isnan(at(y, 4)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("elementwise");
    TCase *tests = tcase_create("bad input");

    tcase_add_test(tests, whole_numbers_are_not_divided_by_zero);
    tcase_add_test(tests, options_out_of_range_are_refused);
    tcase_add_test(tests, shapes_and_dtypes_that_do_not_fit_are_refused);
    tcase_add_test(tests, prelu_of_a_number_takes_a_single_weight);
    tcase_add_test(tests, targets_of_ctc_are_classes_and_not_the_blank);
    tcase_add_test(tests, in_place_forms_write_into_their_input);
    tcase_add_test(tests, an_activation_in_place_keeps_the_gradient_right);
    tcase_add_test(tests, parts_of_complex_numbers_are_views);
    tcase_add_test(tests, logit_with_limits_that_cross);
    tcase_add_test(tests, operands_may_begin_at_the_same_address);
    tcase_add_test(tests, operators_of_inputs_without_gradients_record_nothing);
    tcase_add_test(tests, comparisons_record_nothing_and_logic_takes_any_dtype);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
