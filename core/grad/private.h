/* SPDX-License-Identifier: MIT
 *
 * The graph as the files of core/grad share it. Nodes point to what made their inputs and never
 * forward; a tensor points to the node that made it. */
#ifndef TN_CORE_GRAD_PRIVATE_H
#define TN_CORE_GRAD_PRIVATE_H

#include "core/grad/internal.h"
#include "core/tensor/thread.h"

/* Where the gradient of a tensor adds up; shared by the tensor and by its node. */
typedef struct tn__slot {
    _Atomic int32_t refs;
    _Atomic bool closed; /* the leaf requires no gradient any more: what still comes is not kept */
    pthread_mutex_t lock;
    tn_tensor *grad; /* owned; NULL: nothing yet */
} tn__slot;

typedef enum tn__node_kind {
    TN__NODE_LEAF,     /* adds up in a slot */
    TN__NODE_OP,       /* an operator with a derivative, or without one: an error then */
    TN__NODE_FUNCTION, /* a program's own */
    TN__NODE_COPY,     /* copy into an existing tensor */
    TN__NODE_CUT,      /* what was there is overwritten with something that has no gradient */
    TN__NODE_SLICE,    /* in-place through a view, as the base sees it; `inner` is the operator */
    TN__NODE_STRIDED,  /* a view whose base changed: its place in the base */
    TN__NODE_LOST /* memory ran out while history was rebased: an error, never a wrong gradient */
} tn__node_kind;

typedef struct tn__edge {
    struct tn__node *node; /* NULL: no gradient wanted */
    int32_t index;         /* which of its outputs */
} tn__edge;

/* A tensor that a derivative needs; held, and checked that it was not changed before use. */
typedef struct tn__saved {
    tn_tensor *tensor;    /* owned; NULL: it was the in-place target */
    tn__storage *storage; /* as it was: tn_tensor_swap would put another under the tensor */
    uint64_t version;
    int32_t operand;
    bool is_output; /* `tensor` is a shell without history, which would be a cycle */
    bool shell;     /* `tensor` is ours alone and holds the storage; otherwise we do */
} tn__saved;

/* An input as it was: enough for tn_derive.in_meta. */
typedef struct tn__seen {
    int16_t ndim; /* -1: absent */
    uint16_t dtype;
    int64_t *shape;
} tn__seen;

/* An output of a function as it was. */
typedef struct tn__made {
    tn_meta meta;
    const tn_device *device;
} tn__made;

typedef struct tn__grad_hook_row {
    tn__hook_handle handle;         /* first; of retain_grad: a number alone */
    struct tn__grad_hook_row *next; /* of the node */
    struct tn__node *node;          /* not owned: the node frees its rows */
    _Atomic int32_t refs;
    int32_t index;
    tn_grad_hook call;
    tn_grad_added_hook added;
    void *user;
    void (*release)(void *user);
    tn__slot *slot; /* of retain_grad, which has neither function */
} tn__grad_hook_row;

typedef struct tn__node {
    _Atomic int32_t refs;
    uint8_t kind;
    bool had_saved;
    _Atomic bool busy; /* spin lock of `saved` and `released` */
    bool released;     /* a backward without retain_graph was here */
    uint32_t size;     /* bytes of the block */
    uint64_t sequence; /* larger than those of all nodes that the edges lead to */
    int32_t n_in, n_out, n_saved;
    const tn_op *op;
    const char *name;
    const void *options; /* into the tail of this block, or the defaults */
    tn__edge *edges;
    tn__seen *seen;
    tn__saved *saved;
    tn__grad_hook_row *_Atomic hooks;
    struct tn__node *next; /* of those that wait to be freed */
    char *where;           /* owned; of anomaly mode, mostly NULL */
    struct tn__node
        *outer; /* OP, FUNCTION: the SLICE that it works for, which owns it; mostly NULL */
    union {
        tn__slot *slot; /* LEAF */
        struct {        /* FUNCTION */
            tn_function calls;
            void *user;
            const struct tn__made
                *made; /* n_out of them: what zeros for backward are like; NULL: none */
        } function;
        struct { /* SLICE, STRIDED */
            struct tn__node *inner;
            tn_meta *base;
            tn_meta *view; /* offset counts from the base's first element */
        } slice;
    } as;
} tn__node;

struct tn__autograd {
    tn__node *node; /* owned; NULL for a leaf */
    int32_t index;
    bool retains;        /* retain_grad was asked for */
    bool blind_view;     /* a view made without gradients of a tensor that has them */
    bool of_function;    /* a view that a program's function gave, or one of it: writing to it, or
                            under it, would pass that function's backward by */
    tn__node *leaf;      /* owned; of a leaf that requires grad */
    tn__slot *slot;      /* owned; NULL: never needed */
    tn_tensor *base;     /* owned: what a view looks at, itself no view */
    uint64_t generation; /* how often history was rebased; a view: the base's when it was made */
};

/* Whether a call with these inputs must be recorded: grad mode is on and an input that can have a
 * gradient requires it. */
bool tn__grad_wanted(const tn_op *op, tn_tensor *const *in, int64_t n_in);

