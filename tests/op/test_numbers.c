/* SPDX-License-Identifier: MIT
 *
 * Numbers that are arguments of operators, in addition to tensors: numbers that the dtype cannot
 * hold are refused, and numbers that mean "none" have the same meaning as in PyTorch. Losses and
 * sizes with special rules. The expected numbers are PyTorch's, or those of the formula. */
#include <stdint.h>

#include "tests/op/suite.h"

typedef struct range {
    tn_dtype dtype;
    double low, high; /* the extreme numbers that a double has, too */
    double below, above;
} range;

static const range ranges[] = {
    { TN_I8, INT8_MIN, INT8_MAX, -129, 128 },
    { TN_U8, 0, UINT8_MAX, -1, 256 },
    { TN_I16, INT16_MIN, INT16_MAX, -32769, 32768 },
    { TN_I32, INT32_MIN, INT32_MAX, -2147483649.0, 2147483648.0 },
    { TN_I64, -0x1p63, 0x1p63 - 1024, -0x1p63 - 2048, 0x1p63 },
    { TN_F16, -65504, 65504, -65520, 65520 },
    { TN_BF16, -0x1.fep127, 0x1.fep127, -0x1.ffp127, 0x1.ffp127 },
    { TN_F32, -0x1.fffffep127, 0x1.fffffep127, -0x1.ffffffp127, 0x1.ffffffp127 },
};
enum { RANGES = sizeof ranges / sizeof ranges[0] };

/* ---- where a number becomes an element ---- */

static tn_tensor *two(tn_dtype dtype)
{
    return tn_tensor_full(TN_SHAPE(2), 1, dtype, NULL);
}

static tn_tensor *by_fill(tn_dtype dtype, double value)
{
    return tn_fill(two(dtype), value);
}

static tn_tensor *by_fill_in_place(tn_dtype dtype, double value)
{
    return tn_fill_(two(dtype), value);
}

static tn_tensor *by_full(tn_dtype dtype, double value)
{
    return tn_full(TN_NONE, TN_SHAPE(2), value, dtype);
}

static tn_tensor *by_tensor_full(tn_dtype dtype, double value)
{
    return tn_tensor_full(TN_SHAPE(2), value, dtype, NULL);
}

static tn_tensor *by_mask(tn_dtype dtype, double value)
{
    return tn_masked_fill(two(dtype), tn_tensor_full(TN_SHAPE(2), 1, TN_BOOL, NULL), value);
}

static tn_tensor *by_mask_in_place(tn_dtype dtype, double value)
{
    return tn_masked_fill_(two(dtype), tn_tensor_full(TN_SHAPE(2), 1, TN_BOOL, NULL), value);
}

static tn_tensor *by_pad(tn_dtype dtype, double value)
{
    return tn_narrow(tn_pad(two(dtype), TN_SHAPE(2, 0), "constant", value), 0, 0, 2);
}

static tn_tensor *by_threshold(tn_dtype dtype, double value)
{
    return tn_threshold(two(dtype), 1, value);
}

static const struct {
    const char *name;
    tn_tensor *(*make)(tn_dtype dtype, double value);
} makers[] = {
    { "fill", by_fill },        { "fill", by_fill_in_place },  { "full", by_full },
    { "fill", by_tensor_full }, { "masked_fill", by_mask },    { "masked_fill", by_mask_in_place },
    { "pad", by_pad },          { "threshold", by_threshold },
};
enum { MAKERS = sizeof makers / sizeof makers[0] };

static void refused(tn_tensor *result, const char *name, tn_dtype dtype, double value)
{
    ck_assert_msg(result == NULL, "%s of %s takes %g", name, tn_dtype_name(dtype), value);
    ck_assert_msg(tn_error_code() == TN_ERR_RUNTIME && strstr(tn_error_text(), name) != NULL &&
                      strstr(tn_error_text(), "out of the range of") != NULL &&
                      strstr(tn_error_text(), tn_dtype_name(dtype)) != NULL &&
                      strstr(tn_error_text(), "expected") != NULL,
                  "%s of %s and %g: %s", name, tn_dtype_name(dtype), value, tn_error_text());
    tn_error_clear();
}

