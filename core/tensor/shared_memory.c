/* SPDX-License-Identifier: MIT
 *
 * Storages in memory that this process shares with the processes it forks. Every device whose
 * memory is host memory can use them, because to the device they are memory of the program. The
 * system frees the pages with the last process. */
#include "core/tensor/device.h"

#include <errno.h>
#include <sys/mman.h>

static void release_shared(tn__storage *storage)
{
    munmap(storage->memory, storage->size > 0 ? storage->size : 1);
}

tn__storage *tn__shared_storage(const tn__storage *from)
{
    tn__storage *made;
    size_t size = from->size > 0 ? from->size : 1;
    void *memory;

    if (!tn_device_is_host(from->device)) {
        tn_fail(TN_ERR_VALUE, "device %s: memory cannot be shared; the host cannot access it",
                from->device->name);
        return NULL;
    }
    if (tn__device_usable(from->device) != TN_OK || tn_device_sync(from->device) != TN_OK)
        return NULL;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        tn_fail(TN_ERR_MEMORY, "shared memory: cannot allocate %zu bytes: %s", size,
                strerror(errno));
        return NULL;
    }
    if (from->size > 0)
        memcpy(memory, (const char *)from->memory + from->offset, from->size);
    made = tn__storage_foreign(from->device, memory, 0, from->size, release_shared, NULL, NULL);
    if (made == NULL)
        munmap(memory, size);
    else
        made->flags |= TN__STORAGE_SHARED;
    return made;
}

bool tn_tensor_is_shared(const tn_tensor *tensor)
{
    return tn__tensor_asked(tensor, "tn_tensor_is_shared") &&
           (tensor->storage->flags & TN__STORAGE_SHARED) != 0;
}
