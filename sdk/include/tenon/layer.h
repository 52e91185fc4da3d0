/* SPDX-License-Identifier: MIT
 *
 * The descriptor of a layer, a type of module, which a plugin (or a program, with tn_register) can
 * contribute. The rules for descriptors in <tenon/contrib.h> apply to it.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_LAYER_H
#define TENON_LAYER_H

#include <tenon/state.h>

TN_BEGIN_DECLS

struct tn_channels; /* <tenon/prune.h> */

enum {
    TN_LAYER_LIST = 1,       /* the entries are a list, named 0, 1, ...: <tenon/container.h> */
    TN_LAYER_DICT = 2,       /* the entries have keys */
    TN_LAYER_PARAMETERS = 4, /* the entries are parameters, not modules */
    TN_LAYER_KEEP_KEYS = 8,  /* a slice of the list keeps the names of the entries */
    TN_LAYER_COLLAPSE = 16,  /* repr prints successive equal entries on one line */
    /* What a trace records for a call of the module if the program does not specify it: one node
     * (LEAF), or the operators and modules that forward calls (THROUGH). A layer may have at most
     * one of these flags. With neither, a layer of a plugin is recorded as one node, and a layer
     * that a program registered is traced through. */
    TN_LAYER_LEAF = 32,
    TN_LAYER_THROUGH = 64,
    /* `fuse` is called only while no gradients are recorded (tn_grad_enabled). */
    TN_LAYER_FUSE_NO_GRAD = 128,
    /* forward writes neither into its input nor into tensors of the module, except into buffers in
     * training mode; what it calls its children to do does not count. tn_module_call_chain computes
     * the tensor that a sum (`+name`) adds before its turn, so that `fuse` can add it, only if the
     * layers of that module and of those below it have this flag. */
    TN_LAYER_READS_INPUT = 256
};

/* A norm with fixed numbers for each channel, dimension 1 of the input, as batch_norm in evaluation
 * computes it: y = (x - mean) / sqrt(var + eps) * weight + bias. weight and bias may be TN_NONE. */
typedef struct tn_channel_norm {
    tn_head head;
    tn_tensor *mean, *var, *weight, *bias;
    double eps;
    int32_t least_dims, most_dims; /* of the input; forward refuses others */
} tn_channel_norm;

/* What a chain of modules does to a result: adds a tensor to it (`add`, of any shape), applies
 * `pointwise`, the name that a module's `pointwise` returned, or `norm`, which a module's
 * `channel_norm` described; exactly one of them is not NULL. The layout never changes. */
typedef struct tn_follower {
    const char *pointwise;
    tn_tensor *add;
    const tn_channel_norm *norm;
} tn_follower;

/* A layer. Any thread may call its functions, but only one thread at a time for a module that is
 * being built or is in training mode. */
