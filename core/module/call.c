/* SPDX-License-Identifier: MIT
 *
 * Calls of modules. Observers, scopes, error texts and hooks are put around a layer's forward here
 * and nowhere else. */
#include "core/module/call.h"
#include "core/module/depth.h"
#include "core/module/hooks.h"
#include "core/tensor/trace.h"
#include "core/tensor/boundary.h"

static _Thread_local uint64_t described
    TN__TLS_NEAR; /* tn_error_mark() when add_where() last changed a message */

/* The input and the output of a call: one tensor each, or one pack each. The other two members are
 * NULL. */
struct exchange {
    tn_tensor *input;
    tn_tensor *output; /* owned */
    const tn_pack *pack_in;
    tn_pack *pack_out;
    /* The modules that the layer may compute in the same operator, and how many of them it has
     * computed; usually none. */
    const tn_follower *followers;
    int64_t n_followers, done;
};

/* Calls do not take a reference to their module, because that would cost more than the rest of a
 * call. A hook or a forward may drop the last reference by removing the module from its tree. Then
 * the module lives until its outermost call in this thread ends. */
bool tn__call_holds(const tn_module *module)
{
    tn__call_frame *holder = NULL;

    for (tn__call_frame *frame = tn__call_here; frame != NULL; frame = frame->outer)
        if (frame->module == module)
            holder = frame;
    if (holder != NULL)
        holder->orphan = true;
    return holder != NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* For anomaly mode: writes which module this thread is calling. */
static void where_now(tn__text *text)
{
    if (tn__call_here != NULL)
        tn__call_path_where(tn__call_here, text);
}

/* Puts the path of the module in front of the error message. Only the innermost failed call does
 * this: the calls around it see in `described` that it is done. */
static void add_where(const tn__call_frame *frame)
{
    tn__text where = { 0 };
    char own[80];

    if (described == tn_error_mark())
        return;
    tn__call_path_where(frame, &where);
    tn_snprint(own, sizeof own, "%s: ", frame->module->type); /* cut off: the prefix repeats it */
    tn__error_cut(own);
    tn_error_prefix("in %s: ", where.at != NULL ? where.at : frame->module->type);
    tn__text_free(&where);
    described = tn_error_mark();
}

/* ---- the layer's function, for one tensor or for packs --------------------------------------- */

/* The forward of a module, of its layer or of the program: `forward`, `call` or both. */
struct code {
    tn_tensor *(*forward)(tn_module *self, tn_tensor *input);
    tn_status (*call)(tn_module *self, const tn_pack *input, tn_pack *output);
};

static struct code code_of(const tn_module *module)
{
    struct code code = { NULL, NULL };

    if (tn__likely(module->layer != NULL))
        code = (struct code){ module->layer->forward, module->layer->call };
    else if (module->own_forward != NULL)
        code = (struct code){ module->own_forward->forward, module->own_forward->call };
    return code;
}

static const char *plugin_of(const tn_module *module)
{
    return module->plugin != NULL ? module->plugin->id : "";
}

static tn_status call_layer(tn_module *module, struct code code, const tn_pack *in, tn_pack *out)
{
    tn__boundary_thread thread;
    tn__boundary_enter(&thread);
    tn_status status = code.call(module, in, out);
    return tn__boundary_leave(&thread, plugin_of(module), module->type, status);
}

static tn_status forward_one(tn_module *module, struct code code, tn_tensor *input,
                             tn_tensor **output)
{
    tn__boundary_thread thread;
    tn__boundary_enter(&thread);
    tn_tensor *result = code.forward(module, input);
    tn_status status = tn__boundary_leave(&thread, plugin_of(module), module->type,
                                          result != NULL ? TN_OK : TN_ERR_RUNTIME);
    if (status != TN_OK)
        return status;
    if (tn__is_none(result))
        return tn_fail(TN_ERR_TYPE, "forward: wrong result, got TN_NONE; expected a tensor");
    *output = tn_tensor_keep(result);
    return TN_OK;
}

/* Sets *output to a new reference to the only value of the pack, which must be a tensor. */
static tn_status one_tensor(const tn_pack *out, tn_tensor **output)
{
    int64_t count = tn_pack_count(out);
    if (count != 1 || tn_pack_at(out, 0).kind != TN_VALUE_TENSOR)
        return count == 1 ? tn_fail(TN_ERR_TYPE,
                                    "forward: wrong result, got %s; expected one tensor "
                                    "(for other values, call tn_module_call_pack)",
                                    tn__value_kind_name(tn_pack_at(out, 0).kind))
                          : tn_fail(TN_ERR_TYPE,
                                    "forward: wrong result, got %lld values; expected one tensor "
                                    "(for several, call tn_module_call_pack)",
                                    (long long)count);
    *output = tn_tensor_keep(tn_pack_tensor(out, 0));
    return TN_OK;
}

/* Passes one tensor through a layer that takes packs. */
static tn_status call_with_packs(tn_module *module, struct code code, tn_tensor *input,
                                 tn_tensor **output)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_status status = TN_ERR_MEMORY;
    if (in != NULL && out != NULL)
        status = tn_pack_add(in, NULL, tn_value_tensor(input));
    if (status == TN_OK)
        status = call_layer(module, code, in, out);
    if (status == TN_OK)
        status = one_tensor(out, output);
    tn_pack_drop(in);
    tn_pack_drop(out);
    return status;
}

