/* SPDX-License-Identifier: MIT
 *
 * frexp and nextafter have all bits of the functions of the C library, for numbers of all sizes,
 * on every device. */
#include "tests/op/suite.h"

enum { COUNT = 4096 };

static double wide[2][COUNT];
static float narrow[2][COUNT];
static uint64_t state;

static uint64_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* Edges first, then numbers of random bits. With `normal` there are none that a device may take for
 * 0. The second number is sometimes equal to the first, or next to it. */
static void fill(bool normal)
{
    static const double edges[] = { 0,
                                    -0.0,
                                    1,
                                    -1,
                                    0.5,
                                    2,
                                    1.5,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    1.0 / 1024,
                                    -1024.0,
                                    0.999999940395355225,
                                    3 };
    int n = (int)(sizeof edges / sizeof *edges);

    state = 7;
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 2; k++) {
            uint64_t bits = random_bits();
            uint32_t half = (uint32_t)(random_bits() >> 32);

            memcpy(&wide[k][i], &bits, sizeof bits);
            memcpy(&narrow[k][i], &half, sizeof half);
            if (i < n * n)
                narrow[k][i] = (float)(wide[k][i] = edges[k == 0 ? i / n : i % n]);
            else if (k == 1 && i % 5 == 0)
                wide[1][i] = wide[0][i], narrow[1][i] = narrow[0][i];
            else if (i % 5 == 1)
                wide[k][i] = ldexp(1, i % 2000 - 1000), narrow[k][i] = ldexpf(1, i % 250 - 125);
            if (normal && fpclassify(wide[k][i]) == FP_SUBNORMAL)
                wide[k][i] = 1;
            if (normal && (fpclassify(narrow[k][i]) == FP_SUBNORMAL))
                narrow[k][i] = 1;
        }
    if (!normal)
        for (int i = 1; i <= 100; i++) {
            wide[0][COUNT - i] = i % 2 ? 4.9406564584124654e-324 * i : ldexp(i, -1070);
            narrow[0][COUNT - i] = i % 2 ? 1.40129846432481707e-45f * (float)i
                                         : ldexpf((float)i, -146);
        }
}

static bool same(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

static tn_tensor *on(const tn_device *device, const void *values, tn_dtype dtype)
{
    tn_tensor *t;

    ck_assert_int_eq(tn_device_begin(device), TN_OK);
    t = tn_tensor_from(values, dtype, TN_SHAPE(COUNT));
    tn_device_end();
    ck_assert_msg(t != NULL, "%s", tn_error_text());
    return t;
}

static void check_parts(const tn_device *device)
{
    TN_SCOPE;
    static double mantissa[COUNT];
    static float mantissa_f[COUNT];
    static int32_t exponent[COUNT];
    tn_tensor *m, *e;
    int want;

    ck_assert_msg(tn_frexp(on(device, wide[0], TN_F64), &m, &e) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_copy_out(m, mantissa, sizeof mantissa), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(e, exponent, sizeof exponent), TN_OK);
    for (int i = 0; i < COUNT; i++) {
        double y = frexp(wide[0][i], &want);

        want = isfinite(y) ? want : 0;
        ck_assert_msg((isnan(y) ? isnan(mantissa[i]) : same(&y, &mantissa[i], sizeof y)) &&
                          exponent[i] == want,
                      "%s: %a is %a, %d", tn_device_name(device), wide[0][i], mantissa[i],
                      exponent[i]);
    }
    ck_assert_int_eq(tn_frexp(on(device, narrow[0], TN_F32), &m, &e), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(m, mantissa_f, sizeof mantissa_f), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(e, exponent, sizeof exponent), TN_OK);
    for (int i = 0; i < COUNT; i++) {
        float y = frexpf(narrow[0][i], &want);

        want = isfinite(y) ? want : 0;
        ck_assert_msg((isnan(y) ? isnan(mantissa_f[i]) : same(&y, &mantissa_f[i], sizeof y)) &&
                          exponent[i] == want,
                      "%s: %a is %a, %d", tn_device_name(device), (double)narrow[0][i],
                      (double)mantissa_f[i], exponent[i]);
    }
}

static void check_neighbours(const tn_device *device)
{
    TN_SCOPE;
    static double y[COUNT];
    static float y_f[COUNT];
    tn_tensor *next = tn_nextafter(on(device, wide[0], TN_F64), on(device, wide[1], TN_F64));

    ck_assert_msg(next != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_copy_out(next, y, sizeof y), TN_OK);
    for (int i = 0; i < COUNT; i++) {
        double want = nextafter(wide[0][i], wide[1][i]);

        ck_assert_msg(isnan(want) ? isnan(y[i]) : same(&want, &y[i], sizeof want),
                      "%s: %a to %a is %a, not %a", tn_device_name(device), wide[0][i], wide[1][i],
                      y[i], want);
    }
    next = tn_nextafter(on(device, narrow[0], TN_F32), on(device, narrow[1], TN_F32));
    ck_assert_int_eq(tn_tensor_copy_out(next, y_f, sizeof y_f), TN_OK);
    for (int i = 0; i < COUNT; i++) {
        float want = nextafterf(narrow[0][i], narrow[1][i]);

        ck_assert_msg(isnan(want) ? isnan(y_f[i]) : same(&want, &y_f[i], sizeof want),
                      "%s: %a to %a is %a, not %a", tn_device_name(device), (double)narrow[0][i],
                      (double)narrow[1][i], (double)y_f[i], (double)want);
    }
}

START_TEST(parts_and_neighbours_have_all_bits)
{
    for (int64_t i = 0; i < tn_device_count(); i++) {
        const tn_device *device = tn_device_at(i);

        if (!tn_device_has_memory(device))
            continue;
        /* Only the host is known to compute with subnormal numbers. */
        fill(strcmp(tn_device_type(device), "cpu") != 0);
        check_parts(device);
        check_neighbours(device);
    }
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exponent");
    TCase *tests = tcase_create("exponent");

    tcase_add_test(tests, parts_and_neighbours_have_all_bits);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
