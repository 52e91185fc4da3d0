/* SPDX-License-Identifier: MIT
 *
 * Products of bfloat16 and float16 against sums in double, by each way that this processor has:
 * AMX, AVX512-BF16, copies in float32, few rows; in every layout, with bias, in batches. The same
 * bits with any number of threads. */
#include "tests/backend/fused.h"

static const char *const sets[] = { "amx", "avx512_bf16", "avx512", "avx2", "baseline" };
enum { SETS = sizeof sets / sizeof *sets };

/* Rows, columns, depth: few rows; whole blocks; parts of blocks; odd depths; both directions. */
static const int64_t sizes[][3] = { { 1, 40, 70 },     { 3, 33, 256 },  { 8, 8, 512 },
                                    { 32, 32, 32 },    { 64, 96, 128 }, { 33, 17, 100 },
                                    { 20, 200, 33 },   { 200, 20, 65 }, { 47, 31, 95 },
                                    { 130, 300, 257 }, { 5, 300, 64 },  { 5, 33, 256 },
                                    { 7, 65, 100 },    { 15, 48, 31 },  { 6, 16, 16 },
                                    { 4, 300, 64 } };

/* y: sums of products. size: sums of their absolute values, to which errors of float32 are
 * relative. */
static void product(const double *a, const double *b, int64_t m, int64_t n, int64_t k, double *y,
                    double *size)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, all = 0;
            for (int64_t d = 0; d < k; d++) {
                sum += a[i * k + d] * b[d * n + j];
                all += fabs(a[i * k + d] * b[d * n + j]);
            }
            y[i * n + j] = sum;
            size[i * n + j] = all;
        }
}

static void agrees(const char *what, tn_tensor *got, const double *y, const double *size,
                   int64_t count, tn_dtype dtype)
{
    const double *x = get(got), eps = epsilon(dtype);

    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(x[i] - y[i]) <= eps * fabs(y[i]) + 2e-6 * size[i],
                      "%s: element %lld is %.9g, not %.9g", what, (long long)i, x[i], y[i]);
    checks_made++;
}

/* A matrix [batch][rows][columns] of these numbers, laid out so, or transposed in memory. */
static tn_tensor *matrix(tn_dtype dtype, int64_t batch, int64_t rows, int64_t columns,
                         const double *x, bool transposed, enum layout layout)
{
    const tn_device *cpu = tn_device_find("cpu");
    double *turned;

    if (!transposed)
        return put(cpu, dtype, TN_SHAPE(batch, rows, columns), x, layout);
    turned = room(batch * rows * columns);
    for (int64_t i = 0; i < batch; i++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                turned[(i * columns + c) * rows + r] = x[(i * rows + r) * columns + c];
    return tn_transpose(put(cpu, dtype, TN_SHAPE(batch, columns, rows), turned, layout), 1, 2);
}

START_TEST(products_are_sums_of_products)
{
    static const tn_dtype dtypes[] = { TN_BF16, TN_F16 };
    char what[100];

    if (!instruction_set(sets[_i]))
        return;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int d = 0; d < 2; d++)
            for (int way = 0; way < 4 * LAYOUTS; way++) {
                TN_SCOPE;
                const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2], batch = 2;
                double *a = room(batch * m * k), *b = room(batch * k * n), *y = room(batch * m * n),
                       *size = room(batch * m * n);
                enum layout layout = (enum layout)(way / 4);

                numbers(a, batch * m * k, -2, 2, dtypes[d]);
                numbers(b, batch * k * n, -2, 2, dtypes[d]);
                for (int64_t i = 0; i < batch; i++)
                    product(a + i * m * k, b + i * k * n, m, n, k, y + i * m * n, size + i * m * n);
                snprintf(what, sizeof what, "%s, size %d, %s, way %d", sets[_i], (int)s,
                         tn_dtype_name(dtypes[d]), way);
                tn_tensor *x = matrix(dtypes[d], batch, m, k, a, way & 1, layout),
                          *w = matrix(dtypes[d], batch, k, n, b, way & 2, layout);
                agrees(what, tn_matmul(x, w), y, size, batch * m * n, dtypes[d]);
                agrees(what, tn_matmul(tn_select(x, 0, 1), tn_select(w, 0, 1)), y + m * n,
                       size + m * n, m * n, dtypes[d]);
            }
    ck_assert_int_gt(checks_made, 100);
}
END_TEST

START_TEST(layers_add_their_bias)
{
    if (!instruction_set(sets[_i]))
        return;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int d = 0; d < 2; d++) {
            TN_SCOPE;
            const tn_device *cpu = tn_device_find("cpu");
            const tn_dtype dtype = d ? TN_F16 : TN_BF16;
            const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            double *x = room(m * k), *w = room(n * k), *turned = room(k * n), *bias = room(n),
                   *y = room(m * n), *size = room(m * n);

            numbers(x, m * k, -2, 2, dtype);
            numbers(w, n * k, -2, 2, dtype);
            numbers(bias, n, -2, 2, dtype);
            for (int64_t j = 0; j < n; j++)
                for (int64_t i = 0; i < k; i++)
                    turned[i * n + j] = w[j * k + i];
            product(x, turned, m, n, k, y, size);
            for (int64_t i = 0; i < m * n; i++)
                y[i] += bias[i % n];
            agrees(sets[_i],
                   tn_linear(put(cpu, dtype, TN_SHAPE(m, k), x, DENSE),
                             put(cpu, dtype, TN_SHAPE(n, k), w, DENSE),
                             put(cpu, dtype, TN_SHAPE(n), bias, DENSE)),
                   y, size, m * n, dtype);
        }
}
END_TEST

