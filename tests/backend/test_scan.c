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

/* Products that the dtype cannot hold have a part in gradients that it can. */
START_TEST(small_products_do_not_end_the_gradient)
{
    static const struct {
        tn_dtype dtype;
        double x[4], gy[4], gx[4];
    } rows[] = {
        { TN_F32, { 1e-25, 1e-25, 1e25, 1e25 }, { 1, 1, 1, 1 }, { 1e25, 1e25, 1e-25, 1e-25 } },
        { TN_BF16, { 0x1p-80, 0x1p-80, 0x1p90, 4 }, { 0, 0, 2, 0 }, { 2048, 2048, 0x1p-159, 0 } },
        { TN_F16,
          { 0x1p-10, 0x1p-13, 128, 1 },
          { 0, 0, 1000, 0 },
          { 15.625, 125, 0x1p-23 * 1000 } },
        { TN_F64, { 1e-200, 1e-200, 1e200, 1 }, { 0, 0, 1, 0 }, { 1, 1, 0, 0 } },
    };
    static const int64_t beside[] = { 1, 3, 8, 19 };

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t b = 0; b < sizeof beside / sizeof *beside; b++)
            for (int64_t dim = 0; dim < 2; dim++) {
                TN_SCOPE;
                const tn_device *cpu = tn_device_find("cpu");
                const tn_ints shape = TN_SHAPE(4, beside[b]);
                tn_tensor *part[2], *gx;
                double *got;

                for (int k = 0; k < 2; k++) {
                    part[k] = put(cpu, rows[r].dtype, TN_SHAPE(4, 1), k ? rows[r].x : rows[r].gy,
                                  DENSE);
                    part[k] = tn_copy(tn_expand(part[k], shape));
                    if (dim == 1)
                        part[k] = tn_copy(tn_transpose(part[k], 0, 1));
                }
                gx = tn_cumprod_grad(part[0], part[1], dim);
                got = get(dim == 1 ? tn_transpose(gx, 0, 1) : gx);
                for (int64_t i = 0; i < 4 * beside[b]; i++) {
                    double want = rows[r].gx[i / beside[b]];

                    if (want < 0x1p-133 && rows[r].dtype == TN_BF16)
                        continue; /* subnormal */
                    ck_assert_msg(fabs(got[i] - want) <= 1e-3 * want, "%d: %g, not %g", (int)r,
                                  got[i], want);
                }
            }
}
END_TEST

/* Whatever follows a zero has no part in the gradients before it, and has the gradient 0. */
START_TEST(the_gradient_of_a_running_product_ends_at_a_zero)
{
    EACH_TYPE(device, t, "cumprod")
    {
        TN_SCOPE;
        const double gradient[] = { 1, 2, 1, 1 }, ended[] = { 2, 0, NAN, 3 };
        if (((TN_MASK_FLOAT)&TN_BIT(types[t])) == 0)
            continue;
        tn_tensor *gy = put(device, types[t], TN_SHAPE(4), gradient, (enum layout)layout),
                  *in = put(device, types[t], TN_SHAPE(4), ended, (enum layout)layout);
        same("cumprod_grad", device, types[t], tn_cumprod_grad(gy, in, 0), NUMBERS(1, NAN, 0, 0), 0,
             0);
        same("cumprod_grad", device, types[t],
             tn_cumprod_grad(tn_expand(tn_unsqueeze(gy, 1), TN_SHAPE(4, 3)),
                             tn_expand(tn_unsqueeze(in, 1), TN_SHAPE(4, 3)), 0),
             NUMBERS(1, 1, 1, NAN, NAN, NAN, 0, 0, 0, 0, 0, 0), 0, 0);
    }
    ck_assert_int_gt(checks_made, 10);
}
END_TEST

/* The sums of the products behind an element are beyond float64, the product before it is 0: the
 * gradient is 0, not NaN. */
START_TEST(gradients_of_running_products_do_not_overflow)
{
    enum { ROWS = 9, COUNT = 900 };
    static double factors[ROWS * COUNT], gradient[ROWS * COUNT];
    for (int i = 0; i < ROWS * COUNT; i++) {
        factors[i] = i % COUNT < COUNT / 2 ? 0.125 : 16;
        gradient[i] = 1;
    }
    const tn_device *cpu = tn_device_find("cpu:0");
    for (int64_t dim = 0; dim < 2; dim++) {
        TN_SCOPE;
        tn_tensor *in = put(cpu, TN_F32, TN_SHAPE(ROWS, COUNT), factors, DENSE),
                  *gy = put(cpu, TN_F32, TN_SHAPE(ROWS, COUNT), gradient, DENSE);
        in = dim == 0 ? tn_transpose(in, 0, 1) : in;
        gy = dim == 0 ? tn_transpose(gy, 0, 1) : gy;
        double *got = get(tn_cumprod_grad(gy, in, dim));
        for (int64_t i = 0; i < ROWS * COUNT; i++)
            ck_assert_msg(!isnan(got[i]), "element %lld along %lld", (long long)i, (long long)dim);
    }
}
END_TEST

/* Lines are longer than a chunk, their number is no multiple of those computed together, and some
 * have zeros. */
START_TEST(large_gradients_of_running_products_agree_with_a_loop)
{
    enum { LONG = 700, SHORT = 21, COUNT = LONG * SHORT };
    static double factors[COUNT], gradient[COUNT], slope[2][COUNT];
    for (int i = 0; i < COUNT; i++) {
        factors[i] = i * 7 % 1303 == 0 ? 0 : (i * 37 % 3 - 1) / 16.0 + (i % 5 == 0 ? -1 : 1);
        gradient[i] = (i * 29 % 17) / 4.0 - 2;
    }
    for (int which = 0; which < 2; which++) /* lines of SHORT at a distance of LONG, then rows */
        for (int line = 0; line < (which ? SHORT : LONG); line++) {
            const int n = which ? LONG : SHORT, first = which ? line * LONG : line,
                      step = which ? 1 : LONG;
            double before = 1, behind = 0;
            for (int i = 0; i < n; i++) {
                slope[which][first + i * step] = before;
                before *= factors[first + i * step];
            }
            for (int i = n - 1; i >= 0; i--) {
                slope[which][first + i * step] *= gradient[first + i * step] + behind;
                behind = factors[first + i * step] * (gradient[first + i * step] + behind);
            }
        }
    const tn_device *cpu = tn_device_find("cpu:0");
    static const tn_dtype floats[] = { TN_F64, TN_F32, TN_BF16, TN_F16 };
    for (int64_t dim = 0; dim < 2; dim++)
        for (int t = 0; t < 4; t++)
            for (int layout = DENSE; layout <= EVERY_SECOND; layout++) {
                TN_SCOPE;
                tn_ints shape = TN_SHAPE(SHORT, LONG);
                tn_tensor *in = put(cpu, floats[t], shape, factors, (enum layout)layout),
                          *gy = put(cpu, floats[t], shape, gradient, DENSE);
                same("cumprod_grad", cpu, floats[t], tn_cumprod_grad(gy, in, dim), slope[dim], 3,
                     1);
            }
}
END_TEST

RUN_SUITE("scan", small_products_do_not_end_the_gradient,
          the_gradient_of_a_running_product_ends_at_a_zero,
          gradients_of_running_products_do_not_overflow,
          large_gradients_of_running_products_agree_with_a_loop,
          running_sums_and_products_go_along_one_dimension,
          a_long_running_sum_is_put_together_from_pieces, running_extremes_know_their_places,
          large_running_extremes_and_log_sums_agree_with_a_loop)
