/* SPDX-License-Identifier: MIT
 *
 * Measures calls of a model: each call with the wait for the device, after a few calls that are not
 * counted. */
#include <stdlib.h>
#include <string.h>

#include "../count.h"
#include "bench.h"

enum { WARM_LEAST = 3, RUNS_LEAST = 10, RUNS_MOST = 1000000, RUNS_SLOW = 3 };

/* After this multiple of the wanted time, RUNS_SLOW calls suffice. */
static const double slow = 5;

typedef struct bench_run {
    tn_module *module;
    const tn_device *device;
    const bench_request *request;
    tn_pack *in;
    double *times;
    int64_t count, capacity;
    tn_plan *plan; /* runs in place of the module; NULL: none */
    int64_t results;
    tn_tensor *tensors[BENCH_INPUTS]; /* the inputs of the plan */
} bench_run;

/* ---- inputs ---------------------------------------------------------------------------------- */

static tn_status add_input(const bench_request *request, const char *text, int64_t batch,
                           bench_result *out, tn_pack *in)
{
    TN_SCOPE;
    int64_t sizes[TN_MAX_DIMS], count = 0;
    tn_dtype dtype = request->dtype;
    if (!input_read(text, &dtype, sizes, &count))
        return tn_error_last_code();
    if (count == 0)
        return tn_fail(TN_ERR_VALUE, "--input: no sizes; expected the size of the batch first");
    if (batch > 0)
        sizes[0] = batch;
    out->batch = sizes[0];
    tn_tensor *x = tn_tensor_empty((tn_ints){ sizes, count }, dtype, NULL);
    if (x != NULL && (TN_BIT(dtype) & TN_MASK_FLOAT) != 0)
        x = tn_normal_(x);
    else if (x != NULL && (TN_BIT(dtype) & TN_MASK_INT) != 0)
        x = tn_randint_(x, request->low, request->high);
    else if (x != NULL)
        x = tn_tensor_full((tn_ints){ sizes, count }, 0, dtype, NULL);
    return x != NULL ? tn_pack_add(in, NULL, tn_value_tensor(x)) : tn_error_prefix("--input: ");
}

/* ---- one call -------------------------------------------------------------------------------- */

static tn_status backward(const tn_pack *out)
{
    for (int64_t i = 0; i < tn_pack_count(out); i++) {
        tn_value value = tn_pack_at(out, i);
        const tn_value *at = &value;
        while (tn_value_size(at) > 0)
            at = tn_value_item(at, 0);
        if (at->kind == TN_VALUE_TENSOR && at->as.tensor != TN_NONE)
            return tn_backward(tn_mean(at->as.tensor));
    }
    return tn_fail(TN_ERR_TYPE, "--train: the model returned no tensor; expected one to compute "
                                "gradients from");
}

static tn_status one_run(const bench_run *run)
{
    TN_SCOPE;
    tn_tensor **out = tn_malloc((size_t)run->results * sizeof(tn_tensor *) + 1);
    tn_status status = out != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_grad_begin(false);
    if (status == TN_OK)
        status = tn_plan_run(run->plan, run->tensors, run->request->input_count, out, run->results);
    tn_grad_end();
    tn_free(out);
    return status == TN_OK ? tn_device_sync(run->device) : status;
}

static tn_status one_call(const bench_run *run)
{
    if (run->plan != NULL)
        return one_run(run);
    TN_SCOPE;
    bool train = run->request->train;
    tn_pack *out = tn_pack_new();
    tn_status status = out != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_grad_begin(train);
    if (status == TN_OK && train)
        status = tn_module_zero_grad(run->module);
    if (status == TN_OK)
        status = tn_module_call_pack(run->module, run->in, out);
    if (status == TN_OK && train)
        status = backward(out);
    tn_grad_end();
    tn_pack_drop(out);
    return status == TN_OK ? tn_device_sync(run->device) : status;
}

/* Counts the multiply-adds of a forward call, which is not measured. */
static tn_status count_macs(bench_run *run, int64_t *macs)
{
    op_count *count = tn_calloc(1, sizeof *count);
    bench_request forward = *run->request;
    bench_run once = *run;
    if (count == NULL)
        return TN_ERR_MEMORY;
    forward.train = false;
    once.request = &forward;
    once.plan = NULL;
    tn_status status = count_operators(count);
    if (status == TN_OK) {
        status = one_call(&once);
        tn_status removed = tn_unregister(TN_KIND_tn_observer_def, "count");
        status = status == TN_OK ? removed : status;
    }
    *macs = count->macs;
    tn_free(count);
    return status;
}

