/* SPDX-License-Identifier: MIT
 *
 * bmm. */
#include "tests/gpu/kernels.h"

static void try_bmm(tn_dtype dtype, int64_t batch, int64_t m, int64_t k, int64_t n, enum layout la,
                    enum layout lb, enum layout ly)
{
    const int64_t sa[] = { batch, m, k }, sb[] = { batch, k, n }, sy[] = { batch, m, n };
    struct array *a = array_new(&here, dtype, 3, sa, la), *b = array_new(&here, dtype, 3, sb, lb);
    struct array *y = array_new(&here, dtype, 3, sy, ly);
    struct array *const in[] = { a, b }, *const out[] = { y };

    numbers(a, 1);
    numbers(b, 2);
    array_up(y);
    CALL(&here, "bmm", NULL, in, out);
    array_down(y);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t z = i / (m * n), row = i / n % m, column = i % n;
        double want = 0;

        for (int64_t j = 0; j < k; j++)
            want += array_get(a, (z * m + row) * k + j) * array_get(b, (z * k + j) * n + column);
        close_to(array_get(y, i), wrapped(dtype, want), 4 * tolerance(dtype), "bmm", i);
    }
    array_drop(a);
    array_drop(b);
    array_drop(y);
}

START_TEST(products_of_matrices_of_any_size_and_layout)
{
    for (int la = 0; la < LAYOUTS; la++)
        for (int lb = 0; lb < LAYOUTS; lb++)
            try_bmm(TN_F32, 2, 5, 19, 7, (enum layout)la, (enum layout)lb,
                    (enum layout)((la + lb) % 3));
    try_bmm(TN_F32, 1, 65, 33, 130, PLAIN, PLAIN, PLAIN);
    try_bmm(TN_F32, 1, 1, 40, 66, PLAIN, TURNED, PLAIN);
    try_bmm(TN_F32, 3, 1, 1, 1, PLAIN, PLAIN, PLAIN);
    try_bmm(TN_F64, 2, 64, 16, 64, TURNED, PLAIN, PLAIN);
    try_bmm(TN_F16, 1, 9, 20, 9, PLAIN, PLAIN, PLAIN);
    try_bmm(TN_I32, 1, 9, 20, 9, PLAIN, TURNED, PLAIN);
    try_bmm(TN_I64, 1, 9, 20, 9, GAPS, TURNED, PLAIN);
    try_bmm(TN_F32, 2, 3, 0, 4, PLAIN, PLAIN, GAPS);
    try_bmm(TN_F32, 0, 3, 2, 4, PLAIN, PLAIN, PLAIN);
}
END_TEST

/* For a slow device, as in kernels_reduction.c. */
START_TEST(groups_multiply_together)
{
    try_bmm(TN_F32, 1, 3, 20, 65, TURNED, PLAIN, PLAIN);
}
END_TEST

void add_matmul(TCase *to, bool slow)
{
    tcase_add_test(to,
                   slow ? groups_multiply_together : products_of_matrices_of_any_size_and_layout);
}
