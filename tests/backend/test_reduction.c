/* SPDX-License-Identifier: MIT
 *
 * Reductions, products of matrices, softmax and losses on every device, against float64 and
 * against PyTorch's numbers. */
#include "tests/backend/backend.h"
#include "tests/backend/loss_reference.h"

#include <pthread.h>

static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };
enum { FLOATS = sizeof floats / sizeof *floats };

/* ---- reductions ------------------------------------------------------------------------------ */

/* y over the dimensions of `gone` (a bit each), largest or sum, row-major. */
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
                              *out = tn_sum(in, &sum);
                    same("sum", device, floats[t], out, y, 4, most);
                    ck_assert_int_eq(tn_tensor_numel(out), results);
                    ck_assert_int_eq(tn_tensor_ndim(out),
                                     sum.keepdim ? shape.count : shape.count - sum.dims.count);
                    if (count_of(shape) == 0)
                        continue;
                    reduce(x, shape, gone, true, y, scale);
                    same("amax", device, floats[t], tn_amax(in, &amax), y, 0, 0);
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
                put(device, TN_I64, TN_SHAPE(2, 2), NUMBERS(1, 2, 3, -10), REVERSED), NULL);
            same("sum", device, TN_I64, y, NUMBERS(-4), 0, 0);
            ck_assert_int_eq(tn_tensor_dtype(y), TN_I64);
        }
        if (device_has(device, "sum", TN_U8)) {
            tn_tensor *y = tn_sum(put(device, TN_U8, TN_SHAPE(3), NUMBERS(200, 200, 200), DENSE),
                                  NULL);
            same("sum", device, TN_U8, y, NUMBERS(600), 0, 0);
            ck_assert_int_eq(tn_tensor_dtype(y), TN_I64);
        }
        if (device_has(device, "sum", TN_BOOL))
            same("sum", device, TN_BOOL,
                 tn_sum(put(device, TN_BOOL, TN_SHAPE(3), NUMBERS(1, 0, 1), DENSE), NULL),
                 NUMBERS(2), 0, 0);
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
        same("argmax", device, TN_F32, tn_argmax(x, &rows), NUMBERS(1, 1, 0), 0, 0);
        rows.dim = -2;
        rows.keepdim = true;
        tn_tensor *columns = tn_argmax(x, &rows);
        same("argmax", device, TN_F32, columns, NUMBERS(1, 1, 1, 1), 0, 0);
        ck_assert_int_eq(tn_tensor_ndim(columns), 2);
        tn_tensor *flat = tn_argmax(x, NULL);
        same("argmax", device, TN_F32, flat, NUMBERS(5), 0, 0);
        ck_assert_int_eq(tn_tensor_dtype(flat), TN_I64);
        same("amax", device, TN_F32, tn_amax(x, NULL), NUMBERS(NAN), 0, 0);
        if (device_has(device, "argmax", TN_I64))
            same("argmax", device, TN_I64,
                 tn_argmax(
                     put(device, TN_I64, TN_SHAPE(4), NUMBERS(-5, 3, 3, 2), (enum layout)layout),
                     NULL),
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
        tn_sum_options rows = TN_SUM_OPTIONS;
        rows.dims = TN_INTS(0);
        same("sum", device, TN_F32, tn_sum(none, NULL), NUMBERS(0), 0, 0);
        same("sum", device, TN_F32, tn_sum(none, &rows), NUMBERS(0, 0, 0), 0, 0);
        ck_assert_ptr_null(tn_amax(none, NULL));
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
        tn_sum_options columns = TN_SUM_OPTIONS;
        columns.dims = TN_INTS(0);
        ok(tn_tensor_copy_in(in, x, COUNT * sizeof *x));
        same("sum", device, TN_F32, tn_sum(in, NULL), &exact, 4, 0);
        double first = 0, first_column = 0;
        for (int threads = 1; threads <= 4; threads *= 2) {
            ok(tn_set_num_threads(threads));
            double sum = tn_item(tn_sum(in, NULL));
            tn_tensor *table = tn_reshape(tn_narrow(in, 0, 0, 300000), TN_SHAPE(50000, 6));
            double column = tn_item(tn_select(tn_sum(table, &columns), 0, 3));
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

/* ---- products of matrices -------------------------------------------------------------------- */

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

/* A child of the runner: the option is read when the plugin is loaded here. */
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

/* A shape that goes to BLAS where there is one: Debian's serial OpenBLAS is not safe by itself when
 * several threads are in it, and shows it once in a hundred calls. */
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

/* ---- softmax and losses ---------------------------------------------------------------------- */

START_TEST(softmax_and_log_softmax_along_any_dimension_are_those_of_PyTorch)
{
    static const double *const soft[] = { reference_softmax_0, reference_softmax_1 };
    static const double *const logs[] = { reference_log_softmax_0, reference_log_softmax_1 };
    EACH_DEVICE(device)
    for (int t = 0; t < 2; t++)
        for (int dim = 0; dim < 2; dim++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                TN_SCOPE;
                tn_tensor *x = put(device, floats[t], TN_SHAPE(5, 4), reference_x,
                                   (enum layout)layout);
                same("softmax", device, floats[t], tn_softmax(x, dim), soft[dim], 8, 0.1);
                same("log_softmax", device, floats[t], tn_log_softmax(x, dim - 2), logs[dim], 8, 1);
            }
}
END_TEST

START_TEST(softmax_of_large_numbers_does_not_overflow)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *x = put(device, TN_F32, TN_SHAPE(1, 3), NUMBERS(1000, 1000, -1000), DENSE);
        same("softmax", device, TN_F32, tn_softmax(x, 1), NUMBERS(0.5, 0.5, 0), 2, 0);
        same("log_softmax", device, TN_F32, tn_log_softmax(x, 1),
             NUMBERS(-M_LN2, -M_LN2, -2000 - M_LN2), 2, 0);
    }
}
END_TEST