/* ---- nodes ---------------------------------------------------------------------- */
/* One block with space for all arrays; refs 1. `extra` bytes at *tail. NULL and an error.
 * */
tn__node *tn__node_new(tn__node_kind kind, const char *name, int32_t n_in, int32_t n_out,
                       int32_t n_saved, int64_t n_sizes, size_t extra, void **tail);
static inline tn__node *tn__node_keep(tn__node *node)
{
    if (node != NULL)
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}
void tn__node_drop(tn__node *node);
tn__node *tn__node_of_op(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                         tn_tensor *const *out, int64_t n_out, const tn_tensor *into,
                         tn_tensor *original);
/* Fills edge and `seen` of input i; the sequence number follows. */
tn_status tn__node_input(tn__node *node, int32_t i, tn_tensor *input, bool wants, int64_t **sizes);
/* Makes a node younger than one that an edge of it leads to. */
void tn__node_follow(tn__node *node, const tn__node *before);
tn_status tn__node_save(tn__saved *saved, tn_tensor *tensor, int32_t operand, bool is_output,
                        bool stale);
/* Frees what is saved; false when another backward did that before. */
void tn__node_release(tn__node *node);
/* References to everything saved, NULL for what was changed; TN_ERR_RUNTIME when it is freed. */
tn_status tn__node_unpack(tn__node *node, tn_tensor **out, bool *stale);
tn_status tn__node_stale(tn__node *node); /* the error for it */
/* Hangs the tensor on the node as its output `index`. */
tn_status tn__node_attach(tn__node *node, tn_tensor *tensor, int32_t index);
/* What made a tensor: its node, or its leaf's; refreshed for views whose base changed. Not a new
 * reference. */
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

/* ---- anomaly mode --------------------------------------------------------------- */
/* Where the thread is: owned, NULL outside of modules. */
char *tn__anomaly_note(void);
/* TN_ERR_RUNTIME with the forward call where a gradient that the node gave has a NaN. */
tn_status tn__anomaly_look(const tn__node *node, uint32_t need, tn_tensor *const *gin);

/* ---- tensors -------------------------------------------------------------------- */
struct tn__autograd *tn__grad_of(tn_tensor *tensor); /* made when absent; NULL and an error */
tn__slot *tn__grad_slot_new(void);
void tn__grad_slot_drop(tn__slot *slot);
tn_status tn__grad_slot_add(tn__slot *slot, tn_tensor *gradient, bool record);
/* Whether nothing else uses the memory of a gradient, and it is packed: then it may be kept, or
 * added to, as it is. */
bool tn__grad_exclusive(const tn_tensor *gradient);
tn_tensor *tn__grad_slot_grad(tn__slot *slot); /* a reference to what is there, or TN_NONE */
/* Gives `to` the history that an edge leads to. */
tn_status tn__grad_attach_edge(const tn__edge *edge, tn_tensor *to);

/* ---- hooks ---------------------------------------------------------------------- */
/* Runs what is registered for an output; *gradient may be replaced. */
tn_status tn__hooks_run(tn__node *node, int32_t index, tn_tensor **gradient, bool record);
/* After a leaf's turn. */
tn_status tn__hooks_added(tn__node *leaf);
void tn__hooks_free(tn__node *node);
tn_status tn__hooks_retain(tn__node *node, int32_t index, tn__slot *slot);
void tn__hooks_unretain(tn__node *node, tn__slot *slot);

/* ---- running -------------------------------------------------------------------- */
/* gin[i] for the edges that `need` says, owned by the caller; TN_NONE for zero. `sum` is
 * tn_derive.sum. */
tn_status tn__node_run(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                       tn_tensor **gin, tn_tensor *sum);
tn_status tn__function_run(tn__node *node, tn_tensor *const *gout, uint32_t need, bool record,
                           tn_tensor **gin);
/* The history of what an operator in place left in a view: *edge->node is owned by the caller. */
tn_status tn__view_gradient_output(tn__node *slice, tn__edge *edge);
tn_tensor *tn__grad_zeros(const tn_meta *meta, const tn_device *device); /* owned */
tn_tensor *tn__grad_zeros_like(const tn_tensor *tensor);                 /* packed, owned */
/* What was saved as the derivative may see it: with its history when the derivative is itself
 * recorded. */
tn_status tn__node_attach_saved(tn__node *node, const tn__saved *saved, tn_tensor **tensor);
/* Whether a tensor may be changed in place as far as its history goes; who does it, for the
 * error. */
tn_status tn__grad_changeable(const char *who, const char *suffix, tn_tensor *into);
/* Makes the node, which has one output, the maker of what it changed: of a view's base, too. */
tn_status tn__grad_rebase(tn__node *node, tn_tensor *into);
tn_status tn__view_gradient_run(tn__node *node, tn_tensor *gout, uint32_t need, bool record,
                                tn_tensor **gin);
/* Brings a gradient to the shape and dtype of input i; takes over the reference. */
tn_status tn__grad_fit(const tn__node *node, int32_t i, tn_tensor **gradient);
/* Into a new dense tensor, owned. */
tn_tensor *tn__grad_copy(tn_tensor *gradient);
tn_tensor *tn__grad_add(tn_tensor *a, tn_tensor *b, bool record); /* owned */

#endif
