/* SPDX-License-Identifier: MIT
 *
 * searchsorted compared with counting, for rows of all small sizes and many values: the kernel of
 * the cpu searches for several values at once. */
#include "tests/op/suite.h"

enum { ROW = 40, VALUES = 29 };

static int64_t counted(const double *row, int64_t size, double value, bool right)
{
    int64_t n = 0;

    /* The place of NaN is after all elements, also after NaN, for either side. */
    for (int64_t i = 0; i < size; i++)
        if (isnan(value) || (right ? row[i] <= value : row[i] < value))
            n++;
    return n;
}

static void search(tn_dtype dtype, int64_t size, bool right)
{
    TN_SCOPE;
    double row[ROW], values[VALUES];
    bool whole = (TN_MASK_FLOAT & TN_BIT(dtype)) == 0;
    tn_searchsorted_options o = TN_SEARCHSORTED_OPTIONS;

    for (int64_t i = 0; i < size; i++)
        row[i] = whole || i < size - size / 5 ? (double)(i * 3 / 4) - 7 : NAN;
    for (int i = 0; i < VALUES; i++)
        values[i] = i % 9 == 8 && !whole ? NAN : (double)(i * 17 % 38) - 9;
    o.right = right;
    tn_tensor *edges = tn_cast(tn_tensor_from(row, TN_F64, TN_SHAPE(size)), dtype);
    tn_tensor *wanted = tn_cast(tn_tensor_from(values, TN_F64, TN_SHAPE(VALUES)), dtype);
    for (int narrow = 0; narrow < 2; narrow++) {
        int64_t found[VALUES];
        o.out_int32 = narrow;
        tn_tensor *y = tn_searchsorted(edges, wanted, TN_NONE, o.out_int32, o.right);
        ck_assert_msg(y != NULL, "%s", tn_error_text());
        ck_assert_int_eq(tn_tensor_dtype(y), narrow ? TN_I32 : TN_I64);
        ck_assert_int_eq(tn_tensor_copy_out(tn_cast(y, TN_I64), found, sizeof found), TN_OK);
        for (int i = 0; i < VALUES; i++)
            ck_assert_msg(found[i] == counted(row, size, values[i], right),
                          "%s, %d elements, right %d: %g is at %d", tn_dtype_name(dtype), (int)size,
                          (int)right, values[i], (int)found[i]);
    }
}

START_TEST(a_search_counts_the_elements_before_a_value)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_I32, TN_I64 };

    for (int d = 0; d < 4; d++)
        for (int64_t size = 0; size <= ROW; size++)
            for (int right = 0; right < 2; right++)
                search(dtypes[d], size, right);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("search");
    TCase *tests = tcase_create("search");

    tcase_add_test(tests, a_search_counts_the_elements_before_a_value);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
