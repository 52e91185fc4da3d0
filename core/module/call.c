/* SPDX-License-Identifier: MIT
 *
 * Calling a module: the one place where observers, scopes, errors and hooks go around a layer's
 * forward. */
#include "core/module/hooks.h"
#include "core/plugin/check_thread.h"

/* The calls under way in this thread, for the path in error texts. */
struct frame {
    tn_module *module;
    struct frame *outer;
    int depth;
    bool orphan; /* the module's last reference was dropped during the call */
};

static _Thread_local struct frame *innermost TN__TLS_NEAR;
static _Thread_local uint64_t described
    TN__TLS_NEAR; /* count of failures at which the last path was put in front */

/* What a call takes and gives: one tensor, or packs. */
struct exchange {
    tn_tensor *input;
    tn_tensor *output; /* owned */
    const tn_pack *pack_in;
    tn_pack *pack_out;
};

/* A hook or a forward may take the module that is being called out of its tree. It lives until
 * its outermost call of this thread ends: a reference for every call would cost more than the
 * rest of it. */
bool tn__call_holds(const tn_module *module)
{
    struct frame *holder = NULL;

    for (struct frame *frame = innermost; frame != NULL; frame = frame->outer)
        if (frame->module == module)
            holder = frame;
    if (holder != NULL)
        holder->orphan = true;
    return holder != NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* "0.fc1" of the frame within the outermost module that is being called. */
static void put_path(const struct frame *frame, tn__text *text)
{
    if (frame->outer == NULL)
        return;
    put_path(frame->outer, text);
    if (text->length > 0)
        tn__text_put(text, ".", 1);
    const tn__slots *slots = &frame->outer->module->children;
    for (int64_t i = 0; i < slots->count; i++) {
        if (slots->at[i].child == frame->module) {
            tn__text_add(text, "%s", slots->at[i].name);
            return;
        }
    }
    tn__text_add(text, "<%s>", frame->module->type); /* called, but no child of the caller */
}

static void write_where(const struct frame *frame, tn__text *text)
{
    const struct frame *root = frame;

    while (root->outer != NULL)
        root = root->outer;
    tn__text_add(text, "%s", root->module->type);
    if (root != frame) {
        tn__text path = { 0 };

        put_path(frame, &path);
        if (path.at != NULL)
            tn__text_add(text, ", module \"%s\" (%s)", path.at, frame->module->type);
        tn__text_free(&path);
    }
}

/* For anomaly mode: where this thread is. */
static void where_now(tn__text *text)
{
    if (innermost != NULL)
        write_where(innermost, text);
}

/* Puts the module in front of the message, once, by the innermost call that failed. */
static void add_where(const struct frame *frame)
{
    tn__text where = { 0 };
    char own[80];

    if (described == tn_error_mark())
        return;
    write_where(frame, &where);
    tn_snprint(own, sizeof own, "%s: ", frame->module->type); /* it would be there twice */
    tn__error_cut(own);
    tn_error_prefix("in %s: ", where.at != NULL ? where.at : frame->module->type);
    tn__text_free(&where);
    described = tn_error_mark();
}

/* ---- the layer's code, both forms ------------------------------------------------------------ */

static const char *plugin_of(const tn_module *module)
{
    return module->plugin != NULL ? module->plugin->id : "";
}

static tn_status call_layer(tn_module *module, const tn_pack *in, tn_pack *out)
{
    tn__check_thread thread;
    tn__check_enter(&thread);
    tn_status status = module->layer->call(module, in, out);
    return tn__check_leave(&thread, plugin_of(module), module->type, status);
}

static tn_status forward_one(tn_module *module, tn_tensor *input, tn_tensor **output)
{
    tn__check_thread thread;
    tn__check_enter(&thread);
    tn_tensor *result = module->layer->forward(module, input);
    tn_status status = tn__check_leave(&thread, plugin_of(module), module->type,
                                       result != NULL ? TN_OK : TN_ERR_RUNTIME);
    if (status != TN_OK)
        return status;
    if (tn__is_none(result))
        return tn_fail(TN_ERR_TYPE, "forward: wrong result, got TN_NONE; expected a tensor");
    *output = tn_tensor_keep(result);
    return TN_OK;
}

/* The one tensor that a pack has to hold, kept. */
static tn_status one_tensor(const tn_pack *out, tn_tensor **output)
{
    int64_t count = tn_pack_count(out);
    if (count != 1 || tn_pack_at(out, 0).kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE,
                       "forward: wrong result, got %lld values; expected one tensor "
                       "(tn_module_call_pack takes more)",
                       (long long)count);
    *output = tn_tensor_keep(tn_pack_tensor(out, 0));
    return TN_OK;
}

/* One tensor through a layer that takes packs. */
static tn_status call_with_packs(tn_module *module, tn_tensor *input, tn_tensor **output)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_status status = TN_ERR_MEMORY;
    if (in != NULL && out != NULL)
        status = tn_pack_add(in, NULL, tn_value_tensor(input));
    if (status == TN_OK)
        status = call_layer(module, in, out);
    if (status == TN_OK)
        status = one_tensor(out, output);
    tn_pack_drop(in);
    tn_pack_drop(out);
    return status;
}

