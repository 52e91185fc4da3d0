/* SPDX-License-Identifier: MIT
 *
 * Running sums and products, order, elements chosen by index, the smallest and the product, on
 * every device. */
#include "tests/backend/backend.h"

static const tn_dtype types[] = { TN_F32, TN_F64, TN_F16, TN_BF16, TN_I64, TN_I32, TN_U8 };
enum { TYPES = sizeof types / sizeof *types };
static const double x[6] = { 3, 1, 2, 0, 2, 5 };

static bool whole(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) == 0;
}

#define EACH_TYPE(device, t, op)                                                                   \
    EACH_DEVICE(device)                                                                            \
    for (int t = 0; t < TYPES; t++)                                                                \
        for (int layout = 0; layout < LAYOUTS; layout++)                                           \
            if (device_has(device, op,                                                             \
                           whole(types[t]) && strncmp(op, "cum", 3) == 0 ? TN_I64 : types[t]))

START_TEST(running_sums_and_products_go_along_one_dimension)
{
    EACH_TYPE(device, t, "cumsum")
    {
        TN_SCOPE;
        tn_cumsum_options back = TN_CUMSUM_OPTIONS;
        tn_tensor *in = put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout);
        back.reverse = true;
        same("cumsum", device, types[t], tn_cumsum(in, 1, NULL), NUMBERS(3, 4, 6, 0, 2, 7), 0, 0);
        same("cumsum", device, types[t], tn_cumsum(in, -2, NULL), NUMBERS(3, 1, 2, 3, 3, 7), 0, 0);
        same("cumsum", device, types[t], tn_cumsum(in, 1, &back), NUMBERS(6, 3, 2, 7, 7, 5), 0, 0);
        same("cumprod", device, types[t], tn_cumprod(in, 1, NULL), NUMBERS(3, 3, 6, 0, 0, 0), 0, 0);
        same("cumprod", device, types[t], tn_cumprod(in, 0, NULL), NUMBERS(3, 1, 2, 0, 2, 10), 0,
             0);
    }
    ck_assert_int_gt(checks_made, 500);
}
END_TEST

START_TEST(a_long_running_sum_is_put_together_from_pieces)
{
    enum { COUNT = 1003 };
    double numbers[COUNT], sums[COUNT], all = 0;
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i % 7;
        sums[i] = all += numbers[i];
    }
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *in = put(device, TN_F32, TN_SHAPE(COUNT), numbers, EVERY_SECOND);
        same("cumsum", device, TN_F32, tn_cumsum(in, 0, NULL), sums, 0, 0);
    }
}
END_TEST

START_TEST(sort_keeps_equals_in_order_and_puts_NaN_last)
{
    EACH_TYPE(device, t, "sort")
    {
        TN_SCOPE;
        tn_sort_options down = TN_SORT_OPTIONS;
        tn_tensor *values, *places;
        down.descending = true;
        down.dim = 0;
        ok(tn_sort(put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout), NULL, &values,
                   &places));
        same("sort", device, types[t], values, NUMBERS(1, 2, 3, 0, 2, 5), 0, 0);
        same("sort", device, types[t], places, NUMBERS(1, 2, 0, 0, 1, 2), 0, 0);
        ok(tn_sort(put(device, types[t], TN_SHAPE(6), x, (enum layout)layout), &down, &values,
                   &places));
        same("sort", device, types[t], values, NUMBERS(5, 3, 2, 2, 1, 0), 0, 0);
        same("sort", device, types[t], places, NUMBERS(5, 0, 2, 4, 1, 3), 0, 0);
        if (whole(types[t]))
            continue;
        tn_tensor *odd = put(device, types[t], TN_SHAPE(5), NUMBERS(1, NAN, -INFINITY, NAN, 0),
                             (enum layout)layout);
        ok(tn_sort(odd, NULL, &values, &places));
        same("sort", device, types[t], places, NUMBERS(2, 4, 0, 1, 3), 0, 0);
        ok(tn_sort(odd, &down, &values, &places));
        same("sort", device, types[t], places, NUMBERS(1, 3, 0, 4, 2), 0, 0);
    }
}
END_TEST

START_TEST(gather_and_scatter_follow_their_index)
{
    EACH_TYPE(device, t, "gather")
    {
        TN_SCOPE;
        tn_tensor *in = put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout);
        tn_tensor *index = put(device, TN_I64, TN_SHAPE(2, 2), NUMBERS(2, 2, 0, 1),
                               (enum layout)layout);
        tn_tensor *few = put(device, TN_I64, TN_SHAPE(1, 2), NUMBERS(1, 0), (enum layout)layout);
        tn_tensor *src = put(device, types[t], TN_SHAPE(2, 2), NUMBERS(7, 8, 9, 4),
                             (enum layout)layout);
        same("gather", device, types[t], tn_gather(in, index, 1), NUMBERS(2, 2, 0, 2), 0, 0);
        same("gather", device, types[t], tn_gather(in, few, 0), NUMBERS(0, 1), 0, 0);
        same("scatter", device, types[t], tn_scatter(in, index, src, 1), NUMBERS(3, 1, 8, 9, 4, 5),
             0, 0);
        same("scatter", device, types[t], tn_scatter(in, few, src, 0), NUMBERS(3, 8, 2, 7, 2, 5), 0,
             0);
        same("scatter_add", device, types[t], tn_scatter_add(in, index, src, 1),
             NUMBERS(3, 1, 17, 9, 6, 5), 0, 0);
    }
    ck_assert_int_gt(checks_made, 500);
}
END_TEST

