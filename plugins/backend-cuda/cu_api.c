/* SPDX-License-Identifier: MIT
 *
 * Opens the CUDA driver library and makes messages for its errors. */
#include "cu_api.h"

#include <dlfcn.h>
#include <string.h>

struct cu_api cu;

tn_status cu_api_open(const char *library)
{
    static const struct {
        const char *name;
        size_t offset;
        bool optional;
    } symbols[] = {
#define CU_FUNCTION(name, symbol, args) { symbol, offsetof(struct cu_api, name), false },
#define CU_OPTIONAL(name, symbol, args) { symbol, offsetof(struct cu_api, name), true },
#include "cu_functions.h"
    };
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    struct cu_api all = { .library = handle };

    if (!handle) {
        const char *why = dlerror();
        return tn_fail(TN_ERR_UNAVAILABLE,
                       "CUDA: cannot open %s, which comes with the NVIDIA driver: %s", library,
                       why ? why : "no reason given");
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(handle, symbols[i].name);

        if (!address && !symbols[i].optional)
            return tn_fail(TN_ERR_UNAVAILABLE,
                           "%s: function %s: missing; expected the driver of CUDA 11.2 or newer",
                           library, symbols[i].name);
        memcpy((char *)&all + symbols[i].offset, &address, sizeof address);
    }
    cu = all;
    return TN_OK;
}

const char *cu_api_error_name(CUresult error)
{
    const char *name = NULL;

    return cu.cuGetErrorName(error, &name) == CUDA_SUCCESS && name ? name : "?";
}

bool cu_api_sticky(CUresult error)
{
    return error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
           error == CUDA_ERROR_CONTEXT_IS_DESTROYED || error == CUDA_ERROR_ASSERT ||
           (error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED) ||
           error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_DEINITIALIZED ||
           error == CUDA_ERROR_UNKNOWN;
}

tn_status cu_api_fail(CUresult error, const char *what, const char *device)
{
    tn_status code = error == CUDA_ERROR_OUT_OF_MEMORY ? TN_ERR_MEMORY : TN_ERR_DEVICE;

    if (cu_api_sticky(error))
        return tn_fail_native(
            TN_ERR_LOST, error,
            "%s: %s failed: %s (%d); the device is lost: this process can no longer use it or its "
            "tensors",
            device, what, cu_api_error_name(error), (int)error);
    return tn_fail_native(code, error, "%s: %s failed: %s (%d)", device, what,
                          cu_api_error_name(error), (int)error);
}
