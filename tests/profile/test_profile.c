/* SPDX-License-Identifier: MIT
 *
 * What the profiler records: times, calls, memory, shapes, modules, derivatives, optimizers. */
#include "tests/op/toy_op.h"
#include "tests/profile/suite.h"

/* ---- operators that sleep -------------------------------------------------------------------- */

static tn_status sleep_kernel(const tn_call *call)
{
    (void)call;
    nap(4);
    return TN_OK;
}

static tn_status call_one(const char *name, tn_tensor *in, tn_tensor **out)
{
    return tn_op_call(tn_op_find(name, 0), &in, 1, NULL, out, 1);
}

/* Sleeps itself, and calls the other operator twice. */
static tn_status outer_steps(const tn_decompose *call)
{
    tn_tensor *middle = NULL;
    tn_status status = call_one("test_sleep", call->in[0], &middle);

    nap(8);
    if (status == TN_OK)
        status = call_one("test_sleep", middle, &call->out[0]);
    return status;
}

static void register_sleepers(void)
{
    static const tn_op_def sleeper = {
        TN_HEAD(tn_op_def), .name = "test_sleep",     .math = "y = x",      .help = "",
        .revision = 1,      .flags = TN_OP_PRIMITIVE, .inputs = one_in,     .outputs = one_out,
        .n_inputs = 1,      .n_outputs = 1,           .dispatch_input = -1, .infer = like_infer
    };
    static const tn_kernel_def kernel = { TN_HEAD(tn_kernel_def), .op = "test_sleep",
                                          .device = "cpu",        .name = "test_sleep",
                                          .revision = 1,          .dtypes = TN_BIT(TN_F32),
                                          .run = sleep_kernel };
    tn_op_def outer = sleeper;
    static bool done;

    if (done)
        return;
    done = true;
    ok(tn_register(&sleeper));
    ok(tn_register(&kernel));
    outer.name = "test_outer";
    outer.flags = 0;
    outer.decompose = outer_steps;
    static tn_op_def kept;
    kept = outer;
    ok(tn_register(&kept));
}

#define MS 1000000

START_TEST(self_time_is_without_and_total_time_with_what_is_inside_prf_003)
{
    TN_SCOPE;
    tn_tensor *y = NULL, *x = VEC(1, 2);
    register_sleepers();
    ok(call_one("test_outer", x, &y)); /* outside of the profile */
    ok(tn_profile_start(NULL));
    ok(call_one("test_outer", x, &y));
    ok(call_one("test_sleep", x, &y));
    ok(tn_profile_stop());

    const tn_profile_row outer = *row_by(TN_PROFILE_BY_OPERATOR, "test_outer");
    const tn_profile_row inner = *row_by(TN_PROFILE_BY_OPERATOR, "test_sleep");
    ck_assert_int_eq(outer.calls, 1);
    ck_assert_int_eq(inner.calls, 3);
    ck_assert_int_ge(outer.self, 8 * MS);
    ck_assert_int_ge(outer.total, 16 * MS);
    ck_assert_int_ge(inner.self, 12 * MS);
    ck_assert_int_eq(inner.self, inner.total);
    /* total minus own time of the outer call is the time of two of the three inner calls */
    tn_profile_event event;
    int64_t at = find_event("test_sleep", 0, &event), inside = event.duration;
    at = find_event("test_sleep", at + 1, &event);
    ck_assert_int_ge(at, 0);
    ck_assert_int_eq(event.depth, 1);
    ck_assert_int_eq(outer.total - outer.self, inside + event.duration);
    ck_assert_int_eq(totals().self, outer.self + inner.self);
    TN_PROVES("PRF-001", "PRF-003");
}
END_TEST

START_TEST(a_call_inside_of_a_call_with_its_name_is_counted_once_in_the_total_prf_003)
{
    ok(tn_profile_start(NULL));
    ok(tn_range_begin("again"));
    nap(2);
    ok(tn_range_begin("again"));
    nap(2);
    tn_range_end();
    tn_range_end();
    ok(tn_profile_stop());
    const tn_profile_row *row = row_by(TN_PROFILE_BY_OPERATOR, "again");
    ck_assert_int_eq(row->calls, 2);
    ck_assert_int_eq(row->total, row->self);
    ck_assert_int_ge(row->total, 4 * MS);
    ck_assert_int_le(row->total, totals().duration);
    TN_PROVES("PRF-003");
}
END_TEST