START_TEST(a_number_that_the_type_cannot_hold_is_refused)
{
    TN_SCOPE;

    for (int i = 0; i < RANGES; i++)
        for (int k = 0; k < MAKERS; k++) {
            const range *r = &ranges[i];
            tn_tensor *low = makers[k].make(r->dtype, r->low);
            tn_tensor *high = makers[k].make(r->dtype, r->high);

            FINE();
            ck_assert_msg(at(low, 1) == r->low && at(high, 0) == r->high, "%s of %s: %g and %g",
                          makers[k].name, tn_dtype_name(r->dtype), at(low, 1), at(high, 0));
            refused(makers[k].make(r->dtype, r->below), makers[k].name, r->dtype, r->below);
            refused(makers[k].make(r->dtype, r->above), makers[k].name, r->dtype, r->above);
            if ((TN_MASK_FLOAT & TN_BIT(r->dtype)) != 0) {
                ck_assert(isnan(at(makers[k].make(r->dtype, NAN), 0)));
                ck_assert(isinf(at(makers[k].make(r->dtype, -INFINITY), 0)));
                continue;
            }
            refused(makers[k].make(r->dtype, NAN), makers[k].name, r->dtype, NAN);
            refused(makers[k].make(r->dtype, INFINITY), makers[k].name, r->dtype, INFINITY);
        }
    FINE();
}
END_TEST

START_TEST(of_bool_everything_but_zero_is_true)
{
    const double truths[] = { 2, -1, 0.5, 256, NAN, INFINITY };
    TN_SCOPE;

    for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++)
        for (int k = 0; k < MAKERS - 1; k++) { /* threshold takes no bool */
            tn_tensor *y = makers[k].make(TN_BOOL, truths[i]);
            uint8_t bytes[2] = { 7, 7 };

            ck_assert_msg(y != NULL, "%s of bool and %g: %s", makers[k].name, truths[i],
                          tn_error_text());
            ck_assert_int_eq(tn_tensor_copy_out(y, bytes, 2), TN_OK);
            ck_assert_msg(bytes[0] == 1 && bytes[1] == 1, "%s of bool and %g: %d", makers[k].name,
                          truths[i], bytes[0]);
            HAS(makers[k].make(TN_BOOL, 0), 0, 0);
        }
    FINE();
}
END_TEST

START_TEST(a_fraction_of_an_integer_is_cut_off_or_refused)
{
    TN_SCOPE;

    HAS(by_fill(TN_I8, 1.5), 1, 1);
    HAS(by_fill(TN_I8, 127.5), 127, 127);
    HAS(by_full(TN_I8, -1.5), -1, -1);
    ck_assert_ptr_null(by_mask(TN_I16, 1.5));
    FAILED(TN_ERR_RUNTIME, "expected an integer");
}
END_TEST

/* ---- where a number is an operand ---- */

START_TEST(powers_of_integers_take_exponents_of_their_type)
{
    TN_SCOPE;

    ck_assert_ptr_null(tn_pow_scalar(two(TN_BOOL), -1));
    FAILED(TN_ERR_RUNTIME, "Integers to negative integer powers are not allowed");
    ck_assert_ptr_null(tn_pow_scalar(two(TN_I8), -1));
    FAILED(TN_ERR_RUNTIME, "Integers to negative integer powers are not allowed");
    ck_assert_ptr_null(tn_pow_scalar(two(TN_I8), 300));
    FAILED(TN_ERR_RUNTIME, "exponent: out of the range of int8, got 300");
    HAS(tn_pow_scalar(tn_fill(two(TN_I8), 2), 6), 64, 64);
    HAS(tn_pow_scalar(two(TN_BOOL), 2), 1, 1);
    HAS(tn_pow_scalar(two(TN_BOOL), 0.5), 1, 1);
    HAS(tn_pow_scalar(two(TN_BOOL), -0.5), 1, 1);
    FINE();
}
END_TEST