START_TEST(an_index_out_of_bounds_is_an_error_at_the_latest_at_the_next_copy)
{
    EACH_DEVICE(device)
    for (int which = 0; which < 3; which++) {
        TN_SCOPE;
        double found[6];
        tn_tensor *in = put(device, TN_F64, TN_SHAPE(3), x, DENSE);
        tn_tensor *index = put(device, TN_I64, TN_SHAPE(2), NUMBERS(1, which == 1 ? -1 : 3), DENSE);
        tn_tensor *y = which == 0   ? tn_gather(in, index, 0)
                       : which == 1 ? tn_scatter(in, index, in, 0)
                                    : tn_scatter_add(in, index, in, 0);
        tn_status status = y ? tn_tensor_copy_out(y, found,
                                                  (size_t)tn_tensor_numel(y) * sizeof *found)
                             : tn_error_code();
        ck_assert_msg(status == TN_ERR_INDEX, "%s: %d", tn_device_name(device), (int)status);
        ck_assert_msg(strstr(tn_error_last()->message, "out of bounds for dimension 0") != NULL,
                      "%s", tn_error_last()->message);
        tn_error_clear();
    }
}
END_TEST

START_TEST(products_and_smallest_ones_over_any_dimension)
{
    EACH_TYPE(device, t, "amin")
    {
        TN_SCOPE;
        static const int64_t one[] = { 1 }, zero[] = { 0 };
        tn_prod_options prod = TN_PROD_OPTIONS;
        tn_amin_options amin = TN_AMIN_OPTIONS;
        tn_argmin_options argmin = TN_ARGMIN_OPTIONS;
        tn_tensor *in = put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout);
        prod.dims = amin.dims = (tn_ints){ one, 1 };
        argmin.dim = 1;
        same("prod", device, types[t], tn_prod(in, &prod), NUMBERS(6, 0), 0, 0);
        same("prod", device, types[t], tn_prod(in, NULL), NUMBERS(0), 0, 0);
        same("amin", device, types[t], tn_amin(in, &amin), NUMBERS(1, 0), 0, 0);
        same("amin", device, types[t], tn_amin(in, NULL), NUMBERS(0), 0, 0);
        same("argmin", device, types[t], tn_argmin(in, &argmin), NUMBERS(1, 0), 0, 0);
        same("argmin", device, types[t], tn_argmin(in, NULL), NUMBERS(3), 0, 0);
        prod.dims = (tn_ints){ zero, 1 };
        same("prod", device, types[t], tn_prod(in, &prod), NUMBERS(0, 2, 10), 0, 0);
        same("prod", device, types[t], tn_prod(put(device, types[t], TN_SHAPE(0), x, DENSE), NULL),
             NUMBERS(1), 0, 0);
        if (whole(types[t]))
            continue;
        tn_tensor *odd = put(device, types[t], TN_SHAPE(3), NUMBERS(1, NAN, -INFINITY), DENSE);
        same("amin", device, types[t], tn_amin(odd, NULL), NUMBERS(NAN), 0, 0);
        same("argmin", device, types[t], tn_argmin(odd, NULL), NUMBERS(1), 0, 0);
    }
}
END_TEST

START_TEST(long_products_and_smallest_ones_are_cut_into_pieces)
{
    enum { COUNT = 70000 };
    double *numbers = malloc(COUNT * sizeof *numbers);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i % 1000 == 0 ? (i % 2000 ? 2 : 0.5) : 1;
    numbers[65000] = -4;
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        if (strcmp(tn_device_type(device), "strict") == 0)
            continue; /* one element at a time */
        tn_tensor *in = put(device, TN_F32, TN_SHAPE(COUNT), numbers, DENSE);
        same("prod", device, TN_F32, tn_prod(in, NULL), NUMBERS(-2), 0, 0);
        same("amin", device, TN_F32, tn_amin(in, NULL), NUMBERS(-4), 0, 0);
        same("argmin", device, TN_F32, tn_argmin(in, NULL), NUMBERS(65000), 0, 0);
    }
    free(numbers);
}
END_TEST

