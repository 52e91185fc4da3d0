/* SPDX-License-Identifier: MIT
 *
 * Hooks of optimizers: registration, and running them around steps, saving and loading. */
#include "core/base/vector.h"
#include "lib/train/private.h"

/* A registration. While the hooks run, each has one more reference, so that a hook may remove
 * hooks. */
typedef struct tn__step_hook {
    tn__hook_handle handle; /* first */
    _Atomic int32_t refs;
    tn__step_kind kind;
    tn__step_hooks *list;
    tn_optimizer_hook plain;
    tn_optimizer_state_hook with_state;
    void *user;
    void (*release)(void *user);
} tn__step_hook;

static tn__step_hooks global;

/* ---- one registration ------------------------------------------------------------------------ */

static void hook_drop(tn__step_hook *hook)
{
    if (atomic_fetch_sub_explicit(&hook->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (hook->release != NULL)
        hook->release(hook->user);
    tn_free(hook);
}

static void drop_handle(tn__hook_handle *handle)
{
    hook_drop((tn__step_hook *)handle);
}

static void unlink_handle(tn__hook_handle *handle)
{
    tn__step_hook *hook = (tn__step_hook *)handle;
    tn__step_hooks *list = hook->list;
    tn__step_hook **at = list->rows[hook->kind].at;
    int64_t count = --list->rows[hook->kind].count, i = 0;

    while (at[i] != hook)
        i++;
    memmove(at + i, at + i + 1, (size_t)(count - i) * sizeof *at);
    if (list == &global && count == 0) {
        /* No owner frees the lists of the process. */
        tn_free(at);
        list->rows[hook->kind].at = NULL;
        list->rows[hook->kind].capacity = 0;
    }
}

/* The caller holds the lock of the hook handles. */
static tn_status link_hook(tn__step_hooks *list, tn__step_hook *hook, uint32_t flags)
{
    int64_t count = list->rows[hook->kind].count;
    int64_t place = (flags & TN_HOOK_PREPEND) != 0 ? 0 : count;
    tn__step_hook **at;
    tn_status status;

    if (!tn__vector_room(&list->rows[hook->kind].at, &list->rows[hook->kind].capacity, count + 1,
                         sizeof *at))
        return TN_ERR_MEMORY;
    status = tn__hook_handle_add(&hook->handle);
    if (status != TN_OK)
        return status;
    at = list->rows[hook->kind].at;
    memmove(at + place + 1, at + place, (size_t)(count - place) * sizeof *at);
    at[place] = hook;
    list->rows[hook->kind].count++;
    return TN_OK;
}

/* ---- registering ----------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [TN__STEP_PRE] = "step_pre",        [TN__STEP_POST] = "step",
    [TN__STEP_STATE_PRE] = "state_pre", [TN__STEP_STATE] = "state",
    [TN__STEP_LOAD_PRE] = "load_pre",   [TN__STEP_LOAD] = "load"
};

/* Registers a copy of `how`. how->list is NULL if the program passed NULL as the optimizer. */
static tn_hook_handle add(const tn__step_hook *how, uint32_t flags)
{
    const char *of = how->list == &global ? "tn_global" : "tn_optimizer";
    const char *name = kind_names[how->kind];
    tn_hook_handle handle = 0;
    tn__step_hook *hook;

    if (how->list == NULL) {
        tn__error_null_input("hook: optimizer");
        return 0;
    }
    if (how->plain == NULL && how->with_state == NULL) {
        tn_fail(TN_ERR_VALUE, "%s_hook_%s: hook: it is NULL; expected a function", of, name);
        return 0;
    }
    if ((flags & ~(uint32_t)TN_HOOK_PREPEND) != 0) {
        tn_fail(TN_ERR_VALUE,
                "%s_hook_%s: flags: not for this kind of hook, got 0x%x; expected TN_HOOK_PREPEND",
                of, name, flags & ~(uint32_t)TN_HOOK_PREPEND);
        return 0;
    }
    hook = tn_malloc(sizeof *hook);
    if (hook == NULL)
        return 0;
    *hook = *how;
    hook->handle = (tn__hook_handle){ .unlink = unlink_handle, .drop = drop_handle };
    atomic_init(&hook->refs, 1);
    tn__hook_handles_lock();
    if (link_hook(hook->list, hook, flags) == TN_OK)
        handle = hook->handle.id;
    tn__hook_handles_unlock();
    if (handle == 0)
        tn_free(hook); /* `user` stays the caller's */
    return handle;
}

static tn__step_hooks *hooks_of(tn_optimizer *optimizer)
{
    return optimizer != NULL ? &optimizer->hooks : NULL;
}

tn_hook_handle tn_optimizer_hook_step_pre(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                          uint32_t flags, void *user, void (*release)(void *user))
{
    const tn__step_hook how = { .kind = TN__STEP_PRE,
                                .list = hooks_of(optimizer),
                                .plain = hook,
                                .user = user,
                                .release = release };
    return add(&how, flags);
}

tn_hook_handle tn_optimizer_hook_step(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                      uint32_t flags, void *user, void (*release)(void *user))
{
    const tn__step_hook how = { .kind = TN__STEP_POST,
                                .list = hooks_of(optimizer),
                                .plain = hook,
                                .user = user,
                                .release = release };
    return add(&how, flags);
}

tn_hook_handle tn_global_hook_step_pre(tn_optimizer_hook hook, uint32_t flags, void *user,
                                       void (*release)(void *user))
{
    const tn__step_hook how = {
        .kind = TN__STEP_PRE, .list = &global, .plain = hook, .user = user, .release = release
    };
    return add(&how, flags);
}

tn_hook_handle tn_global_hook_step(tn_optimizer_hook hook, uint32_t flags, void *user,
                                   void (*release)(void *user))
{
    const tn__step_hook how = {
        .kind = TN__STEP_POST, .list = &global, .plain = hook, .user = user, .release = release
    };
    return add(&how, flags);
}

tn_hook_handle tn_optimizer_hook_state_pre(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                           uint32_t flags, void *user, void (*release)(void *user))
{
    const tn__step_hook how = { .kind = TN__STEP_STATE_PRE,
                                .list = hooks_of(optimizer),
                                .plain = hook,
                                .user = user,
                                .release = release };
    return add(&how, flags);
}

tn_hook_handle tn_optimizer_hook_state(tn_optimizer *optimizer, tn_optimizer_state_hook hook,
                                       uint32_t flags, void *user, void (*release)(void *user))
{
    const tn__step_hook how = { .kind = TN__STEP_STATE,
                                .list = hooks_of(optimizer),
                                .with_state = hook,
                                .user = user,
                                .release = release };
    return add(&how, flags);
}

tn_hook_handle tn_optimizer_hook_load_pre(tn_optimizer *optimizer, tn_optimizer_state_hook hook,
                                          uint32_t flags, void *user, void (*release)(void *user))
{
    const tn__step_hook how = { .kind = TN__STEP_LOAD_PRE,
                                .list = hooks_of(optimizer),
                                .with_state = hook,
                                .user = user,
                                .release = release };
    return add(&how, flags);
}

tn_hook_handle tn_optimizer_hook_load(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                      uint32_t flags, void *user, void (*release)(void *user))
{
    const tn__step_hook how = { .kind = TN__STEP_LOAD,
                                .list = hooks_of(optimizer),
                                .plain = hook,
                                .user = user,
                                .release = release };
    return add(&how, flags);
}

/* The lock is not held while a hook is removed, because its `release` may call any function of the
 * library. */
void tn__step_hooks_free(tn__step_hooks *hooks)
{
    for (int kind = 0; kind < TN__STEP_KINDS; kind++) {
        for (;;) {
            tn_hook_handle handle;

            tn__hook_handles_lock();
            handle = hooks->rows[kind].count > 0 ? hooks->rows[kind].at[0]->handle.id : 0;
            tn__hook_handles_unlock();
            if (handle == 0)
                break;
            tn_hook_remove(handle);
        }
        tn_free(hooks->rows[kind].at);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

/* The hooks of one run, each with a reference. */
struct run {
    tn__step_hook *few[8], **at;
    int64_t count;
};

static tn_status run_take(tn_optimizer *optimizer, tn__step_kind kind, struct run *run)
{
    /* Before a step the hooks of all optimizers run first, after a step they run last. */
    tn__step_hooks *lists[2] = { &global, &optimizer->hooks };
    tn_status status = TN_OK;
    int64_t count;

    if (kind == TN__STEP_POST) {
        lists[0] = &optimizer->hooks;
        lists[1] = &global;
    }
    run->at = run->few;
    run->count = 0;
    tn__hook_handles_lock();
    count = lists[0]->rows[kind].count + lists[1]->rows[kind].count;
    if (count > tn__countof(run->few)) {
        run->at = tn_malloc((size_t)count * sizeof *run->at);
        if (run->at == NULL)
            status = TN_ERR_MEMORY;
    }
    for (int i = 0; i < 2 && status == TN_OK; i++)
        for (int64_t k = 0; k < lists[i]->rows[kind].count; k++) {
            tn__step_hook *hook = lists[i]->rows[kind].at[k];

            atomic_fetch_add_explicit(&hook->refs, 1, memory_order_relaxed);
            run->at[run->count++] = hook;
        }
    tn__hook_handles_unlock();
    return status;
}

static void run_drop(struct run *run)
{
    for (int64_t i = 0; i < run->count; i++)
        hook_drop(run->at[i]);
    if (run->at != run->few)
        tn_free(run->at);
}

bool tn__step_hooks_any(const tn_optimizer *optimizer, tn__step_kind kind)
{
    bool any;

    tn__hook_handles_lock();
    any = global.rows[kind].count + optimizer->hooks.rows[kind].count > 0;
    tn__hook_handles_unlock();
    return any;
}

tn_status tn__step_hooks_run(tn_optimizer *optimizer, tn__step_kind kind, tn_state *state,
                             const char *prefix)
{
    static const char *const whats[] = {
        [TN__STEP_PRE] = "a hook before a step",
        [TN__STEP_POST] = "a hook after a step",
        [TN__STEP_STATE_PRE] = "a hook before saving the state of an optimizer",
        [TN__STEP_STATE] = "a hook after saving the state of an optimizer",
        [TN__STEP_LOAD_PRE] = "a hook before loading the state of an optimizer",
        [TN__STEP_LOAD] = "a hook after loading the state of an optimizer"
    };
    struct run run;
    tn_status status = run_take(optimizer, kind, &run);

    for (int64_t i = 0; i < run.count && status == TN_OK; i++) {
        const tn__step_hook *hook = run.at[i];
        const char *before = tn__error_plugin(""); /* the plugin of the hook is not known */
        uint64_t scope = tn_scope_begin(), mark = tn_error_mark();

        status = tn__error_returned(hook->plain != NULL
                                        ? hook->plain(hook->user, optimizer)
                                        : hook->with_state(hook->user, optimizer, state, prefix),
                                    mark, whats[kind]);
        tn_scope_end(scope);
        tn__error_plugin_back(before);
    }
    run_drop(&run);
    return status;
}
