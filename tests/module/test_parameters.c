/* SPDX-License-Identifier: MIT
 *
 * Clipping of gradients, parameters as one vector. The rows are of the area UTL of the behaviour
 * specification; numbers are PyTorch's (torch.nn.utils). */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

static tn_tensor *with_gradient(const float *gradient, int64_t n)
{
    tn_tensor *p = tn_parameter(tn_tensor_full(TN_SHAPE(n), 1.0, TN_F32, NULL), true);
    if (gradient != NULL)
        ck_assert_int_eq(tn_tensor_set_grad(p, tn_tensor_from(gradient, TN_F32, TN_SHAPE(n))),
                         TN_OK);
    return p;
}

static void expect_gradient(tn_tensor *p, int64_t n, const double *expected)
{
    float is[8];
    ck_assert_int_eq(tn_tensor_copy_out(tn_tensor_grad(p), is, (size_t)n * sizeof *is), TN_OK);
    for (int64_t i = 0; i < n; i++)
        ck_assert_double_eq_tol((double)is[i], expected[i], 1e-6);
}

START_TEST(gradients_are_scaled_to_a_norm_utl_001)
{
    TN_SCOPE;
    const float a[2] = { 3, 0 }, b[3] = { 0, -4, 0 };
    tn_tensor *p[3] = { with_gradient(a, 2), with_gradient(NULL, 2), with_gradient(b, 3) };
    double norm = -1;
    /* norm 5, coefficient 1 / (5 + 1e-6) */
    ck_assert_int_eq(tn_clip_grad_norm(p, 3, 1.0, 2.0, false, &norm), TN_OK);
    ck_assert_double_eq_tol(norm, 5.0, 1e-6);
    expect_gradient(p[0], 2, (double[]){ 3 / 5.000001, 0 });
    expect_gradient(p[2], 3, (double[]){ 0, -4 / 5.000001, 0 });
    ck_assert_ptr_eq(tn_tensor_grad(p[1]), TN_NONE);
    /* a norm that is small enough multiplies by 1 */
    uint64_t version = tn_tensor_version(tn_tensor_grad(p[0]));
    ck_assert_int_eq(tn_clip_grad_norm(p, 3, 10.0, 2.0, false, NULL), TN_OK);
    expect_gradient(p[2], 3, (double[]){ 0, -4 / 5.000001, 0 });
    ck_assert_uint_gt(tn_tensor_version(tn_tensor_grad(p[0])), version);
    tn_tensor_set_grad(p[0], tn_tensor_from(a, TN_F32, TN_SHAPE(2)));
    tn_tensor_set_grad(p[2], tn_tensor_from(b, TN_F32, TN_SHAPE(3)));
    ck_assert_int_eq(tn_clip_grad_norm(p, 3, 2.0, INFINITY, false, &norm), TN_OK);
    ck_assert_double_eq(norm, 4.0);
    expect_gradient(p[0], 2, (double[]){ 3 * 2 / 4.000001, 0 });
    tn_tensor_set_grad(p[0], tn_tensor_from(a, TN_F32, TN_SHAPE(2)));
    tn_tensor_set_grad(p[2], tn_tensor_from(b, TN_F32, TN_SHAPE(3)));
    ck_assert_int_eq(tn_clip_grad_norm(p, 3, 3.5, 1.0, false, &norm), TN_OK);
    ck_assert_double_eq_tol(norm, 7.0, 1e-6);
    expect_gradient(p[2], 3, (double[]){ 0, -4 * 3.5 / 7.000001, 0 });
    ck_assert_int_eq(tn_clip_grad_norm(p, 0, 1.0, 2.0, true, &norm), TN_OK);
    ck_assert_double_eq(norm, 0.0);
    ck_assert_int_eq(tn_clip_grad_norm(&p[1], 1, 1.0, 2.0, true, &norm), TN_OK);
    ck_assert_double_eq(norm, 0.0);
    const float bad[2] = { NAN, 1 };
    tn_tensor_set_grad(p[0], tn_tensor_from(bad, TN_F32, TN_SHAPE(2)));
    float is[2];
    ck_assert_int_eq(tn_clip_grad_norm(p, 3, 0.5, 2.0, true, &norm), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "The total norm of order 2.0 for gradients from `parameters` is "
                                   "non-finite");
    tn_tensor_copy_out(tn_tensor_grad(p[0]), is, sizeof is);
    ck_assert_float_eq(is[1], 1.0f);
    ck_assert_int_eq(tn_clip_grad_norm(p, 3, 0.5, 2.0, false, &norm), TN_OK);
    ck_assert(norm != norm);
    TN_PROVES("UTL-001");
}
END_TEST

