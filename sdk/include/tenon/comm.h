/* SPDX-License-Identifier: MIT
 *
 * Communicators: groups of processes that exchange tensors. A plugin provides the transport.
 * tenon-interface: tenon.comm 0
 *
 * All processes of a group must make the same calls in the same order. On a device without streams,
 * an exchange is complete when the function returns. On a device with streams, it is queued in the
 * current stream of the thread, and complete when the stream has reached it; an event
 * (tn_event_record) shows when that is.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_COMM_H
#define TENON_COMM_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

typedef struct tn_comm tn_comm;

/* How the elements of all processes are combined into one. */
typedef uint32_t tn_reduction;
enum {
    TN_REDUCTION_SUM = 0,
    TN_REDUCTION_PRODUCT = 1,
    TN_REDUCTION_MIN = 2,     /* not for complex types */
    TN_REDUCTION_MAX = 3,     /* not for complex types */
    TN_REDUCTION_AVERAGE = 4, /* floating and complex types only */
    TN_REDUCTION_COUNT
};

/* The exchanges between the processes of a group. */
typedef uint32_t tn_exchange;
enum {
    TN_EXCHANGE_ALL_REDUCE = 0,
    TN_EXCHANGE_BROADCAST = 1,
    TN_EXCHANGE_ALL_GATHER = 2,
    TN_EXCHANGE_REDUCE_SCATTER = 3,
    TN_EXCHANGE_SEND = 4,
    TN_EXCHANGE_RECV = 5,
    TN_EXCHANGE_BARRIER = 6,
    TN_EXCHANGE_COUNT
};

/* Describes the group that a process joins. The program fills in the members up to `timeout`; the
 * core passes a copy to the plugin that also has `data` and `handle`. */
typedef struct tn_comm_args {
    tn_head head;
    int32_t rank; /* the number of this process: 0 to size - 1 */
    int32_t size; /* the number of processes, at least 1 */
    /* Where the processes find each other, in a form that the plugin defines; may be NULL. */
    const char *address;
    const tn_device *device; /* the device of the tensors; NULL: the default device */
    /* The longest time, in seconds, that a call waits for other processes; 0: the plugin's
     * default. */
    double timeout;
    const void *data; /* the option struct of the communicator; a program leaves it NULL */
    void *handle; /* the backend's handle of the device, as in tn_call; a program leaves it NULL */
} tn_comm_args;

/* ---- for programs and layers ----------------------------------------------------------------- */

/* Joins a group. `spec` names the communicator and its options, such as "tcp(port=29500)". Waits
 * for the other processes. Without `args`, joins the group of all processes that were started
 * together with this one, by `tenon run` or another launcher that the communicator knows; a process
 * that was started alone is a group of one. Without `spec`, the first communicator that serves
 * these processes is used. [owned] [null-ok: spec, args] */
TN_API tn_comm *tn_comm_new(const char *spec, const tn_comm_args *args);
/* Leaves the group and frees the communicator, when all its works have been waited for.
 * [null-ok: comm] */
TN_API void tn_comm_drop(tn_comm *comm);
/* Makes all later calls of the group fail, in every thread, and the running ones too if the
 * communicator can stop them (`abort` of tn_comm_def). Does not wait for them. [null-through] */
TN_API tn_status tn_comm_abort(tn_comm *comm);

/* tn_comm_rank returns the number of this process in the group (0 to size - 1), tn_comm_size the
 * number of processes. Both return -1 if `comm` is NULL. */
TN_API int32_t tn_comm_rank(const tn_comm *comm);
TN_API int32_t tn_comm_size(const tn_comm *comm);
/* tn_comm_name returns the name of the communicator, tn_comm_device the device of its tensors.
 * [borrowed] [null-through] */
TN_API const char *tn_comm_name(const tn_comm *comm);
TN_API const tn_device *tn_comm_device(const tn_comm *comm);

/* In all exchanges below, the tensors must be contiguous and on the device of the group. `in` and
 * `out` must have the same dtype and share no memory. While gradients are recorded, a tensor that
 * is written must not require a gradient. Only one thread at a time may use a group. The functions
 * return TN_ERR_PEER if another process has failed or ended, TN_ERR_TIMEOUT if another process is
 * late; after either failure the group can no longer be used. */

