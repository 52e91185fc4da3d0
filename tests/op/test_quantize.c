/* SPDX-License-Identifier: MIT
 *
 * Operators on integers with scales besides the cases of tests/oracle and tests/backend/test_quant:
 * what they refuse, with which words, and what has gradients. */
#include "tests/op/suite.h"
#include "tests/spec/proves.h"

static tn_tensor *bytes(tn_dtype dtype, tn_ints shape)
{
    return tn_tensor_full(shape, 1, dtype, NULL);
}

static tn_tensor *ones(tn_ints shape)
{
    return tn_tensor_full(shape, 1.0, TN_F32, NULL);
}

#define NUMBER ((tn_ints){ NULL, 0 })

static void refused_(tn_tensor *y, const char *text, int line)
{
    ck_assert_msg(y == NULL, "line %d: not refused: %s", line, text);
    ck_assert_msg(strstr(tn_error_text(), text) != NULL, "line %d: %s; expected %s", line,
                  tn_error_text(), text);
    tn_error_clear();
}
#define REFUSED(y, text) refused_(y, text, __LINE__)

START_TEST(scales_and_zero_points_that_do_not_fit_are_refused)
{
    TN_SCOPE;
    tn_tensor *x = ones(TN_SHAPE(2, 6)), *q = bytes(TN_U8, TN_SHAPE(2, 6)), *one = ones(NUMBER);

    REFUSED(
        tn_quantize(x, ones(TN_SHAPE(3))),
        "quantize: scale: wrong shape, got [3] for x [2, 6]; expected one element, one for each "
        "element of dimension 0, or the dimensions of x with its sizes or 1");
    REFUSED(tn_quantize(x, ones(TN_SHAPE(2)), bytes(TN_U8, TN_SHAPE(1))),
            "quantize: zero_point: wrong shape, got [1]; expected the shape of scale, [2]");
    REFUSED(tn_quantize(x, one, bytes(TN_I8, NUMBER), 0, INT64_MIN, TN_U8),
            "quantize: zero_point: wrong dtype, got int8; expected uint8, the dtype of the result");
    REFUSED(tn_dequantize(q, one, bytes(TN_I8, NUMBER)),
            "dequantize: zero_point: wrong dtype, got int8; expected uint8, the dtype of q");
    REFUSED(tn_quantize(x, one, TN_NONE, 0, INT64_MIN, TN_F32),
            "quantize: dtype: not supported, got float32; expected int8, uint8, int16 or int32");
    REFUSED(tn_quantize(x, one, TN_NONE, 0, INT64_MIN, TN_I8, -8, 128),
            "quantize: qmin or qmax: out of range, got -8 and 128; expected -128 <= qmin < qmax <= "
            "127 for int8");
    REFUSED(tn_quantize(x, one, TN_NONE, 0, INT64_MIN, TN_I8, 7, 7), "qmin < qmax");
    REFUSED(tn_quantize(x, ones(TN_SHAPE(2, 1)), TN_NONE, 1, 4),
            "quantize: block: wrong size, got 4; expected a divisor of 6, the size of dimension 1");
    REFUSED(tn_quantize(x, ones(TN_SHAPE(2, 2)), TN_NONE, 1, 2),
            "quantize: scale: wrong shape, got [2, 2] for x [2, 6]; expected a number for each "
            "block of dimension 1");
    REFUSED(tn_quantize(x, one, TN_NONE, 2), "Dimension out of range");
}
END_TEST

