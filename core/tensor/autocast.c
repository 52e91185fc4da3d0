/* SPDX-License-Identifier: MIT
 *
 * Autocast: the regions of a thread, and the casts of parameters that they keep until the outermost
 * region ends. */
#include "core/tensor/autocast.h"

#include "core/base/vector.h"
#include "core/plugin/internal.h"
#include "core/tensor/thread.h"

_Thread_local bool tn__autocast_here TN__TLS_NEAR;
static _Thread_local bool cache_off TN__TLS_NEAR;
/* Number of begins that ran out of memory, or that were made inside of such a begin. */
static _Thread_local int64_t missed;

/* A cast that the region keeps. The reference to the source makes sure that no other tensor gets
 * its address. */
struct kept {
    tn_tensor *source, *cast;
    const tn__storage *storage;
    uint64_t version;
    bool recorded; /* gradients reach the source through the cast */
};

struct level {
    tn__autocast_modes before;
    /* 1 + index of the first cast that this level may use; 0: the level may use the same casts as
     * the level around it */
    int64_t first;
    bool was_on;
};

struct tn__autocast {
    tn__autocast_modes now;
    struct level *levels;
    int64_t n_levels, levels_capacity;
    struct kept *kept;
    int64_t n_kept, kept_capacity;
};

static struct tn__autocast *state(void)
{
    tn__thread *thread = tn__thread_get();

    if (thread != NULL && thread->autocast == NULL)
        thread->autocast = tn_calloc(1, sizeof *thread->autocast);
    return thread != NULL ? thread->autocast : NULL;
}

static struct tn__autocast *state_here(void)
{
    return tn__thread_here != NULL ? tn__thread_here->autocast : NULL;
}

static void drop_kept(struct tn__autocast *autocast, int64_t first)
{
    while (autocast->n_kept > first) {
        struct kept *row = &autocast->kept[--autocast->n_kept];

        tn_tensor_drop(row->cast);
        tn_tensor_drop(row->source);
    }
}

static bool is_any_on(const struct tn__autocast *autocast)
{
    for (int32_t i = 0; i < TN__MAX_DEVICE_TYPES; i++)
        if (autocast->now.dtype[i] != 0)
            return true;
    return false;
}

/* ---- regions --------------------------------------------------------------------------------- */

static const tn__device_type *type_of(const char *name, const char *who)
{
    const tn__device_type *type = name != NULL ? tn__device_type_find(name) : NULL;

    if (type == NULL && name != NULL && tn__plugins_discover() != TN_OK)
        return NULL;
    if (type == NULL && name != NULL)
        type = tn__device_type_find(name);
    if (type == NULL)
        tn_fail(TN_ERR_VALUE,
                "%s: device_type: no plugin provides it, got %q; expected a type without an index, "
                "such as \"" TN__HOST_DEVICE_TYPE "\": `tenon plugins` prints which plugins were "
                "loaded, and why others were not",
                who, name);
    return type;
}

static tn_dtype default_dtype(const tn__device_type *type)
{
    return (type->backend.flags & TN_BACKEND_HOST_MEMORY) != 0 ? TN_BF16 : TN_F16;
}

/* Begins a level that changes nothing yet. */
static tn_status begin(void)
{
    struct tn__autocast *autocast = missed == 0 ? state() : NULL;
    struct level *level;

    if (autocast == NULL || !tn__vector_room(&autocast->levels, &autocast->levels_capacity,
                                             autocast->n_levels + 1, sizeof *autocast->levels)) {
        missed++;
        return tn_fail(TN_ERR_MEMORY, "tn_autocast_begin: out of memory; the previous mode stays");
    }
    level = &autocast->levels[autocast->n_levels++];
    level->before = autocast->now;
    level->first = 0;
    level->was_on = tn__autocast_here;
    return TN_OK;
}

tn_status tn_autocast_begin(const char *device_type, tn_dtype dtype, bool enabled)
{
    tn_status status = begin();
    const tn__device_type *type;

    if (status != TN_OK)
        return status;
    type = type_of(device_type, "tn_autocast_begin");
    if (type == NULL)
        return tn_error_last_code();
    if (dtype == TN_DTYPE_AUTO)
        dtype = default_dtype(type);
    if (dtype != TN_BF16 && dtype != TN_F16)
        return tn_fail(TN_ERR_TYPE,
                       "tn_autocast_begin: dtype: wrong, got %s; expected bfloat16 or float16",
                       tn_dtype_name(dtype));
    struct tn__autocast *autocast = state_here();
    autocast->now.dtype[type->index] = enabled ? (uint8_t)(dtype + 1) : 0;
    tn__autocast_here = is_any_on(autocast);
    return TN_OK;
}

