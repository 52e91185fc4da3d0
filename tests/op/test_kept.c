/* SPDX-License-Identifier: MIT
 *
 * Data that kernels prepare from weights, which the core keeps between calls (prepare_key): when it
 * is made, shared, made again and dropped, what is never kept, and its bound. */
#include <pthread.h>
#include <stdatomic.h>

#include "core/op/internal.h"
#include "tests/op/toy_device.h"
#include "tests/op/suite.h"

/* ---- an operator of the test: y = x * w, w a row ----------------------------------------------
 */

static tn_status weigh_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    infer->out[0].dtype = TN_F32;
    infer->out[0].ndim = x->ndim;
    for (int32_t d = 0; d < x->ndim; d++)
        infer->out[0].shape[d] = x->shape[d];
    return TN_OK;
}

static tn_status weigh_derive(tn_derive *derive)
{
    derive->gin[0] = tn_mul(derive->gout[0], derive->in[1]);
    return derive->gin[0] != NULL ? TN_OK : tn_error_last_code();
}

static struct {
    _Atomic int64_t prepared, released, with_data;
    bool fail, nothing;
    uint64_t key, bytes;
} seen;

static uint64_t weigh_key(const tn_call *call)
{
    ck_assert_ptr_nonnull(call->in[1]);
    return seen.key;
}

static tn_status weigh_prepare(const tn_call *call, tn_prepared_data *out)
{
    int64_t count = toy_count(call->in[1]);
    float *twice;

    ck_assert_uint_eq(call->flags, TN_CALL_REPEATED);
    ck_assert_uint_eq(call->constant, 2);
    ck_assert_ptr_null(call->in[0]->data);
    ck_assert_ptr_null(call->out[0]->data);
    ck_assert_int_eq(toy_count(call->out[0]), toy_count(call->in[0]));
    if (seen.fail)
        return tn_fail(TN_ERR_MEMORY, "no memory for packed weights");
    if (seen.nothing)
        return TN_OK;
    twice = malloc((size_t)count * sizeof *twice);
    for (int64_t i = 0; i < count; i++)
        twice[i] = 2 * toy_floats(call->in[1])[i];
    out->data = twice;
    out->bytes = seen.bytes;
    atomic_fetch_add(&seen.prepared, 1);
    return TN_OK;
}

static void weigh_release(const tn_kernel_def *kernel, void *data)
{
    ck_assert_str_eq(kernel->name, "weigh_kept");
    atomic_fetch_add(&seen.released, 1);
    free(data);
}

static tn_status weigh_run(const tn_call *call)
{
    const float *twice = call->prepared;
    int64_t columns = toy_count(call->in[1]);

    atomic_fetch_add(&seen.with_data, twice != NULL);
    for (int64_t i = 0; i < toy_count(call->out[0]); i++)
        toy_floats(call->out[0])[i] = toy_floats(call->in[0])[i] *
                                      (twice != NULL ? twice[i % columns] / 2
                                                     : toy_floats(call->in[1])[i % columns]);
    return TN_OK;
}

static const tn_operand weigh_in[] = { { "x", 0, TN_MASK_FLOAT }, { "w", 0, TN_MASK_FLOAT } };
static const tn_operand weigh_out[] = { { "y", 0, 0 } };
static const tn_op_def weigh = {
    TN_HEAD(tn_op_def), .name = "test_weigh_kept", .math = "y = x w",    .help = "",
    .revision = 1,      .inputs = weigh_in,        .outputs = weigh_out, .n_inputs = 2,
    .n_outputs = 1,     .dispatch_input = 0,       .infer = weigh_infer, .derive = weigh_derive,
    .save_in = 2
};
static const tn_kernel_def kernel = { TN_HEAD(tn_kernel_def),
                                      .op = "test_weigh_kept",
                                      .device = "cpu",
                                      .name = "weigh_kept",
                                      .revision = 1,
                                      .dtypes = TN_BIT(TN_F32),
                                      .run = weigh_run,
                                      .prepare = weigh_prepare,
                                      .release = weigh_release,
                                      .prepare_key = weigh_key,
                                      .weights = 2 };

static void begin(void)
{
    static bool registered;

    if (!registered) {
        ck_assert_int_eq(tn_register(&weigh), TN_OK);
        ck_assert_int_eq(tn_register(&kernel), TN_OK);
        registered = true;
    }
    seen.prepared = seen.released = seen.with_data = 0;
    seen.fail = seen.nothing = false;
    seen.key = 1;
    seen.bytes = 64;
}

static tn_tensor *call(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *in[] = { x, w }, *y = NULL;

    ck_assert_msg(tn_op_call(tn_op_find("test_weigh_kept", 0), in, 2, NULL, &y, 1) == TN_OK, "%s",
                  tn_error_text());
    return y;
}

static int64_t prepared_bytes(void)
{
    tn_memory_stats stats;

    ck_assert_int_eq(tn_device_memory(tn_device_find("cpu"), &stats), TN_OK);
    return stats.prepared;
}

/* ---- one thread -------------------------------------------------------------------------------
 */

