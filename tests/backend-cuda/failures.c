/* SPDX-License-Identifier: MIT
 *
 * Failures of the driver: each call that fails must return an error with a message; afterwards the
 * device works again, or is reported as lost. */
#include "tests/backend-cuda/driver.h"

#include <sys/wait.h>
#include <unistd.h>

START_TEST(out_of_memory_is_an_error_like_any_other)
{
    void *memory = NULL;

    expect(direct_alloc(d.backend, d.device, (size_t)3 << 30, &memory), TN_ERR_MEMORY,
           "Fake GPU 0: allocating 3221225472 bytes failed");
    ck_assert_ptr_null(memory);
    ck_assert_int_eq(direct_alloc(d.backend, d.device, 1 << 20, &memory), TN_OK);
    direct_free(d.backend, d.device, memory, 1 << 20);
    close_clean();
}
END_TEST

START_TEST(a_start_that_fails_names_operator_and_kernel_and_the_device_goes_on)
{
    struct array *a = ones(10), *y = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { y };

    fake->fail_function = "cuLaunchKernel";
    fake->fail_after = 1;
    fake->fail_code = 701;
    expect(call_into(&d, "add", NULL, in, 2, out, 1), TN_ERR_DEVICE,
           "Fake GPU 0: add: starting tn_add_f32 failed");
    CALL(&d, "add", NULL, in, out);
    array_down(y);
    ck_assert_double_eq(array_get(y, 0), 2);
    array_drop(a);
    array_drop(y);
    close_clean();
}
END_TEST

START_TEST(a_lost_device_stays_lost_and_can_be_closed)
{
    struct array *a = ones(10), *y = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { y };
    void *memory, *event;
    bool done;

    ck_assert_int_eq(direct_event_new(d.backend, d.device, 0, &event), TN_OK);
    fake->fail_function = "cuStreamSynchronize";
    fake->fail_after = 1;
    fake->fail_code = 700;
    expect(d.backend->stream_sync(d.device, d.stream), TN_ERR_LOST,
           "CUDA_ERROR_ILLEGAL_ADDRESS (700); the device is lost");
    expect(call_into(&d, "add", NULL, in, 2, out, 1), TN_ERR_LOST,
           "lost after the error CUDA_ERROR_ILLEGAL_ADDRESS");
    expect(direct_alloc(d.backend, d.device, 10, &memory), TN_ERR_LOST, "lost");
    expect(direct_copy_in(d.backend, d.device, d.stream, a->memory, 0, "x", 1), TN_ERR_LOST,
           "lost");
    expect(d.backend->event_query(d.device, event, &done), TN_ERR_LOST, "lost");
    d.backend->event_drop(d.device, event);
    array_drop(a);
    array_drop(y);
    direct_close(&d);
    ck_assert_int_eq(fake->retained, 0);
}
END_TEST

START_TEST(memory_out_of_bounds_loses_the_device)
{
    const int64_t many[] = { 100 };
    struct array *a = ones(10), *y = array_new(&d, TN_F32, 1, many, PLAIN);
    float x = 1;

    ck_assert_int_eq(direct_copy(d.backend, d.stream, (tn_copy_end){ d.device, y->memory, 0 },
                                 (tn_copy_end){ d.device, a->memory, 0 }, 400),
                     TN_OK);
    expect(direct_copy_out(d.backend, d.device, d.stream, &x, a->memory, 0, sizeof x), TN_ERR_LOST,
           "CUDA_ERROR_ILLEGAL_ADDRESS");
    expect(d.backend->stream_sync(d.device, d.stream), TN_ERR_LOST, "lost after");
    array_drop(a);
    array_drop(y);
    direct_close(&d);
}
END_TEST

START_TEST(kernels_that_do_not_fit_the_gpu_say_so)
{
    struct array *a = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { a };

    fake->module_result = 209;
    expect(call_into(&d, "add", NULL, in, 2, out, 1), TN_ERR_UNAVAILABLE,
           "compute capability 8.6, driver for CUDA 13.0");
    fake->module_result = 0;
    CALL(&d, "add", NULL, in, out);
    array_drop(a);
    close_clean();
}
END_TEST

START_TEST(kernels_that_cannot_be_read_name_the_file)
{
    struct array *a = ones(10);
    struct array *const in[] = { a, a }, *const out[] = { a };

    ((struct options *)d.plugin->options_data)->kernels = "/nowhere";
    expect(call_into(&d, "add", NULL, in, 2, out, 1), TN_ERR_IO, "/nowhere/arithmetic.fatbin");
    array_drop(a);
    close_clean();
}
END_TEST

