/* SPDX-License-Identifier: MIT
 *
 * The gradient graph: declarations for the files of core/grad. A node has edges to the nodes that
 * made its inputs, and none to the nodes that use its outputs. A tensor points to the node that
 * made it. */
#ifndef TN_CORE_GRAD_PRIVATE_H
#define TN_CORE_GRAD_PRIVATE_H

#include "core/grad/internal.h"
#include "core/hook/internal.h"
#include "core/tensor/thread.h"

/* The place where the gradient of a tensor is accumulated. The tensor and its node share it. */
typedef struct tn__slot {
    _Atomic int32_t refs;
    _Atomic bool closed; /* the leaf no longer requires a gradient: later gradients are dropped */
    pthread_mutex_t lock;
    tn_tensor *grad; /* owned; NULL: no gradient yet */
} tn__slot;

typedef enum tn__node_kind {
    TN__NODE_LEAF,     /* accumulates the gradient in a slot */
    TN__NODE_OP,       /* an operator; backward fails if it has no derivative */
    TN__NODE_FUNCTION, /* a function of the program (tn_function) */
    TN__NODE_COPY,     /* copy into an existing tensor */
    TN__NODE_CUT,      /* overwrites a tensor with values that have no gradient */
    TN__NODE_SLICE,    /* in-place change through a view, for its base; `inner` is the operator */
    TN__NODE_STRIDED,  /* a view whose base was changed, as a part of the base */
    TN__NODE_LOST      /* memory ran out while history was recorded: backward fails */
} tn__node_kind;

typedef struct tn__edge {
    struct tn__node *node; /* NULL: no gradient is wanted */
    int32_t index;         /* which output of `node` */
} tn__edge;

/* A tensor that a derivative needs. Before use, it is checked whether the tensor was changed. */
typedef struct tn__saved {
    tn_tensor *tensor;    /* owned; NULL: the operator has overwritten it in place */
    tn__storage *storage; /* the tensor's storage when it was saved */
    uint64_t version;
    int32_t operand;
    bool is_output; /* an output of the node: `tensor` has no history, to avoid a cycle */
    /* True: `tensor` is an alias that this struct owns, and holds the storage; false: this struct
     * holds the storage. */
    bool shell;
    /* Owned; has the tensor in `slot`, when it is needed; `tensor` is then NULL. NULL: none */
    struct tn__recompute *recompute;
    int64_t slot;
} tn__saved;

/* Dtype and shape of an input when it was recorded, for tn_derive.in_meta. */
typedef struct tn__seen {
    int16_t ndim; /* -1: the input was TN_NONE */
    uint16_t dtype;
    int64_t *shape;
} tn__seen;

/* Dtype, shape and device of an output of a function when it was made. */
typedef struct tn__made {
    tn_meta meta;
    const tn_device *device;
} tn__made;

typedef struct tn__node {
    _Atomic int32_t refs;
    uint8_t kind;
    bool had_saved;
    _Atomic bool busy; /* spin lock for `saved` and `released` */
    bool released;     /* a backward without retain_graph has freed what was saved */
    uint32_t size;     /* size of the block in bytes */
    uint64_t sequence; /* larger than in the nodes of its inputs, except leaves (UINT64_MAX) */
    int32_t n_in, n_out, n_saved;
    const tn_op *op;
    const char *name;
    const void *options; /* in the tail of this block, or the operator's defaults */
    tn__edge *edges;
    tn__seen *seen;
    tn__saved *saved;
    tn__hooks *_Atomic hooks; /* NULL until a hook is registered */
    struct tn__node *next;    /* in the list of nodes that wait to be freed */
    char *where;              /* owned; the module's path, in anomaly mode; otherwise NULL */
    struct tn__node *outer;   /* OP, FUNCTION: the SLICE that owns this node as `inner`, or NULL */
    union {
        tn__slot *slot; /* LEAF */
        struct {        /* FUNCTION */
            tn_function calls;
            void *user;
            /* n_out entries, for zeros in place of missing gradients. NULL: no zeros are made. */
            const struct tn__made *made;
        } function;
        struct { /* SLICE, STRIDED */
            struct tn__node *inner;
            tn_meta *base;
            tn_meta *view; /* its offset counts from the first element of the base */
        } slice;
    } as;
} tn__node;

