/* SPDX-License-Identifier: MIT
 *
 * Derivatives of the operators in `rows` compared with central differences, second derivatives of
 * some of them, and memory that runs out at every allocation in turn. */
#include "core/base/internal.h"
#include "tests/op/suite.h"
#include "tests/spec/proves.h"

typedef tn_status code(void *user, tn_tensor *const *in, tn_tensor **out);

/* Distinct values, none close to a kink. */
static tn_tensor *input(tn_ints shape, double first)
{
    tn_tensor *x = tn_tensor_empty(shape, TN_F64, NULL);
    int64_t count = tn_tensor_numel(x);
    double *values = malloc((size_t)count * sizeof *values + 1);

    for (int64_t i = 0; i < count; i++)
        values[i] = first + sin(1.7 * (double)i + first) + 0.013 * (double)i;
    ck_assert_int_eq(tn_tensor_copy_in(x, values, (size_t)count * sizeof *values), TN_OK);
    free(values);
    return x;
}

#define CODE(name, expression)                                                                     \
    static tn_status name(void *user, tn_tensor *const *in, tn_tensor **out)                       \
    {                                                                                              \
        (void)user;                                                                                \
        out[0] = (expression);                                                                     \
        return out[0] != NULL ? TN_OK : tn_error_last_code();                                      \
    }

static tn_tensor *targets(void)
{
    static const int64_t values[3] = { 1, -100, 0 };

    return tn_tensor_from(values, TN_I64, TN_SHAPE(3));
}

static tn_tensor *nll(tn_tensor *x, const char *reduction)
{
    tn_tensor *y, *count;

    return tn_nll_loss(x, targets(), &y, &count, reduction) == TN_OK ? y : NULL;
}

static tn_tensor *entropy(tn_tensor *x, const char *reduction, double smoothing)
{
    return tn_cross_entropy(x, targets(), reduction, -100, smoothing);
}

static tn_tensor *sum_of(tn_tensor *x, int64_t dim, bool keepdim)
{
    return tn_sum(x, TN_INTS(dim), keepdim);
}

static tn_tensor *mean_of(tn_tensor *x, int64_t dim)
{
    return tn_mean(x, TN_INTS(dim));
}

static tn_tensor *amax_of(tn_tensor *x, int64_t dim)
{
    return tn_amax(x, TN_INTS(dim));
}

CODE(add, tn_add(in[0], in[1], -1.5))
CODE(sub, tn_sub(in[0], in[1], 2.5))
CODE(mul, tn_mul(in[0], in[1]))
CODE(divide, tn_div(in[0], in[1]))
CODE(maximum, tn_maximum(in[0], in[1]))
CODE(scalars, tn_mul_scalar(tn_add_scalar(in[0], 1.25), -3))
CODE(neg, tn_neg(in[0]))
CODE(exponential, tn_exp(in[0]))
CODE(logarithm, tn_ln(in[0]))
CODE(root, tn_sqrt(in[0]))
CODE(relu, tn_relu(in[0]))
CODE(relu_grad, tn_relu_grad(in[0], tn_detach(in[1])))
CODE(sigmoid, tn_sigmoid(in[0]))
CODE(softmax, tn_softmax(in[0], 1))
CODE(softmax_first, tn_softmax(in[0], 0))
CODE(log_softmax, tn_log_softmax(in[0], -1))
CODE(halved, tn_glu(tn_cat(in, 2, 1)))
CODE(halved_grad, tn_glu_grad(in[0], tn_cat(in, 2, 1)))
CODE(products, tn_cumprod(in[0], 1))
CODE(products_grad, tn_cumprod_grad(in[0], in[1], 0))
CODE(softmax_grad, tn_softmax_grad(in[0], in[1], 1))
CODE(log_softmax_grad, tn_log_softmax_grad(in[0], in[1], 1))
CODE(sum, sum_of(in[0], 0, false))
CODE(sum_kept, sum_of(in[0], 1, true))
CODE(sum_all, tn_sum(in[0]))
CODE(mean, mean_of(in[0], 1))
CODE(amax, amax_of(in[0], 1))
CODE(sum_to, tn_sum_to(in[0], TN_SHAPE(1, 3)))
CODE(linear_row, tn_linear(in[0], tn_select(in[1], 0, 0), tn_select(tn_select(in[1], 0, 1), 0, 0)))
CODE(bmm, tn_bmm(tn_unsqueeze(in[0], 0), tn_unsqueeze(tn_transpose(in[1], 0, 1), 0)))
CODE(matmul, tn_matmul(tn_transpose(in[0], 0, 1), in[1]))
CODE(matrix_vector, tn_matmul(in[0], tn_select(in[1], 0, 1)))
CODE(linear, tn_linear(in[0], in[1], tn_select(tn_matmul(in[0], tn_transpose(in[1], 0, 1)), 0, 0)))
CODE(view, tn_view_to(in[0], TN_SHAPE(9)))
CODE(reshape,
     tn_mul(tn_reshape(tn_transpose(in[0], 0, 1), TN_SHAPE(9)), tn_view_to(in[0], TN_SHAPE(9))))
