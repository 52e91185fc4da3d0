/* SPDX-License-Identifier: MIT
 *
 * The native handles that the backends of this tree publish, for kernel packs that use the device
 * directly: tn_device_native(device, TN_OPENCL_NATIVE) and the like. Types are void * so that no
 * vendor's header is needed. */
#ifndef TENON_NATIVE_H
#define TENON_NATIVE_H

#include <tenon/abi.h>

TN_BEGIN_DECLS

/* OpenCL. Memory handles in views are cl_mem; call->stream goes to `queue`, which gives its
 * in-order cl_command_queue. A pack must protect its own cl_kernel objects: only a stream is used
 * by one thread at a time. queue: [borrowed] */
#define TN_OPENCL_NATIVE "tenon.opencl.queue/1"
typedef struct tn_opencl_native {
    uint32_t size; /* sizeof(tn_opencl_native), in the backend's build */
    uint32_t reserved;
    void *platform; /* cl_platform_id */
    void *device;   /* cl_device_id */
    void *context;  /* cl_context */
    void *library;  /* the loader, for dlsym */
    void *(*queue)(void *stream);
} tn_opencl_native;

/* CUDA. Memory handles are CUdeviceptr; `stream` gives the CUstream of a stream. */
#define TN_CUDA_NATIVE "tenon.cuda.stream/1"
typedef struct tn_cuda_native {
    uint32_t size;  /* sizeof(tn_cuda_native), in the backend's build */
    int32_t device; /* CUdevice */
    void *context;  /* CUcontext, the primary one */
    void *library;  /* the driver library, for dlsym */
    void *(*stream)(void *stream);
} tn_cuda_native;

TN_END_DECLS
#endif