START_TEST(nothing_is_recorded_before_the_start_and_after_the_stop_prf_002)
{
    TN_SCOPE;
    tn_profile_event event;
    ok(tn_range_begin("before"));
    tn_relu(VEC(1, 2));
    ok(tn_profile_start(NULL));
    tn_range_end(); /* it began before the profile */
    ok(tn_range_begin("one"));
    ok(tn_range_begin("two"));
    tn_exp(VEC(1));
    tn_range_end();
    tn_range_end();
    ok(tn_profile_stop());
    tn_relu(VEC(1, 2));
    ok(tn_range_begin("after"));
    tn_range_end();
    ck_assert_int_eq(find_event("relu", 0, &event), -1);
    ck_assert_int_eq(find_event("before", 0, &event), -1);
    ck_assert_int_eq(find_event("after", 0, &event), -1);
    ck_assert_int_ge(find_event("one", 0, &event), 0);
    ck_assert_str_eq(event.category, "user");
    ck_assert_int_eq(event.depth, 0);
    ck_assert_int_ge(find_event("two", 0, &event), 0);
    ck_assert_int_eq(event.depth, 1);
    ck_assert_int_ge(find_event("exp", 0, &event), 0);
    ck_assert_int_eq(event.depth, 2);
    ck_assert_int_eq(totals().unbalanced, 1);
    TN_PROVES("PRF-002");
}
END_TEST

/* ---- start and stop -------------------------------------------------------------------------- */

START_TEST(a_profile_is_started_and_stopped_once)
{
    tn_profile_options options = { .size = sizeof options };
    refused(tn_profile_stop(), TN_ERR_RUNTIME, "no profile is running");
    refused(tn_profile_step(), TN_ERR_RUNTIME, "no profile is running");
    ok(tn_profile_start(NULL));
    refused(tn_profile_start(NULL), TN_ERR_RUNTIME, "already running");
    ok(tn_profile_stop());
    refused(tn_profile_stop(), TN_ERR_RUNTIME, "no profile is running");
    options.size--;
    refused(tn_profile_start(&options), TN_ERR_VALUE, "options: size: wrong size, got");
    options.size++;
    options.flags = 8;
    refused(tn_profile_start(&options), TN_ERR_VALUE, "flags or reserved: unknown, got 8");
    refused(tn_range_begin(NULL), TN_ERR_VALUE, "tn_range_begin");
    refused(tn_observer_set_on("no_such_observer", true), TN_ERR_KEY, "no_such_observer");
    ck_assert_int_eq(tn_profile_rows(9, 0, NULL, 0), -1);
    refused(tn_error_code(), TN_ERR_VALUE, "group or sort: unknown, got 9 and 0");
}
END_TEST

START_TEST(ranges_that_do_not_end_are_closed_and_counted)
{
    TN_SCOPE;
    tn_profile_event event;
    register_sleepers();
    ok(tn_profile_start(NULL));
    tn_range_end();
    ok(tn_range_begin("open"));
    tn_relu(VEC(1));
    ok(tn_profile_stop());
    tn_range_end(); /* no profile, no effect */
    ck_assert_int_eq(totals().unbalanced, 2);
    ck_assert_int_ge(find_event("open", 0, &event), 0);
    ck_assert(event.unfinished);
    ck_assert_int_ge(find_event("relu", 0, &event), 0);
    ck_assert(!event.unfinished);
}
END_TEST

/* A step of the program that leaves a range open inside of an operator. */
static tn_status forgetful_steps(const tn_decompose *call)
{
    tn_range_begin("forgotten");
    tn_range_begin("forgotten too");
    return call_one("relu", call->in[0], &call->out[0]);
}

START_TEST(an_operator_closes_what_is_open_inside)
{
    TN_SCOPE;
    static tn_op_def def = { TN_HEAD(tn_op_def),  .name = "test_forgetful",
                             .math = "y = x",     .help = "",
                             .revision = 1,       .inputs = one_in,
                             .outputs = one_out,  .n_inputs = 1,
                             .n_outputs = 1,      .dispatch_input = -1,
                             .infer = like_infer, .decompose = forgetful_steps };
    tn_profile_event event;
    tn_tensor *y = NULL;
    ok(tn_register(&def));
    ok(tn_profile_start(NULL));
    ok(call_one("test_forgetful", VEC(1), &y));
    tn_exp(VEC(1));
    ok(tn_profile_stop());
    ck_assert_int_eq(totals().unbalanced, 2);
    ck_assert_int_ge(find_event("forgotten too", 0, &event), 0);
    ck_assert(event.unfinished);
    ck_assert_int_eq(event.depth, 2);
    ck_assert_int_ge(find_event("exp", 0, &event), 0);
    ck_assert_int_eq(event.depth, 0);
}
END_TEST

