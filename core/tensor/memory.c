/* SPDX-License-Identifier: MIT
 *
 * Tensors in memory of a kind that the program chooses, and memory that several processes share.
 * Each such tensor has an allocation of the backend of its own, which the allocator does not
 * divide. pinned.c has pinned memory, whose tensors are on the host. */
#include "core/tensor/capture.h"
#include "core/tensor/device.h"
#include "core/tensor/pinned.h"
#include "core/tensor/thread.h"

static const char *const names[] = { "device", "pinned", "managed", "shared" };

const char *tn__memory_kind_name(tn_memory_kind kind)
{
    return kind < tn__countof(names) ? names[kind] : NULL;
}

/* ---- storages -------------------------------------------------------------------------------- */

static void give_back(const tn_device *device, tn_memory *memory)
{
    uint64_t mark = tn_error_mark();

    tn__backend(device)->free(device->handle, memory);
    tn_error_restore(mark);
}

static void release(tn__storage *storage)
{
    give_back(storage->device, storage->user[0]);
    atomic_fetch_sub((_Atomic int32_t *)(uintptr_t)&storage->device->handles, 1);
    tn_free(storage->user[0]);
}

static const tn_memory *memory_of(const tn__storage *storage)
{
    return storage->flags & TN__STORAGE_KIND ? storage->user[0] : NULL;
}

/* Creates a tensor over memory that the backend has just given, and gives the memory back if that
 * fails. */
static tn_tensor *over(const tn_device *device, tn_memory *memory, const tn_meta *meta)
{
    tn_memory *kept = tn_malloc(sizeof *kept);
    tn__storage *storage = NULL;
    tn_tensor *tensor;

    if (kept != NULL) {
        *kept = *memory;
        storage = tn__storage_foreign(device, memory->handle, 0, (size_t)memory->bytes, release,
                                      kept, NULL);
    }
    if (storage == NULL) {
        give_back(device, memory);
        tn_free(kept);
        return NULL;
    }
    storage->flags |= TN__STORAGE_KIND;
    if (memory->kind == TN_MEMORY_SHARED && device->flags & TN_BACKEND_AFTER_FORK)
        storage->flags |= TN__STORAGE_SHARED;
    atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&device->handles, 1);
    tensor = tn__tensor_over(storage, meta);
    tn__storage_drop(storage);
    return tensor != NULL ? tn__scope_push(tensor) : NULL;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Fails unless the device has memory of this kind. */
static tn_status check_kind(const tn_device *device, tn_memory_kind kind, const char *function)
{
    tn_device_info info;
    tn__text text = { 0 };
    tn_status status = tn__device_info(device, &info);
    bool there = status == TN_OK && (info.memory_kinds & TN_MEMORY_BIT(kind)) != 0;

    if (there && kind == TN_MEMORY_SHARED)
        there = tn__backend(device)->memory_share != NULL;
    if (there || status != TN_OK)
        return status;
    for (tn_memory_kind i = 0; i < tn__countof(names); i++)
        if (info.memory_kinds & TN_MEMORY_BIT(i))
            tn__text_add(&text, text.length > 0 ? ", %s" : "%s", names[i]);
    status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                     "%s: memory: device %s has none of this kind, got %s; expected one of %s",
                     function, device->name, names[kind], text.failed ? "its own" : text.at);
    tn__text_free(&text);
    return status;
}

static tn_status allocate(const tn_device *device, tn_memory *memory)
{
    uint64_t mark = tn_error_mark();
    tn_status status = tn__device_alloc(device, memory);

    if (status == TN_ERR_MEMORY && tn_device_trim(device) == TN_OK) {
        tn_error_restore(mark);
        status = tn__device_alloc(device, memory);
    }
    if (status != TN_OK)
        return status;
    if (memory->kind == TN_MEMORY_MANAGED && memory->host == NULL)
        status = tn_fail(TN_ERR_DEVICE,
                         "backend of %s: returned managed memory without an address of the host",
                         device->name);
    if (status != TN_OK)
        give_back(device, memory);
    return status;
}