START_TEST(gradients_are_limited_element_by_element_utl_002)
{
    TN_SCOPE;
    const float a[4] = { -3, -0.25f, 0.5f, 9 };
    tn_tensor *p[2] = { with_gradient(a, 4), with_gradient(NULL, 1) };
    void *memory = tn_tensor_data(tn_tensor_grad(p[0]));
    ck_assert_int_eq(tn_clip_grad_value(p, 2, 0.5), TN_OK);
    expect_gradient(p[0], 4, (double[]){ -0.5, -0.25, 0.5, 0.5 });
    ck_assert_ptr_eq(tn_tensor_data(tn_tensor_grad(p[0])), memory);
    ck_assert_ptr_eq(tn_tensor_grad(p[1]), TN_NONE);
    TN_PROVES("UTL-002");
}
END_TEST

/* The parameters of the whole tree, each once, as one vector. */
START_TEST(the_gradients_of_a_module_are_clipped)
{
    TN_SCOPE;
    const float a[4] = { 3, 0, 0, 0 }, b[2] = { 0, -4 };
    const float c[4] = { 12, 0, 0, 0 };
    tn_module *m = tn_module_new("Sequential(Linear(2, 2), Sequential(Linear(2, 2)))");
    tn_module *inner = tn_module_find(m, "1.0");
    tn_tensor *p[4], **all;
    int64_t count = -1;
    double norm = -1;

    all = tn_module_parameter_array(m, &count);
    ck_assert_int_eq(count, 4);
    ck_assert_int_eq(tn_module_parameters(m, p, 4), 4);
    ck_assert_mem_eq(all, p, sizeof p);
    tn_free(all);
    ck_assert_int_eq(tn_module_clip_grad_norm(m, 1.0, 2.0, true, &norm), TN_OK);
    ck_assert_double_eq(norm, 0.0); /* no parameter has a gradient */
    ck_assert_ptr_nonnull(inner);
    tn_tensor_set_grad(p[0], tn_tensor_from(a, TN_F32, TN_SHAPE(2, 2)));
    tn_tensor_set_grad(p[1], tn_tensor_from(b, TN_F32, TN_SHAPE(2)));
    tn_tensor_set_grad(p[2], tn_tensor_from(c, TN_F32, TN_SHAPE(2, 2)));
    ck_assert_int_eq(tn_module_clip_grad_norm(m, 6.5, 2.0, true, &norm), TN_OK);
    ck_assert_double_eq_tol(norm, 13.0, 1e-6);
    expect_gradient(p[0], 4, (double[]){ 1.5, 0, 0, 0 });
    expect_gradient(p[1], 2, (double[]){ 0, -2 });
    expect_gradient(p[2], 4, (double[]){ 6, 0, 0, 0 });
    ck_assert_ptr_eq(tn_tensor_grad(p[3]), TN_NONE);
    ck_assert_int_eq(tn_module_clip_grad_value(inner, 0.25), TN_OK); /* only the inner ones */
    expect_gradient(p[1], 2, (double[]){ 0, -2 });
    expect_gradient(p[2], 4, (double[]){ 0.25, 0, 0, 0 });
    ck_assert_int_eq(tn_module_clip_grad_value(m, 1), TN_OK);
    expect_gradient(p[1], 2, (double[]){ 0, -1 });
    ck_assert_int_ne(tn_module_clip_grad_norm(NULL, 1.0, 2.0, false, NULL), TN_OK);
    tn_error_clear();
    ck_assert_int_ne(tn_module_clip_grad_value(NULL, 1.0), TN_OK);
    tn_error_clear();
    tn_module_drop(m);
}
END_TEST

