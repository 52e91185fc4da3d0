/* SPDX-License-Identifier: MIT
 *
 * Storages: the reference-counted memory of tensors. The storages of allocated memory are in the
 * blocks of the allocator. This file has the storages of foreign memory and of tensors without
 * memory, and frees all kinds. */
#include "core/tensor/allocator.h"

__thread tn__making_now tn__making __attribute__((tls_model("initial-exec")));

tn__storage *tn__storage_object(void)
{
    tn__thread *thread = tn__thread_here;
    tn__storage *storage;

    if (thread != NULL && thread->free_storages != NULL) {
        storage = thread->free_storages;
        TN__UNPOISON(storage, sizeof *storage);
        thread->free_storages = storage->user[0];
        thread->n_free_storages--;
        memset(storage, 0, sizeof *storage);
    } else {
        storage = tn_calloc(1, sizeof *storage);
        if (storage == NULL)
            return NULL;
    }
    storage->size_class = TN__SIZE_CLASSES;
    atomic_store_explicit(&storage->refs, 1, memory_order_relaxed);
    return storage;
}

void tn__storage_object_free(tn__storage *storage)
{
    tn__thread *thread = tn__thread_here;

    if (thread == NULL || thread->n_free_storages >= TN__FREE_OBJECTS) {
        tn_free(storage);
        return;
    }
    storage->user[0] = thread->free_storages;
    thread->free_storages = storage;
    thread->n_free_storages++;
    /* The link in `user` stays readable, because LeakSanitizer follows it. */
    TN__POISON(storage, offsetof(tn__storage, user));
}

void tn__storage_free_objects(tn__thread *thread)
{
    while (thread->free_storages != NULL) {
        tn__storage *storage = thread->free_storages;
        TN__UNPOISON(storage, sizeof *storage);
        thread->free_storages = storage->user[0];
        tn_free(storage);
    }
    thread->n_free_storages = 0;
}

tn__storage *tn__storage_foreign(const tn_device *device, void *memory, uint64_t offset,
                                 size_t size, void (*release)(tn__storage *self), void *user0,
                                 void *user1)
{
    tn__storage *storage = tn__device_usable(device) == TN_OK ? tn__storage_object() : NULL;

    if (storage == NULL)
        return NULL;
    storage->flags = (uint16_t)(TN__STORAGE_FOREIGN |
                                (tn__making.is.inference ? TN__STORAGE_INFERENCE : 0));
    storage->device = device;
    storage->memory = memory;
    storage->offset = offset;
    storage->size = size;
    storage->stream = tn__stream_current(device);
    storage->release = release;
    storage->user[0] = user0;
    storage->user[1] = user1;
    return storage;
}

void tn__storage_free(tn__storage *storage)
{
    tn__weight_cache *weights = atomic_load_explicit(&storage->weights, memory_order_relaxed);

    if (tn__unlikely(weights != NULL)) {
        atomic_store_explicit(&storage->weights, NULL, memory_order_relaxed);
        weights->drop(weights);
    }
    if (storage->block != NULL) {
        tn__allocator_put(storage->device->allocator, storage);
        return;
    }
    if (storage->release != NULL) {
        /* The end of work with foreign memory is not known: waits for all work. */
        tn__streams_drain(storage->device);
        storage->release(storage);
    }
    tn__storage_object_free(storage);
}