/* Packs through a layer that takes one tensor and gives one. */
static tn_status forward_with_packs(tn_module *module, const tn_pack *in, tn_pack *out)
{
    int64_t count = tn_pack_count(in), positional = tn_pack_positional(in);
    const char *name = count > 0 ? tn_pack_name(in, 0) : NULL;
    if (count != 1 || (positional != 1 && (name == NULL || strcmp(name, "input") != 0)))
        return tn_fail(TN_ERR_TYPE,
                       "forward: wrong arguments, got %lld positional and %lld named; expected one "
                       "tensor (\"input\")",
                       (long long)positional, (long long)(count - positional));
    tn_tensor *input = tn_pack_tensor(in, 0);
    if (input == NULL)
        return tn_error_last_code();
    tn_tensor *output = NULL;
    tn_status status = forward_one(module, input, &output);
    if (status == TN_OK) {
        status = tn_pack_add(out, NULL, tn_value_tensor(output));
        tn_tensor_drop(output);
    }
    return status;
}

/* PyTorch's words, and what would help. */
static tn_status no_forward(const tn_module *module)
{
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "Module [%s] is missing the required \"forward\" function%s%s", module->type,
                   module->layer == NULL ? ": its type was only read from printed text; load a "
                                           "plugin that provides layer "
                                         : "",
                   module->layer == NULL ? module->type : "");
}

static bool has_forward(const tn_module *module)
{
    return module->layer != NULL && (module->layer->forward != NULL || module->layer->call != NULL);
}

