/* SPDX-License-Identifier: MIT
 *
 * Hooks of optimizers: registration, and running them around steps, saving and loading. */
#include "lib/train/private.h"

static tn__hooks global;

static const struct words {
    const char *name;
    const char *what; /* for an error text if a hook recorded none */
} words[] = {
    [TN__STEP_PRE] = { "step_pre", "a hook before a step" },
    [TN__STEP_POST] = { "step", "a hook after a step" },
    [TN__STEP_STATE_PRE] = { "state_pre", "a hook before saving the state of an optimizer" },
    [TN__STEP_STATE] = { "state", "a hook after saving the state of an optimizer" },
    [TN__STEP_LOAD_PRE] = { "load_pre", "a hook before loading the state of an optimizer" },
    [TN__STEP_LOAD] = { "load", "a hook after loading the state of an optimizer" },
};

/* ---- registering ----------------------------------------------------------------------------- */

static tn_hook_handle add(tn__hooks *hooks, tn__step_kind kind, uint32_t flags,
                          tn__hook_function function, void *user, void (*release)(void *user))
{
    const tn__hook how = {
        .function = function, .user = user, .release = release, .flags = flags, .kind = kind
    };

    return tn__hook_register(hooks, &how, TN_HOOK_PREPEND,
                             hooks == &global ? "tn_global" : "tn_optimizer", words[kind].name);
}

static tn_hook_handle add_own(tn_optimizer *optimizer, tn__step_kind kind, uint32_t flags,
                              tn__hook_function function, void *user, void (*release)(void *user))
{
    return tn__not_null(optimizer, "hook: optimizer")
               ? add(&optimizer->hooks, kind, flags, function, user, release)
               : 0;
}

tn_hook_handle tn_optimizer_hook_step_pre(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                          uint32_t flags, void *user, void (*release)(void *user))
{
    return add_own(optimizer, TN__STEP_PRE, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_optimizer_hook_step(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                      uint32_t flags, void *user, void (*release)(void *user))
{
    return add_own(optimizer, TN__STEP_POST, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_global_hook_step_pre(tn_optimizer_hook hook, uint32_t flags, void *user,
                                       void (*release)(void *user))
{
    return add(&global, TN__STEP_PRE, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_global_hook_step(tn_optimizer_hook hook, uint32_t flags, void *user,
                                   void (*release)(void *user))
{
    return add(&global, TN__STEP_POST, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_optimizer_hook_state_pre(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                           uint32_t flags, void *user, void (*release)(void *user))
{
    return add_own(optimizer, TN__STEP_STATE_PRE, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_optimizer_hook_state(tn_optimizer *optimizer, tn_optimizer_state_hook hook,
                                       uint32_t flags, void *user, void (*release)(void *user))
{
    return add_own(optimizer, TN__STEP_STATE, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_optimizer_hook_load_pre(tn_optimizer *optimizer, tn_optimizer_state_hook hook,
                                          uint32_t flags, void *user, void (*release)(void *user))
{
    return add_own(optimizer, TN__STEP_LOAD_PRE, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_optimizer_hook_load(tn_optimizer *optimizer, tn_optimizer_hook hook,
                                      uint32_t flags, void *user, void (*release)(void *user))
{
    return add_own(optimizer, TN__STEP_LOAD, flags, (tn__hook_function)hook, user, release);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The arguments of the hooks. */
struct turn {
    tn_optimizer *optimizer;
    tn_state *state;
    const char *prefix;
};

static tn_status run_one(const tn__hook *hook, void *data)
{
    const struct turn *turn = data;

    return hook->kind == TN__STEP_STATE || hook->kind == TN__STEP_LOAD_PRE
               ? ((tn_optimizer_state_hook)hook->function)(hook->user, turn->optimizer, turn->state,
                                                           turn->prefix)
               : ((tn_optimizer_hook)hook->function)(hook->user, turn->optimizer);
}

bool tn__step_hooks_any(const tn_optimizer *optimizer, tn__step_kind kind)
{
    return ((atomic_load(&global.kinds) | atomic_load(&optimizer->hooks.kinds)) &
            TN__HOOK_BIT(kind)) != 0;
}

tn_status tn__step_hooks_run(tn_optimizer *optimizer, tn__step_kind kind, tn_state *state,
                             const char *prefix)
{
    const tn__hooks *own = &optimizer->hooks;
    struct turn turn = { optimizer, state, prefix };
    bool last = kind == TN__STEP_POST;

    /* Before a step the hooks of all optimizers run first, after a step they run last. */
    return tn__hooks_run(last ? own : &global, last ? &global : own, kind, words[kind].what,
                         run_one, &turn);
}
