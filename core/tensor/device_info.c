/* SPDX-License-Identifier: MIT
 *
 * What a program can ask about a device: name, kind of memory, properties, native interfaces. */
#include "core/tensor/device.h"

#include <tenon/runtime.h>

const char *tn_device_name(const tn_device *device)
{
    return device != NULL ? device->name : "?";
}

const char *tn_device_type(const tn_device *device)
{
    return device != NULL ? device->type->backend.type : "?";
}

int32_t tn_device_index(const tn_device *device)
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

tn_status tn__device_info(const tn_device *device, tn_device_info *out)
{
    static const tn_device_info unknown = { TN_HEAD(tn_device_info), .memory_free = -1,
                                            .alignment = 64,
                                            .memory_kinds = TN_MEMORY_BIT(TN_MEMORY_DEVICE) };
    tn_status status = TN_OK;

    *out = unknown;
    if (tn__backend(device)->info != NULL)
        status = tn__device_result(device, tn__backend(device)->info(device->handle, out), "info");
    out->head = unknown.head;
    out->name[sizeof out->name - 1] = '\0';
    out->driver[sizeof out->driver - 1] = '\0';
    if (status == TN_OK &&
        (out->alignment < 1 || out->alignment > (1 << 20) || out->alignment & (out->alignment - 1)))
        return tn_fail(TN_ERR_DEVICE,
                       "%s: alignment: wrong, got %lld; expected a power of two up to 2^20",
                       device->name, (long long)out->alignment);
    if (status == TN_OK && (out->priority_highest > 0 || out->priority_lowest < 0))
        return tn_fail(
            TN_ERR_DEVICE,
            "%s: priorities: wrong range, got %d to %d; expected a range that contains 0",
            device->name, (int)out->priority_highest, (int)out->priority_lowest);
    return status;
}

tn_status tn_device_describe(const tn_device *device, tn_device_info *out)
{
    tn_device_info info;
    tn_status status = tn__device_usable(device);
    size_t size = sizeof info;

    if (out == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "tn_device_describe: out: it is NULL; expected a tn_device_info");
    if (status == TN_OK)
        status = tn__device_info(device, &info);
    if (status != TN_OK)
        return status;
    /* The caller's struct may be of an older, shorter version. */
    if (out->head.size >= sizeof out->head && out->head.size < size)
        size = out->head.size;
    info.head.size = (uint32_t)size;
    memcpy(out, &info, size);
    return TN_OK;
}

/* A row of the table of properties: the name of a property, its kind, and its place in
 * tn_device_info. */
struct property {
    const char *name;
    uint32_t kind; /* tn_value_kind */
    uint32_t offset;
};

#define PROPERTY(member, kind)                                                                     \
    {                                                                                              \
#member, kind, (uint32_t)offsetof(tn_device_info, member)                                  \
    }

static const struct property table[] = {
    PROPERTY(name, TN_VALUE_STRING),       PROPERTY(driver, TN_VALUE_STRING),
    PROPERTY(memory_total, TN_VALUE_INT),  PROPERTY(memory_free, TN_VALUE_INT),
    PROPERTY(compute_units, TN_VALUE_INT), PROPERTY(alignment, TN_VALUE_INT),
};

static tn_value property_value(const struct property *row, const tn_device_info *info)
{
    const char *at = (const char *)info + row->offset;
    int64_t number;

    if (row->kind == TN_VALUE_STRING)
        return tn_value_string(at);
    memcpy(&number, at, sizeof number);
    return tn_value_int(number);
}

static tn_status add_own(const tn_device *device, tn_pack *out)
{
    const tn_backend_def *b = tn__backend(device);
    const struct {
        const char *name;
        bool value;
    } answers[] = {
        { "host_memory", (device->flags & TN_BACKEND_HOST_MEMORY) != 0 },
        { "asynchronous", (device->flags & TN_BACKEND_ASYNC) != 0 },
        { "peer_copies", (device->flags & TN_BACKEND_PEER) != 0 },
        { "times_events", b->stream_new == NULL || b->event_elapsed != NULL },
        { "external_streams", b->native_stream != NULL },
        { "external_events", b->native_event != NULL },
    };
    tn_device_info info;
    tn_value list[TN_DTYPE_COUNT];
    uint32_t count = 0;
    tn_status status = tn__device_info(device, &info);

    for (size_t i = 0; i < tn__countof(table) && status == TN_OK; i++)
        status = tn_pack_add(out, table[i].name, property_value(&table[i], &info));
    for (int32_t i = 0; i < TN_DTYPE_COUNT; i++)
        if (info.dtypes & TN_BIT(i))
            list[count++] = tn_value_string(tn_dtype_name((tn_dtype)i));
    if (status == TN_OK)
        status = tn_pack_add(out, "dtypes", (tn_value){ TN_VALUE_LIST, count, { .list = list } });
    count = 0;
    for (tn_memory_kind i = 0; tn__memory_kind_name(i) != NULL; i++)
        if (info.memory_kinds & TN_MEMORY_BIT(i))
            list[count++] = tn_value_string(tn__memory_kind_name(i));
    if (status == TN_OK)
        status = tn_pack_add(out, "memory_kinds",
                             (tn_value){ TN_VALUE_LIST, count, { .list = list } });
    list[0] = tn_value_int(info.priority_highest);
    list[1] = tn_value_int(info.priority_lowest);
    if (status == TN_OK)
        status = tn_pack_add(out, "stream_priorities",
                             (tn_value){ TN_VALUE_TUPLE, 2, { .list = list } });
    for (size_t i = 0; i < tn__countof(answers) && status == TN_OK; i++)
        status = tn_pack_add(out, answers[i].name, tn_value_bool(answers[i].value));
    return status;
}

tn_status tn_device_properties(const tn_device *device, tn_pack *out)
{
    const tn_backend_def *b;
    tn_status status = tn__device_usable(device);

    if (out == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_device_properties: out: it is NULL; expected a pack");
    if (status == TN_OK)
        status = add_own(device, out);
    if (status != TN_OK)
        return status;
    b = tn__backend(device);
    return b->properties != NULL
               ? tn__device_result(device, b->properties(device->handle, out), "properties")
               : TN_OK;
}

bool tn_device_reaches(const tn_device *device, const tn_device *other)
{
    bool direct = false;

    if (tn__device_usable(device) != TN_OK || tn__device_usable(other) != TN_OK)
        return false;
    if (device == other)
        return true;
    if (device->type != other->type)
        return false;
    if (device->flags & TN_BACKEND_HOST_MEMORY)
        return true;
    if (tn__backend(device)->peer == NULL ||
        tn__device_result(device, tn__backend(device)->peer(device->handle, other->handle, &direct),
                          "peer") != TN_OK)
        return false;
    return direct;
}

const void *tn_device_native(const tn_device *device, const char *id)
{
    const void *native = NULL;

    if (id == NULL || tn__device_usable(device) != TN_OK) {
        if (id == NULL)
            tn_fail(TN_ERR_VALUE,
                    "tn_device_native: id: it is NULL; expected the id of an interface");
        return NULL;
    }
    if (tn__backend(device)->native != NULL)
        native = tn__backend(device)->native(device->handle, id);
    if (native == NULL)
        tn_fail(TN_ERR_KEY, "device %s: publishes no interface %q", device->name, id);
    return native;
}