START_TEST(a_failed_call_is_a_record)
{
    TN_SCOPE;
    tn_profile_event event;
    ok(tn_profile_start(NULL));
    ck_assert_ptr_null(tn_add(VEC(1, 2), VEC(1, 2, 3)));
    tn_error_clear();
    ok(tn_profile_stop());
    ck_assert_int_ge(find_event("add", 0, &event), 0);
    ck_assert(event.failed);
}
END_TEST

/* ---- sorting, shapes, memory ----------------------------------------------------------------- */

START_TEST(rows_are_sorted_and_limited_prf_004)
{
    TN_SCOPE;
    char text[4096];
    tn_profile_row two[2];
    ok(tn_profile_start(NULL));
    tn_tensor *two_values = VEC(1, 2);
    for (int i = 0; i < 3; i++)
        tn_relu(two_values);
    tn_exp(tn_tensor_full(TN_SHAPE(1000), 0, TN_F32, NULL));
    ok(tn_range_begin("long"));
    nap(20);
    tn_range_end();
    ok(tn_profile_stop());

    read_rows(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_CALLS);
    ck_assert_str_eq(found_rows[0].name, "relu");
    for (int64_t i = 1; i < row_count; i++)
        ck_assert_int_le(found_rows[i].calls, found_rows[i - 1].calls);
    read_rows(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_TOTAL);
    ck_assert_str_eq(found_rows[0].name, "long");
    read_rows(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_MEMORY);
    ck_assert_str_eq(found_rows[0].name, "exp");
    read_rows(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_NAME);
    for (int64_t i = 1; i < row_count; i++)
        ck_assert_int_lt(strcmp(found_rows[i - 1].name, found_rows[i].name), 0);
    int64_t count = tn_profile_rows(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, two, 2);
    ck_assert_int_eq(count, row_count);
    ck_assert_str_eq(two[0].name, "long");
    int64_t length = tn_profile_table(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, 1, text,
                                      sizeof text);
    ck_assert_int_eq(length, (int64_t)strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "long"));
    ck_assert_ptr_null(strstr(text, "relu"));
    ck_assert_ptr_nonnull(strstr(text, " more)"));
    ck_assert_int_eq(tn_profile_table(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, 1, text, 8),
                     length);
    ck_assert_int_eq(strlen(text), 7);
    ck_assert_int_eq(tn_profile_table(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, 1, NULL, 0),
                     length);
    ck_assert_int_eq(tn_profile_table(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, 1, NULL, 8),
                     -1);
    refused(tn_error_code(), TN_ERR_VALUE, "table: out: it is NULL, got a size of 8 bytes");
    ck_assert_int_eq(tn_profile_table(TN_PROFILE_BY_OPERATOR, TN_PROFILE_SORT_SELF, -1, text, 8),
                     -1);
    refused(tn_error_code(), TN_ERR_VALUE, "table: rows: out of range, got -1; expected 0 or more");
    TN_PROVES("PRF-004");
}
END_TEST

START_TEST(two_shapes_are_two_rows_prf_006)
{
    TN_SCOPE;
    tn_profile_options options = { .size = sizeof options, .flags = TN_PROFILE_NO_SHAPES };
    tn_tensor *two = VEC(1, 2), *many = tn_tensor_full(TN_SHAPE(3, 4), 0, TN_F32, NULL);
    ok(tn_profile_start(NULL));
    tn_add(two, two);
    tn_add(many, many);
    tn_add(many, many);
    ok(tn_profile_stop());
    read_rows(TN_PROFILE_BY_SHAPE, TN_PROFILE_SORT_CALLS);
    ck_assert_int_eq(row_of("add", "[3, 4], [3, 4]")->calls, 2);
    ck_assert_int_eq(row_of("add", "[2], [2]")->calls, 1);
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "add")->calls, 3);
    ok(tn_profile_start(&options));
    tn_add(two, two);
    tn_add(many, many);
    ok(tn_profile_stop());
    read_rows(TN_PROFILE_BY_SHAPE, TN_PROFILE_SORT_CALLS);
    ck_assert_int_eq(row_of("add", "")->calls, 2);
    TN_PROVES("PRF-006");
}
END_TEST