START_TEST(a_weight_is_prepared_once_it_was_the_same_before)
{
    begin();
    {
        TN_SCOPE;
        tn_tensor *w = VEC(2, 3);

        HAS(call(VEC(1, 2), w), 2, 6);
        ck_assert_int_eq(seen.prepared, 0);
        HAS(call(VEC(3, 4), w), 6, 12);
        ck_assert_int_eq(seen.prepared, 1);
        HAS(call(VEC(5, 6, 7, 8), w), 10, 18, 14, 24); /* another shape, the same key */
        ck_assert_int_eq(seen.prepared, 1);
        ck_assert_int_eq(seen.with_data, 2);
        ck_assert_int_eq(prepared_bytes(), 64);
    }
    ck_assert_int_eq(seen.released, 1); /* when the memory of the weight was freed */
    ck_assert_int_eq(prepared_bytes(), 0);
}
END_TEST

START_TEST(data_of_a_weight_that_was_written_is_not_used_and_is_dropped)
{
    TN_SCOPE;
    tn_tensor *w = VEC(2, 3), *x = VEC(1, 1);

    begin();
    for (int i = 0; i < 3; i++)
        HAS(call(x, w), 2, 3);
    ck_assert_ptr_nonnull(tn_add_scalar_(w, 5));
    HAS(call(x, w), 7, 8);
    ck_assert_int_eq(seen.released, 1);
    ck_assert_int_eq(prepared_bytes(), 0);
    HAS(call(x, w), 7, 8);
    HAS(call(x, w), 7, 8);
    ck_assert_int_eq(seen.prepared, 2);
    ck_assert_int_eq(tn_tensor_touch(w), TN_OK);
    HAS(call(x, w), 7, 8);
    ck_assert_int_eq(seen.released, 2);
}
END_TEST

START_TEST(views_and_keys_have_data_of_their_own)
{
    TN_SCOPE;
    tn_tensor *all = tn_reshape(VEC(1, 2, 3, 4), TN_SHAPE(2, 2)), *x = VEC(1, 1);

    begin();
    for (int i = 0; i < 2; i++) {
        HAS(call(x, tn_select(all, 0, 0)), 1, 2);
        HAS(call(x, tn_select(all, 0, 1)), 3, 4);
        HAS(call(x, tn_narrow(tn_flatten(all, 0, -1), 0, 1, 2)), 2, 3);
    }
    ck_assert_int_eq(seen.prepared, 3);
    seen.key = 2;
    for (int i = 0; i < 2; i++)
        HAS(call(x, tn_select(all, 0, 0)), 1, 2);
    ck_assert_int_eq(seen.prepared, 4);
    seen.key = 3; /* not prepared, because 4 are the most: the call runs without data */
    for (int i = 0; i < 3; i++)
        HAS(call(x, tn_select(all, 0, 0)), 1, 2);
    ck_assert_int_eq(seen.prepared, 4);
    seen.key = 0;
    seen.with_data = 0;
    HAS(call(x, tn_select(all, 0, 0)), 1, 2);
    ck_assert_int_eq(seen.with_data, 0);
    seen.key = 1;
    HAS(call(x, tn_select(all, 0, 1)), 3, 4);
    ck_assert_int_eq(seen.with_data, 1);
}
END_TEST

START_TEST(calls_that_record_gradients_prepare_later)
{
    TN_SCOPE;
    tn_tensor *w = VEC(2, 3), *x = LEAF(1, 1);

    begin();
    for (int i = 0; i < 3; i++)
        HAS(call(x, w), 2, 3);
    ck_assert_int_eq(seen.prepared, 0);
    HAS(call(x, w), 2, 3);
    ck_assert_int_eq(seen.prepared, 1);
    ck_assert_ptr_nonnull(tn_add_scalar_(w, 1)); /* as an optimizer does */
    HAS(call(x, w), 3, 4);
    ck_assert_int_eq(seen.released, 1);
}
END_TEST

START_TEST(memory_to_which_a_program_may_write_unnoticed_is_not_kept)
{
    TN_SCOPE;
    tn_tensor *w = VEC(2, 3), *x = VEC(1, 1);
    float *values = tn_tensor_data(w), own[] = { 4, 5 };
    tn_tensor *wrapped = tn_tensor_wrap(own, TN_F32, TN_SHAPE(2), NULL, NULL, NULL, NULL);
    tn_dlpack *exported;

    begin();
    for (int i = 0; i < 4; i++) {
        values[0] = own[0] = (float)i;
        HAS(call(x, w), i, 3);
        HAS(call(x, wrapped), i, 5);
    }
    ck_assert_int_eq(seen.prepared, 0);
    ck_assert_int_eq(tn_tensor_touch(w), TN_OK); /* from now on the program reports writes */
    HAS(call(x, w), 3, 3);
    HAS(call(x, w), 3, 3);
    ck_assert_int_eq(seen.prepared, 1);
    values[0] = 9;
    ck_assert_int_eq(tn_tensor_touch(w), TN_OK);
    HAS(call(x, w), 9, 3);
    exported = tn_tensor_to_dlpack(w, NULL);
    ck_assert_ptr_nonnull(exported);
    seen.prepared = 0;
    for (int i = 0; i < 4; i++)
        HAS(call(x, w), 9, 3);
    ck_assert_int_eq(seen.prepared, 0);
    exported->deleter(exported);
}
END_TEST

