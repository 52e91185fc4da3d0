/* SPDX-License-Identifier: MIT
 *
 * Recorded work on the fake driver, which queues it at each launch. */
#include "tests/backend-cuda/driver.h"

START_TEST(recorded_work_is_done_at_each_launch)
{
    struct array *a = ones(10), *y = ones(10);
    struct array *const in[] = { a, y }, *const out[] = { y };
    tn_capture_args args = { TN_HEAD(tn_capture_args), .stream = d.stream };
    long calls;

    ck_assert_int_eq(d.backend->stream_sync(d.device, d.stream), TN_OK);
    ck_assert_int_eq(d.backend->capture_begin(d.device, &args), TN_OK);
    ck_assert_ptr_null(args.graph);
    CALL(&d, "add", NULL, in, out);
    CALL(&d, "add", NULL, in, out);
    ck_assert_int_eq(fake->queued, 0);
    ck_assert_int_eq(d.backend->capture_end(d.device, &args), TN_OK);
    ck_assert_ptr_nonnull(args.graph);
    ck_assert_int_eq(fake->live_graphs, 1); /* what was recorded is gone, what is launched stays */
    calls = fake->launches;
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(d.backend->capture_launch(d.device, &args), TN_OK);
        ck_assert_int_gt(fake->queued, 0); /* nobody waited */
        array_down(y);
        ck_assert_double_eq(array_get(y, 9), 1 + 2 * i);
    }
    ck_assert_int_eq(fake->launches, calls); /* the host started no kernel */
    ck_assert_int_eq(fake->graph_launches, 3);
    d.backend->capture_drop(d.device, &args);
    array_drop(a);
    array_drop(y);
    close_clean();
}
END_TEST

START_TEST(a_long_pattern_would_come_from_the_host_and_is_not_recorded)
{
    tn_capture_args args = { TN_HEAD(tn_capture_args), .stream = d.stream };
    tn_fill_args fill = { TN_HEAD(tn_fill_args), .bytes = 64, .pattern = { 1 }, .pattern_bytes = 8,
                          .stream = d.stream };

    ck_assert_int_eq(direct_alloc(d.backend, d.device, 64, &fill.memory), TN_OK);
    ck_assert_int_eq(d.backend->capture_begin(d.device, &args), TN_OK);
    expect(d.backend->fill(d.device, &fill), TN_ERR_NOT_IMPLEMENTED,
           "a fill with a pattern of 8 bytes cannot be recorded");
    fill.pattern_bytes = 4;
    ck_assert_int_eq(d.backend->fill(d.device, &fill), TN_OK);
    ck_assert_int_eq(d.backend->capture_end(d.device, &args), TN_OK);
    d.backend->capture_drop(d.device, &args);
    direct_free(d.backend, d.device, fill.memory, 64);
    close_clean();
}
END_TEST

START_TEST(a_record_that_fails_is_an_error_with_the_drivers_name)
{
    tn_capture_args args = { TN_HEAD(tn_capture_args), .stream = d.stream };

    fake->fail_function = "cuStreamBeginCapture";
    fake->fail_after = 1;
    fake->fail_code = 900;
    expect(d.backend->capture_begin(d.device, &args), TN_ERR_DEVICE, "recording a stream failed");
    ck_assert_int_eq(d.backend->capture_begin(d.device, &args), TN_OK);
    fake->fail_function = "cuGraphInstantiate";
    fake->fail_after = 1;
    fake->fail_code = 2;
    expect(d.backend->capture_end(d.device, &args), TN_ERR_MEMORY, "ending a record failed");
    ck_assert_ptr_null(args.graph);
    d.backend->capture_drop(d.device, &args);
    close_clean();
}
END_TEST

void add_captures(TCase *opened)
{
    tcase_add_test(opened, recorded_work_is_done_at_each_launch);
    tcase_add_test(opened, a_long_pattern_would_come_from_the_host_and_is_not_recorded);
    tcase_add_test(opened, a_record_that_fails_is_an_error_with_the_drivers_name);
}
