/* SPDX-License-Identifier: MIT
 *
 * The pass recompute: parts of a graph that backward computes again have the bits of eager
 * steps, random numbers and statistics included, and need less memory. */
#include "tests/graph/plan_training.h"

/* Returns a module made of the graph of a module in training mode, after a pass. */
static tn_module *rewritten(tn_module *net, tn_tensor *x, const char *pass, uint32_t flags,
                            int64_t *parts)
{
    tn_graph *graph = traced(net, x, flags);
    tn_module *made;
    int64_t last = 0;

    ck_made(graph);
    ck_ok(tn_graph_pass(graph, pass));
    *parts = 0;
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node)) {
        int64_t part = tn_node_part(node);

        *parts += part != 0 && part != last;
        last = part != 0 ? part : last;
    }
    made = tn_graph_module(graph);
    ck_made(made);
    tn_graph_drop(graph);
    return made;
}

static const struct row {
    const char *spec, *pass;
    int64_t shape[4];
    int32_t ndim;
    int64_t parts;
} rows[] = {
    { "Sequential(Sequential(Linear(6, 16), Dropout(0.3), GELU()), Sequential(Linear(16, 16), "
      "Dropout(0.5), Tanh()), Linear(16, 3))",
      "recompute",
      { 4, 6 },
      2,
      3 },
    { "Sequential(Sequential(Linear(6, 16), Dropout(0.3), GELU()), Sequential(Linear(16, 16), "
      "Dropout(0.5), Tanh()), Linear(16, 3))",
      "recompute(every=2)",
      { 4, 6 },
      2,
      2 },
    { "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), Sequential(SiLU(), Conv2d(8, 8, 3), ReLU()), "
      "BatchNorm2d(8), Flatten(), Linear(128, 4))",
      "recompute(modules='2')",
      { 2, 3, 8, 8 },
      4,
      1 },
    { "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Conv2d(8, 8, 3), BatchNorm2d(8), "
      "SiLU(), Flatten(), Linear(128, 4))",
      "recompute(modules='*', every=8)",
      { 2, 3, 8, 8 },
      4,
      1 },
    { "Sequential(Linear(8, 8), TransformerEncoderLayer(8, 2, 16), "
      "TransformerEncoderLayer(8, 2, 16))",
      "recompute(modules='*', every=3)",
      { 3, 2, 8 },
      3,
      1 },
};

enum { EAGER, PLANNED, WHOLE, WAYS };

static void train(const struct row *row, uint32_t flags, int way)
{
    TN_SCOPE;
    tn_ints shape = { row->shape, row->ndim };
    tn_module *net, *made, *loss = tn_module_new("MSELoss()");
    struct pair p;
    tn_optimizer *rules[2];
    tn_step *step;
    int64_t parts;

    tn_random_seed(7);
    net = tn_module_new("%s", row->spec);
    ck_made(net);
    p.eager = tn_module_copy(net);
    made = rewritten(net, numbered(shape, 0), row->pass, flags, &parts);
    if (flags == TN_TRACE_THROUGH)
        ck_assert_int_eq(parts, row->parts);
    else
        ck_assert_int_gt(parts, 0);
    p.net = made;
    rules[0] = tn_optimizer_new(p.eager, "SGD(lr=0.05, momentum=0.9)");
    rules[1] = tn_optimizer_new(p.net, "SGD(lr=0.05, momentum=0.9)");
    step = tn_step_new(p.net, loss, rules[1], NULL);
    if (way == PLANNED)
        ck_ok(tn_module_compile(p.net, TRAIN));
    for (int i = 0; i < 20; i++) {
        TN_SCOPE;
        tn_tensor *x = numbered(shape, i), *in[2], *out[2], *y, *l;

        tn_random_seed((uint64_t)i);
        ck_ok(tn_optimizer_zero_grad(rules[0]));
        y = call_of(p.eager, x);
        in[0] = y;
        in[1] = numbered(tn_tensor_shape(y), i + 1);
        ck_ok(tn_module_call_many(loss, in, 2, &l, 1));
        ck_ok(tn_backward(l));
        ck_ok(tn_optimizer_step(rules[0]));
        tn_random_seed((uint64_t)i);
        in[0] = x;
        if (way == WHOLE) {
            ck_ok(tn_step_run(step, in, 2, out, 2));
        } else {
            ck_ok(tn_optimizer_zero_grad(rules[1]));
            in[0] = out[1] = call_of(p.net, x);
            ck_ok(tn_module_call_many(loss, in, 2, out, 1));
            ck_ok(tn_backward(out[0]));
            same_gradients(net, p.eager);
            ck_ok(tn_optimizer_step(rules[1]));
        }
        ck_same(out[0], l);
        ck_same(out[1], y);
    }
    same_states(net, p.eager); /* net shares its tensors with the module of the graph */
    tn_step_drop(step);
    tn_optimizer_drop(rules[0]);
    tn_optimizer_drop(rules[1]);
    tn_module_drop(loss);
    tn_module_drop(net);
    drop_pair(&p);
}

START_TEST(steps_have_the_bits_of_eager_ones)
{
    static const uint32_t flags[] = { TN_TRACE_THROUGH, 0 };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < 2; k++)
            for (int way = EAGER; way < WAYS; way++)
                train(&rows[i], flags[k], way);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Returns the peak of memory in a step, minus the memory in use before it. */
