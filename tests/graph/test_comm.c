/* SPDX-License-Identifier: MIT
 *
 * Communicators: the one of examples/graph_contributions.c, for one process, and what the core
 * checks before a plugin is called. */
#include "tests/graph/suite.h"

/* ---- a communicator of this program ---------------------------------------------------------- */

static int opened, closed, called;
static tn_status answer;
static tn_comm_call last;

struct options {
    int64_t port;
};
static const tn_option options[] = { TN_OPTION_INT(struct options, port, "29500", "a port"),
                                     TN_OPTION_END };

static tn_status open_group(const tn_comm_def *self, const tn_comm_args *args, void **comm)
{
    ck_assert_str_eq(self->name, "test");
    ck_assert_int_eq(((const struct options *)args->data)->port, 7);
    ck_assert_int_eq(args->rank, 1);
    ck_assert_int_eq(args->size, 3);
    ck_assert_str_eq(args->address, "here");
    ck_assert_ptr_eq(args->device, tn_device_find("cpu"));
    if (answer != TN_OK)
        return tn_fail(answer, "nobody is there");
    opened++;
    *comm = &opened;
    return TN_OK;
}

static void close_group(void *comm)
{
    ck_assert_ptr_eq(comm, &opened);
    closed++;
}

static tn_status exchange(const tn_comm_call *call)
{
    ck_assert_ptr_eq(call->comm, &opened);
    ck_assert_str_eq(call->def->name, "test");
    called++;
    last = *call;
    return answer != TN_OK ? tn_fail(answer, "process 2 is gone") : TN_OK;
}

/* Works: a group has one at a time, which is done after the second look. */
static int looks, waited;

static tn_status start(const tn_comm_call *call, void **work)
{
    called++;
    last = *call;
    looks = 0;
    if (answer != TN_OK)
        return tn_fail(answer, "process 2 is gone");
    *work = &looks;
    return TN_OK;
}

static tn_status progress(void *comm, void *work, bool *done)
{
    ck_assert_ptr_eq(comm, &opened);
    ck_assert(work == NULL || work == &looks);
    *done = ++looks >= 2;
    return TN_OK;
}

static tn_status wait_for(void *comm, void *work)
{
    ck_assert_ptr_eq(comm, &opened);
    ck_assert_ptr_eq(work, &looks);
    waited++;
    return answer != TN_OK ? tn_fail(answer, "process 2 is gone") : TN_OK;
}

/* What a launcher has told this process. */
static tn_comm_args told;

static tn_status world(const tn_comm_def *self, tn_comm_args *args)
{
    ck_assert_str_eq(self->name, "test");
    ck_assert_ptr_eq(args->device, tn_device_find("cpu"));
    args->rank = told.rank;
    args->size = told.size;
    args->address = told.address;
    return answer != TN_OK ? tn_fail(answer, "two launchers disagree") : TN_OK;
}

static tn_comm_def test = { TN_HEAD(tn_comm_def),
                            .name = "test",
                            .help = "for this test",
                            .options = options,
                            .data_size = sizeof(struct options),
                            .dtypes = TN_BIT(TN_F32) | TN_BIT(TN_I32) | TN_BIT(TN_C64),
                            .open = open_group,
                            .close = close_group,
                            .all_reduce = exchange,
                            .broadcast = exchange,
                            .all_gather = exchange,
                            .reduce_scatter = exchange,
                            .send = exchange,
                            .recv = exchange };

static tn_comm *three(void)
{
    const tn_comm_args args = { TN_HEAD(tn_comm_args), .rank = 1, .size = 3, .address = "here" };
    tn_comm *comm;

    ck_ok(tn_register(&test));
    comm = tn_comm_new("test(port=7)", &args);
    ck_made(comm);
    return comm;
}

/* ---- one process ----------------------------------------------------------------------------- */

