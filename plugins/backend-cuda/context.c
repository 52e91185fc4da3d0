/* SPDX-License-Identifier: MIT
 *
 * The context of a device: making it current, and handling its errors. Every function of the
 * backend makes the device's context current and restores the thread's previous context before it
 * returns, because the program may use CUDA itself. */
#include "cuda.h"

#include <unistd.h>

struct cuda_options cuda_options;

tn_status cuda_enter(struct cuda_device *device)
{
    CUresult error;

    if (device->pid != (int64_t)getpid())
        return tn_fail(
            TN_ERR_RUNTIME,
            "%s: opened before fork; CUDA does not work in the child process; open devices after "
            "fork",
            device->name);
    if (device->lost)
        return tn_fail_native(TN_ERR_LOST, device->lost,
                              "%s: lost after the error %s (%d); restart the process to use the "
                              "device again",
                              device->name, cu_api_error_name(device->lost), (int)device->lost);
    error = cu.cuCtxPushCurrent(device->context);
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(device, error, "entering the context");
}

void cuda_leave(void)
{
    CUcontext before;

    cu.cuCtxPopCurrent(&before);
}

tn_status cuda_fail(struct cuda_device *device, CUresult error, const char *what)
{
    if (cu_api_sticky(error))
        device->lost = error;
    return cu_api_fail(error, what, device->name);
}

bool cuda_enter_to_free(struct cuda_device *device)
{
    return device->pid == (int64_t)getpid() && !device->lost &&
           cu.cuCtxPushCurrent(device->context) == CUDA_SUCCESS;
}
