/* SPDX-License-Identifier: MIT
 *
 * Opens the OpenCL loader and makes messages for OpenCL's errors. */
#include "cl_api.h"

#include <dlfcn.h>
#include <string.h>

struct cl_api cl;

static const struct {
    cl_int number;
    const char *name;
} errors[] = {
    { 0, "no error, but nothing was made" },
    { -1, "CL_DEVICE_NOT_FOUND" },
    { -2, "CL_DEVICE_NOT_AVAILABLE" },
    { -3, "CL_COMPILER_NOT_AVAILABLE" },
    { -4, "CL_MEM_OBJECT_ALLOCATION_FAILURE" },
    { -5, "CL_OUT_OF_RESOURCES" },
    { -6, "CL_OUT_OF_HOST_MEMORY" },
    { -12, "CL_MAP_FAILURE" },
    { -11, "CL_BUILD_PROGRAM_FAILURE" },
    { -14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST" },
    { -30, "CL_INVALID_VALUE" },
    { -33, "CL_INVALID_DEVICE" },
    { -34, "CL_INVALID_CONTEXT" },
    { -36, "CL_INVALID_COMMAND_QUEUE" },
    { -38, "CL_INVALID_MEM_OBJECT" },
    { -44, "CL_INVALID_PROGRAM" },
    { -45, "CL_INVALID_PROGRAM_EXECUTABLE" },
    { -46, "CL_INVALID_KERNEL_NAME" },
    { -48, "CL_INVALID_KERNEL" },
    { -49, "CL_INVALID_ARG_INDEX" },
    { -50, "CL_INVALID_ARG_VALUE" },
    { -51, "CL_INVALID_ARG_SIZE" },
    { -52, "CL_INVALID_KERNEL_ARGS" },
    { -54, "CL_INVALID_WORK_GROUP_SIZE" },
    { -55, "CL_INVALID_WORK_ITEM_SIZE" },
    { -57, "CL_INVALID_EVENT_WAIT_LIST" },
    { -58, "CL_INVALID_EVENT" },
    { -61, "CL_INVALID_BUFFER_SIZE" },
    { -63, "CL_INVALID_GLOBAL_WORK_SIZE" },
    { -1001, "CL_PLATFORM_NOT_FOUND_KHR" },
};

tn_status cl_api_open(const char *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define CL_SYMBOL_(name) { #name, offsetof(struct cl_api, name) },
        CL_FUNCTIONS(CL_SYMBOL_)
#undef CL_SYMBOL_
    };
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    struct cl_api all = { .library = handle };

    if (!handle) {
        const char *why = dlerror();
        return tn_fail(TN_ERR_UNAVAILABLE,
                       "OpenCL: cannot open the loader %s: %s (Debian package ocl-icd-libopencl1)",
                       library, why ? why : "no reason given");
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(handle, symbols[i].name);

        if (!address)
            return tn_fail(TN_ERR_UNAVAILABLE,
                           "%s: function %s: missing; expected a loader of OpenCL 1.2 or newer",
                           library, symbols[i].name);
        memcpy((char *)&all + symbols[i].offset, &address, sizeof address);
    }
    cl = all;
    return TN_OK;
}

const char *cl_api_error_name(cl_int error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == error)
            return errors[i].name;
    return "?";
}

tn_status cl_api_fail(cl_int error, const char *what, const char *device)
{
    tn_status code = TN_ERR_DEVICE;

    if (error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_HOST_MEMORY)
        code = TN_ERR_MEMORY;
    else if (error == CL_DEVICE_NOT_AVAILABLE)
        code = TN_ERR_LOST;
    return tn_fail_native(code, error, "%s: %s failed: %s (%d)", device, what,
                          cl_api_error_name(error), (int)error);
}
