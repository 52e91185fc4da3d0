/* SPDX-License-Identifier: MIT
 *
 * Declarations that the files of the CUDA backend share. */
#ifndef TN_BACKEND_CUDA_CUDA_H
#define TN_BACKEND_CUDA_CUDA_H

#include "blaslt.h"
#include "../gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/native.h>

/* The values of TENON_CUDA_DRIVER, TENON_CUDA_BLAS and TENON_CUDA_KERNELS. */
struct cuda_options {
    const char *driver;
    const char *blas;
    const char *kernels;
};
extern struct cuda_options cuda_options;

#define CUDA_STAGES 2
#define CUDA_STAGE_BYTES (1u << 20)
#define CUDA_PLANS 64
#define CUDA_PEERS 256 /* devices with this number or a higher one get no peer access */

struct cuda_plan; /* blaslt_matmul.c: a cached matrix product with the algorithm chosen for it */

struct cuda_device {
    CUdevice id;
    CUcontext context; /* the primary context, which other libraries of the process also use */
    char name[128];
    int32_t capability[2];
    int64_t pid;          /* the process that opened the device */
    _Atomic int32_t lost; /* the error after which the device cannot be used; 0: none */
    tn_cuda_native native;
    pthread_mutex_t lock;            /* protects loading of modules, `blas`, `plans` and `peers` */
    uint64_t peers[CUDA_PEERS / 64]; /* bit i: peer access to device i was requested */
    CUmodule modules[GPU_TEXT_COUNT];
    _Atomic(CUfunction) functions[GPU_KERNEL_COUNT][TN_DTYPE_COUNT];
    struct blaslt_device blas;
    struct cuda_plan *plans; /* CUDA_PLANS slots, allocated at the first matrix product */
};

/* A block of pinned memory for copies between host and device. A stream has two blocks: the device
 * copies one while the host fills or reads the other. */
struct cuda_stage {
    void *at;
    CUevent done; /* recorded after the device's copy */
    bool busy;    /* the device's copy may still run */
};

struct cuda_stream {
    struct cuda_device *device;
    CUstream stream;
    gpu_error *error;     /* pinned host memory, which kernels can write to */
    CUdeviceptr error_at; /* the device address of *error */
    bool external;        /* `stream` belongs to the program and is not destroyed here */
    bool records;         /* the stream's work is being recorded (capture.c) */
    bool may_fail;        /* a kernel that can write to *error was started since the last check */
    struct cuda_stage stages[CUDA_STAGES];
};

struct cuda_event {
    CUevent event;
    bool external; /* `event` belongs to the program and is not destroyed here */
};

/* context.c: the context of a device, and its errors. */

/* Makes the device's context current until cuda_leave(). Fails if the device is lost, or if it was
 * opened before a fork and this is the child process. */
tn_status cuda_enter(struct cuda_device *device);
void cuda_leave(void);
/* Like cuda_enter(), for functions that free memory or handles. Returns false, without setting an
 * error, if the device is lost or belongs to the parent process: nothing can be freed then. */
bool cuda_enter_to_free(struct cuda_device *device);
/* Like cu_api_fail(); also marks the device as lost if the error is sticky. */
tn_status cuda_fail(struct cuda_device *device, CUresult error, const char *what);

/* program.c: loads kernels, which are inside the plugin or in files. cuda_kernels_found() returns
 * whether there are any. cuda_function() finds the driver's handle of a kernel. */
bool cuda_kernels_found(void);
tn_status cuda_function(struct cuda_device *device, enum gpu_kernel kernel, tn_dtype type,
                        CUfunction *out);
void cuda_modules_drop(struct cuda_device *device);

/* blaslt_matmul.c: kernel->run and kernel->workspace of bmm. */
tn_status cuda_run_bmm(const tn_call *call);
size_t cuda_workspace_bmm(const tn_call *call);

/* stream.c: cuda_stream_native() returns the driver's handle of a stream; the other functions are
 * members of cuda_backend. */
void *cuda_stream_native(void *stream);
tn_status cuda_stream_new(void *device, const tn_stream_args *args, void **stream);
void cuda_stream_drop(void *device, void *stream);
tn_status cuda_stream_sync(void *device, void *stream);
tn_status cuda_event_new(void *device, const tn_event_args *args, void **event);
void cuda_event_drop(void *device, void *event);
tn_status cuda_event_record(void *device, void *event, void *stream);
tn_status cuda_event_wait(void *device, void *event, void *stream);
tn_status cuda_event_sync(void *device, void *event);
tn_status cuda_event_query(void *device, void *event, bool *done);
tn_status cuda_event_elapsed(void *device, void *from, void *to, double *milliseconds);
void *cuda_event_native(void *device, void *event);
/* Waits until the stream's work is done, and returns the first failure of that work. The device's
 * context must be current. */
tn_status cuda_stream_wait(struct cuda_stream *stream);

/* capture.c: members of cuda_backend. */
tn_status cuda_capture_begin(void *device, const tn_capture_args *args);
tn_status cuda_capture_end(void *device, tn_capture_args *args);
tn_status cuda_capture_launch(void *device, const tn_capture_args *args);
void cuda_capture_drop(void *device, const tn_capture_args *args);

/* memory.c: cuda_memory_kinds() returns the mask of kinds that the device has; the other functions
 * are members of cuda_backend. */
uint64_t cuda_memory_kinds(struct cuda_device *device);
tn_status cuda_alloc(void *device, tn_memory *memory);
void cuda_free(void *device, const tn_memory *memory);
tn_status cuda_memory_share(void *device, const tn_memory *memory, tn_share_args *args);
tn_status cuda_memory_open(void *device, const tn_share_args *args, tn_memory *memory);

/* transfer.c: members of cuda_backend. */
tn_status cuda_copy(void *device, const tn_copy_args *args);
tn_status cuda_fill(void *device, const tn_fill_args *args);

/* device.c */
extern const tn_backend_def cuda_backend;

#endif