START_TEST(memory_is_counted_per_operator_and_its_sum_is_what_lives_prf_005)
{
    TN_SCOPE;
    tn_profile_options options = { .size = sizeof options, .flags = TN_PROFILE_NO_MEMORY };
    tn_tensor *x = tn_tensor_full(TN_SHAPE(256, 1024), 0, TN_F32, NULL), *y = NULL;
    const int64_t mib = 1 << 20;
    ok(tn_profile_start(NULL));
    ok(call_one("exp", x, &y));
    ok(tn_range_begin("temporary"));
    ok(tn_range_begin("inside"));
    tn_tensor *z = NULL;
    uint64_t short_lived = tn_scope_begin();
    ok(call_one("relu", x, &z));
    tn_range_end();
    tn_scope_end(short_lived);
    tn_range_end();
    ok(tn_profile_stop());

    const tn_profile_row exp = *row_by(TN_PROFILE_BY_OPERATOR, "exp");
    ck_assert_int_eq(exp.self_allocated, mib);
    ck_assert_int_eq(exp.allocated, mib);
    ck_assert_int_eq(exp.freed, 0);
    ck_assert_int_eq(exp.peak, mib);
    const tn_profile_row outer = *row_by(TN_PROFILE_BY_OPERATOR, "temporary");
    ck_assert_int_eq(outer.self_allocated, 0);
    ck_assert_int_eq(outer.allocated, mib);
    ck_assert_int_eq(outer.self_freed, mib);
    ck_assert_int_eq(outer.peak, mib);
    const tn_profile_row inside = *row_by(TN_PROFILE_BY_OPERATOR, "inside");
    ck_assert_int_eq(inside.allocated, mib);
    ck_assert_int_eq(inside.freed, 0);
    int64_t sum = 0;
    for (int64_t i = 0; i < row_count; i++)
        sum += found_rows[i].self_allocated - found_rows[i].self_freed;
    ck_assert_int_eq(sum, totals().live);
    ck_assert_int_eq(totals().live, mib);
    ck_assert_int_eq(totals().peak, totals().before + 2 * mib);
    ck_assert_int_ge(totals().before, mib); /* x */
    ok(tn_profile_start(&options));
    ok(call_one("exp", x, &y));
    ok(tn_profile_stop());
    ck_assert_int_eq(totals().live, 0);
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "exp")->allocated, 0);
    TN_PROVES("PRF-005", "PRF-001");
}
END_TEST

/* ---- modules, derivatives, optimizers -------------------------------------------------------- */

static tn_module *net_of(const char *spec)
{
    tn_module *net = tn_module_new(spec);

    ck_assert_msg(net != NULL, "%s", tn_error_text());
    return net;
}

/* One step of training. */
static void train(tn_module *net, tn_optimizer *optimizer)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(4, 8), 1, TN_F32, NULL);
    ok(tn_optimizer_zero_grad(optimizer));
    ok(tn_backward(tn_mean(tn_module_call(net, x))));
    ok(tn_optimizer_step(optimizer));
}

