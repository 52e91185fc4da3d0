/* SPDX-License-Identifier: MIT
 *
 * The part of the CUDA driver API that this plugin uses. Types and functions are declared here, so
 * that the plugin compiles without the CUDA toolkit; the addresses of the functions come from the
 * driver library, which is opened when the plugin is activated. Names, numbers and versions of
 * functions are those in cuda.h of CUDA 11. */
#ifndef TN_BACKEND_CUDA_CU_API_H
#define TN_BACKEND_CUDA_CU_API_H

#include <tenon/plugin.h>

typedef int32_t CUresult;
typedef int32_t CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuuid {
    unsigned char bytes[16];
} CUuuid;
typedef struct CUipcMemHandle {
    char reserved[64];
} CUipcMemHandle;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_UNKNOWN = 999,

    CU_STREAM_NON_BLOCKING = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEM_ATTACH_GLOBAL = 1,
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83
};

struct cu_api {
    void *library;
#define CU_FUNCTION(name, symbol, args) CUresult(*name) args;
#include "cu_functions.h"
};

/* Filled by cu_api_open(). */
extern struct cu_api cu;

/* Opens the driver library (a name or a path). Returns TN_ERR_UNAVAILABLE if the library is missing
 * or too old. */
tn_status cu_api_open(const char *library);
/* Returns the name of an error, such as "CUDA_ERROR_OUT_OF_MEMORY"; "?" if it is unknown. */
const char *cu_api_error_name(CUresult error);
/* Returns whether an error is sticky: every later call in the same context fails with the same
 * error. */
bool cu_api_sticky(CUresult error);
/* Sets the error "DEVICE: WHAT failed: ..."; `what` names the failed action. Returns TN_ERR_MEMORY,
 * TN_ERR_LOST (for a sticky error) or TN_ERR_DEVICE. */
tn_status cu_api_fail(CUresult error, const char *what, const char *device);

#endif
