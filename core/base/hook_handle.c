/* SPDX-License-Identifier: MIT
 *
 * The handles of all hooks of the process: a table from handle number to registration. One lock
 * guards this table and also the lists in which the other folders keep their hooks. Therefore
 * tn_hook_remove() and freeing the object that has the hook cannot run at the same time. */
#include "core/base/map.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__map handles; /* key: number of the handle; value: tn__hook_handle */
static uint64_t last_id;

void tn__hook_handles_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tn__hook_handles_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static const void *key_of(uint64_t id)
{
    return (const void *)(uintptr_t)id;
}

uint64_t tn__hook_handle_number(void)
{
    return ++last_id;
}

tn_status tn__hook_handle_add(tn__hook_handle *handle)
{
    uint64_t id = tn__hook_handle_number();

    if (tn__map_add(&handles, key_of(id)) < 0)
        return TN_ERR_MEMORY;
    handle->id = id;
    *tn__map_value(&handles, key_of(id)) = handle;
    return TN_OK;
}

void tn__hook_handle_forget(tn__hook_handle *handle)
{
    tn__map_remove(&handles, key_of(handle->id));
    if (handles.count == 0)
        tn__map_free(&handles);
}

int64_t tn__hook_handle_count(void)
{
    int64_t count;

    pthread_mutex_lock(&lock);
    count = handles.count;
    pthread_mutex_unlock(&lock);
    return count;
}

bool tn_hook_remove(tn_hook_handle id)
{
    tn__hook_handle *handle;

    pthread_mutex_lock(&lock);
    void **found = tn__map_value(&handles, key_of(id));
    handle = found != NULL ? *found : NULL;
    if (handle != NULL) {
        handle->unlink(handle);
        tn__hook_handle_forget(handle);
    }
    pthread_mutex_unlock(&lock);
    if (handle == NULL)
        return false;
    handle->drop(handle);
    return true;
}