/* The norm takes absolute values of complex numbers, as PyTorch's does. */
START_TEST(complex_gradients_count_by_their_absolute_values)
{
    TN_SCOPE;
    const double z[4] = { 3, 4, 0, 0 };
    const float a[1] = { 12 };
    const double norms[][2] = { { 2, 13 }, { 1, 17 }, { INFINITY, 12 } };
    double is[4];

    for (int i = 0; i < 3; i++) {
        tn_tensor *p[2] = { tn_parameter(tn_tensor_full(TN_SHAPE(2), 1, TN_C128, NULL), true),
                            with_gradient(a, 1) };
        double norm = -1;

        tn_tensor_set_grad(p[0], tn_tensor_from(z, TN_C128, TN_SHAPE(2)));
        ck_assert_msg(tn_clip_grad_norm(p, 2, norms[i][1] / 2, norms[i][0], true, &norm) == TN_OK,
                      "%s", tn_error_text());
        ck_assert_double_eq_tol(norm, norms[i][1], 1e-9);
        ck_assert_int_eq(tn_tensor_copy_out(tn_tensor_grad(p[0]), is, sizeof is), TN_OK);
        ck_assert_double_eq_tol(is[0], 1.5, 1e-6);
        ck_assert_double_eq_tol(is[1], 2.0, 1e-6);
        expect_gradient(p[1], 1, (double[]){ 6 });
    }
}
END_TEST

START_TEST(parameters_become_a_vector_and_look_into_one_utl_003)
{
    TN_SCOPE;
    tn_module *m = tn_module_new("Sequential(Linear(2, 3), Linear(3, 1))");
    tn_tensor *p[4], *few[1];
    ck_assert_int_eq(tn_module_parameters(m, few, 1), 4);
    ck_assert_int_eq(tn_module_parameters(m, p, 4), 4);
    ck_assert_ptr_eq(few[0], p[0]);
    float before[13], after[13], numbers[13];
    tn_tensor *vector = tn_parameters_to_vector(p, 4);
    ck_assert_msg(vector != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(vector), 13);
    tn_tensor_copy_out(vector, before, sizeof before);
    tn_tensor_copy_out(p[1], after, 3 * sizeof *after);
    ck_assert_mem_eq(before + 6, after, 3 * sizeof *after);
    ck_assert_int_eq(tn_backward(tn_sum(vector)), TN_OK); /* it is differentiable */
    ck_assert_double_eq(tn_item(tn_sum(tn_tensor_grad(p[0]))), 6.0);
    for (int i = 0; i < 13; i++)
        numbers[i] = (float)i;
    tn_tensor *other = tn_tensor_from(numbers, TN_F32, TN_SHAPE(13));
    ck_assert_int_eq(tn_vector_to_parameters(other, p, 4), TN_OK);
    ck_assert_double_eq(tn_item(tn_sum(p[1])), 6 + 7 + 8);
    ck_assert_int_eq(tn_tensor_size(p[0], 1), 2);
    ck_assert(tn_tensor_is_parameter(p[0]) && tn_tensor_requires_grad(p[0]));
    tn_tensor_copy_out(tn_parameters_to_vector(p, 4), after, sizeof after);
    ck_assert_mem_eq(after, numbers, sizeof numbers);
    tn_fill_(other, 2.0); /* later writes are seen */
    ck_assert_double_eq(tn_item(tn_sum(p[3])), 2.0);
    tn_init(p[3], "ones()");
    ck_assert_double_eq(tn_item(tn_sum(other)), 25.0);
    ck_assert_int_eq(tn_vector_to_parameters(tn_narrow(other, 0, 0, 12), p, 4), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "wrong size, got 12 elements; expected 13");
    ck_assert_int_eq(tn_vector_to_parameters(TN_NONE, p, 4), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_int_eq(tn_vector_to_parameters(tn_cast(other, TN_F64), p, 4), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "wrong dtype, got float64; expected float32, that of parameter 0");
    tn_module_to_device(tn_module_child(m, "1"), "meta");
    ck_assert_ptr_null(tn_parameters_to_vector(p, 4));
    expect_failure(TN_ERR_TYPE, "Found two parameters on different devices, cpu:0 and meta:0");
    ck_assert_int_eq(tn_vector_to_parameters(other, p, 4), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_double_eq(tn_item(tn_sum(p[0])), 12.0);
    TN_PROVES("UTL-003");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        gradients_are_scaled_to_a_norm_utl_001,
        gradients_are_limited_element_by_element_utl_002,
        the_gradients_of_a_module_are_clipped,
        complex_gradients_count_by_their_absolute_values,
        parameters_become_a_vector_and_look_into_one_utl_003,
        NULL,
    };
    return suite_run("parameters", tests);
}