static tn_status timed_call(bench_run *run, bool keep, double *took)
{
    double begin = work_clock();
    tn_status status = one_call(run);
    *took = work_clock() - begin;
    if (status != TN_OK || !keep)
        return status;
    if (run->count == run->capacity) {
        int64_t capacity = run->capacity > 0 ? 2 * run->capacity : 1024;
        double *grown = tn_realloc(run->times, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        run->times = grown;
        run->capacity = capacity;
    }
    run->times[run->count++] = *took;
    return TN_OK;
}

/* ---- all calls ------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

/* Interpolates between the two nearest of the sorted times. */
static double quantile(const double *times, int64_t count, double at)
{
    double place = at * (double)(count - 1);
    int64_t low = (int64_t)place;
    int64_t high = low + 1 < count ? low + 1 : low;
    return times[low] + (place - (double)low) * (times[high] - times[low]);
}

static tn_status warm_up(bench_run *run, bench_result *out)
{
    double took, begin = work_clock();
    tn_status status = timed_call(run, false, &out->first);
    if (status == TN_OK)
        status = count_macs(run, &out->macs);
    for (int i = 2;
         status == TN_OK && (i < WARM_LEAST || (run->request->repeat == 0 &&
                                                work_clock() - begin < run->request->seconds / 10));
         i++)
        status = timed_call(run, false, &took);
    return status;
}

static bool is_enough(const bench_run *run, double elapsed)
{
    const bench_request *r = run->request;
    if (r->repeat > 0)
        return run->count >= r->repeat;
    return run->count >= RUNS_MOST || (elapsed >= r->seconds && run->count >= RUNS_LEAST) ||
           (elapsed >= slow * r->seconds && run->count >= RUNS_SLOW);
}

static tn_status measure(bench_run *run, bench_result *out)
{
    tn_memory_stats memory;
    tn_status status = warm_up(run, out);
    if (status == TN_OK)
        status = tn_device_reset_peak(run->device);
    double took, begin = work_clock();
    while (status == TN_OK && !is_enough(run, work_clock() - begin))
        status = timed_call(run, true, &took);
    if (status == TN_OK)
        status = tn_device_memory(run->device, &memory);
    if (status != TN_OK)
        return status;
    out->peak = memory.peak;
    out->runs = run->count;
    for (int64_t i = 0; i < run->count; i++)
        out->total += run->times[i];
    qsort(run->times, (size_t)run->count, sizeof *run->times, by_size);
    out->median = quantile(run->times, run->count, 0.5);
    out->p10 = quantile(run->times, run->count, 0.1);
    out->p90 = quantile(run->times, run->count, 0.9);
    out->p99 = quantile(run->times, run->count, 0.99);
    return TN_OK;
}

/* Lazy layers get their shapes from a call. */
static tn_status make_plan(bench_run *run, bench_result *out)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_plan_options options = TN_PLAN_OPTIONS;
    tn_status status = one_call(run);
    double begin = work_clock();
    tn_graph *graph;

    how.flags = TN_TRACE_THROUGH;
    options.passes = run->request->compiled[0] != '\0' ? run->request->compiled : NULL;
    graph = status == TN_OK ? tn_module_trace_pack(run->module, run->in, &how) : NULL;
    if (graph == NULL)
        return tn_error_last_code();
    for (int i = 0; i < run->request->input_count; i++)
        run->tensors[i] = tn_pack_at(run->in, i).as.tensor;
    run->results = tn_graph_output_count(graph);
    run->plan = tn_plan_new(graph, &options);
    tn_graph_drop(graph);
    out->compile = work_clock() - begin;
    return run->plan != NULL ? TN_OK : tn_error_last_code();
}

tn_status bench_measure(tn_module *module, const tn_device *device, const bench_request *request,
                        int64_t batch, bench_result *out)
{
    bench_run run = { .module = module, .device = device, .request = request };
    tn_status status;

    *out = (bench_result){ .batch = 0 };
    run.in = tn_pack_new();
    status = run.in != NULL ? TN_OK : TN_ERR_MEMORY;
    for (int i = 0; i < request->input_count && status == TN_OK; i++)
        status = add_input(request, request->inputs[i], batch, out, run.in);
    if (status == TN_OK && request->compiled != NULL)
        status = make_plan(&run, out);
    if (status == TN_OK)
        status = measure(&run, out);
    tn_plan_drop(run.plan);
    tn_pack_drop(run.in);
    tn_free(run.times);
    return status;
}