/* Combines the tensors of all processes, element by element, and stores the result in `tensor` of
 * every process. [null-through] */
TN_API tn_status tn_comm_all_reduce(tn_comm *comm, tn_tensor *tensor, tn_reduction reduction);
/* Copies the tensor of process `root` to the tensors of all other processes. [null-through] */
TN_API tn_status tn_comm_broadcast(tn_comm *comm, tn_tensor *tensor, int32_t root);
/* Stores the tensors `in` of all processes in `out`, in the order of their ranks. `out` has `size`
 * times as many elements as `in`. [null-through] */
TN_API tn_status tn_comm_all_gather(tn_comm *comm, tn_tensor *out, tn_tensor *in);
/* Combines the tensors `in` of all processes, element by element, and divides the result into
 * `size` equal pieces; process r gets piece r in `out`. `in` has `size` times as many elements as
 * `out`. [null-through] */
TN_API tn_status tn_comm_reduce_scatter(tn_comm *comm, tn_tensor *out, tn_tensor *in,
                                        tn_reduction reduction);
/* tn_comm_send sends a tensor to process `to`; tn_comm_recv receives one from process `from`. A
 * process may also send to itself. Calls with the same tag are matched in order. [null-through] */
TN_API tn_status tn_comm_send(tn_comm *comm, tn_tensor *tensor, int32_t to, int32_t tag);
TN_API tn_status tn_comm_recv(tn_comm *comm, tn_tensor *tensor, int32_t from, int32_t tag);
/* Waits until all processes of the group have called tn_comm_barrier. [null-through] */
TN_API tn_status tn_comm_barrier(tn_comm *comm);

/* ---- exchanges that run while the program computes ------------------------------------------- */

/* An exchange that was started and has not been waited for. */
typedef struct tn_work tn_work;

/* Starts an exchange and returns. `out` and `in` are those of the functions above, NULL if the
 * exchange has none; all_reduce and broadcast have only `out`. `with` is the reduction, the root or
 * the other process, `tag` that of a message. All processes must start and call exchanges in the
 * same order. Until tn_work_wait returns, the program must neither write to the tensors nor read
 * `out`. If the communicator cannot run exchanges in the background, the function waits.
 * [owned] [null-through] [null-ok: out, in] */
TN_API tn_work *tn_comm_start(tn_comm *comm, tn_exchange exchange, tn_tensor *out, tn_tensor *in,
                              int32_t with, int32_t tag);
/* Waits until a work is done, and frees it, also on failure. On a device with streams, later work
 * of the current stream waits, not the program. [taken: work] [null-through] */
TN_API tn_status tn_work_wait(tn_work *work);
/* Does what is possible now for the works of the group, without waiting, and stores in *done
 * whether this one is done. [null-through] */
TN_API tn_status tn_work_done(tn_work *work, bool *done);
/* Does what is possible now for all works of the group, without waiting. Exchanges have no thread
 * of their own: call this, or tn_work_done, now and then during a long computation.
 * [null-through] */
TN_API tn_status tn_comm_progress(tn_comm *comm);

/* tn_comm_start for one exchange each. */
static inline tn_work *tn_comm_all_reduce_start(tn_comm *comm, tn_tensor *tensor,
                                                tn_reduction reduction)
{
    return tn_comm_start(comm, TN_EXCHANGE_ALL_REDUCE, tensor, NULL, (int32_t)reduction, 0);
}
static inline tn_work *tn_comm_broadcast_start(tn_comm *comm, tn_tensor *tensor, int32_t root)
{
    return tn_comm_start(comm, TN_EXCHANGE_BROADCAST, tensor, NULL, root, 0);
}
static inline tn_work *tn_comm_all_gather_start(tn_comm *comm, tn_tensor *out, tn_tensor *in)
{
    return tn_comm_start(comm, TN_EXCHANGE_ALL_GATHER, out, in, 0, 0);
}
static inline tn_work *tn_comm_reduce_scatter_start(tn_comm *comm, tn_tensor *out, tn_tensor *in,
                                                    tn_reduction reduction)
{
    return tn_comm_start(comm, TN_EXCHANGE_REDUCE_SCATTER, out, in, (int32_t)reduction, 0);
}
static inline tn_work *tn_comm_send_start(tn_comm *comm, tn_tensor *tensor, int32_t to, int32_t tag)
{
    return tn_comm_start(comm, TN_EXCHANGE_SEND, NULL, tensor, to, tag);
}
static inline tn_work *tn_comm_recv_start(tn_comm *comm, tn_tensor *tensor, int32_t from,
                                          int32_t tag)
{
    return tn_comm_start(comm, TN_EXCHANGE_RECV, tensor, NULL, from, tag);
}