CODE(flatten, tn_flatten(tn_unsqueeze(in[0], 1), 0, -1))
CODE(permute, tn_permute(in[0], TN_INTS(1, 0)))
CODE(expand, tn_expand(in[0], TN_SHAPE(2, 3, 3)))
CODE(squeeze, tn_squeeze(tn_unsqueeze(in[0], -1)))
CODE(narrow, tn_narrow(in[0], 1, -2, 2))
CODE(narrow_grad, tn_narrow_grad(in[0], TN_SHAPE(5, 3), 0, 1))
CODE(choose, tn_select(in[0], 1, -1))
CODE(copy, tn_copy(tn_transpose(in[0], 0, 1)))
CODE(cast, tn_cast(tn_cast(in[0], TN_F64), TN_F64))
CODE(nll_mean, nll(in[0], "mean"))
CODE(nll_sum, nll(in[0], "sum"))
CODE(nll_none, nll(in[0], "none"))
CODE(entropy_mean, entropy(in[0], "mean", 0))
CODE(entropy_none, entropy(in[0], "none", 0.1))
CODE(in_place, tn_sigmoid_(tn_mul_(tn_add_scalar(in[0], 1), in[1])))
CODE(twice_the_same, tn_mul(in[0], tn_add(in[0], in[0])))

static const struct {
    const char *name;
    code *code;
    int inputs;
    double first;
} rows[] = {
    { "add", add, 2, 0 },
    { "sub", sub, 2, 0 },
    { "mul", mul, 2, 0 },
    { "div", divide, 2, 3 },
    { "maximum", maximum, 2, 0 },
    { "scalars", scalars, 1, 0 },
    { "neg", neg, 1, 0 },
    { "exp", exponential, 1, 0 },
    { "log", logarithm, 1, 3 },
    { "sqrt", root, 1, 3 },
    { "relu", relu, 1, 0.1 },
    { "relu_grad", relu_grad, 2, 0.1 },
    { "sigmoid", sigmoid, 1, 0 },
    { "softmax", softmax, 1, 0 },
    { "softmax_first", softmax_first, 1, 0 },
    { "log_softmax", log_softmax, 1, 0 },
    { "glu", halved, 2, 0 },
    { "glu_grad", halved_grad, 2, 0 },
    { "cumprod", products, 1, 0 },
    { "cumprod_grad", products_grad, 2, 0 },
    { "softmax_grad", softmax_grad, 2, 0 },
    { "log_softmax_grad", log_softmax_grad, 2, 0 },
    { "sum", sum, 1, 0 },
    { "sum_kept", sum_kept, 1, 0 },
    { "sum_all", sum_all, 1, 0 },
    { "mean", mean, 1, 0 },
    { "amax", amax, 1, 0 },
    { "sum_to", sum_to, 1, 0 },
    { "bmm", bmm, 2, 0 },
    { "matmul", matmul, 2, 0 },
    { "matrix_vector", matrix_vector, 2, 0 },
    { "linear", linear, 2, 0 },
    { "linear_row", linear_row, 2, 0 },
    { "view", view, 1, 0 },
    { "reshape", reshape, 1, 0 },
    { "flatten", flatten, 1, 0 },
    { "permute", permute, 1, 0 },
    { "expand", expand, 1, 0 },
    { "squeeze", squeeze, 1, 0 },
    { "narrow", narrow, 1, 0 },
    { "narrow_grad", narrow_grad, 1, 0 },
    { "select", choose, 1, 0 },
    { "copy", copy, 1, 0 },
    { "cast", cast, 1, 0 },
    { "nll_mean", nll_mean, 1, 0 },
    { "nll_sum", nll_sum, 1, 0 },
    { "nll_none", nll_none, 1, 0 },
    { "entropy_mean", entropy_mean, 1, 0 },
    { "entropy_none", entropy_none, 1, 0 },
    { "in_place", in_place, 2, 0 },
    { "twice", twice_the_same, 1, 0 },
};

START_TEST(every_derivative_agrees_with_central_differences)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TN_SCOPE;
        tn_tensor *in[2] = { input(TN_SHAPE(3, 3), rows[i].first),
                             input(TN_SHAPE(3, 3), rows[i].first + 0.37) };

        ck_assert_msg(tn_gradcheck(rows[i].code, NULL, in, rows[i].inputs, 1, 1e-5, 1e-7) == TN_OK,
                      "%s: %s", rows[i].name, tn_error_text());
    }
    FINE();
    TN_PROVES("AUT-014");
}
END_TEST

