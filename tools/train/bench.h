/* SPDX-License-Identifier: MIT
 *
 * Internals of tenon bench: the measurement of one case. */
#ifndef TN_TOOLS_TRAIN_BENCH_H
#define TN_TOOLS_TRAIN_BENCH_H

#include "work.h"

enum { BENCH_INPUTS = 8 };

/* What is measured, for all cases. */
typedef struct bench_request {
    const char *inputs[BENCH_INPUTS]; /* "1,3,224,224" or "8,20:int64" */
    int input_count;
    int64_t low, high; /* integer inputs are random from low to high - 1 */
    bool train;        /* forward, mean, backward; else forward */
    double seconds;    /* for which a case is repeated; unless `repeat` is set */
    int64_t repeat;    /* number of calls; 0: by time */
    tn_dtype dtype;    /* of floating inputs without a dtype */
    /* Passes for a plan that runs in place of the model, "" for none; NULL: no plan. */
    const char *compiled;
} bench_request;

/* The result of a case: times in seconds, memory in bytes. */
typedef struct bench_result {
    int64_t batch, runs, macs; /* macs: multiply-adds of one forward call */
    double first, median, p10, p90, p99, total;
    int64_t peak;   /* the most that tensors used on the device at one time */
    double compile; /* time to trace the model and make the plan; 0 without one */
} bench_result;

/* Calls the module, which is on the default device `device`, with inputs whose dimension 0 is
 * `batch` (0: as given). */
tn_status bench_measure(tn_module *module, const tn_device *device, const bench_request *request,
                        int64_t batch, bench_result *out);

#endif
