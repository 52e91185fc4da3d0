/* SPDX-License-Identifier: MIT
 *
 * Declarations that the files of the OpenCL backend share. */
#ifndef TN_BACKEND_OPENCL_OPENCL_H
#define TN_BACKEND_OPENCL_OPENCL_H

#include "cl_api.h"
#include "../gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/native.h>

/* The values of the environment variables TENON_OPENCL_LIBRARY, _BUILD and _SECONDS. */
struct opencl_options {
    const char *library;
    const char *build;
    int64_t seconds; /* the longest time of one step of opencl_probe_drivers() */
};
extern struct opencl_options opencl_options;

enum { OPENCL_MAX_DEVICES = 64, OPENCL_NO_DEVICE = -1 };

/* A device in the order in which the drivers list them. */
struct opencl_listed {
    cl_platform_id platform;
    cl_device_id id;
    int32_t rank; /* 0: GPU, 1: accelerator, 2: processor */
    char name[128];
    char vendor[128];     /* name of the platform */
    const char *unusable; /* why the device is ignored; NULL: it is not */
};

/* What trying a device in a child process showed. */
struct opencl_probe {
    bool failed;
    char words[200];
};

struct opencl_device {
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue; /* used only for allocating and freeing memory, under `lock` */
    char name[128];
    char driver[128];
    char build_options[256];
    uint64_t max_alloc;
    int64_t pid; /* the process that opened the device */
    bool fp64;
    tn_opencl_native native;
    pthread_mutex_t lock; /* protects building of programs, and `queue` */
    _Atomic(cl_program) programs[GPU_TEXT_COUNT][TN_DTYPE_COUNT];
};

/* Only one thread at a time uses a stream. So the stream's kernel objects, which contain the
 * arguments of the next launch, need no lock. */
struct opencl_stream {
    struct opencl_device *device;
    cl_command_queue queue;
    cl_mem error;        /* a gpu_error */
    bool may_fail;       /* a kernel that can write to `error` was started since the last check */
    int32_t since_flush; /* kernels started since the last flush */
    cl_kernel kernels[GPU_KERNEL_COUNT][TN_DTYPE_COUNT];
};

/* device.c */
extern const tn_backend_def opencl_backend;
tn_status opencl_enumerate(const tn_backend_def *self, int32_t *count);
void opencl_reset(void);
/* Lists at most OPENCL_MAX_DEVICES devices of all drivers. `step`, if it is not NULL, is called
 * with the name of each function of OpenCL before it is called. */
tn_status opencl_list(struct opencl_listed *all, int32_t *count, void (*step)(const char *name));
tn_status opencl_check_errors(struct opencl_stream *stream);

/* probe.c: opens the loader and tries all devices in child processes. results[i] is that of the
 * i-th listed device. Fails if a child dies before it tries the first device. */
tn_status opencl_probe_drivers(const char *library, struct opencl_probe *results);
extern struct opencl_probe opencl_probes[OPENCL_MAX_DEVICES];

/* event.c: members of opencl_backend. */
tn_status opencl_event_new(void *device, const tn_event_args *args, void **event);
void opencl_event_drop(void *device, void *event);
tn_status opencl_event_record(void *device, void *event, void *stream);
tn_status opencl_event_wait(void *device, void *event, void *stream);
tn_status opencl_event_sync(void *device, void *event);
tn_status opencl_event_query(void *device, void *event, bool *done);
void *opencl_event_native(void *device, void *event);

/* program.c: returns the stream's object for a kernel; compiles the kernel's program if needed. */
tn_status opencl_kernel(struct opencl_stream *stream, enum gpu_kernel kernel, tn_dtype type,
                        cl_kernel *out);
void opencl_programs_drop(struct opencl_device *device);
void opencl_kernels_drop(struct opencl_stream *stream);

#endif
