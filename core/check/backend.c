/* SPDX-License-Identifier: MIT
 *
 * The checked boundary: functions of backends. A device handle that the core holds is ours while
 * checking; it knows the backend's own handle and functions. enumerate and open have no handle
 * yet, so each slot has functions of its own. */
#include "core/check/check.h"
#include "core/op/internal.h"

struct slot {
    tn_backend_def real;
    const tn__plugin *plugin;
};

struct device {
    void *real;
    struct slot *slot;
    int32_t index;
};

static struct slot slots[TN__MAX_DEVICE_TYPES];
static _Atomic int32_t used;

void *tn__check_device(void *handle)
{
    struct device *device = handle;
    return device->real;
}

/* The call of a backend's function with the plugin named meanwhile, and its status looked at. */
#define CALL(slot_, function, ...)                                                                 \
    do {                                                                                           \
        uint64_t errors_ = tn__error_count();                                                      \
        const char *before_ = tn__error_plugin((slot_)->plugin->id);                               \
        tn_status status_ = tn__check_status((slot_)->real.function(__VA_ARGS__), errors_,         \
                                             (slot_)->plugin, #function);                          \
        tn__error_plugin(before_);                                                                 \
        return status_;                                                                            \
    } while (0)

static tn_status refuse(const struct slot *slot, const char *function, const char *words)
{
    return tn_fail(TN_ERR_REFUSED, "checked boundary: plugin %q: %s %s", slot->plugin->id, function,
                   words);
}

/* ---- without a handle ------------------------------------------------------------------------ */

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    const struct slot *slot = self->user;
    uint64_t errors = tn__error_count();
    *count = -1;
    tn_status status = tn__check_status(slot->real.enumerate(&slot->real, count), errors,
                                        slot->plugin, "enumerate");
    if (status == TN_OK && *count < 0)
        return refuse(slot, "enumerate", "returned TN_OK without a count");
    return status;
}

static tn_status open_device(const tn_backend_def *self, int32_t index, void **out)
{
    struct slot *slot = self->user;
    struct device *device = tn_calloc(1, sizeof *device);
    uint64_t errors = tn__error_count();
    if (!device)
        return TN_ERR_MEMORY;
    device->slot = slot;
    device->index = index;
    tn_status status = tn__check_status(slot->real.open(&slot->real, index, &device->real), errors,
                                        slot->plugin, "open");
    if (status != TN_OK) {
        tn_free(device);
        return status;
    }
    *out = device;
    return TN_OK;
}

/* ---- with one -------------------------------------------------------------------------------- */

static void close_device(void *handle)
{
    struct device *d = handle;
    if (d->slot->real.close)
        d->slot->real.close(d->real);
    tn_free(d);
}

static tn_status info(void *handle, tn_device_info *out)
{
    struct device *d = handle;
    CALL(d->slot, info, d->real, out);
}

static tn_status alloc(void *handle, size_t bytes, void **memory)
{
    struct device *d = handle;
    CALL(d->slot, alloc, d->real, bytes, memory);
}

static void free_memory(void *handle, void *memory, size_t bytes)
{
    struct device *d = handle;
    d->slot->real.free(d->real, memory, bytes);
}

static tn_status stream_new(void *handle, void **stream)
{
    struct device *d = handle;
    CALL(d->slot, stream_new, d->real, stream);
}

static void stream_drop(void *handle, void *stream)
{
    struct device *d = handle;
    d->slot->real.stream_drop(d->real, stream);
}

static tn_status stream_sync(void *handle, void *stream)
{
    struct device *d = handle;
    CALL(d->slot, stream_sync, d->real, stream);
}

static tn_status event_new(void *handle, void **event)
{
    struct device *d = handle;
    CALL(d->slot, event_new, d->real, event);
}

static void event_drop(void *handle, void *event)
{
    struct device *d = handle;
    d->slot->real.event_drop(d->real, event);
}

static tn_status event_record(void *handle, void *event, void *stream)
{
    struct device *d = handle;
    CALL(d->slot, event_record, d->real, event, stream);
}

static tn_status event_wait(void *handle, void *event, void *stream)
{
    struct device *d = handle;
    CALL(d->slot, event_wait, d->real, event, stream);
}

