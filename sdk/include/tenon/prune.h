/* SPDX-License-Identifier: MIT
 *
 * Pruning: masks that set entries, rows or channels of parameters to 0, and networks from which
 * such channels are removed.
 * tenon-interface: tenon.prune 0
 *
 * A pruned parameter `weight` becomes the parameter `weight_orig`, which is the same tensor object,
 * and the buffer `weight_mask`. `weight` itself becomes a computed slot: their product, computed
 * at each access. So the layer's forward, gradients, states, copies and conversions work as before,
 * and an optimizer that has the parameter continues. Methods that compute masks come from plugins,
 * by spec: "L1Unstructured(amount=0.3)".
 *
 * A name of a parameter may be a path from the module: "encoder.0.weight".
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_PRUNE_H
#define TENON_PRUNE_H

#include <tenon/module.h>

TN_BEGIN_DECLS

/* ---- parameters ------------------------------------------------------------------------------ */

/* Prunes a parameter by methods, one after the other: "L1Unstructured(amount=0.3), Identity". An
 * amount with a decimal point is a fraction of the entries, one without is a number of entries.
 * Each method sees only the entries, or the channels, that are not masked yet. A method may be
 * written with the name of its parameter, "weight=Identity", which must be `name`. The text is not
 * a format. If the function fails, the module is unchanged. */
TN_API tn_status tn_prune(tn_module *module, const char *name, const char *methods);
/* Like tn_prune, but the methods rank the entries by `scores`, a tensor of the parameter's shape,
 * instead of by the parameter. */
TN_API tn_status tn_prune_by(tn_module *module, const char *name, const char *methods,
                             tn_tensor *scores);
/* Prunes a parameter by a mask of its shape, which is multiplied with the mask that it has. */
TN_API tn_status tn_prune_from_mask(tn_module *module, const char *name, tn_tensor *mask);

/* A parameter that is pruned together with others. The layout never changes. */
typedef struct tn_prune_target {
    tn_module *module;
    const char *name;
    tn_tensor *scores; /* importance of the entries; NULL: the parameter itself */
} tn_prune_target;

/* Ranks the entries of several parameters together and prunes each of them. `method` is one method
 * of the type unstructured; others fail with TN_ERR_TYPE. If the function fails, all modules are
 * unchanged. [array: targets count] */
TN_API tn_status tn_prune_global(const tn_prune_target *targets, int64_t count, const char *method);

/* Makes the pruning of a parameter permanent: the parameter, the same tensor object, gets the
 * masked values and its name back, as the last parameter of its module. Fails with TN_ERR_VALUE if
 * the parameter is not pruned or does not exist. */
TN_API tn_status tn_prune_remove(tn_module *module, const char *name);
/* Returns whether a parameter of the module, or of a module below it, is pruned. */
TN_API bool tn_is_pruned(tn_module *module);
/* Returns the number of methods that have pruned the parameter; 0 if it is not pruned, -1 and
 * records a failure if there is no such name. */
TN_API int64_t tn_prune_count(tn_module *module, const char *name);
/* Writes the text of one of these methods, in the order in which they were applied. Writes at most
 * `size` bytes including the final NUL; returns the length of the complete text, -1 on error.
 * [null-ok: out] */
TN_API int64_t tn_prune_method(tn_module *module, const char *name, int64_t index, char *out,
                               size_t size);

/* ---- tensors --------------------------------------------------------------------------------- */

/* Returns the mask that the methods compute for a tensor, multiplied with `mask`. The first
 * method sees only the elements that `mask` keeps. If `mask` is TN_NONE, it sees all elements; if
 * `scores` is TN_NONE, the methods score the tensor itself. [scoped] [null-through] */
TN_API tn_tensor *tn_prune_mask(tn_tensor *tensor, tn_tensor *mask, tn_tensor *scores,
                                const char *methods);
/* Returns the tensor times its mask. As in PyTorch's `prune`, the first method sees the
 * whole tensor, and its own mask starts from `mask` (TN_NONE: a mask of ones). [scoped]
 * [null-through] */
TN_API tn_tensor *tn_prune_tensor(tn_tensor *tensor, tn_tensor *mask, tn_tensor *scores,
                                  const char *methods);

/* ---- networks -------------------------------------------------------------------------------- */

/* What a function did to a network. The layout never changes. */
typedef struct tn_prune_report {
    int64_t parameters_before; /* number of elements of all parameters */
    int64_t parameters_after;
    int64_t channels_before; /* number of channels that the parameters of the network compute */
    int64_t channels_removed;
    /* Channels whose parameters are all masked, but which were kept: other modules or the results
     * of the network need the value that they have. */
    int64_t channels_kept;
    int64_t reserved[3];
} tn_prune_report;

