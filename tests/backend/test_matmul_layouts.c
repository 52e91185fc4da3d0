/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in every layout, linear layers, and threads that multiply, on every device,
 * against float64. */
#include "tests/backend/fused.h"

#include <pthread.h>

static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
enum { FLOATS = sizeof floats / sizeof *floats };

static void product(const double *a, const double *b, int64_t batch, int64_t m, int64_t k,
                    int64_t n, double *y)
{
    for (int64_t s = 0; s < batch; s++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum += a[(s * m + i) * k + l] * b[(s * k + l) * n + j];
                y[(s * m + i) * n + j] = sum;
            }
}

static const int64_t products[][4] = { { 1, 1, 1, 1 },   { 2, 3, 4, 5 },     { 1, 2, 33, 17 },
                                       { 3, 1, 5, 1 },   { 1, 33, 34, 66 },  { 2, 0, 3, 2 },
                                       { 2, 2, 0, 3 },   { 0, 2, 2, 2 },     { 1, 65, 9, 70 },
                                       { 1, 5, 300, 7 }, { 1, 150, 40, 200 } };
enum { PRODUCTS = sizeof products / sizeof *products };

static void check_products(void)
{
    double *a = malloc(40000 * sizeof *a), *b = malloc(40000 * sizeof *b),
           *y = malloc(40000 * sizeof *y);
    EACH_DEVICE(device)
    for (int t = 0; t < FLOATS; t++) {
        if (!device_has(device, "bmm", floats[t]))
            continue;
        for (int c = 0; c < PRODUCTS; c++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                const int64_t *p = products[c];
                if (strcmp(tn_device_type(device), "strict") == 0 && p[1] * p[2] * p[3] > 50000)
                    continue;
                TN_SCOPE;
                numbers(a, p[0] * p[1] * p[2], -1, 1, floats[t]);
                numbers(b, p[0] * p[2] * p[3], -1, 1, floats[t]);
                product(a, b, p[0], p[1], p[2], p[3], y);
                tn_tensor *ta = put(device, floats[t], TN_SHAPE(p[0], p[1], p[2]), a,
                                    (enum layout)layout);
                tn_tensor *tb = put(device, floats[t], TN_SHAPE(p[0], p[2], p[3]), b,
                                    (enum layout)((layout + c) % LAYOUTS));
                same("bmm", device, floats[t], tn_bmm(ta, tb), y, 2, 1 + 0.5 * (double)p[2]);
                if (p[0] > 0) {
                    tn_tensor *matrix = tn_select(tb, 0, 0);

                    product(a, b, 1, p[0] * p[1], p[2], p[3], y);
                    same("matmul", device, floats[t], tn_matmul(ta, matrix), y, 2,
                         1 + 0.5 * (double)p[2]);
                    product(a, b, 1, p[1], p[2], p[3], y);
                    same("matmul of matrices", device, floats[t],
                         tn_matmul(tn_select(ta, 0, 0), matrix), y, 2, 1 + 0.5 * (double)p[2]);
                    product(a, b, p[0], p[1], p[2], p[3], y);
                }
                if (p[0] != 1 || !device_has(device, "linear", floats[t]))
                    continue;
                tn_tensor *x = tn_select(ta, 0, 0),
                          *weight = tn_transpose(tn_select(tb, 0, 0), 0, 1);
                same("linear", device, floats[t], tn_linear(x, weight, TN_NONE), y, 2,
                     1 + 0.5 * (double)p[2]);
                double bias[200];
                numbers(bias, p[3], -1, 1, floats[t]);
                for (int64_t i = 0; i < p[1] * p[3]; i++)
                    y[i] += bias[i % p[3]];
                same("linear", device, floats[t],
                     tn_linear(x, weight,
                               put(device, floats[t], TN_SHAPE(p[3]), bias, EVERY_SECOND)),
                     y, 3, 1 + 0.5 * (double)p[2]);
            }
    }
    ck_assert_int_gt(checks_made, 10000);
    free(a);
    free(b);
    free(y);
}

START_TEST(products_of_matrices_of_any_layout)
{
    check_products();
}
END_TEST

/* Runs in a process of its own, which has not loaded the plugin yet, so that it reads the option.
 */
START_TEST(products_are_right_without_a_BLAS_too)
{
    setenv("TENON_CPU_BLAS", "none", 1);
    setenv("TN_TEST_DEVICES", "cpu", 1);
    check_products();
}
END_TEST

static void with_instruction_set(const char *name)
{
    setenv("TENON_CPU_BLAS", "none", 1);
    if (!instruction_set(name))
        return;
    setenv("TN_TEST_DEVICES", "cpu", 1);
    check_products();
}

