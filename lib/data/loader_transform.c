/* SPDX-License-Identifier: MIT
 *
 * Transforms of whole batches. The thread that reads a batch applies them on the host;
 * tn_loader_next copies the result to the device of the loader. */
#include "lib/data/loader.h"

/* ---- on the host ----------------------------------------------------------------------------- */

/* Returns the index in the keys of random numbers. It is negative, unlike the index of a sample,
 * and not -1, which is the index of the order. Batches of other ranks have other numbers. */
static int64_t key_index(const tn_loader *loader, int64_t number)
{
    return -2 - (number * loader->options.ranks + loader->options.rank);
}

tn_status tn__loader_transform(const tn_loader *loader, int64_t number, tn__batch *batch)
{
    const tn__steps *steps = &loader->steps;
    const tn__work work = { loader->seed,
                            atomic_load_explicit(&loader->epoch, memory_order_relaxed),
                            key_index(loader, number), tn_dataset_classes(loader->dataset) };
    tn_pack *in = tn__batch_pack(batch), *next;
    tn_status status = in != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < steps->count && status == TN_OK; i++) {
        next = tn_pack_new();
        status = next == NULL ? TN_ERR_MEMORY
                              : tn__transform_list_apply(&steps->at[i], &work, i, in, next);
        tn_pack_drop(in);
        in = next;
    }
    if (status == TN_OK) {
        batch->made = in;
        return TN_OK;
    }
    tn_pack_drop(in);
    return tn_error_prefix("loader: batch %lld: ", (long long)number);
}

/* ---- on the device --------------------------------------------------------------------------- */

static tn_status move(const tn_device *device, const tn_value *from, tn_value *to,
                      tn__arena *arena);

/* Starts the copy of a tensor. The innermost scope owns the result. */
static tn_status move_tensor(const tn_device *device, tn_tensor *from, tn_value *to)
{
    tn_meta meta;
    tn_tensor *tensor;

    *to = tn_value_tensor(from);
    if (!tn__tensor_ok(from) || from->device == device)
        return TN_OK;
    tn__tensor_meta(from, &meta);
    meta.flags = 0;
    meta.offset = 0;
    tensor = tn__tensor_make(&meta, device);
    if (tensor == NULL || (tensor = tn_tensor_to_scope(tensor)) == NULL)
        return tn_error_last_code();
    *to = tn_value_tensor(tensor);
    return tn_tensor_copy_async(tensor, from);
}

static tn_status move_list(const tn_device *device, const tn_value *from, tn_value *to,
                           tn__arena *arena)
{
    tn_value *list = tn__arena_alloc(arena, ((size_t)from->count + 1) * sizeof *list);
    tn_status status = list != NULL ? TN_OK : TN_ERR_MEMORY;

    for (uint32_t i = 0; i < from->count && status == TN_OK; i++)
        status = move(device, &from->as.list[i], &list[i], arena);
    *to = (tn_value){ from->kind, from->count, { .list = list } };
    return status;
}

static tn_status move(const tn_device *device, const tn_value *from, tn_value *to, tn__arena *arena)
{
    switch (from->kind) {
    case TN_VALUE_TENSOR: return move_tensor(device, from->as.tensor, to);
    case TN_VALUE_LIST:
    case TN_VALUE_TUPLE:
    case TN_VALUE_DICT: return move_list(device, from, to, arena);
    default: *to = *from; return TN_OK;
    }
}

static tn_pack *moved(const tn_loader *loader, const tn_pack *host)
{
    tn_pack *pack = tn_pack_new();
    tn__arena *arena = pack != NULL ? tn__arena_new() : NULL;
    tn_status status = arena != NULL ? TN_OK : TN_ERR_MEMORY;
    uint64_t scope = tn_scope_begin();

    for (int64_t i = 0; i < tn_pack_count(host) && status == TN_OK; i++) {
        const tn_value from = tn_pack_at(host, i);
        tn_value to;

        status = move(loader->device, &from, &to, arena);
        if (status == TN_OK)
            status = tn_pack_add(pack, tn_pack_name(host, i), to);
    }
    tn_scope_end(scope);
    tn__arena_free(arena);
    if (status == TN_OK)
        return pack;
    tn_pack_drop(pack);
    return NULL;
}

tn_pack *tn__loader_pack(const tn_loader *loader, const tn__batch *batch)
{
    return batch->made == NULL ? tn__batch_pack(batch) : moved(loader, batch->made);
}
