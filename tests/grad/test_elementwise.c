/* SPDX-License-Identifier: MIT
 *
 * First and second derivatives of arithmetic and activations against central differences. */
#include "tests/op/suite.h"

/* Distinct values, none close to a kink. */
static tn_tensor *input(double first)
{
    double values[6];

    for (int i = 0; i < 6; i++)
        values[i] = first + sin(1.7 * i + first) + 0.013 * i;
    return tn_tensor_from(values, TN_F64, TN_SHAPE(2, 3));
}

#define CODE(name, expression)                                                                     \
    static tn_tensor *name##_code(tn_tensor *const *in, int n)                                     \
    {                                                                                              \
        tn_tensor *a = in[0], *b = n > 1 ? in[1] : NULL, *c = n > 2 ? in[2] : NULL;                \
                                                                                                   \
        (void)a, (void)b, (void)c;                                                                 \
        return (expression);                                                                       \
    }
#define LESS(x) tn_mul_scalar(x, 0.4)

/* An input that begins at `first`, moved so that all its values are `value`. */
static tn_tensor *moved(tn_tensor *x, double first, double value)
{
    return tn_add_scalar(tn_sub(x, input(first)), value);
}
#define AT(x, first, value) moved(x, first, value)
/* Constants in the shape of x: 1/2, and 0 in the second column but 1 in the others. */
#define HALF(x) tn_detach(tn_fill(x, 0.5))
#define MASK(x) tn_tensor_from(((double[]){ 1, 0, 1, 1, 0, 1 }), TN_F64, TN_SHAPE(2, 3))

static tn_tensor *zero_like(tn_tensor *x)
{
    return tn_fill(tn_detach(x), 0);
}
#define ROW(name, inputs, first, expression) CODE(name, expression)
#include "tests/grad/elementwise_cases.h"
#undef ROW

#define ROW(name, inputs, first, expression) { #name, name##_code, inputs, first },
static const struct {
    const char *name;
    tn_tensor *(*code)(tn_tensor *const *in, int n);
    int inputs;
    double first;
} rows[] = {
#include "tests/grad/elementwise_cases.h"
};

static tn_status value_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const size_t *row = user;

    out[0] = rows[*row].code(in, rows[*row].inputs);
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

/* Computes the gradient of the square of a row's function; the square makes the gradient depend on
 * the values. tn_gradcheck of this function checks the second derivatives of the row. */
static tn_status gradient_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const size_t *row = user;
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *y, *loss, *free_of_graph[3];
    bool numeric = !tn_grad_enabled();
    tn_status status;

    for (int i = 0; i < rows[*row].inputs; i++) {
        free_of_graph[i] = in[i];
        if (numeric)
            tn_tensor_set_requires_grad(free_of_graph[i] = tn_detach(in[i]), true);
    }
    tn_grad_begin(true);
    status = value_of(user, free_of_graph, &y);
    loss = tn_sum(tn_mul(y, y));
    if (status == TN_OK)
        status = tn_grad(&loss, NULL, 1, free_of_graph, out, rows[*row].inputs, &create);
    tn_grad_end();
    return status;
}

static void check(bool second)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TN_SCOPE;
        double first = rows[i].first;
        tn_tensor *in[3] = { input(first), input(first + 0.37), input(first + 0.61) };
        tn_status status = second ? tn_gradcheck(gradient_of, &i, in, rows[i].inputs,
                                                 rows[i].inputs, 1e-5, 1e-6)
                                  : tn_gradcheck(value_of, &i, in, rows[i].inputs, 1, 1e-5, 1e-7);

        ck_assert_msg(status == TN_OK, "%s: %s", rows[i].name, tn_error_text());
    }
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}

START_TEST(derivatives_agree_with_central_differences)
{
    check(false);
}
END_TEST

START_TEST(second_derivatives_agree_with_central_differences)
{
    check(true);
}
END_TEST

/* Where a logarithm is limited to -100, the loss does not depend on x. */
START_TEST(the_mixed_derivative_of_binary_cross_entropy_is_a_number_at_0_and_1)
{
    TN_SCOPE;
    const double values[3] = { 0, 1, 0.25 }, targets[3] = { 0, 1, 0.5 };
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *x = tn_tensor_from(values, TN_F64, TN_SHAPE(3)), *g, *h, *loss;
    tn_tensor *t = tn_tensor_from(targets, TN_F64, TN_SHAPE(3));

    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    ck_assert_int_eq(tn_tensor_set_requires_grad(t, true), TN_OK);
    loss = tn_binary_cross_entropy(x, t, TN_NONE, "sum");
    ck_assert_int_eq(tn_grad(&loss, NULL, 1, &t, &g, 1, &create), TN_OK);
    ck_assert_double_eq_tol(at(g, 0), 100, 1e-12);
    ck_assert_double_eq_tol(at(g, 1), -100, 1e-12);
    ck_assert_double_eq_tol(at(g, 2), log(3), 1e-12);
    loss = tn_sum(g);
    ck_assert_int_eq(tn_grad(&loss, NULL, 1, &x, &h, 1, NULL), TN_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(at(h, i), -1, 1e-12); /* of the other logarithm alone */
    ck_assert_double_eq_tol(at(h, 2), -1 / (0.25 * 0.75), 1e-12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("derivatives");
    TCase *tests = tcase_create("elementwise");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, derivatives_agree_with_central_differences);
    tcase_add_test(tests, second_derivatives_agree_with_central_differences);
    tcase_add_test(tests, the_mixed_derivative_of_binary_cross_entropy_is_a_number_at_0_and_1);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
