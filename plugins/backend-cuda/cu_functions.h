/* SPDX-License-Identifier: MIT
 *
 * The list of CUDA driver functions that this plugin uses. The includer defines
 * CU_FUNCTION(member, symbol in the library, arguments), and can define CU_OPTIONAL for functions
 * that an older driver may lack; the pointers of missing functions are NULL. */
#ifndef CU_OPTIONAL
#define CU_OPTIONAL CU_FUNCTION
#endif

/* clang-format off */
CU_FUNCTION(cuInit, "cuInit", (unsigned flags))
CU_FUNCTION(cuDriverGetVersion, "cuDriverGetVersion", (int *version))
CU_FUNCTION(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **name))
CU_FUNCTION(cuDeviceGetCount, "cuDeviceGetCount", (int *count))
CU_FUNCTION(cuDeviceGet, "cuDeviceGet", (CUdevice *device, int index))
CU_FUNCTION(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, CUdevice device))
CU_FUNCTION(cuDeviceGetUuid, "cuDeviceGetUuid", (CUuuid *uuid, CUdevice device))
CU_FUNCTION(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *id, int size, CUdevice device))
CU_FUNCTION(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *bytes, CUdevice device))
CU_FUNCTION(cuDeviceGetAttribute, "cuDeviceGetAttribute",
            (int *value, int attribute, CUdevice device))
CU_FUNCTION(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",
            (CUcontext *context, CUdevice device))
CU_FUNCTION(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))
CU_FUNCTION(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer",
            (int *can, CUdevice device, CUdevice peer))
CU_FUNCTION(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext peer, unsigned flags))
CU_FUNCTION(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context))
CU_FUNCTION(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *context))
CU_FUNCTION(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))
CU_FUNCTION(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr *at, size_t bytes))
CU_FUNCTION(cuMemFree, "cuMemFree_v2", (CUdeviceptr at))
CU_FUNCTION(cuMemHostAlloc, "cuMemHostAlloc", (void **at, size_t bytes, unsigned flags))
CU_FUNCTION(cuMemFreeHost, "cuMemFreeHost", (void *at))
CU_FUNCTION(cuMemAllocManaged, "cuMemAllocManaged",
            (CUdeviceptr *at, size_t bytes, unsigned flags))
CU_FUNCTION(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",
            (CUdeviceptr *to, void *at, unsigned flags))
CU_FUNCTION(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",
            (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))
CU_FUNCTION(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",
            (void *to, CUdeviceptr from, size_t bytes, CUstream stream))
CU_FUNCTION(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",
            (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))
CU_FUNCTION(cuMemcpyPeerAsync, "cuMemcpyPeerAsync",
            (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t
            bytes, CUstream stream))
CU_FUNCTION(cuMemsetD8Async, "cuMemsetD8Async",
            (CUdeviceptr at, unsigned char value, size_t count, CUstream stream))
CU_FUNCTION(cuMemsetD16Async, "cuMemsetD16Async",
            (CUdeviceptr at, unsigned short value, size_t count, CUstream stream))
CU_FUNCTION(cuMemsetD32Async, "cuMemsetD32Async",
            (CUdeviceptr at, unsigned value, size_t count, CUstream stream))
CU_FUNCTION(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int *lowest, int *highest))
CU_FUNCTION(cuStreamCreateWithPriority, "cuStreamCreateWithPriority",
            (CUstream *stream, unsigned flags, int priority))
CU_FUNCTION(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))
CU_FUNCTION(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))
CU_FUNCTION(cuStreamWaitEvent, "cuStreamWaitEvent",
            (CUstream stream, CUevent event, unsigned flags))
CU_FUNCTION(cuEventCreate, "cuEventCreate", (CUevent *event, unsigned flags))
CU_FUNCTION(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))
CU_FUNCTION(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))
CU_FUNCTION(cuEventSynchronize, "cuEventSynchronize", (CUevent event))
CU_FUNCTION(cuEventQuery, "cuEventQuery", (CUevent event))
CU_FUNCTION(cuEventElapsedTime, "cuEventElapsedTime",
            (float *milliseconds, CUevent from, CUevent to))
CU_FUNCTION(cuModuleLoadData, "cuModuleLoadData", (CUmodule *module, const void *image))
CU_FUNCTION(cuModuleUnload, "cuModuleUnload", (CUmodule module))
CU_FUNCTION(cuModuleGetFunction, "cuModuleGetFunction",
            (CUfunction *function, CUmodule module, const char *name))
CU_FUNCTION(cuLaunchKernel, "cuLaunchKernel",
            (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned
            block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void
            **params, void **extra))
CU_OPTIONAL(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream stream, int mode))
CU_OPTIONAL(cuStreamEndCapture, "cuStreamEndCapture", (CUstream stream, CUgraph *graph))
CU_OPTIONAL(cuGraphInstantiate, "cuGraphInstantiateWithFlags",
            (CUgraphExec *made, CUgraph graph, unsigned long long flags))
CU_OPTIONAL(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec graph, CUstream stream))
CU_OPTIONAL(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec graph))
CU_OPTIONAL(cuMemGetAddressRange, "cuMemGetAddressRange_v2",
            (CUdeviceptr *base, size_t *size, CUdeviceptr at))
CU_OPTIONAL(cuIpcGetMemHandle, "cuIpcGetMemHandle", (CUipcMemHandle *handle, CUdeviceptr at))
CU_OPTIONAL(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2",
            (CUdeviceptr *at, CUipcMemHandle handle, unsigned flags))
CU_OPTIONAL(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", (CUdeviceptr at))
CU_OPTIONAL(cuGraphDestroy, "cuGraphDestroy", (CUgraph graph))
#undef CU_FUNCTION
#undef CU_OPTIONAL
/* clang-format on */