struct tn__autograd {
    tn__node *node; /* owned; made the tensor; NULL for a leaf */
    int32_t index;
    bool retains;    /* tn_tensor_retain_grad was called */
    bool blind_view; /* a view of a tensor with gradients, made while gradients were off */
    /* A view that a function of the program returned, or a view of such a view. An in-place change
     * would bypass the backward of that function. */
    bool of_function;
    tn__node *leaf;  /* owned; the LEAF node of a leaf that requires grad */
    tn__slot *slot;  /* owned; NULL until it is needed */
    tn_tensor *base; /* owned; the tensor that this view shows, which is not a view itself */
    /* Counts changes of the history; of a view: the base's count when the view got its history. */
    uint64_t generation;
};

/* Returns whether a call with these inputs must be recorded: grad mode is on, and an input that can
 * have a gradient requires one. */
bool tn__grad_wanted(const tn_op *op, tn_tensor *const *in, int64_t n_in);

/* ---- nodes ---------------------------------------------------------------------- */
/* Returns a new node with one reference. The node is one block of memory, with space for all
 * arrays, for the shapes of the inputs (`n_sizes` numbers), and for `extra` bytes at *tail. Returns
 * NULL and sets the error on failure. */
tn__node *tn__node_new(tn__node_kind kind, const char *name, int32_t n_in, int32_t n_out,
                       int32_t n_saved, int64_t n_sizes, size_t extra, void **tail);
static inline tn__node *tn__node_keep(tn__node *node)
{
    if (node != NULL)
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}
void tn__node_drop(tn__node *node);
/* Whether an in-place call of `op` saves its result instead of the old values. */
bool tn__node_by_result(const tn_op *op, const void *options, const tn_tensor *into);
tn__node *tn__node_of_op(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                         tn_tensor *const *out, int64_t n_out, const tn_tensor *into,
                         tn_tensor *original);
/* Sets the edge and `seen` of input i, and makes the node younger than the node to which the edge
 * leads. The edge stays empty unless `wants`. The shape uses memory at *sizes, which is
 * advanced. */
tn_status tn__node_input(tn__node *node, int32_t i, tn_tensor *input, bool wants, int64_t **sizes);
/* Makes a node younger than `before`, to which one of its edges leads. */
void tn__node_follow(tn__node *node, const tn__node *before);
tn_status tn__node_save(tn__saved *saved, tn_tensor *tensor, int32_t operand, bool is_output,
                        bool stale);
/* Frees one saved tensor. */
void tn__node_saved_drop(tn__saved *saved);
/* Sets *out to a new reference to what is saved, or to NULL if the tensor was changed. Runs the
 * function of tn_recompute_call() again if needed. */
tn_status tn__node_saved_value(tn__saved *saved, tn_tensor **out);
/* Frees what is saved, unless another backward has already freed it. */
void tn__node_release(tn__node *node);
/* Sets out[i] to new references to what is saved, NULL for tensors that were changed (*stale is
 * then true). Fails with TN_ERR_RUNTIME if it was freed. */
tn_status tn__node_unpack(tn__node *node, tn_tensor **out, bool *stale);
tn_status tn__node_stale(tn__node *node); /* sets the error for a changed tensor */
/* Makes the tensor output `index` of the node. */
tn_status tn__node_attach(tn__node *node, tn_tensor *tensor, int32_t index);
/* Sets *edge to the node that made a tensor, or to its leaf node. The history of a view whose base
 * was changed is renewed first. edge->node is not a new reference. */
tn_status tn__grad_edge_of_view(tn_tensor *tensor, tn__edge *edge);
static inline void tn__grad_edge_known(const tn_tensor *tensor, tn__edge *edge)
{
    const struct tn__autograd *autograd = tensor->requires_grad ? tensor->autograd : NULL;

    edge->node = NULL;
    edge->index = 0;
    if (autograd == NULL)
        return;
    edge->node = autograd->node != NULL ? autograd->node : autograd->leaf;
    edge->index = autograd->node != NULL ? autograd->index : 0;
}
static inline tn_status tn__grad_edge(tn_tensor *tensor, tn__edge *edge)
{
    if (tn__unlikely(tensor->autograd != NULL && tensor->autograd->base != NULL))
        return tn__grad_edge_of_view(tensor, edge);
    tn__grad_edge_known(tensor, edge);
    return TN_OK;
}

/* ---- recompute.c ---- */
typedef struct tn__recompute tn__recompute;
/* While a function of tn_recompute_call() runs. First run: reserves a slot in place of the tensor,
 * and makes `saved` refer to it unless `keeps`. Second run: fills the slot. */