typedef struct tn_layer_def {
    tn_head head;
    const char *name; /* "Linear" */
    const char *help;
    void *user; /* for the plugin; tn_module_user returns it */
    const tn_option *options;
    uint64_t data_size; /* size of the data struct, which the option table describes */
    /* The version of the state, which is stored in every state and passed to load_state. 0 means
     * 1. */
    int64_t version;
    /* Creates parameters, buffers and children from the options. May be NULL. */
    tn_status (*build)(tn_module *self);
    /* Frees what `build` has allocated in the data struct besides slots. Called once for every
     * module whose `build` was started, even if it failed: the struct was filled with zeros before,
     * so members that are not set yet are NULL. May be NULL. */
    void (*destroy)(tn_module *self);
    /* A layer defines `forward`, `call` or both; if only one is defined, it serves calls with one
     * tensor and calls with packs. A list or dictionary may have neither. */
    tn_tensor *(*forward)(tn_module *self, tn_tensor *input);
    tn_status (*call)(tn_module *self, const tn_pack *input, tn_pack *output);
    /* Writes the text between the parentheses of the printed form and returns its length. NULL: the
     * text is made from the option table. */
    int64_t (*repr)(tn_module *self, char *out, size_t size);
    /* For tn_module_copy. The data struct of `self` is a bytewise copy of that of `from`; `copy`
     * must allocate again what `build` has allocated besides slots. Called before the slots are
     * copied; if it fails, `destroy` is not called. NULL: there is nothing to allocate; a layer
     * with `destroy` then cannot be copied. */
    tn_status (*copy)(tn_module *self, tn_module *from);
    /* Called after tn_module_train has set the mode of the module and of all modules below it. May
     * change the mode of children again with tn_module_train. May be NULL. */
    tn_status (*train)(tn_module *self, bool training);
    /* The extra state: what the layer stores besides parameters and buffers, under the name
     * "_extra_state". get_extra_state adds one value to `out`; set_extra_state receives such a
     * value, which may come from a file of an older version. Tenon keeps only the tensors in the
     * value compatible. Each of the two may be NULL. */
    tn_status (*get_extra_state)(tn_module *self, tn_pack *out);
    tn_status (*set_extra_state)(tn_module *self, const tn_value *value);
    /* These functions replace tn_module_save_own and tn_module_load_own, for layers with other
     * names in the state or for states of older versions. The children are saved and loaded
     * afterwards in any case. May be NULL. */
    tn_status (*save_state)(tn_module *self, tn_state *state, const char *prefix, uint32_t flags);
    tn_status (*load_state)(tn_module *self, tn_loading *loading);
    uint64_t flags; /* TN_LAYER_* */
    /* Initializes the module's own parameters and buffers in place. Called after `build`, and by
     * tn_module_reset_parameters. May be NULL. */
    tn_status (*reset)(tn_module *self);
    /* For a lazy layer: `infer` sets the shapes that `build` left open (tn_module_materialize) from
     * the arguments of the first call. Afterwards the module has the layer `becomes`, a layer of
     * the same plugin with the same data struct. A layer defines both members or none. */
    tn_status (*infer)(tn_module *self, const tn_pack *input);
    const char *becomes;
    /* For a layer that keeps running statistics of its batches, for tn_module_update_statistics.
     * With `begin` true, the statistics are reset, and batches in training mode then have equal
     * weights. With false, batches have the weights of the options again. May be NULL. */
    tn_status (*collect)(tn_module *self, bool begin);
    /* The type that the printed form (tn_module_repr) names, for a layer whose class has another
     * name in PyTorch: a layer `resnet18` prints as ResNet. A module that is built from the printed
     * form has that type and not this layer; specs name the layer. NULL: `name`. */
    const char *printed;
    /* Describes how parameters and buffers belong to channels of the input and of the result, for
     * tn_prune_channels and tn_prune_compact. `out` is filled with zeros. Fails with
     * TN_ERR_NOT_IMPLEMENTED if the module, with its options, has no such channels. NULL: the layer
     * does not describe them, so none of its channels can be removed. */
    tn_status (*channels)(tn_module *self, struct tn_channels *out);
    /* For a layer that parametrizes tensors of other modules (<tenon/parametrize.h>). Its forward
     * or call gets the original tensors and returns the value. */
    /* Called before the layer first parametrizes `tensor`, the tensor `name` of `owner`: creates
     * what depends on its shape, dtype and device. Must not change `owner`. May be NULL. */
    tn_status (*attach)(tn_module *self, tn_module *owner, const char *name, tn_tensor *tensor);
    /* Adds to `originals` the tensors from which forward computes `value`: one, or several, as
     * arguments of their own. Called without recording, when the layer first parametrizes a tensor
     * and when a tensor is assigned to the name. A failure with TN_ERR_NOT_IMPLEMENTED means that
     * there is no right inverse for this value: at first the value itself is then the original, and
     * an assignment fails. NULL: there is none. */
    tn_status (*right_inverse)(tn_module *self, tn_tensor *value, tn_pack *originals);
    /* Called before `owner` loads its state: renames entries of older formats, such as weight_g to
     * parametrizations.weight.original0, in loading->state. May be NULL. */
    tn_status (*load_owner)(tn_module *self, tn_module *owner, const char *name,
                            tn_loading *loading);
    /* The next two members, and the last one, let modules that are called one after the other (in
     * Sequential, or by tn_module_call_chain) compute several of them in one operator. The core
     * asks only if no hook, observer or mode could see the difference: docs/plugins/writing.md has
     * the rules. `pointwise` returns what forward would do now to each element of its input: the
     * name of an operator with its default options ("relu"), "gelu_tanh", or "" if it returns its
     * input; NULL if it does something else. `pointwise` itself must change nothing. */
    const char *(*pointwise)(tn_module *self);
    /* `fuse` computes forward and as many of the `count` followers as it can, from the first on,
     * and sets *done to their number. The bits of the result and of all gradients must be those of
     * separate operators. If it can compute none of them, it returns NULL, sets *done to 0, and
     * records and changes nothing. */
    tn_tensor *(*fuse)(tn_module *self, tn_tensor *input, const tn_follower *followers,
                       int64_t count, int64_t *done);
    /* Describes forward in *out, which is filled with zeros, if forward would now compute a norm
     * with fixed numbers and do nothing else; if not, returns false. It must change nothing and
     * record no failure. May be NULL. */
    bool (*channel_norm)(tn_module *self, tn_channel_norm *out);
} tn_layer_def;

TN_END_DECLS
#endif