START_TEST(in_a_group_of_one_all_exchanges_are_copies)
{
    use_example();
    TN_SCOPE;
    const tn_comm_args args = { TN_HEAD(tn_comm_args), .size = 1 };
    tn_comm *comm = tn_comm_new("alone", &args);
    tn_tensor *x = numbers(1), *y = numbers(10), *expected = numbers(1);
    ck_made(comm);
    ck_assert_int_eq(tn_comm_rank(comm), 0);
    ck_assert_int_eq(tn_comm_size(comm), 1);
    ck_assert_str_eq(tn_comm_name(comm), "alone");
    ck_assert_ptr_eq(tn_comm_device(comm), tn_device_find("cpu"));
    for (tn_reduction r = 0; r < TN_REDUCTION_COUNT; r++) {
        ck_ok(tn_comm_all_reduce(comm, x, r));
        ck_same(x, expected);
    }
    ck_ok(tn_comm_broadcast(comm, x, 0));
    ck_same(x, expected);
    ck_ok(tn_comm_all_gather(comm, y, x));
    ck_same(y, expected);
    y = numbers(10);
    ck_ok(tn_comm_reduce_scatter(comm, y, x, TN_REDUCTION_MAX));
    ck_same(y, expected);
    ck_ok(tn_comm_barrier(comm));
    /* messages of one tag in order, of others in any */
    ck_ok(tn_comm_send(comm, numbers(1), 0, 5));
    ck_ok(tn_comm_send(comm, numbers(2), 0, 6));
    ck_ok(tn_comm_send(comm, numbers(3), 0, 5));
    ck_ok(tn_comm_recv(comm, y, 0, 6));
    ck_same(y, numbers(2));
    ck_ok(tn_comm_recv(comm, y, 0, 5));
    ck_same(y, numbers(1));
    ck_ok(tn_comm_send(comm, numbers(4), 0, 5));
    ck_ok(tn_comm_recv(comm, y, 0, 5));
    ck_same(y, numbers(3));
    ck_ok(tn_comm_recv(comm, y, 0, 5));
    ck_same(y, numbers(4));
    ck_assert_int_eq(tn_comm_recv(comm, y, 0, 5), TN_ERR_TIMEOUT);
    expect_failure(TN_ERR_TIMEOUT, "tn_comm_recv: alone: no message with tag 5 was sent");
    ck_ok(tn_comm_send(comm, numbers(4), 0, 5)); /* dropped with the group */
    tn_comm_drop(comm);
    const tn_comm_args two = { TN_HEAD(tn_comm_args), .size = 2 };
    ck_assert_ptr_null(tn_comm_new("alone()", &two));
    expect_failure(TN_ERR_VALUE,
                   "communicator alone: alone: size: too large, got 2; expected 1 process");
}
END_TEST

/* ---- works ----------------------------------------------------------------------------------- */

START_TEST(a_work_runs_until_it_is_waited_for)
{
    TN_SCOPE;
    tn_comm_stats stats = { 0, 0, 0 };
    bool done = true;

    test.start = start;
    test.progress = progress;
    test.wait = wait_for;
    tn_comm *comm = three();
    tn_tensor *x = numbers(1), *w = numbers(2), *y;
    ck_ok(tn_tensor_set_requires_grad(w, true));
    tn_work *work = tn_comm_all_reduce_start(comm, x, TN_REDUCTION_MAX);
    ck_made(work);
    ck_assert_uint_eq(last.exchange, TN_EXCHANGE_ALL_REDUCE);
    ck_assert_uint_eq(last.reduction, TN_REDUCTION_MAX);
    ck_assert_ptr_eq(last.in, tn_tensor_view(x));
    y = tn_sum(tn_mul(w, x)); /* before the work is done: what is saved is not valid */
    ck_ok(tn_work_done(work, &done));
    ck_assert(!done);
    ck_ok(tn_comm_progress(comm));
    ck_ok(tn_comm_stats_of(comm, TN_EXCHANGE_BARRIER, &stats));
    ck_assert(stats.calls == 0 && stats.seconds == 0); /* progress is no barrier */
    ck_ok(tn_work_done(work, &done));
    ck_assert(done);
    tn_comm_drop(comm); /* the group stays until the work is waited for */
    ck_assert_int_eq(closed, 0);
    ck_ok(tn_work_wait(work));
    ck_assert_int_eq(waited, 1);
    ck_assert_int_eq(closed, 1);
    ck_assert_int_ne(tn_backward(y), TN_OK);
    tn_error_clear();

    comm = tn_comm_new("test(port=7)", &(tn_comm_args){ TN_HEAD(tn_comm_args), .rank = 1, .size = 3,
                                                        .address = "here" });
    ck_made(comm);
    work = tn_comm_send_start(comm, x, 2, 9);
    ck_made(work);
    ck_assert_int_eq(last.peer, 2);
    ck_assert_int_eq(last.tag, 9);
    ck_assert_ptr_null(last.out);
    answer = TN_ERR_PEER;
    ck_assert_int_eq(tn_work_wait(work), TN_ERR_PEER);
    expect_failure(TN_ERR_PEER, "tn_comm_send: process 2 is gone");
    ck_assert_ptr_null(tn_comm_recv_start(comm, x, 0, 9));
    expect_failure(TN_ERR_PEER, "tn_comm_recv: process 2 is gone");
    answer = TN_OK;
    ck_assert_ptr_null(tn_comm_broadcast_start(comm, x, 3));
    expect_failure(TN_ERR_INDEX, "tn_comm_broadcast: rank out of range, got 3");
    ck_assert_ptr_null(tn_comm_start(comm, TN_EXCHANGE_COUNT, x, NULL, 0, 0));
    expect_failure(TN_ERR_VALUE, "exchange: unknown, got 7");
    work = tn_comm_all_reduce_start(comm, tn_tensor_empty(TN_SHAPE(0), TN_F32, NULL), 0);
    ck_ok(tn_work_wait(work)); /* empty tensors: nothing is started */
    ck_assert_int_eq(waited, 2);
    ck_ok(tn_comm_stats_of(comm, TN_EXCHANGE_SEND, &stats));
    ck_assert_int_eq(stats.calls, 1);
    ck_assert_int_eq(stats.bytes, 24);
    ck_assert_int_eq(tn_comm_stats_of(comm, TN_EXCHANGE_COUNT, &stats), TN_ERR_VALUE);
    tn_error_clear();
    /* a tensor that the exchange does not take is not looked at */
    work = tn_comm_start(comm, TN_EXCHANGE_ALL_REDUCE, x, TN_NONE, TN_REDUCTION_SUM, 0);
    ck_made(work);
    ck_assert_ptr_eq(last.in, tn_tensor_view(x));
    ck_ok(tn_work_wait(work));
    tn_comm_drop(comm);
}
END_TEST

