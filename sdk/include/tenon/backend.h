/* SPDX-License-Identifier: MIT
 *
 * A backend: the descriptor of a device type, with the functions for its memory, copies, streams
 * and events. docs/plugins/backends.md says which functions are optional and what the core does
 * without them. Included by <tenon/contrib.h>. */
#ifndef TENON_BACKEND_H
#define TENON_BACKEND_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

enum {
    TN_BACKEND_HOST_MEMORY = 1, /* memory handles are pointers that the host may read and write */
    /* The device computes only shapes and dtypes, as `meta` does: the core allocates no memory from
     * it and copies nothing. */
    TN_BACKEND_NO_MEMORY = 2,
    TN_BACKEND_ASYNC = 4, /* a kernel function may return before its work is done */
    /* The backend still works in a child process after fork: it has host memory and no threads of
     * its own. */
    TN_BACKEND_AFTER_FORK = 8,
    /* `copy` also copies between two different devices of the backend, and event_wait accepts
     * events of another device. */
    TN_BACKEND_PEER = 16,
    /* The kernels for windows (convolutions) work on images whose channels have stride 1. Inference
     * gives the results of convolutions this order of strides, whatever the order of the input. */
    TN_BACKEND_CHANNELS_LAST = 32
};

/* DLPack defines numbers for some device types. A backend whose type has none sets dlpack_type to
 * 0; the core then assigns it a number from TN_DEVICE_TYPE_FIRST on. */
#define TN_DEVICE_TYPE_FIRST 1000

/* What a device reports about itself. Before the call, the host sets every member to its default
 * and `head.size` to the size of the struct that it knows. The backend must not write a member for
 * which TN_HAS(out, tn_device_info, member) is false. Strings are NUL-terminated. The function
 * `properties` of a backend reports everything else. */
typedef struct tn_device_info {
    tn_head head;
    char name[128];        /* such as "NVIDIA H100 80GB HBM3" */
    char driver[128];      /* such as "CUDA 13.0", "PoCL 3.1" */
    int64_t memory_total;  /* in bytes; default 0: unknown */
    int64_t memory_free;   /* in bytes; default -1: unknown */
    int64_t compute_units; /* number of cores or multiprocessors; default 0: unknown */
    int64_t alignment; /* alignment of every allocation: a power of two up to 2^20; default 64 */
    uint64_t dtypes;   /* TN_BIT mask of the dtypes that the device computes in; default 0 */
    /* TN_MEMORY_BIT mask of the kinds that `alloc` accepts; default TN_MEMORY_DEVICE only. */
    uint64_t memory_kinds;
    int32_t priority_lowest; /* lowest priority of a stream, 0 or more; default 0 */
    /* Highest priority of a stream, 0 or less: a lower number is served first; default 0. */
    int32_t priority_highest;
} tn_device_info;

/* ---- arguments of a backend's functions ------------------------------------------------------ */

/* Each of these structs begins with a tn_head and may grow at its end: a backend may read a member
 * that was added in a later version only if TN_HAS says that it is there. The structs are valid
 * only during the call. tn_stream_args and tn_event_args are in <tenon/tensor.h>. */

enum {
    TN_MEMORY_FLAG_OPENED = 1 /* in tn_memory.flags: made by memory_open, not by alloc */
};

/* A block of memory. `alloc` reads bytes and kind, and writes handle and host; it returns
 * TN_ERR_NOT_IMPLEMENTED if the device does not have memory of this kind. The memory is ready for
 * every stream when `alloc` returns, and no work uses it any more when `free` is called, which
 * receives the same values. The kinds are in <tenon/tensor.h>. A copy treats PINNED memory as
 * memory of the host, and all other kinds as memory of the device. */
typedef struct tn_memory {
    tn_head head;
    uint64_t bytes; /* at least 1 */
    tn_memory_kind kind;
    uint32_t flags; /* TN_MEMORY_FLAG_OPENED */
    /* The core does not interpret the handle; it addresses memory by handle and byte offset. */
    void *handle;
    void *host; /* the address for the host, of kinds PINNED and MANAGED; NULL for other kinds */
} tn_memory;