/* Masks channels of a network, with everything that computes them: rows of weights, biases, and the
 * parameters of normalizations. Channels that belong together, such as those that a residual
 * connection adds, are masked together. `method` is of the type structured, for the dimension 0 of
 * a matrix with a row for each channel: "LnStructured(amount=0.5, n=2, dim=0)"; it chooses in each
 * group of layers. The only registered method of the type network finds the channels; it is an
 * error if there are none or several. Channels of the results of the network stay. `inputs` are an
 * example of the arguments of the network, which is called with them in evaluation mode. `report`
 * may be NULL. If the function fails, the network is unchanged. [array: inputs n_inputs]
 * [null-ok: report] */
TN_API tn_status tn_prune_channels(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs,
                                   const char *method, tn_prune_report *report);
/* Removes channels that do not contribute: their parameters are all masked (or 0), or the modules
 * that read them multiply with 0. Parameters and buffers become smaller, and the options of the
 * layers are changed, so that memory and time shrink; the results stay the same, within rounding.
 * The function compares the results for `inputs`, an example of the arguments of the network.
 * Tensor objects stay the same, gradients are dropped; make optimizers afterwards. `how` is the
 * spec of a pruning method of the type network; NULL: the only registered one. `report` may be
 * NULL. Fails with TN_ERR_NOT_IMPLEMENTED, naming the module, if the structure of a channel is not
 * known, for example because a module has a parametrized tensor. If the function fails, the network
 * is unchanged. [array: inputs n_inputs] [null-ok: how, report] */
TN_API tn_status tn_prune_compact(tn_module *net, tn_tensor *const *inputs, int64_t n_inputs,
                                  const char *how, tn_prune_report *report);

/* ---- channels of layers ---------------------------------------------------------------------- */

/* What the slices of a tensor along a dimension belong to. */
enum {
    TN_CHANNELS_IN = 1,  /* slice i is multiplied with channel i of the input */
    TN_CHANNELS_OUT = 2, /* slice i, and no other, computes channel i of the result */
    /* Slice i belongs to channel i of the input and of the result. Channel i of the result depends
     * on no other channel of the input. */
    TN_CHANNELS_SAME = 3
};

/* One dimension of a parameter or buffer of a layer. The layout never changes. */
typedef struct tn_channel_row {
    const char *slot;   /* name of the parameter or buffer, which may be reserved; NULL: none */
    const char *option; /* the option of kind int that is the number of slices; NULL: none */
    int32_t dim;
    uint32_t role; /* TN_CHANNELS_* */
} tn_channel_row;

/* The channels of a module, as its layer describes them. The layout never changes. */
typedef struct tn_channels {
    const tn_channel_row *rows; /* static */
    int64_t n_rows;
    int32_t in_axis;  /* the dimension of the first argument that has the channels of the input */
    int32_t out_axis; /* the dimension of the result; negative numbers count from the end */
    int64_t reserved[4];
} tn_channels;

/* Asks the layer of a module for its channels. Fails with TN_ERR_NOT_IMPLEMENTED if the layer does
 * not describe them, or not with these options. */
TN_API tn_status tn_module_channels(tn_module *module, tn_channels *out);

/* ==== contribution: a pruning method ========================================================== */

/* What a method sees when it prunes something that is masked in part. */
enum {
    TN_PRUNE_UNSTRUCTURED = 1, /* a vector of the entries that are not masked */
    TN_PRUNE_STRUCTURED = 2,   /* the slices along `dim` that are not masked completely */
    TN_PRUNE_GLOBAL = 3,       /* everything, with the mask */
    TN_PRUNE_NETWORK = 4       /* the method is for networks, and computes no masks */
};

/* The arguments of a method for networks. */
typedef struct tn_prune_net {
    tn_head head;
    const struct tn_prune_def *def;
    const void *options;
    tn_module *net;
    tn_tensor *const *inputs;
    int64_t n_inputs;
    const char *method; /* of `channels`: the spec for tn_prune_mask; NULL for `compact` */
    tn_prune_report *report;
} tn_prune_net;

/* A pruning method. Any thread may call its functions, for several tensors at the same time. They
 * run without recording, in scopes of their own. */
typedef struct tn_prune_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; the core does not read it */
    const tn_option *options;
    uint64_t data_size; /* size of the struct that the option table describes */
    uint32_t type;      /* TN_PRUNE_* */
    uint32_t reserved;
    /* Returns a mask for the tensor `scores`: a tensor with the shape of `mask`, 0 where an entry
     * is pruned and `mask` elsewhere. `scores` and `mask` must not be changed. NULL after recording
     * a failure, and for the type network. */
    tn_tensor *(*mask)(const struct tn_prune_def *self, const void *options, tn_tensor *scores,
                       tn_tensor *mask);
    /* Fails if an option has a value that is not accepted. May be NULL. */
    tn_status (*check)(const struct tn_prune_def *self, const void *options);
    /* Returns the dimension whose slices a structured method prunes; a negative number counts from
     * the end. NULL for other types. */
    int64_t (*dim)(const struct tn_prune_def *self, const void *options);
    /* tn_prune_channels and tn_prune_compact, for the type network; NULL for other types. They
     * leave the network unchanged if they fail. */
    tn_status (*channels)(const tn_prune_net *args);
    tn_status (*compact)(const tn_prune_net *args);
} tn_prune_def;

TN_END_DECLS
#endif