START_TEST(records_have_the_path_of_their_module_prf_010)
{
    TN_SCOPE;
    tn_profile_event event;
    tn_module *net = net_of("Sequential(body=Sequential(fc=Linear(8, 16), act=ReLU()), "
                            "head=Linear(16, 2))");
    tn_optimizer *sgd = tn_optimizer_new(net, "SGD(lr=0.1)");
    ck_assert_msg(sgd != NULL, "%s", tn_error_text());
    train(net, sgd);
    ok(tn_profile_start(NULL));
    train(net, sgd);
    ok(tn_profile_stop());

    ck_assert_int_ge(find_event("relu", 0, &event), 0);
    ck_assert_str_eq(event.module, "Sequential.body.act");
    int64_t at = find_event("linear", 0, &event);
    ck_assert_str_eq(event.module, "Sequential.body.fc");
    ck_assert_str_eq(event.category, "operator");
    find_event("linear", at + 1, &event);
    ck_assert_str_eq(event.module, "Sequential.head");
    ck_assert_double_eq(event.flops, 2.0 * 4 * 2 * 16);
    ck_assert_int_ge(find_event("mean", 0, &event), 0);
    ck_assert_str_eq(event.module, "");
    /* the derivative has the module of its forward call */
    ck_assert_int_ge(find_event("backward of relu", 0, &event), 0);
    ck_assert_str_eq(event.module, "Sequential.body.act");

    const tn_profile_row all = *row_by(TN_PROFILE_BY_MODULE, "Sequential");
    const tn_profile_row body = *row_by(TN_PROFILE_BY_MODULE, "Sequential.body");
    const tn_profile_row fc = *row_by(TN_PROFILE_BY_MODULE, "Sequential.body.fc");
    const tn_profile_row act = *row_by(TN_PROFILE_BY_MODULE, "Sequential.body.act");
    const tn_profile_row head = *row_by(TN_PROFILE_BY_MODULE, "Sequential.head");
    ck_assert_int_eq(all.total - all.self, body.total + head.total);
    ck_assert_int_eq(body.total - body.self, fc.total + act.total);
    ck_assert_int_eq(fc.total, fc.self);
    ck_assert_double_eq(all.flops, 2.0 * 4 * (16 * 8 + 2 * 16));
    ck_assert_double_eq(body.flops, 2.0 * 4 * 16 * 8);
    ck_assert_int_gt(act.backward, 0);
    ck_assert_int_eq(all.backward, body.backward + head.backward);
    ck_assert_int_eq(fc.allocated, 4 * 16 * 4);
    tn_optimizer_drop(sgd);
    tn_module_drop(net);
    TN_PROVES("PRF-010", "PRF-001");
}
END_TEST

START_TEST(parametrizations_have_rows_of_their_own_prf_010)
{
    TN_SCOPE;
    static const char *const paths[] = {
        "Sequential.0",
        "Sequential.0.parametrizations.weight",
        "Sequential.0.parametrizations.weight.0",
        "Sequential.0.parametrizations.bias",
        "Sequential.0.parametrizations.bias.0",
        "Sequential.0.parametrizations.bias.1",
    };
    tn_module *net = net_of("Sequential(Linear(4, 4))");
    ok(tn_parametrize_with(net, "0.weight", "WeightNorm"));
    ok(tn_parametrize_with(net, "0.bias", "Identity()"));
    ok(tn_parametrize_with(net, "0.bias", "Identity()"));
    ok(tn_profile_start(NULL));
    ck_assert_ptr_nonnull(tn_module_call(net, tn_tensor_full(TN_SHAPE(3, 4), 1, TN_F32, NULL)));
    ok(tn_profile_stop());
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        ck_assert_int_eq(row_by(TN_PROFILE_BY_MODULE, paths[i])->calls, 1);
    ck_assert_int_eq(row_count, 7);
    tn_module_drop(net);
    TN_PROVES("PRF-010");
}
END_TEST

START_TEST(derivatives_are_linked_to_their_forward_call_prf_009)
{
    TN_SCOPE;
    tn_profile_event forward, backward;
    ok(tn_profile_start(NULL));
    tn_tensor *x = LEAF(1, 2, 3);
    tn_tensor *y = tn_exp(tn_exp(x));
    ok(tn_backward(tn_sum(y)));
    ok(tn_profile_stop());
    int64_t first = find_event("exp", 0, &forward);
    uint64_t inner = forward.sequence;
    ck_assert_uint_ne(inner, 0);
    find_event("exp", first + 1, &forward);
    uint64_t outer = forward.sequence;
    ck_assert_uint_gt(outer, inner);
    int64_t at = find_event("backward of exp", 0, &backward);
    ck_assert_uint_eq(backward.sequence, outer); /* the last call comes first */
    ck_assert_str_eq(backward.category, "backward");
    ck_assert_int_ge(find_event("backward of exp", at + 1, &backward), 0);
    ck_assert_uint_eq(backward.sequence, inner);
    ck_assert_int_ge(find_event("backward", 0, &backward), 0);
    ck_assert_int_eq(backward.depth, 0);
    find_event("detach", 0, &forward);
    tn_tensor *free = tn_relu(VEC(1));
    ck_assert_ptr_nonnull(free);
    ok(tn_profile_start(NULL));
    tn_relu(VEC(1));
    ok(tn_profile_stop());
    find_event("relu", 0, &forward);
    ck_assert_uint_eq(forward.sequence, 0); /* not recorded for gradients */
    TN_PROVES("PRF-009");
}
END_TEST

