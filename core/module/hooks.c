/* SPDX-License-Identifier: MIT
 *
 * Hooks of modules: registration, the rows that a call takes, and the hooks that run when a slot is
 * registered. call.c runs the hooks of calls, backward.c the hooks of backwards. */
#include "core/module/hooks.h"
#include "core/tensor/trace.h"

tn__hooks tn__hooks_global;

tn_status tn__hooks_set_compiled(tn_module *module, bool compiled)
{
    uint32_t bit = TN__HOOK_BIT(TN__HOOK_COMPILED);
    tn__hooks *own = tn__hooks_of(&module->hooks);

    if (own == NULL)
        return TN_ERR_MEMORY;
    if (compiled)
        atomic_fetch_or_explicit(&own->kinds, bit, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&own->kinds, ~bit, memory_order_relaxed);
    return TN_OK;
}

/* ---- registering ----------------------------------------------------------------------------- */

#define HOOK_WORDS(kind, name, own, global) { name, own, global },
static const struct kind_words {
    const char *name;
    uint32_t own, global; /* flags */
} kind_words[] = { TN__HOOK_LIST(HOOK_WORDS) };

/* Registers a global hook if `module` is NULL. */
static tn_hook_handle add(tn_module *module, tn__hook_kind kind, uint32_t flags,
                          tn__hook_function function, void *user, void (*release)(void *user))
{
    const struct kind_words *words = &kind_words[kind];
    const tn__hook how = {
        .function = function, .user = user, .release = release, .flags = flags, .kind = kind
    };

    return module == NULL
               ? tn__hook_register(&tn__hooks_global, &how, words->global, "tn_global", words->name)
               : tn__hook_register(tn__hooks_of(&module->hooks), &how, words->own, "tn_module",
                                   words->name);
}

tn_hook_handle tn__module_hook(tn_module *module, tn__hook_kind kind, uint32_t flags,
                               tn__hook_function function, void *user, void (*release)(void *user))
{
    return tn__not_null(module, "hook: module") ? add(module, kind, flags, function, user, release)
                                                : 0;
}

tn_hook_handle tn_module_hook_forward_pre(tn_module *module, tn_forward_pre_hook hook,
                                          uint32_t flags, void *user, void (*release)(void *user))
{
    return tn__module_hook(module, TN__HOOK_FORWARD_PRE, flags, (tn__hook_function)hook, user,
                           release);
}