/* Computes the gradient of a row's function. tn_gradcheck of this function checks the second
 * derivatives of the row. */
static tn_status gradient_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const size_t *row = user;
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *y, *loss, *free_of_graph[2];
    bool numeric = !tn_grad_enabled();
    tn_status status;

    for (int i = 0; i < rows[*row].inputs; i++) {
        free_of_graph[i] = in[i];
        if (numeric)
            tn_tensor_set_requires_grad(free_of_graph[i] = tn_detach(in[i]), true);
    }
    tn_grad_begin(true);
    status = rows[*row].code(NULL, free_of_graph, &y);
    loss = tn_sum(tn_mul(y, y));
    if (status == TN_OK)
        status = tn_grad(&loss, NULL, 1, free_of_graph, out, rows[*row].inputs, &create);
    tn_grad_end();
    return status;
}

START_TEST(second_derivatives_agree_too)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TN_SCOPE;
        tn_tensor *in[2] = { input(TN_SHAPE(3, 3), rows[i].first),
                             input(TN_SHAPE(3, 3), rows[i].first + 0.37) };

        if (strcmp(rows[i].name, "relu_grad") == 0) /* its second input has no gradient */
            continue;
        ck_assert_msg(
            tn_gradcheck(gradient_of, &i, in, rows[i].inputs, rows[i].inputs, 1e-5, 1e-6) == TN_OK,
            "%s: %s", rows[i].name, tn_error_text());
    }
    FINE();
}
END_TEST

START_TEST(gradgradcheck_sees_second_derivatives)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TN_SCOPE;
        tn_tensor *in[2] = { input(TN_SHAPE(3, 3), rows[i].first),
                             input(TN_SHAPE(3, 3), rows[i].first + 0.37) };

        if (strcmp(rows[i].name, "relu_grad") == 0)
            continue;
        ck_assert_msg(tn_gradgradcheck(rows[i].code, NULL, in, rows[i].inputs, 1, 1e-5, 1e-6) ==
                          TN_OK,
                      "%s: %s", rows[i].name, tn_error_text());
    }
    FINE();
}
END_TEST

/* The first derivative is right, the second wrong: the slope 2 x is a constant without a history.
 */
static tn_status frozen_slope(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                              tn_tensor **out)
{
    (void)user;
    out[0] = tn_mul(in[0], in[0]);
    return out[0] == NULL ? tn_error_code() : tn_function_save(ctx, in[0]);
}

static tn_status frozen_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                             tn_tensor **gin)
{
    (void)user;
    gin[0] = tn_mul(gout[0], tn_mul_scalar(tn_detach(tn_function_saved(ctx, 0)), 2));
    return gin[0] == NULL ? tn_error_code() : TN_OK;
}

static tn_status frozen(void *user, tn_tensor *const *in, tn_tensor **out)
{
    static const tn_function square = { .name = "frozen",
                                        .forward = frozen_slope,
                                        .backward = frozen_back };

    return tn_function_call(&square, user, in, 1, out, 1);
}

CODE(square_of_first, tn_mul(in[0], in[0]))
CODE(without_graph, tn_detach(tn_mul(in[0], in[0])))

START_TEST(gradgradcheck_takes_gradients_that_never_change)
{
    TN_SCOPE;
    tn_tensor *in[] = { input(TN_SHAPE(2), 2), input(TN_SHAPE(3), 1) };

    ck_assert_msg(tn_gradgradcheck(square_of_first, NULL, in, 2, 1, 1e-5, 1e-6) == TN_OK, "%s",
                  tn_error_text());
    /* first derivatives still need a graph */
    ck_assert_int_eq(tn_gradcheck(without_graph, NULL, in, 1, 1, 0, 0), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "does not require grad");
}
END_TEST

START_TEST(gradgradcheck_finds_a_wrong_second_derivative)
{
    TN_SCOPE;
    tn_tensor *x = input(TN_SHAPE(2), 2), *narrow_type = tn_cast(x, TN_F32);

    ck_assert_msg(tn_gradcheck(frozen, NULL, &x, 1, 1, 0, 0) == TN_OK, "%s", tn_error_text());
    ck_assert_int_eq(tn_gradgradcheck(frozen, NULL, &x, 1, 1, 0, 0), TN_ERR_ASSERT);
    FAILED(TN_ERR_ASSERT, "tn_gradcheck: input 0, element 0: wrong derivative, got");
    ck_assert_int_eq(tn_gradgradcheck(mul, NULL, &narrow_type, 1, 1, 0, 0), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "not precise enough");
    ck_assert_int_eq(tn_gradgradcheck(mul, NULL, &x, 0, 1, 0, 0), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "tn_gradgradcheck: no inputs or no outputs, got ");
}
END_TEST