/* Passes packs through a layer that takes and returns one tensor. */
static tn_status forward_with_packs(tn_module *module, struct code code, const tn_pack *in,
                                    tn_pack *out)
{
    int64_t count = tn_pack_count(in), positional = tn_pack_positional(in);
    const char *name = count > 0 ? tn_pack_name(in, 0) : NULL;
    if (count != 1 || (positional != 1 && (name == NULL || strcmp(name, "input") != 0)))
        return count == 1 ? tn_fail(TN_ERR_TYPE,
                                    "forward: wrong argument, got one named %q; expected one "
                                    "tensor by position, or named \"input\"",
                                    name)
                          : tn_fail(TN_ERR_TYPE,
                                    "forward: wrong arguments, got %lld positional and %lld "
                                    "named; expected one tensor (\"input\")",
                                    (long long)positional, (long long)(count - positional));
    tn_tensor *input = tn_pack_tensor(in, 0);
    if (input == NULL)
        return tn_error_last_code();
    tn_tensor *output = NULL;
    tn_status status = forward_one(module, code, input, &output);
    if (status == TN_OK) {
        status = tn_pack_add(out, NULL, tn_value_tensor(output));
        tn_tensor_drop(output);
    }
    return status;
}

/* PyTorch's wording, followed by advice. */
static tn_status no_forward(const tn_module *module)
{
    const char *advice =
        tn__make_lacks_options(module)
            ? "; it was read from printed text, which does not have the options of this layer: "
              "make it from its spec (tn_module_spec), or set the forward with "
              "tn_module_set_forward"
        : module->layer == NULL
            ? "; load a plugin that provides this layer, or set the forward with "
              "tn_module_set_forward"
            : "; it is a container: call its children, or put them into a module of the "
              "program (tn_module_plain), whose forward tn_module_set_forward sets";

    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "Module [%s] is missing the required \"forward\" function%s", module->type,
                   advice);
}

static tn_status run_packs(tn_module *module, const tn_pack *in, tn_pack *out)
{
    struct code code = code_of(module);

    if (code.call != NULL)
        return call_layer(module, code, in, out);
    return code.forward != NULL ? forward_with_packs(module, code, in, out) : no_forward(module);
}

/* Lets the layer compute forward and followers in one operator. x->done is 0 if it cannot. */
static tn_status run_fused(tn_module *module, struct exchange *x)
{
    uint64_t failures = tn_error_mark();
    tn__boundary_thread thread;
    tn__boundary_enter(&thread);
    tn_tensor *result = module->layer->fuse(module, x->input, x->followers, x->n_followers,
                                            &x->done);
    bool failed = result == NULL && tn_error_mark() != failures;
    if (result == NULL)
        x->done = 0;
    else
        x->output = tn_tensor_keep(result);
    return tn__boundary_leave(&thread, plugin_of(module), module->type,
                              failed ? TN_ERR_RUNTIME : TN_OK);
}

