/* SPDX-License-Identifier: MIT
 *
 * A backend: the descriptor of a device type, its memory, copies, streams and events. What a
 * backend leaves out the core answers as docs/plugins/backends.md lists. Included by
 * <tenon/contrib.h>. */
#ifndef TENON_BACKEND_H
#define TENON_BACKEND_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

enum {
    TN_BACKEND_HOST_MEMORY = 1, /* memory handles are pointers that the host may read and write */
    TN_BACKEND_NO_MEMORY =
        2, /* shapes and types only (`meta`): the core asks for no memory and no copies */
    TN_BACKEND_ASYNC = 4, /* kernels may still run when they return */
    TN_BACKEND_AFTER_FORK =
        8,                /* works in a child after fork (host memory, no threads of its own) */
    TN_BACKEND_PEER = 16, /* `copy` copies between two of its devices, and event_wait takes events
                             of another one */
    TN_BACKEND_STREAM_ORDERED =
        32 /* memory that `alloc` got for a stream is ready for the work of that stream only */
};

/* DLPack has numbers for some device types; a backend without one sets 0, and the core assigns
 * numbers from here on. */
#define TN_DEVICE_TYPE_FIRST 1000

/* What a device says about itself. Before the call the host sets each member to its default, and
 * `head.size` to the size that it knows: write no member that TN_HAS(out, tn_device_info, member)
 * denies. Strings are NUL-terminated. Everything else that a device has to say is among its
 * properties. */
typedef struct tn_device_info {
    tn_head head;
    char name[128];        /* as in "NVIDIA H100 80GB HBM3" */
    char driver[128];      /* as in "CUDA 13.0", "PoCL 3.1" */
    int64_t memory_total;  /* bytes; default 0, unknown */
    int64_t memory_free;   /* bytes; default -1, unknown */
    int64_t compute_units; /* cores, multiprocessors; default 0 */
    int64_t alignment;     /* of every allocation's start: a power of two up to 2^20; default 64 */
    uint64_t dtypes;       /* TN_BIT mask of the types that it computes in; default 0 */
    uint64_t memory_kinds; /* what `alloc` allocates; default TN_MEMORY_BIT(TN_MEMORY_DEVICE) */
    int32_t priority_lowest;  /* of streams, 0 or more; default 0 */
    int32_t priority_highest; /* 0 or less: a lower number is served first; default 0 */
} tn_device_info;

/* ---- arguments of its functions -------------------------------------------------------------- */

/* Each begins with a head and may grow at its end: a backend reads a member that came later only
 * where TN_HAS says so. They are valid during the call only. tn_stream_args is in
 * <tenon/tensor.h>. */

typedef uint32_t tn_memory_kind;
enum {
    TN_MEMORY_DEVICE = 0,  /* what tensors of the device have */
    TN_MEMORY_PINNED = 1,  /* of the host; all devices of the backend copy from it and to it by
                              themselves. In copies it is the host's end */
    TN_MEMORY_MANAGED = 2, /* of host and device, which moves between them by itself; the core does
                              not ask for it yet */
    TN_MEMORY_SHARED = 3   /* of the device; another process can open it; not yet, either */
};
#define TN_MEMORY_BIT(kind) (UINT64_C(1) << (kind))

/* A piece of memory. `alloc` reads bytes, kind and stream, and writes handle and host; a kind that
 * it does not have is TN_ERR_NOT_IMPLEMENTED. `free` gets all of it, with stream NULL. */
typedef struct tn_memory {
    tn_head head;
    uint64_t bytes; /* at least 1 */
    tn_memory_kind kind;
    uint32_t reserved;
    /* The stream that asks for it; another thread may use that stream at the same time. Where the
     * backend has TN_BACKEND_STREAM_ORDERED, the core gives the memory to other streams once this
     * one's work so far is done. */
    void *stream;
    void *handle; /* opaque to the core, which never adds to it */
    void *host;   /* the host's address of PINNED and MANAGED memory; else NULL */
} tn_memory;

/* One end of a copy. Frozen. */
typedef struct tn_copy_end {
    void *device;    /* the backend's handle; NULL: memory of the host */
    void *memory;    /* the handle that alloc gave, or the host's address */
    uint64_t offset; /* bytes from its start */
} tn_copy_end;

enum {
    TN_COPY_ASYNC = 1 /* memory of the host stays as it is until the stream has come past the copy,
                         which need not be over when the call returns. Without this flag memory
                         of the host has been read, or written, when it returns */
};

/* A copy of bytes, in the order of the stream. At least one end is on a device; ranges do not
 * overlap; `bytes` is at least 1. */
typedef struct tn_copy_args {
    tn_head head;
    tn_copy_end to;
    tn_copy_end from;
    uint64_t bytes;
    void *stream;   /* of from.device, or of to.device where `from` is the host's */
    uint32_t flags; /* TN_COPY_* */
    uint32_t reserved;
} tn_copy_args;

