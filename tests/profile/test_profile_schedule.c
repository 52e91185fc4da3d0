/* SPDX-License-Identifier: MIT
 *
 * Schedules of the profiler: the steps that it records, the callback, the numbers that it takes. */
#include "tests/profile/suite.h"

static int ready, ready_steps[8];

static tn_status on_ready(void *user)
{
    tn_profile_event event;

    ck_assert_ptr_eq(user, &ready);
    ck_assert_int_ge(find_event("relu", 0, &event), 0);
    ready_steps[ready++] = (int)totals().steps;
    return TN_OK;
}

START_TEST(a_schedule_chooses_the_steps_prf_008)
{
    TN_SCOPE;
    /* skip 1, then cycles of 1 wait, 1 warmup, 2 active; two cycles */
    static const tn_profile_action expected[] = { 0, 0, 1, 2, 3, 0, 1, 2, 3, 0, 0 };
    tn_profile_options options = { .size = sizeof options,
                                   .skip_first = 1,
                                   .wait = 1,
                                   .warmup = 1,
                                   .active = 2,
                                   .repeat = 2,
                                   .on_trace_ready = on_ready,
                                   .user = &ready };
    tn_profile_action action;
    tn_profile_event event;
    for (int64_t i = 0; i < 11; i++) {
        ok(tn_profile_action_at(&options, i, &action));
        ck_assert_uint_eq(action, expected[i]);
    }
    ready = 0;
    ok(tn_profile_start(&options));
    for (int i = 0; i < 11; i++) {
        tn_relu(VEC(1, 2));
        ok(tn_profile_step());
        ck_assert_int_eq(ready, (i >= 4) + (i >= 8));
    }
    ok(tn_profile_stop());
    ck_assert_int_eq(ready, 2);
    ck_assert_int_eq(ready_steps[0], 2);
    /* the last window stays readable: steps 7 and 8 */
    ck_assert_int_ge(find_event("ProfilerStep#7", 0, &event), 0);
    ck_assert_str_eq(event.category, "step");
    ck_assert_int_ge(find_event("ProfilerStep#8", 0, &event), 0);
    ck_assert_int_eq(find_event("ProfilerStep#6", 0, &event), -1);
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "relu")->calls, 2);

    options.repeat = 0; /* for ever; a stop inside of a window ends it */
    ready = 0;
    ok(tn_profile_action_at(&options, 1 + 4 * 1000 + 3, &action));
    ck_assert_uint_eq(action, TN_PROFILE_ACTION_RECORD_AND_SAVE);
    ok(tn_profile_start(&options));
    for (int i = 0; i < 3; i++)
        ok(tn_profile_step());
    tn_relu(VEC(1));
    ok(tn_profile_stop());
    ck_assert_int_eq(ready, 1);
    TN_PROVES("PRF-008");
}
END_TEST

static tn_status failing_ready(void *user)
{
    (void)user;
    return tn_fail(TN_ERR_IO, "the trace is not wanted");
}

START_TEST(a_schedule_checks_its_numbers_prf_008)
{
    tn_profile_options options = { .size = sizeof options, .active = 1, .wait = -1 };
    tn_profile_action action;
    refused(tn_profile_start(&options), TN_ERR_VALUE,
            "wait: Invalid profiler schedule arguments, got -1; expected 0 to 2305843009213693951");
    options.wait = INT64_MAX;
    refused(tn_profile_action_at(&options, 0, &action), TN_ERR_VALUE,
            "wait: Invalid profiler schedule arguments, got 9223372036854775807; expected 0 to "
            "2305843009213693951");
    options.wait = (int64_t)1 << 62;
    refused(tn_profile_start(&options), TN_ERR_VALUE, "expected 0 to 2305843009213693951");
    options.wait = INT64_MAX / 4;
    ok(tn_profile_action_at(&options, 0, &action));
    ck_assert_uint_eq(action, TN_PROFILE_ACTION_NONE);
    options.wait = 0;
    /* the other numbers have no meaning without active steps */
    int64_t *const without[] = { &options.skip_first, &options.wait, &options.warmup,
                                 &options.repeat };
    options.active = 0;
    for (int i = 0; i < 4; i++) {
        *without[i] = 3;
        refused(tn_profile_start(&options), TN_ERR_VALUE,
                "active: Invalid profiler schedule arguments, got 0; expected 1 or more");
        refused(tn_profile_action_at(&options, 0, &action), TN_ERR_VALUE, "active: Invalid");
        *without[i] = 0;
    }
    options.active = 1;
    options.repeat = -2;
    refused(tn_profile_start(&options), TN_ERR_VALUE, "repeat: Invalid profiler schedule");
    options.repeat = 0;
    refused(tn_profile_action_at(&options, -1, &action), TN_ERR_VALUE,
            "step: out of range, got -1");
    refused(tn_profile_action_at(NULL, 0, &action), TN_ERR_VALUE, "NULL");
    options.warmup = 0;
    options.on_trace_ready = failing_ready;
    ok(tn_profile_start(&options));
    refused(tn_profile_step(), TN_ERR_IO, "the trace is not wanted");
    refused(tn_profile_stop(), TN_ERR_IO, "the trace is not wanted");
    ok(tn_profile_start(NULL)); /* the failed profile has ended */
    ok(tn_profile_stop());
    TN_PROVES("PRF-008");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile schedule");
    TCase *tests = tcase_create("profile schedule");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_schedule_chooses_the_steps_prf_008);
    tcase_add_test(tests, a_schedule_checks_its_numbers_prf_008);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