CODE(wrong, tn_mul(in[0], tn_detach(in[0])))

START_TEST(a_wrong_derivative_is_found)
{
    TN_SCOPE;
    tn_tensor *x = input(TN_SHAPE(2), 2), *narrow_type = tn_cast(x, TN_F32);

    ck_assert_int_eq(tn_gradcheck(wrong, NULL, &x, 1, 1, 0, 0), TN_ERR_ASSERT);
    FAILED(TN_ERR_ASSERT, "tn_gradcheck: input 0, element 0: wrong derivative, got");
    ck_assert_int_eq(tn_gradcheck(mul, NULL, &narrow_type, 1, 1, 0, 0), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "not precise enough");
}
END_TEST

/* A small network, with something in place, a hook and a function of views in it. */
static tn_status step(tn_tensor *x, tn_tensor *w, tn_tensor *b)
{
    TN_SCOPE;
    tn_tensor *h = tn_relu(tn_linear(x, w, b)), *y = tn_mul_scalar(h, 2), *loss;

    tn_mul_scalar_(tn_narrow(y, 0, 1, 1), 3);
    loss = tn_add(entropy(tn_add(y, h), "mean", 0), tn_mean(tn_log_softmax(y, 1)));
    return tn_backward(loss);
}

/* The same, and the gradient of a gradient through the change in place. */
static tn_status step_twice(tn_tensor *x, tn_tensor *w, tn_tensor *b)
{
    TN_SCOPE;
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *y = tn_mul(tn_linear(x, w, b), w), *v = tn_narrow(y, 0, 1, 1), *loss, *slope;
    tn_status status;

    tn_fill_(tn_narrow(y, 0, 2, 1), 0.5);
    tn_sigmoid_(v);
    loss = tn_add(tn_sum(tn_mul(y, y)), tn_sum(v));
    status = tn_grad(&loss, NULL, 1, &w, &slope, 1, &create);
    return status == TN_OK ? tn_backward(tn_sum(tn_mul(slope, slope))) : status;
}

static void sweep(tn_status (*work)(tn_tensor *x, tn_tensor *w, tn_tensor *b))
{
    uint64_t scope = tn_scope_begin();
    int64_t nodes = tn_grad_node_count();
    tn_tensor *x = input(TN_SHAPE(3, 3), 0), *w = with_grad(input(TN_SHAPE(3, 3), 0.4)),
              *b = with_grad(input(TN_SHAPE(3), 0.1));
    double expected[9];
    uint64_t nth = 1, made;

    ck_assert_int_eq(work(x, w, b), TN_OK);
    for (int i = 0; i < 9; i++)
        expected[i] = at(tn_tensor_grad(w), i);
    tn_device_trim(tn_default_device());
    for (;; nth++) {
        tn_status status;

        tn_tensor_set_grad(w, TN_NONE);
        tn_tensor_set_grad(b, TN_NONE);
        tn__memory_fail(nth);
        status = work(x, w, b);
        made = tn__memory_fail(0);
        ck_assert_int_eq(tn_grad_node_count(), nodes);
        if (status == TN_OK && made < nth)
            break;
        if (status != TN_OK) {
            ck_assert_msg(tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)nth,
                          tn_error_text());
            tn_error_clear();
        }
        ck_assert_uint_lt(nth, 5000);
    }
    ck_assert_uint_gt(nth, 20);
    for (int i = 0; i < 9; i++)
        ck_assert_double_eq(at(tn_tensor_grad(w), i), expected[i]);
    tn_scope_end(scope);
    FINE();
}

START_TEST(memory_that_runs_out_anywhere_is_an_error_and_nothing_else)
{
    sweep(step);
}
END_TEST

START_TEST(memory_that_runs_out_while_gradients_are_recorded_is_an_error_too)
{
    sweep(step_twice);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("check");
    TCase *tests = tcase_create("check");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_derivative_agrees_with_central_differences);
    tcase_add_test(tests, second_derivatives_agree_too);
    tcase_add_test(tests, gradgradcheck_sees_second_derivatives);
    tcase_add_test(tests, gradgradcheck_takes_gradients_that_never_change);
    tcase_add_test(tests, gradgradcheck_finds_a_wrong_second_derivative);
    tcase_add_test(tests, a_wrong_derivative_is_found);
    tcase_add_test(tests, memory_that_runs_out_anywhere_is_an_error_and_nothing_else);
    tcase_add_test(tests, memory_that_runs_out_while_gradients_are_recorded_is_an_error_too);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
