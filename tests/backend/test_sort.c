/* SPDX-License-Identifier: MIT
 *
 * sort, kthvalue, median_dim and mode, on every device. */
#include "tests/backend/types.h"

START_TEST(sort_keeps_equals_in_order_and_puts_NaN_last)
{
    EACH_TYPE(device, t, "sort")
    {
        TN_SCOPE;
        tn_tensor *values, *places;
        ok(tn_sort(put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout), &values,
                   &places));
        same("sort", device, types[t], values, NUMBERS(1, 2, 3, 0, 2, 5), 0, 0);
        same("sort", device, types[t], places, NUMBERS(1, 2, 0, 0, 1, 2), 0, 0);
        ok(tn_sort(put(device, types[t], TN_SHAPE(6), x, (enum layout)layout), &values, &places, 0,
                   true));
        same("sort", device, types[t], values, NUMBERS(5, 3, 2, 2, 1, 0), 0, 0);
        same("sort", device, types[t], places, NUMBERS(5, 0, 2, 4, 1, 3), 0, 0);
        if (whole(types[t]))
            continue;
        tn_tensor *odd = put(device, types[t], TN_SHAPE(5), NUMBERS(1, NAN, -INFINITY, NAN, 0),
                             (enum layout)layout);
        ok(tn_sort(odd, &values, &places));
        same("sort", device, types[t], places, NUMBERS(2, 4, 0, 1, 3), 0, 0);
        ok(tn_sort(odd, &values, &places, 0, true));
        same("sort", device, types[t], places, NUMBERS(1, 3, 0, 4, 2), 0, 0);
    }
}
END_TEST

/* Of equal elements, the one with the index that a stable sort gives. */
START_TEST(ranks_are_those_of_a_stable_sort)
{
    EACH_TYPE(device, t, "sort")
    {
        TN_SCOPE;
        tn_tensor *values, *places;
        tn_tensor *in = put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout);
        ok(tn_kthvalue(in, 2, &values, &places));
        same("kthvalue", device, types[t], values, NUMBERS(2, 2), 0, 0);
        same("kthvalue", device, TN_I64, places, NUMBERS(2, 1), 0, 0);
        ok(tn_median_dim(put(device, types[t], TN_SHAPE(6), x, (enum layout)layout), 0, &values,
                         &places));
        same("median_dim", device, types[t], values, NUMBERS(2), 0, 0);
        same("median_dim", device, TN_I64, places, NUMBERS(2), 0, 0);
        ok(tn_mode(put(device, types[t], TN_SHAPE(6), x, (enum layout)layout), &values, &places));
        same("mode", device, types[t], values, NUMBERS(2), 0, 0);
        same("mode", device, TN_I64, places, NUMBERS(4), 0, 0);
        if (whole(types[t]))
            continue;
        tn_tensor *odd = put(device, types[t], TN_SHAPE(6), NUMBERS(4, NAN, -INFINITY, 1, NAN, 4),
                             (enum layout)layout);
        ok(tn_median_dim(odd, 0, &values, &places));
        same("median_dim", device, types[t], values, NUMBERS(NAN), 0, 0);
        same("median_dim", device, TN_I64, places, NUMBERS(1), 0, 0);
        ok(tn_nanmedian_dim(odd, 0, &values, &places));
        same("nanmedian_dim", device, types[t], values, NUMBERS(1), 0, 0);
        same("nanmedian_dim", device, TN_I64, places, NUMBERS(3), 0, 0);
        ok(tn_kthvalue(odd, 4, &values, &places));
        same("kthvalue", device, TN_I64, places, NUMBERS(5), 0, 0);
        ok(tn_kthvalue(odd, 6, &values, &places));
        same("kthvalue", device, TN_I64, places, NUMBERS(4), 0, 0);
    }
}
END_TEST

RUN_SUITE("sort", sort_keeps_equals_in_order_and_puts_NaN_last, ranks_are_those_of_a_stable_sort)
