/* SPDX-License-Identifier: MIT
 *
 * Second derivatives of convolution, pooling and standardization against central differences of the
 * first. First derivatives: tests/oracle/conv_pool_norm.txt (tests/op/test_oracle.c) and
 * tests/backend. */
#include "tests/op/suite.h"

static tn_status standardize_twice(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out)
{
    int64_t dims[] = { 0, 2 };
    tn_tensor *mean, *var;

    (void)user;
    (void)n_in;
    return tn_standardize(in[0], in[1], in[2], ((tn_ints){ dims, 2 }), out, &mean, &var);
}

static tn_status convolution_twice(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out)
{
    static const int64_t two[] = { 2 }, one[] = { 1 };

    (void)user;
    (void)n_in;
    out[0] = tn_conv2d(in[0], in[1], in[2], ((tn_ints){ two, 1 }), ((tn_ints){ one, 1 }));
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status pools_twice(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out)
{
    static const int64_t two[] = { 2 }, three[] = { 3 };

    (void)user;
    (void)n_in;
    out[0] = tn_add(tn_max_pool2d(tn_square(in[0]), ((tn_ints){ two, 1 })),
                    tn_avg_pool2d(tn_mul(in[0], in[0]), ((tn_ints){ two, 1 })));
    out[0] = tn_avg_pool2d(out[0], ((tn_ints){ three, 1 }));
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

/* The sum of the cubes of the gradients of sum(f^3), as a function of its own: its gradient has the
 * second derivatives of f. */
typedef tn_status (*function)(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out);

static tn_tensor *slope(function f, tn_tensor *const *in, int64_t n_in)
{
    tn_tensor *out, *grads[4], *total = NULL;
    tn_backward_options o = { .size = sizeof o, .create_graph = 1 };

    if (f(NULL, in, n_in, &out) != TN_OK)
        return NULL;
    out = tn_sum(tn_mul(out, tn_square(out)));
    if (tn_grad(&out, NULL, 1, in, grads, n_in, &o) != TN_OK)
        return NULL;
    for (int64_t i = 0; i < n_in; i++) {
        tn_tensor *part = tn_sum(tn_mul(grads[i], tn_square(grads[i])));

        total = total == NULL ? part : tn_add(total, part);
    }
    return total;
}

/* Second derivatives against central differences of the first. */
static void second(function f, tn_tensor *const *in, int64_t n_in)
{
    tn_tensor *total = slope(f, in, n_in), *grads[4];

    ck_assert_msg(total != NULL && tn_grad(&total, NULL, 1, in, grads, n_in, NULL) == TN_OK, "%s",
                  tn_error_text());
    for (int64_t i = 0; i < n_in; i++) {
        int64_t count = tn_tensor_numel(in[i]);
        double *values = malloc((size_t)count * sizeof *values);

        tn_tensor_copy_out(tn_detach(in[i]), values, (size_t)count * sizeof *values);
        for (int64_t j = 0; j<count; j += count> 5 ? count / 5 : 1) {
            double h = 1e-5, old = values[j], found, wanted;

            values[j] = old + h;
            tn_tensor_copy_in(in[i], values, (size_t)count * sizeof *values);
            wanted = at(slope(f, in, n_in), 0);
            values[j] = old - h;
            tn_tensor_copy_in(in[i], values, (size_t)count * sizeof *values);
            wanted = (wanted - at(slope(f, in, n_in), 0)) / (2 * h);
            values[j] = old;
            tn_tensor_copy_in(in[i], values, (size_t)count * sizeof *values);
            found = at(grads[i], j);
            ck_assert_msg(fabs(found - wanted) <= 1e-4 * (1 + fabs(wanted)),
                          "input %d, element %d: %g, central differences %g", (int)i, (int)j, found,
                          wanted);
        }
        free(values);
    }
}

START_TEST(second_derivatives_agree_with_central_differences)
{
    TN_SCOPE;
    tn_tensor *conv[] = { with_grad(tn_sin(stepped(TN_SHAPE(2, 2, 5, 4), 0.7, 0))),
                          with_grad(tn_sin(stepped(TN_SHAPE(3, 2, 3, 3), 1.3, 0.2))),
                          with_grad(tn_sin(stepped(TN_SHAPE(3), 0.9, 0.1))) };
    tn_tensor *norm[] = { with_grad(tn_sin(stepped(TN_SHAPE(3, 2, 2), 0.7, 0))),
                          with_grad(tn_sin(stepped(TN_SHAPE(2, 1), 1.3, 0.2))),
                          with_grad(tn_sin(stepped(TN_SHAPE(2, 1), 0.9, 0.1))) };
    tn_tensor *pool[] = { with_grad(tn_sin(stepped(TN_SHAPE(1, 2, 6, 6), 0.7, 0.05))) };

    second(convolution_twice, conv, 3);
    second(standardize_twice, norm, 3);
    second(pools_twice, pool, 1);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv, pool, norm");
    TCase *tests = tcase_create("derivatives");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, second_derivatives_agree_with_central_differences);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