tn_tensor *tn_tensor_empty_in(tn_ints shape, tn_dtype dtype, const tn_device *device,
                              tn_memory_kind kind)
{
    tn_memory memory = { TN_HEAD(tn_memory), .kind = kind };
    tn_meta meta;

    if (kind >= tn__countof(names)) {
        tn_fail(TN_ERR_VALUE, "tn_tensor_empty_in: kind: unknown, got %u; expected 0 to %d", kind,
                (int)tn__countof(names) - 1);
        return NULL;
    }
    if (kind == TN_MEMORY_DEVICE)
        return tn_tensor_empty(shape, dtype, device);
    if ((device == NULL && (device = tn_default_device()) == NULL) ||
        tn__device_usable(device) != TN_OK || tn__tensor_meta_of(&meta, shape, dtype) != TN_OK ||
        tn__tensor_meta_bytes(&meta, &memory.bytes) != TN_OK)
        return NULL;
    if (kind == TN_MEMORY_PINNED)
        return tn__pinned_tensor(shape, meta.dtype, memory.bytes, device);
    if (check_kind(device, kind, "tn_tensor_empty_in") != TN_OK)
        return NULL;
    if (memory.bytes == 0)
        memory.bytes = 1;
    return allocate(device, &memory) == TN_OK ? over(device, &memory, &meta) : NULL;
}

tn_memory_kind tn_tensor_memory_kind(const tn_tensor *tensor)
{
    const tn_memory *memory;

    if (!tn__tensor_asked(tensor, "tn_tensor_memory_kind") || !tn__tensor_ok(tensor))
        return TN_MEMORY_DEVICE;
    if (tensor->storage->flags & TN__STORAGE_PINNED)
        return TN_MEMORY_PINNED;
    memory = memory_of(tensor->storage);
    return memory != NULL ? memory->kind : TN_MEMORY_DEVICE;
}

void *tn__memory_host(const tn__storage *storage)
{
    const tn_memory *memory = memory_of(storage);

    return memory != NULL && memory->kind == TN_MEMORY_MANAGED ? memory->host : NULL;
}

/* ---- sharing --------------------------------------------------------------------------------- */

tn_status tn_tensor_share(tn_tensor *tensor, uint32_t flags, tn_shared *out)
{
    tn_share_args args = { TN_HEAD(tn_share_args), .flags = flags, .fd = -1 };
    const tn_memory *memory;
    const tn_device *device;
    tn_status status;

    if (!tn__tensor_ok(tensor))
        return tn__tensor_bad(tensor, "tn_tensor_share");
    if (!tn__given(out != NULL, "tn_tensor_share: out"))
        return TN_ERR_VALUE;
    if (flags & ~(uint32_t)TN_SHARE_FD)
        return tn_fail(TN_ERR_VALUE,
                       "tn_tensor_share: flags: unknown, got 0x%x; expected bits of 0x%x", flags,
                       TN_SHARE_FD);
    device = tensor->device;
    memory = memory_of(tensor->storage);
    if (memory == NULL || memory->kind != TN_MEMORY_SHARED || memory->flags & TN_MEMORY_FLAG_OPENED)
        return tn_fail(
            TN_ERR_VALUE,
            "tn_tensor_share: tensor: wrong memory, got %s memory%s of %s; expected "
            "shared memory: call tn_tensor_empty_in for it",
            names[tn_tensor_memory_kind(tensor)],
            memory != NULL && memory->flags & TN_MEMORY_FLAG_OPENED ? " of another process" : "",
            device->name);
    status = tn__device_usable(device);
    if (status == TN_OK)
        status = tn__capture_refuse_on(device, "tn_tensor_share", "it waits for the device");
    if (status == TN_OK)
        status = tn__streams_sync(device);
    if (status == TN_OK)
        status = tn__device_result(device,
                                   tn__backend(device)->memory_share(device->handle, memory, &args),
                                   "memory_share");
    if (status != TN_OK)
        return status;
    if (flags & TN_SHARE_FD && args.fd < 0)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "tn_tensor_share: TN_SHARE_FD: device %s has no file descriptors of its "
                       "memory",
                       device->name);
    memset(out, 0, sizeof *out);
    tn_snprint(out->type, sizeof out->type, "%s", tn_device_type(device));
    out->index = device->index;
    out->fd = args.fd;
    out->bytes = memory->bytes;
    out->offset = tensor->view.byte_offset;
    memcpy(out->handle, args.handle, sizeof out->handle);
    return TN_OK;
}