/* The source or the target of a copy. The layout never changes. */
typedef struct tn_copy_end {
    void *device;    /* the backend's handle of the device; NULL: memory of the host */
    void *memory;    /* the handle from `alloc`, or an address of the host */
    uint64_t offset; /* offset from `memory`, in bytes */
} tn_copy_end;

enum {
    /* The host's end of the copy stays valid and unchanged until the stream has executed the copy,
     * so `copy` may return earlier. Without this flag, `copy` must not return before it has read or
     * written the host's end. */
    TN_COPY_ASYNC = 1
};

/* Arguments of a copy, which runs in the order of the stream. At least one end is on a device; the
 * ranges do not overlap; `bytes` is at least 1. */
typedef struct tn_copy_args {
    tn_head head;
    tn_copy_end to;
    tn_copy_end from;
    uint64_t bytes;
    void *stream; /* a stream of from.device, or of to.device if the source is memory of the host */
    uint32_t flags; /* TN_COPY_* */
    uint32_t reserved;
} tn_copy_args;

/* Arguments of a fill, which repeats a pattern in memory of the device, in the order of the
 * stream. */
typedef struct tn_fill_args {
    tn_head head;
    void *memory;
    uint64_t offset;
    uint64_t bytes; /* a multiple of pattern_bytes */
    unsigned char pattern[16];
    uint32_t pattern_bytes; /* 1, 2, 4, 8 or 16 */
    uint32_t reserved;
    void *stream;
} tn_fill_args;

/* How another process finds memory of kind TN_MEMORY_SHARED. */
typedef struct tn_share_args {
    tn_head head;
    uint32_t flags; /* TN_SHARE_FD, for memory_share */
    /* memory_share writes a new file descriptor here if TN_SHARE_FD is set, or else leaves -1;
     * memory_open may use one instead of the handle, and does not close it; -1: none. */
    int32_t fd;
    unsigned char
        handle[64]; /* memory_share writes it; the other process passes it to memory_open */
} tn_share_args;

/* Arguments of a capture: the device records the work of a stream instead of running it. The
 * recorded work can then be launched any number of times. */
typedef struct tn_capture_args {
    tn_head head;
    void *stream;
    uint32_t flags; /* 0 */
    uint32_t reserved;
    /* The backend's record: capture_end writes it; capture_launch and capture_drop read it. */
    void *graph;
} tn_capture_args;

/* ---- descriptor of a backend ----------------------------------------------------------------- */

/* A device type. The handles that a backend returns (device, stream, event, memory) are opaque to
 * the core. All functions may be called by any thread, several at the same time, unless stated
 * otherwise. A function with a stream argument is called by only one thread at a time for that
 * stream. */
