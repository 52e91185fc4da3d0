/* SPDX-License-Identifier: MIT
 *
 * DistributedDataParallel: what its files share.
 *
 * A walk is one run of backward. Hooks of the parameters see their gradients arrive during the
 * walk; two nodes of the graph, which forward adds, see its begin and its end (walk.c). A step ends
 * with the walk that combines the gradients of all ranks; the walks before it, in no_sync or for
 * the other shards, only add to the sums of this rank. */
#ifndef TN_PARALLEL_DDP_H
#define TN_PARALLEL_DDP_H

#include "parallel.h"

#include <pthread.h>

enum {
    DDP_LEVELS = 16, /* of the tree of shards */
    DDP_SHARDS_MOST = 1 << (DDP_LEVELS - 1)
};

/* A parameter that requires gradients. */
typedef struct ddp_parameter {
    struct ddp *ddp;
    tn_tensor *tensor; /* owned */
    char *path;        /* owned */
    tn_hook_handle hook;
    int64_t numel;
    int64_t bucket;  /* index */
    int64_t offset;  /* of its first element in the bucket */
    tn_tensor *view; /* owned; its part of the bucket, which becomes its gradient */
    /* While gradients are collected: sums of this rank, by levels of the tree; and a gradient that
     * was there before the step. Owned, or NULL. */
    tn_tensor *sums[DDP_LEVELS];
    tn_tensor *before;
    bool arrived; /* in this walk */
    bool used;    /* in this step */
    bool placed;  /* its part of the bucket is filled */
} ddp_parameter;

typedef struct ddp_bucket {
    tn_tensor *flat; /* owned */
    int64_t size;    /* elements */
    tn_dtype dtype;
    const tn_device *device;
    int64_t count;      /* parameters */
    const char **paths; /* of the parameters; owned list */
    int64_t waiting;    /* parameters that are not placed yet */
    tn_work *work;      /* combines `packed`, if there is one, or `flat`; NULL: none is running */
    tn_tensor *packed;  /* owned; the gradients in the dtype in which they are sent */
} ddp_bucket;

/* What a wrapper knows. The nodes of its graphs and the hooks of its parameters hold references. */
typedef struct ddp {
    int64_t references;
    bool closed; /* the wrapper is gone */
    tn_comm *group;
    int32_t rank, size;
    bool find_unused, copies_buffers;
    tn_ddp_average average;
    int64_t shards, shards_here; /* 0: none */
    tn_dtype packed;             /* dtype in which gradients are sent; TN_DTYPE_AUTO: their own */
    tn_ddp_bucket_hook hook;
    void *hook_user;
    ddp_parameter *parameters; /* in the order of registration */
    int64_t count;
    /* Owned: indices of parameters in the order in which they are placed in buckets, and in that in
     * which their gradients arrived in the first step. */
    int64_t *order, *arrivals;
    int64_t n_arrivals;
    bool began;   /* a backward has begun */
    bool ordered; /* `order` is that of the arrivals */
    double cap_mb;
    ddp_bucket *buckets;
    int64_t n_buckets;
    int64_t next_bucket;             /* the first that was not combined in this step */
    tn_tensor **buffers, **snapshot; /* owned; the snapshot is that of shard 0 of this step */
    int64_t n_buffers;
    double weight; /* NaN: the size of the batch */
    int64_t no_sync;
    /* the walk */
    tn_tensor *origin, *token, *one; /* owned; see walk.c */
    pthread_t thread;                /* which made the token */
    bool walking;
    bool combines; /* this walk ends the step */
    double walk_weight;
    /* the step */
    double weights;              /* sum of the weights of its walks */
    double branches[DDP_LEVELS]; /* with shards: such sums by levels of the tree */
    bool takes_part;             /* one of its walks was not skipped */
    int64_t shard;               /* number of its walks that are done */
    uint64_t random[3];
    bool random_kept;
    bool warned_grad, warned_sync;
    /* Owned; after a step, sums over the ranks: DDP_SLOTS, then for each parameter how many ranks
     * used it. */
    double *message;
} ddp;

enum { DDP_TAKING_PART, DDP_WEIGHT, DDP_SLOTS };

