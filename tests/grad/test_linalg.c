/* SPDX-License-Identifier: MIT
 *
 * Linear algebra: first and second derivatives against central differences, decompositions that
 * give their input back, singular matrices, and the message where LAPACK is missing. Results that
 * are unique are compared with PyTorch's by tests/op/test_oracle. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/op/suite.h"

enum { MOST = 2 };

static tn_tensor *adjoint(tn_tensor *x)
{
    return tn_transpose(tn_conj(x), -2, -1);
}

/* Returns the Hermitian part of x, for functions that read only one triangle of their input. */
static tn_tensor *symmetric(tn_tensor *x)
{
    return tn_mul_scalar(tn_add(x, adjoint(x)), 0.5);
}

/* Returns real numbers as a row of the dtype of `like`, to scale the columns of `like`. */
static tn_tensor *row(tn_tensor *x, tn_tensor *like)
{
    return tn_cast(tn_unsqueeze(x, -2), tn_tensor_dtype(like));
}

/* Returns *x, which a call has stored, or NULL if the status of the call is a failure. */
static tn_tensor *fed(tn_status status, tn_tensor *const *x)
{
    return status == TN_OK ? *x : NULL;
}

static tn_tensor *eigenvalues(tn_tensor *x)
{
    tn_tensor *w, *v;

    return fed(tn_linalg_eigh(symmetric(x), &w, &v), &w);
}

/* The exponential of the Hermitian part, by eigenvalues and eigenvectors. */
static tn_tensor *eigh_square(tn_tensor *x)
{
    tn_tensor *w, *v;

    if (tn_linalg_eigh(symmetric(x), &w, &v) != TN_OK)
        return NULL;
    return tn_matmul(tn_mul(v, row(tn_exp(w), v)), adjoint(v));
}

static tn_tensor *singular_values(tn_tensor *x)
{
    tn_tensor *u, *s, *vh;

    return fed(tn_linalg_svd(x, &u, &s, &vh, false), &s);
}

/* u s^2 vh, which does not depend on the choice of the signs. */
static tn_tensor *svd_square(tn_tensor *x)
{
    tn_tensor *u, *s, *vh;

    if (tn_linalg_svd(x, &u, &s, &vh, false) != TN_OK)
        return NULL;
    return tn_matmul(tn_mul(u, row(tn_mul(s, s), u)), vh);
}

static tn_tensor *qr_of(tn_tensor *x, bool q_only)
{
    tn_tensor *q, *r;

    if (tn_linalg_qr(x, &q, &r) != TN_OK)
        return NULL;
    return q_only ? q : tn_mul(r, r);
}

static tn_tensor *both_qr(tn_tensor *x)
{
    tn_tensor *q, *r;

    return tn_linalg_qr(x, &q, &r) == TN_OK ? tn_matmul(q, tn_mul(r, r)) : NULL;
}

static tn_tensor *cholesky(tn_tensor *x, bool upper)
{
    return tn_linalg_cholesky(tn_add_scalar(tn_matmul(x, adjoint(x)), 0), upper);
}

static tn_tensor *log_of_det(tn_tensor *x, bool sign)
{
    tn_tensor *direction, *size;

    return fed(tn_linalg_slogdet(x, &direction, &size), sign ? &direction : &size);
}

static tn_tensor *from_right(tn_tensor *a, tn_tensor *b)
{
    return tn_linalg_solve(a, adjoint(b), false);
}

static tn_tensor *triangular(tn_tensor *a, tn_tensor *b, bool upper, bool left, bool unit)
{
    return tn_linalg_solve_triangular(a, left ? b : adjoint(b), upper, left, unit);
}

static tn_tensor *nuclear(tn_tensor *x)
{
    return tn_linalg_matrix_norm(x, "nuc");
}

static tn_tensor *paired(tn_tensor *a, tn_tensor *b)
{
    return tn_tensordot(a, b, 1);
}

#define ROW(name, m, n, columns, expression)                                                       \
    static tn_tensor *name##_code(tn_tensor *a, tn_tensor *b)                                      \
    {                                                                                              \
        (void)b;                                                                                   \
        return (expression);                                                                       \
    }
#include "tests/grad/linalg_cases.h"
#undef ROW

#define ROW(name, m, n, columns, expression) { #name, { m, n, columns }, name##_code },
static const struct {
    const char *name;
    int64_t size[3];
    tn_tensor *(*code)(tn_tensor *a, tn_tensor *b);
} rows[] = {
#include "tests/grad/linalg_cases.h"
};

/* A matrix with a large diagonal, so that it is not close to a singular one. `first` chooses the
 * numbers. */
