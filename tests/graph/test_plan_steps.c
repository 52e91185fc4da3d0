/* SPDX-License-Identifier: MIT
 *
 * The steps of a plan: kernels that prepare, compiled regions, observers; several threads at the
 * same time; failures of memory. */
#include <pthread.h>

#include "tests/graph/plan_module.h"

/* ---- kernels that prepare, regions, observers ------------------------------------------------ */

/* y = x * w + 1, w a row; the kernel keeps 2 w, and halves it. */
static struct {
    _Atomic int prepared, released, with_data, plain;
    bool fail;
} seen;

static tn_status weigh_infer(tn_infer *infer)
{
    infer->out[0].dtype = TN_F32;
    infer->out[0].ndim = 2;
    infer->out[0].shape[0] = infer->in[0]->shape[0];
    infer->out[0].shape[1] = infer->in[0]->shape[1];
    return TN_OK;
}

static float *floats(const tn_view *view)
{
    return (float *)(void *)((char *)view->data + view->byte_offset);
}

static tn_status weigh_prepare(const tn_call *call, tn_prepared_data *out)
{
    float *twice;

    ck_assert_ptr_null(call->in[0]->data);
    ck_assert_uint_eq(call->flags, TN_CALL_REPEATED);
    if (seen.fail)
        return tn_fail(TN_ERR_MEMORY, "no memory for weights");
    if ((call->constant & 2) == 0)
        return TN_OK;
    twice = malloc(3 * sizeof *twice);
    for (int i = 0; i < 3; i++)
        twice[i] = 2 * floats(call->in[1])[i];
    out->data = twice;
    out->bytes = 12;
    seen.prepared++;
    return TN_OK;
}

static void weigh_release(const tn_kernel_def *kernel, void *data)
{
    (void)kernel;
    seen.released++;
    free(data);
}

static tn_status weigh_run(const tn_call *call)
{
    const float *twice = call->prepared;

    for (int64_t i = 0; i < 3 * call->out[0]->shape[0]; i++)
        floats(call->out[0])[i] = floats(call->in[0])[i] * (twice != NULL
                                                                ? twice[i % 3] / 2
                                                                : floats(call->in[1])[i % 3]) +
                                  1;
    seen.with_data += twice != NULL;
    seen.plain += twice == NULL;
    return TN_OK;
}

static const tn_operand weigh_in[] = { { "x", 0, TN_MASK_FLOAT }, { "w", 0, TN_MASK_FLOAT } };
static const tn_operand weigh_out[] = { { "y", 0, 0 } };
static const tn_op_def weigh = { TN_HEAD(tn_op_def),   .name = "test_weigh", .math = "y = x w + 1",
                                 .help = "",           .revision = 1,        .inputs = weigh_in,
                                 .outputs = weigh_out, .n_inputs = 2,        .n_outputs = 1,
                                 .dispatch_input = 0,  .infer = weigh_infer };
static const tn_kernel_def weigh_kernel = { TN_HEAD(tn_kernel_def),  .op = "test_weigh",
                                            .device = "cpu",         .name = "weigh",
                                            .revision = 1,           .dtypes = TN_BIT(TN_F32),
                                            .run = weigh_run,        .prepare = weigh_prepare,
                                            .release = weigh_release };

static uint64_t weigh_key(const tn_call *call)
{
    return (uint64_t)call->in[1]->shape[0];
}

/* Calls without a plan keep the data, too. */
static const tn_kernel_def weigh_keyed = { TN_HEAD(tn_kernel_def),
                                           .op = "test_weigh",
                                           .device = "cpu",
                                           .name = "weigh_keyed",
                                           .revision = 1,
                                           .dtypes = TN_BIT(TN_F32),
                                           .run = weigh_run,
                                           .prepare = weigh_prepare,
                                           .release = weigh_release,
                                           .weights = 2,
                                           .prepare_key = weigh_key };

static tn_graph *weighing(tn_tensor *w, const tn_kernel_def *kernel)
{
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32), *y;

    ck_ok(tn_register(&weigh));
    ck_ok(tn_register(kernel));
    y = step(graph, "test_weigh", x, tn_graph_slot(graph, "w", w));
    ck_ok(tn_graph_output(graph, &y, 1));
    return graph;
}

