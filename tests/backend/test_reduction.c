/* SPDX-License-Identifier: MIT
 *
 * Reductions on every device, against float64. */
#include "tests/backend/backend.h"

static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
enum { FLOATS = sizeof floats / sizeof *floats };

/* Reduces the dimensions whose bits are set in `gone`. y: the largest elements or the sums; sizes:
 * the sums of absolute values; both row-major. Returns how many there are. */
static int64_t reduce(const double *x, tn_ints shape, unsigned gone, bool largest, double *y,
                      double *sizes)
{
    int64_t results = 1;
    for (int64_t i = 0; i < shape.count; i++)
        if (!(gone >> i & 1))
            results *= shape.at[i];
    for (int64_t k = 0; k < results; k++) {
        y[k] = largest ? -INFINITY : 0;
        sizes[k] = 0;
    }
    for (int64_t e = 0; e < count_of(shape); e++) {
        int64_t rest = e, at = 0, step = 1;
        for (int64_t i = shape.count; i-- > 0;) {
            int64_t index = rest % shape.at[i];
            rest /= shape.at[i];
            if (gone >> i & 1)
                continue;
            at += index * step;
            step *= shape.at[i];
        }
        y[at] = largest ? (x[e] > y[at] ? x[e] : y[at]) : y[at] + x[e];
        sizes[at] += fabs(x[e]);
    }
    return results;
}

static const int64_t sizes_of[][4] = { { 7 },          { 3, 5 },  { 5, 3 }, { 2, 3, 4 },
                                       { 2, 3, 2, 5 }, { 70, 9 }, { 1, 6 }, { 0, 3 } };
static const int64_t dims_of[] = { 1, 2, 2, 3, 4, 2, 2, 2 };

START_TEST(sums_and_maxima_over_every_choice_of_dimensions)
{
    EACH_DEVICE(device)
    for (int t = 0; t < FLOATS; t++) {
        if (!device_has(device, "sum", floats[t]))
            continue;
        for (size_t s = 0; s < sizeof dims_of / sizeof *dims_of; s++)
            for (unsigned gone = 1; gone < 1u << dims_of[s]; gone++)
                for (int layout = 0; layout < LAYOUTS; layout++) {
                    TN_SCOPE;
                    double x[640], y[640], scale[640], most = 0;
                    tn_ints shape = { sizes_of[s], dims_of[s] };
                    int64_t dims[4];
                    tn_sum_options sum = TN_SUM_OPTIONS;
                    tn_amax_options amax = TN_AMAX_OPTIONS;
                    sum.dims = (tn_ints){ dims, 0 };
                    for (int64_t i = 0; i < shape.count; i++)
                        if (gone >> i & 1)
                            dims[sum.dims.count++] = i % 2 ? i - shape.count : i;
                    amax.dims = sum.dims;
                    sum.keepdim = amax.keepdim = gone % 2 == 0;
                    numbers(x, count_of(shape), -3, 3, floats[t]);
                    int64_t results = reduce(x, shape, gone, false, y, scale);
                    for (int64_t k = 0; k < results; k++)
                        most = scale[k] > most ? scale[k] : most;
                    tn_tensor *in = put(device, floats[t], shape, x, (enum layout)layout),
                              *out = tn_sum(in, sum.dims, sum.keepdim);
                    same("sum", device, floats[t], out, y, 4, most);
                    ck_assert_int_eq(tn_tensor_numel(out), results);
                    ck_assert_int_eq(tn_tensor_ndim(out),
                                     sum.keepdim ? shape.count : shape.count - sum.dims.count);
                    if (count_of(shape) == 0)
                        continue;
                    reduce(x, shape, gone, true, y, scale);
                    same("amax", device, floats[t], tn_amax(in, amax.dims, amax.keepdim), y, 0, 0);
                }
    }
    ck_assert_int_gt(checks_made, 2000);
}
END_TEST

START_TEST(integers_and_truth_values_add_up_in_int64)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        if (device_has(device, "sum", TN_I64)) {
            tn_tensor *y = tn_sum(
                put(device, TN_I64, TN_SHAPE(2, 2), NUMBERS(1, 2, 3, -10), REVERSED));
            same("sum", device, TN_I64, y, NUMBERS(-4), 0, 0);
            ck_assert_int_eq(tn_tensor_dtype(y), TN_I64);
        }
        if (device_has(device, "sum", TN_U8)) {
            tn_tensor *y = tn_sum(put(device, TN_U8, TN_SHAPE(3), NUMBERS(200, 200, 200), DENSE));
            same("sum", device, TN_U8, y, NUMBERS(600), 0, 0);
            ck_assert_int_eq(tn_tensor_dtype(y), TN_I64);
        }
        if (device_has(device, "sum", TN_BOOL))
            same("sum", device, TN_BOOL,
                 tn_sum(put(device, TN_BOOL, TN_SHAPE(3), NUMBERS(1, 0, 1), DENSE)), NUMBERS(2), 0,
                 0);
    }
}
END_TEST

