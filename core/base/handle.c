/* SPDX-License-Identifier: MIT
 *
 * The handles of all hooks of the process: a table from number to registration. One lock guards it
 * and the lists in which the rooms keep their hooks, so that a removal and the death of what was
 * hooked cannot cross. */
#include "core/base/internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__handle **chains;
static uint64_t chain_count, handle_count; /* a power of two; how many are in the table */
static uint64_t last_id;

void tn__handles_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tn__handles_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static tn_status grow(void)
{
    uint64_t count = chain_count > 0 ? 2 * chain_count : 64;
    tn__handle **fresh = tn_calloc((size_t)count, sizeof *fresh);

    if (fresh == NULL)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < chain_count; i++)
        while (chains[i] != NULL) {
            tn__handle *handle = chains[i];

            chains[i] = handle->next;
            handle->next = fresh[handle->id & (count - 1)];
            fresh[handle->id & (count - 1)] = handle;
        }
    tn_free(chains);
    chains = fresh;
    chain_count = count;
    return TN_OK;
}

uint64_t tn__handle_number(void)
{
    return ++last_id;
}

tn_status tn__handle_add(tn__handle *handle)
{
    tn__handle **chain;

    if (handle_count >= chain_count && grow() != TN_OK)
        return TN_ERR_MEMORY;
    handle->id = tn__handle_number();
    chain = &chains[handle->id & (chain_count - 1)];
    handle->next = *chain;
    *chain = handle;
    handle_count++;
    return TN_OK;
}

void tn__handle_forget(tn__handle *handle)
{
    tn__handle **at = &chains[handle->id & (chain_count - 1)];

    while (*at != handle)
        at = &(*at)->next;
    *at = handle->next;
    if (--handle_count == 0) {
        tn_free(chains);
        chains = NULL;
        chain_count = 0;
    }
}

int64_t tn__handle_count(void)
{
    int64_t count;

    pthread_mutex_lock(&lock);
    count = (int64_t)handle_count;
    pthread_mutex_unlock(&lock);
    return count;
}

bool tn_hook_remove(tn_hook_handle id)
{
    tn__handle *handle;

    pthread_mutex_lock(&lock);
    handle = chain_count > 0 ? chains[id & (chain_count - 1)] : NULL;
    while (handle != NULL && handle->id != id)
        handle = handle->next;
    if (handle != NULL) {
        handle->unlink(handle);
        tn__handle_forget(handle);
    }
    pthread_mutex_unlock(&lock);
    if (handle == NULL)
        return false;
    handle->drop(handle);
    return true;
}