static tn_tensor *input(int64_t m, int64_t n, double first, tn_dtype dtype)
{
    tn_dtype real = TN_F64;
    double re[16], im[16];

    for (int64_t i = 0; i < m * n; i++) {
        re[i] = sin(1.7 * (double)i + first) + (i / n == i % n ? 1.5 + 0.4 * (double)(i % n) : 0);
        im[i] = 0.5 * cos(2.3 * (double)i + first);
    }
    if (dtype == real)
        return tn_tensor_from(re, real, TN_SHAPE(m, n));
    return tn_detach(tn_complex(tn_tensor_from(re, real, TN_SHAPE(m, n)),
                                tn_tensor_from(im, real, TN_SHAPE(m, n))));
}

static tn_status value_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const size_t *index = user;

    out[0] = rows[*index].code(in[0], rows[*index].size[2] > 0 ? in[1] : TN_NONE);
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

static void check(tn_dtype dtype, bool second)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TN_SCOPE;
        const int64_t *size = rows[i].size;
        tn_tensor *in[MOST] = { input(size[0], size[1], 0.3, dtype), TN_NONE };
        int64_t count = size[2] > 0 ? 2 : 1;
        tn_status status;

        if (count == 2)
            in[1] = input(size[0], size[2], 1.1, dtype);
        for (int64_t k = 0; k < count; k++)
            ck_assert_int_eq(tn_tensor_set_requires_grad(in[k], true), TN_OK);
        status = second ? tn_gradgradcheck(value_of, &i, in, count, 1, 1e-5, 2e-5)
                        : tn_gradcheck(value_of, &i, in, count, 1, 1e-5, 1e-6);
        ck_assert_msg(status == TN_OK, "%s of %s: %s", rows[i].name, tn_dtype_name(dtype),
                      tn_error_text());
    }
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}

START_TEST(derivatives_agree_with_central_differences)
{
    check(TN_F64, false);
    check(TN_C128, false);
}
END_TEST

START_TEST(second_derivatives_agree_with_central_differences)
{
    check(TN_F64, true);
}
END_TEST

/* Checks that a equals b, a matrix of at most 4 x 4, up to rounding errors: 16 units in the last
 * place of the largest element of b, or of 1. How LAPACK rounds depends on the processor. */
static void same(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *apart = tn_amax(tn_abs(tn_sub(a, b)));
    tn_tensor *largest = tn_amax(tn_abs(b));
    double unit;

    ck_assert_msg(apart != NULL && largest != NULL, "%s", tn_error_text());
    unit = tn_tensor_dtype(apart) == TN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    ck_assert_double_le(tn_tensor_item(apart), 16 * unit * fmax(1, tn_tensor_item(largest)));
}

static tn_tensor *identity(tn_tensor *like, int64_t n)
{
    return tn_eye(like, n, INT64_MIN, tn_tensor_dtype(like));
}

static void decompose(tn_tensor *x)
{
    int64_t m = tn_tensor_size(x, -2), n = tn_tensor_size(x, -1), k = m < n ? m : n;
    tn_tensor *u, *s, *vh, *w, *v, *square = tn_matmul(x, adjoint(x));

    ck_assert_int_eq(tn_linalg_svd(x, &u, &s, &vh, false), TN_OK);
    ck_assert_int_eq(tn_tensor_size(u, -1), k);
    same(tn_matmul(tn_mul(u, row(s, u)), vh), x);
    same(tn_matmul(adjoint(u), u), identity(u, k));
    ck_assert_int_eq(tn_linalg_svd(x, &u, &s, &vh), TN_OK);
    ck_assert_int_eq(tn_tensor_size(u, -1), m);
    ck_assert_int_eq(tn_tensor_size(vh, -2), n);
    same(tn_matmul(u, adjoint(u)), identity(u, m));
    same(tn_matmul(vh, adjoint(vh)), identity(vh, n));
    ck_assert_int_eq(tn_linalg_eigh(square, &w, &v), TN_OK);
    same(tn_matmul(tn_mul(v, row(w, v)), adjoint(v)), square);
    same(tn_matmul(adjoint(v), v), identity(v, m));
    for (int64_t i = 1; i < m; i++)
        ck_assert_double_le(at(w, i - 1), at(w, i));
    for (int64_t i = 1; i < k; i++)
        ck_assert_double_ge(at(s, i - 1), at(s, i));
}

