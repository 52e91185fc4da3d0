/* SPDX-License-Identifier: MIT
 *
 * Copies between layouts, types and devices, filling, and the meta device. */
#include "tests/backend/backend.h"

static const tn_dtype plain[] = { TN_BOOL, TN_U8,  TN_I8,   TN_I16, TN_I32,
                                  TN_I64,  TN_F16, TN_BF16, TN_F32, TN_F64 };
enum { PLAIN = sizeof plain / sizeof *plain };

/* What a number becomes on its way from one type to another. */
static double converted(double x, tn_dtype from, tn_dtype to)
{
    double value = stored(x, from);
    return stored(to == TN_BOOL || epsilon(to) > 0 ? value : trunc(value), to);
}

START_TEST(numbers_go_from_every_type_to_every_other_in_every_layout)
{
    static const double values[] = {
        0, 1, 2.5, 100.75, 0.125, 3, 127, 64, 0.0009765625, 17, 5.5, 99
    };
    EACH_DEVICE(device)
    for (int a = 0; a < PLAIN; a++)
        for (int b = 0; b < PLAIN; b++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                TN_SCOPE;
                double x[12], y[12];
                for (int i = 0; i < 12; i++) {
                    x[i] = stored(values[i], plain[a]);
                    y[i] = converted(values[i], plain[a], plain[b]);
                }
                if (!device_has(device, "copy", plain[b]))
                    continue;
                tn_tensor *from = put(device, plain[a], TN_SHAPE(3, 4), x, (enum layout)layout);
                tn_tensor *out = tn_cast(from, plain[b]);
                if (out == NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED) {
                    tn_error_clear(); /* a type that this device does not hold in arithmetic */
                    continue;
                }
                same("cast", device, plain[b], out, y, 0, 0);
                ck_assert_int_eq(tn_tensor_dtype(out), plain[b]);
            }
    ck_assert_int_gt(checks_made, 3000);
}
END_TEST

START_TEST(a_complex_number_is_true_unless_both_parts_are_0)
{
    static const tn_dtype parts[] = { TN_F32, TN_F64 };
    int checked = 0;

    EACH_DEVICE(device)
    for (int k = 0; k < 2; k++) {
        TN_SCOPE;
        const double wanted[] = { 0, 1, 1, 1, 1, 0 };
        tn_tensor *re = put(device, parts[k], TN_SHAPE(6), NUMBERS(0, 1, 0, -2, 0, -0.0), DENSE);
        tn_tensor *im = put(device, parts[k], TN_SHAPE(6), NUMBERS(0, 0, 1, 3, NAN, 0), DENSE);
        tn_tensor *z = tn_complex(re, im), *out = z != NULL ? tn_cast(z, TN_BOOL) : NULL;

        if (out == NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED) {
            tn_error_clear(); /* no complex numbers on this device */
            continue;
        }
        same("cast to bool", device, TN_BOOL, out, wanted, 0, 0);
        same("cast to bool of every second", device, TN_BOOL,
             tn_cast(tn_slice(z, 0, 0, 6, 2), TN_BOOL), NUMBERS(0, 1, 1), 0, 0);
        same("logical_not", device, TN_BOOL, tn_logical_not(z), NUMBERS(1, 0, 0, 0, 0, 1), 0, 0);
        same("copy_", device, TN_BOOL, tn_copy_(tn_cast(re, TN_BOOL), z), wanted, 0, 0);
        same("any", device, TN_BOOL, tn_any(tn_slice(z, 0, 2, 3)), NUMBERS(1), 0, 0);
        same("all", device, TN_BOOL, tn_all(tn_slice(z, 0, 1, 5)), NUMBERS(1), 0, 0);
        same("all", device, TN_BOOL, tn_all(z), NUMBERS(0), 0, 0);
        checked++;
    }
    ck_assert_int_ge(checked, 2);
}
END_TEST

START_TEST(of_a_complex_number_other_types_get_the_real_part)
{
    static const tn_dtype parts[] = { TN_F32, TN_F64 };
    int checked = 0;

    EACH_DEVICE(device)
    for (int k = 0; k < 2; k++)
        for (int b = 1; b < PLAIN; b++) {
            TN_SCOPE;
            const double x[] = { 0, 1, 2.5, 100.75, 3, 99 };
            double y[6];
            tn_tensor *re = put(device, parts[k], TN_SHAPE(6), x, DENSE);
            tn_tensor *im = put(device, parts[k], TN_SHAPE(6), NUMBERS(1, 0, 7, -3, 9, 2), DENSE);
            tn_tensor *z = tn_complex(re, im), *out = z != NULL ? tn_cast(z, plain[b]) : NULL;

            if (out == NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED) {
                tn_error_clear();
                continue;
            }
            for (int i = 0; i < 6; i++)
                y[i] = converted(x[i], parts[k], plain[b]);
            same("cast", device, plain[b], out, y, 0, 0);
            checked++;
        }
    ck_assert_int_ge(checked, 2 * (PLAIN - 1));
}
END_TEST

