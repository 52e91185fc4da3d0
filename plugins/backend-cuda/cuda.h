/* SPDX-License-Identifier: MIT
 *
 * What the files of the CUDA backend share. */
#ifndef TENON_BACKEND_CUDA_H
#define TENON_BACKEND_CUDA_H

#include "blaslt.h"
#include "../gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/native.h>

/* What TENON_CUDA_... sets. */
struct cuda_options {
    const char *driver;
    const char *blas;
    const char *kernels;
};
extern struct cuda_options cuda_options;

#define CUDA_STAGES 2
#define CUDA_STAGE_BYTES (1u << 20)
#define CUDA_PLANS 64
#define CUDA_PEERS 256 /* no peer access to devices beyond this number */

struct cuda_plan; /* blaslt_matmul.c: a product whose algorithm is known */

struct cuda_device {
    CUdevice id;
    CUcontext context; /* the primary one, which other libraries of the process use, too */
    char name[128];
    int32_t capability[2];
    int64_t pid;          /* of the process that opened it */
    _Atomic int32_t lost; /* the CUresult that ended it */
    tn_cuda_native native;
    pthread_mutex_t lock;            /* for loading modules, for plans, for peers */
    uint64_t peers[CUDA_PEERS / 64]; /* bit i: peer access to device i was requested */
    CUmodule modules[GPU_TEXT_COUNT];
    _Atomic(CUfunction) functions[GPU_KERNEL_COUNT][TN_DTYPE_COUNT];
    struct blaslt_device blas;
    struct cuda_plan *plans; /* CUDA_PLANS of them, allocated at the first product */
};

/* Pinned memory for copies between host and device. A stream has two: one is copied while the
 * other is used. */
struct cuda_stage {
    void *at;
    CUevent done;
    bool busy;
};

struct cuda_stream {
    struct cuda_device *device;
    CUstream stream;
    gpu_error *error; /* pinned, mapped into the device */
    CUdeviceptr error_at;
    bool external; /* the program's: used, not destroyed */
    bool records;  /* its work */
    bool may_fail; /* a kernel that can write to it was started since it was last read */
    struct cuda_stage stages[CUDA_STAGES];
};

/* context.c */

/* Makes the device's context current until cuda_leave. Fails when the device is lost, or was
 * opened before a fork. */
tn_status cuda_enter(struct cuda_device *device);
void cuda_leave(void);
/* The same for what frees: false, without an error, where nothing can be freed any more. */
bool cuda_enter_to_free(struct cuda_device *device);
/* cu_api_fail; after a sticky error the device is lost. */
tn_status cuda_fail(struct cuda_device *device, CUresult error, const char *what);

/* program.c: the kernels inside the plugin, or in files. */
bool cuda_kernels_found(void);
tn_status cuda_function(struct cuda_device *device, enum gpu_kernel kernel, tn_dtype type,
                        CUfunction *out);
void cuda_modules_drop(struct cuda_device *device);

/* blaslt_matmul.c: kernel->run and kernel->workspace of bmm. */
tn_status cuda_run_bmm(const tn_call *call);
size_t cuda_workspace_bmm(const tn_call *call);

/* stream.c: functions of the backend, and the driver's handle of a stream. */
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
/* Waits, and returns the first failure of the work. The context is current. */
tn_status cuda_stream_wait(struct cuda_stream *stream);

/* capture.c: the same. */
tn_status cuda_capture_begin(void *device, const tn_capture_args *args);
tn_status cuda_capture_end(void *device, tn_capture_args *args);
tn_status cuda_capture_launch(void *device, const tn_capture_args *args);
void cuda_capture_drop(void *device, const tn_capture_args *args);

/* transfer.c: the same. */
tn_status cuda_copy(void *device, const tn_copy_args *args);
tn_status cuda_fill(void *device, const tn_fill_args *args);

/* device.c */
extern const tn_backend_def cuda_backend;

#endif