START_TEST(decompositions_give_their_input_back)
{
    static const tn_dtype types[] = { TN_F32, TN_F64, TN_C64, TN_C128 };

    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        TN_SCOPE;
        bool complex = types[t] == TN_C64 || types[t] == TN_C128;
        tn_tensor *x = input(4, 3, 0.3, complex ? TN_C128 : TN_F64);
        tn_tensor *both[2] = { x, tn_mul_scalar(x, -0.7) };

        decompose(tn_cast(x, types[t]));
        decompose(tn_cast(tn_transpose(x, 0, 1), types[t]));
        decompose(tn_select(tn_cast(tn_stack(both, 2, 0), types[t]), 0, 1));
    }
}
END_TEST

START_TEST(of_a_batch_each_matrix_is_computed)
{
    TN_SCOPE;
    tn_tensor *x[2] = { input(3, 3, 0.3, TN_F64), input(3, 3, 0.9, TN_F64) }, *all, *u, *s, *vh;

    all = tn_stack(x, 2, 0);
    ck_assert_int_eq(tn_linalg_svd(all, &u, &s, &vh), TN_OK);
    same(tn_matmul(tn_mul(u, row(s, u)), vh), all);
    ck_assert_int_eq(tn_linalg_eigh(symmetric(all), &s, &u), TN_OK);
    same(tn_matmul(tn_mul(u, row(s, u)), adjoint(u)), symmetric(all));
}
END_TEST

START_TEST(one_triangle_is_read)
{
    TN_SCOPE;
    const double half[] = { 2, NAN, 1, 3 }, whole[] = { 2, 1, 1, 3 };
    tn_tensor *x = tn_tensor_from(half, TN_F64, TN_SHAPE(2, 2)), *w, *v, *other;

    ck_assert_int_eq(tn_linalg_eigh(x, &w, &v), TN_OK);
    ck_assert_int_eq(tn_linalg_eigh(tn_tensor_from(whole, TN_F64, TN_SHAPE(2, 2)), &other, &v),
                     TN_OK);
    same(w, other);
    ck_assert_int_eq(tn_linalg_eigh(tn_transpose(x, 0, 1), &w, &v, "U"), TN_OK);
    same(w, other);
    same(tn_linalg_cholesky(x), tn_linalg_cholesky(tn_tensor_from(whole, TN_F64, TN_SHAPE(2, 2))));
    ck_assert_int_ne(tn_linalg_eigh(x, &w, &v, "U"), TN_OK);
    FAILED(TN_ERR_RUNTIME, "non-finite");
}
END_TEST

START_TEST(the_gradient_of_a_determinant_of_0_are_the_cofactors)
{
    TN_SCOPE;
    const double values[] = { 1, 2, 3, 2, 4, 6, 0, 1, 5 };
    tn_tensor *x = with_grad(tn_tensor_from(values, TN_F64, TN_SHAPE(3, 3))), *gx;
    tn_tensor *y = tn_linalg_det(x);

    ck_assert_double_eq_tol(tn_tensor_item(y), 0, 1e-12);
    ck_assert_int_eq(tn_grad(&y, NULL, 1, &x, &gx, 1, NULL), TN_OK);
    HAS(gx, 14, -10, 2, -7, 5, -1, 0, 0, 0);
}
END_TEST

/* In a process without OpenBLAS: the message says what is missing. */
static bool says_what_is_missing(void)
{
    int status = 1;
    pid_t child = fork();

    if (child == 0) {
        const float x[] = { 1, 0, 0, 1 };

        setenv("TENON_CPU_BLAS", "none", 1);
        if (tn_linalg_inv(tn_tensor_from(x, TN_F32, TN_SHAPE(2, 2))) != NULL ||
            tn_error_code() != TN_ERR_NOT_IMPLEMENTED ||
            strstr(tn_error_text(), "needs LAPACK") == NULL) {
            fprintf(stderr, "TENON_CPU_BLAS=none: %s\n", tn_error_text());
            _exit(1);
        }
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    const float x[] = { 1, 0, 0, 1 };
    Suite *suite = suite_create("linalg");
    TCase *tests = tcase_create("linalg");

    if (!says_what_is_missing())
        return 1;
    if (tn_linalg_inv(tn_tensor_from(x, TN_F32, TN_SHAPE(2, 2))) == NULL) {
        printf("SKIP: %s\n", tn_error_text());
        return strstr(tn_error_text(), "needs LAPACK") != NULL ? 77 : 1;
    }
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, derivatives_agree_with_central_differences);
    tcase_add_test(tests, second_derivatives_agree_with_central_differences);
    tcase_add_test(tests, decompositions_give_their_input_back);
    tcase_add_test(tests, of_a_batch_each_matrix_is_computed);
    tcase_add_test(tests, one_triangle_is_read);
    tcase_add_test(tests, the_gradient_of_a_determinant_of_0_are_the_cofactors);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