START_TEST(what_kernels_prepare_is_made_again_when_a_weight_changes)
{
    TN_SCOPE;
    static const float row[] = { 1, 10, 100 };
    tn_tensor *w = tn_tensor_from(row, TN_F32, TN_SHAPE(3)), *x = numbers(1), *one;
    tn_graph *graph = weighing(w, &weigh_kernel);
    tn_plan *plan = tn_plan_new(graph, NULL);

    ck_made(plan);
    one = tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL);
    ck_assert_int_eq(seen.prepared, 1);
    ck_assert_int_eq(stats_of(plan).bytes_prepared, 12);
    ck_same(plan1(plan, x), tn_add(tn_mul(x, w), one));
    ck_same(plan1(plan, one), tn_add(tn_mul(one, w), one));
    ck_assert_int_eq(seen.prepared, 1);
    ck_assert_int_eq(seen.with_data, 2);
    ck_made(tn_add_(w, w));
    ck_same(plan1(plan, x), tn_add(tn_mul(x, w), one));
    ck_assert_int_eq(seen.prepared, 2);
    ck_assert_int_eq(seen.released, 1);
    ck_made(tn_add_(w, w));
    seen.fail = true;
    ck_assert_ptr_null(plan1(plan, x));
    ck_error(TN_ERR_MEMORY, "tn_plan_run: node test_weigh: ", "no memory for weights");
    seen.fail = false;
    ck_same(plan1(plan, x), tn_add(tn_mul(x, w), one));
    ck_assert_int_eq(seen.plain, 0);
    tn_plan_drop(plan);
    ck_assert_int_eq(seen.released, seen.prepared);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(plans_and_calls_share_what_kernels_prepare)
{
    TN_SCOPE;
    static const float row[] = { 1, 10, 100 };
    tn_tensor *w = tn_tensor_from(row, TN_F32, TN_SHAPE(3)), *own = tn_tensor_keep(w);
    tn_tensor *x = numbers(1), *one = tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL), *y;
    tn_graph *graph = weighing(w, &weigh_keyed);
    tn_plan *plans[2];

    for (int i = 0; i < 3; i++) {
        ck_ok(tn_graph_run(graph, &x, 1, &y, 1));
        ck_same(y, tn_add(tn_mul(x, w), one));
    }
    ck_assert_int_eq(seen.prepared, 1);
    ck_assert_int_ge(seen.with_data, 1);
    for (int i = 0; i < 2; i++) {
        plans[i] = tn_plan_new(graph, NULL);
        ck_made(plans[i]);
        ck_assert_int_eq(stats_of(plans[i]).bytes_prepared, 12);
    }
    ck_assert_int_eq(seen.prepared, 1);
    seen.plain = 0;
    ck_same(plan1(plans[0], x), tn_add(tn_mul(x, w), one));
    ck_same(plan1(plans[1], one), tn_add(tn_mul(one, w), one));
    /* the first plan that runs after a write prepares for all */
    ck_made(tn_add_(w, w));
    for (int i = 0; i < 2; i++)
        ck_same(plan1(plans[i], x), tn_add(tn_mul(x, w), one));
    ck_ok(tn_graph_run(graph, &x, 1, &y, 1));
    ck_same(y, tn_add(tn_mul(x, w), one));
    ck_assert_int_eq(seen.prepared, 2);
    ck_assert_int_eq(seen.plain, 0);
    ck_assert_int_eq(seen.released, 1);
    tn_plan_drop(plans[0]);
    tn_plan_drop(plans[1]);
    ck_assert_int_eq(seen.released, 1); /* the weight keeps the rest */
    tn_graph_drop(graph);
    tn_tensor_drop(own);
}
END_TEST

START_TEST(a_compiled_region_is_a_step)
{
    use_example();
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2), *expected;
    tn_graph *graph = small(w);
    tn_plan *plan;
    char text[1024];

    expected = run1(graph, x);
    ck_ok(tn_graph_compile(graph, tn_device_find("cpu"), "pairs"));
    plan = tn_plan_new(graph, NULL);
    ck_made(plan);
    ck_assert_int_gt(tn_plan_print(plan, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, ": pairs -> float32[2, 3]"));
    ck_same(plan1(plan, x), expected);
    ck_same(plan1(plan, x), expected);
    tn_plan_drop(plan);
    tn_graph_drop(graph);
}
END_TEST