START_TEST(negative_numbers_wrap_around_in_unsigned_types)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        if (!device_has(device, "copy", TN_U8))
            continue;
        tn_tensor *x = put(device, TN_I32, TN_SHAPE(3), NUMBERS(-1, 256, -129), DENSE);
        same("cast", device, TN_U8, tn_cast(x, TN_U8), NUMBERS(255, 0, 127), 0, 0);
        same("cast", device, TN_I8, tn_cast(x, TN_I8), NUMBERS(-1, 0, 127), 0, 0);
    }
}
END_TEST

START_TEST(copying_into_a_tensor_converts_and_broadcasts)
{
    EACH_DEVICE(device)
    for (int layout = 0; layout < LAYOUTS; layout++) {
        TN_SCOPE;
        tn_tensor *to = put(device, TN_F32, TN_SHAPE(2, 3), NUMBERS(9, 9, 9, 9, 9, 9),
                            (enum layout)layout);
        tn_tensor *from = put(device, TN_F64, TN_SHAPE(3), NUMBERS(1, 2, 3), EVERY_SECOND);
        same("copy_", device, TN_F32, tn_copy_(to, from), NUMBERS(1, 2, 3, 1, 2, 3), 0, 0);
        same("fill_", device, TN_F32, tn_fill_(to, -2.5),
             NUMBERS(-2.5, -2.5, -2.5, -2.5, -2.5, -2.5), 0, 0);
    }
}
END_TEST

START_TEST(writing_into_part_of_a_tensor_leaves_the_rest)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *whole = put(device, TN_F32, TN_SHAPE(3, 4), (double[12]){ 0 }, DENSE);
        tn_tensor *part = tn_transpose(tn_narrow(tn_narrow(whole, 0, 1, 2), 1, 1, 2), 0, 1);
        tn_copy_(part, put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(1, 2, 3, 4), REVERSED));
        same("whole", device, TN_F32, whole, NUMBERS(0, 0, 0, 0, 0, 1, 3, 0, 0, 2, 4, 0), 0, 0);
    }
}
END_TEST

START_TEST(every_type_is_stored_and_moved_between_all_devices)
{
    static const uint8_t bytes[6 * 16] = { 0, 1, 1, 0,  1, 1,  7,   200, 255, 3,
                                           4, 5, 6, 60, 0, 63, 128, 9,   8,   7 };
    EACH_DEVICE(from)
    {
        for (const tn_device *const *at = devices(); *at; at++)
            for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
                uint8_t back[6 * 16] = { 0 };
                size_t size = 6 * tn_dtype_size((tn_dtype)dtype);
                TN_SCOPE;
                tn_tensor *x = tn_tensor_empty(TN_SHAPE(2, 3), (tn_dtype)dtype, from);
                tn_tensor *y = tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(1, 2),
                                                       (tn_dtype)dtype, *at);
                ok(tn_tensor_copy_in(x, bytes, size));
                ck_assert_msg(tn_copy_(y, x) != NULL, "%s from %s to %s: %s",
                              tn_dtype_name((tn_dtype)dtype), tn_device_name(from),
                              tn_device_name(*at), tn_error_text());
                ok(tn_tensor_copy_out(y, back, size));
                if (dtype == TN_BOOL) /* a truth value is 0 or 1 */
                    ck_assert_mem_eq(back, ((uint8_t[]){ 0, 1, 1, 0, 1, 1 }), 6);
                else
                    ck_assert_mem_eq(back, bytes, size);
            }
    }
}
END_TEST

/* All devices, also the second one of each type: copies between two devices of a type use
 * other code. */
static int with_seconds(const tn_device **all)
{
    int count = 0;
    EACH_DEVICE(device)
    {
        char name[64];
        uint64_t mark = tn_error_mark();
        all[count++] = device;
        snprintf(name, sizeof name, "%s:1", tn_device_type(device));
        const tn_device *second = tn_device_find(name);
        if (second != NULL)
            all[count++] = second;
        tn_error_restore(mark);
    }
    return count;
}

