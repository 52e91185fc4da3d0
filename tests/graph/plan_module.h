/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of plans: a module with its graph and plan, runs with one input. */
#ifndef TN_TESTS_GRAPH_PLAN_MODULE_H
#define TN_TESTS_GRAPH_PLAN_MODULE_H

#include "lib/plan/plan.h"
#include "tests/graph/traced.h"

/* A module in evaluation mode, its graph, and a plan of it. */
struct planned {
    tn_module *net;
    tn_graph *graph;
    tn_plan *plan;
};

static TN_ATTR(unused) tn_tensor *plan1(tn_plan *plan, tn_tensor *in)
{
    tn_tensor *out = NULL;

    return tn_plan_run(plan, &in, 1, &out, 1) == TN_OK ? out : NULL;
}

/* What the module computes by itself. */
static TN_ATTR(unused) tn_tensor *eager(tn_module *net, tn_tensor *in)
{
    tn_tensor *out;

    ck_ok(tn_grad_begin(false));
    out = tn_module_call(net, in);
    tn_grad_end();
    return out;
}

static TN_ATTR(unused) tn_tensor *numbered(tn_ints shape, int from)
{
    int64_t count = 1;
    float *values;
    tn_tensor *tensor;

    for (int64_t i = 0; i < shape.count; i++)
        count *= shape.at[i];
    values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((i * 37 + from) % 23) / 23 - 0.4F;
    tensor = tn_tensor_from(values, TN_F32, shape);
    free(values);
    return tensor;
}

static TN_ATTR(unused) tn_plan *plan_of(const tn_graph *graph, uint32_t bindings,
                                        const char *passes)
{
    tn_plan_options how = TN_PLAN_OPTIONS;

    how.bindings = bindings;
    how.passes = passes;
    return tn_plan_new(graph, &how);
}

static TN_ATTR(unused) struct planned make(tn_module *net, tn_tensor *x, const char *dynamic)
{
    struct planned p = { .net = net };
    tn_tracing_options how = TN_TRACING_OPTIONS;

    how.flags = TN_TRACE_THROUGH;
    how.dynamic = dynamic;
    ck_ok(tn_module_eval(net));
    p.graph = tn_module_trace(net, x, &how);
    ck_made(p.graph);
    p.plan = plan_of(p.graph, 2, NULL);
    ck_made(p.plan);
    return p;
}

static TN_ATTR(unused) void drop(struct planned *p)
{
    tn_plan_drop(p->plan);
    tn_graph_drop(p->graph);
    tn_module_drop(p->net);
}

static TN_ATTR(unused) tn_plan_stats stats_of(tn_plan *plan)
{
    tn_plan_stats stats;

    ck_ok(tn_plan_describe(plan, &stats));
    return stats;
}

#endif