START_TEST(steps_of_optimizers_are_ranges_prf_012)
{
    TN_SCOPE;
    tn_module *net = net_of("Linear(8, 2)");
    tn_optimizer *sgd = tn_optimizer_new(net, "SGD(lr=0.1)");
    tn_optimizer *adam = tn_optimizer_new(net, "Adam(lr=0.1)");
    tn_profile_event event;
    ok(tn_profile_start(NULL));
    train(net, sgd);
    train(net, adam);
    ok(tn_optimizer_zero_grad_in_place(adam));
    ok(tn_profile_stop());
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "Optimizer.step#SGD.step")->calls, 1);
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "Optimizer.step#Adam.step")->calls, 1);
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "Optimizer.zero_grad#SGD.zero_grad")->calls, 1);
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "Optimizer.zero_grad#Adam.zero_grad")->calls,
                     2);
    ck_assert_int_ge(find_event("Optimizer.step#SGD.step", 0, &event), 0);
    ck_assert_str_eq(event.category, "optimizer");
    tn_optimizer_drop(sgd);
    tn_optimizer_drop(adam);
    tn_module_drop(net);
    TN_PROVES("PRF-012");
}
END_TEST

START_TEST(copies_of_bytes_are_records)
{
    TN_SCOPE;
    float values[8] = { 0 };
    tn_profile_event event;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(8), 0, TN_F32, NULL);
    ok(tn_profile_start(NULL));
    ok(tn_tensor_copy_in(x, values, sizeof values));
    ok(tn_tensor_copy_out(x, values, sizeof values));
    ok(tn_profile_stop());
    ck_assert_int_ge(find_event("copy from host", 0, &event), 0);
    ck_assert_int_eq(event.copied, 32);
    ck_assert_str_eq(event.category, "copy");
    ck_assert_str_eq(event.device, "cpu:0");
    ck_assert_int_ge(find_event("copy to host", 0, &event), 0);
    ck_assert_int_eq(event.copied, 32);
}
END_TEST

START_TEST(a_fused_convolution_has_the_operations_of_its_parts)
{
    TN_SCOPE;
    tn_profile_event event;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3, 8, 8), 1, TN_F32, NULL);
    tn_tensor *w = tn_tensor_full(TN_SHAPE(4, 3, 3, 3), 1, TN_F32, NULL);

    ok(tn_profile_start(NULL));
    ck_assert_ptr_nonnull(tn_convolution_activation(x, w, TN_NONE, TN_NONE, TN_NONE, TN_NONE,
                                                    TN_NONE, TN_NONE, "relu"));
    ok(tn_profile_stop());
    ck_assert_int_ge(find_event("convolution_activation", 0, &event), 0);
    ck_assert_double_eq(event.flops, 2.0 * (2 * 4 * 6 * 6) * (3 * 3 * 3));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *tests = tcase_create("profile");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, self_time_is_without_and_total_time_with_what_is_inside_prf_003);
    tcase_add_test(tests,
                   a_call_inside_of_a_call_with_its_name_is_counted_once_in_the_total_prf_003);
    tcase_add_test(tests, nothing_is_recorded_before_the_start_and_after_the_stop_prf_002);
    tcase_add_test(tests, a_profile_is_started_and_stopped_once);
    tcase_add_test(tests, ranges_that_do_not_end_are_closed_and_counted);
    tcase_add_test(tests, an_operator_closes_what_is_open_inside);
    tcase_add_test(tests, a_failed_call_is_a_record);
    tcase_add_test(tests, rows_are_sorted_and_limited_prf_004);
    tcase_add_test(tests, two_shapes_are_two_rows_prf_006);
    tcase_add_test(tests, memory_is_counted_per_operator_and_its_sum_is_what_lives_prf_005);
    tcase_add_test(tests, records_have_the_path_of_their_module_prf_010);
    tcase_add_test(tests, parametrizations_have_rows_of_their_own_prf_010);
    tcase_add_test(tests, derivatives_are_linked_to_their_forward_call_prf_009);
    tcase_add_test(tests, steps_of_optimizers_are_ranges_prf_012);
    tcase_add_test(tests, copies_of_bytes_are_records);
    tcase_add_test(tests, a_fused_convolution_has_the_operations_of_its_parts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
