/* SPDX-License-Identifier: MIT
 *
 * The native interfaces that Tenon's own backends publish. A kernel pack uses them to work with the
 * device directly; tn_device_native(device, TN_OPENCL_NATIVE), for example, returns a
 * tn_opencl_native. The handles are void *, so that this header needs no header of a vendor.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_NATIVE_H
#define TENON_NATIVE_H

#include <tenon/abi.h>

TN_BEGIN_DECLS

/* OpenCL. The memory handles in views are cl_mem. `queue` returns the in-order cl_command_queue of
 * a stream; a kernel passes it call->stream. Different threads may run kernels on different streams
 * at the same time, so a pack must protect its own cl_kernel objects. queue: [borrowed] */
#define TN_OPENCL_NATIVE "tenon.opencl.queue/1"
typedef struct tn_opencl_native {
    uint32_t size; /* sizeof(tn_opencl_native), in the backend's build */
    uint32_t reserved;
    void *platform; /* cl_platform_id */
    void *device;   /* cl_device_id */
    void *context;  /* cl_context */
    void *library;  /* handle of the OpenCL loader library, for dlsym */
    void *(*queue)(void *stream);
} tn_opencl_native;

/* CUDA. The memory handles in views are CUdeviceptr. `stream` returns the CUstream of a stream; a
 * kernel passes it call->stream. */
#define TN_CUDA_NATIVE "tenon.cuda.stream/1"
typedef struct tn_cuda_native {
    uint32_t size;  /* sizeof(tn_cuda_native), in the backend's build */
    int32_t device; /* CUdevice */
    void *context;  /* the primary CUcontext of the device */
    void *library;  /* handle of the driver library, for dlsym */
    void *(*stream)(void *stream);
} tn_cuda_native;

TN_END_DECLS
#endif