tn_hook_handle tn_module_hook_forward(tn_module *module, tn_forward_hook hook, uint32_t flags,
                                      void *user, void (*release)(void *user))
{
    return tn__module_hook(module, TN__HOOK_FORWARD, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_module_hook_backward_pre(tn_module *module, tn_backward_pre_hook hook,
                                           uint32_t flags, void *user, void (*release)(void *user))
{
    return tn__module_hook(module, TN__HOOK_BACKWARD_PRE, flags, (tn__hook_function)hook, user,
                           release);
}

tn_hook_handle tn_module_hook_backward(tn_module *module, tn_backward_hook hook, uint32_t flags,
                                       void *user, void (*release)(void *user))
{
    return tn__module_hook(module, TN__HOOK_BACKWARD, flags, (tn__hook_function)hook, user,
                           release);
}

tn_hook_handle tn_global_hook_forward_pre(tn_forward_pre_hook hook, uint32_t flags, void *user,
                                          void (*release)(void *user))
{
    return add(NULL, TN__HOOK_FORWARD_PRE, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_global_hook_forward(tn_forward_hook hook, uint32_t flags, void *user,
                                      void (*release)(void *user))
{
    return add(NULL, TN__HOOK_FORWARD, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_global_hook_backward_pre(tn_backward_pre_hook hook, uint32_t flags, void *user,
                                           void (*release)(void *user))
{
    return add(NULL, TN__HOOK_BACKWARD_PRE, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_global_hook_backward(tn_backward_hook hook, uint32_t flags, void *user,
                                       void (*release)(void *user))
{
    return add(NULL, TN__HOOK_BACKWARD, flags, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_global_hook_parameter(tn_slot_hook hook, void *user, void (*release)(void *user))
{
    return add(NULL, TN__HOOK_PARAMETER, 0, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_global_hook_buffer(tn_slot_hook hook, void *user, void (*release)(void *user))
{
    return add(NULL, TN__HOOK_BUFFER, 0, (tn__hook_function)hook, user, release);
}

tn_hook_handle tn_global_hook_child(tn_child_hook hook, void *user, void (*release)(void *user))
{
    return add(NULL, TN__HOOK_CHILD, 0, (tn__hook_function)hook, user, release);
}

/* ---- all hooks of a module ------------------------------------------------------------------- */

void tn_module_unhook(tn_module *module)
{
    if (!tn__not_null(module, "tn_module_unhook: module"))
        return;
    tn__hooks *own = atomic_load_explicit(&module->hooks, memory_order_acquire);
    if (own != NULL)
        tn__hooks_clear(own);
}

tn_status tn__module_hooks_copy(tn_module *from, tn_module *to)
{
    tn__hooks *own = atomic_load_explicit(&from->hooks, memory_order_acquire);
    tn__hooks *copy = own != NULL ? tn__hooks_of(&to->hooks) : NULL;

    if (own == NULL)
        return TN_OK;
    return copy != NULL ? tn__hooks_copy(own, copy) : TN_ERR_MEMORY;
}

tn_status tn_module_move_hooks(tn_module *from, tn_module *to, uint32_t kinds)
{
    if (from == NULL || to == NULL)
        return tn__error_null_of("tn_module_move_hooks", "from, to", from, to);
    tn__hooks *own = atomic_load_explicit(&from->hooks, memory_order_acquire);
    if (own == NULL || from == to)
        return TN_OK;
    tn__hooks *list = tn__hooks_of(&to->hooks);
    if (list == NULL)
        return TN_ERR_MEMORY;
    tn__hooks_move(own, list, kinds);
    return TN_OK;
}

/* ---- hooks that are run ---------------------------------------------------------------------- */

tn_status tn__hook_turn_begin(tn__hook_turn *turn)
{
    turn->outcome = TN_OUTCOME_UNCHANGED;
    turn->replacement = tn_pack_new();
    if (turn->replacement == NULL)
        return TN_ERR_MEMORY;
    turn->plugin = tn__error_plugin(""); /* the plugin of the hook is not known */
    turn->failures = tn_error_mark();
    turn->scope = tn_scope_begin();
    return TN_OK;
}

tn_status tn__hook_turn_end(tn__hook_turn *turn, tn_status status, const char *what,
                            const char *may, tn_pack **replaced)
{
    int64_t count = tn_pack_count(turn->replacement);
    int outcome = (int)turn->outcome;

    *replaced = NULL;
    tn_scope_end(turn->scope);
    status = tn_error_returned(status, turn->failures, what);
    if (status == TN_OK && outcome == TN_OUTCOME_UNCHANGED && count != 0)
        status = tn_fail(
            TN_ERR_RUNTIME,
            "%s must return None or %s, but got %lld value%s with TN_OUTCOME_UNCHANGED: "
            "set TN_OUTCOME_REPLACED, or leave the replacement empty",
            what, may, (long long)count, count == 1 ? "" : "s");
    else if (status == TN_OK && outcome != TN_OUTCOME_UNCHANGED && outcome != TN_OUTCOME_REPLACED)
        status = tn_fail(
            TN_ERR_RUNTIME,
            "%s must return None or %s, but got outcome %d: TN_OUTCOME_UNCHANGED is 0, "
            "TN_OUTCOME_REPLACED is 1",
            what, may, outcome);
    tn__error_plugin_back(turn->plugin);
    if (status == TN_OK && outcome == TN_OUTCOME_REPLACED)
        *replaced = turn->replacement;
    else
        tn_pack_drop(turn->replacement);
    return status;
}

/* ---- hooks on registration ------------------------------------------------------------------- */

static bool none_of(tn__hook_kind kind)
{
    return tn__likely((atomic_load_explicit(&tn__hooks_global.kinds, memory_order_relaxed) &
                       TN__HOOK_BIT(kind)) == 0);
}

tn_status tn__hooks_registering_tensor(tn_module *module, tn_slot_kind slot, const char *name,
                                       tn_tensor **tensor)
{
    /* A trace must not leave a tensor without memory in the module. */
    if (tn__unlikely(tn__making.is.traced) && tn__tensor_ok(*tensor) &&
        tn__trace_need(*tensor, "tn_module_set") != TN_OK)
        return tn_error_last_code();
    tn__hook_kind kind = slot == TN_SLOT_PARAMETER ? TN__HOOK_PARAMETER : TN__HOOK_BUFFER;
    tn__hook_row row;

    if (none_of(kind) || (kind == TN__HOOK_PARAMETER && tn__is_none(*tensor)))
        return TN_OK;
    tn_status status = tn__hook_row_take(&row, &tn__hooks_global, NULL, kind);
    for (int64_t i = 0; i < row.count && status == TN_OK; i++) {
        const tn__hook *hook = row.at[i];
        tn_tensor *other = NULL;
        const char *before = tn__error_plugin("");
        uint64_t scope = tn_scope_begin(), failures = tn_error_mark();
        status = tn_error_returned(
            ((tn_slot_hook)hook->function)(hook->user, module, name, *tensor, &other), failures,
            kind == TN__HOOK_PARAMETER ? "a hook on the registration of parameters"
                                       : "a hook on the registration of buffers");
        tn_scope_end_with(scope, &other, 1);
        tn__error_plugin_back(before);
        if (status == TN_OK && other != NULL)
            *tensor = other;
    }
    tn__hook_row_drop(&row);
    return status;
}

struct new_child {
    tn_module *module, *child;
    const char *name;
};

static tn_status run_child(const tn__hook *hook, void *data)
{
    struct new_child *new = data;
    tn_module *other = NULL;
    tn_status status = ((tn_child_hook)hook->function)(hook->user, new->module, new->name,
                                                       new->child, &other);

    if (other != NULL) {
        tn_module_drop(new->child);
        new->child = other;
    }
    return status;
}

tn_status tn__hooks_registering_child(tn_module *module, const char *name, tn_module **child)
{
    struct new_child new = { module, tn_module_keep(*child), name };

    if (none_of(TN__HOOK_CHILD))
        return TN_OK;
    tn_status status = tn__hooks_run(&tn__hooks_global, NULL, TN__HOOK_CHILD,
                                     "a hook on the registration of modules", run_child, &new);
    if (status != TN_OK)
        tn_module_drop(new.child);
    *child = status == TN_OK ? new.child : NULL;
    return status;
}

/* Members are compared one by one, because the bytes
 * after the end of a message are arbitrary. */
bool tn__hook_failure_is(const tn_error *e)
{
    const tn_error *last = tn_error_last();

    return last->code == e->code && last->native == e->native &&
           strcmp(last->plugin, e->plugin) == 0 && strcmp(last->message, e->message) == 0;
}

tn_status tn__hook_add_values(tn_pack *to, const tn_pack *from, bool positional, bool named)
{
    int64_t first_named = tn_pack_positional(from);
    int64_t end = named ? tn_pack_count(from) : first_named;
    tn_status status = TN_OK;
    for (int64_t i = positional ? 0 : first_named; i < end && status == TN_OK; i++)
        status = tn_pack_add(to, tn_pack_name(from, i), tn_pack_at(from, i));
    return status;
}