static int64_t peak_of(tn_module *net, tn_tensor *x)
{
    const tn_device *device = tn_tensor_device(x);
    tn_memory_stats stats;
    int64_t before, peak = 0;

    for (int i = 0; i < 2; i++) {
        TN_SCOPE;

        ck_ok(tn_module_zero_grad(net));
        ck_ok(tn_device_memory(device, &stats));
        before = stats.live;
        ck_ok(tn_device_reset_peak(device));
        ck_ok(tn_backward(loss_of(call_of(net, x))));
        ck_ok(tn_device_memory(device, &stats));
        peak = stats.peak - before;
    }
    return peak;
}

START_TEST(less_memory_is_needed)
{
    for (int compiled = 0; compiled < 2; compiled++) {
        TN_SCOPE;
        char spec[4096] = "Sequential(";
        tn_module *net, *nets[2];
        tn_tensor *x = numbered(TN_SHAPE(512, 16), 1);
        int64_t peak[2], parts;

        for (int i = 0; i < 8; i++)
            strcat(spec, "Sequential(Linear(16, 16), GELU(), Linear(16, 16), Tanh()), ");
        strcat(spec, "Linear(16, 4))");
        net = tn_module_new("%s", spec);
        ck_made(net);
        for (int i = 0; i < 2; i++) {
            nets[i] = rewritten(net, x, i == 0 ? "dead" : "recompute", TN_TRACE_THROUGH, &parts);
            ck_assert_int_eq(parts, i == 0 ? 0 : 9);
            if (compiled)
                ck_ok(tn_module_compile(nets[i], TRAIN));
            peak[i] = peak_of(nets[i], x);
        }
        ck_assert_msg(peak[1] * 10 <= peak[0] * 6, "%lld bytes, without parts %lld",
                      (long long)peak[1], (long long)peak[0]);
        tn_module_drop(nets[0]);
        tn_module_drop(nets[1]);
        tn_module_drop(net);
    }
}
END_TEST

/* ---- what is marked -------------------------------------------------------------------------- */

static int64_t marked(const tn_graph *graph, int64_t part)
{
    int64_t count = 0;

    for (const tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        count += tn_node_part(node) == part;
    return count;
}

START_TEST(patterns_choose_modules)
{
    static const struct {
        const char *pass;
        int64_t parts[3]; /* the numbers of nodes of the first parts */
    } patterns[] = {
        { "recompute", { 4, 1, 0 } },
        { "recompute(modules='0.*')", { 2, 1, 1 } },
        { "recompute(modules='0.*', every=2)", { 3, 1, 0 } },
        { "recompute(modules='0.inner*')", { 2, 0, 0 } },
        { "recompute(modules='0.inner.b')", { 1, 0, 0 } },
        { "recompute(modules='1.*')", { 0, 0, 0 } },
        { "recompute(modules='0.i')", { 0, 0, 0 } },
    };
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Sequential((inner): Sequential((a): Linear(3, 4), "
                                   "(b): GELU()), (c): Tanh(), (d): Linear(4, 2)), ReLU())");
    tn_tensor *x = numbered(TN_SHAPE(2, 3), 1);
    tn_graph *graph, *copy;
    tn_node *slot;

    ck_made(net);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        graph = traced(net, x, TN_TRACE_THROUGH);
        ck_ok(tn_graph_pass(graph, patterns[i].pass));
        copy = tn_graph_copy(graph);
        for (int k = 0; k < 3; k++) {
            ck_assert_msg(marked(graph, k + 1) == patterns[i].parts[k], "%s: part %d has %lld",
                          patterns[i].pass, k + 1, (long long)marked(graph, k + 1));
            ck_assert_int_eq(marked(copy, k + 1), patterns[i].parts[k]);
        }
        tn_graph_drop(copy);
        tn_graph_drop(graph);
    }
    graph = traced(net, x, TN_TRACE_THROUGH);
    ck_assert_int_ne(tn_graph_pass(graph, "recompute(every=0)"), TN_OK);
    ck_assert_msg(strstr(tn_error_text(), "every: too small, got 0; expected 1 or more") != NULL,
                  "%s", tn_error_text());
    tn_error_clear();
    slot = tn_graph_first(graph);
    ck_assert_int_ne(tn_node_set_part(slot, 1), TN_OK);
    ck_assert_msg(strstr(tn_error_text(), "it computes nothing; expected one") != NULL, "%s",
                  tn_error_text());
    tn_error_clear();
    ck_assert_int_eq(tn_node_part(slot), 0);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

/* ---- memory that fails ----------------------------------------------------------------------- */

static bool run_parts(void *user)
{
    TN_SCOPE;
    tn_module *net = user;
    tn_tensor *x = numbered(TN_SHAPE(2, 3), 1), *y = x != NULL ? tn_module_call(net, x) : NULL,
              *loss = y != NULL ? loss_of(y) : NULL;

    return loss != NULL && tn_backward(loss) == TN_OK && tn_module_zero_grad(net) == TN_OK;
}

START_TEST(each_allocation_that_fails_is_an_error)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 4), Dropout(0.5), Sigmoid())"), *made;
    int64_t nodes = tn_grad_node_count(), parts;

    made = rewritten(net, numbered(TN_SHAPE(2, 3), 1), "recompute(every=3)", TN_TRACE_THROUGH,
                     &parts);
    ck_assert(run_parts(made));
    ck_assert_int_gt(fail_each_allocation(run_parts, made), 20);
    ck_assert_int_eq(tn_grad_node_count(), nodes);
    tn_module_drop(made);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { steps_have_the_bits_of_eager_ones, less_memory_is_needed,
                                   patterns_choose_modules, each_allocation_that_fails_is_an_error,
                                   NULL };
    return suite_run("recompute pass", tests);
}