/* What a group has done. `seconds` is the time that the program has spent in calls of exchanges,
 * tn_work_wait and tn_work_done: the part that computation did not hide. */
typedef struct tn_comm_stats {
    int64_t calls;
    int64_t bytes; /* of the larger tensor of each call */
    double seconds;
} tn_comm_stats;

/* Stores what the group has done with exchanges of one kind since it was opened. [null-through] */
TN_API tn_status tn_comm_stats_of(const tn_comm *comm, tn_exchange exchange, tn_comm_stats *out);

/* ---- for plugins ----------------------------------------------------------------------------- */

/* The arguments of an exchange. Views are contiguous, not empty, and on the device of the group. In
 * all_reduce and broadcast, `in` may be the same memory as `out`. A view that the function does not
 * use is NULL. */
typedef struct tn_comm_call {
    tn_head head;
    const struct tn_comm_def *def;
    void *comm; /* the handle that `open` returned */
    const tn_view *in;
    const tn_view *out;
    tn_reduction reduction;
    /* The other process: of broadcast the root, of send the target, of recv the source. */
    int32_t peer;
    int32_t tag;
    tn_exchange exchange;
    void *device; /* the backend's handle of the device */
    /* The stream for the work: the function returns when the work is queued. NULL if the device has
     * no streams: the work must then be complete when the function returns. */
    void *stream;
} tn_comm_call;

/* A transport. The core calls the functions of one group from one thread at a time, except `abort`,
 * which any thread may call at any time. If a function for an exchange is NULL, the core refuses
 * that exchange with TN_ERR_NOT_IMPLEMENTED. */
typedef struct tn_comm_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; the core does not read it */
    const tn_option *options;
    uint64_t data_size; /* size of the struct that the option table describes */
    uint64_t flags;     /* 0 */
    uint64_t dtypes;    /* TN_BIT mask of the dtypes that all_reduce and reduce_scatter accept */
    /* Joins the group and stores a handle in *comm, which the core passes to all other
     * functions. */
    tn_status (*open)(const struct tn_comm_def *self, const tn_comm_args *args, void **comm);
    void (*close)(void *comm);
    /* May be NULL: then later calls fail, but running calls continue. */
    tn_status (*abort)(void *comm);
    tn_status (*all_reduce)(const tn_comm_call *call);
    tn_status (*broadcast)(const tn_comm_call *call);
    tn_status (*all_gather)(const tn_comm_call *call);
    tn_status (*reduce_scatter)(const tn_comm_call *call);
    tn_status (*send)(const tn_comm_call *call);
    tn_status (*recv)(const tn_comm_call *call);
    tn_status (*barrier)(const tn_comm_call *call);
    /* Fills rank, size, address and timeout of the group of all processes that a launcher has
     * started together with this one. The strings live as long as the process. Stores the size 0 if
     * no launcher is known. NULL: the communicator knows no launchers. */
    tn_status (*world)(const struct tn_comm_def *self, tn_comm_args *args);
    /* For exchanges in the background; NULL: there are none. `start` begins the exchange
     * call->exchange and does not wait. `call` and its views are valid only during the call, their
     * memory until the work is done. Works of one group that all processes take part in are done in
     * the order in which they were started. If `start` fails, there is no work. */
    tn_status (*start)(const tn_comm_call *call, void **work);
    /* Does what is possible now, without waiting. `work` may be NULL: then only that. */
    tn_status (*progress)(void *comm, void *work, bool *done);
    /* Waits until the work is done, and frees it, also on failure. */
    tn_status (*wait)(void *comm, void *work);
} tn_comm_def;

TN_END_DECLS
#endif
