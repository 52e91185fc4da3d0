/* SPDX-License-Identifier: MIT
 *
 * bmm: calls of cuBLASLt, and what our own kernel computes. */
#include "tests/backend-cuda/driver.h"

static void product(tn_dtype dtype, enum layout la, enum layout lb, int64_t batch)
{
    const int64_t sa[] = { batch, 4, 5 }, sb[] = { batch, 5, 6 }, sy[] = { batch, 4, 6 };
    struct array *a = array_new(&d, dtype, 3, sa, la), *b = array_new(&d, dtype, 3, sb, lb);
    struct array *y = array_new(&d, dtype, 3, sy, PLAIN);
    struct array *const in[] = { a, b }, *const out[] = { y };

    for (int64_t i = 0; i < a->count; i++)
        array_set(a, i, (double)(i % 7) - 3);
    for (int64_t i = 0; i < b->count; i++)
        array_set(b, i, (double)(i % 5) - 2);
    array_up(a);
    array_up(b);
    CALL(&d, "bmm", NULL, in, out);
    array_down(y);
    for (int64_t i = 0; i < y->count; i++) {
        double want = 0;

        for (int64_t k = 0; k < 5; k++)
            want += array_get(a, i / 24 * 20 + i / 6 % 4 * 5 + k) *
                    array_get(b, i / 24 * 30 + k * 6 + i % 6);
        ck_assert_double_eq(array_get(y, i), want);
    }
    array_drop(a);
    array_drop(b);
    array_drop(y);
}

START_TEST(products_are_asked_of_cublaslt_row_by_row)
{
    open_with_blas();
    ck_assert_ptr_nonnull(strstr(d.info.driver, "cuBLASLt"));
    product(TN_F32, PLAIN, PLAIN, 3);
    ck_assert_int_eq(fake->products, 1);
    ck_assert_int_eq(fake->product_batch, 3);
    ck_assert_int_eq(fake->product_compute, 68);
    ck_assert_int_eq(fake->product_transposed[0] | fake->product_transposed[1], 0);
    product(TN_F64, PLAIN, PLAIN, 1);
    ck_assert_int_eq(fake->product_compute, 70);
    ck_assert_int_eq(fake->heuristics, 2);
    close_clean();
}
END_TEST

START_TEST(the_choice_of_an_algorithm_is_kept)
{
    open_with_blas();
    product(TN_F32, PLAIN, PLAIN, 2);
    product(TN_F32, PLAIN, PLAIN, 2);
    product(TN_F32, PLAIN, PLAIN, 2);
    ck_assert_int_eq(fake->products, 3);
    ck_assert_int_eq(fake->heuristics, 1);
    close_clean();
}
END_TEST

START_TEST(transposed_operands_are_said_to_be)
{
    /* [1, 4, 5] with the strides of its transpose */
    const int64_t sa[] = { 1, 4, 5 }, sb[] = { 1, 5, 6 }, sy[] = { 1, 4, 6 };
    struct array *a, *b, *y;

    open_with_blas();
    a = array_new(&d, TN_F32, 3, sa, TURNED);
    b = array_new(&d, TN_F32, 3, sb, PLAIN);
    y = array_new(&d, TN_F32, 3, sy, PLAIN);
    {
        struct array *const in[] = { a, b }, *const out[] = { y };

        array_up(a);
        array_up(b);
        CALL(&d, "bmm", NULL, in, out);
    }
    ck_assert_int_eq(fake->products, 1);
    ck_assert_int_eq(fake->product_transposed[0],
                     0); /* of b, which is the library's first operand */
    ck_assert_int_eq(fake->product_transposed[1], 1);
    array_drop(a);
    array_drop(b);
    array_drop(y);
    close_clean();
}
END_TEST

START_TEST(what_cublaslt_cannot_do_our_kernel_does)
{
    open_with_blas();
    product(TN_F32, GAPS, PLAIN, 2); /* no unit stride */
    ck_assert_int_eq(fake->products, 0);
    ck_assert_str_eq(fake->kernel, "tn_bmm_f32");
    product(TN_I32, PLAIN, PLAIN, 2); /* integers */
    ck_assert_str_eq(fake->kernel, "tn_bmm_i32");
    product(TN_BF16, PLAIN, PLAIN, 2); /* the fake has no algorithm for it */
    ck_assert_int_eq(fake->heuristics, 1);
    ck_assert_str_eq(fake->kernel, "tn_bmm_bf16");
    ck_assert_int_eq(fake->products, 0);
    close_clean();
}
END_TEST

START_TEST(tf32_is_used_only_when_fast_arithmetic_is_asked_for)
{
    setenv("TENON_MATH", "fast", 1);
    open_with_blas();
    product(TN_F32, PLAIN, PLAIN, 1);
    ck_assert_int_eq(fake->product_compute, 77);
    close_clean();
}
END_TEST

