/* SPDX-License-Identifier: MIT
 *
 * The device of new tensors: set by the thread (tn_device_begin), by the program
 * (tn_set_default_device) or by the environment (TENON_DEVICE). */
#include "core/plugin/internal.h"
#include "core/tensor/device.h"
#include "core/tensor/thread.h"

/* The default device of the process; NULL until first needed. */
static const tn_device *_Atomic resolved;

/* Returns whether a name in a list of devices is probably misspelt: no plugin provides the device
 * type or tried to, the type has no device of this index, or it is not a device name. The caller
 * then warns, even if a later name of the list works. */
static bool is_misspelt(const char *name)
{
    char type[64];
    tn__text line = { 0 };
    const tn__device_type *found;
    int64_t index = 0;

    tn_snprint(type, sizeof type, "%.*s", (int)strcspn(name, ":"), name);
    tn__plugins_explain(type, &line);
    found = tn__device_type_find(type);
    bool known = tn_error_last_code() != TN_ERR_VALUE && (found != NULL || line.length > 0);
    if (known && found != NULL && name[strlen(type)] == ':' && found->count > 0)
        known = tn_read_int(name + strlen(type) + 1, &index) && index < found->count;
    tn__text_free(&line);
    return !known;
}

/* Returns the first device of a list "a,b:1,c" that is available. Logs which one it is, and why the
 * ones before it are not available. */
static const tn_device *choose(const char *names)
{
    const char *at = names;
    const tn_device *device = NULL;
    tn__text why = { 0 }, odd = { 0 };
    uint64_t mark = tn_error_mark();
    int64_t tried = 0;
    bool short_of_memory = false;

    while (device == NULL && !short_of_memory && *at != '\0') {
        size_t length = strcspn(at, ",");
        const char *next = at + length + (at[length] == ',');
        char name[64];

        while (length > 0 && (*at == ' ' || *at == '\t')) {
            at++;
            length--;
        }
        while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
            length--;
        if (length > 0) {
            tn_snprint(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), at);
            uint64_t failures = tn__memory_failures();
            device = tn_device_find(name);
            /* This device may be available when memory is free again. So a later device of the list
             * is not made the default permanently. */
            short_of_memory = device == NULL && tn__memory_failures() != failures;
            if (device == NULL) {
                tn__text_add(&why, tried > 0 ? "; %s" : "%s", tn_error_last()->message);
                if (is_misspelt(name))
                    tn__text_add(&odd, odd.length > 0 ? "; %s" : "%s", tn_error_last()->message);
            }
            tried++;
        }
        at = next;
    }
    if (device != NULL) {
        tn_error_restore(mark);
        if (odd.length > 0)
            tn__log(TN_LOG_WARNING, "new tensors are on %s; in the list %q a name may be wrong: %s",
                    device->name, names, odd.failed || odd.at == NULL ? "?" : odd.at);
        if (tried > 1)
            tn__log(TN_LOG_INFO,
                    "new tensors are on %s, the first of %q that is available; not available: %s",
                    device->name, names, why.failed || why.at == NULL ? "?" : why.at);
        else
            tn__log(TN_LOG_INFO, "new tensors are on %s", device->name);
    } else if (tried == 0) {
        tn_fail(TN_ERR_VALUE,
                "default device: no name, got %q; expected a device name, or several separated "
                "by commas",
                names);
    } else if (tried > 1 && !short_of_memory) {
        tn_error_restore(mark);
        tn_fail(TN_ERR_UNAVAILABLE, "default device: none of %q is available: %s", names,
                why.failed || why.at == NULL ? "?" : why.at);
    }
    tn__text_free(&why);
    tn__text_free(&odd);
    return device;
}

const tn_device *tn_default_device(void)
{
    const tn__thread *thread = tn__thread_here;
    const tn_device *device;
    const char *names;

    if (thread != NULL && thread->n_devices > 0 &&
        (device = thread->devices[thread->n_devices - 1]) != NULL)
        return device;
    device = atomic_load_explicit(&resolved, memory_order_acquire);
    if (tn__likely(device != NULL))
        return device;
    if (tn__env_read("TENON_DEVICE", &names) != TN_OK)
        return NULL;
    device = choose(names != NULL && names[0] != '\0' ? names : TN__HOST_DEVICE_TYPE);
    if (device != NULL)
        atomic_store_explicit(&resolved, device, memory_order_release);
    return device;
}

tn_status tn_set_default_device(const char *names)
{
    const tn_device *device;

    if (names == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_set_default_device: name: it is NULL; expected a device "
                                     "name");
    device = choose(names);
    if (device == NULL)
        return tn_error_last_code();
    atomic_store_explicit(&resolved, device, memory_order_release);
    return TN_OK;
}

/* Number of calls of tn_device_begin that ran out of memory, or that were made inside such a call.
 * The matching calls of tn_device_end must not end an outer device. */
static _Thread_local int64_t missed;

tn_status tn_device_begin(const tn_device *device)
{
    uint64_t before = tn__error_count();
    tn__thread *thread = tn__thread_get();

    /* NULL keeps the previous device in use, so that begin and end still come in pairs. */
    if (thread == NULL || missed > 0 ||
        !tn__vector_room(&thread->devices, &thread->devices_capacity, thread->n_devices + 1,
                         sizeof *thread->devices)) {
        if (thread != NULL && missed > 0)
            tn_fail(
                TN_ERR_MEMORY,
                "tn_device_begin: the enclosing call ran out of memory; the previous device stays "
                "in use");
        missed++;
        if (tn__error_count() == before)
            tn_fail(TN_ERR_MEMORY, "tn_device_begin: out of memory; the previous device stays in "
                                   "use");
        return TN_ERR_MEMORY;
    }
    if (device == NULL && thread->n_devices > 0)
        device = thread->devices[thread->n_devices - 1];
    thread->devices[thread->n_devices++] = device;
    return TN_OK;
}

void tn_device_end(void)
{
    tn__thread *thread = tn__thread_here;

    if (missed > 0)
        missed--;
    else if (thread == NULL || thread->n_devices == 0)
        tn_fail(TN_ERR_RUNTIME, "tn_device_end: no tn_device_begin in this thread");
    else
        thread->n_devices--;
}

void tn__default_device_forget(void)
{
    atomic_store(&resolved, NULL);
}