static tn_status run_code(tn_module *module, struct exchange *x)
{
    struct code code = code_of(module);

    if (tn__unlikely(x->n_followers > 0)) {
        tn_status status = run_fused(module, x);
        if (status != TN_OK || x->done > 0)
            return status;
    }
    if (x->pack_in != NULL)
        return run_packs(module, x->pack_in, x->pack_out);
    if (tn__likely(code.forward != NULL))
        return forward_one(module, code, x->input, &x->output);
    return code.call != NULL ? call_with_packs(module, code, x->input, &x->output)
                             : no_forward(module);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* A call with hooks around it. Its values are always in packs. */
struct hooked {
    tn_module *module;
    tn_pack *input;     /* owned */
    tn_pack *output;    /* owned; NULL until forward has returned */
    tn__hook_row after; /* the forward hooks; empty until `taken` */
    bool taken;
    int64_t ran; /* number of forward hooks that were started */
};

/* Returns the input as the hook gets it: without named values unless the hook has TN_HOOK_NAMED.
 * The caller must drop *own, which may be NULL. Returns NULL and sets the error on failure. */
static const tn_pack *seen_by(const tn__hook *hook, const tn_pack *input, tn_pack **own)
{
    *own = NULL;
    if ((hook->flags & TN_HOOK_NAMED) != 0 || tn_pack_positional(input) == tn_pack_count(input))
        return input;
    *own = tn_pack_new();
    if (*own == NULL || tn__hook_add_values(*own, input, true, false) != TN_OK) {
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
        status = ((tn_forward_pre_hook)hook->function)(hook->user, h->module, input,
                                                       turn.replacement, &turn.outcome);
        status = tn__hook_turn_end(&turn, status, "forward pre-hook",
                                   "a tuple of (new_args, new_kwargs)", &replaced);
    }
    tn_pack_drop(own);
    if (replaced == NULL)
        return status;
    if ((hook->flags & TN_HOOK_NAMED) == 0) {
        if (tn_pack_positional(replaced) < tn_pack_count(replaced))
            /* PyTorch's wording */
            status = tn_fail(TN_ERR_RUNTIME,
                             "forward pre-hook must return None or a tuple of new_args, but got "
                             "%q by name: only hooks with TN_HOOK_NAMED replace named arguments",
                             tn_pack_name(replaced, tn_pack_positional(replaced)));
        else
            status = tn__hook_add_values(replaced, h->input, false, true);
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
    tn_status status = tn__module_hooks_take(h->module, TN__HOOK_FORWARD_PRE, &row);
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
        status = ((tn_forward_hook)hook->function)(hook->user, h->module, input, h->output,
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
    tn_status status = tn__module_hooks_take(h->module, TN__HOOK_FORWARD, &h->after);
    h->taken = true;
    while (h->ran < h->after.count && status == TN_OK)
        status = run_forward_hook(h, h->after.at[h->ran++]);
    return status;
}

/* Runs the hooks with TN_HOOK_ALWAYS that have not been started, after the call failed. The error
 * of the call stays the last error. */
static void run_always(struct hooked *h)
{
    const tn_error failure = *tn_error_last();
    bool is_described = described == tn_error_mark();

    if (!h->taken && tn__module_hooks_take(h->module, TN__HOOK_FORWARD, &h->after) != TN_OK)
        tn__log(TN_LOG_WARNING,
                "forward hooks: out of memory; hooks with TN_HOOK_ALWAYS do not run");
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
    if (!tn__hook_failure_is(&failure))
        tn__error_put(&failure);
    if (is_described)
        described = tn_error_mark();
}

static tn_status between_hooks(struct hooked *h)
{
    tn__compiled *compiled = h->module->compiled;
    tn_pack *out = tn_pack_new();
    tn_status status = out != NULL ? TN_OK : TN_ERR_MEMORY;
    bool done = false;

    if (status == TN_OK && compiled != NULL)
        status = compiled->call(compiled, h->module, h->input, out, &done);
    if (status == TN_OK && !done)
        status = run_packs(h->module, h->input, out);
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

/* Calls of this module on this thread skip its hooks (tn__call_bare). */
static _Thread_local tn_module *bare TN__TLS_NEAR;

tn_module *tn__call_bare(tn_module *module)
{
    tn_module *before = bare;

    bare = module;
    return before;
}

/* Not a part of the caller, so that calls without hooks need less of the stack and of registers. */
static TN_ATTR(noinline) tn_status run_hooked(tn_module *module, struct exchange *x)
{
    struct hooked h = { .module = module, .input = tn_pack_new() };
    uint64_t failures = tn_error_mark();
    tn_status status = h.input == NULL      ? TN_ERR_MEMORY
                       : x->pack_in != NULL ? tn__hook_add_values(h.input, x->pack_in, true, true)
                                            : tn_pack_add(h.input, NULL, tn_value_tensor(x->input));
    h.after.at = h.after.few;
    if (status == TN_OK) {
        status = run_hooks(&h);
        if (status == TN_OK)
            status = x->pack_out != NULL ? tn__hook_add_values(x->pack_out, h.output, true, true)
                                         : one_tensor(h.output, &x->output);
        if (status != TN_OK) {
            status = tn_error_returned(status, failures, "forward");
            run_always(&h);
        }
    }
    tn__hook_row_drop(&h.after);
    tn_pack_drop(h.input);
    tn_pack_drop(h.output);
    return status;
}

/* ---- inside the scope of a call -------------------------------------------------------------- */

static tn_status run_layer(tn_module *module, struct exchange *x)
{
    if (tn__unlikely(module->layer != NULL && module->layer->infer != NULL)) {
        tn_status status = tn__lazy_infer(module, x->pack_in, x->input);
        if (status != TN_OK)
            return status;
    }
    if (tn__unlikely((tn__hook_kinds(module) & TN__HOOKS_OF_CALLS) != 0) && module != bare)
        return run_hooked(module, x);
    return run_code(module, x);
}

/* ---- the call -------------------------------------------------------------------------------- */

static tn__call_frame frame_of(tn_module *module)
{
    return (tn__call_frame){ module, tn__call_here,
                             tn__call_here != NULL ? tn__call_here->depth + 1 : 0, false };
}

static tn_status call_in_scope(tn_module *module, struct exchange *x)
{
    tn__call_frame frame = frame_of(module);
    if (tn__unlikely(tn__depth_check("module calls", frame.depth) != TN_OK))
        return tn_error_last_code();
    tn__call_here = &frame;
    if (tn__unlikely(tn__anomaly_on()))
        atomic_store_explicit(&tn__anomaly_where, where_now, memory_order_release);
    const char *before = tn__error_plugin(module->plugin != NULL ? module->plugin->id : "");
    uint64_t failures = tn_error_mark();
    /* the program may set another forward while this one runs */
    tn__own_forward *own = tn__own_forward_keep(module->own_forward);
    uint64_t scope = tn_scope_begin();
    tn_status status = run_layer(module, x);
    tn_scope_end(scope);
    tn__own_forward_drop(own);
    if (tn__unlikely(status != TN_OK)) {
        tn_error_returned(status, failures, "forward");
        add_where(&frame);
        status = tn_error_last_code();
    }
    tn__error_plugin_back(before);
    tn__call_here = frame.outer;
    if (tn__unlikely(frame.orphan))
        tn__module_destroy(module);
    return status;
}

/* The path of the innermost call, for a trace. */
void tn__call_path(tn__text *text)
{
    if (tn__call_here != NULL)
        tn__call_path_put(tn__call_here, text);
}

/* A trace records the call as one node, or records the calls that the module makes. */
static tn_status call_traced(tn_module *module, struct exchange *x)
{
    tn__tracer *tracer = tn__tracer_here;
    tn_status status = TN_OK;
    bool leaf = tracer->module_begin(tracer, module, x->input, x->pack_in, &status);

    if (status == TN_OK)
        status = call_in_scope(module, x);
    return leaf ? tracer->module_end(tracer, module, x->input, x->pack_in, &x->output, x->pack_out,
                                     status)
                : status;
}

static tn_status call(tn_module *module, struct exchange *x)
{
    if (tn__likely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) == 0))
        return call_in_scope(module, x);
    if (tn__tracer_here != NULL)
        return call_traced(module, x);
    const tn__call_frame frame = frame_of(module);
    tn__call_observed seen;
    tn_module_keep(module); /* for the observers, which run before and after the call */
    tn__call_observe_begin(&seen, &frame);
    tn_status status = call_in_scope(module, x);
    tn__call_observe_end(&seen, status);
    tn_module_drop(module);
    return status;
}

tn_tensor *tn_module_call(tn_module *module, tn_tensor *input)
{
    if (tn__unlikely(module == NULL || input == NULL)) {
        tn__error_null_of("tn_module_call", "module, input", module, input);
        return NULL;
    }
    struct exchange x = { .input = input };
    if (call(module, &x) != TN_OK)
        return NULL;
    return tn_tensor_to_scope(x.output);
}

tn_tensor *tn__call_fused(tn_module *module, tn_tensor *input, const tn_follower *followers,
                          int64_t count, int64_t *done)
{
    struct exchange x = { .input = input, .followers = followers, .n_followers = count };
    *done = 0;
    if (call_in_scope(module, &x) != TN_OK)
        return NULL;
    *done = x.done;
    return tn_tensor_to_scope(x.output);
}

tn_status tn_module_call_pack(tn_module *module, const tn_pack *input, tn_pack *output)
{
    if (module == NULL || input == NULL || output == NULL)
        return tn__error_null_of("tn_module_call_pack", "module, input, output", module, input,
                                 output);
    if (tn_pack_count(output) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_call_pack: output: not empty, got %lld values; expected none",
                       (long long)tn_pack_count(output));
    struct exchange x = { .pack_in = input, .pack_out = output };
    return call(module, &x);
}
