/* SPDX-License-Identifier: MIT
 *
 * Inference with networks that are built from modules, compared with PyTorch and onnxruntime: the
 * same weights and data, images with the channels first, the results compared. compare.c has the
 * command line. With bf16 weights and images have this type on both sides; onnxruntime has no such
 * kernels for processors. */
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "ops.h"

static tn_status convert(tn_tensor **tensor, tn_dtype dtype)
{
    tn_tensor *to;

    if (*tensor == NULL || tn_tensor_dtype(*tensor) != TN_F32)
        return TN_OK;
    to = tn_keep(tn_cast(*tensor, dtype));
    tn_tensor_drop(*tensor);
    *tensor = to;
    return to != NULL ? TN_OK : tn_error_last_code();
}

/* Returns the milliseconds since *at, and sets *at to the current time. */
static double since(double *at)
{
    double now = bench_now(), passed = (now - *at) * 1e3;

    *at = now;
    return passed;
}

/* Makes the plan that runs in place of the module, and a second one, which finds packed weights. */
static tn_status compile(bench_task *task)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_graph *graph;
    tn_plan *second = NULL;
    double at = bench_now(), traced, passed = 0, planned, again;
    tn_plan_stats stats;
    tn_status status = TN_OK;

    if (task->network->forward != NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "--compiled: %s is not called with one tensor",
                       task->network->name);
    how.flags = TN_TRACE_THROUGH;
    graph = tn_module_trace(task->module, task->x, &how);
    traced = since(&at);
    if (graph != NULL && strcmp(task->compiled, "none") != 0) {
        status = tn_graph_pass(graph, task->compiled);
        passed = since(&at);
    }
    if (status == TN_OK)
        task->plan = tn_plan_new(graph, NULL);
    planned = since(&at);
    if (task->plan != NULL)
        second = tn_plan_new(graph, NULL);
    again = since(&at);
    tn_graph_drop(graph);
    tn_plan_drop(second);
    if (second == NULL || tn_plan_describe(task->plan, &stats) != TN_OK)
        return tn_error_last_code();
    fprintf(stderr,
            "  %s: traced in %.2f ms, passes in %.2f, planned in %.2f, of which without packing "
            "%.2f: %lld steps, %.4g MiB of values (at least %.4g, apart %.4g), %.4g MiB prepared\n",
            task->network->name, traced, passed, planned, again, (long long)stats.steps,
            (double)stats.bytes / 0x1p20, (double)stats.bytes_least / 0x1p20,
            (double)stats.bytes_apart / 0x1p20, (double)stats.bytes_prepared / 0x1p20);
    return TN_OK;
}

static tn_status prepare(bench_task *task)
{
    tn_status status = tn_module_eval(task->module);

    if (task->dtype == TN_F32)
        return status == TN_OK && task->compiled != NULL ? compile(task) : status;
    if (status == TN_OK)
        status = tn_module_to(task->module, NULL, task->dtype);
    if (status == TN_OK)
        status = convert(&task->x, task->dtype);
    for (int i = 0; i < BENCH_CACHE && status == TN_OK; i++)
        status = convert(&task->cache[i], task->dtype);
    return status == TN_OK && task->compiled != NULL ? compile(task) : status;
}

static tn_tensor *step(bench_task *task)
{
    tn_tensor *y;

    if (tn_inference_begin(true) != TN_OK)
        return NULL;
    if (task->plan == NULL)
        y = bench_network_call(task->network, task->module, task->x, task->cache);
    else if (tn_plan_run(task->plan, &task->x, 1, &y, 1) != TN_OK)
        y = NULL;
    tn_inference_end();
    return y;
}

int main(int argc, char **argv)
{
    static const bench_program infer = { "infer", "eager,onnxruntime", "1,32", prepare, step, 1,
                                         false };

    return bench_compare(argc, argv, &infer);
}