START_TEST(without_background_a_work_is_done_at_once)
{
    TN_SCOPE;
    tn_comm *comm = three();
    tn_tensor *x = numbers(1), *many = tn_tensor_full(TN_SHAPE(6, 3), 0, TN_F32, NULL);
    bool done = false;
    tn_work *work = tn_comm_all_gather_start(comm, many, x);

    ck_made(work);
    ck_assert_uint_eq(last.exchange, TN_EXCHANGE_ALL_GATHER);
    ck_ok(tn_work_done(work, &done));
    ck_assert(done);
    ck_ok(tn_work_wait(work));
    work = tn_comm_reduce_scatter_start(comm, x, many, TN_REDUCTION_MIN);
    ck_made(work);
    ck_assert_uint_eq(last.reduction, TN_REDUCTION_MIN);
    ck_ok(tn_work_wait(work));
    ck_ok(tn_comm_progress(comm));
    tn_comm_drop(comm);
}
END_TEST

/* ---- processes that were started together ---------------------------------------------------- */

START_TEST(without_arguments_the_communicator_asks_the_launcher)
{
    TN_SCOPE;
    tn_comm *comm;

    test.world = world;
    ck_ok(tn_register(&test));
    told = (tn_comm_args){ .rank = 1, .size = 3, .address = "here" };
    comm = tn_comm_new("test(port=7)", NULL);
    ck_made(comm);
    ck_assert_int_eq(tn_comm_rank(comm), 1);
    ck_assert_int_eq(tn_comm_size(comm), 3);
    tn_comm_drop(comm);
    told.rank = 3;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", NULL));
    expect_failure(TN_ERR_VALUE, "wrong group, got rank 3 of size 3");
    answer = TN_ERR_VALUE;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", NULL));
    expect_failure(TN_ERR_VALUE, "communicator test: two launchers disagree");
}
END_TEST

/* ---- what the plugin gets -------------------------------------------------------------------- */