static tn_status event_sync(void *handle, void *event)
{
    struct device *d = handle;
    CALL(d->slot, event_sync, d->real, event);
}

static tn_status event_query(void *handle, void *event, bool *done)
{
    struct device *d = handle;
    CALL(d->slot, event_query, d->real, event, done);
}

static tn_status copy_in(void *handle, void *stream, void *memory, uint64_t offset,
                         const void *from, size_t bytes)
{
    struct device *d = handle;
    CALL(d->slot, copy_in, d->real, stream, memory, offset, from, bytes);
}

static tn_status copy_out(void *handle, void *stream, void *to, void *memory, uint64_t offset,
                          size_t bytes)
{
    struct device *d = handle;
    CALL(d->slot, copy_out, d->real, stream, to, memory, offset, bytes);
}

static tn_status copy(void *handle, void *stream, void *to, uint64_t to_offset, void *from,
                      uint64_t from_offset, size_t bytes)
{
    struct device *d = handle;
    if (to == from && bytes && to_offset < from_offset + bytes && from_offset < to_offset + bytes)
        return tn_fail(
            TN_ERR_ASSERT,
            "checked boundary: the core asked plugin %q to copy between ranges that overlap; "
            "please "
            "report this",
            d->slot->plugin->id);
    CALL(d->slot, copy, d->real, stream, to, to_offset, from, from_offset, bytes);
}

static tn_status copy_peer(void *to_handle, void *to, uint64_t to_offset, void *from_handle,
                           void *stream, void *from, uint64_t from_offset, size_t bytes)
{
    struct device *t = to_handle, *f = from_handle;
    CALL(f->slot, copy_peer, t->real, to, to_offset, f->real, stream, from, from_offset, bytes);
}

static const void *native(void *handle, const char *id)
{
    struct device *d = handle;
    return d->slot->real.native(d->real, id);
}

static void *native_stream(void *handle, void *stream)
{
    struct device *d = handle;
    return d->slot->real.native_stream(d->real, stream);
}

/* ---- wrapping -------------------------------------------------------------------------------- */

tn_status tn__check_backend(tn_backend_def *backend, const tn__plugin *plugin)
{
    int32_t n = atomic_fetch_add(&used, 1);
    if (n >= TN__MAX_DEVICE_TYPES)
        return tn_fail(TN_ERR_REFUSED,
                       "checked boundary: too many device types; expected at most %d",
                       TN__MAX_DEVICE_TYPES);
    slots[n].real = *backend;
    slots[n].plugin = plugin;
    backend->user = &slots[n];
    backend->enumerate = enumerate;
    backend->open = open_device;
    backend->close = close_device;
#define WRAP(member, function) backend->member = backend->member ? function : NULL
    WRAP(info, info);
    WRAP(alloc, alloc);
    WRAP(free, free_memory);
    WRAP(stream_new, stream_new);
    WRAP(stream_drop, stream_drop);
    WRAP(stream_sync, stream_sync);
    WRAP(event_new, event_new);
    WRAP(event_drop, event_drop);
    WRAP(event_record, event_record);
    WRAP(event_wait, event_wait);
    WRAP(event_sync, event_sync);
    WRAP(event_query, event_query);
    WRAP(copy_in, copy_in);
    WRAP(copy_out, copy_out);
    WRAP(copy, copy);
    WRAP(copy_peer, copy_peer);
    WRAP(native, native);
    WRAP(native_stream, native_stream);
#undef WRAP
    return TN_OK;
}

/* ---- around a kernel ------------------------------------------------------------------------- */

bool tn__check_is_host(void *handle)
{
    struct device *d = handle;
    return (d->slot->real.flags & TN_BACKEND_HOST_MEMORY) != 0;
}

tn_status tn__check_after_kernel(void *handle, void *stream, const char *kernel)
{
    struct device *d = handle;
    tn_status status = TN_OK;
    if (d->slot->real.stream_sync && d->slot->real.flags & TN_BACKEND_ASYNC)
        status = stream_sync(handle,
                             stream); /* so that a failure belongs to the kernel that met it */
    return status == TN_OK ? TN_OK : tn_error_prefix("checked boundary: after kernel %s: ", kernel);
}
