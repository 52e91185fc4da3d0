/* SPDX-License-Identifier: MIT
 *
 * Channels of a network: which modules compute each channel, and which read it. network.c collects
 * the modules, network_flow.c finds which modules read the channels of each module,
 * network_values.c reads weights and values, network_mask.c masks channels, network_compact.c
 * removes them. */
#ifndef TN_PRUNE_NETWORK_H
#define TN_PRUNE_NETWORK_H

#include "prune.h"

/* Why a channel must stay. */
enum {
    NETWORK_FREE = 0,
    NETWORK_INPUT = 1,  /* an input of the network is added to it or read with it */
    NETWORK_OUTPUT = 2, /* the results of the network have it */
    NETWORK_UNREAD = 3, /* nothing that is known reads it */
    NETWORK_UNKNOWN = 4 /* a module whose channels are not known computes or reads it */
};

/* A module with parameters or buffers of its own. It has elements: one for each channel that it
 * reads, and one for each that it computes; the same ones if each channel is only passed on. */
typedef struct network_leaf {
    tn_module *module; /* a reference */
    char *path;
    bool known;    /* `channels` are valid */
    char why[256]; /* if not: the reason */
    tn_channels channels;
    bool same;             /* each channel of the result depends on the same channel of the input */
    int64_t in, out;       /* number of channels */
    int64_t in_at, out_at; /* the first elements */
    tn_hook_handle pre, post;
    tn_pack **clean; /* the arguments of each call, as the network computes them */
    int64_t calls, room, turn;
    uint8_t *zero; /* for each channel of the input: all its values are 0 */
} network_leaf;

/* Elements in one group are one channel, and stay or go together. */
typedef struct network_element {
    int64_t parent; /* of the tree that is the group */
    int64_t leaf;
    uint8_t lock;    /* of the root: NETWORK_* */
    int64_t because; /* of the root: the leaf that is the reason of NETWORK_UNKNOWN */
} network_element;

struct network_probe;

typedef struct network {
    tn_module *net;
    tn_tensor *const *inputs;
    int64_t n_inputs;
    network_leaf *leaves;
    int64_t n_leaves, leaf_room;
    network_element *elements;
    int64_t n_elements;
    tn_module **modules; /* all modules of the tree, and their modes */
    bool *training;
    int64_t n_modules, module_room;
    tn_tensor **outputs; /* the results of the clean call */
    int64_t n_outputs;
    const struct network_probe *probe; /* NULL: the clean call */
    tn_status failed;                  /* of a hook */
} network;

/* Collects the modules and calls the network once. To be closed also after a failure. */
TN_HIDDEN tn_status network_open(network *n, tn_module *net, tn_tensor *const *inputs,
                                 int64_t n_inputs);
TN_HIDDEN void network_close(network *n);
/* Calls the network. The tensors of the results are in *outputs, an array that the caller frees;
 * they belong to the scope. */
TN_HIDDEN tn_status network_call(network *n, tn_tensor *const *inputs, tn_tensor ***outputs,
                                 int64_t *n_outputs);

/* Groups the elements and locks the channels that must stay. */
TN_HIDDEN tn_status network_flow(network *n);
TN_HIDDEN int64_t network_root(const network *n, int64_t element);
TN_HIDDEN void network_join(network *n, int64_t a, int64_t b);
TN_HIDDEN void network_lock(network *n, int64_t element, uint8_t lock, int64_t because);
/* Fails and names the module that is the reason of a lock. */
TN_HIDDEN tn_status network_not_known(const network *n, int64_t element, const char *what);

/* Reads a tensor as doubles; the caller frees the array. NULL on failure. */
TN_HIDDEN double *network_read(tn_tensor *tensor);
/* Sets any[i] to whether slice i along dimension `dim` has an element for which test() is true. */
TN_HIDDEN tn_status network_slices(tn_tensor *tensor, int64_t dim, bool (*test)(double value),
                                   uint8_t *any);
TN_HIDDEN bool network_is_nan(double value);
TN_HIDDEN bool network_is_not_zero(double value);
/* For each channel that a leaf reads, and for each that it computes: whether a parameter has an
 * element other than 0 there. */
TN_HIDDEN tn_status network_used(const network_leaf *leaf, uint8_t *in, uint8_t *out);
/* Returns whether an earlier row has the slot of a row. */
TN_HIDDEN bool network_named_before(const network_leaf *leaf, int64_t row);
/* Returns the element of slice i of a row of the leaf's channels. */
static inline int64_t network_slice(const network_leaf *leaf, const tn_channel_row *row, int64_t i)
{
    return (row->role == TN_CHANNELS_IN ? leaf->in_at : leaf->out_at) + i;
}
/* Returns whether a slot is a pruned parameter. */
TN_HIDDEN bool network_is_pruned(tn_module *module, const char *slot);
/* Returns a slot of a pruned parameter, such as weight_mask; NULL if it is not pruned. */
TN_HIDDEN tn_tensor *network_beside(tn_module *module, const char *slot, const char *suffix);
/* Returns the tensor of a slot; of a pruned parameter the one without the mask. */
TN_HIDDEN tn_tensor *network_plain(tn_module *module, const char *slot);
/* Returns `dim` counted from the start, -1 if the tensor does not have this dimension. A negative
 * `dim` counts from the end. */
TN_HIDDEN int64_t network_axis(const tn_tensor *tensor, int64_t dim);

/* The options of ChannelGroups. */
struct network_options {
    bool strict;
};

TN_HIDDEN tn_status network_channels(const tn_prune_net *args);
TN_HIDDEN tn_status network_compact(const tn_prune_net *args);

#endif