START_TEST(places_of_what_is_not_zero_come_in_row_major_order)
{
    EACH_TYPE(device, t, "nonzero")
    {
        TN_SCOPE;
        tn_tensor *in = put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout), *y;
        y = tn_nonzero(in);
        same("nonzero", device, types[t], y, NUMBERS(0, 0, 0, 1, 0, 2, 1, 1, 1, 2), 0, 0);
        ck_assert_int_eq(tn_tensor_size(y, 0), 5);
        ck_assert_int_eq(tn_tensor_size(y, 1), 2);
        ck_assert_int_eq(tn_tensor_size(tn_nonzero(tn_mul_scalar(in, 0)), 0), 0);
        y = tn_nonzero(put(device, types[t], TN_SHAPE(0, 3), x, DENSE));
        ck_assert_int_eq(tn_tensor_size(y, 0), 0);
        y = tn_nonzero(tn_select(in, 0, 1));
        same("nonzero", device, types[t], y, NUMBERS(1, 2), 0, 0);
        y = tn_nonzero(put(device, types[t], TN_SHAPE(), x, DENSE));
        ck_assert_int_eq(tn_tensor_size(y, 0), 1);
        ck_assert_int_eq(tn_tensor_size(y, 1), 0);
        if (whole(types[t]))
            continue;
        y = tn_nonzero(
            put(device, types[t], TN_SHAPE(4), NUMBERS(0, NAN, -0.0, 1e-4), (enum layout)layout));
        same("nonzero", device, types[t], y, NUMBERS(1, 3), 0, 0);
    }
    ck_assert_int_gt(checks_made, 200);
}
END_TEST

START_TEST(many_places_are_put_together_from_pieces)
{
    enum { COLUMNS = 7, COUNT = 80000 * COLUMNS };
    double *numbers = calloc(COUNT, sizeof *numbers), *places = calloc(COUNT, sizeof *places);
    int64_t found = 0;
    for (int i = 0; i < COUNT; i++)
        if (i % 11 == 0 || (i > 5000 && i < 6000)) {
            numbers[i] = 1;
            places[found++] = i / COLUMNS;
            places[found++] = i % COLUMNS;
        }
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        if (strcmp(tn_device_type(device), "strict") == 0)
            continue; /* one element at a time */
        tn_tensor *y = tn_nonzero(
            put(device, TN_F32, TN_SHAPE(COUNT / COLUMNS, COLUMNS), numbers, DENSE));
        there(y);
        ck_assert_int_eq(tn_tensor_numel(y), found);
        same("nonzero", device, TN_F32, y, places, 0, 0);
    }
    free(numbers);
    free(places);
}
END_TEST

START_TEST(complex_numbers_are_put_together_from_their_parts)
{
    EACH_DEVICE(device)
    for (int layout = 0; layout < LAYOUTS; layout++) {
        TN_SCOPE;
        float found[6];
        tn_tensor *re = put(device, TN_F32, TN_SHAPE(3), NUMBERS(1, 2, 3), (enum layout)layout);
        tn_tensor *im = put(device, TN_F32, TN_SHAPE(1), NUMBERS(-4), (enum layout)layout);
        tn_tensor *y = tn_complex(re, im);
        there(y);
        ok(tn_tensor_copy_out(y, found, sizeof found));
        for (int i = 0; i < 3; i++) {
            ck_assert_float_eq(found[2 * i], (float)(i + 1));
            ck_assert_float_eq(found[2 * i + 1], -4);
        }
    }
}
END_TEST

START_TEST(scatter_in_place_adds_to_what_is_there)
{
    EACH_DEVICE(device)
    for (int layout = 0; layout < LAYOUTS; layout++) {
        TN_SCOPE;
        tn_tensor *y = put(device, TN_F32, TN_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6),
                           (enum layout)layout);
        tn_tensor *index = put(device, TN_I64, TN_SHAPE(2, 2), NUMBERS(0, 0, 2, 1), DENSE);
        tn_tensor *src = put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(10, 20, 30, 40), DENSE);
        there(tn_scatter_add_(y, index, src, 1));
        same("scatter_add_", device, TN_F32, y, NUMBERS(31, 2, 3, 4, 45, 36), 0, 0);
        there(tn_scatter_(y, index, src, 1));
        same("scatter_", device, TN_F32, tn_narrow(y, 0, 1, 1), NUMBERS(4, 40, 30), 0, 0);
    }
}
END_TEST

RUN_SUITE("along", scatter_in_place_adds_to_what_is_there,
          running_sums_and_products_go_along_one_dimension,
          a_long_running_sum_is_put_together_from_pieces,
          sort_keeps_equals_in_order_and_puts_NaN_last, gather_and_scatter_follow_their_index,
          an_index_out_of_bounds_is_an_error_at_the_latest_at_the_next_copy,
          products_and_smallest_ones_over_any_dimension,
          long_products_and_smallest_ones_are_cut_into_pieces,
          places_of_what_is_not_zero_come_in_row_major_order,
          many_places_are_put_together_from_pieces,
          complex_numbers_are_put_together_from_their_parts)
