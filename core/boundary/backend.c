/* SPDX-License-Identifier: MIT
 *
 * The checked boundary: functions of backends. While checking is on, the core's handle of a device
 * is a `struct device` of this file, which contains the backend's own handle and functions.
 * enumerate and open are called without a handle; they find the backend by self->user. */
#include "core/boundary/boundary.h"
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

void *tn__boundary_device(void *handle)
{
    struct device *device = handle;
    return device->real;
}

/* Calls a function of the backend while errors name its plugin, checks the returned status and
 * returns it. */
#define CALL(slot_, function, ...)                                                                 \
    do {                                                                                           \
        uint64_t errors_ = tn__error_count();                                                      \
        const char *before_ = tn__error_plugin((slot_)->plugin->id);                               \
        tn_status status_ = tn__boundary_status((slot_)->real.function(__VA_ARGS__), errors_,      \
                                                (slot_)->plugin, #function);                       \
        tn__error_plugin(before_);                                                                 \
        return status_;                                                                            \
    } while (0)

static tn_status refuse(const struct slot *slot, const char *function, const char *words)
{
    return tn_fail(TN_ERR_REFUSED, "checked boundary: plugin %q: %s %s", slot->plugin->id, function,
                   words);
}

/* ---- functions without a device handle ------------------------------------------------------- */

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    const struct slot *slot = self->user;
    uint64_t errors = tn__error_count();
    *count = -1;
    tn_status status = tn__boundary_status(slot->real.enumerate(&slot->real, count), errors,
                                           slot->plugin, "enumerate");
    if (status == TN_OK && *count < 0)
        return refuse(slot, "enumerate", "returned TN_OK but did not set a count");
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
    tn_status status = tn__boundary_status(slot->real.open(&slot->real, index, &device->real),
                                           errors, slot->plugin, "open");
    if (status != TN_OK) {
        tn_free(device);
        return status;
    }
    *out = device;
    return TN_OK;
}

/* ---- functions with a device handle ---------------------------------------------------------- */

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

static tn_status alloc(void *handle, tn_memory *memory)
{
    struct device *d = handle;
    CALL(d->slot, alloc, d->real, memory);
}

static void free_memory(void *handle, const tn_memory *memory)
{
    struct device *d = handle;
    d->slot->real.free(d->real, memory);
}

static tn_status stream_new(void *handle, const tn_stream_args *args, void **stream)
{
    struct device *d = handle;
    CALL(d->slot, stream_new, d->real, args, stream);
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

static tn_status event_new(void *handle, const tn_event_args *args, void **event)
{
    struct device *d = handle;
    CALL(d->slot, event_new, d->real, args, event);
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

static tn_status event_elapsed(void *handle, void *from, void *to, double *milliseconds)
{
    struct device *d = handle;
    CALL(d->slot, event_elapsed, d->real, from, to, milliseconds);
}

static bool overlaps(const tn_copy_args *args)
{
    return args->to.device == args->from.device && args->to.memory == args->from.memory &&
           args->to.offset < args->from.offset + args->bytes &&
           args->from.offset < args->to.offset + args->bytes;
}

static tn_status copy(void *handle, const tn_copy_args *args)
{
    struct device *d = handle, *to = args->to.device, *from = args->from.device;
    tn_copy_args inner = *args;
    if (overlaps(args))
        return tn_fail(
            TN_ERR_ASSERT,
            "checked boundary: the core asked plugin %q to copy between overlapping ranges, which "
            "is a bug of Tenon; please report it",
            d->slot->plugin->id);
    inner.to.device = to ? to->real : NULL;
    inner.from.device = from ? from->real : NULL;
    CALL(d->slot, copy, d->real, &inner);
}

static tn_status fill(void *handle, const tn_fill_args *args)
{
    struct device *d = handle;
    CALL(d->slot, fill, d->real, args);
}

static tn_status peer(void *handle, void *other, bool *direct)
{
    struct device *d = handle, *o = other;
    CALL(d->slot, peer, d->real, o->real, direct);
}

static tn_status properties(void *handle, tn_pack *out)
{
    struct device *d = handle;
    CALL(d->slot, properties, d->real, out);
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

static tn_status capture_begin(void *handle, const tn_capture_args *args)
{
    struct device *d = handle;
    CALL(d->slot, capture_begin, d->real, args);
}

static tn_status capture_end(void *handle, tn_capture_args *args)
{
    struct device *d = handle;
    CALL(d->slot, capture_end, d->real, args);
}

static tn_status capture_launch(void *handle, const tn_capture_args *args)
{
    struct device *d = handle;
    CALL(d->slot, capture_launch, d->real, args);
}

static void capture_drop(void *handle, const tn_capture_args *args)
{
    struct device *d = handle;
    d->slot->real.capture_drop(d->real, args);
}

static tn_status memory_share(void *handle, const tn_memory *memory, tn_share_args *args)
{
    struct device *d = handle;
    CALL(d->slot, memory_share, d->real, memory, args);
}

static tn_status memory_open(void *handle, const tn_share_args *args, tn_memory *memory)
{
    struct device *d = handle;
    CALL(d->slot, memory_open, d->real, args, memory);
}

static void *native_event(void *handle, void *event)
{
    struct device *d = handle;
    return d->slot->real.native_event(d->real, event);
}

/* ---- wrapping -------------------------------------------------------------------------------- */

tn_status tn__boundary_backend(tn_backend_def *backend, const tn__plugin *plugin)
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
    WRAP(copy, copy);
    WRAP(event_elapsed, event_elapsed);
    WRAP(fill, fill);
    WRAP(peer, peer);
    WRAP(properties, properties);
    WRAP(native, native);
    WRAP(native_stream, native_stream);
    WRAP(capture_begin, capture_begin);
    WRAP(capture_end, capture_end);
    WRAP(capture_launch, capture_launch);
    WRAP(capture_drop, capture_drop);
    WRAP(memory_share, memory_share);
    WRAP(memory_open, memory_open);
    WRAP(native_event, native_event);
#undef WRAP
    return TN_OK;
}

/* ---- around a kernel ------------------------------------------------------------------------- */

bool tn__boundary_is_host(void *handle)
{
    struct device *d = handle;
    return (d->slot->real.flags & TN_BACKEND_HOST_MEMORY) != 0;
}

tn_status tn__boundary_after_kernel(void *handle, void *stream, const char *kernel)
{
    struct device *d = handle;
    tn_status status = TN_OK;
    /* Wait, so that a failure of the kernel is reported for this kernel and not for a later one. */
    if (d->slot->real.stream_sync && d->slot->real.flags & TN_BACKEND_ASYNC)
        status = stream_sync(handle, stream);
    return status == TN_OK ? TN_OK : tn_error_prefix("checked boundary: after kernel %s: ", kernel);
}