/* Checks what another process sent, as far as the core understands it, and writes the device. */
static tn_status check_shared(const tn_shared *shared, const tn_device **device)
{
    char name[48];

    if (memchr(shared->type, '\0', sizeof shared->type) == NULL || shared->index < 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_tensor_open_shared: shared: no device, got index %d; expected what "
                       "tn_tensor_share wrote",
                       (int)shared->index);
    if (shared->reserved[0] != 0 || shared->reserved[1] != 0)
        return tn_fail(TN_ERR_VERSION,
                       "tn_tensor_open_shared: shared.reserved: reserved in Tenon %s, got 0x%llx "
                       "and 0x%llx; expected 0",
                       tn_version(), (unsigned long long)shared->reserved[0],
                       (unsigned long long)shared->reserved[1]);
    if (*device == NULL) {
        tn_snprint(name, sizeof name, "%s:%d", shared->type, (int)shared->index);
        *device = tn_device_find(name);
        if (*device == NULL)
            return tn_error_prefix("tn_tensor_open_shared: ");
    }
    if (strcmp(tn_device_type(*device), shared->type) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_tensor_open_shared: device: wrong type, got %s; expected %s",
                       (*device)->name, shared->type);
    return TN_OK;
}

/* Writes the offset of the tensor to meta, and checks that the tensor is within the memory. */
static tn_status place(const tn_shared *shared, tn_meta *meta)
{
    uint64_t bytes, item = tn_dtype_size(meta->dtype);
    tn_status status = tn__tensor_meta_bytes(meta, &bytes);

    if (status != TN_OK)
        return status;
    if (shared->bytes < 1 || shared->bytes > INT64_MAX || shared->offset > shared->bytes ||
        bytes > shared->bytes - shared->offset)
        return tn_fail(TN_ERR_VALUE,
                       "tn_tensor_open_shared: shape: beyond the memory, got %llu bytes from %llu "
                       "on; expected at most %llu in all",
                       (unsigned long long)bytes, (unsigned long long)shared->offset,
                       (unsigned long long)shared->bytes);
    if (shared->offset % item != 0)
        return tn_fail(
            TN_ERR_VALUE,
            "tn_tensor_open_shared: dtype: does not fit the offset, got %s at byte %llu; "
            "expected a multiple of %llu",
            tn_dtype_name(meta->dtype), (unsigned long long)shared->offset,
            (unsigned long long)item);
    meta->offset = (int64_t)(shared->offset / item);
    return TN_OK;
}

tn_tensor *tn_tensor_open_shared(const tn_shared *shared, tn_ints shape, tn_dtype dtype,
                                 const tn_device *device)
{
    tn_share_args args = { TN_HEAD(tn_share_args) };
    tn_memory memory = { TN_HEAD(tn_memory), .kind = TN_MEMORY_SHARED,
                         .flags = TN_MEMORY_FLAG_OPENED };
    tn_meta meta;
    tn_status status;

    if (!tn__given(shared != NULL, "tn_tensor_open_shared: shared") ||
        check_shared(shared, &device) != TN_OK || tn__device_usable(device) != TN_OK ||
        check_kind(device, TN_MEMORY_SHARED, "tn_tensor_open_shared") != TN_OK ||
        tn__tensor_meta_of(&meta, shape, dtype) != TN_OK || place(shared, &meta) != TN_OK)
        return NULL;
    args.fd = shared->fd;
    memcpy(args.handle, shared->handle, sizeof args.handle);
    memory.bytes = shared->bytes;
    status = tn__device_result(
        device, tn__backend(device)->memory_open(device->handle, &args, &memory), "memory_open");
    if (status == TN_OK && memory.handle == NULL)
        status = tn_fail(TN_ERR_DEVICE, "backend of %s: memory_open returned TN_OK and no memory",
                         device->name);
    if (status != TN_OK) {
        tn_error_prefix("tn_tensor_open_shared: ");
        return NULL;
    }
    return over(device, &memory, &meta);
}
