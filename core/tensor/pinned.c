/* SPDX-License-Identifier: MIT
 *
 * Pinned tensors: tensors of the host whose memory a device copies from and to by itself. A copy
 * may still be running when a call returns, and is waited for here. */
#include "core/tensor/pinned.h"
#include "core/tensor/thread.h"

struct tn__pinned {
    const tn_device *owner;
    tn_memory memory;
    pthread_mutex_t lock;
    tn_event *last; /* recorded after the last copy that may still be running; NULL: none */
};

static void release(void *user, void *data)
{
    tn__pinned *pinned = user;
    uint64_t mark = tn_error_mark();

    (void)data;
    if (pinned->last != NULL)
        (void)tn_event_sync(pinned->last); /* tn_stream_sync returns a failure of the copy */
    tn_event_drop(pinned->last);
    tn__backend(pinned->owner)->free(pinned->owner->handle, &pinned->memory);
    atomic_fetch_sub((_Atomic int32_t *)(uintptr_t)&pinned->owner->handles, 1);
    pthread_mutex_destroy(&pinned->lock);
    tn_free(pinned);
    tn_error_restore(mark);
}

static tn__pinned *pinned_new(const tn_device *owner, uint64_t bytes)
{
    tn__pinned *pinned = tn_calloc(1, sizeof *pinned);

    if (pinned == NULL)
        return NULL;
    pinned->owner = owner;
    pinned->memory = (tn_memory){ TN_HEAD(tn_memory), .bytes = bytes > 0 ? bytes : 1,
                                  .kind = TN_MEMORY_PINNED };
    if (tn__device_alloc(owner, &pinned->memory) != TN_OK) {
        tn_free(pinned);
        return NULL;
    }
    pthread_mutex_init(&pinned->lock, NULL);
    atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&owner->handles, 1);
    if (pinned->memory.host == NULL) {
        tn_fail(TN_ERR_DEVICE,
                "backend of %s: returned pinned memory without an address of the host",
                owner->name);
        release(pinned, NULL);
        return NULL;
    }
    return pinned;
}

tn_tensor *tn__pinned_tensor(tn_ints shape, tn_dtype dtype, uint64_t bytes, const tn_device *device)
{
    const tn_device *host = tn_device_find(TN__HOST_DEVICE_TYPE);
    tn_device_info info;
    tn__pinned *pinned;
    tn_tensor *tensor;

    if (host == NULL || tn__device_info(device, &info) != TN_OK)
        return NULL;
    if ((info.memory_kinds & TN_MEMORY_BIT(TN_MEMORY_PINNED)) == 0)
        return tn_tensor_empty(shape, dtype, host);
    pinned = pinned_new(device, bytes);
    if (pinned == NULL)
        return NULL;
    tensor = tn_tensor_wrap(pinned->memory.host, dtype, shape, NULL, host, release, pinned);
    if (tensor == NULL) {
        release(pinned, NULL);
        return NULL;
    }
    tensor->storage->flags |= TN__STORAGE_PINNED;
    return tensor;
}

static tn__pinned *pinned_of(const tn__storage *storage)
{
    return storage->flags & TN__STORAGE_PINNED ? storage->user[1] : NULL;
}

bool tn__pinned_serves(const tn_tensor *tensor, const tn_device *device)
{
    const tn__pinned *pinned = pinned_of(tensor->storage);

    return pinned != NULL && pinned->owner->type == device->type;
}

tn_status tn__pinned_begin(const tn_tensor *tensor, const tn_device *device)
{
    tn__pinned *pinned = pinned_of(tensor->storage);
    tn_status status = TN_OK;

    pthread_mutex_lock(&pinned->lock);
    /* One event is enough for all copies, because the stream of each copy waits for the copy
     * before. */
    if (pinned->last != NULL)
        status = tn_event_wait(pinned->last, tn__stream_current(device));
    if (status != TN_OK)
        pthread_mutex_unlock(&pinned->lock);
    return status;
}

tn_status tn__pinned_end(const tn_tensor *tensor, const tn_device *device, tn_status copied)
{
    tn__pinned *pinned = pinned_of(tensor->storage);
    tn_event *event = tn_event_record(device, NULL, 0);
    tn_status status = copied;

    if (event != NULL) {
        tn_event_drop(pinned->last);
        pinned->last = event;
    } else {
        /* Without an event, the release of the memory could not wait for the copy: waits here. */
        (void)tn_stream_sync(tn__stream_current(device));
        status = copied != TN_OK ? copied : tn_error_last_code();
    }
    pthread_mutex_unlock(&pinned->lock);
    return status;
}

tn_status tn__pinned_wait(const tn__storage *storage)
{
    tn__pinned *pinned = pinned_of(storage);
    tn_status status = TN_OK;

    if (tn__likely(pinned == NULL))
        return TN_OK;
    pthread_mutex_lock(&pinned->lock);
    if (pinned->last != NULL)
        status = tn_event_sync(pinned->last);
    if (status == TN_OK) {
        tn_event_drop(pinned->last);
        pinned->last = NULL;
    }
    pthread_mutex_unlock(&pinned->lock);
    return status;
}
