/* SPDX-License-Identifier: MIT
 *
 * The checked boundary (TENON_CHECK=1, rule 12) around kernels: a device whose kernels break the
 * contract in one way each. */
#include "tests/plugin/suite.h"

#include <fenv.h>

static void set_up_checked(void)
{
    set_up();
    setenv("TENON_CHECK", "1", 1);
    place("misbehaving", NULL);
    expect("misbehaving.so", TN_OUTCOME_OK, TN_STAGE_VERSION, "");
}

static tn_status call(const char *name)
{
    tn_tensor *out = NULL, *in = tn_tensor_empty(TN_SHAPE(5), TN_F32, tn_device_find("probe"));
    const tn_op *op = tn_op_find(name, 0);
    ck_assert_msg(in && op, "%s", tn_error_text());
    return tn_op_call(op, &in, 1, NULL, &out, 1);
}

START_TEST(a_kernel_that_behaves_is_let_through_with_its_own_data)
{
    ck_assert_msg(call("test_behaves") == TN_OK, "%s", tn_error_text());
    ck_assert(!tn_failed());
}
END_TEST

START_TEST(writing_behind_an_output_is_found)
{
    expect_failure(call("test_overruns"), TN_ERR_ASSERT,
                   "kernel tn_overruns wrote outside its outputs");
}
END_TEST

START_TEST(writing_before_an_output_is_found)
{
    expect_failure(call("test_underruns"), TN_ERR_ASSERT,
                   "kernel tn_underruns wrote outside its outputs");
}
END_TEST

START_TEST(a_status_out_of_range_is_refused)
{
    expect_failure(call("test_odd"), TN_ERR_REFUSED,
                   "unknown status, got 4711; expected a tn_status");
}
END_TEST

START_TEST(a_failure_without_words_is_named)
{
    expect_failure(
        call("test_wordless"), TN_ERR_RUNTIME,
        "plugin \"org.tenon.test.misbehaving\": tn_wordless failed with TN_ERR_RUNTIME and "
        "recorded no message");
}
END_TEST

START_TEST(a_failure_that_is_recorded_and_not_returned_is_refused)
{
    tn_status status = call("test_hides");
    ck_assert_int_eq(status, TN_ERR_REFUSED);
    ck_assert_ptr_nonnull(
        strstr(tn_error_last()->message, "returned TN_OK after it recorded a failure"));
    tn_error_clear();
}
END_TEST

START_TEST(a_changed_view_is_found)
{
    expect_failure(call("test_reshapes"), TN_ERR_REFUSED,
                   "kernel tn_reshapes changed the view of an input");
    expect_failure(call("test_stretches"), TN_ERR_REFUSED,
                   "kernel tn_stretches changed the view of an output");
}
END_TEST

/* What a function of a plugin leaves changed in its thread is named, and put back. */
START_TEST(a_rounding_mode_that_stays_changed_is_found_and_put_back)
{
    expect_failure(call("test_rounds"), TN_ERR_REFUSED,
                   "plugin \"org.tenon.test.misbehaving\": tn_rounds left the rounding mode or the "
                   "flushing of small numbers changed");
    ck_assert_int_eq(fegetround(), FE_TONEAREST);
}
END_TEST

START_TEST(a_gradient_mode_that_stays_on_or_is_ended_is_found_and_put_back)
{
    expect_failure(call("test_ungraded"), TN_ERR_REFUSED,
                   "tn_ungraded left a gradient mode on (tn_grad_begin without tn_grad_end)");
    ck_assert(tn_grad_enabled());
    tn_grad_begin(false);
    expect_failure(call("test_closes"), TN_ERR_REFUSED,
                   "tn_closes ended a gradient mode that it did not begin");
    ck_assert(!tn_grad_enabled());
    tn_grad_end();
    ck_assert(tn_grad_enabled());
    ck_assert(!tn_failed());
}
END_TEST

