/* SPDX-License-Identifier: MIT
 *
 * Training on several ranks, the processes of a group (<tenon/comm.h>): every rank trains a copy of
 * the network with its part of each batch, and backward combines the gradients. The functions call
 * the plugin tenon.parallel, which provides the interface tenon.parallel.api; without the plugin
 * they fail and name the interface. docs/guides/distributed.md is the guide.
 *
 * All ranks of a group make the same calls in the same order. Only one thread at a time may use a
 * group and the modules that use it.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_PARALLEL_H
#define TENON_PARALLEL_H

#include <stdlib.h>
#include <string.h>

#ifndef TENON_PLUGIN_H
#include <tenon/tenon.h>

#include <tenon/comm.h>
#include <tenon/query.h>
#endif

TN_BEGIN_DECLS

/* How the gradients of the ranks are combined. */
typedef uint32_t tn_ddp_average;
enum {
    TN_DDP_AVERAGE_RANKS = 0, /* their mean */
    /* Their mean with the weights of tn_ddp_weight, by default the sizes of the batches. It is the
     * gradient of the mean over all samples, also if the batches have different sizes. */
    TN_DDP_AVERAGE_SAMPLES = 1,
    TN_DDP_AVERAGE_NONE = 2 /* their sum */
};

/* The options of the layer DistributedDataParallel, which docs/guides/distributed.md explains. */
typedef struct tn_ddp_options {
    uint64_t size;          /* sizeof(tn_ddp_options) */
    double bucket_cap_mb;   /* 0: 25 */
    int64_t shards;         /* 0: none */
    const char *comm_hook;  /* "fp16", "bf16"; NULL: none */
    tn_ddp_average average; /* TN_DDP_AVERAGE_* */
    bool find_unused_parameters;
    bool
        keep_buffers; /* the buffers of rank 0 are not copied to the others: broadcast_buffers=False
                       */
} tn_ddp_options;

/* A part of the gradients, as a hook of the program sees it. Grows at its end. */
typedef struct tn_ddp_bucket {
    /* The gradients of several parameters one after the other, with zeros between them. The hook
     * gets those of this rank and must leave the sum over all ranks; what follows scales it. */
    tn_tensor *gradients;
    int64_t index; /* 0 to count - 1, in the order in which backward fills them */
    int64_t count;
    int64_t parameters;
    const char *const *paths; /* of the parameters */
} tn_ddp_bucket;
typedef tn_status (*tn_ddp_bucket_hook)(void *user, tn_comm *group, const tn_ddp_bucket *bucket);

/* The table of the interface. Programs call the functions below. */
typedef struct tn_parallel_api {
    tn_status (*set_group)(tn_comm *group);
    tn_comm *(*group)(void);
    tn_module *(*wrap)(tn_module *module, tn_comm *group, const tn_ddp_options *options);
    tn_status (*no_sync)(tn_module *net, bool begin);
    tn_status (*weight)(tn_module *net, double weight);
    tn_status (*skip)(tn_module *net);
    tn_status (*join)(tn_module *net);
    tn_status (*hook)(tn_module *net, tn_ddp_bucket_hook hook, void *user);
    tn_status (*buffers)(tn_module *net);
    tn_module *(*sync_norms)(tn_module *module, tn_comm *group);
} tn_parallel_api;

/* Returns the functions of the plugin; NULL and sets the error on failure. */
static inline const tn_parallel_api *tn_parallel_find(void)
{
    const struct tn_interface_need need = { "tenon.parallel.api", 0, 0,
                                            (uint32_t)sizeof(tn_parallel_api), 0 };
    return (const tn_parallel_api *)tn_interface_find(NULL, &need, NULL);
}

/* ---- the group ------------------------------------------------------------------------------- */

/* tn_parallel_set_group names the group of modules that are made without one, such as those of a
 * spec; NULL: none. It must live as long as these modules. tn_parallel_group returns it, NULL
 * without an error if there is none: then such modules have one rank. [null-ok: group]
 * [borrowed] */
static inline tn_status tn_parallel_set_group(tn_comm *group)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->set_group(group) : tn_error_last_code();
}

static inline tn_comm *tn_parallel_group(void)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->group() : NULL;
}

/* ---- DistributedDataParallel ----------------------------------------------------------------- */

/* Makes a DistributedDataParallel of a module, which becomes its child `module`. Compares the
 * module with those of the other ranks, and copies parameters and buffers of rank 0 to them. A
 * backward from a result of the new module leaves the combined gradients in the parameters. The
 * group must live as long as the module; NULL: that of tn_parallel_set_group. NULL options: all
 * defaults. [owned] [null-ok: group, options] */
static inline tn_module *tn_ddp_new(tn_module *module, tn_comm *group,
                                    const tn_ddp_options *options)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->wrap(module, group, options) : NULL;
}

/* Between the two calls, forward and backward of this rank only add to its own gradients. The first
 * backward of a later forward combines the sums. Pairs nest. */
static inline tn_status tn_ddp_no_sync_begin(tn_module *net)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->no_sync(net, true) : tn_error_last_code();
}

static inline tn_status tn_ddp_no_sync_end(tn_module *net)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->no_sync(net, false) : tn_error_last_code();
}

/* Sets the weight of the gradients of this rank for TN_DDP_AVERAGE_SAMPLES, such as the number of
 * tokens that the loss counts, until it is set again. NaN: the size of dimension 0 of the first
 * tensor that forward gets. It must be 0 or more. */
static inline tn_status tn_ddp_weight(tn_module *net, double weight)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->weight(net, weight) : tn_error_last_code();
}

