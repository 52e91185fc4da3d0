/* SPDX-License-Identifier: MIT
 *
 * Lists of hooks, and the table from the number of a handle to its hook. One lock guards the table
 * and all lists. Therefore tn_hook_remove() and freeing the object that has the hook cannot run at
 * the same time. No callback and no code of plugins runs under it. */
#include "core/base/map.h"
#include "core/hook/internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__map handles; /* key: number of the handle; value: tn__hook */
static uint64_t last_id;

static const void *key_of(uint64_t id)
{
    return (const void *)(uintptr_t)id;
}

/* ---- one hook -------------------------------------------------------------------------------- */

void tn__hook_drop(tn__hook *hook)
{
    if (atomic_fetch_sub_explicit(&hook->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (hook->original != NULL)
        tn__hook_drop(hook->original);
    else if (hook->release != NULL)
        hook->release(hook->user);
    tn_free(hook);
}

/* Adds a copy of `how` to a list; the caller holds the lock. NULL: memory ran out. */
static tn__hook *add(tn__hooks *hooks, const tn__hook *how, tn__hook *original, bool in_front)
{
    tn__hook *hook = tn_malloc(sizeof *hook), **at = &hooks->first;

    if (hook == NULL)
        return NULL;
    /* Not a copy of the whole: another thread may be changing how->refs. */
    *hook = (tn__hook){ .function = how->function,
                        .user = how->user,
                        .release = how->release,
                        .flags = how->flags,
                        .kind = how->kind,
                        .place = how->place,
                        .id = ++last_id,
                        .list = hooks,
                        .original = original };
    atomic_init(&hook->refs, 1);
    if (hook->function != NULL) {
        if (tn__map_add(&handles, key_of(hook->id)) < 0) {
            tn_free(hook);
            return NULL;
        }
        *tn__map_value(&handles, key_of(hook->id)) = hook;
    }
    while (*at != NULL && !in_front)
        at = &(*at)->next;
    hook->next = *at;
    *at = hook;
    atomic_fetch_or_explicit(&hooks->kinds, TN__HOOK_BIT(hook->kind), memory_order_relaxed);
    return hook;
}

/* Returns the first hook of a kind from `hook` on, NULL if there is none. */
static tn__hook *next_of(tn__hook *hook, int32_t kind)
{
    while (hook != NULL && hook->kind != kind)
        hook = hook->next;
    return hook;
}

/* Takes a hook out of its list; the caller holds the lock, and drops the list's reference after it.
 */
static void take_out(tn__hook *hook)
{
    tn__hooks *hooks = hook->list;
    tn__hook **at = &hooks->first;

    while (*at != hook)
        at = &(*at)->next;
    *at = hook->next;
    if (next_of(hooks->first, hook->kind) == NULL)
        atomic_fetch_and_explicit(&hooks->kinds, ~TN__HOOK_BIT(hook->kind), memory_order_relaxed);
    tn__map_remove(&handles, key_of(hook->id));
    if (handles.count == 0)
        tn__map_free(&handles);
}

uint64_t tn__hook_add(tn__hooks *hooks, const tn__hook *how)
{
    if (hooks == NULL)
        return 0;
    pthread_mutex_lock(&lock);
    tn__hook *hook = add(hooks, how, NULL, (how->flags & TN_HOOK_PREPEND) != 0);
    uint64_t id = hook != NULL ? hook->id : 0; /* another thread may free the hook */
    pthread_mutex_unlock(&lock);
    return id;
}

static tn_hook_handle refuse_flags(uint32_t flags, uint32_t known, const char *of, const char *name)
{
    static const char *const names[] = { "TN_HOOK_PREPEND", "TN_HOOK_NAMED", "TN_HOOK_ALWAYS" };
    tn__text text = { 0 };

    for (int64_t i = 0; i < tn__countof(names); i++)
        if ((known >> i & 1) != 0)
            tn__text_add(&text, "%s%s", text.length > 0 ? ", " : "", names[i]);
    tn_fail(TN_ERR_VALUE, "%s_hook_%s: flags: not for this kind of hook, got 0x%x; expected %s", of,
            name, flags & ~known, text.at != NULL ? text.at : "none");
    tn__text_free(&text);
    return 0;
}

tn_hook_handle tn__hook_register(tn__hooks *hooks, const tn__hook *how, uint32_t known,
                                 const char *of, const char *name)
{
    if (how->function == NULL) {
        tn_fail(TN_ERR_VALUE, "%s_hook_%s: hook: it is NULL; expected a function", of, name);
        return 0;
    }
    return (how->flags & ~known) == 0 ? tn__hook_add(hooks, how)
                                      : refuse_flags(how->flags, known, of, name);
}

int64_t tn__hook_count(void)
{
    pthread_mutex_lock(&lock);
    int64_t count = handles.count;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Takes a hook out of its list, unlocks, and drops it. NULL: only unlocks. */
static bool remove_and_unlock(tn__hook *hook)
{
    if (hook != NULL)
        take_out(hook);
    pthread_mutex_unlock(&lock);
    if (hook != NULL)
        tn__hook_drop(hook);
    return hook != NULL;
}

bool tn_hook_remove(tn_hook_handle id)
{
    pthread_mutex_lock(&lock);
    void **found = tn__map_value(&handles, key_of(id));
    return remove_and_unlock(found != NULL ? *found : NULL);
}

bool tn__hook_remove_first(tn__hooks *hooks, int32_t kind, const void *user)
{
    pthread_mutex_lock(&lock);
    tn__hook *hook = next_of(hooks->first, kind);
    while (hook != NULL && user != NULL && hook->user != user)
        hook = next_of(hook->next, kind);
    return remove_and_unlock(hook);
}

/* ---- lists ----------------------------------------------------------------------------------- */

tn__hooks *tn__hooks_of(tn__hooks *_Atomic *at)
{
    tn__hooks *own = atomic_load_explicit(at, memory_order_acquire);
    tn__hooks *fresh = own == NULL ? tn_calloc(1, sizeof *fresh) : NULL;

    if (fresh == NULL || atomic_compare_exchange_strong(at, &own, fresh))
        return own != NULL ? own : fresh;
    tn_free(fresh);
    return own;
}

void tn__hooks_clear(tn__hooks *hooks)
{
    for (int32_t kind = 0; kind < 32; kind++)
        while ((atomic_load_explicit(&hooks->kinds, memory_order_relaxed) & TN__HOOK_BIT(kind)) &&
               tn__hook_remove_first(hooks, kind, NULL))
            ;
    /* A list that is empty now may be one from which tn_hook_remove() is just taking a hook in
     * another thread; the caller may free the list. */
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

void tn__hooks_free(tn__hooks *_Atomic *at)
{
    tn__hooks *hooks = atomic_load_explicit(at, memory_order_acquire);

    if (hooks != NULL)
        tn__hooks_clear(hooks);
    tn_free(hooks);
}

tn_status tn__hooks_copy(const tn__hooks *from, tn__hooks *to)
{
    tn_status status = TN_OK;

    pthread_mutex_lock(&lock);
    for (tn__hook *hook = from->first; hook != NULL && status == TN_OK; hook = hook->next) {
        tn__hook *original = hook->original != NULL ? hook->original : hook;

        if (add(to, hook, original, false) != NULL)
            atomic_fetch_add_explicit(&original->refs, 1, memory_order_relaxed);
        else
            status = TN_ERR_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void tn__hooks_move(tn__hooks *from, tn__hooks *to, uint32_t kinds)
{
    tn__hook **end = &to->first, **at = &from->first, *hook;

    pthread_mutex_lock(&lock);
    while (*end != NULL)
        end = &(*end)->next;
    while ((hook = *at) != NULL) {
        if ((TN__HOOK_BIT(hook->kind) & kinds) == 0) {
            at = &hook->next;
            continue;
        }
        *at = hook->next;
        hook->next = NULL;
        *end = hook;
        end = &hook->next;
        hook->list = to;
        atomic_fetch_or_explicit(&to->kinds, TN__HOOK_BIT(hook->kind), memory_order_relaxed);
        atomic_fetch_and_explicit(&from->kinds, ~TN__HOOK_BIT(hook->kind), memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- hooks that run -------------------------------------------------------------------------- */

tn_status tn__hook_row_take(tn__hook_row *row, const tn__hooks *first, const tn__hooks *second,
                            int32_t kind)
{
    tn__hook *lists[2], *hook;
    tn_status status = TN_OK;
    int64_t count = 0;

    row->count = 0;
    row->at = row->few;
    pthread_mutex_lock(&lock);
    lists[0] = first != NULL ? next_of(first->first, kind) : NULL;
    lists[1] = second != NULL ? next_of(second->first, kind) : NULL;
    for (int i = 0; i < 2; i++)
        for (hook = lists[i]; hook != NULL; hook = next_of(hook->next, kind))
            count++;
    if (count > tn__countof(row->few)) {
        row->at = tn_malloc((size_t)count * sizeof *row->at);
        if (row->at == NULL)
            status = TN_ERR_MEMORY;
    }
    for (int i = 0; i < 2 && status == TN_OK; i++)
        for (hook = lists[i]; hook != NULL; hook = next_of(hook->next, kind)) {
            atomic_fetch_add_explicit(&hook->refs, 1, memory_order_relaxed);
            row->at[row->count++] = hook;
        }
    pthread_mutex_unlock(&lock);
    return status;
}

void tn__hook_row_drop(tn__hook_row *row)
{
    for (int64_t i = 0; i < row->count; i++)
        tn__hook_drop(row->at[i]);
    if (row->at != row->few)
        tn_free(row->at);
    row->count = 0;
    row->at = row->few;
}

tn_status tn__hooks_run(const tn__hooks *first, const tn__hooks *second, int32_t kind,
                        const char *what, tn_status (*call)(const tn__hook *hook, void *data),
                        void *data)
{
    tn__hook_row row;
    tn_status status = tn__hook_row_take(&row, first, second, kind);

    for (int64_t i = 0; i < row.count && status == TN_OK; i++) {
        const char *before = tn__error_plugin(""); /* the plugin of the hook is not known */
        uint64_t scope = tn_scope_begin(), mark = tn_error_mark();

        status = tn_error_returned(call(row.at[i], data), mark, what);
        tn_scope_end(scope);
        tn__error_plugin_back(before);
    }
    tn__hook_row_drop(&row);
    return status;
}

tn__hook *tn__hook_after(const tn__hooks *hooks, int32_t kind, int32_t place, uint64_t after)
{
    pthread_mutex_lock(&lock);
    tn__hook *hook = next_of(hooks->first, kind);
    while (hook != NULL && (hook->id <= after || hook->place != place))
        hook = next_of(hook->next, kind);
    if (hook != NULL)
        atomic_fetch_add_explicit(&hook->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return hook;
}