START_TEST(an_absent_cublaslt_is_said_and_done_without)
{
    load();
    ((struct options *)d.plugin->options_data)->blas = "/nowhere/libcublasLt.so";
    ck_assert_int_eq(direct_open(&d, 0), TN_OK);
    product(TN_F32, PLAIN, PLAIN, 1);
    ck_assert_str_eq(fake->kernel, "tn_bmm_f32");
    close_clean();
}
END_TEST

/* ---- libraries that open but do not start ---------------------------------------------------- */

static char heard[4096];
static int warnings;

static void hear(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    if (level > TN_LOG_WARNING)
        return;
    warnings++;
    strncat(heard, text, sizeof heard - strlen(heard) - 1);
}

/* Three libraries, and what cublasLtCreate returns in each. */
static void open_with_three(int first, int second, int third)
{
    load();
    tn_set_log_sink(hear, NULL);
    ((struct options *)d.plugin->options_data)->blas = DRIVER ",/nowhere/lt.so," DRIVER "," DRIVER;
    fake->blas_create[0] = first;
    fake->blas_create[1] = second;
    fake->blas_create[2] = third;
    ck_assert_msg(direct_open(&d, 0) == TN_OK, "%s", tn_error_text());
}

static void close_after_warning(const char *words)
{
    tn_device_info info = { TN_HEAD(tn_device_info) };

    ck_assert_int_eq(warnings, 1);
    ck_assert_msg(strstr(heard, words) != NULL, "expected %s in: %s", words, heard);
    ck_assert_int_eq(d.backend->info(d.device, &info), TN_OK);
    ck_assert_int_eq(strstr(info.driver, ", cuBLASLt 13.0") != NULL, fake->blas_handles > 0);
    ck_assert_int_eq(strstr(info.driver, "cuBLASLt") != NULL, fake->blas_handles > 0);
    close_clean();
    ck_assert_int_eq(fake->blas_handles, 0);
}

START_TEST(a_cublaslt_that_does_not_start_gives_way_to_the_next_one)
{
    open_with_three(1, 0, 0);
    product(TN_F32, PLAIN, PLAIN, 3);
    product(TN_F32, PLAIN, PLAIN, 2);
    ck_assert_int_eq(fake->products, 2);
    ck_assert_int_eq(fake->blas_creates, 2);
    close_after_warning("does not start on Fake GPU 0 (fake-cuda.so: "
                        "CUBLAS_STATUS_NOT_INITIALIZED (1)); matrix products use " DRIVER);
}
END_TEST

START_TEST(where_no_cublaslt_starts_our_kernel_does_every_product)
{
    open_with_three(1, 3, 8);
    product(TN_F32, PLAIN, PLAIN, 3);
    product(TN_F64, TURNED, PLAIN, 1);
    product(TN_F16, PLAIN, PLAIN, 2);
    ck_assert_str_eq(fake->kernel, "tn_bmm_f16");
    ck_assert_int_eq(fake->products, 0);
    ck_assert_int_eq(fake->blas_creates, 3); /* once in each library */
    ck_assert_ptr_nonnull(strstr(heard, "CUBLAS_STATUS_ALLOC_FAILED (3)"));
    ck_assert_ptr_nonnull(strstr(heard, "CUBLAS_STATUS_ARCH_MISMATCH (8)"));
    close_after_warning("matrix products use Tenon's kernel");
}
END_TEST

START_TEST(a_product_that_cublaslt_fails_at_is_done_by_our_kernel_and_said_once)
{
    open_with_three(0, 0, 0);
    fake->blas_matmul = 13;
    product(TN_F32, PLAIN, PLAIN, 3);
    product(TN_F64, PLAIN, PLAIN, 3);
    ck_assert_str_eq(fake->kernel, "tn_bmm_f64");
    fake->blas_matmul = 0;
    product(TN_F64, PLAIN, PLAIN, 3);
    ck_assert_int_eq(fake->products, 1);
    close_after_warning("CUBLAS_STATUS_EXECUTION_FAILED (13); Tenon's kernel is used");
}
END_TEST

void add_products(TCase *to)
{
    tcase_add_test(to, a_cublaslt_that_does_not_start_gives_way_to_the_next_one);
    tcase_add_test(to, where_no_cublaslt_starts_our_kernel_does_every_product);
    tcase_add_test(to, a_product_that_cublaslt_fails_at_is_done_by_our_kernel_and_said_once);
    tcase_add_test(to, products_are_asked_of_cublaslt_row_by_row);
    tcase_add_test(to, the_choice_of_an_algorithm_is_kept);
    tcase_add_test(to, transposed_operands_are_said_to_be);
    tcase_add_test(to, what_cublaslt_cannot_do_our_kernel_does);
    tcase_add_test(to, tf32_is_used_only_when_fast_arithmetic_is_asked_for);
    tcase_add_test(to, an_absent_cublaslt_is_said_and_done_without);
}
