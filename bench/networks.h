/* SPDX-License-Identifier: MIT
 *
 * The networks of bench/train and bench/infer, as a program would build them: by a spec, by the
 * name of a model of the plugin tenon.models, or from modules of its own. networks.py has the same
 * for PyTorch. */
#ifndef TN_BENCH_NETWORKS_H
#define TN_BENCH_NETWORKS_H

#include <tenon/tenon.h>

enum { BENCH_CACHE = 24 }; /* tensors of a cache of keys and values */

typedef struct bench_network {
    const char *name, *title;
    const char *spec; /* of the module; PyTorch reads the same if networks.py has no such name */
    tn_module *(*make)(void); /* builds the module if no spec can; or NULL */
    int64_t input[3];         /* shape of x without the batch */
    int n_input;
    int64_t tokens;        /* > 0: x is whole numbers below it */
    int64_t classes;       /* of the cross entropy; 0: the loss is the squared error */
    int64_t batch;         /* in training; 0: only inference */
    const char *optimizer; /* the name in both libraries: SGD or AdamW */
    tn_tensor *(*forward)(tn_module *module, tn_tensor *x, tn_tensor *const *cache);
    tn_ints (*cache)(int64_t batch); /* the shape of the tensors of the cache; NULL: none */
} bench_network;

extern const bench_network bench_networks[];
extern const int bench_n_networks;

/* Builds the module; NULL and an error. [owned] */
tn_module *bench_network_new(const bench_network *network);
/* Calls it; `cache` is only for a network that has one. */
tn_tensor *bench_network_call(const bench_network *network, tn_module *module, tn_tensor *x,
                              tn_tensor *const *cache);
/* The loss of a result, and a target for it. */
tn_tensor *bench_network_loss(const bench_network *network, tn_tensor *y, tn_tensor *target);
tn_tensor *bench_network_target(const bench_network *network, tn_tensor *y, uint64_t *state);

#endif
