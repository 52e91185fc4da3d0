/* SPDX-License-Identifier: MIT
 *
 * Products of matrices: what is asked of cuBLASLt, and what our own kernel does. */
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
    ck_assert_int_eq(fake->product_transposed[0], 0); /* b: ours comes first there */
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

void add_products(TCase *to)
{
    tcase_add_test(to, products_are_asked_of_cublaslt_row_by_row);
    tcase_add_test(to, the_choice_of_an_algorithm_is_kept);
    tcase_add_test(to, transposed_operands_are_said_to_be);
    tcase_add_test(to, what_cublaslt_cannot_do_our_kernel_does);
    tcase_add_test(to, tf32_is_used_only_when_fast_arithmetic_is_asked_for);
    tcase_add_test(to, an_absent_cublaslt_is_said_and_done_without);
}