START_TEST(ranges_that_cannot_be_chosen_are_refused)
{
    TN_SCOPE;
    tn_tensor *x = ones(TN_SHAPE(2, 6)), *out[3];

    ck_assert_int_ne(tn_choose_qparams(x, &out[0], &out[1], TN_INTS(1), false, 4), TN_OK);
    REFUSED(NULL, "choose_qparams: block: wrong size, got 4; expected a divisor of 6, the size of "
                  "dimension 1");
    ck_assert_int_ne(tn_choose_qparams(x, &out[0], &out[1], TN_INTS(0, 1), false, 2), TN_OK);
    REFUSED(NULL, "choose_qparams: block: needs one dimension, got 2 in dims; expected one");
    ck_assert_int_ne(tn_choose_qparams(x, &out[0], &out[1], TN_INTS(1), false, INT64_MIN, TN_I16),
                     TN_OK);
    REFUSED(NULL, "choose_qparams: dtype: not supported, got int16; expected int8 or uint8");
    ck_assert_int_ne(tn_choose_qparams(x, &out[0], &out[1], TN_INTS(1), false, INT64_MIN, TN_I8,
                                       false, INT64_MIN, INT64_MIN, NAN),
                     TN_OK);
    REFUSED(NULL, "choose_qparams: eps: out of range, got nan; expected a number from 0 on");
    ck_assert_int_ne(tn_quantize_rows(x, &out[0], &out[1], &out[2], TN_U8, true), TN_OK);
    REFUSED(NULL, "quantize_rows: dtype: not symmetric, got uint8; expected int8");
    ck_assert_int_ne(tn_quantize_rows(ones(NUMBER), &out[0], &out[1], &out[2]), TN_OK);
    REFUSED(NULL, "quantize_rows: x: no rows, got no dimensions; expected at least one");
    REFUSED(tn_fake_quantize(x, ones(NUMBER), TN_NONE, 5, 5),
            "fake_quantize: qmin or qmax: out of range, got 5 and 5");
}
END_TEST

START_TEST(products_that_do_not_fit_are_refused)
{
    TN_SCOPE;
    tn_tensor *x = bytes(TN_U8, TN_SHAPE(2, 6)), *w = bytes(TN_I8, TN_SHAPE(3, 6));
    tn_tensor *one = ones(NUMBER), *three = ones(TN_SHAPE(3));

    REFUSED(tn_linear_int8(x, one, bytes(TN_I8, TN_SHAPE(3, 5)), one),
            "linear_int8: x or weight: wrong shape, got [2, 6] and [3, 5]; expected [..., in] and "
            "[out, in]");
    REFUSED(tn_linear_int8(x, ones(TN_SHAPE(2)), w, one),
            "linear_int8: x_scale: wrong shape, got [2] for x [2, 6]; expected one element, or one "
            "for each row, [..., 1]");
    REFUSED(
        tn_linear_int8(x, one, w, ones(TN_SHAPE(2))),
        "linear_int8: weight_scale: wrong shape, got [2]; expected one element, or [3], one for "
        "each output channel");
    REFUSED(tn_linear_int8(x, one, w, three, bytes(TN_I8, NUMBER)),
            "linear_int8: x_zero_point: wrong dtype, got int8; expected uint8, the dtype of x");
    REFUSED(tn_linear_int8(x, one, w, three, TN_NONE, bytes(TN_I8, NUMBER)),
            "linear_int8: weight_zero_point: wrong shape, got []; expected the shape of its scale, "
            "[3]");
    REFUSED(tn_linear_int8(x, one, w, three, TN_NONE, TN_NONE, one),
            "linear_int8: bias: wrong shape, got []; expected [3]");
    REFUSED(
        tn_linear_int8(x, one, w, three, TN_NONE, TN_NONE, TN_NONE, TN_NONE, bytes(TN_U8, NUMBER)),
        "linear_int8: y_zero_point: got one without y_scale; expected both");
    REFUSED(tn_linear_int8(x, one, w, three, TN_NONE, TN_NONE, TN_NONE, TN_NONE, TN_NONE, TN_NONE,
                           TN_NONE, TN_NONE, NAN, NAN, TN_I8),
            "linear_int8: dtype: not supported, got int8 without y_scale; expected float32");
    REFUSED(tn_linear_int8(x, one, w, three, TN_NONE, TN_NONE, TN_NONE, TN_NONE, TN_NONE,
                           bytes(TN_I8, TN_SHAPE(2, 3))),
            "linear_int8: residual_scale or residual_zero_point: do not fit, got residual int8 "
            "without residual_scale");
    REFUSED(tn_matmul_int8(x, w), "matmul_int8: a or b: wrong shape, got [2, 6] and [3, 6]");
    REFUSED(
        tn_matmul_int8(x, tn_transpose(w, 0, 1), bytes(TN_U8, TN_SHAPE(6))),
        "matmul_int8: a_zero_point: wrong shape, got [6] for a [2, 6]; expected one element, or "
        "one for each row");
    REFUSED(tn_convolution_int8(bytes(TN_U8, TN_SHAPE(1, 3, 4)), one,
                                bytes(TN_I8, TN_SHAPE(2, 2, 3)), one),
            "convolution_int8: x: wrong number of channels, got 3 in [1, 3, 4]; expected 2");
    REFUSED(tn_convolution_int8(x, one, w, one), "convolution_int8: x or weight: wrong shape");
    REFUSED(
        tn_convolution_int8(bytes(TN_U8, TN_SHAPE(1, 3, 4)), ones(TN_SHAPE(2)),
                            bytes(TN_I8, TN_SHAPE(2, 3, 3)), one),
        "convolution_int8: x_scale: wrong shape, got [2]; expected one element, or one for each "
        "of 1 images");
}
END_TEST

