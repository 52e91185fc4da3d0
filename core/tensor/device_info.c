/* SPDX-License-Identifier: MIT
 *
 * What is asked of a device: its name, kind of memory, properties, native interfaces. */
#include "core/tensor/device.h"

const char *tn_device_name(const tn_device *device)
{
    return device != NULL ? device->name : "?";
}

const char *tn_device_type(const tn_device *device)
{
    return device != NULL ? device->type->backend.type : "?";
}

int tn_device_index(const tn_device *device)
{
    return device != NULL ? device->index : -1;
}

bool tn_device_is_host(const tn_device *device)
{
    return device != NULL && (device->flags & TN_BACKEND_HOST_MEMORY) != 0;
}

bool tn_device_has_memory(const tn_device *device)
{
    return device != NULL && (device->flags & TN_BACKEND_NO_MEMORY) == 0;
}

tn_status tn_device_describe(const tn_device *device, tn_device_info *out)
{
    static const tn_device_info empty = { TN_HEAD(tn_device_info) };
    tn_device_info info = empty;
    tn_status status = tn__device_usable(device);
    size_t size = sizeof info;

    if (out == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_device_describe: out: it is NULL");
    if (status != TN_OK)
        return status;
    info.memory_free = -1;
    info.alignment = 64;
    if (tn__backend(device)->info != NULL)
        status = tn__device_result(device, tn__backend(device)->info(device->handle, &info),
                                   "info");
    if (status != TN_OK)
        return status;
    info.name[sizeof info.name - 1] = '\0';
    info.driver[sizeof info.driver - 1] = '\0';
    info.head = empty.head;
    /* The caller's struct may be older and shorter. */
    if (out->head.size >= sizeof out->head && out->head.size < size)
        size = out->head.size;
    info.head.size = (uint32_t)size;
    memcpy(out, &info, size);
    return TN_OK;
}

const void *tn_device_native(const tn_device *device, const char *id)
{
    const void *native = NULL;

    if (id == NULL || tn__device_usable(device) != TN_OK) {
        if (id == NULL)
            tn_fail(TN_ERR_VALUE, "tn_device_native: id: it is NULL");
        return NULL;
    }
    if (tn__backend(device)->native != NULL)
        native = tn__backend(device)->native(device->handle, id);
    if (native == NULL)
        tn_fail(TN_ERR_KEY, "device %s: publishes no interface %q", device->name, id);
    return native;
}