tn_status tn__recompute_save(tn__saved *saved, tn_tensor *tensor, bool keeps);
/* Takes the tensor out of a slot; the caller owns it. Computes it first if necessary. */
tn_status tn__recompute_value(tn__recompute *recompute, int64_t slot, tn_tensor **out);
/* Add and drop a reference; tn__recompute_keep() returns its argument, which may be NULL. */
tn__recompute *tn__recompute_keep(tn__recompute *recompute);
void tn__recompute_drop(tn__recompute *recompute);
/* Sets *inputs to what is saved of the inputs of the function, and returns their number. */
int64_t tn__recompute_inputs(tn__recompute *recompute, tn__saved **inputs);
/* Releases a slot, and drops the reference to `recompute`. */
void tn__recompute_release(tn__recompute *recompute, int64_t slot);

/* ---- anomaly mode --------------------------------------------------------------- */
/* Returns the path of the module that this thread is calling, NULL outside of modules. The caller
 * frees it with tn_free(). */
char *tn__anomaly_note(void);
/* Fails with TN_ERR_RUNTIME if a gradient that the node returned contains a NaN. The error names
 * the forward call. */
tn_status tn__anomaly_look(const tn__node *node, uint32_t need, tn_tensor *const *gin);

/* ---- tensors -------------------------------------------------------------------- */
/* Allocated if absent; NULL and sets the error on failure. */
struct tn__autograd *tn__grad_of(tn_tensor *tensor);
tn__slot *tn__grad_slot_new(void);
void tn__grad_slot_drop(tn__slot *slot);
tn_status tn__grad_slot_add(tn__slot *slot, tn_tensor *gradient, bool record);
/* Returns whether nothing else uses the memory of a gradient and its elements are packed. Such a
 * gradient may be kept, or added to in place, without a copy. */
bool tn__grad_exclusive(const tn_tensor *gradient);
tn_tensor *tn__grad_slot_grad(tn__slot *slot); /* a new reference, or TN_NONE */
/* Gives `to` the history to which an edge leads. */
tn_status tn__grad_attach_edge(const tn__edge *edge, tn_tensor *to);

/* ---- hooks ---------------------------------------------------------------------- */
/* Runs the hooks of an output, which may replace *gradient. */
tn_status tn__grad_hooks_run(tn__node *node, int32_t index, tn_tensor **gradient, bool record);
/* Runs the hooks that follow the accumulation of a gradient in a leaf. */
tn_status tn__grad_hooks_added(tn__node *leaf);
tn_status tn__grad_hooks_retain(tn__node *node, int32_t index, tn__slot *slot);
void tn__grad_hooks_unretain(tn__node *node, tn__slot *slot);

/* ---- running -------------------------------------------------------------------- */
/* Computes gin[i] for the edges in `need`, a set of bits. The caller owns the results; TN_NONE
 * means zero. `sum` becomes tn_derive.sum. */
tn_status tn__node_run(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                       tn_tensor **gin, tn_tensor *sum);
tn_status tn__function_run(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                           tn_tensor **gin);
/* Makes the node for the values that an in-place operator left in a view. The caller owns
 * edge->node. */
tn_status tn__view_gradient_output(tn__node *slice, tn__edge *edge);
tn_tensor *tn__grad_zeros(const tn_meta *meta, const tn_device *device); /* owned */
tn_tensor *tn__grad_zeros_like(const tn_tensor *tensor);                 /* packed, owned */
/* For a derivative that is itself recorded: replaces *tensor, a saved tensor, by an alias with the
 * history of the saved tensor. */
tn_status tn__node_attach_saved(tn__node *node, const tn__saved *saved, tn_tensor **tensor);
/* Checks that the history of a tensor allows an in-place change. The error text names the operator
 * as `who` followed by `suffix`, such as "add" and "_". */
tn_status tn__grad_changeable(const char *who, const char *suffix, tn_tensor *into);
/* Makes the node, which has one output, the history of the tensor that it changed. If the tensor is
 * a view, changes the history of its base, too. */
tn_status tn__grad_rebase(tn__node *node, tn_tensor *into);
tn_status tn__view_gradient_run(tn__node *node, tn_tensor *gout, uint32_t need, bool record,
                                tn_tensor **gin);
/* Brings *gradient to the shape and dtype of input i. */
tn_status tn__grad_fit(const tn__node *node, int32_t i, tn_tensor **gradient);
tn_tensor *tn__grad_add(tn_tensor *a, tn_tensor *b, bool record); /* owned */

#endif
