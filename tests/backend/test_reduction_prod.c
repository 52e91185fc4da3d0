/* SPDX-License-Identifier: MIT
 *
 * prod, amin and argmin, on every device. */
#include "tests/backend/types.h"

START_TEST(products_and_smallest_ones_over_any_dimension)
{
    EACH_TYPE(device, t, "amin")
    {
        TN_SCOPE;
        static const int64_t one[] = { 1 }, zero[] = { 0 };
        tn_prod_options prod = TN_PROD_OPTIONS;
        tn_amin_options amin = TN_AMIN_OPTIONS;
        tn_tensor *in = put(device, types[t], TN_SHAPE(2, 3), x, (enum layout)layout);
        prod.dims = amin.dims = (tn_ints){ one, 1 };
        same("prod", device, types[t], tn_prod(in, prod.dims), NUMBERS(6, 0), 0, 0);
        same("prod", device, types[t], tn_prod(in), NUMBERS(0), 0, 0);
        same("amin", device, types[t], tn_amin(in, amin.dims), NUMBERS(1, 0), 0, 0);
        same("amin", device, types[t], tn_amin(in), NUMBERS(0), 0, 0);
        same("argmin", device, types[t], tn_argmin(in, 1), NUMBERS(1, 0), 0, 0);
        same("argmin", device, types[t], tn_argmin(in), NUMBERS(3), 0, 0);
        prod.dims = (tn_ints){ zero, 1 };
        same("prod", device, types[t], tn_prod(in, prod.dims), NUMBERS(0, 2, 10), 0, 0);
        same("prod", device, types[t], tn_prod(put(device, types[t], TN_SHAPE(0), x, DENSE)),
             NUMBERS(1), 0, 0);
        if (whole(types[t]))
            continue;
        tn_tensor *odd = put(device, types[t], TN_SHAPE(3), NUMBERS(1, NAN, -INFINITY), DENSE);
        same("amin", device, types[t], tn_amin(odd), NUMBERS(NAN), 0, 0);
        same("argmin", device, types[t], tn_argmin(odd), NUMBERS(1), 0, 0);
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
        same("prod", device, TN_F32, tn_prod(in), NUMBERS(-2), 0, 0);
        same("amin", device, TN_F32, tn_amin(in), NUMBERS(-4), 0, 0);
        same("argmin", device, TN_F32, tn_argmin(in), NUMBERS(65000), 0, 0);
    }
    free(numbers);
}
END_TEST

/* Partial products may leave the range of float64 for a while, and large factors may follow small
 * ones. */
START_TEST(products_of_float64_keep_what_is_below_its_range)
{
    enum { COUNT = 16384, LANES = 32, STEPS = 16 };
    const tn_device *cpu = tn_device_find("cpu:0");
    double *numbers = malloc(COUNT * sizeof *numbers);
    TN_SCOPE;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i < COUNT / 2 ? 0x1p-7 : 0x1p7;
    numbers[3] *= -5;
    tn_tensor *in = put(cpu, TN_F64, TN_SHAPE(COUNT), numbers, DENSE);
    same("prod", cpu, TN_F64, tn_prod(in), NUMBERS(-5), 0, 0);

    for (int i = 0; i < COUNT; i++)
        numbers[i] = i / LANES % 2 ? 0.5 : 2;
    numbers[LANES * (STEPS - 1)] = 0x1p-950;
    numbers[LANES * STEPS] = numbers[LANES * (STEPS + 1)] = 0x1p900;
    in = put(cpu, TN_F64, TN_SHAPE(COUNT), numbers, DENSE);
    same("prod", cpu, TN_F64, tn_prod(in), NUMBERS(0x1p851), 0, 0);

    numbers[COUNT - 1] = INFINITY;
    in = put(cpu, TN_F64, TN_SHAPE(COUNT), numbers, DENSE);
    same("prod", cpu, TN_F64, tn_prod(in), NUMBERS(INFINITY), 0, 0);
    numbers[7] = 0;
    in = put(cpu, TN_F64, TN_SHAPE(COUNT), numbers, DENSE);
    same("prod", cpu, TN_F64, tn_prod(in), NUMBERS(NAN), 0, 0);

    for (int i = 0; i < COUNT; i++)
        numbers[i] = i % LANES == 1 && i < 64 * LANES ? 0x1p-17 : 1;
    in = put(cpu, TN_F64, TN_SHAPE(COUNT), numbers, DENSE);
    same("prod", cpu, TN_F64, tn_prod(in), NUMBERS(0), 0, 0);
    numbers[LANES + 1] = 0x1p17;
    in = put(cpu, TN_F64, TN_SHAPE(COUNT), numbers, DENSE);
    same("prod", cpu, TN_F64, tn_prod(in), NUMBERS(0x1p-1054), 0, 0);
    free(numbers);
}
END_TEST

RUN_SUITE("reduction_prod", products_of_float64_keep_what_is_below_its_range,
          products_and_smallest_ones_over_any_dimension,
          long_products_and_smallest_ones_are_cut_into_pieces)