void tn_autocast_end(void)
{
    struct tn__autocast *autocast = state_here();
    const struct level *level;

    if (missed > 0) {
        missed--;
        return;
    }
    if (autocast == NULL || autocast->n_levels == 0) {
        tn_fail(TN_ERR_RUNTIME, "tn_autocast_end: no tn_autocast_begin in this thread");
        return;
    }
    level = &autocast->levels[--autocast->n_levels];
    autocast->now = level->before;
    tn__autocast_here = level->was_on;
    if (autocast->n_levels == 0 || level->first > 0)
        drop_kept(autocast, level->first > 0 ? level->first - 1 : 0);
}

tn_status tn__autocast_begin_with(const tn__autocast_modes *modes)
{
    tn_status status = begin();
    struct tn__autocast *autocast;

    if (status != TN_OK)
        return status;
    autocast = state_here();
    autocast->now = *modes;
    autocast->levels[autocast->n_levels - 1].first = autocast->n_kept + 1;
    tn__autocast_here = is_any_on(autocast);
    return TN_OK;
}

void tn__autocast_get(tn__autocast_modes *modes)
{
    const struct tn__autocast *autocast = state_here();

    memset(modes, 0, sizeof *modes);
    if (autocast != NULL && tn__autocast_here)
        *modes = autocast->now;
}

int64_t tn__autocast_depth(void)
{
    const struct tn__autocast *autocast = state_here();

    return autocast != NULL ? autocast->n_levels : 0;
}

tn_dtype tn__autocast_dtype_of(const tn__device_type *type)
{
    const struct tn__autocast *autocast = state_here();
    uint8_t dtype = autocast != NULL && type != NULL ? autocast->now.dtype[type->index] : 0;

    return dtype != 0 ? (tn_dtype)(dtype - 1) : TN_DTYPE_AUTO;
}

bool tn_autocast_enabled(const char *device_type)
{
    const tn__device_type *type = type_of(device_type, "tn_autocast_enabled");

    return type != NULL && tn__autocast_here && tn__autocast_dtype_of(type) != TN_DTYPE_AUTO;
}

tn_dtype tn_autocast_dtype(const char *device_type)
{
    const tn__device_type *type = type_of(device_type, "tn_autocast_dtype");
    tn_dtype dtype = type != NULL ? tn__autocast_dtype_of(type) : TN_DTYPE_AUTO;

    return type != NULL && dtype == TN_DTYPE_AUTO ? default_dtype(type) : dtype;
}

/* ---- casts that are kept --------------------------------------------------------------------- */

bool tn_autocast_cache(void)
{
    return !cache_off;
}

void tn_set_autocast_cache(bool enabled)
{
    cache_off = !enabled;
}

/* Returns the index of the first cast that may be used here: the first one of the innermost
 * tn__autocast_begin_with(), or 0 if there is none. */
static int64_t first_kept(const struct tn__autocast *autocast)
{
    for (int64_t i = autocast->n_levels - 1; i >= 0; i--)
        if (autocast->levels[i].first > 0)
            return autocast->levels[i].first - 1;
    return 0;
}

static struct kept *find(struct tn__autocast *autocast, const tn_tensor *tensor, tn_dtype dtype)
{
    for (int64_t i = autocast->n_kept - 1; i >= first_kept(autocast); i--)
        if (autocast->kept[i].source == tensor && autocast->kept[i].cast->dtype == dtype)
            return &autocast->kept[i];
    return NULL;
}

tn_tensor *tn__autocast_cached(const tn_tensor *tensor, tn_dtype dtype, bool recorded)
{
    struct tn__autocast *autocast = state_here();
    const struct kept *row;

    if (autocast == NULL || cache_off)
        return NULL;
    row = find(autocast, tensor, dtype);
    return row != NULL && row->storage == tensor->storage && (row->recorded || !recorded) &&
                   row->version ==
                       atomic_load_explicit(&tensor->storage->version, memory_order_relaxed)
               ? tn_tensor_keep(row->cast)
               : NULL;
}

tn_status tn__autocast_cache(tn_tensor *tensor, tn_tensor *cast, bool recorded)
{
    struct tn__autocast *autocast = state_here();
    struct kept *row;

    if (autocast == NULL || cache_off || cast == tensor)
        return TN_OK;
    row = find(autocast, tensor, (tn_dtype)cast->dtype);
    if (row != NULL) {
        tn_tensor_drop(row->cast);
    } else {
        if (!tn__vector_room(&autocast->kept, &autocast->kept_capacity, autocast->n_kept + 1,
                             sizeof *autocast->kept))
            return TN_ERR_MEMORY;
        row = &autocast->kept[autocast->n_kept++];
        row->source = tn_tensor_keep(tensor);
    }
    row->cast = tn_tensor_keep(cast);
    row->storage = tensor->storage;
    row->version = atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
    row->recorded = recorded;
    return TN_OK;
}

void tn__autocast_free(tn__thread *thread)
{
    struct tn__autocast *autocast = thread->autocast;

    if (autocast == NULL)
        return;
    drop_kept(autocast, 0);
    tn_free(autocast->levels);
    tn_free(autocast->kept);
    tn_free(autocast);
    thread->autocast = NULL;
    tn__autocast_here = false;
}