START_TEST(argmax_gives_the_first_of_equals_and_NaN_counts_as_largest)
{
    EACH_DEVICE(device)
    for (int layout = 0; layout < LAYOUTS; layout++) {
        TN_SCOPE;
        tn_argmax_options rows = TN_ARGMAX_OPTIONS;
        tn_tensor *x = put(device, TN_F32, TN_SHAPE(3, 4),
                           NUMBERS(1, 7, 7, 2, 5, NAN, 9, NAN, -1, -2, -1, -3),
                           (enum layout)layout);
        rows.dim = 1;
        same("argmax", device, TN_F32, tn_argmax(x, rows.dim, rows.keepdim), NUMBERS(1, 1, 0), 0,
             0);
        rows.dim = -2;
        rows.keepdim = true;
        tn_tensor *columns = tn_argmax(x, rows.dim, rows.keepdim);
        same("argmax", device, TN_F32, columns, NUMBERS(1, 1, 1, 1), 0, 0);
        ck_assert_int_eq(tn_tensor_ndim(columns), 2);
        tn_tensor *flat = tn_argmax(x);
        same("argmax", device, TN_F32, flat, NUMBERS(5), 0, 0);
        ck_assert_int_eq(tn_tensor_dtype(flat), TN_I64);
        same("amax", device, TN_F32, tn_amax(x), NUMBERS(NAN), 0, 0);
        if (device_has(device, "argmax", TN_I64))
            same("argmax", device, TN_I64,
                 tn_argmax(
                     put(device, TN_I64, TN_SHAPE(4), NUMBERS(-5, 3, 3, 2), (enum layout)layout)),
                 NUMBERS(1), 0, 0);
    }
}
END_TEST

START_TEST(the_sum_of_nothing_is_zero_and_its_largest_an_error)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *none = tn_tensor_empty(TN_SHAPE(0, 3), TN_F32, device);
        same("sum", device, TN_F32, tn_sum(none), NUMBERS(0), 0, 0);
        same("sum", device, TN_F32, tn_sum(none, TN_INTS(0)), NUMBERS(0, 0, 0), 0, 0);
        ck_assert_ptr_null(tn_amax(none));
        ck_assert(tn_failed());
        tn_error_clear();
    }
}
END_TEST

START_TEST(long_sums_keep_their_digits_and_do_not_depend_on_threads)
{
    enum { COUNT = 300001 };
    float *x = malloc(COUNT * sizeof *x);
    double exact = 0, *numbers_ = malloc(COUNT * sizeof *numbers_);
    numbers(numbers_, COUNT, 0, 1, TN_F32);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)numbers_[i];
        exact += numbers_[i];
    }
    EACH_DEVICE(device)
    {
        if (strcmp(tn_device_type(device), "strict") == 0)
            continue;
        TN_SCOPE;
        tn_tensor *in = tn_tensor_empty(TN_SHAPE(COUNT), TN_F32, device);
        ok(tn_tensor_copy_in(in, x, COUNT * sizeof *x));
        same("sum", device, TN_F32, tn_sum(in), &exact, 4, 0);
        double first = 0, first_column = 0;
        for (int threads = 1; threads <= 4; threads *= 2) {
            ok(tn_set_num_threads(threads));
            double sum = tn_item(tn_sum(in));
            tn_tensor *table = tn_reshape(tn_narrow(in, 0, 0, 300000), TN_SHAPE(50000, 6));
            double column = tn_item(tn_select(tn_sum(table, TN_INTS(0)), 0, 3));
            if (threads == 1) {
                first = sum;
                first_column = column;
            }
            ck_assert_double_eq(sum, first);
            ck_assert_double_eq(column, first_column);
        }
    }
    free(x);
    free(numbers_);
}
END_TEST

RUN_SUITE("reduction", sums_and_maxima_over_every_choice_of_dimensions,
          integers_and_truth_values_add_up_in_int64,
          argmax_gives_the_first_of_equals_and_NaN_counts_as_largest,
          the_sum_of_nothing_is_zero_and_its_largest_an_error,
          long_sums_keep_their_digits_and_do_not_depend_on_threads)