START_TEST(products_are_right_with_the_baseline_instructions)
{
    with_instruction_set("baseline");
}
END_TEST

START_TEST(products_are_right_with_avx2)
{
    with_instruction_set("avx2");
}
END_TEST

START_TEST(a_BLAS_that_cannot_be_used_is_an_error_with_words)
{
    setenv("TENON_CPU_BLAS", "/nowhere/libblas.so", 1);
    ck_assert_ptr_null(tn_device_find("cpu"));
    ck_assert_msg(strstr(tn_error_text(), "/nowhere/libblas.so") != NULL, "%s", tn_error_text());
}
END_TEST

START_TEST(integer_products_wrap_around)
{
    EACH_DEVICE(device)
    {
        if (!device_has(device, "bmm", TN_I64))
            continue;
        TN_SCOPE;
        double a[6] = { 1, 2, 3, 4, 5, -6 }, b[6] = { 7, 8, 9, 10, 11, 12 }, y[4];
        product(a, b, 1, 2, 3, 2, y);
        same("bmm", device, TN_I64,
             tn_bmm(put(device, TN_I64, TN_SHAPE(1, 2, 3), a, DENSE),
                    put(device, TN_I64, TN_SHAPE(1, 3, 2), b, REVERSED)),
             y, 0, 0);
        if (!device_has(device, "bmm", TN_U8))
            continue;
        same("bmm", device, TN_U8,
             tn_bmm(put(device, TN_U8, TN_SHAPE(1, 1, 2), NUMBERS(200, 100), DENSE),
                    put(device, TN_U8, TN_SHAPE(1, 2, 1), NUMBERS(2, 3), DENSE)),
             NUMBERS(700 % 256), 0, 0);
    }
}
END_TEST

START_TEST(matmul_knows_vectors_and_batches)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *v = put(device, TN_F32, TN_SHAPE(2), NUMBERS(1, 2), DENSE);
        tn_tensor *m = put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(1, 2, 3, 4), DENSE);
        tn_tensor *batch = put(device, TN_F32, TN_SHAPE(2, 1, 2), NUMBERS(1, 0, 0, 1), DENSE);
        same("matmul", device, TN_F32, tn_matmul(v, v), NUMBERS(5), 0, 0);
        same("matmul", device, TN_F32, tn_matmul(m, v), NUMBERS(5, 11), 0, 0);
        same("matmul", device, TN_F32, tn_matmul(v, m), NUMBERS(7, 10), 0, 0);
        same("matmul", device, TN_F32, tn_matmul(m, m), NUMBERS(7, 10, 15, 22), 0, 0);
        same("matmul", device, TN_F32, tn_matmul(batch, m), NUMBERS(1, 2, 3, 4), 0, 0);
    }
}
END_TEST

START_TEST(linear_takes_any_number_of_leading_dimensions)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        double x[24], y[16];
        numbers(x, 24, -1, 1, TN_F32);
        tn_tensor *weight = put(device, TN_F32, TN_SHAPE(2, 3), NUMBERS(1, 2, 3, -1, 0, 1), DENSE);
        tn_tensor *bias = put(device, TN_F32, TN_SHAPE(2), NUMBERS(0.5, -0.5), DENSE);
        for (int i = 0; i < 8; i++) {
            y[2 * i] = x[3 * i] + 2 * x[3 * i + 1] + 3 * x[3 * i + 2] + 0.5;
            y[2 * i + 1] = x[3 * i + 2] - x[3 * i] - 0.5;
        }
        for (int layout = 0; layout < LAYOUTS; layout++) {
            tn_tensor *out = tn_linear(
                put(device, TN_F32, TN_SHAPE(2, 4, 3), x, (enum layout)layout), weight, bias);
            same("linear", device, TN_F32, out, y, 4, 1);
            ck_assert_int_eq(tn_tensor_ndim(out), 3);
        }
        same("linear", device, TN_F32,
             tn_linear(put(device, TN_F32, TN_SHAPE(3), x, DENSE), weight, bias), y, 4, 1);
    }
}
END_TEST