START_TEST(a_bound_of_integers_may_be_out_of_range_where_it_changes_nothing)
{
    tn_clamp_options o = TN_CLAMP_OPTIONS;
    TN_SCOPE;

    for (int i = 0; i < 5; i++) {
        const range *r = &ranges[i];
        tn_tensor *x = two(r->dtype);

        o.min = TN_SCALAR(r->below);
        o.max = TN_SCALAR(r->above);
        ck_assert_int_eq(tn_tensor_dtype(tn_clamp(x, o.min, o.max)), TN_F32);
        HAS(tn_clamp(x, o.min, o.max), 1, 1);
        if (r->dtype == TN_I64) /* beyond int64 a number is a float */
            continue;
        o.min = TN_SCALAR((int64_t)r->below);
        o.max = TN_SCALAR((int64_t)r->above);
        ck_assert_int_eq(tn_tensor_dtype(tn_clamp(x, o.min, o.max)), r->dtype);
        HAS(tn_clamp(x, o.min, o.max), 1, 1);
        o.min = TN_SCALAR((int64_t)r->above);
        o.max = TN_SCALAR(NAN);
        refused(tn_clamp(x, o.min, o.max), "clamp: min", r->dtype, r->above);
        o.min = TN_SCALAR(NAN);
        o.max = TN_SCALAR((int64_t)r->below);
        refused(tn_clamp(x, o.min, o.max), "clamp: max", r->dtype, r->below);
    }
    FINE();
}
END_TEST

START_TEST(sums_and_products_of_integers_and_a_number_wrap_around)
{
    TN_SCOPE;

    HAS(tn_add_scalar(two(TN_I8), 300), 45, 45);
    HAS(tn_mul_scalar(two(TN_I8), 300), 44, 44);
    HAS(tn_add_scalar(two(TN_U8), -2), 255, 255);
    HAS(tn_mul_scalar(two(TN_U8), -1), 255, 255);
    FINE();
}
END_TEST

START_TEST(factors_of_integers_are_of_their_type)
{
    tn_add_options a = { .size = sizeof a, .alpha = TN_SCALAR_INIT_INT(300) };
    tn_sub_options s = { .size = sizeof s, .alpha = TN_SCALAR_INIT_INT(-129) };
    TN_SCOPE;
    tn_tensor *x = two(TN_I8), *u = two(TN_U8);

    refused(tn_add(x, x, a.alpha), "add: alpha", TN_I8, 300);
    refused(tn_sub(x, x, s.alpha), "sub: alpha", TN_I8, -129);
    refused(tn_addcmul(x, x, x, 300), "addcmul: value", TN_I8, 300);
    refused(tn_index_add(x, tn_tensor_full(TN_SHAPE(2), 0, TN_I64, NULL), x, 0, 300),
            "index_add: alpha", TN_I8, 300);
    a.alpha = TN_SCALAR(-128);
    HAS(tn_add(x, x, a.alpha), -127, -127);
    a.alpha = TN_SCALAR(-1); /* subtracts */
    HAS(tn_add(u, u, a.alpha), 0, 0);
    FINE();
}
END_TEST

START_TEST(drawn_numbers_stay_within_their_type_and_ranges_wrap_around)
{
    tn_arange_options o = { .size = sizeof o, .step = TN_SCALAR_INIT_INT(1), .dtype = TN_I8 };
    TN_SCOPE;

    HAS(tn_arange(TN_NONE, 125, 128, o.step, o.dtype), 125, 126, 127);
    ck_assert_int_eq(tn_tensor_numel(tn_arange(TN_NONE, 200, 200, o.step, o.dtype)), 0);
    HAS(tn_arange(TN_NONE, 126, 130, o.step, o.dtype), 126, 127, -128, -127);
    o.dtype = TN_U8;
    HAS(tn_arange(TN_NONE, -1, 2, o.step, o.dtype), 255, 0, 1);
    ck_assert_ptr_nonnull(tn_randint(two(TN_I8), -128, 128));
    refused(tn_randint(two(TN_I8), 0, 300), "randint: high - 1", TN_I8, 299);
    refused(tn_randint(two(TN_U8), -1, 3), "randint: low", TN_U8, -1);
    FINE();
}
END_TEST

/* ---- options that are "none" or NaN ---- */

START_TEST(an_empty_list_of_dimensions_squeezes_none)
{
    tn_squeeze_options o = TN_SQUEEZE_OPTIONS;
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 2, 1), 3, TN_F32, NULL), *y;

    ck_assert_int_eq(tn_tensor_ndim(tn_squeeze(x)), 1);
    ck_assert_int_eq(tn_tensor_ndim(tn_squeeze(x, o.dims)), 1);
    o.dims = TN_SHAPE(0);
    ck_assert_int_eq(tn_tensor_ndim(tn_squeeze(x, o.dims)), 2);
    o.dims = (tn_ints){ NULL, 0 };
    y = tn_squeeze(with_grad(x), o.dims);
    ck_assert_int_eq(tn_tensor_ndim(y), 3);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(x), 1, 1);
    FINE();
}
END_TEST