/* Every driver function that a step uses fails once, at each of its calls: each time there is an
 * error, no crash, and no leak. */
START_TEST(every_call_of_the_driver_may_fail)
{
    static const char *const functions[] = { "cuStreamCreateWithPriority",
                                             "cuMemHostAlloc",
                                             "cuMemHostGetDevicePointer",
                                             "cuEventCreate",
                                             "cuMemAlloc",
                                             "cuMemcpyHtoDAsync",
                                             "cuEventRecord",
                                             "cuModuleLoadData",
                                             "cuModuleGetFunction",
                                             "cuLaunchKernel",
                                             "cuMemcpyDtoHAsync",
                                             "cuEventSynchronize",
                                             "cuCtxPushCurrent",
                                             "cuStreamSynchronize",
                                             "cuStreamWaitEvent",
                                             "cuMemcpyDtoDAsync",
                                             "cuEventQuery",
                                             "cuMemGetInfo" };
    const tn_status wanted = TN_ERR_MEMORY;
    int failed = 0;

    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        for (int nth = 1; nth < 8; nth++) {
            void *stream = NULL, *memory = NULL, *event = NULL;
            char bytes[64] = { 0 };
            bool done;
            tn_status status;

            fake->fail_function = functions[f];
            fake->fail_after = nth;
            fake->fail_code = 2;
            status = direct_stream_new(d.backend, d.device, &stream);
            if (!status)
                status = direct_event_new(d.backend, d.device, 0, &event);
            if (!status)
                status = direct_alloc(d.backend, d.device, sizeof bytes, &memory);
            if (!status)
                status = direct_copy_in(d.backend, d.device, stream, memory, 0, bytes,
                                        sizeof bytes);
            if (!status)
                status = direct_copy(d.backend, stream, (tn_copy_end){ d.device, memory, 0 },
                                     (tn_copy_end){ d.device, memory, 32 }, 16);
            if (!status)
                status = d.backend->event_record(d.device, event, stream);
            if (!status)
                status = d.backend->event_wait(d.device, event, d.stream);
            if (!status)
                status = d.backend->event_query(d.device, event, &done);
            if (!status)
                status = direct_copy_out(d.backend, d.device, stream, bytes, memory, 0,
                                         sizeof bytes);
            if (!status)
                status = d.backend->stream_sync(d.device, stream);
            if (!status)
                status = d.backend->info(d.device, &d.info);
            ck_assert_msg(status == TN_OK || status == wanted, "%s, call %d: %s", functions[f], nth,
                          tn_status_name(status));
            ck_assert((status == TN_OK) == !tn_failed());
            failed += status != TN_OK;
            tn_error_clear();
            fake->fail_after = 0;
            d.backend->event_drop(d.device, event);
            direct_free(d.backend, d.device, memory, sizeof bytes);
            d.backend->stream_drop(d.device, stream);
        }
    ck_assert_int_gt(failed, 15);
    close_clean();
}
END_TEST

START_TEST(after_fork_the_child_gets_an_error_and_the_parent_goes_on)
{
    struct array *a = ones(10);
    int state;
    pid_t child = fork();

    if (child == 0) {
        long calls = fake->calls;
        void *memory = NULL;
        bool fine = direct_alloc(d.backend, d.device, 10, &memory) == TN_ERR_RUNTIME &&
                    strstr(tn_error_text(), "before fork");

        direct_free(d.backend, d.device, a->memory, a->bytes);
        d.backend->stream_drop(d.device, d.stream);
        d.backend->close(d.device);
        _exit(fine && fake->calls == calls ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    array_down(a);
    array_drop(a);
    close_clean();
}
END_TEST

void add_failures(TCase *opened)
{
    tcase_add_test(opened, out_of_memory_is_an_error_like_any_other);
    tcase_add_test(opened, a_start_that_fails_names_operator_and_kernel_and_the_device_goes_on);
    tcase_add_test(opened, a_lost_device_stays_lost_and_can_be_closed);
    tcase_add_test(opened, memory_out_of_bounds_loses_the_device);
    tcase_add_test(opened, kernels_that_do_not_fit_the_gpu_say_so);
    tcase_add_test(opened, kernels_that_cannot_be_read_name_the_file);
    tcase_add_test(opened, every_call_of_the_driver_may_fail);
    tcase_add_test(opened, after_fork_the_child_gets_an_error_and_the_parent_goes_on);
}