START_TEST(packed_weights_that_do_not_fit_are_refused)
{
    TN_SCOPE;
    tn_tensor *x = ones(TN_SHAPE(2, 64)), *w = bytes(TN_U8, TN_SHAPE(3, 32));
    tn_tensor *three = ones(TN_SHAPE(3));

    REFUSED(tn_pack_int4(bytes(TN_U8, TN_SHAPE(2, 3))),
            "pack_int4: x: wrong last size, got [2, 3]; expected an even one");
    REFUSED(tn_unpack_int4(w, TN_I16),
            "unpack_int4: dtype: not supported, got int16; expected int8 or uint8");
    REFUSED(tn_quantize_packed(ones(TN_SHAPE(2, 33)), "q8_0"),
            "quantize_packed: x: wrong last size, got [2, 33]; expected a multiple of 32");
    REFUSED(tn_quantize_packed(x, "int8"),
            "quantize_packed: format: unknown, got \"int8\"; expected q8_0 or q4_0");
    REFUSED(
        tn_linear_packed(x, w, three, TN_NONE, TN_NONE, "q5_K"),
        "linear_packed: format: unknown, got \"q5_K\"; expected int8, int4, uint4, q8_0 or q4_0");
    REFUSED(tn_linear_packed(x, w, three),
            "linear_packed: weight: wrong dtype, got uint8; expected int8 for format int8");
    REFUSED(
        tn_linear_packed(x, w, TN_NONE, TN_NONE, TN_NONE, "int4"),
        "linear_packed: weight_scale: absent with format int4; expected [out] or [out, groups]");
    REFUSED(tn_linear_packed(x, w, ones(TN_SHAPE(3, 5)), TN_NONE, TN_NONE, "int4"),
            "linear_packed: weight_scale: wrong shape, got [3, 5]; expected [3], or [3, groups] "
            "with groups that divide 64");
    REFUSED(tn_linear_packed(x, w, three, bytes(TN_I8, TN_SHAPE(3)), TN_NONE, "uint4"),
            "linear_packed: weight_zero_point: wrong dtype, got int8; expected uint8");
    REFUSED(tn_linear_packed(ones(TN_SHAPE(2, 60)), w, three, TN_NONE, TN_NONE, "int4"),
            "linear_packed: x: wrong shape, got [2, 60]; expected [..., 64] for the weight");
    REFUSED(tn_dequantize_packed(w, TN_NONE, TN_NONE, "q8_0"),
            "dequantize_packed: weight: wrong shape, got [3, 32]; expected [out, blocks * 34]");
    REFUSED(tn_dequantize_packed(bytes(TN_U8, TN_SHAPE(3, 34)), three, TN_NONE, "q8_0"),
            "weight_scale or weight_zero_point: given with format q8_0; expected none");
}
END_TEST

/* Halves are rounded to even by division, and what lies beyond the range is its end. NaN gives the
 * zero point. */
