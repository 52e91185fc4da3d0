/* SPDX-License-Identifier: MIT
 *
 * Anomaly mode: if backward computes a NaN, the error names the forward call whose derivative
 * computed it. */
#include <math.h>
#include <stdio.h>

#include "tests/op/suite.h"

static tn_tensor *leaf(const float *values, int64_t count)
{
    tn_tensor *x = tn_tensor_from(values, TN_F32, TN_SHAPE(count));

    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    return x;
}

/* The gradient has 0 times the derivative of sqrt at 0, which is infinite. */
static tn_tensor *root_times_nothing(tn_tensor *x)
{
    static const float nothing[] = { 1, 1, 0 };

    return tn_sum(tn_mul(tn_sqrt(x), tn_tensor_from(nothing, TN_F32, TN_SHAPE(3))));
}

static const float with_zero[] = { 4, 1, 0 };

START_TEST(without_the_mode_nan_is_a_number_like_others)
{
    TN_SCOPE;
    tn_tensor *x = leaf(with_zero, 3);
    float g[3];

    ck_assert(!tn_anomaly_enabled());
    ck_assert_int_eq(tn_backward(root_times_nothing(x)), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(tn_tensor_grad(x), g, sizeof g), TN_OK);
    ck_assert(g[0] == 0.25F && g[1] == 0.5F && isnan(g[2]));
}
END_TEST

START_TEST(a_nan_names_the_forward_call_and_the_graph_can_be_made_again)
{
    TN_SCOPE;
    tn_tensor *x = leaf(with_zero, 3);
    int64_t nodes = tn_grad_node_count();

    tn_anomaly_begin(true);
    ck_assert_int_eq(tn_backward(root_times_nothing(x)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME,
           "derivative of sqrt: returned nan for input 0, element 2; the forward call was "
           "sqrt(float32[3])");
    ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(x, x))), TN_OK); /* nothing wrong: as ever */
    tn_anomaly_end();
    ck_assert_ptr_ne(tn_tensor_grad(x), TN_NONE);
    ck_assert_int_ge(tn_grad_node_count(), nodes);
    FINE();
}
END_TEST

START_TEST(the_mode_nests_and_belongs_to_the_thread)
{
    tn_anomaly_begin(true);
    ck_assert(tn_anomaly_enabled());
    tn_anomaly_begin(false);
    ck_assert(!tn_anomaly_enabled());
    tn_anomaly_begin(true);
    tn_anomaly_end();
    ck_assert(!tn_anomaly_enabled());
    tn_anomaly_end();
    ck_assert(tn_anomaly_enabled());
    tn_anomaly_end();
    ck_assert(!tn_anomaly_enabled());
    ck_assert(!tn_failed());
    tn_anomaly_end();
    FAILED(TN_ERR_RUNTIME, "tn_anomaly_end: no tn_anomaly_begin in this thread");
}
END_TEST

static tn_status root_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *y = root_times_nothing(tn_pack_tensor(input, 0));

    (void)self;
    return y == NULL ? tn_error_code() : tn_pack_add(output, NULL, tn_value_tensor(y));
}

START_TEST(inside_modules_the_path_is_told)
{
    static const tn_layer_def root = { TN_HEAD(tn_layer_def), .name = "Root",
                                       .help = "square roots", .call = root_call };
    TN_SCOPE;
    tn_module *net;

    ck_assert_int_eq(tn_register(&root), TN_OK);
    net = tn_module_new("Sequential(Identity(), Sequential(Root()))");
    ck_assert_msg(net != NULL, "%s", tn_error_text());
    tn_anomaly_begin(true);
    ck_assert_int_eq(tn_backward(tn_module_call(net, leaf(with_zero, 3))), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "sqrt(float32[3]) in Sequential, module \"1.0\" (Root)");
    tn_anomaly_end();
    tn_module_drop(net);
    FINE();
}
END_TEST

/* Gradients of narrow and complex types are checked, too. */
START_TEST(every_float_type_is_looked_at)
{
    static const tn_dtype dtypes[] = { TN_F16, TN_BF16, TN_F64 };

    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_cast(tn_tensor_from(with_zero, TN_F32, TN_SHAPE(3)), dtypes[i]);
        char words[64];

        ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
        tn_anomaly_begin(true);
        ck_assert_int_eq(tn_backward(root_times_nothing(x)), TN_ERR_RUNTIME);
        tn_anomaly_end();
        snprintf(words, sizeof words, "sqrt(%s[3])", tn_dtype_name(dtypes[i]));
        FAILED(TN_ERR_RUNTIME, words);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("anomaly");
    TCase *tests = tcase_create("mode");

    tcase_add_test(tests, without_the_mode_nan_is_a_number_like_others);
    tcase_add_test(tests, a_nan_names_the_forward_call_and_the_graph_can_be_made_again);
    tcase_add_test(tests, the_mode_nests_and_belongs_to_the_thread);
    tcase_add_test(tests, inside_modules_the_path_is_told);
    tcase_add_test(tests, every_float_type_is_looked_at);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