/* Takes the place of a forward and a backward of this rank for a step in which it has no samples:
 * its gradients are zeros of weight 0. */
static inline tn_status tn_ddp_skip(tn_module *net)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->skip(net) : tn_error_last_code();
}

/* For ranks whose numbers of batches differ: each rank calls it after its last batch. Takes part in
 * the steps of the others with zeros until all ranks have called it. */
static inline tn_status tn_ddp_join(tn_module *net)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->join(net) : tn_error_last_code();
}

/* Makes a function of the program combine the gradients, on all ranks. It must be set before the
 * first backward. [null-ok: user] */
static inline tn_status tn_ddp_hook(tn_module *net, tn_ddp_bucket_hook hook, void *user)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->hook(net, hook, user) : tn_error_last_code();
}

/* Copies the buffers of rank 0 to all ranks now, such as the running statistics before an
 * evaluation. Forward in training mode does it, too. */
static inline tn_status tn_ddp_broadcast_buffers(tn_module *net)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->buffers(net) : tn_error_last_code();
}

#if defined(__GNUC__) || defined(__clang__)
TN_ATTR(unused) static inline void tn_ddp_no_sync_leave(tn_module **net)
{
    if (*net != NULL)
        tn_ddp_no_sync_end(*net);
}
/* Begins no_sync and ends it at the end of the block, however the block is left:
 *     TN_NO_SYNC(net); */
#define TN_NO_SYNC(net)                                                                            \
    tn_module *TN_PASTE(tn_no_sync_here_, __LINE__)                                                \
        __attribute__((cleanup(tn_ddp_no_sync_leave),                                              \
                       unused)) = tn_ddp_no_sync_begin(net) == TN_OK ? (net) : NULL
#endif

/* ---- samples --------------------------------------------------------------------------------- */

/* Each rank reads its part of the batches with the options `rank` and `ranks` of its loader. All
 * ranks get batches of the same size, so the first samples of the order are repeated at its end.
 * Returns how many samples of the batch at `position` of the epoch (tn_loader_position before
 * tn_loader_next) are no repetitions; they come first in the batch. `samples` is the number of
 * samples of an epoch, `batch_size` the option of the loader. Repetitions should count for nothing:
 * narrow the batch to the others, give their number to tn_ddp_weight, or call tn_ddp_skip. */
TN_ATTR(unused)
static inline int64_t tn_ddp_real_samples(int64_t samples, int64_t position, int64_t batch_size,
                                          int32_t rank, int32_t ranks)
{
    int64_t before = position * batch_size; /* of this rank, in this epoch */
    int64_t all = samples > rank ? (samples - 1 - rank) / ranks + 1 : 0;
    int64_t left = all > before ? all - before : 0;

    return left < batch_size ? left : batch_size;
}

/* Copies a text with another number after `name`. Returns its length, -1 if there is no room or no
 * such number. */
TN_ATTR(unused)
static inline int64_t tn_ddp_put_number(const char *text, const char *name, int64_t number,
                                        char *out, size_t size)
{
    const char *at = strstr(text, name);
    int64_t length;

    if (at == NULL)
        return -1;
    at += strlen(name);
    length = tn_snprint(out, size, "%.*s%lld%s", (int)(at - text), text, (long long)number,
                        at + strspn(at, "0123456789"));
    return length < (int64_t)size ? length : -1;
}

/* Writes the state of a loader (tn_loader_state_text) as that of a loader of `ranks` ranks, which
 * then continues with the samples that would have been next: the batch of all ranks together stays
 * the same. Fails if `ranks` does not divide it. */
TN_ATTR(unused)
static inline tn_status tn_ddp_loader_state(const char *text, int32_t ranks, char *out, size_t size)
{
    const char *batch = strstr(text, " batch_size="), *others = strstr(text, " ranks=");
    int64_t each = batch != NULL ? strtoll(batch + strlen(" batch_size="), NULL, 10) : 0;
    int64_t before = others != NULL ? strtoll(others + strlen(" ranks="), NULL, 10) : 0;
    int64_t all = each > 0 && before > 0 && each <= INT64_MAX / before ? each * before : 0;
    char part[512];

    if (all < 1 || ranks < 1 || all % ranks != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_ddp_loader_state: ranks: wrong, got %d for %lld samples in the batches "
                       "of all ranks; expected a divisor, and the text of tn_loader_state_text",
                       (int)ranks, (long long)all);
    if (tn_ddp_put_number(text, " batch_size=", all / ranks, part, sizeof part) < 0 ||
        tn_ddp_put_number(part, " ranks=", ranks, out, size) < 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_ddp_loader_state: out: too small, got %zu bytes for a text of %zu; "
                       "expected 20 bytes more than the text, and a text of at most 480 bytes",
                       size, strlen(text));
    return TN_OK;
}

/* ---- SyncBatchNorm --------------------------------------------------------------------------- */

/* Replaces every BatchNorm layer of a module by a SyncBatchNorm with the same parameters, buffers
 * and options, which normalizes with the statistics of the batches of all ranks. Returns the
 * module, or the SyncBatchNorm that replaces it; the caller owns the result and still owns
 * `module`. NULL group: that of tn_parallel_set_group. [owned] [null-ok: group] */
static inline tn_module *tn_sync_batch_norm_convert(tn_module *module, tn_comm *group)
{
    const tn_parallel_api *api = tn_parallel_find();
    return api != NULL ? api->sync_norms(module, group) : NULL;
}

TN_END_DECLS
#endif