START_TEST(products_do_not_depend_on_the_number_of_threads)
{
    enum { M = 300, K = 200, N = 310 };
    static float a[M * K], b[K * N], first[M * N], y[M * N];
    const tn_device *cpu = tn_device_find("cpu");
    double one;
    for (int i = 0; i < M * K; i++)
        numbers(&one, 1, -1, 1, TN_F32), a[i] = (float)one;
    for (int i = 0; i < K * N; i++)
        numbers(&one, 1, -1, 1, TN_F32), b[i] = (float)one;
    TN_SCOPE;
    tn_tensor *ta = tn_tensor_empty(TN_SHAPE(M, K), TN_F32, cpu),
              *tb = tn_tensor_empty(TN_SHAPE(K, N), TN_F32, cpu);
    ok(tn_tensor_copy_in(ta, a, sizeof a));
    ok(tn_tensor_copy_in(tb, b, sizeof b));
    for (int threads = 1; threads <= 4; threads *= 2) {
        ok(tn_set_num_threads(threads));
        ok(tn_tensor_copy_out(tn_matmul(ta, tb), y, sizeof y));
        if (threads == 1)
            memcpy(first, y, sizeof y);
        ck_assert_mem_eq(first, y, sizeof y);
    }
}
END_TEST

struct share {
    const float *a, *b, *expected;
    bool equal;
};

/* A shape that BLAS computes, if the machine has it. Debian's serial OpenBLAS is not safe for
 * several threads without a lock; errors occur about once in a hundred calls. */
enum { ROWS = 64, DEPTH = 48, COLUMNS = 16 };

static void *multiply(void *user)
{
    struct share *share = user;
    float y[ROWS * COLUMNS];
    const tn_device *cpu = tn_device_find("cpu");
    TN_SCOPE;
    tn_tensor *a = tn_tensor_empty(TN_SHAPE(ROWS, DEPTH), TN_F32, cpu);
    tn_tensor *b = tn_tensor_empty(TN_SHAPE(DEPTH, COLUMNS), TN_F32, cpu);
    tn_tensor_copy_in(a, share->a, ROWS * DEPTH * sizeof(float));
    tn_tensor_copy_in(b, share->b, DEPTH * COLUMNS * sizeof(float));
    share->equal = true;
    for (int i = 0; i < (share->expected ? 3000 : 1); i++) {
        TN_SCOPE;
        tn_tensor_copy_out(tn_matmul(a, b), y, sizeof y);
        if (!share->expected)
            memcpy((float *)(uintptr_t)share->b + DEPTH * COLUMNS, y, sizeof y);
        else if (memcmp(y, share->expected, sizeof y) != 0)
            share->equal = false;
    }
    return NULL;
}

START_TEST(several_threads_multiply_at_once)
{
    static float a[ROWS * DEPTH], b[DEPTH * COLUMNS + ROWS * COLUMNS];
    double one;
    for (int i = 0; i < ROWS * DEPTH; i++)
        numbers(&one, 1, -1, 1, TN_F32), a[i] = (float)one;
    for (int i = 0; i < DEPTH * COLUMNS; i++)
        numbers(&one, 1, -1, 1, TN_F32), b[i] = (float)one;
    struct share first = { a, b, NULL, true }, shares[4];
    pthread_t threads[4];
    multiply(&first);
    for (int i = 0; i < 4; i++) {
        shares[i] = (struct share){ a, b, b + DEPTH * COLUMNS, false };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, multiply, &shares[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(shares[i].equal);
    }
}
END_TEST

/* A call that records gradients is decomposed into bmm; one that does not has a kernel. */
START_TEST(matmul_has_the_same_bits_with_and_without_gradients)
{
    for (int i = 0; i < 16; i++) {
        TN_SCOPE;
        const tn_dtype dtype = i & 1 ? TN_F64 : TN_F32;
        const bool tall = i & 2, turned = i & 4, few = i & 8;
        const int64_t m = few ? 3 : 65;
        tn_tensor *a = drawn(tall ? TN_SHAPE(5, m, 70) : TN_SHAPE(m, 70), dtype, 1), *y[2];
        tn_tensor *b = turned ? tn_transpose(drawn(TN_SHAPE(33, 70), dtype, 2), 0, 1)
                              : drawn(TN_SHAPE(70, 33), dtype, 2);

        for (int k = 0; k < 2; k++) {
            y[k] = tn_matmul(k == 0 ? a : leaf(tn_detach(a)), b);
            ck_assert_msg(y[k] != NULL, "%s", tn_error_text());
            ck_assert_int_eq(tn_tensor_requires_grad(y[k]), k);
        }
        same_bits(y[0], y[1], "matmul");
    }
}
END_TEST

RUN_SUITE("matmul_layouts", matmul_has_the_same_bits_with_and_without_gradients,
          products_of_matrices_of_any_layout, products_are_right_without_a_BLAS_too,
          products_are_right_with_the_baseline_instructions, products_are_right_with_avx2,
          a_BLAS_that_cannot_be_used_is_an_error_with_words, integer_products_wrap_around,
          matmul_knows_vectors_and_batches, linear_takes_any_number_of_leading_dimensions,
          products_do_not_depend_on_the_number_of_threads, several_threads_multiply_at_once)
