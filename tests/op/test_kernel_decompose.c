/* SPDX-License-Identifier: MIT
 *
 * Kernels with TN_KERNEL_DECOMPOSE: calls that they take are decomposed, although another kernel
 * could compute them. */
#include "core/op/internal.h"
#include "tests/op/marked_kernel.h"

static tn_status add_one(const tn_decompose *call)
{
    call->out[0] = tn_add_scalar(call->in[0], 1);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

START_TEST(a_kernel_may_ask_for_the_decomposition)
{
    TN_SCOPE;
    tn_op_def def = { TEST_OP("test_parts") }, none = { TEST_OP("test_no_parts") };
    static tn__plugin pack = { .id = "pack", .file = "/plugins/pack.so", .active = 1 };
    tn_kernel_def parts = MARK("test_parts", "cpu", "parts", 1);
    tn_kernel_def whole = MARK("test_parts", "cpu", "whole", 7);
    tn_tensor *in[1] = { VEC(2, 3) };
    char route[200];

    def.decompose = add_one;
    ck_assert_int_eq(tn_register(&def), TN_OK);
    ck_assert_int_eq(tn_register(&none), TN_OK);
    ck_assert_int_eq(tn_register(&whole), TN_OK);
    HAS(call_op("test_parts", VEC(2, 3)), 7, 7);
    parts.run = NULL;
    parts.supports = only_pairs;
    parts.priority = 1;
    ck_assert_int_ne(tn__op_kernel_add(&parts, &pack), TN_OK);
    FAILED(TN_ERR_VALUE,
           "kernel parts (/plugins/pack.so): run: missing; expected op, device, dtypes and run");
    parts.flags = TN_KERNEL_OVERRIDE | TN_KERNEL_DECOMPOSE;
    ck_assert_int_eq(tn__op_kernel_add(&parts, &pack), TN_OK);
    HAS(call_op("test_parts", VEC(2, 3)), 3, 4);
    HAS(call_op("test_parts", VEC(2, 3, 4)), 7, 7, 7); /* it declines three */
    ck_assert_ptr_null(tn_op_prepare(tn_op_find("test_parts", 0), in, 1, NULL, 0));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "has no kernel for this call and decomposes it");
    ck_assert_int_gt(tn_op_route(tn_op_find("test_parts", 0), "cpu", TN_F32, route, sizeof route),
                     0);
    ck_assert_ptr_nonnull(strstr(route, "kernel whole"));
    /* without a decomposition the flag is ignored */
    parts.op = whole.op = "test_no_parts";
    parts.name = "no_parts";
    whole.name = "no_parts_whole";
    ck_assert_int_eq(tn__op_kernel_add(&parts, &pack), TN_OK);
    ck_assert_ptr_null(call_op("test_no_parts", VEC(2, 3)));
    FAILED(TN_ERR_NOT_IMPLEMENTED, "no decomposition");
    ck_assert_int_eq(tn_register(&whole), TN_OK);
    HAS(call_op("test_no_parts", VEC(2, 3)), 7, 7);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels that decompose");
    TCase *tests = tcase_create("kernels that decompose");

    tcase_add_test(tests, a_kernel_may_ask_for_the_decomposition);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