START_TEST(a_scope_that_stays_open_is_found_and_ended)
{
    uint64_t scope = tn_scope_begin();
    expect_failure(call("test_opens"), TN_ERR_REFUSED,
                   "tn_opens left a scope open (tn_scope_begin without tn_scope_end)");
    tn_tensor *owned = tn_tensor_empty(TN_SHAPE(5), TN_F32, tn_device_find("probe"));
    ck_assert_ptr_nonnull(owned);
    tn_scope_end(scope);
    ck_assert(!tn_failed());
}
END_TEST

START_TEST(an_input_that_is_written_to_is_found)
{
    expect_failure(call("test_writes"), TN_ERR_REFUSED,
                   "kernel tn_writes wrote to an input, which operator test_writes only reads");
}
END_TEST

START_TEST(a_thread_that_activation_starts_is_found)
{
    copy_file(FIXTURES "threaded.so", path_of("later.so"));
    ck_assert_int_eq(tn_plugin_load(path_of("later.so")), TN_OK);
    expect_failure(tn_plugin_activate("org.tenon.test.threaded"), TN_ERR_REFUSED,
                   "activate started a thread; threads belong to the host");
}
END_TEST

/* Without TENON_CHECK: the record of a failure says whose it is, and keeps the device's own code.
 */
START_TEST(a_failure_of_a_kernel_carries_its_plugin_and_its_native_code_rule_10)
{
    place("misbehaving", NULL);
    ck_assert_int_eq(call("test_fails"), TN_ERR_DEVICE);
    ck_assert_str_eq(tn_error_last()->plugin, "org.tenon.test.misbehaving");
    ck_assert_int_eq(tn_error_last()->native, -5);
    ck_assert_ptr_nonnull(strstr(tn_error_last()->message, "the accelerator is on fire"));
    tn_error_clear();
    tn_fail(TN_ERR_VALUE, "of the program");
    ck_assert_str_eq(tn_error_last()->plugin, "");
    tn_error_clear();
}
END_TEST

START_TEST(a_tensor_that_was_dropped_before_is_found)
{
    copy_file(FIXTURES "drops_twice.so", path_of("later.so"));
    ck_assert_int_eq(tn_plugin_load(path_of("later.so")), TN_OK);
    expect_failure(tn_plugin_activate("org.tenon.test.drops_twice"), TN_ERR_REFUSED,
                   "called tn_tensor_drop, argument tensor: its last reference was dropped before");
}
END_TEST

static Suite *checked(void)
{
    Suite *suite = suite_create("the checked boundary");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up_checked, take_down);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, a_kernel_that_behaves_is_let_through_with_its_own_data);
    tcase_add_test(all, writing_behind_an_output_is_found);
    tcase_add_test(all, writing_before_an_output_is_found);
    tcase_add_test(all, a_status_out_of_range_is_refused);
    tcase_add_test(all, a_failure_without_words_is_named);
    tcase_add_test(all, a_failure_that_is_recorded_and_not_returned_is_refused);
    tcase_add_test(all, a_changed_view_is_found);
    tcase_add_test(all, a_tensor_that_was_dropped_before_is_found);
    tcase_add_test(all, a_rounding_mode_that_stays_changed_is_found_and_put_back);
    tcase_add_test(all, a_gradient_mode_that_stays_on_or_is_ended_is_found_and_put_back);
    tcase_add_test(all, a_scope_that_stays_open_is_found_and_ended);
    tcase_add_test(all, an_input_that_is_written_to_is_found);
    tcase_add_test(all, a_thread_that_activation_starts_is_found);
    suite_add_tcase(suite, all);
    TCase *plain = tcase_create("plain");
    tcase_add_checked_fixture(plain, set_up, take_down);
    tcase_add_test(plain, a_failure_of_a_kernel_carries_its_plugin_and_its_native_code_rule_10);
    suite_add_tcase(suite, plain);
    return suite;
}

int main(void)
{
    return run_suite(checked());
}