/* Work that was queued on both devices before the copy is done before it, and work that is queued
 * later is done after it, no matter for which device the test waits first. */
static void copy_among_work(const tn_device *to, const tn_device *from, tn_dtype dtype,
                            bool source_first)
{
    TN_SCOPE;
    tn_tensor *x = put(to, TN_F32, TN_SHAPE(3), NUMBERS(1, 1, 1), DENSE);
    tn_tensor *two = put(from, dtype, TN_SHAPE(3), NUMBERS(2, 2, 2), DENSE);
    tn_tensor *four = tn_add(two, two), *before = tn_add_scalar(x, 10), *after, *last, *reused;
    there(tn_copy_(x, four));
    after = tn_add_scalar(x, 100);
    there(tn_fill_(four, -1));
    there(last = tn_add_scalar(four, -1));
    there(tn_fill_(x, 7));
    there(reused = tn_mul_scalar(x, 2));
    if (source_first)
        same("the source", from, dtype, last, NUMBERS(-2, -2, -2), 0, 0);
    same("before the copy", to, TN_F32, before, NUMBERS(11, 11, 11), 0, 0);
    same("after the copy", to, TN_F32, after, NUMBERS(104, 104, 104), 0, 0);
    same("later", to, TN_F32, reused, NUMBERS(14, 14, 14), 0, 0);
    same("the source", from, dtype, last, NUMBERS(-2, -2, -2), 0, 0);
}

START_TEST(a_copy_between_devices_comes_after_earlier_work_and_before_later_work_of_both)
{
    const tn_device *all[16];
    int count = with_seconds(all);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            for (int how = 0; how < 4; how++) {
                tn_dtype dtype = how & 1 ? TN_F64 : TN_F32;
                if (device_has(all[k], "add", dtype) && device_has(all[i], "add", TN_F32))
                    copy_among_work(all[i], all[k], dtype, how & 2);
            }
    ck_assert_int_ge(checks_made, 4 * 4);
}
END_TEST

static uint8_t e4m3(float x)
{
    uint8_t bits = 0;
    const tn_device *cpu = tn_device_find("cpu");
    TN_SCOPE;
    tn_tensor *in = tn_tensor_full(TN_SHAPE(1), x, TN_F32, cpu);
    ok(tn_tensor_copy_out(tn_cast(in, TN_F8_E4M3), &bits, 1));
    return bits;
}

static uint8_t e5m2(float x)
{
    uint8_t bits = 0;
    const tn_device *cpu = tn_device_find("cpu");
    TN_SCOPE;
    tn_tensor *in = tn_tensor_full(TN_SHAPE(1), x, TN_F32, cpu);
    ok(tn_tensor_copy_out(tn_cast(in, TN_F8_E5M2), &bits, 1));
    return bits;
}

/* As PyTorch 2.15 has them. */
START_TEST(float8_rounds_to_even_and_saturates_or_overflows)
{
    ck_assert_int_eq(e4m3(1), 0x38);
    ck_assert_int_eq(e4m3(-1.0625f), 0xb8); /* a tie: to the even one */
    ck_assert_int_eq(e4m3(448), 0x7e);
    ck_assert_int_eq(e4m3(1e9f), 0x7e);
    ck_assert_int_eq(e4m3(NAN) & 0x7f, 0x7f);
    ck_assert_int_eq(e4m3(0x1p-9f), 0x01);
    ck_assert_int_eq(e4m3(0x1p-10f), 0x00);
    ck_assert_int_eq(e5m2(1), 0x3c);
    ck_assert_int_eq(e5m2(57344), 0x7b);
    ck_assert_int_eq(e5m2(61440), 0x7c);
    ck_assert_int_eq(e5m2(0x1p-16f), 0x01);
    const tn_device *cpu = tn_device_find("cpu");
    TN_SCOPE;
    for (int bits = 0; bits < 256; bits++) { /* there and back */
        uint8_t byte = (uint8_t)bits, back;
        if ((bits & 0x7f) == 0x7f || (bits & 0x7f) > 0x7c)
            continue;
        for (int dtype = TN_F8_E4M3; dtype <= TN_F8_E5M2; dtype++) {
            tn_tensor *x = tn_tensor_empty(TN_SHAPE(1), (tn_dtype)dtype, cpu);
            ok(tn_tensor_copy_in(x, &byte, 1));
            ok(tn_tensor_copy_out(tn_cast(tn_cast(x, TN_F32), (tn_dtype)dtype), &back, 1));
            ck_assert_int_eq(back, byte);
        }
    }
}
END_TEST