static tn_status run_packs(tn_module *module, const tn_pack *in, tn_pack *out)
{
    if (!has_forward(module))
        return no_forward(module);
    return module->layer->call != NULL ? call_layer(module, in, out)
                                       : forward_with_packs(module, in, out);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* A call with hooks around it, all in packs. */
struct hooked {
    tn_module *module;
    tn_pack *input;     /* owned */
    tn_pack *output;    /* owned; NULL until forward is done */
    tn__hook_row after; /* the forward hooks, when their turn has come */
    bool taken;
    int64_t ran; /* how many of them began */
};

/* A new pack with the positional or the named values of another added to what it has. */
static tn_status add_values(tn_pack *to, const tn_pack *from, bool positional, bool named)
{
    int64_t first_named = tn_pack_positional(from);
    int64_t end = named ? tn_pack_count(from) : first_named;
    tn_status status = TN_OK;
    for (int64_t i = positional ? 0 : first_named; i < end && status == TN_OK; i++)
        status = tn_pack_add(to, tn_pack_name(from, i), tn_pack_at(from, i));
    return status;
}

/* What a hook sees of the input; `own` is what must be dropped then. NULL and an error. */
static const tn_pack *seen_by(const tn__hook *hook, const tn_pack *input, tn_pack **own)
{
    *own = NULL;
    if ((hook->flags & TN_HOOK_NAMED) != 0 || tn_pack_positional(input) == tn_pack_count(input))
        return input;
    *own = tn_pack_new();
    if (*own == NULL || add_values(*own, input, true, false) != TN_OK) {
        tn_pack_drop(*own);
        *own = NULL;
    }
    return *own;
}

static tn_status run_pre_hook(struct hooked *h, const tn__hook *hook)
{
    tn_pack *own, *replaced = NULL;
    const tn_pack *input = seen_by(hook, h->input, &own);
    tn__hook_turn turn;
    tn_status status = input != NULL ? tn__hook_turn_begin(&turn) : tn_error_last_code();

    if (status == TN_OK) {
        status = hook->code->function.forward_pre(hook->code->user, h->module, input,
                                                  turn.replacement, &turn.outcome);
        status = tn__hook_turn_end(&turn, status, "forward pre-hook",
                                   "a tuple of (new_args, new_kwargs)", &replaced);
    }
    tn_pack_drop(own);
    if (replaced == NULL)
        return status;
    if ((hook->flags & TN_HOOK_NAMED) == 0) {
        if (tn_pack_positional(replaced) < tn_pack_count(replaced))
            /* PyTorch's words */
            status = tn_fail(TN_ERR_RUNTIME,
                             "forward pre-hook must return None or a tuple of new_args, but got "
                             "%q by name: only hooks with TN_HOOK_NAMED replace named arguments",
                             tn_pack_name(replaced, tn_pack_positional(replaced)));
        else
            status = add_values(replaced, h->input, false, true);
    }
    if (status != TN_OK) {
        tn_pack_drop(replaced);
        return status;
    }
    tn_pack_drop(h->input);
    h->input = replaced;
    return TN_OK;
}

static tn_status run_pre_hooks(struct hooked *h)
{
    tn__hook_row row;
    tn_status status = tn__hook_row_take(h->module, TN__HOOK_FORWARD_PRE, &row);
    for (int64_t i = 0; i < row.count && status == TN_OK; i++)
        status = run_pre_hook(h, row.at[i]);
    tn__hook_row_drop(&row);
    return status;
}

static tn_status run_forward_hook(struct hooked *h, const tn__hook *hook)
{
    tn_pack *own, *replaced = NULL;
    const tn_pack *input = seen_by(hook, h->input, &own);
    tn__hook_turn turn;
    tn_status status = input != NULL ? tn__hook_turn_begin(&turn) : tn_error_last_code();

    if (status == TN_OK) {
        status = hook->code->function.forward(hook->code->user, h->module, input, h->output,
                                              turn.replacement, &turn.outcome);
        status = tn__hook_turn_end(&turn, status, "forward hook", "another output", &replaced);
    }
    tn_pack_drop(own);
    if (replaced != NULL) {
        tn_pack_drop(h->output);
        h->output = replaced;
    }
    return status;
}

static tn_status run_forward_hooks(struct hooked *h)
{
    tn_status status = tn__hook_row_take(h->module, TN__HOOK_FORWARD, &h->after);
    h->taken = true;
    while (h->ran < h->after.count && status == TN_OK)
        status = run_forward_hook(h, h->after.at[h->ran++]);
    return status;
}

/* Whether the last failure is this one. Behind a message's end there is whatever was there
 * before. */
static bool last_failure_is(const tn_error *e)
{
    const tn_error *last = tn_error_last();

    return last->code == e->code && last->native == e->native &&
           strcmp(last->plugin, e->plugin) == 0 && strcmp(last->message, e->message) == 0;
}

/* The call failed: the hooks that always run and have not begun. The failure stays what it is. */
static void run_always(struct hooked *h)
{
    const tn_error failure = *tn_error_last();
    bool is_described = described == tn_error_mark();

    if (!h->taken && tn__hook_row_take(h->module, TN__HOOK_FORWARD, &h->after) != TN_OK)
        tn__log(TN_LOG_WARNING, "no memory for the forward hooks that always run");
    h->taken = true;
    for (; h->ran < h->after.count; h->ran++) {
        const tn__hook *hook = h->after.at[h->ran];
        uint64_t mark = tn_error_mark();
        if ((hook->flags & TN_HOOK_ALWAYS) == 0)
            continue;
        if (run_forward_hook(h, hook) != TN_OK)
            tn__log(TN_LOG_WARNING,
                    "module forward hook with always_call raised an exception that was silenced as "
                    "another error was raised in forward: %s",
                    tn_error_last()->message);
        tn_error_restore(mark);
    }
    if (!last_failure_is(&failure))
        tn__error_put(&failure);
    if (is_described)
        described = tn_error_mark();
}

static tn_status between_hooks(struct hooked *h)
{
    tn_pack *out = tn_pack_new();
    tn_status status = out != NULL ? run_packs(h->module, h->input, out) : TN_ERR_MEMORY;
    if (status != TN_OK) {
        tn_pack_drop(out);
        return status;
    }
    h->output = out;
    return run_forward_hooks(h);
}

static tn_status run_hooks(struct hooked *h)
{
    tn__backward *passage = NULL;
    tn_pack *fresh = NULL;
    tn_status status = TN_OK;

    if ((tn__hook_kinds(h->module) & TN__HOOKS_BACKWARD) != 0)
        status = tn__backward_new(h->module, &passage);
    if (status == TN_OK)
        status = run_pre_hooks(h);
    if (status == TN_OK && passage != NULL)
        status = tn__backward_input(passage, h->input, &fresh);
    if (fresh != NULL) {
        tn_pack_drop(h->input);
        h->input = fresh;
    }
    if (status == TN_OK)
        status = between_hooks(h);
    if (status == TN_OK && passage != NULL)
        status = tn__backward_output(passage, h->output);
    tn__backward_drop(passage);
    return status;
}

static tn_status run_hooked(tn_module *module, struct exchange *x)
{
    struct hooked h = { .module = module, .input = tn_pack_new() };
    uint64_t failures = tn_error_mark();
    tn_status status = h.input == NULL      ? TN_ERR_MEMORY
                       : x->pack_in != NULL ? add_values(h.input, x->pack_in, true, true)
                                            : tn_pack_add(h.input, NULL, tn_value_tensor(x->input));
    h.after.at = h.after.few;
    if (status == TN_OK) {
        status = run_hooks(&h);
        if (status == TN_OK)
            status = x->pack_out != NULL ? add_values(x->pack_out, h.output, true, true)
                                         : one_tensor(h.output, &x->output);
        if (status != TN_OK) {
            if (tn_error_mark() == failures)
                tn_fail(status, "forward: failed with %s and recorded no message",
                        tn_status_name(status));
            run_always(&h);
        }
    }
    tn__hook_row_drop(&h.after);
    tn_pack_drop(h.input);
    tn_pack_drop(h.output);
    return status;
}

/* ---- the call's inside ----------------------------------------------------------------------- */

static tn_status run_layer(tn_module *module, struct exchange *x)
{
    if (tn__unlikely(module->layer != NULL && module->layer->infer != NULL)) {
        tn_status status = tn__lazy_infer(module, x->pack_in, x->input);
        if (status != TN_OK)
            return status;
    }
    if (tn__unlikely((tn__hook_kinds(module) & TN__HOOKS_OF_CALLS) != 0))
        return run_hooked(module, x);
    if (x->pack_in != NULL)
        return run_packs(module, x->pack_in, x->pack_out);
    if (!has_forward(module))
        return no_forward(module);
    return module->layer->forward != NULL ? forward_one(module, x->input, &x->output)
                                          : call_with_packs(module, x->input, &x->output);
}

/* ---- observers ------------------------------------------------------------------------------- */

struct watch {
    const tn_observer_def *observers[TN__OBSERVERS];
    uint64_t tokens[TN__OBSERVERS];
    int64_t count;
    tn_module_event event;
    tn__text path;
};

tn_module *tn__call_now(void)
{
    return innermost != NULL ? innermost->module : NULL;
}

static void watch_begin(struct watch *watch, tn_module *module)
{
    const struct frame frame = { module, innermost, 0, false };

    watch->count = tn__observers(watch->observers);
    watch->path = (tn__text){ 0 };
    put_path(&frame, &watch->path);
    watch->event = (tn_module_event){ TN_HEAD(tn_module_event), .module = module,
                                      .path = watch->path.at != NULL ? watch->path.at : "" };
    for (int64_t i = 0; i < watch->count; i++) {
        const tn_observer_def *observer = watch->observers[i];
        watch->tokens[i] = observer->module_begin != NULL
                               ? observer->module_begin(observer->user, &watch->event)
                               : 0;
    }
}

static void watch_end(struct watch *watch, tn_status status)
{
    watch->event.status = status;
    for (int64_t i = watch->count; i-- > 0;) {
        const tn_observer_def *observer = watch->observers[i];
        if (observer->module_end != NULL)
            observer->module_end(observer->user, watch->tokens[i], &watch->event);
    }
    tn__text_free(&watch->path);
}

/* ---- the call -------------------------------------------------------------------------------- */

static tn_status call_in_scope(tn_module *module, struct exchange *x)
{
    struct frame frame = { module, innermost, innermost != NULL ? innermost->depth + 1 : 0, false };
    if (frame.depth > TN__MODULE_DEPTH)
        return tn_fail(TN_ERR_RUNTIME, "module calls: nested too deep; expected at most %d levels",
                       TN__MODULE_DEPTH);
    innermost = &frame;
    if (tn__unlikely(tn__anomaly_on()))
        atomic_store_explicit(&tn__anomaly_where, where_now, memory_order_release);
    const char *before = tn__error_plugin(module->plugin != NULL ? module->plugin->id : "");
    uint64_t failures = tn_error_mark();
    uint64_t scope = tn_scope_begin();
    tn_status status = run_layer(module, x);
    tn_scope_end(scope);
    if (tn__unlikely(status != TN_OK)) {
        if (tn_error_mark() == failures)
            tn_fail(status, "forward: failed with %s and recorded no message",
                    tn_status_name(status));
        add_where(&frame);
        status = tn_error_last_code();
    }
    tn__error_plugin_back(before);
    innermost = frame.outer;
    if (tn__unlikely(frame.orphan))
        tn__module_destroy(module);
    return status;
}

static tn_status call(tn_module *module, struct exchange *x)
{
    if (tn__likely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) == 0))
        return call_in_scope(module, x);
    struct watch watch;
    tn_module_keep(module); /* an observer is told of it before the call holds it */
    watch_begin(&watch, module);
    tn_status status = call_in_scope(module, x);
    watch_end(&watch, status);
    tn_module_drop(module);
    return status;
}

