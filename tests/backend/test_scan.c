/* SPDX-License-Identifier: MIT
 *
 * Running sums, products and extremes, on every device. */
#include "tests/backend/types.h"

START_TEST(running_sums_and_products_go_along_one_dimension)
{
    EACH_TYPE(device, t, "cumsum")
    {
        TN_SCOPE;
        tn_tensor *in = put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout);
        same("cumsum", device, types[t], tn_cumsum(in, 1), NUMBERS(3, 4, 6, 0, 2, 7), 0, 0);
        same("cumsum", device, types[t], tn_cumsum(in, -2), NUMBERS(3, 1, 2, 3, 3, 7), 0, 0);
        same("cumsum", device, types[t], tn_cumsum(in, 1, true), NUMBERS(6, 3, 2, 7, 7, 5), 0, 0);
        same("cumprod", device, types[t], tn_cumprod(in, 1), NUMBERS(3, 3, 6, 0, 0, 0), 0, 0);
        same("cumprod", device, types[t], tn_cumprod(in, 0), NUMBERS(3, 1, 2, 0, 2, 10), 0, 0);
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
        same("cumsum", device, TN_F32, tn_cumsum(in, 0), sums, 0, 0);
    }
}
END_TEST

/* No line has two equal extremes here. */
START_TEST(running_extremes_know_their_places)
{
    EACH_TYPE(device, t, "cumsum")
    {
        TN_SCOPE;
        tn_tensor *values, *places;
        tn_tensor *in = put(device, types[t], TN_SHAPE(6), x, (enum layout)layout);
        ok(tn_cummax(in, 0, &values, &places));
        same("cummax", device, types[t], values, NUMBERS(3, 3, 3, 3, 3, 5), 0, 0);
        same("cummax", device, TN_I64, places, NUMBERS(0, 0, 0, 0, 0, 5), 0, 0);
        ok(tn_cummin(in, -1, &values, &places));
        same("cummin", device, types[t], values, NUMBERS(3, 1, 1, 0, 0, 0), 0, 0);
        same("cummin", device, TN_I64, places, NUMBERS(0, 1, 1, 3, 3, 3), 0, 0);
        in = put(device, types[t], TN_SHAPE(3, 2), x, (enum layout)layout);
        ok(tn_cummax(in, 0, &values, &places));
        same("cummax", device, types[t], values, NUMBERS(3, 1, 3, 1, 3, 5), 0, 0);
        same("cummax", device, TN_I64, places, NUMBERS(0, 0, 0, 0, 0, 2), 0, 0);
    }
}
END_TEST

/* More lines than one thread computes, with the dimension last and first. Of equal extremes the
 * index is that of the last one. */
START_TEST(large_running_extremes_and_log_sums_agree_with_a_loop)
{
    enum { ROWS = 300, COLUMNS = 700, COUNT = ROWS * COLUMNS };
    static double numbers[COUNT], most[2][COUNT], at[2][COUNT], sums[2][COUNT];
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (i * 37 % 101) / 4.0 - 12;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < COUNT; i++) {
            int row = i / COLUMNS, column = i % COLUMNS, n = which ? column : row;
            int before = i - (which ? 1 : COLUMNS);
            bool new = n == 0 || numbers[i] >= most[which][before];
            most[which][i] = new ? numbers[i] : most[which][before];
            at[which][i] = new ? n : at[which][before];
            sums[which][i] = n == 0 ? numbers[i] : log(exp(sums[which][before]) + exp(numbers[i]));
        }
    const tn_device *cpu = tn_device_find("cpu:0");
    for (int64_t dim = 0; dim < 2; dim++) {
        TN_SCOPE;
        tn_tensor *in = put(cpu, TN_F64, TN_SHAPE(ROWS, COLUMNS), numbers, DENSE);
        tn_tensor *values, *places;
        ok(tn_cummax(in, dim, &values, &places));
        same("cummax", cpu, TN_F64, values, most[dim], 0, 0);
        same("cummax", cpu, TN_I64, places, at[dim], 0, 0);
        same("logcumsumexp", cpu, TN_F64, tn_logcumsumexp(in, dim), sums[dim], 200, 1);
    }
}
END_TEST

RUN_SUITE("scan", running_sums_and_products_go_along_one_dimension,
          a_long_running_sum_is_put_together_from_pieces, running_extremes_know_their_places,
          large_running_extremes_and_log_sums_agree_with_a_loop)
