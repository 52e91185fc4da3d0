/* SPDX-License-Identifier: MIT
 *
 * Two parts of loading a state: copying the values of a tensor, or giving a tensor of the module
 * the memory of a tensor of the state instead (TN_LOAD_TAKE); and tensors that the module has under
 * several names, of which a state may have only one. */
#include "core/base/vector.h"
#include "core/module/loading.h"

/* ---- taking memory --------------------------------------------------------------------------- */

static tn_status each(tn_module *module, void *user,
                      tn_status (*visit)(void *user, const char *path, tn_tensor *tensor))
{
    tn_status status = tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, visit, user);
    return status == TN_OK ? tn_module_each_tensor(module, TN_SLOT_BUFFER, false, visit, user)
                           : status;
}

static tn_status mark(void *user, const char *path, tn_tensor *tensor)
{
    (void)user;
    (void)path;
    if (tn_device_has_memory(tensor->device))
        tensor->storage->flags |= TN__STORAGE_UNSET;
    return TN_OK;
}

tn_status tn__load_take_mark(tn_module *module)
{
    return each(module, NULL, mark);
}

static tn_status find_wanted(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    if (!tn_device_has_memory(tensor->device) || (tensor->storage->flags & TN__STORAGE_UNSET) != 0)
        *(bool *)user = true;
    return TN_OK;
}

tn_status tn__load_take_wanted(tn_module *module, bool *wanted)
{
    *wanted = false;
    return each(module, wanted, find_wanted);
}

/* Returns whether `from` fills its storage, in row-major order. Other memory is not taken: a view
 * of a large storage would keep all of it. */
static bool is_whole(const tn_tensor *from)
{
    return from->contiguous &&
           (uint64_t)from->numel * tn_dtype_size((tn_dtype)from->dtype) == from->storage->size;
}

static bool fits(const tn_tensor *to, const tn_tensor *from)
{
    return to->dtype == from->dtype && to->contiguous && is_whole(from) &&
           (!tn_device_has_memory(to->device) || to->device == from->device);
}

/* Exchanges the contents of `to` with those of a new tensor: an alias of `from`, or a copy of it
 * with the dtype of `to`. */
static tn_status exchange(tn_tensor *to, tn_tensor *from, bool alias)
{
    tn_meta meta = { .dtype = (tn_dtype)to->dtype, .ndim = to->view.ndim };
    tn_status status = TN_OK;
    tn_tensor *with;

    for (int32_t i = 0; i < meta.ndim; i++)
        meta.shape[i] = to->view.shape[i];
    with = alias ? tn__tensor_alias(from) : tn__tensor_make(&meta, from->device);
    if (with == NULL)
        return tn_error_last_code();
    if (!alias && with->numel > 0)
        status = tn__copy(with, from);
    if (status == TN_OK)
        status = tn_tensor_swap(to, with);
    tn_tensor_drop(with);
    return status;
}

/* Gives `to`, a tensor of the module, the memory of `from`, if nothing needs the values that `to`
 * has. The object, its gradient and requires_grad stay. Gives `to` a copy if the memory of `from`
 * cannot be taken and `to` is on a device without memory or has already taken memory in this load.
 * *done becomes false if the caller must copy the values. */
static tn_status take(tn__load_taken *taken, tn_tensor *to, tn_tensor *from, bool *done)
{
    bool again = tn__map_value(&taken->tensors, to) != NULL;
    bool empty = !tn_device_has_memory(to->device);

    *done = true;
    if (tn__tensor_same_view(to, from))
        return TN_OK;
    *done = false;
    if (!tn_device_has_memory(from->device))
        return TN_OK;
    /* Memory that has views must not be replaced, because the views would keep the old memory. A
     * tensor that has already taken memory in this load (`again`: it is tied, and this is its
     * second value) always gets other memory, because copying would write to the tensor of the
     * state. */
    if (!empty && !again &&
        ((to->storage->flags & TN__STORAGE_UNSET) == 0 || atomic_load(&to->storage->refs) != 1))
        return TN_OK;
    /* If another tensor of the module has taken the memory of `from`, it is not taken again. */
    int fresh = fits(to, from) ? tn__map_add(&taken->storages, from->storage) : 0;
    if (fresh < 0 || tn__map_add(&taken->tensors, to) < 0)
        return TN_ERR_MEMORY;
    if (fresh == 0 && !empty && !again)
        return TN_OK;
    tn_status status = exchange(to, from, fresh > 0);
    *done = status == TN_OK;
    return status;
}