tn_tensor *tn_module_call(tn_module *module, tn_tensor *input)
{
    if (tn__unlikely(module == NULL || input == NULL)) {
        tn__error_null_input("tn_module_call: argument");
        return NULL;
    }
    struct exchange x = { .input = input };
    if (call(module, &x) != TN_OK)
        return NULL;
    return tn_tensor_to_scope(x.output);
}

tn_tensor *tn_module_call_child(tn_module *module, const char *name, tn_tensor *input)
{
    if (tn__unlikely(module == NULL || name == NULL || input == NULL)) {
        tn__error_null_input("tn_module_call_child: argument");
        return NULL;
    }
    uint64_t failures = tn_error_mark();
    tn_module *child = tn_module_child(module, name);
    if (child != NULL)
        return tn_module_call(child, input);
    if (tn_error_mark() == failures)
        tn_fail(TN_ERR_TYPE, "%s: child slot '%s': empty; expected a module", module->type, name);
    return NULL;
}

tn_status tn_module_call_pack(tn_module *module, const tn_pack *input, tn_pack *output)
{
    if (module == NULL || input == NULL || output == NULL)
        return tn__error_null_input("tn_module_call_pack: argument");
    if (tn_pack_count(output) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_call_pack: output: not empty, got %lld values; expected none",
                       (long long)tn_pack_count(output));
    struct exchange x = { .pack_in = input, .pack_out = output };
    return call(module, &x);
}