START_TEST(a_failure_to_prepare_is_none_of_the_call)
{
    TN_SCOPE;
    tn_tensor *w = VEC(2, 3), *x = VEC(1, 1);

    begin();
    seen.fail = true;
    for (int i = 0; i < 4; i++)
        HAS(call(x, w), 2, 3);
    FINE();
    ck_assert_int_eq(seen.with_data, 0);
    seen.fail = false;
    seen.nothing = true;
    w = VEC(2, 3);
    for (int i = 0; i < 4; i++)
        HAS(call(x, w), 2, 3);
    ck_assert_int_eq(seen.with_data, 0);
    seen.nothing = false;
    seen.bytes = (uint64_t)2 << 40; /* more than the bound of a device */
    w = VEC(2, 3);
    for (int i = 0; i < 4; i++)
        HAS(call(x, w), 2, 3);
    ck_assert_int_eq(seen.prepared, 1);
    ck_assert_int_eq(seen.released, 1);
    ck_assert_int_eq(seen.with_data, 0);
    ck_assert_int_eq(prepared_bytes(), 0);
}
END_TEST

START_TEST(each_allocation_fails_in_turn_law_4)
{
    TN_SCOPE;
    bool reached = true;

    begin();
    for (uint64_t n = 1; reached; n++) {
        TN_SCOPE;
        tn_tensor *w = VEC(2, 3), *in[] = { VEC(1, 1), w }, *y[3] = { NULL };
        bool done[3];

        ck_assert_uint_lt(n, 1000);
        tn__memory_fail(n);
        for (int i = 0; i < 3; i++)
            done[i] = tn_op_call(tn_op_find("test_weigh_kept", 0), in, 2, NULL, &y[i], 1) == TN_OK;
        reached = tn__memory_fail(0) >= n;
        for (int i = 0; i < 3; i++)
            if (done[i])
                HAS(y[i], 2, 3);
        ck_assert(!tn_failed() || tn_error_code() == TN_ERR_MEMORY);
        tn_error_clear();
    }
    ck_assert_int_gt(seen.prepared, 0);
    ck_assert_int_eq(seen.prepared, seen.released);
    ck_assert_int_eq(prepared_bytes(), 0);
}
END_TEST

START_TEST(a_kernel_with_a_key_needs_prepare_and_one_weight)
{
    tn_kernel_def wrong = kernel;

    begin();
    wrong.name = "weigh_wrong";
    wrong.weights = 3;
    ck_assert_int_eq(tn_register(&wrong), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "prepare_key: incomplete; expected `prepare` and one bit in `weights`");
    wrong.weights = 2;
    wrong.prepare = NULL;
    ck_assert_int_eq(tn_register(&wrong), TN_ERR_VALUE);
    FAILED(TN_ERR_VALUE, "kernel weigh_wrong");
}
END_TEST

/* ---- several threads --------------------------------------------------------------------------
 */

enum { THREADS = 4, RUNS = 200 };

struct worker {
    tn_tensor *w;
    int number;
    bool wrong;
};

static void *works(void *user)
{
    struct worker *worker = user;

    for (int i = 0; i < RUNS; i++) {
        TN_SCOPE;
        float x = (float)(worker->number * RUNS + i), got[2];
        tn_tensor *in[] = { VEC(x, x + 1), worker->w }, *y = NULL;

        worker->wrong |= tn_op_call(tn_op_find("test_weigh_kept", 0), in, 2, NULL, &y, 1) !=
                             TN_OK ||
                         tn_tensor_copy_out(y, got, sizeof got) != TN_OK || got[0] != 3 * x ||
                         got[1] != 5 * (x + 1);
    }
    return NULL;
}

START_TEST(several_threads_share_the_data)
{
    TN_SCOPE;
    struct worker workers[THREADS];
    pthread_t thread[THREADS];
    tn_tensor *w = VEC(3, 5);

    begin();
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ w, i, false };
        ck_assert_int_eq(pthread_create(&thread[i], NULL, works, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert(!workers[i].wrong);
    }
    ck_assert_int_eq(seen.prepared, 1);
    ck_assert_int_gt(seen.with_data, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kept");
    TCase *tests = tcase_create("kept");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_weight_is_prepared_once_it_was_the_same_before);
    tcase_add_test(tests, data_of_a_weight_that_was_written_is_not_used_and_is_dropped);
    tcase_add_test(tests, views_and_keys_have_data_of_their_own);
    tcase_add_test(tests, calls_that_record_gradients_prepare_later);
    tcase_add_test(tests, memory_to_which_a_program_may_write_unnoticed_is_not_kept);
    tcase_add_test(tests, a_failure_to_prepare_is_none_of_the_call);
    tcase_add_test(tests, each_allocation_fails_in_turn_law_4);
    tcase_add_test(tests, a_kernel_with_a_key_needs_prepare_and_one_weight);
    tcase_add_test(tests, several_threads_share_the_data);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