START_TEST(complex_numbers_give_their_real_part_and_take_zero)
{
    static const double values[] = { 1.5, -2.5, 3, 4 };
    const tn_device *cpu = tn_device_find("cpu");
    TN_SCOPE;
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(2), TN_C128, cpu);
    ok(tn_tensor_copy_in(x, values, sizeof values));
    same("cast", cpu, TN_F32, tn_cast(x, TN_F32), NUMBERS(1.5, 3), 0, 0);
    same("cast", cpu, TN_I32, tn_cast(x, TN_I32), NUMBERS(1, 3), 0, 0);
    float back[4];
    ok(tn_tensor_copy_out(tn_cast(tn_cast(x, TN_C64), TN_C64), back, sizeof back));
    ck_assert_float_eq(back[1], -2.5f);
    ok(tn_tensor_copy_out(tn_cast(put(cpu, TN_I64, TN_SHAPE(2), NUMBERS(7, 8), DENSE), TN_C64),
                          back, sizeof back));
    ck_assert_float_eq(back[0], 7);
    ck_assert_float_eq(back[1], 0);
}
END_TEST

/* ---- meta ------------------------------------------------------------------------------------ */

START_TEST(meta_infers_what_the_cpu_computes)
{
    const tn_device *meta = tn_device_find("meta"), *cpu = tn_device_find("cpu");
    there(meta);
    ck_assert(!tn_device_has_memory(meta));
    TN_SCOPE;
    tn_tensor *results[2][8];
    for (int i = 0; i < 2; i++) {
        const tn_device *device = i ? meta : cpu;
        tn_tensor *x = tn_tensor_full(TN_SHAPE(4, 3), 1, TN_F32, device);
        tn_tensor *w = tn_tensor_full(TN_SHAPE(5, 3), 1, TN_F32, device);
        tn_tensor *n = tn_tensor_full(TN_SHAPE(4), 1, TN_I64, device);
        tn_tensor *y = tn_linear(x, w, TN_NONE);
        results[i][0] = y;
        results[i][1] = tn_add(x, n ? tn_tensor_full(TN_SHAPE(3), 2, TN_I64, device) : NULL);
        results[i][2] = tn_sum(x);
        results[i][3] = tn_argmax(x);
        results[i][4] = tn_cross_entropy(y, n);
        results[i][5] = tn_reshape(tn_transpose(x, 0, 1), TN_SHAPE(2, 6));
        results[i][6] = tn_cast(x, TN_BF16);
        results[i][7] = tn_log_softmax(x, 1);
    }
    for (int k = 0; k < 8; k++) {
        ck_assert_msg(results[0][k] && results[1][k], "%d: %s", k, tn_error_text());
        tn_ints a = tn_tensor_shape(results[0][k]), b = tn_tensor_shape(results[1][k]);
        ck_assert_int_eq(a.count, b.count);
        if (a.count > 0)
            ck_assert_mem_eq(a.at, b.at, (size_t)a.count * sizeof *a.at);
        ck_assert_int_eq(tn_tensor_dtype(results[0][k]), tn_tensor_dtype(results[1][k]));
        ck_assert_ptr_eq(tn_tensor_device(results[1][k]), meta);
    }
}
END_TEST

START_TEST(meta_has_no_values_and_says_so)
{
    float value;
    TN_SCOPE;
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(1), TN_F32, tn_device_find("meta"));
    ck_assert_int_ne(tn_tensor_copy_out(x, &value, sizeof value), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "meta"));
    tn_error_clear();
    ck_assert(isnan(tn_item(x)));
    ck_assert(tn_failed());
    tn_error_clear();
    /* a network of any size costs nothing there */
    tn_tensor *large = tn_tensor_empty(TN_SHAPE(1000000, 1000000), TN_F32, tn_device_find("meta"));
    there(tn_matmul(large, large));
}
END_TEST

RUN_SUITE("copy", numbers_go_from_every_type_to_every_other_in_every_layout,
          a_complex_number_is_true_unless_both_parts_are_0,
          of_a_complex_number_other_types_get_the_real_part,
          negative_numbers_wrap_around_in_unsigned_types,
          copying_into_a_tensor_converts_and_broadcasts,
          writing_into_part_of_a_tensor_leaves_the_rest,
          every_type_is_stored_and_moved_between_all_devices,
          a_copy_between_devices_comes_after_earlier_work_and_before_later_work_of_both,
          float8_rounds_to_even_and_saturates_or_overflows,
          complex_numbers_give_their_real_part_and_take_zero, meta_infers_what_the_cpu_computes,
          meta_has_no_values_and_says_so)