START_TEST(a_plugin_gets_what_the_program_asks_for)
{
    TN_SCOPE;
    tn_comm *comm = three();
    tn_tensor *x = numbers(1);
    tn_tensor *many = tn_tensor_full(TN_SHAPE(6, 3), 0, TN_F32, NULL);
    ck_ok(tn_comm_all_reduce(comm, x, TN_REDUCTION_AVERAGE));
    ck_assert_uint_eq(last.reduction, TN_REDUCTION_AVERAGE);
    ck_assert_ptr_eq(last.in, tn_tensor_view(x));
    ck_assert_ptr_eq(last.out, tn_tensor_view(x));
    ck_ok(tn_comm_broadcast(comm, x, 2));
    ck_assert_int_eq(last.peer, 2);
    ck_ok(tn_comm_all_gather(comm, many, x));
    ck_assert_ptr_eq(last.in, tn_tensor_view(x));
    ck_assert_ptr_eq(last.out, tn_tensor_view(many));
    ck_ok(tn_comm_reduce_scatter(comm, x, many, TN_REDUCTION_MIN));
    ck_assert_ptr_eq(last.in, tn_tensor_view(many));
    ck_assert_uint_eq(last.reduction, TN_REDUCTION_MIN);
    ck_ok(tn_comm_send(comm, x, 2, 9));
    ck_assert_ptr_null(last.out);
    ck_assert_int_eq(last.tag, 9);
    ck_ok(tn_comm_recv(comm, x, 0, 9));
    ck_assert_ptr_null(last.in);
    ck_assert_int_eq(called, 6);
    /* empty tensors are empty everywhere */
    ck_ok(tn_comm_all_reduce(comm, tn_tensor_empty(TN_SHAPE(0, 3), TN_F32, NULL), 0));
    ck_assert_int_eq(called, 6);
    /* what is saved for a gradient is guarded against the exchange */
    tn_tensor *w = numbers(2), *y;
    ck_ok(tn_tensor_set_requires_grad(w, true));
    y = tn_sum(tn_mul(w, x));
    ck_ok(tn_comm_all_reduce(comm, x, 0));
    ck_assert_int_ne(tn_backward(y), TN_OK);
    tn_error_clear();
    answer = TN_ERR_PEER;
    ck_assert_int_eq(tn_comm_all_reduce(comm, x, 0), TN_ERR_PEER);
    expect_failure(TN_ERR_PEER, "tn_comm_all_reduce: process 2 is gone");
    answer = TN_OK;
    ck_assert_int_eq(tn_comm_barrier(comm), TN_ERR_NOT_IMPLEMENTED);
    expect_failure(TN_ERR_NOT_IMPLEMENTED, "communicator test does not implement this exchange");
    ck_ok(tn_comm_abort(comm));
    ck_assert_int_eq(tn_comm_broadcast(comm, x, 0), TN_ERR_PEER);
    expect_failure(TN_ERR_PEER, "the group was aborted");
    ck_assert_int_eq(called, 8);
    tn_comm_drop(comm);
    ck_assert_int_eq(closed, 1);
}
END_TEST