/* The option struct of the layer. */
typedef struct ddp_options {
    tn_value module;
    double bucket_cap_mb;
    bool broadcast_buffers;
    bool find_unused_parameters;
    const char *average;
    const char *comm_hook;
    int64_t shards;
    ddp *state;     /* not an option */
    tn_comm *group; /* nor this: that of `state`, which a copy of the layer takes over */
} ddp_options;

/* Returns whether gradients are collected apart from those of the program: as weighted sums, or by
 * shards. Otherwise backward adds to the gradients of the program. */
static inline bool ddp_collects(const ddp *d)
{
    return d->shards > 0 || d->average != TN_DDP_AVERAGE_RANKS;
}

/* Returns whether the gradients stay where backward leaves them, because there is nobody to combine
 * them with. */
static inline bool ddp_is_alone(const ddp *d)
{
    return d->size == 1 && d->hook == NULL && !ddp_collects(d);
}

/* ddp.c: returns the state of a wrapper, NULL and sets the error if `net` is none. */
TN_HIDDEN ddp *ddp_of(tn_module *net, const char *who);
TN_HIDDEN void ddp_keep(ddp *d);
/* Ends the work of the group after a failure of this rank; keeps the failure, and returns its
 * status. */
TN_HIDDEN tn_status ddp_failed(ddp *d);
TN_HIDDEN void ddp_drop(void *d);

/* compare.c: fails on all ranks if the modules or options of the ranks differ. */
TN_HIDDEN tn_status compare_ranks(tn_module *module, tn_comm *group, const char *options);
/* Fails if the parameters are not those that were wrapped. */
TN_HIDDEN tn_status compare_wrapped(const ddp *d, tn_module *module);
/* Takes the buffers that the module has now: layers and programs may replace them. */
TN_HIDDEN tn_status compare_buffers(ddp *d, tn_module *module);

/* bucket.c: divides the parameters among buckets. */
TN_HIDDEN tn_status bucket_divide(ddp *d);
/* After the first step: divides them again, in the order in which gradients arrived on rank 0, so
 * that buckets are full as early as possible. */
TN_HIDDEN tn_status bucket_reorder(ddp *d);
/* Allocates the buckets, unless they are. */
TN_HIDDEN tn_status bucket_allocate(ddp *d);
TN_HIDDEN void bucket_free_all(ddp *d);
/* Fills the part of a parameter with a tensor; NULL: with zeros. Combines the buckets that are
 * full, in their order. */
TN_HIDDEN tn_status bucket_place(ddp *d, ddp_parameter *p, tn_tensor *gradient);
/* Begins a step. */
TN_HIDDEN void bucket_begin(ddp *d);
/* Waits until all buckets are combined. */
TN_HIDDEN tn_status bucket_wait(ddp *d);
/* Frees what still runs, after a failure. */
TN_HIDDEN void bucket_abandon(ddp *d);
/* Multiplies all buckets by the factor that the average needs, after the message of the step. */
TN_HIDDEN tn_status bucket_scale(ddp *d);

/* share.c: what arrives for a parameter during a walk, and what does not. */
TN_HIDDEN tn_status share_begin(ddp *d);
TN_HIDDEN tn_status share_arrived(void *parameter, tn_tensor *gradient);
TN_HIDDEN tn_status share_absent(ddp *d, ddp_parameter *p);
TN_HIDDEN void share_clear(ddp_parameter *p);

/* step.c: begins a forward: buffers, random numbers of a shard. */
TN_HIDDEN tn_status step_forward(ddp *d, bool training);
/* Ends a walk; the last walk of a step combines the gradients. `skipped`: there was no backward. */
TN_HIDDEN tn_status step_end(ddp *d, bool skipped);
TN_HIDDEN tn_status step_buffers(ddp *d);

/* walk.c: makes the token, unless this thread has made it. It must be older than the nodes of the
 * module. */
TN_HIDDEN tn_status walk_prepare(ddp *d);
/* Lets the tensors of a result report begin and end of backward. `batch`: the weight of the
 * samples, unless the program sets one. */
TN_HIDDEN tn_status walk_watch(ddp *d, tn_pack *output, double batch);
TN_HIDDEN void walk_forget(ddp *d);
/* Begins a walk; `combines`: it may end the step. */
TN_HIDDEN tn_status walk_begin(ddp *d, bool combines, double weight);

#endif
