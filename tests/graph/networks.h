/* SPDX-License-Identifier: MIT
 *
 * The networks of test_plan_networks: how to build each, and its input. */
#ifndef TN_TESTS_GRAPH_NETWORKS_H
#define TN_TESTS_GRAPH_NETWORKS_H

#include <tenon/tenon.h>

struct bench_network;

struct network {
    char name[64];
    const char *spec;              /* of the network, or its printed text if forwards != NULL */
    void (*forwards)(tn_module *); /* gives modules that were read from printed text their code */
    const char *tensors;           /* lines: parameters and buffers that the text does not show */
    tn_tensor *(*call)(tn_module *net, tn_tensor *x); /* the forward, if it is not net's; or NULL */
    const struct bench_network *bench;                /* that has the forward; or NULL */
    int64_t shape[4], ndim, words; /* words > 0: the input is whole numbers below it */
    int64_t cache[4];              /* the shape of the tensors of a cache; only for evaluation */
};

/* Calls `check` with each network, one after the other. Of the networks of bench/ the widths are
 * those of bench/networks.c if `whole`, else smaller. */
void each_network(void (*check)(const struct network *network), bool whole);

/* Returns the network with values that are the same in every call. [owned] */
tn_module *new_network(const struct network *network);

/* The forwards of examples/networks; ends with a row without a name. */
struct rebuilt {
    const char *name;
    void (*forwards)(tn_module *net);
};
extern const struct rebuilt rebuilt[];

#endif
