/* SPDX-License-Identifier: MIT
 *
 * The networks of bench/train, written with operators. A network asks its model for parameters in
 * the order in which it uses them: the first time they are made, later they are given again. */
#ifndef TN_BENCH_NETS_H
#define TN_BENCH_NETS_H

#include <tenon/tenon.h>

enum { BENCH_TENSORS = 256 };

typedef struct bench_model {
    tn_tensor *parameters[BENCH_TENSORS], *buffers[BENCH_TENSORS];
    int64_t n_parameters, n_buffers;
    int64_t next_parameter, next_buffer; /* of this pass */
    bool made;
    uint64_t state;  /* of the numbers that weights begin with */
    double multiply; /* multiply-adds of a step, forward and backward */
    bool first;      /* no gradient is wanted of what comes in yet */
} bench_model;

typedef struct bench_net {
    const char *name, *title;
    const char *optimizer;     /* ours, and the peer's name of it */
    int64_t input[4], n_input; /* shape of x */
    int64_t classes, tokens;   /* tokens > 0: x is whole numbers below it */
    bool images;               /* may be channels last */
    tn_tensor *(*forward)(bench_model *m, tn_tensor *x);
} bench_net;

extern const bench_net bench_nets[];
extern const int bench_n_nets;

#endif