static tn_status copy_values(const char *key, tn_tensor *to, tn_tensor *from)
{
    const tn_device *there = tn_tensor_device(to), *here = tn_tensor_device(from);
    if (tn_tensor_numel(to) == 0)
        return TN_OK;
    if (!tn_device_has_memory(there)) {
        if (tn_device_has_memory(here))
            tn__log(TN_LOG_WARNING,
                    "for %s: copying from the checkpoint to a tensor on %s, which has no values, "
                    "does nothing; TN_LOAD_ASSIGN puts the checkpoint's tensor in its place",
                    key, tn_device_name(there));
        return TN_OK;
    }
    if (!tn_device_has_memory(here))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "the tensor to copy from is on %s, which has no values; expected a state of "
                       "a device with memory",
                       tn_device_name(here));
    return tn__copy(to, from);
}

tn_status tn__load_values(tn__load_taken *taken, const char *key, tn_tensor *to, tn_tensor *from)
{
    bool done = false;
    tn_status status = taken != NULL ? take(taken, to, from, &done) : TN_OK;
    return status != TN_OK || done ? status : copy_values(key, to, from);
}

void tn__load_taken_free(tn__load_taken *taken)
{
    tn__map_free(&taken->tensors);
    tn__map_free(&taken->storages);
}

/* ---- ties ------------------------------------------------------------------------------------ */

/* Keeps a reference to a tensor, so that no other tensor gets its address during the load. */
static tn_status keep_tie(tn__load_ties *ties, tn_tensor *tensor, const char *key)
{
    if (!tn__vector_room(&ties->at, &ties->capacity, ties->count + 1, sizeof *ties->at))
        return TN_ERR_MEMORY;
    char *copy = key != NULL ? tn_strdup(key) : NULL;
    if (key != NULL && copy == NULL)
        return TN_ERR_MEMORY;
    ties->at[ties->count].tensor = tn_tensor_keep(tensor);
    ties->at[ties->count++].missing = copy;
    return TN_OK;
}

tn_status tn__load_ties_found(tn__load_ties *ties, tn_tensor *tensor)
{
    int added = tn__map_add(&ties->found, tensor);
    if (added < 0)
        return TN_ERR_MEMORY;
    return added > 0 ? keep_tie(ties, tensor, NULL) : TN_OK;
}

tn_status tn__load_ties_missing(tn__load_ties *ties, tn_tensor *tensor, const char *key)
{
    return keep_tie(ties, tensor, key);
}

void tn__load_ties_settle(const tn__load_ties *ties, tn_names *missing)
{
    for (int64_t i = 0; i < ties->count; i++) {
        const char *key = ties->at[i].missing;
        if (key == NULL || tn__map_value(&ties->found, ties->at[i].tensor) == NULL)
            continue;
        for (int64_t n = missing->count - 1; n >= 0; n--)
            if (strcmp(missing->at[n], key) == 0)
                tn_names_remove(missing, n);
    }
}

void tn__load_ties_free(tn__load_ties *ties)
{
    for (int64_t i = 0; i < ties->count; i++) {
        tn_tensor_drop(ties->at[i].tensor);
        tn_free(ties->at[i].missing);
    }
    tn_free(ties->at);
    tn__map_free(&ties->found);
}