START_TEST(an_empty_list_of_dimensions_asks_each_element_alone)
{
    tn_any_options any = TN_ANY_OPTIONS;
    tn_all_options all = TN_ALL_OPTIONS;
    TN_SCOPE;
    tn_tensor *x = tn_reshape(VEC(0, 3, 2), TN_SHAPE(1, 3));

    HAS(tn_any(x, any.dims), 1);
    HAS(tn_all(x, all.dims, all.keepdim), 0);
    any.dims = all.dims = (tn_ints){ NULL, 0 };
    all.keepdim = true;
    HAS(tn_any(x, any.dims), 0, 1, 1);
    HAS(tn_all(x, all.dims, all.keepdim), 0, 1, 1);
    HAS(tn_any(tn_cast(x, TN_BOOL), any.dims), 0, 1, 1);
    HAS(tn_all(tn_cast(x, TN_U8), all.dims, all.keepdim), 0, 1, 1);
    ck_assert_int_eq(tn_tensor_dtype(tn_all(tn_cast(x, TN_U8), all.dims, all.keepdim)), TN_U8);
    ck_assert_int_eq(tn_tensor_dtype(tn_any(x, any.dims)), TN_BOOL);
    ck_assert_int_eq(tn_tensor_ndim(tn_any(x, any.dims)), 2);
    FINE();
}
END_TEST

START_TEST(a_bound_that_is_not_a_number_is_said_with_clamp_tensor)
{
    tn_clamp_options o = TN_CLAMP_OPTIONS;
    TN_SCOPE;
    tn_tensor *nan = tn_tensor_full(TN_SCALAR_SHAPE, NAN, TN_F32, NULL), *y;

    o.max = TN_SCALAR(2); /* a bound that is NaN counts as not given */
    HAS(tn_clamp(VEC(1, 5), o.min, o.max), 1, 2);
    y = tn_clamp_tensor(VEC(1, 5), nan, TN_NONE);
    ck_assert(isnan(at(y, 0)) && isnan(at(y, 1)));
    y = tn_clamp_tensor(VEC(1, 5), TN_NONE, nan);
    ck_assert(isnan(at(y, 0)) && isnan(at(y, 1)));
    y = tn_clamp_tensor(VEC(1, 5), nan, tn_tensor_full(TN_SCALAR_SHAPE, 3, TN_F32, NULL));
    ck_assert(isnan(at(y, 0)) && isnan(at(y, 1)));
    y = tn_clamp_tensor(two(TN_I64), nan, TN_NONE); /* integers become floats */
    ck_assert(tn_tensor_dtype(y) == TN_F32 && isnan(at(y, 0)));
    FINE();
}
END_TEST

/* ---- rules of single operators ---- */

START_TEST(a_variance_for_each_sample_is_spread_over_its_elements)
{
    TN_SCOPE;
    tn_tensor *x = tn_reshape(VEC(1, 2, 3, -1, 0.5, 2), TN_SHAPE(2, 3));
    tn_tensor *t = tn_reshape(VEC(0.5, 2.5, 1, 0, 1, -1), TN_SHAPE(2, 3));
    tn_tensor *v = LEAF(0.5, 2), *y;

    y = tn_gaussian_nll_loss(x, t, v, "none");
    HAS(y, -0.0965735903, -0.0965735903, 3.65342641, 0.59657359, 0.40907359, 2.59657359);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(v), -6, -0.53125);
    y = tn_gaussian_nll_loss(x, t, tn_reshape(VEC(0.5, 2, 1), TN_SHAPE(1, 3)), "none");
    HAS(y, -0.0965735903, 0.40907359, 2, 0.65342641, 0.40907359, 4.5);
    /* a square x, where broadcasting would take the other dimension */
    y = tn_gaussian_nll_loss(tn_narrow(x, 1, 0, 2), tn_narrow(t, 1, 0, 2), tn_detach(v), "none");
    HAS(y, -0.0965735903, -0.0965735903, 0.59657359, 0.40907359);
    FINE();
    ck_assert_ptr_null(tn_gaussian_nll_loss(x, t, VEC(1, 2, 3), "none"));
    FAILED(TN_ERR_VALUE, "var: is of incorrect size, got [3] for x [2, 3]");
    ck_assert_ptr_null(
        tn_gaussian_nll_loss(x, t, tn_tensor_full(TN_SHAPE(1, 1), 1, TN_F32, NULL), "none"));
    FAILED(TN_ERR_VALUE, "var: is of incorrect size");
    ck_assert_ptr_null(
        tn_gaussian_nll_loss(x, t, tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_F32, NULL), "none"));
    FAILED(TN_ERR_VALUE, "var: is of incorrect size");
}
END_TEST