/* Where instructions for bfloat16 compute the product, the sum is rounded once. */
START_TEST(products_that_are_added_to_a_matrix)
{
    if (!instruction_set(sets[_i]))
        return;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        TN_SCOPE;
        const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        const tn_device *cpu = tn_device_find("cpu");
        double *a = room(m * k), *b = room(k * n), *x = room(m * n), *y = room(m * n),
               *size = room(m * n);
        const bool strict = _i < 2 && m >= 8 && n >= 8 && k >= 32 && m * n * k >= 32768;

        numbers(a, m * k, -2, 2, TN_BF16);
        numbers(b, k * n, -2, 2, TN_BF16);
        numbers(x, m * n, -2, 2, TN_BF16);
        product(a, b, m, n, k, y, size);
        for (int64_t i = 0; i < m * n; i++) {
            y[i] = 3 * x[i] - 0.5 * y[i];
            size[i] += fabs(3 * x[i]);
            if (!strict) /* it is decomposed, and each part is rounded */
                size[i] *= 4 * epsilon(TN_BF16) / 2e-6;
        }
        agrees(sets[_i],
               tn_addmm(put(cpu, TN_BF16, TN_SHAPE(m, n), x, DENSE),
                        put(cpu, TN_BF16, TN_SHAPE(m, k), a, DENSE),
                        put(cpu, TN_BF16, TN_SHAPE(k, n), b, DENSE), tn_scalar_float(3),
                        tn_scalar_float(-0.5)),
               y, size, m * n, TN_BF16);
        free(a);
        free(b);
        free(x);
        free(y);
        free(size);
    }
}
END_TEST

/* A row of NaN or infinity, and the memory beyond the end of a matrix, do not reach other results.
 */
START_TEST(numbers_that_are_not_finite_stay_in_their_rows)
{
    if (!instruction_set(sets[_i]))
        return;
    TN_SCOPE;
    const int64_t m = 40, n = 40, k = 50;
    tn_tensor *x = drawn(TN_SHAPE(m + 1, k), TN_BF16, 1),
              *w = drawn(TN_SHAPE(n + 1, k), TN_BF16, 2);

    there(tn_fill_(tn_select(x, 0, m), NAN));
    there(tn_fill_(tn_select(w, 0, n), NAN));
    there(tn_fill_(tn_select(x, 0, 3), INFINITY));
    double *y = get(tn_linear(tn_narrow(x, 0, 0, m), tn_narrow(w, 0, 0, n), TN_NONE));
    for (int64_t i = 0; i < m * n; i++)
        ck_assert_msg((isfinite(y[i]) != 0) == (i / n != 3), "element %lld is %g", (long long)i,
                      y[i]);
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    static const int64_t shapes[][3] = { { 1, 3000, 600 }, { 100, 700, 300 }, { 700, 100, 333 } };

    if (!instruction_set(sets[_i]))
        return;
    for (int s = 0; s < 3; s++)
        for (int d = 0; d < 2; d++) {
            TN_SCOPE;
            const tn_dtype dtype = d ? TN_F16 : TN_BF16;
            tn_tensor *x = drawn(TN_SHAPE(shapes[s][0], shapes[s][2]), dtype, 1),
                      *w = drawn(TN_SHAPE(shapes[s][1], shapes[s][2]), dtype, 2),
                      *rows = drawn(TN_SHAPE(shapes[s][2], shapes[s][1]), dtype, 3),
                      *first = tn_linear(x, w, TN_NONE), *second = tn_matmul(x, rows);

            for (int threads = 2; threads <= 4; threads *= 2) {
                ok(tn_set_num_threads(threads));
                same_bits(tn_linear(x, w, TN_NONE), first, sets[_i]);
                same_bits(tn_matmul(x, rows), second, sets[_i]);
            }
            ok(tn_set_num_threads(1));
        }
}
END_TEST

int main(void)
{
    TCase *test = tcase_create("core");
    Suite *suite = suite_create("bfloat16");
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, test);
    tcase_add_loop_test(test, products_are_sums_of_products, 0, SETS);
    tcase_add_loop_test(test, layers_add_their_bias, 0, SETS);
    tcase_add_loop_test(test, products_that_are_added_to_a_matrix, 0, SETS);
    tcase_add_loop_test(test, numbers_that_are_not_finite_stay_in_their_rows, 0, SETS);
    tcase_add_loop_test(test, threads_do_not_change_a_bit, 0, SETS);
    tcase_set_timeout(test, 600);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
