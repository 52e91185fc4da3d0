/* SPDX-License-Identifier: MIT
 *
 * Runs networks (networks.h) beside the contenders of compare.py, which get the same weights and
 * data, in alternating rounds, and prints a table. bench/train and bench/infer are the two
 * programs. */
#ifndef TN_BENCH_COMPARE_H
#define TN_BENCH_COMPARE_H

#include "networks.h"

typedef struct bench_task {
    const bench_network *network;
    int64_t batch;
    tn_dtype dtype; /* TN_F32, or TN_BF16 */
    tn_module *module;
    tn_tensor *x, *target; /* no target in inference */
    tn_tensor *cache[BENCH_CACHE];
    tn_optimizer *optimizer; /* NULL in inference */
    /* Passes for a plan that runs in place of the module (tn_plan_new), "none" for no passes; NULL:
     * no plan. In training, the module is compiled instead, without passes; "step" for plans of
     * whole steps. */
    const char *compiled;
    tn_plan *plan;
    tn_step *whole; /* NULL: none */
} bench_task;

typedef struct bench_program {
    const char *name;       /* train or infer: of the program and of the part of compare.py */
    const char *contenders; /* the usual ones, separated by commas */
    const char *batches;    /* the usual sizes; 0: that of the network */
    /* Changes a module with fresh weights as the program needs it, when the contenders have them:
     * conversion, optimizer. */
    tn_status (*prepare)(bench_task *task);
    /* One step. Returns the tensor that contenders compare with theirs: loss or result. */
    tn_tensor *(*step)(bench_task *task);
    int compared;       /* steps whose result is compared */
    bool beside_itself; /* with --compiled, steps without a plan alternate with those of the plan */
} bench_program;

/* Reads the command line and runs the networks that it selects; the exit status. */
int bench_compare(int argc, char **argv, const bench_program *program);

#endif
