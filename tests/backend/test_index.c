/* SPDX-License-Identifier: MIT
 *
 * gather, scatter, nonzero and several indices, on every device. */
#include "tests/backend/types.h"

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

START_TEST(int32_indices_give_the_same_values_and_gradients_as_int64)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *in = put(device, TN_F32, TN_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6), DENSE);
        tn_tensor *at = put(device, TN_I32, TN_SHAPE(2, 2), NUMBERS(2, 2, 0, 1), REVERSED);
        tn_tensor *row = put(device, TN_I32, TN_SHAPE(2), NUMBERS(1, 1), DENSE);
        tn_tensor *src = put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(7, 8, 9, 4), DENSE);

        same("gather", device, TN_F32, tn_gather(in, at, 1), NUMBERS(3, 3, 4, 5), 0, 0);
        same("scatter", device, TN_F32, tn_scatter(in, at, src, 1), NUMBERS(1, 2, 8, 9, 4, 6), 0,
             0);
        same("scatter_add", device, TN_F32, tn_scatter_add(in, at, src, 1),
             NUMBERS(1, 2, 18, 13, 9, 6), 0, 0);
        same("index_select", device, TN_F32, tn_index_select(in, row, 0), NUMBERS(4, 5, 6, 4, 5, 6),
             0, 0);
        same("index_add", device, TN_F32, tn_index_add(in, row, in, 0), NUMBERS(1, 2, 3, 9, 12, 15),
             0, 0);
        same("index_put", device, TN_F32,
             tn_index_put(in, put(device, TN_F32, TN_SHAPE(), NUMBERS(9), DENSE), &row, 1),
             NUMBERS(1, 2, 3, 9, 9, 9), 0, 0);
        there(tn_scatter_add_(in, at, src, 1));
        same("scatter_add_", device, TN_F32, in, NUMBERS(1, 2, 18, 13, 9, 6), 0, 0);
        if (strcmp(tn_device_type(device), "strict") == 0)
            continue; /* the strict device has no kernels for the operators of these derivatives */
        in = put(device, TN_F32, TN_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6), DENSE);
        ck_assert_int_eq(tn_tensor_set_requires_grad(in, true), TN_OK);
        ck_assert_int_eq(tn_backward(tn_sum(tn_embedding(in, row))), TN_OK);
        same("embedding, gradient", device, TN_F32, tn_tensor_grad(in), NUMBERS(0, 0, 0, 2, 2, 2),
             0, 0);
        ck_assert_int_eq(tn_backward(tn_sum(tn_gather(in, at, 1))), TN_OK);
        same("gather, gradient", device, TN_F32, tn_tensor_grad(in), NUMBERS(0, 0, 2, 3, 3, 2), 0,
             0);
    }
}
END_TEST

/* The first NaN of a place stays, whether it was there or comes; of two equal numbers either. */
START_TEST(scattered_extremes_are_nan_if_an_operand_is)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *in = put(device, TN_F32, TN_SHAPE(4), NUMBERS(1, NAN, -INFINITY, 5), DENSE);
        tn_tensor *from = put(device, TN_F32, TN_SHAPE(6), NUMBERS(2, 3, 0, NAN, 7, -1), DENSE);
        tn_tensor *at = put(device, TN_I64, TN_SHAPE(6), NUMBERS(0, 1, 2, 3, 3, 2), DENSE);

        same("scatter_reduce", device, TN_F32, tn_scatter_reduce(in, at, from, 0, "amax"),
             NUMBERS(2, NAN, 0, NAN), 0, 0);
        same("scatter_reduce", device, TN_F32, tn_scatter_reduce(in, at, from, 0, "amin"),
             NUMBERS(1, NAN, -INFINITY, NAN), 0, 0);
        same("scatter_reduce", device, TN_F32, tn_scatter_reduce(in, at, from, 0, "amin", false),
             NUMBERS(2, 3, -1, NAN), 0, 0);
    }
}
END_TEST

/* Reads a tensor, because some devices report an index out of range only then. */
static tn_status reading(tn_tensor *y)
{
    double found[8];

    return y == NULL ? tn_error_code()
                     : tn_tensor_copy_out(y, found, (size_t)tn_tensor_numel(y) * sizeof *found);
}

