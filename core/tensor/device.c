/* SPDX-License-Identifier: MIT
 *
 * Device types and devices. Plugins register device types. Devices are enumerated and opened when
 * first needed, and never freed. */
#include "core/tensor/device.h"
#include "core/plugin/internal.h"
#include "core/tensor/thread.h"

/* Written under `lock`, an entry before the count, so that readers need no lock. */
static tn__device_type *types[TN__MAX_DEVICE_TYPES];
static _Atomic int32_t n_types;
static int32_t n_devices, n_numbers;
static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

static void make_lock(void)
{
    pthread_mutexattr_t recursive; /* a backend may look up another device while it opens one */

    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

static void take_lock(void)
{
    pthread_once(&lock_once, make_lock);
    pthread_mutex_lock(&lock);
}

/* ---- device types ---- */

/* Returns the name of the first function that a backend must have and does not; NULL if there is
 * none. */
static const char *missing(const tn_backend_def *b)
{
    const struct {
        const char *name;
        bool there;
    } needed[] = {
        { "enumerate", b->enumerate != NULL },
        { "open", b->open != NULL },
        { "close", b->close != NULL },
        { "alloc", b->alloc != NULL || b->flags & TN_BACKEND_NO_MEMORY },
        { "free", b->free != NULL || b->flags & TN_BACKEND_NO_MEMORY },
        { "copy", b->copy != NULL || b->flags & TN_BACKEND_NO_MEMORY },
        { "stream_drop", b->stream_new == NULL || b->stream_drop != NULL },
        { "stream_sync", b->stream_new == NULL || b->stream_sync != NULL },
        { "event_new", b->stream_new == NULL || b->event_new != NULL },
        { "event_drop", b->stream_new == NULL || b->event_drop != NULL },
        { "event_record", b->stream_new == NULL || b->event_record != NULL },
        { "event_wait", b->stream_new == NULL || b->event_wait != NULL },
        { "event_sync", b->stream_new == NULL || b->event_sync != NULL },
        { "event_query", b->stream_new == NULL || b->event_query != NULL },
        { "stream_new (needed with capture_begin)",
          b->stream_new != NULL || b->capture_begin == NULL },
        { "capture_begin", b->capture_begin != NULL || b->capture_end == NULL },
        { "capture_end", b->capture_end != NULL || b->capture_begin == NULL },
        { "capture_launch", b->capture_launch != NULL || b->capture_begin == NULL },
        { "capture_drop", b->capture_drop != NULL || b->capture_begin == NULL },
        { "memory_share", b->memory_share != NULL || b->memory_open == NULL },
        { "memory_open", b->memory_open != NULL || b->memory_share == NULL },
        { "stream_new (needed with native_event)",
          b->stream_new != NULL || b->native_event == NULL },
        { "stream_new (needed with TN_BACKEND_ASYNC)",
          b->stream_new != NULL || !(b->flags & TN_BACKEND_ASYNC) },
    };

    for (int64_t i = 0; i < tn__countof(needed); i++)
        if (!needed[i].there)
            return needed[i].name;
    return NULL;
}

static bool is_type_name(const char *name)
{
    if (name == NULL || name[0] == '\0' || strlen(name) > 31)
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

static tn__device_type *find_type(const char *name, size_t length)
{
    int32_t count = atomic_load_explicit(&n_types, memory_order_acquire);

    for (int32_t i = 0; i < count; i++)
        if (strncmp(types[i]->backend.type, name, length) == 0 &&
            types[i]->backend.type[length] == '\0')
            return types[i];
    return NULL;
}

tn_status tn__device_add_backend(const tn_backend_def *backend, struct tn__plugin *plugin)
{
    tn__device_type *type = tn_calloc(1, sizeof *type), *other;
    size_t size = backend->head.size;
    int32_t count;
    tn_status status = TN_OK;

    if (type == NULL)
        return TN_ERR_MEMORY;
    memcpy(&type->backend, backend, size < sizeof *backend ? size : sizeof *backend);
    if (!is_type_name(type->backend.type)) {
        status = tn_fail(TN_ERR_VALUE,
                         "backend: type: wrong name, got %q; expected 1 to 31 characters of a "
                         "to z, 0 to 9 and _",
                         type->backend.type != NULL ? type->backend.type : "");
        goto refused;
    }
    if (missing(&type->backend) != NULL) {
        status = tn_fail(TN_ERR_VALUE, "backend %q: function %s: it is NULL; expected a function",
                         type->backend.type, missing(&type->backend));
        goto refused;
    }
    type->plugin = plugin;
    type->count = -1;

    take_lock();
    count = atomic_load_explicit(&n_types, memory_order_relaxed);
    other = find_type(type->backend.type, strlen(type->backend.type));
    if (other != NULL)
        status = tn_fail(TN_ERR_REFUSED, "device type %q: refused from %s; %s provides it already",
                         type->backend.type, tn__plugin_file(plugin),
                         tn__plugin_file(other->plugin));
    else if (count == TN__MAX_DEVICE_TYPES)
        status = tn_fail(TN_ERR_REFUSED,
                         "device type %q: too many device types; expected at most %d",
                         type->backend.type, (int)TN__MAX_DEVICE_TYPES);
    for (int32_t i = 0; i < count && status == TN_OK; i++)
        if (type->backend.dlpack_type != 0 && types[i]->dlpack == type->backend.dlpack_type)
            /* Another backend has this DLPack number. The memory of this backend is separate, so it
             * gets a number of its own. */
            type->backend.dlpack_type = 0;
    if (status == TN_OK) {
        type->index = count;
        type->dlpack = type->backend.dlpack_type != 0 ? type->backend.dlpack_type
                                                      : TN_DEVICE_TYPE_FIRST + n_numbers++;
        types[count] = type;
        atomic_store_explicit(&n_types, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (status == TN_OK)
        return TN_OK;
refused:
    tn_free(type);
    return status;
}

tn__device_type *tn__device_type_find(const char *type)
{
    return find_type(type, strlen(type));
}

tn__device_type *tn__device_type_at(int32_t index)
{
    return index >= 0 && index < tn__device_type_count() ? types[index] : NULL;
}

int32_t tn__device_type_count(void)
{
    return atomic_load_explicit(&n_types, memory_order_acquire);
}

/* ---- enumeration ---- */

static void forget_devices(tn__device_type *type)
{
    for (int32_t i = 0; i < type->count && type->devices != NULL; i++)
        tn_free(type->devices[i]);
    tn_free(type->devices);
    type->devices = NULL;
}

/* Creates the objects of all devices of a type; does not open the devices. The caller holds the
 * lock. */
static tn_status make_devices(tn__device_type *type, int32_t count)
{
    type->count = count;
    type->devices = tn_calloc((size_t)count + 1, sizeof *type->devices);
    if (type->devices == NULL)
        return TN_ERR_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        tn_device *device = tn_calloc(1, sizeof *device);
        if (device == NULL)
            return TN_ERR_MEMORY;
        type->devices[i] = device;
        device->type = type;
        device->index = i;
        device->ordinal = n_devices + i;
        device->flags = (uint32_t)type->backend.flags;
        tn_snprint(device->name, sizeof device->name, "%s:%d", type->backend.type, (int)i);
    }
    n_devices += count;
    return TN_OK;
}

/* The most devices that a backend may have. A larger count is probably a number that was never
 * written. */
enum { MOST_DEVICES = 4096 };

/* Activates the plugin and counts the devices of a type. Returns the same result every time, except
 * that the next call tries again if memory ran out. */
static tn_status enumerate(tn__device_type *type)
{
    const char *before;
    int32_t count = 0;
    tn_status status;

    if (tn__likely(atomic_load_explicit(&type->ready, memory_order_acquire) == 1))
        return TN_OK;
    if (type->plugin != NULL && (status = tn__plugin_use(type->plugin)) != TN_OK)
        return status;
    uint64_t failures = tn__memory_failures();
    take_lock();
    if (atomic_load(&type->ready) != 0) {
        status = atomic_load(&type->ready) == 1 ? TN_OK
                                                : tn_fail(type->failure_code, "%s", type->failure);
        pthread_mutex_unlock(&lock);
        return status;
    }
    tn__log(TN_LOG_DEBUG, "counting devices of type %s (%s)", type->backend.type,
            tn__plugin_file(type->plugin));
    before = tn__error_plugin(type->plugin != NULL ? type->plugin->id : "");
    status = tn__error_status_of(type->backend.enumerate(&type->backend, &count), "enumerate");
    tn__error_plugin(before);
    if (status == TN_OK && (count < 0 || count > MOST_DEVICES))
        status = tn_fail(TN_ERR_DEVICE,
                         "backend %q: wrong number of devices, got %d; expected 0 "
                         "to %d",
                         type->backend.type, (int)count, MOST_DEVICES);
    if (status == TN_OK && count == 0)
        status = tn_fail(TN_ERR_UNAVAILABLE, "backend %q: no device found", type->backend.type);
    if (status != TN_OK && tn__memory_failures() != failures) {
        pthread_mutex_unlock(&lock); /* the next call tries again */
        return status;
    }
    if (type->plugin != NULL)
        tn__plugin_probed(type->plugin, status);
    if (status != TN_OK) {
        /* Devices are enumerated only once. The failure is kept for later calls, if there is memory
         * for it. */
        type->failure_code = status;
        type->failure = tn_strdup(tn_error_last()->message);
        if (type->failure != NULL)
            atomic_store_explicit(&type->ready, -1, memory_order_release);
    } else if ((status = make_devices(type, count)) == TN_OK) {
        atomic_store_explicit(&type->ready, 1, memory_order_release);
    } else {
        forget_devices(type);
        type->count = -1;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- opening ---- */

static tn_status open_parts(tn_device *device)
{
    const tn_backend_def *b = tn__backend(device);
    const char *before = tn__error_plugin(device->type->plugin != NULL ? device->type->plugin->id
                                                                       : "");
    tn__log(TN_LOG_DEBUG, "opening %s (%s)", device->name, tn__plugin_file(device->type->plugin));
    tn_status status = tn__error_status_of(b->open(b, device->index, &device->handle), "open");

    tn__error_plugin(before);
    if (status != TN_OK)
        return status;
    status = tn__streams_open(device);
    if (status == TN_OK) {
        device->allocator = tn__allocator_new(device);
        if (device->allocator == NULL) {
            status = tn_error_last_code();
            tn__streams_close(device);
        }
    }
    if (status != TN_OK)
        b->close(device->handle);
    return status;
}

tn_status tn__device_open(tn_device *device)
{
    tn_status status = TN_OK;
    uint64_t failures = tn__memory_failures();

    if (tn__likely(atomic_load_explicit(&device->open, memory_order_acquire) == 1))
        return TN_OK;
    if (tn__fork_is_child() && (device->flags & TN_BACKEND_AFTER_FORK) == 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "device %s: cannot be opened in a child process after fork; use it before, "
                       "or exec",
                       device->name);
    take_lock();
    switch (atomic_load(&device->open)) {
    case 1: break;
    case -1: status = tn_fail(device->failure_code, "%s", device->failure); break;
    default:
        status = open_parts(device);
        if (status == TN_OK) {
            atomic_store_explicit(&device->open, 1, memory_order_release);
        } else if (status != TN_ERR_MEMORY && tn__memory_failures() == failures) {
            tn_error_prefix("device %s: ", device->name);
            device->failure_code = status;
            device->failure = tn_strdup(tn_error_last()->message);
            if (device->failure != NULL)
                atomic_store_explicit(&device->open, -1, memory_order_release);
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- finding ---- */

static tn_status no_such_type(const char *name, size_t length)
{
    tn__text text = { 0 };
    char type[64];
    const char *names[TN__MAX_DEVICE_TYPES], *near;
    int32_t count = tn__device_type_count();
    tn_status status;

    tn_snprint(type, sizeof type, "%.*s", (int)(length < 40 ? length : 40), name);
    for (int32_t i = 0; i < count; i++)
        names[i] = types[i]->backend.type;
    near = tn__name_nearest(type, names, count);
    tn__text_add(&text, "device %q: does not exist; ", name);
    if (near != NULL)
        tn__text_add(&text, "did you mean %q? ", near);
    tn__text_add(&text, count > 0 ? "device types that plugins provide: "
                                  : "no plugin provides any device");
    for (int32_t i = 0; i < count; i++)
        tn__text_add(&text, i > 0 ? ", %s" : "%s", names[i]);
    if (count == 0)
        tn__plugins_explain_none(&text);
    tn__text_add(&text, "; ");
    tn__plugins_explain(type, &text);
    if (text.length >= 2 && text.at != NULL && !text.failed &&
        strcmp(text.at + text.length - 2, "; ") == 0)
        text.at[text.length -= 2] = '\0';
    status = tn_fail(TN_ERR_UNAVAILABLE, "%s", text.failed ? "no such device" : text.at);
    tn__text_free(&text);
    return status;
}

static void no_such_index(const char *name, const tn__device_type *type)
{
    const char *first = type->devices[0]->name, *last = type->devices[type->count - 1]->name;

    if (type->count == 1)
        tn_fail(TN_ERR_UNAVAILABLE, "device %q: does not exist; %q is the only one of its type",
                name, first);
    else
        tn_fail(TN_ERR_UNAVAILABLE,
                "device %q: does not exist; the %d devices of type %q are %q to %q", name,
                (int)type->count, type->backend.type, first, last);
}

/* Adds what is known of the plugin of a device type (tn__plugins_explain) to a failure. */
static void explain(const char *name, const tn__device_type *type)
{
    tn__text text = { 0 };
    const char *said = tn_error_last()->message;

    tn__plugins_explain(type->backend.type, &text);
    if (text.at != NULL && !text.failed && text.length > 0 && strstr(said, text.at) == NULL)
        tn_error_prefix("device %q: not available (%s): ", name, text.at);
    else
        tn_error_prefix("device %q: not available: ", name);
    tn__text_free(&text);
}

const tn_device *tn_device_find(const char *name)
{
    const char *colon = name != NULL ? strchr(name, ':') : NULL;
    size_t length = colon != NULL ? (size_t)(colon - name) : name != NULL ? strlen(name) : 0;
    tn__device_type *type;
    int64_t index = 0;

    if (name == NULL || length == 0 ||
        (colon != NULL && (!tn_read_int(colon + 1, &index) || index < 0 ||
                           strspn(colon + 1, "0123456789") != strlen(colon + 1)))) {
        tn_fail(TN_ERR_VALUE,
                "device: wrong name, got %q; expected a type, with or without an index, such as "
                "\"" TN__HOST_DEVICE_TYPE "\" and \"" TN__HOST_DEVICE_TYPE ":0\"",
                name != NULL ? name : "");
        return NULL;
    }
    type = find_type(name, length);
    if (type == NULL) {
        if (tn__plugins_discover() != TN_OK)
            return NULL;
        type = find_type(name, length);
    }
    if (type == NULL) {
        no_such_type(name, length);
        return NULL;
    }
    if (enumerate(type) != TN_OK) {
        explain(name, type);
        return NULL;
    }
    if (index >= type->count) {
        no_such_index(name, type);
        return NULL;
    }
    if (tn__device_open(type->devices[index]) != TN_OK) {
        explain(name, type);
        return NULL;
    }
    return type->devices[index];
}

const tn_device *tn__device_of_number(int32_t number, int32_t id)
{
    int32_t count;
    char name[64];

    if (tn__plugins_discover() != TN_OK)
        return NULL;
    count = tn__device_type_count();
    for (int32_t i = 0; i < count; i++)
        if (types[i]->dlpack == number) {
            tn_snprint(name, sizeof name, "%s:%d", types[i]->backend.type, (int)id);
            return tn_device_find(name);
        }
    tn_fail(TN_ERR_UNAVAILABLE,
            "DLPack: device type %d: no plugin provides it (device %d was requested)", (int)number,
            (int)id);
    return NULL;
}

/* ---- listing ---- */

/* Visits the devices in the order of the names of their types. Returns the device of this
 * index, or NULL; *total is then the number of all devices, or -1 if it is not known because a
 * device type failed. */
static const tn_device *count_devices(int64_t index, int64_t *total)
{
    tn__device_type *sorted[TN__MAX_DEVICE_TYPES];
    int32_t count;
    uint64_t mark = tn_error_mark();

    *total = -1;
    if (tn__plugins_discover() != TN_OK)
        return NULL;
    *total = 0;
    count = tn__device_type_count();
    for (int32_t i = 0; i < count; i++) {
        int32_t at = i;
        for (; at > 0 && strcmp(sorted[at - 1]->backend.type, types[i]->backend.type) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = types[i];
    }
    for (int32_t i = 0; i < count; i++) {
        uint64_t failures = tn__memory_failures();
        if (enumerate(sorted[i]) != TN_OK) {
            if (tn__memory_failures() == failures)
                continue;
            *total = -1; /* out of memory: there may be more devices, and the error stays set */
            return NULL;
        }
        if (index >= *total && index < *total + sorted[i]->count) {
            tn_error_restore(mark);
            return sorted[i]->devices[index - *total];
        }
        *total += sorted[i]->count;
    }
    tn_error_restore(mark);
    return NULL;
}

int64_t tn_device_count(void)
{
    int64_t total;

    count_devices(-1, &total);
    return total;
}

const tn_device *tn_device_at(int64_t index)
{
    int64_t total;
    const tn_device *device = count_devices(index, &total);

    if (device == NULL) {
        if (total >= 0)
            tn__error_index(index, total, "device: index: ");
        return NULL;
    }
    return tn_device_find(device->name);
}

/* ---- use ---- */

tn_status tn__device_usable_slow(const tn_device *device)
{
    if (tn__unlikely(device == NULL))
        return tn_fail(TN_ERR_VALUE, "device: it is NULL; expected a device");
    if (tn__unlikely(atomic_load_explicit(&device->lost, memory_order_relaxed) != 0))
        return tn_fail(
            TN_ERR_LOST,
            "device %s: lost, with its tensors; other devices are not affected, and a new process "
            "may use it again",
            device->name);
    if (tn__unlikely((device->flags & TN_BACKEND_AFTER_FORK) == 0 && tn__fork_is_child()))
        return tn_fail(
            TN_ERR_RUNTIME,
            "device %s: does not work after fork; use devices of the host in this child process, "
            "or exec",
            device->name);
    /* A tn_device remains valid after tn_shutdown, and is opened again here. */
    if (tn__unlikely(atomic_load_explicit(&device->open, memory_order_acquire) != 1))
        return tn__device_open((tn_device *)(uintptr_t)device);
    return TN_OK;
}

tn_status tn__device_result(const tn_device *device, tn_status status, const char *what)
{
    if (tn__likely(status == TN_OK))
        return TN_OK;
    if (status == TN_ERR_LOST)
        atomic_store((_Atomic int32_t *)(uintptr_t)&device->lost, 1);
    return tn__error_status_of(status, what);
}

/* ---- memory and events of the backend ---- */

tn_status tn__device_alloc(const tn_device *device, tn_memory *memory)
{
    uint64_t bytes = memory->bytes;
    tn_status status = tn__device_result(device, tn__backend(device)->alloc(device->handle, memory),
                                         "alloc");

    if (status == TN_OK && memory->handle == NULL && (device->flags & TN_BACKEND_NO_MEMORY) == 0)
        return tn_fail(TN_ERR_DEVICE,
                       "backend of %s: returned TN_OK and no memory for %llu bytes; expected "
                       "TN_ERR_MEMORY",
                       device->name, (unsigned long long)bytes);
    return status;
}

void tn__device_free(const tn_device *device, void *handle, uint64_t bytes)
{
    const tn_memory memory = { TN_HEAD(tn_memory), .bytes = bytes, .handle = handle };

    tn__backend(device)->free(device->handle, &memory);
}

tn_status tn__device_event(const tn_device *device, const tn_event_args *args, void **event)
{
    static const tn_event_args plain = { TN_HEAD(tn_event_args) };
    tn_status status = tn__backend(device)->event_new(device->handle, args != NULL ? args : &plain,
                                                      event);

    return tn__device_result(device, status, "event_new");
}

/* ---- the end ---- */

static void close_device(tn_device *device)
{
    if (atomic_load(&device->open) != 1 || atomic_load(&device->handles) != 0 ||
        !tn__allocator_idle(device->allocator))
        return;
    /* Work that still runs uses the memory, and the memory refers to the streams: waits for the
     * work first. */
    if (atomic_load(&device->lost) == 0) {
        uint64_t mark = tn_error_mark();
        (void)tn__streams_sync(device);
        tn_error_restore(mark);
    }
    tn__allocator_free(device->allocator);
    device->allocator = NULL;
    tn__streams_close(device);
    tn__backend(device)->close(device->handle);
    device->handle = NULL;
    atomic_store(&device->open, 0);
}

void tn__devices_shutdown(void)
{
    int32_t count = tn__device_type_count();
    bool forked = tn__fork_is_child();

    tn__thread_free();
    take_lock();
    for (int32_t i = 0; i < count; i++)
        for (int32_t k = 0; k < types[i]->count && types[i]->devices != NULL; k++)
            if (!forked || types[i]->devices[k]->flags & TN_BACKEND_AFTER_FORK)
                close_device(types[i]->devices[k]);
    pthread_mutex_unlock(&lock);
    tn__default_device_forget();
}
