/* SPDX-License-Identifier: MIT
 *
 * sort, on every device. */
#include "tests/backend/types.h"

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

RUN_SUITE("sort", sort_keeps_equals_in_order_and_puts_NaN_last)