START_TEST(cross_entropy_and_its_gradient_are_those_of_PyTorch)
{
    static const struct {
        const char *reduction;
        double smoothing;
        const double *loss, *gradient;
    } cases[] = { { "mean", 0, reference_mean, reference_grad_mean },
                  { "sum", 0, reference_sum, reference_grad_sum },
                  { "none", 0, reference_none, reference_grad_none },
                  { "mean", 0.1, reference_smooth, reference_grad_smooth } };
    EACH_DEVICE(device)
    for (int t = 0; t < 2; t++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                TN_SCOPE;
                tn_cross_entropy_options options = TN_CROSS_ENTROPY_OPTIONS;
                options.reduction = cases[c].reduction;
                options.label_smoothing = cases[c].smoothing;
                tn_tensor *x = put(device, floats[t], TN_SHAPE(5, 4), reference_x,
                                   (enum layout)layout);
                tn_tensor *target = put(device, TN_I64, TN_SHAPE(5), reference_target,
                                        (enum layout)layout);
                ok(tn_tensor_set_requires_grad(x, true));
                tn_tensor *loss = tn_cross_entropy(x, target, &options);
                same("cross_entropy", device, floats[t], loss, cases[c].loss, 8, 1);
                ok(tn_backward(strcmp(cases[c].reduction, "none") == 0 ? tn_sum(loss, NULL)
                                                                       : loss));
                same("its gradient", device, floats[t], tn_tensor_grad(x), cases[c].gradient, 16,
                     1);
            }
}
END_TEST

START_TEST(a_target_out_of_range_is_an_error_that_names_operator_index_and_bound)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *x = put(device, TN_F32, TN_SHAPE(3, 4), (double[12]){ 0 }, DENSE);
        tn_tensor *target = put(device, TN_I64, TN_SHAPE(3), NUMBERS(0, 4, 1), DENSE);
        tn_tensor *loss = tn_cross_entropy(x, target, NULL);
        tn_status status = loss ? tn_device_sync(device) : tn_error_code();
        ck_assert_msg(status == TN_ERR_INDEX, "%s: %d, %s", tn_device_name(device), (int)status,
                      tn_error_text());
        ck_assert_msg(strstr(tn_error_text(), "nll_loss") && strstr(tn_error_text(), "4"), "%s: %s",
                      tn_device_name(device), tn_error_text());
        tn_error_clear();
        /* the device goes on */
        same("add", device, TN_F32, tn_add_scalar(x, 1),
             (double[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 0, 0);
    }
}
END_TEST

START_TEST(narrow_grad_puts_the_gradient_into_zeros)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *gy = put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(1, 2, 3, 4), REVERSED);
        same("narrow_grad", device, TN_F32, tn_narrow_grad(gy, TN_SHAPE(2, 4), 1, 1),
             NUMBERS(0, 1, 2, 0, 0, 3, 4, 0), 0, 0);
    }
}
END_TEST

RUN_SUITE("reduction", sums_and_maxima_over_every_choice_of_dimensions,
          integers_and_truth_values_add_up_in_int64,
          argmax_gives_the_first_of_equals_and_NaN_counts_as_largest,
          the_sum_of_nothing_is_zero_and_its_largest_an_error,
          long_sums_keep_their_digits_and_do_not_depend_on_threads,
          products_of_matrices_of_any_layout, products_are_right_without_a_BLAS_too,
          products_are_right_with_the_baseline_instructions, products_are_right_with_avx2,
          a_BLAS_that_cannot_be_used_is_an_error_with_words, integer_products_wrap_around,
          matmul_knows_vectors_and_batches, linear_takes_any_number_of_leading_dimensions,
          products_do_not_depend_on_the_number_of_threads, several_threads_multiply_at_once,
          softmax_and_log_softmax_along_any_dimension_are_those_of_PyTorch,
          softmax_of_large_numbers_does_not_overflow,
          cross_entropy_and_its_gradient_are_those_of_PyTorch,
          a_target_out_of_range_is_an_error_that_names_operator_index_and_bound,
          narrow_grad_puts_the_gradient_into_zeros)
