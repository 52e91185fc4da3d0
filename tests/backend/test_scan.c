/* SPDX-License-Identifier: MIT
 *
 * Running sums and products, on every device. */
#include "tests/backend/types.h"

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

RUN_SUITE("scan", running_sums_and_products_go_along_one_dimension,
          a_long_running_sum_is_put_together_from_pieces)
