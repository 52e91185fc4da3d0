/* SPDX-License-Identifier: MIT
 *
 * Fourier transforms: first and second derivatives against central differences, for real and for
 * complex inputs. Results are compared with PyTorch's by tests/op/test_oracle, and with the
 * definition by tests/backend/test_fft. */
#include "tests/op/suite.h"

enum { REAL = 1, COMPLEX = 2, BOTH = REAL | COMPLEX };

static tn_tensor *c2c_inverse(tn_tensor *x)
{
    return tn_fft_c2c(x, 0, true, 0.5);
}

static tn_tensor *fft_of(tn_tensor *x, int64_t n, int64_t dim, const char *norm)
{
    return tn_fft_fft(x, n, dim, norm);
}

static tn_tensor *irfft_of(tn_tensor *x, int64_t n)
{
    return tn_fft_irfft(x, n);
}

/* The elements of x as one row, in windows of 4 elements. */
static tn_tensor *stft_of(tn_tensor *x)
{
    const double values[] = { 0.5, 1, 0.8, 0.3 };
    tn_tensor *window = tn_tensor_from(values, TN_F64, TN_SHAPE(4));

    return tn_stft(tn_reshape(x, TN_SHAPE(tn_tensor_numel(x))), window, 4, 1);
}

/* The rows are the frequencies of a transform. */
static tn_tensor *istft_of(tn_tensor *x)
{
    const double values[] = { 0.5, 1, 0.8, 0.3 };
    int64_t n = 2 * (tn_tensor_size(x, 0) - 1);
    tn_tensor *window = tn_tensor_from(values, TN_F64, TN_SHAPE(n));

    return tn_istft(x, window, n, 1);
}

#define ROW(name, kinds, expression)                                                               \
    static tn_tensor *name##_code(tn_tensor *x)                                                    \
    {                                                                                              \
        return (expression);                                                                       \
    }
#include "tests/grad/fft_cases.h"
#undef ROW

#define ROW(name, kinds, expression) { #name, kinds, name##_code },
static const struct row {
    const char *name;
    int kinds;
    tn_tensor *(*code)(tn_tensor *x);
} rows[] = {
#include "tests/grad/fft_cases.h"
};

static tn_tensor *input(const int64_t size[2], bool complex)
{
    double re[16], im[16];
    tn_ints shape = { size, 2 };

    for (int64_t i = 0; i < size[0] * size[1]; i++) {
        re[i] = sin(1.7 * (double)i + 0.3);
        im[i] = cos(2.3 * (double)i + 0.3);
    }
    if (!complex)
        return with_grad(tn_tensor_from(re, TN_F64, shape));
    return with_grad(tn_detach(
        tn_complex(tn_tensor_from(re, TN_F64, shape), tn_tensor_from(im, TN_F64, shape))));
}

/* The transform, followed by a nonlinear function, so that there are second derivatives. */
static tn_status value_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const struct row *row = user;
    tn_tensor *y = row->code(in[0]);

    out[0] = y == NULL ? NULL : tn_mul(tn_mul(y, y), y);
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

static void check(bool complex, bool second)
{
    static const int64_t sizes[][2] = { { 3, 4 }, { 2, 5 }, { 3, 2 } };
    int checked = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            TN_SCOPE;
            tn_tensor *x = input(sizes[k], complex);
            struct row row = rows[i];
            tn_status status;

            if ((row.kinds & (complex ? COMPLEX : REAL)) == 0)
                continue;
            status = second ? tn_gradgradcheck(value_of, &row, &x, 1, 1, 1e-5, 1e-5)
                            : tn_gradcheck(value_of, &row, &x, 1, 1, 1e-5, 1e-6);
            ck_assert_msg(status == TN_OK, "%s of [%d, %d], %s: %s", row.name, (int)sizes[k][0],
                          (int)sizes[k][1], complex ? "complex" : "real", tn_error_text());
            checked++;
        }
    ck_assert_int_ge(checked, 70);
}

START_TEST(derivatives_agree_with_central_differences)
{
    check(false, false);
    check(true, false);
}
END_TEST

START_TEST(second_derivatives_agree_with_central_differences)
{
    check(false, true);
    check(true, true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fft");
    TCase *tests = tcase_create("fft");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, derivatives_agree_with_central_differences);
    tcase_add_test(tests, second_derivatives_agree_with_central_differences);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