/* Bytes of the device to be filled with a pattern again and again, in the order of the stream. */
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

/* An event to be made. */
typedef struct tn_event_args {
    tn_head head;
    uint32_t flags; /* TN_EVENT_TIMING */
    uint32_t reserved;
} tn_event_args;

/* Work of a stream that the device records and does later, as often as it is asked to. */
typedef struct tn_capture_args {
    tn_head head;
    void *stream;
    uint32_t flags; /* 0 */
    uint32_t reserved;
    void *graph; /* the backend's: capture_end writes it, launch and drop read it */
} tn_capture_args;

/* ---- the descriptor -------------------------------------------------------------------------- */

/* A device type. Handles that a backend returns (device, stream, event, memory) are opaque to
 * the core. Any thread calls its functions unless stated otherwise; those that take a stream are
 * called by one thread at a time per stream. */
typedef struct tn_backend_def {
    tn_head head;
    const char *type;    /* "cpu": lower case letters, digits, `_` */
    const char *help;    /* one line */
    void *user;          /* the plugin's own */
    uint64_t flags;      /* TN_BACKEND_* */
    int32_t dlpack_type; /* DLDeviceType or 0 */
    uint32_t reserved;

    /* Looks for devices, after activation; the same number in each call. TN_ERR_UNAVAILABLE (with a
     * reason) where there is no such hardware. */
    tn_status (*enumerate)(const struct tn_backend_def *self, int32_t *count);
    /* Opens device `index` of them, before any other call with it. close: at shutdown, also of a
     * lost device; the device may be opened again. */
    tn_status (*open)(const struct tn_backend_def *self, int32_t index, void **device);
    void (*close)(void *device);
    tn_status (*info)(void *device, tn_device_info *out); /* may be NULL: all defaults */

    /* Memory, from the device itself: the core caches it, so this may be slow. TN_ERR_MEMORY when
     * none is left. */
    tn_status (*alloc)(void *device, tn_memory *memory);
    void (*free)(void *device, const tn_memory *memory);
    /* `device` is the one whose stream it is. */
    tn_status (*copy)(void *device, const tn_copy_args *args);

    /* Streams and events; all NULL for a device whose calls are complete when they return (its
     * stream is NULL then, and any threads call `copy` and kernels at the same time). stream_sync
     * waits and returns the first failure of the stream's work since the last sync. `device` of
     * event_wait is the stream's. event_query sets *done; it and event_sync tell no failures of
     * the work. */
    tn_status (*stream_new)(void *device, const tn_stream_args *args, void **stream);
    void (*stream_drop)(void *device, void *stream);
    tn_status (*stream_sync)(void *device, void *stream);
    /* An event may outlive the stream that it was recorded on: it is waited for, asked and dropped
     * after stream_drop, too. */
    tn_status (*event_new)(void *device, const tn_event_args *args, void **event);
    void (*event_drop)(void *device, void *event);
    tn_status (*event_record)(void *device, void *event, void *stream);
    tn_status (*event_wait)(void *device, void *event, void *stream);
    tn_status (*event_sync)(void *device, void *event);
    tn_status (*event_query)(void *device, void *event, bool *done);

    /* All that follow may be NULL. */

    /* Milliseconds between two events with TN_EVENT_TIMING that were both reached. */
    tn_status (*event_elapsed)(void *device, void *from, void *to, double *milliseconds);
    tn_status (*fill)(void *device, const tn_fill_args *args);
    /* Whether kernels and copies of `device` reach the memory of `other`, another device of the
     * backend, without the host. */
    tn_status (*peer)(void *device, void *other, bool *direct);
    /* Adds named values to `out`: what the hardware is, by the names of docs/plugins/backends.md
     * where they have one. */
    tn_status (*properties)(void *device, tn_pack *out);
    /* A published native interface by id, "tenon.opencl.queue/1"; NULL if unknown. */
    const void *(*native)(void *device, const char *id);
    /* The stream's native handle (CUstream), for DLPack and for other libraries. A backend that has
     * it also takes such handles as tn_stream_args.external. */
    void *(*native_stream)(void *device, void *stream);

    /* Capture: all four, or none. From capture_begin on, kernels with TN_KERNEL_CAPTURE_SAFE, and
     * copies and fills within the device, are recorded on args->stream and not done; nothing else
     * is asked of that stream until capture_end. Memory is still allocated meanwhile, and other
     * streams work as always. capture_end returns the record in args->graph; it is also called for
     * a capture that failed, and leaves NULL where there is nothing. capture_launch does the work
     * once, in the order of args->stream, which may be another stream of the device than the one
     * that recorded. capture_drop: none of its work is under way. */
    tn_status (*capture_begin)(void *device, const tn_capture_args *args);
    tn_status (*capture_end)(void *device, tn_capture_args *args);
    tn_status (*capture_launch)(void *device, const tn_capture_args *args);
    void (*capture_drop)(void *device, const tn_capture_args *args);
} tn_backend_def;

TN_END_DECLS
#endif