START_TEST(numbers_are_rounded_to_even_and_kept_in_their_range)
{
    TN_PROVES("QNT-002");
    static const float numbers[9] = {
        0.25f, 0.75f, 1.25f, -0.25f, -0.75f, 100, -100, INFINITY, NAN
    };
    TN_SCOPE;
    tn_tensor *x = tn_tensor_from(numbers, TN_F32, TN_SHAPE(9)),
              *scale = tn_tensor_full(NUMBER, 0.5, TN_F32, NULL),
              *zero = tn_tensor_full(NUMBER, 10, TN_U8, NULL);
    tn_tensor *q = tn_quantize(x, scale, zero), *y = tn_dequantize(q, scale, zero);
    uint8_t got[9];

    ck_assert_msg(q != NULL && y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_copy_out(q, got, sizeof got), TN_OK);
    ck_assert_mem_eq(got, ((const uint8_t[]){ 10, 12, 12, 10, 8, 210, 0, 255, 10 }), 9);
    HAS(y, 0, 1, 1, 0, -1, 100, -5, 122.5, 0);
}
END_TEST

/* The number before 0.5 is rounded to 0, halves away from it. */
START_TEST(blocks_are_rounded_as_their_files_say)
{
    static const float numbers[32] = { 127, 0x1.fffffep-2f, 0.5f, -0.5f, 1.5f };
    TN_SCOPE;
    tn_tensor *y = tn_quantize_packed(tn_tensor_from(numbers, TN_F32, TN_SHAPE(32)), "q8_0");
    uint8_t got[34];

    ck_assert_ptr_nonnull(y);
    ck_assert_int_eq(tn_tensor_copy_out(y, got, sizeof got), TN_OK);
    ck_assert_mem_eq(got + 2, ((const uint8_t[]){ 127, 0, 1, 255, 2, 0 }), 6);
}
END_TEST

/* Without elements any sizes are possible, whose products overflow. */
START_TEST(sizes_without_elements_do_not_overflow)
{
    TN_SCOPE;
    const int64_t large = (int64_t)1 << 20, huge = (int64_t)1 << 40;
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(1, 0, large, large), TN_U8, NULL), *y;
    tn_tensor *w = tn_tensor_empty(TN_SHAPE(2, 0, large, large), TN_I8, NULL);

    y = tn_convolution_int8(x, ones(TN_SHAPE(1)), w, ones(TN_SHAPE(1)));
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(y), 2);
    ck_assert_float_eq(tn_tensor_item(tn_amax(tn_abs(y))), 0);
    x = tn_tensor_empty(TN_SHAPE(huge, huge, 0), TN_F32, NULL);
    y = tn_linear_packed(x, tn_tensor_empty(TN_SHAPE(0, 0), TN_I8, NULL),
                         tn_tensor_empty(TN_SHAPE(0), TN_F32, NULL));
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_size(y, 1), huge);
}
END_TEST

START_TEST(integers_have_no_gradient_and_packed_weights_pass_it_on)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(ones(TN_SHAPE(2, 32))), *w = ones(TN_SHAPE(3, 32)), *y, *scale, *zero;
    tn_tensor *q;

    ck_assert_int_eq(tn_quantize_rows(x, &q, &scale, &zero), TN_OK);
    ck_assert(!tn_tensor_requires_grad(q) && !tn_tensor_requires_grad(scale));
    y = tn_linear_packed(x, tn_quantize_packed(w, "q8_0"), TN_NONE, TN_NONE, TN_NONE, "q8_0");
    ck_assert_ptr_nonnull(y);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    ck_assert_float_eq_tol((float)at(tn_tensor_grad(x), 5), 3.0f, 1e-3f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize");
    TCase *tests = tcase_create("quantize");

    tcase_add_test(tests, scales_and_zero_points_that_do_not_fit_are_refused);
    tcase_add_test(tests, ranges_that_cannot_be_chosen_are_refused);
    tcase_add_test(tests, products_that_do_not_fit_are_refused);
    tcase_add_test(tests, packed_weights_that_do_not_fit_are_refused);
    tcase_add_test(tests, numbers_are_rounded_to_even_and_kept_in_their_range);
    tcase_add_test(tests, blocks_are_rounded_as_their_files_say);
    tcase_add_test(tests, sizes_without_elements_do_not_overflow);
    tcase_add_test(tests, integers_have_no_gradient_and_packed_weights_pass_it_on);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