START_TEST(several_indices_and_masks_are_written_in_place)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *y = put(device, TN_F32, TN_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6), DENSE);
        tn_tensor *src = put(device, TN_F32, TN_SHAPE(2), NUMBERS(10, 20), DENSE);
        tn_tensor *at = put(device, TN_I64, TN_SHAPE(2), NUMBERS(-1, -1), DENSE);
        tn_tensor *mask = put(device, TN_BOOL, TN_SHAPE(3), NUMBERS(1, 0, 1), DENSE);
        tn_tensor *both[2] = { put(device, TN_I64, TN_SHAPE(), NUMBERS(1), DENSE), at };

        ck_assert_ptr_eq(tn_index_put_(y, src, both, 2, true), y);
        same("index_put_", device, TN_F32, y, NUMBERS(1, 2, 3, 4, 5, 36), 0, 0);
        ck_assert_ptr_eq(tn_index_put_(y, src, &mask, 1, false, TN_INTS(1)), y);
        same("index_put_", device, TN_F32, y, NUMBERS(10, 2, 20, 10, 5, 20), 0, 0);
        ck_assert_ptr_eq(tn_index_put_(y, tn_narrow(src, 0, 0, 1), &mask, 1, true, TN_INTS(1)), y);
        same("index_put_", device, TN_F32, y, NUMBERS(20, 2, 30, 20, 5, 30), 0, 0);
        same("index", device, TN_F32, tn_index(y, both, 2), NUMBERS(30, 30), 0, 0);
    }
}
END_TEST

START_TEST(an_error_names_the_index_its_dimension_and_size)
{
    static const struct {
        double first, second;
        int n;
        const char *words;
    } wrong[] = {
        { 0, 3, 2, "index 3 is out of bounds for dimension 1 with size 3" },
        { 0, -4, 2, "index -4 is out of bounds for dimension 1 with size 3" },
        { -3, 0, 2, "index -3 is out of bounds for dimension 0 with size 2" },
        { 7, 0, 1, "index 7 is out of bounds for dimension 0 with size 2" },
    };

    EACH_DEVICE(device)
    for (size_t i = 0; i < 2 * sizeof wrong / sizeof wrong[0]; i++) {
        TN_SCOPE;
        tn_tensor *in = put(device, TN_F64, TN_SHAPE(2, 3), x, DENSE);
        tn_tensor *at[2] = { put(device, TN_I64, TN_SHAPE(1), &wrong[i / 2].first, DENSE),
                             put(device, TN_I64, TN_SHAPE(1), &wrong[i / 2].second, DENSE) };
        tn_tensor *one = put(device, TN_F64, TN_SHAPE(1), x, DENSE);
        tn_tensor *y = i % 2 == 0 ? tn_index(in, at, wrong[i / 2].n)
                                  : tn_index_put(in, one, at, wrong[i / 2].n);

        ck_assert_int_eq(reading(y), TN_ERR_INDEX);
        ck_assert_msg(strstr(tn_error_last()->message, wrong[i / 2].words) != NULL, "%s: %s",
                      tn_device_name(device), tn_error_last()->message);
        tn_error_clear();
    }
}
END_TEST

START_TEST(targets_of_classes_may_be_uint8)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *in = put(device, TN_F32, TN_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6), DENSE);
        tn_tensor *target = put(device, TN_U8, TN_SHAPE(2), NUMBERS(2, 0), DENSE);

        same("cross_entropy", device, TN_F32, tn_cross_entropy(tn_mul_scalar(in, 0), target),
             NUMBERS(1.0986122886681098), 8, 0);
        ck_assert_ptr_null(tn_gather(in, tn_reshape(target, TN_SHAPE(2, 1)), 1));
        ck_assert_int_eq(tn_error_code(), TN_ERR_TYPE);
        ck_assert_msg(strstr(tn_error_last()->message, "expected one of int32 int64") != NULL, "%s",
                      tn_error_last()->message);
        tn_error_clear();
    }
}
END_TEST

RUN_SUITE("index", int32_indices_give_the_same_values_and_gradients_as_int64,
          targets_of_classes_may_be_uint8, scattered_extremes_are_nan_if_an_operand_is,
          scatter_in_place_adds_to_what_is_there, gather_and_scatter_follow_their_index,
          an_index_out_of_bounds_is_an_error_at_the_latest_at_the_next_copy,
          places_of_what_is_not_zero_come_in_row_major_order,
          several_indices_and_masks_are_written_in_place,
          an_error_names_the_index_its_dimension_and_size, many_places_are_put_together_from_pieces)