typedef struct tn_backend_def {
    tn_head head;
    const char *type;    /* "cpu": lower case letters, digits, `_` */
    const char *help;    /* one line */
    void *user;          /* for the plugin; the core does not read it */
    uint64_t flags;      /* TN_BACKEND_* */
    int32_t dlpack_type; /* DLDeviceType or 0 */
    uint32_t reserved;

    /* Stores the number of devices in *count. Called after activation; must return the same number
     * every time. Returns TN_ERR_UNAVAILABLE, with a reason, if the machine has no such
     * hardware. */
    tn_status (*enumerate)(const struct tn_backend_def *self, int32_t *count);
    /* `open` opens device `index` and returns its handle; the core calls it before any other
     * function with that device. The core calls `close` at shutdown, even if the device is lost;
     * afterwards it may open the device again. */
    tn_status (*open)(const struct tn_backend_def *self, int32_t index, void **device);
    void (*close)(void *device);
    tn_status (*info)(void *device, tn_device_info *out); /* may be NULL: all defaults */

    /* `alloc` allocates memory and `free` frees it. The core caches and divides the memory, so both
     * may be slow. `alloc` returns TN_ERR_MEMORY if no memory is left. */
    tn_status (*alloc)(void *device, tn_memory *memory);
    void (*free)(void *device, const tn_memory *memory);
    /* Copies bytes. `device` is the device of args->stream. */
    tn_status (*copy)(void *device, const tn_copy_args *args);

    /* Streams and events. They are all NULL if every function of the device completes its work
     * before it returns; the stream is then always NULL, and several threads may call `copy` and
     * kernels at the same time. Otherwise: stream_sync waits for the stream and returns the first
     * failure of its work since the last stream_sync. The `device` of event_wait is the device of
     * the stream. event_query sets *done. event_query and event_sync do not report failures of the
     * work. */
    tn_status (*stream_new)(void *device, const tn_stream_args *args, void **stream);
    void (*stream_drop)(void *device, void *stream);
    tn_status (*stream_sync)(void *device, void *stream);
    /* An event may outlive the stream that it was recorded on: after stream_drop the core may still
     * wait for the event, query it and drop it. */
    tn_status (*event_new)(void *device, const tn_event_args *args, void **event);
    void (*event_drop)(void *device, void *event);
    tn_status (*event_record)(void *device, void *event, void *stream);
    tn_status (*event_wait)(void *device, void *event, void *stream);
    tn_status (*event_sync)(void *device, void *event);
    tn_status (*event_query)(void *device, void *event, bool *done);

    /* All members that follow may be NULL. */

    /* Stores the milliseconds between two events that were created with TN_EVENT_TIMING and are
     * both done. */
    tn_status (*event_elapsed)(void *device, void *from, void *to, double *milliseconds);
    tn_status (*fill)(void *device, const tn_fill_args *args);
    /* Sets *direct to whether kernels and copies of `device` can access the memory of `other`,
     * another device of the backend, without the host. */
    tn_status (*peer)(void *device, void *other, bool *direct);
    /* Adds properties of the hardware to `out`, as named values. Properties that
     * docs/plugins/backends.md lists must have the name given there. */
    tn_status (*properties)(void *device, tn_pack *out);
    /* Returns a native interface that the backend publishes, by id, such as "tenon.opencl.queue/1";
     * NULL if the id is unknown. */
    const void *(*native)(void *device, const char *id);
    /* Returns the native handle of a stream (such as a CUstream), for DLPack and other libraries. A
     * backend with this function must also accept such handles in tn_stream_args.external. */
    void *(*native_stream)(void *device, void *stream);

    /* Capture: a backend defines all four functions or none. From capture_begin until capture_end,
     * the device records kernels with TN_KERNEL_CAPTURE_SAFE, and copies and fills within the
     * device, on args->stream instead of running them; the core queues no other work on that stream
     * meanwhile. Memory may still be allocated, and other streams work as usual. capture_end stores
     * the record in args->graph; the core also calls it after a capture that failed, and it may
     * then store NULL. capture_launch runs the recorded work once, in the order of args->stream,
     * which may be another stream of the device than the recorded one. The core calls capture_drop
     * only when none of the recorded work is running. */
    tn_status (*capture_begin)(void *device, const tn_capture_args *args);
    tn_status (*capture_end)(void *device, tn_capture_args *args);
    tn_status (*capture_launch)(void *device, const tn_capture_args *args);
    void (*capture_drop)(void *device, const tn_capture_args *args);

    /* Memory of kind SHARED: both functions or none. memory_share describes memory from `alloc` for
     * other processes. memory_open opens such memory of another process: it reads memory->bytes and
     * writes memory->handle, and returns TN_ERR_VALUE if there is no such memory or if it has fewer
     * bytes. Its arguments come from another process: it must check them. `free` gets the memory
     * with the flag TN_MEMORY_FLAG_OPENED. */
    tn_status (*memory_share)(void *device, const tn_memory *memory, tn_share_args *args);
    tn_status (*memory_open)(void *device, const tn_share_args *args, tn_memory *memory);
    /* Returns the native handle of an event (such as a CUevent), for other libraries. A backend
     * with this function must also accept such handles in tn_event_args.external: event_wait,
     * event_sync and event_query use the program's event, and event_drop leaves it as it is. */
    void *(*native_event)(void *device, void *event);
} tn_backend_def;

TN_END_DECLS
#endif