static tn_tensor *resized(tn_tensor *x, const char *mode, const double *factors, int64_t count)
{
    return tn_interpolate(x, ((tn_ints){ NULL, 0 }), mode, false, ((tn_floats){ factors, count }));
}

START_TEST(a_dimension_that_keeps_its_size_is_copied_as_pytorch_does)
{
    const double once[] = { 1.3 }, two_dims[] = { 1.3, 2 }, three[] = { 1.5, 1.3, 1.3 };
    TN_SCOPE;
    tn_tensor *row = tn_reshape(VEC(1, 2), TN_SHAPE(1, 1, 2));
    tn_tensor *image = tn_reshape(VEC(1, 2, 3, 5), TN_SHAPE(1, 1, 2, 2));
    tn_tensor *block = tn_reshape(image, TN_SHAPE(1, 1, 1, 2, 2)), *x = with_grad(tn_copy(row)), *y;

    HAS(resized(row, "linear", once, 1), 1, 2);
    HAS(resized(row, "nearest", once, 1), 1, 1);
    HAS(resized(row, "nearest-exact", once, 1), 1, 2);
    HAS(resized(image, "bilinear", two_dims, 2), 1, 1.25, 1.75, 2, 3, 3.5, 4.5, 5);
    HAS(resized(image, "nearest", two_dims, 2), 1, 1, 2, 2, 3, 3, 5, 5);
    HAS(resized(image, "nearest-exact", two_dims, 2), 1, 1, 2, 2, 3, 3, 5, 5);
    HAS(resized(image, "bicubic", two_dims, 2), 0.7662332401961486, 1.0757792719831025,
        1.5856197949263207, 1.8951658267132745, 2.1662472085514346, 2.721156513142923,
        3.6351247795289043, 4.190034084120393);
    HAS(resized(block, "trilinear", three, 3), 1, 2, 3, 5);
    HAS(resized(block, "nearest", three, 3), 1, 1, 1, 1);
    HAS(resized(block, "nearest-exact", three, 3), 1, 2, 3, 5);
    y = resized(x, "linear", once, 1);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(x), 1, 1);
    ck_assert(!tn_tensor_shares_storage(x, y)); /* a new tensor, as where sizes change */
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("numbers and tensors");
    TCase *t = tcase_create("numbers");

    tcase_add_test(t, a_number_that_the_type_cannot_hold_is_refused);
    tcase_add_test(t, of_bool_everything_but_zero_is_true);
    tcase_add_test(t, a_fraction_of_an_integer_is_cut_off_or_refused);
    tcase_add_test(t, powers_of_integers_take_exponents_of_their_type);
    tcase_add_test(t, a_bound_of_integers_may_be_out_of_range_where_it_changes_nothing);
    tcase_add_test(t, sums_and_products_of_integers_and_a_number_wrap_around);
    tcase_add_test(t, factors_of_integers_are_of_their_type);
    tcase_add_test(t, drawn_numbers_stay_within_their_type_and_ranges_wrap_around);
    tcase_add_test(t, an_empty_list_of_dimensions_squeezes_none);
    tcase_add_test(t, an_empty_list_of_dimensions_asks_each_element_alone);
    tcase_add_test(t, a_bound_that_is_not_a_number_is_said_with_clamp_tensor);
    tcase_add_test(t, a_variance_for_each_sample_is_spread_over_its_elements);
    tcase_add_test(t, a_dimension_that_keeps_its_size_is_copied_as_pytorch_does);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
