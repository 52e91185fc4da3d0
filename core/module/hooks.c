/* SPDX-License-Identifier: MIT
 *
 * Hooks of modules: registration, the rows that a call takes, and the hooks that run when a slot is
 * registered. call.c runs the hooks of calls, backward.c the hooks of backwards. */
#include "core/base/vector.h"
#include "core/module/hooks.h"
#include "core/tensor/trace.h"

tn__hooks tn__hooks_global;

/* ---- one registration ------------------------------------------------------------------------ */

static void code_drop(tn__hook_code *code)
{
    if (atomic_fetch_sub_explicit(&code->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (code->release != NULL)
        code->release(code->user);
    tn_free(code);
}

static void hook_drop(tn__hook *hook)
{
    if (atomic_fetch_sub_explicit(&hook->refs, 1, memory_order_acq_rel) != 1)
        return;
    code_drop(hook->code);
    tn_free(hook);
}

static void drop_handle(tn__hook_handle *handle)
{
    hook_drop((tn__hook *)handle);
}

static void unlink_handle(tn__hook_handle *handle)
{
    tn__hook *hook = (tn__hook *)handle;
    tn__hooks *list = hook->list;
    tn__hook **at = list->rows[hook->kind].at;
    int64_t count = --list->rows[hook->kind].count, i = 0;

    while (at[i] != hook)
        i++;
    memmove(at + i, at + i + 1, (size_t)(count - i) * sizeof(tn__hook *));
    if (count == 0)
        atomic_fetch_and_explicit(&list->kinds, ~TN__HOOK_BIT(hook->kind), memory_order_relaxed);
}

/* The caller holds the lock of the hook handles. */
static tn_status link_hook(tn__hooks *list, tn__hook *hook)
{
    int64_t count = list->rows[hook->kind].count;

    if (!tn__vector_room(&list->rows[hook->kind].at, &list->rows[hook->kind].capacity, count + 1,
                         sizeof(tn__hook *)))
        return TN_ERR_MEMORY;
    tn_status status = tn__hook_handle_add(&hook->handle);
    if (status != TN_OK)
        return status;
    tn__hook **at = list->rows[hook->kind].at;
    int64_t place = (hook->flags & TN_HOOK_PREPEND) != 0 ? 0 : count;
    memmove(at + place + 1, at + place, (size_t)(count - place) * sizeof(tn__hook *));
    at[place] = hook;
    list->rows[hook->kind].count++;
    hook->list = list;
    atomic_fetch_or_explicit(&list->kinds, TN__HOOK_BIT(hook->kind), memory_order_relaxed);
    return TN_OK;
}

static tn__hooks *hooks_of(tn_module *module)
{
    tn__hooks *own = atomic_load_explicit(&module->hooks, memory_order_acquire);
    if (own != NULL)
        return own;
    tn__hooks *fresh = tn_calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return NULL;
    if (atomic_compare_exchange_strong(&module->hooks, &own, fresh))
        return fresh;
    tn_free(fresh);
    return own;
}

tn_status tn__hooks_set_compiled(tn_module *module, bool compiled)
{
    uint32_t bit = TN__HOOK_BIT(TN__HOOK_COMPILED);
    tn__hooks *own = hooks_of(module);

    if (own == NULL)
        return TN_ERR_MEMORY;
    if (compiled)
        atomic_fetch_or_explicit(&own->kinds, bit, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&own->kinds, ~bit, memory_order_relaxed);
    return TN_OK;
}

/* Takes over a reference to `code`, even on failure. On failure, `user` is not released and stays
 * the caller's. */
static tn_hook_handle add(tn_module *module, tn__hook_kind kind, uint32_t flags,
                          tn__hook_code *code)
{
    tn__hooks *list = module != NULL ? hooks_of(module) : &tn__hooks_global;
    tn__hook *hook = list != NULL ? tn_calloc(1, sizeof *hook) : NULL;
    tn_hook_handle handle = 0;

    if (hook != NULL) {
        *hook = (tn__hook){ .kind = kind, .flags = flags, .code = code };
        hook->handle.unlink = unlink_handle;
        hook->handle.drop = drop_handle;
        atomic_init(&hook->refs, 1);
        tn__hook_handles_lock();
        if (link_hook(list, hook) == TN_OK)
            handle = hook->handle.id;
        tn__hook_handles_unlock();
    }
    if (handle == 0) {
        tn_free(hook);
        if (atomic_fetch_sub_explicit(&code->refs, 1, memory_order_acq_rel) == 1)
            tn_free(code);
    }
    return handle;
}

/* ---- registering ----------------------------------------------------------------------------- */

/* The flags that each kind of hook accepts: on one module (`own`) and for all modules
 * (`global`). */
static const struct kind_words {
    const char *name;
    uint32_t own, global;
} kind_words[] = {
    [TN__HOOK_FORWARD_PRE] = { "forward_pre", TN_HOOK_PREPEND | TN_HOOK_NAMED, 0 },
    [TN__HOOK_FORWARD] = { "forward", TN_HOOK_PREPEND | TN_HOOK_NAMED | TN_HOOK_ALWAYS,
                           TN_HOOK_NAMED | TN_HOOK_ALWAYS },
    [TN__HOOK_BACKWARD_PRE] = { "backward_pre", TN_HOOK_PREPEND, 0 },
    [TN__HOOK_BACKWARD] = { "backward", TN_HOOK_PREPEND, 0 },
    [TN__HOOK_STATE_PRE] = { "state_pre", 0, 0 },
    [TN__HOOK_STATE] = { "state", 0, 0 },
    [TN__HOOK_LOAD_PRE] = { "load_pre", 0, 0 },
    [TN__HOOK_LOAD] = { "load", 0, 0 },
    [TN__HOOK_PARAMETER] = { "parameter", 0, 0 },
    [TN__HOOK_BUFFER] = { "buffer", 0, 0 },
    [TN__HOOK_CHILD] = { "child", 0, 0 },
};

static void refuse_flags(const char *of, const char *name, uint32_t flags, uint32_t known)
{
    static const char *const names[] = { "TN_HOOK_PREPEND", "TN_HOOK_NAMED", "TN_HOOK_ALWAYS" };
    tn__text text = { 0 };

    for (uint32_t i = 0; i < 3; i++)
        if ((known >> i & 1) != 0)
            tn__text_add(&text, "%s%s", text.length > 0 ? ", " : "", names[i]);
    tn_fail(TN_ERR_VALUE, "%s_hook_%s: flags: not for this kind of hook, got 0x%x; expected %s", of,
            name, flags & ~known, text.at != NULL ? text.at : "none");
    tn__text_free(&text);
}

/* Registers a global hook if `module` is NULL. `given` says whether the caller passed a
 * function. */
static tn_hook_handle register_hook(tn_module *module, tn__hook_kind kind, uint32_t flags,
                                    tn__hook_function function, bool given, void *user,
                                    void (*release)(void *user))
{
    const struct kind_words *words = &kind_words[kind];
    const char *of = module != NULL ? "tn_module" : "tn_global";
    uint32_t known = module != NULL ? words->own : words->global;

    if (!given) {
        tn_fail(TN_ERR_VALUE, "%s_hook_%s: hook: it is NULL; expected a function", of, words->name);
        return 0;
    }
    if ((flags & ~known) != 0) {
        refuse_flags(of, words->name, flags, known);
        return 0;
    }
    tn__hook_code *code = tn_malloc(sizeof *code);
    if (code == NULL)
        return 0;
    *code = (tn__hook_code){ .function = function, .user = user, .release = release };
    atomic_init(&code->refs, 1);
    return add(module, kind, flags, code);
}

/* Like register_hook(), but fails if `module` is NULL. */
tn_hook_handle tn__hook_register(tn_module *module, tn__hook_kind kind, uint32_t flags,
                                 tn__hook_function function, bool given, void *user,
                                 void (*release)(void *user))
{
    if (module == NULL) {
        tn__error_null_input("hook: module");
        return 0;
    }
    return register_hook(module, kind, flags, function, given, user, release);
}

tn_hook_handle tn_module_hook_forward_pre(tn_module *module, tn_forward_pre_hook hook,
                                          uint32_t flags, void *user, void (*release)(void *user))
{
    tn__hook_function function = { .forward_pre = hook };
    return tn__hook_register(module, TN__HOOK_FORWARD_PRE, flags, function, hook != NULL, user,
                             release);
}

tn_hook_handle tn_module_hook_forward(tn_module *module, tn_forward_hook hook, uint32_t flags,
                                      void *user, void (*release)(void *user))
{
    tn__hook_function function = { .forward = hook };
    return tn__hook_register(module, TN__HOOK_FORWARD, flags, function, hook != NULL, user,
                             release);
}

tn_hook_handle tn_module_hook_backward_pre(tn_module *module, tn_backward_pre_hook hook,
                                           uint32_t flags, void *user, void (*release)(void *user))
{
    tn__hook_function function = { .backward_pre = hook };
    return tn__hook_register(module, TN__HOOK_BACKWARD_PRE, flags, function, hook != NULL, user,
                             release);
}

tn_hook_handle tn_module_hook_backward(tn_module *module, tn_backward_hook hook, uint32_t flags,
                                       void *user, void (*release)(void *user))
{
    tn__hook_function function = { .backward = hook };
    return tn__hook_register(module, TN__HOOK_BACKWARD, flags, function, hook != NULL, user,
                             release);
}

tn_hook_handle tn_global_hook_forward_pre(tn_forward_pre_hook hook, uint32_t flags, void *user,
                                          void (*release)(void *user))
{
    tn__hook_function function = { .forward_pre = hook };
    return register_hook(NULL, TN__HOOK_FORWARD_PRE, flags, function, hook != NULL, user, release);
}

tn_hook_handle tn_global_hook_forward(tn_forward_hook hook, uint32_t flags, void *user,
                                      void (*release)(void *user))
{
    tn__hook_function function = { .forward = hook };
    return register_hook(NULL, TN__HOOK_FORWARD, flags, function, hook != NULL, user, release);
}

tn_hook_handle tn_global_hook_backward_pre(tn_backward_pre_hook hook, uint32_t flags, void *user,
                                           void (*release)(void *user))
{
    tn__hook_function function = { .backward_pre = hook };
    return register_hook(NULL, TN__HOOK_BACKWARD_PRE, flags, function, hook != NULL, user, release);
}

tn_hook_handle tn_global_hook_backward(tn_backward_hook hook, uint32_t flags, void *user,
                                       void (*release)(void *user))
{
    tn__hook_function function = { .backward = hook };
    return register_hook(NULL, TN__HOOK_BACKWARD, flags, function, hook != NULL, user, release);
}

tn_hook_handle tn_global_hook_parameter(tn_slot_hook hook, void *user, void (*release)(void *user))
{
    tn__hook_function function = { .slot = hook };
    return register_hook(NULL, TN__HOOK_PARAMETER, 0, function, hook != NULL, user, release);
}

tn_hook_handle tn_global_hook_buffer(tn_slot_hook hook, void *user, void (*release)(void *user))
{
    tn__hook_function function = { .slot = hook };
    return register_hook(NULL, TN__HOOK_BUFFER, 0, function, hook != NULL, user, release);
}

tn_hook_handle tn_global_hook_child(tn_child_hook hook, void *user, void (*release)(void *user))
{
    tn__hook_function function = { .child = hook };
    return register_hook(NULL, TN__HOOK_CHILD, 0, function, hook != NULL, user, release);
}

/* ---- all hooks of a module ------------------------------------------------------------------- */

/* Removes the hooks one by one. The lock is not held while a hook is removed, because its `release`
 * may call any function of the library. */
void tn_module_unhook(tn_module *module)
{
    tn__hooks *own = module != NULL ? atomic_load_explicit(&module->hooks, memory_order_acquire)
                                    : NULL;
    if (module == NULL)
        tn__error_null_input("tn_module_unhook: module");
    for (int kind = 0; own != NULL && kind < TN__HOOK_KINDS; kind++)
        for (;;) {
            tn__hook_handles_lock();
            tn__hook *hook = own->rows[kind].count > 0 ? own->rows[kind].at[0] : NULL;
            tn_hook_handle handle = hook != NULL ? hook->handle.id : 0;
            tn__hook_handles_unlock();
            if (handle == 0)
                break;
            tn_hook_remove(handle);
        }
}

void tn__module_hooks_free(tn_module *module)
{
    tn__hooks *own = atomic_load_explicit(&module->hooks, memory_order_acquire);
    if (own == NULL)
        return;
    tn_module_unhook(module);
    for (int kind = 0; kind < TN__HOOK_KINDS; kind++)
        tn_free(own->rows[kind].at);
    tn_free(own);
}

tn_status tn__module_hooks_copy(tn_module *from, tn_module *to)
{
    tn_status status = TN_OK;
    if (atomic_load_explicit(&from->hooks, memory_order_acquire) == NULL)
        return TN_OK;
    for (int kind = 0; kind < TN__HOOK_PARAMETER && status == TN_OK; kind++) {
        tn__hook_row row;
        status = tn__hook_row_take(from, (tn__hook_kind)kind, &row);
        for (int64_t i = 0; i < row.count && status == TN_OK; i++) {
            tn__hook *hook = row.at[i];
            if (hook->list == &tn__hooks_global)
                continue;
            atomic_fetch_add_explicit(&hook->code->refs, 1, memory_order_relaxed);
            if (add(to, hook->kind, hook->flags & ~(uint32_t)TN_HOOK_PREPEND, hook->code) == 0)
                status = TN_ERR_MEMORY;
        }
        tn__hook_row_drop(&row);
    }
    return status;
}

static tn_status make_room(const tn__hooks *from, tn__hooks *to)
{
    for (int kind = 0; kind < TN__HOOK_KINDS; kind++) {
        int64_t count = to->rows[kind].count + from->rows[kind].count;
        if (count > 0 && !tn__vector_room(&to->rows[kind].at, &to->rows[kind].capacity, count,
                                          sizeof(tn__hook *)))
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

/* Moves the hooks to `to`, in which make_room() has reserved memory. */
static void move_rows(tn__hooks *from, tn__hooks *to)
{
    for (int kind = 0; kind < TN__HOOK_KINDS; kind++) {
        for (int64_t i = 0; i < from->rows[kind].count; i++) {
            tn__hook *hook = from->rows[kind].at[i];
            hook->list = to;
            to->rows[kind].at[to->rows[kind].count++] = hook;
        }
        from->rows[kind].count = 0;
    }
    uint32_t stays = TN__HOOK_BIT(TN__HOOK_COMPILED);
    uint32_t kinds = atomic_fetch_and_explicit(&from->kinds, stays, memory_order_relaxed);
    atomic_fetch_or_explicit(&to->kinds, kinds & ~stays, memory_order_relaxed);
}

tn_status tn_module_move_hooks(tn_module *from, tn_module *to)
{
    if (from == NULL || to == NULL)
        return tn__error_null_of("tn_module_move_hooks", "from, to", from, to);
    tn__hooks *own = atomic_load_explicit(&from->hooks, memory_order_acquire);
    if (own == NULL || from == to)
        return TN_OK;
    tn__hooks *list = hooks_of(to);
    if (list == NULL)
        return TN_ERR_MEMORY;
    tn__hook_handles_lock();
    tn_status status = make_room(own, list);
    if (status == TN_OK)
        move_rows(own, list);
    tn__hook_handles_unlock();
    return status;
}

/* ---- rows that are run ----------------------------------------------------------------------- */

tn_status tn__hook_row_take(tn_module *module, tn__hook_kind kind, tn__hook_row *row)
{
    tn__hooks *own = module != NULL ? atomic_load_explicit(&module->hooks, memory_order_acquire)
                                    : NULL;
    tn__hooks *lists[2] = { &tn__hooks_global, own };
    tn_status status = TN_OK;

    row->count = 0;
    row->at = row->few;
    tn__hook_handles_lock();
    int64_t count = tn__hooks_global.rows[kind].count + (own != NULL ? own->rows[kind].count : 0);
    if (count > tn__countof(row->few)) {
        row->at = tn_malloc((size_t)count * sizeof(tn__hook *));
        if (row->at == NULL)
            status = TN_ERR_MEMORY;
    }
    for (int i = 0; i < 2 && status == TN_OK; i++)
        for (int64_t k = 0; lists[i] != NULL && k < lists[i]->rows[kind].count; k++) {
            tn__hook *hook = lists[i]->rows[kind].at[k];
            atomic_fetch_add_explicit(&hook->refs, 1, memory_order_relaxed);
            row->at[row->count++] = hook;
        }
    tn__hook_handles_unlock();
    return status;
}

void tn__hook_row_drop(tn__hook_row *row)
{
    for (int64_t i = 0; i < row->count; i++)
        hook_drop(row->at[i]);
    if (row->at != row->few)
        tn_free(row->at);
    row->count = 0;
    row->at = row->few;
}

tn_status tn__hook_turn_begin(tn__hook_turn *turn)
{
    turn->outcome = TN_HOOK_UNCHANGED;
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
    status = tn__error_returned(status, turn->failures, what);
    if (status == TN_OK && outcome == TN_HOOK_UNCHANGED && count != 0)
        status = tn_fail(TN_ERR_RUNTIME,
                         "%s must return None or %s, but got %lld value%s with TN_HOOK_UNCHANGED: "
                         "set TN_HOOK_REPLACED, or leave the replacement empty",
                         what, may, (long long)count, count == 1 ? "" : "s");
    else if (status == TN_OK && outcome != TN_HOOK_UNCHANGED && outcome != TN_HOOK_REPLACED)
        status = tn_fail(TN_ERR_RUNTIME,
                         "%s must return None or %s, but got outcome %d: TN_HOOK_UNCHANGED is 0, "
                         "TN_HOOK_REPLACED is 1",
                         what, may, outcome);
    tn__error_plugin_back(turn->plugin);
    if (status == TN_OK && outcome == TN_HOOK_REPLACED)
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
    tn_status status = tn__hook_row_take(NULL, kind, &row);
    for (int64_t i = 0; i < row.count && status == TN_OK; i++) {
        const tn__hook_code *code = row.at[i]->code;
        tn_tensor *other = NULL;
        const char *before = tn__error_plugin("");
        uint64_t scope = tn_scope_begin(), failures = tn_error_mark();
        status = tn__error_returned(
            code->function.slot(code->user, module, name, *tensor, &other), failures,
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

tn_status tn__hooks_registering_child(tn_module *module, const char *name, tn_module **child)
{
    tn__hook_row row;

    tn_module_keep(*child);
    if (none_of(TN__HOOK_CHILD))
        return TN_OK;
    tn_status status = tn__hook_row_take(NULL, TN__HOOK_CHILD, &row);
    for (int64_t i = 0; i < row.count && status == TN_OK; i++) {
        const tn__hook_code *code = row.at[i]->code;
        tn_module *other = NULL;
        const char *before = tn__error_plugin("");
        uint64_t scope = tn_scope_begin(), failures = tn_error_mark();
        status = tn__error_returned(code->function.child(code->user, module, name, *child, &other),
                                    failures, "a hook on the registration of modules");
        tn_scope_end(scope);
        tn__error_plugin_back(before);
        if (other != NULL) {
            tn_module_drop(*child);
            *child = other;
        }
    }
    tn__hook_row_drop(&row);
    if (status != TN_OK) {
        tn_module_drop(*child);
        *child = NULL;
    }
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