START_TEST(wrong_tensors_do_not_reach_the_plugin)
{
    TN_SCOPE;
    tn_comm *comm = three();
    tn_tensor *x = numbers(1), *turned = tn_transpose(x, 0, 1);
    tn_tensor *half = tn_cast(x, TN_F16), *whole = tn_cast(x, TN_I32);
    tn_tensor *complex = tn_cast(x, TN_C64);
    tn_tensor *far = tn_tensor_empty(TN_SHAPE(2), TN_F32, tn_device_find("meta"));
    tn_tensor *many = tn_tensor_full(TN_SHAPE(18), 0, TN_F32, NULL);
    tn_tensor *w = numbers(2);
    ck_ok(tn_tensor_set_requires_grad(w, true));
    ck_assert_int_eq(tn_comm_all_reduce(comm, turned, 0), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "tn_comm_all_reduce: not contiguous, got float32[3, 2] on cpu:0");
    ck_assert_int_eq(tn_comm_send(comm, turned, 0, 0), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_comm_all_reduce(comm, far, 0), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "wrong device, got meta:0; the group is on cpu:0");
    ck_assert_int_eq(tn_comm_all_reduce(comm, half, 0), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE,
                   "communicator test cannot do TN_REDUCTION_SUM for float16; expected one of ");
    ck_assert_int_eq(tn_comm_all_reduce(comm, whole, TN_REDUCTION_AVERAGE), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_int_eq(tn_comm_all_reduce(comm, complex, TN_REDUCTION_MAX), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_int_eq(tn_comm_all_reduce(comm, x, TN_REDUCTION_COUNT), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "unknown reduction, got 5");
    ck_assert_int_eq(tn_comm_all_reduce(comm, w, 0), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "it requires grad");
    ck_ok(tn_grad_begin(false));
    ck_ok(tn_comm_all_reduce(comm, w, 0));
    tn_grad_end();
    ck_assert_int_eq(tn_comm_broadcast(comm, x, 3), TN_ERR_INDEX);
    expect_failure(TN_ERR_INDEX, "rank out of range, got 3; expected 0 to 2");
    ck_assert_int_eq(tn_comm_send(comm, x, -1, 0), TN_ERR_INDEX);
    tn_error_clear();
    ck_assert_int_eq(tn_comm_all_gather(comm, x, many), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE,
                   "wrong sizes, got 6 elements for all and 18 for each of 3 processes");
    ck_assert_int_eq(tn_comm_all_gather(comm, many, whole), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "dtypes differ, got int32 and float32");
    ck_assert_int_eq(tn_comm_all_gather(comm, many, tn_narrow(many, 0, 3, 6)), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "out and in share memory");
    ck_assert_int_eq(tn_comm_all_reduce(comm, TN_NONE, 0), TN_ERR_TYPE);
    tn_error_clear();
    ck_assert_int_ne(tn_comm_all_reduce(comm, NULL, 0), TN_OK);
    ck_assert_int_ne(tn_comm_all_reduce(NULL, x, 0), TN_OK);
    ck_assert_int_ne(tn_comm_barrier(NULL), TN_OK);
    ck_assert_int_eq(tn_comm_rank(NULL), -1);
    tn_error_clear();
    ck_assert_int_eq(called, 1);
    tn_comm_drop(comm);
    tn_comm_drop(NULL);
}
END_TEST

START_TEST(memory_that_fails_anywhere_is_an_error)
{
    use_example();
    TN_SCOPE;
    const tn_comm_args args = { TN_HEAD(tn_comm_args), .size = 1 };
    tn_tensor *x = numbers(1), *y = numbers(2);
    tn_comm_drop(tn_comm_new("alone", &args));
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        tn_comm *comm = tn_comm_new("alone", &args);
        bool well = comm != NULL && tn_comm_send(comm, x, 0, 0) == TN_OK &&
                    tn_comm_recv(comm, y, 0, 0) == TN_OK;
        tn_comm_drop(comm);
        uint64_t made = tn__memory_fail(0);
        ck_assert_msg(well || tn_error_code() == TN_ERR_MEMORY, "%s", tn_error_text());
        tn_error_clear();
        if (made < n)
            break;
    }
    ck_same(y, x);
}
END_TEST

START_TEST(wrong_groups_are_refused)
{
    tn_comm_args args = { TN_HEAD(tn_comm_args), .rank = 1, .size = 3, .address = "here" };
    ck_ok(tn_register(&test));
    args.size = 0;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", &args));
    expect_failure(TN_ERR_VALUE, "wrong group, got rank 1 of size 0");
    args.size = 3;
    ck_assert_ptr_null(tn_comm_new("tset", &args));
    expect_failure(TN_ERR_KEY,
                   "no plugin provides a communicator \"tset\"; did you mean \"test\"?");
    ck_assert_ptr_null(tn_comm_new("7", &args));
    expect_failure(TN_ERR_FORMAT, "expected name(options)");
    ck_assert_ptr_null(tn_comm_new("test(prt=7)", &args));
    expect_failure(TN_ERR_KEY, "prt");
    answer = TN_ERR_TIMEOUT;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", &args));
    expect_failure(TN_ERR_TIMEOUT, "communicator test: nobody is there");
    args.rank = 3;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", &args));
    expect_failure(TN_ERR_VALUE, "wrong group, got rank 3 of size 3");
    args.rank = 0;
    args.timeout = -1;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", &args));
    expect_failure(TN_ERR_VALUE, "args: timeout: wrong, got -1");
    args.timeout = 0;
    args.data = &args;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", &args));
    expect_failure(TN_ERR_VALUE, "expected NULL");
    args.data = NULL;
    args.head.size += 8;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", &args));
    expect_failure(TN_ERR_VERSION, "args: unsupported by Tenon");
    args.head.kind = TN_KIND_tn_call;
    ck_assert_ptr_null(tn_comm_new("test(port=7)", &args));
    expect_failure(TN_ERR_VALUE, "not a tn_comm_args");
    ck_assert_int_eq(opened, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { in_a_group_of_one_all_exchanges_are_copies,
                                   a_plugin_gets_what_the_program_asks_for,
                                   wrong_tensors_do_not_reach_the_plugin,
                                   wrong_groups_are_refused,
                                   memory_that_fails_anywhere_is_an_error,
                                   a_work_runs_until_it_is_waited_for,
                                   without_background_a_work_is_done_at_once,
                                   without_arguments_the_communicator_asks_the_launcher,
                                   NULL };
    return suite_run("comm", tests);
}