static char observed[512];

static uint64_t see_begin(void *user, const tn_op_event *event)
{
    (void)user, (void)event;
    return 0;
}

static void see_end(void *user, uint64_t token, const tn_op_event *event)
{
    size_t length = strlen(observed);
    char first[64];

    (void)user, (void)token;
    tn_tensor_text(event->out[0], first, sizeof first);
    snprintf(observed + length, sizeof observed - length, "%s %s %d; ", event->op->name,
             event->kernel != NULL ? event->kernel->name : "-",
             tn_tensor_numel(event->in[0]) == 6 && event->status == TN_OK);
}

static const tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "seeing",
                                          .op_begin = see_begin, .op_end = see_end };

START_TEST(observers_see_the_steps)
{
    TN_SCOPE;
    tn_tensor *w = numbers(-4), *x = numbers(-2);
    tn_graph *graph = small(w);
    tn_plan *plan = tn_plan_new(graph, NULL);

    ck_made(plan);
    ck_ok(tn_register(&observer));
    observed[0] = '\0';
    ck_made(plan1(plan, x));
    ck_assert_str_eq(observed, "add tn_add 1; relu tn_relu 1; mul tn_mul 1; ");
    ck_ok(tn_unregister(TN_KIND_tn_observer_def, "seeing"));
    ck_same(plan1(plan, x), small_eager(x, w));
    tn_plan_drop(plan);
    tn_graph_drop(graph);
}
END_TEST

/* ---- threads and memory that fails ----------------------------------------------------------- */

struct shared {
    struct planned p;
    char expected[6][256];
};

static void *run_often(void *user)
{
    struct shared *shared = user;

    ck_ok(tn_grad_begin(false));
    for (int i = 0; i < 60; i++) {
        TN_SCOPE;
        char text[256];
        tn_tensor *y = plan1(shared->p.plan, numbered(TN_SHAPE(1 + i % 3, 3, 8, 8), i % 6));

        if (y == NULL)
            return user;
        tn_tensor_text(y, text, sizeof text);
        if (strcmp(text, shared->expected[i % 6]) != 0)
            return user;
    }
    tn_grad_end();
    return NULL;
}

START_TEST(eight_threads_run_one_plan)
{
    TN_SCOPE;
    struct shared shared = { .p = make(convolutional(), images(), "[N, 3, 8, 8]") };
    pthread_t threads[8];

    for (int i = 0; i < 6; i++)
        tn_tensor_text(eager(shared.p.net, numbered(TN_SHAPE(1 + i % 3, 3, 8, 8), i)),
                       shared.expected[i], sizeof shared.expected[i]);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_often, &shared), 0);
    for (int i = 0; i < 8; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    drop(&shared.p);
}
END_TEST

struct failing {
    tn_graph *graph;
    tn_tensor *x;
};

static bool plan_and_run(void *user)
{
    TN_SCOPE;
    struct failing *f = user;
    tn_plan *plan = plan_of(f->graph, 1, "dead");
    tn_tensor *y = plan != NULL ? plan1(plan, f->x) : NULL;
    char text[256] = "";

    if (plan != NULL)
        tn_plan_print(plan, text, sizeof text);
    tn_plan_drop(plan);
    return y != NULL && text[0] != '\0';
}

START_TEST(each_allocation_that_fails_is_an_error)
{
    TN_SCOPE;
    struct planned p = make(convolutional(), images(), NULL);
    struct failing f = { p.graph, images() };

    ck_ok(tn_grad_begin(false));
    ck_assert(plan_and_run(&f));
    ck_assert_int_gt(fail_each_allocation(plan_and_run, &f), 50);
    ck_same(plan1(p.plan, f.x), eager(p.net, f.x));
    tn_grad_end();
    drop(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { what_kernels_prepare_is_made_again_when_a_weight_changes,
                                   plans_and_calls_share_what_kernels_prepare,
                                   a_compiled_region_is_a_step,
                                   observers_see_the_steps,
                                   eight_threads_run_one_plan,
                                   each_allocation_that_fails_is_an_error,
                                   NULL };
    return suite_run("plan_steps", tests);
}
