/* SPDX-License-Identifier: MIT
 *
 * Communicators: groups of processes that exchange tensors. The transport comes from a plugin.
 * tenon-interface: tenon.comm 0
 *
 * All processes of a group make the same calls in the same order. A call is done when it returns,
 * or, on a device with streams, when the current stream of the thread gets there: tn_event_record
 * tells when. */
#ifndef TENON_COMM_H
#define TENON_COMM_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

typedef struct tn_comm tn_comm;

/* How elements of the processes become one. */
typedef uint32_t tn_reduction;
enum {
    TN_REDUCTION_SUM = 0,
    TN_REDUCTION_PRODUCT = 1,
    TN_REDUCTION_MIN = 2,
    TN_REDUCTION_MAX = 3,
    TN_REDUCTION_AVERAGE = 4, /* floating and complex types only */
    TN_REDUCTION_COUNT
};

/* The group that a process joins. The core passes it to the plugin with `data` and the rest filled
 * in. */
typedef struct tn_comm_args {
    tn_head head;
    int32_t rank;            /* of this process: 0 to size - 1 */
    int32_t size;            /* how many processes; at least 1 */
    const char *address;     /* where they find each other, as the plugin says; may be NULL */
    const tn_device *device; /* of the tensors; NULL: the default one */
    double timeout;          /* seconds that a call may wait for other processes; 0: as the plugin
                                chooses */
    const void *data;        /* the options; a program leaves it NULL */
    void *handle;            /* of the device, as in tn_call; a program leaves it NULL */
} tn_comm_args;

/* ---- for programs and layers ----------------------------------------------------------------- */

/* Joins a group by a communicator's spec: "tcp(port=29500)". Waits for the other processes. [owned]
 */
TN_API tn_comm *tn_comm_new(const char *spec, const tn_comm_args *args);
/* Leaves the group. [null-ok: comm] */
TN_API void tn_comm_drop(tn_comm *comm);
/* Makes calls under way and later ones fail, in any thread, without waiting. [null-through] */
TN_API tn_status tn_comm_abort(tn_comm *comm);

/* -1 for NULL. */
TN_API int32_t tn_comm_rank(const tn_comm *comm);
TN_API int32_t tn_comm_size(const tn_comm *comm);
/* The name of the communicator; the device of its tensors. [borrowed] [null-through] */
TN_API const char *tn_comm_name(const tn_comm *comm);
TN_API const tn_device *tn_comm_device(const tn_comm *comm);

/* All tensors are contiguous and on the device of the group; what is written requires no gradient
 * where one is recorded. One thread at a time for a group. A process that fails or is gone is
 * TN_ERR_PEER, one that is late TN_ERR_TIMEOUT; the group is then of no use. */

/* The tensors of all processes become one, in each of them. [null-through] */
TN_API tn_status tn_comm_all_reduce(tn_comm *comm, tn_tensor *tensor, tn_reduction reduction);
/* The tensor of process `root` goes to all. [null-through] */
TN_API tn_status tn_comm_broadcast(tn_comm *comm, tn_tensor *tensor, int32_t root);
/* `out` has the elements of all processes, in the order of their ranks: `size` times those of `in`.
 * [null-through] */
TN_API tn_status tn_comm_all_gather(tn_comm *comm, tn_tensor *out, tn_tensor *in);
/* The tensors `in` of all processes become one, of which process r gets piece r: `in` has `size`
 * times the elements of `out`. [null-through] */
TN_API tn_status tn_comm_reduce_scatter(tn_comm *comm, tn_tensor *out, tn_tensor *in,
                                        tn_reduction reduction);
/* To and from one other process, or the same one; calls with the same tag meet in order.
 * [null-through] */
TN_API tn_status tn_comm_send(tn_comm *comm, tn_tensor *tensor, int32_t to, int32_t tag);
TN_API tn_status tn_comm_recv(tn_comm *comm, tn_tensor *tensor, int32_t from, int32_t tag);
/* Returns when all processes have called it. [null-through] */
TN_API tn_status tn_comm_barrier(tn_comm *comm);

/* ---- for plugins ----------------------------------------------------------------------------- */

/* The arguments of an exchange. Views are contiguous, on the group's device, and empty ones do not
 * come. `in` may be the same memory as `out` (all_reduce, broadcast); NULL where a function has
 * none. */
typedef struct tn_comm_call {
    tn_head head;
    const struct tn_comm_def *def;
    void *comm; /* what `open` gave */
    const tn_view *in;
    const tn_view *out;
    tn_reduction reduction;
    int32_t peer; /* broadcast: the root; send: to; recv: from */
    int32_t tag;
    uint32_t reserved;
    void *device; /* the backend's handles */
    void *stream; /* the work goes here, and a function returns once it is queued; NULL where the
                     device has no streams: the work is done then */
} tn_comm_call;

/* A transport. One thread at a time for a group, but for `abort`, which comes from any thread at
 * any time. An exchange that is NULL is refused as not implemented. */
typedef struct tn_comm_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* the plugin's own */
    const tn_option *options;
    uint64_t data_size; /* of the struct that the option table points into */
    uint64_t flags;     /* 0 */
    uint64_t dtypes;    /* TN_BIT mask of the types that it reduces */
    /* Joins the group; *comm is passed to the other functions. */
    tn_status (*open)(const struct tn_comm_def *self, const tn_comm_args *args, void **comm);
    void (*close)(void *comm);
    tn_status (*abort)(void *comm); /* may be NULL: later calls fail, those under way go on */
    tn_status (*all_reduce)(const tn_comm_call *call);
    tn_status (*broadcast)(const tn_comm_call *call);
    tn_status (*all_gather)(const tn_comm_call *call);
    tn_status (*reduce_scatter)(const tn_comm_call *call);
    tn_status (*send)(const tn_comm_call *call);
    tn_status (*recv)(const tn_comm_call *call);
    tn_status (*barrier)(const tn_comm_call *call);
} tn_comm_def;

TN_END_DECLS
#endif
