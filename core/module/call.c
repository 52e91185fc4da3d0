/* SPDX-License-Identifier: MIT
 *
 * Calling a module: the one place where observers, scopes and errors (and, when they come, hooks) go
 * around a layer's forward. */
#include "core/module/internal.h"

/* The calls under way in this thread, for the path in error texts. */
struct frame {
    tn_module *module;
    struct frame *outer;
    int depth;
};

static _Thread_local struct frame *innermost;
static _Thread_local uint64_t
    worded; /* count of failures at which the last path was put in front */

/* What a call takes and gives: one tensor, or packs. */
struct exchange {
    tn_tensor *input;
    tn_tensor *output; /* owned */
    const tn_pack *pack_in;
    tn_pack *pack_out;
};

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
static void word_failure(const struct frame *frame)
{
    tn__text where = { 0 };

    if (worded == tn_error_mark())
        return;
    write_where(frame, &where);
    tn_error_prefix("in %s: ", where.at != NULL ? where.at : frame->module->type);
    tn__text_free(&where);
    worded = tn_error_mark();
}

/* ---- the layer's code, both forms ------------------------------------------------------------ */

static tn_status forward_one(tn_module *module, tn_tensor *input, tn_tensor **output)
{
    tn_tensor *result = module->layer->forward(module, input);
    if (result == NULL)
        return TN_ERR_RUNTIME;
    if (tn__is_none(result))
        return tn_fail(TN_ERR_TYPE, "forward returned TN_NONE; it has to return a tensor");
    *output = tn_tensor_keep(result);
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
        status = module->layer->call(module, in, out);
    if (status == TN_OK) {
        int64_t count = tn_pack_count(out);
        if (count != 1 || tn_pack_at(out, 0).kind != TN_VALUE_TENSOR)
            status = tn_fail(
                TN_ERR_TYPE,
                "it gives %lld values, not one tensor: call it with tn_module_call_pack",
                (long long)count);
        else
            *output = tn_tensor_keep(tn_pack_tensor(out, 0));
    }
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
                       "it takes one tensor (\"input\"), got %lld positional values and %lld named",
                       (long long)positional, (long long)(count - positional));
    tn_tensor *input = tn_pack_tensor(in, 0);
    if (input == NULL)
        return tn_error_last()->code;
    tn_tensor *output = NULL;
    tn_status status = forward_one(module, input, &output);
    if (status == TN_OK) {
        status = tn_pack_add(out, NULL, tn_value_tensor(output));
        tn_tensor_drop(output);
    }
    return status;
}

static tn_status no_forward(const tn_module *module)
{
    if (module->layer == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "it has no forward: its type was only read from printed text; load a plugin "
                       "that provides layer %s",
                       module->type);
    return tn_fail(TN_ERR_NOT_IMPLEMENTED, "layer %s has no forward", module->type);
}

/* Forward pre-hooks will go before, forward hooks after the layer's own code. */
static tn_status run_layer(tn_module *module, struct exchange *x)
{
    const tn_layer *layer = module->layer;
    if (layer == NULL || (layer->forward == NULL && layer->call == NULL))
        return no_forward(module);
    if (x->pack_in != NULL)
        return layer->call != NULL ? layer->call(module, x->pack_in, x->pack_out)
                                   : forward_with_packs(module, x->pack_in, x->pack_out);
    return layer->forward != NULL ? forward_one(module, x->input, &x->output)
                                  : call_with_packs(module, x->input, &x->output);
}

/* ---- observers ------------------------------------------------------------------------------- */

struct watch {
    const tn_observer *observers[TN__OBSERVERS];
    uint64_t tokens[TN__OBSERVERS];
    int64_t count;
};

static void watch_begin(struct watch *watch, tn_module *module)
{
    watch->count = tn__observers(watch->observers);
    for (int64_t i = 0; i < watch->count; i++) {
        const tn_observer *observer = watch->observers[i];
        watch->tokens[i] = observer->module_begin != NULL
                               ? observer->module_begin(observer->user, module)
                               : 0;
    }
}

static void watch_end(struct watch *watch, tn_status status)
{
    for (int64_t i = watch->count; i-- > 0;) {
        const tn_observer *observer = watch->observers[i];
        if (observer->module_end != NULL)
            observer->module_end(observer->user, watch->tokens[i], status);
    }
}

/* ---- the call -------------------------------------------------------------------------------- */

static tn_status call_in_scope(tn_module *module, struct exchange *x)
{
    struct frame frame = { module, innermost, innermost != NULL ? innermost->depth + 1 : 0 };
    if (frame.depth > TN__MODULE_DEPTH)
        return tn_fail(TN_ERR_RUNTIME, "module calls nest more than %d deep", TN__MODULE_DEPTH);
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
            tn_fail(status, "forward failed without words (%s)", tn_status_name(status));
        word_failure(&frame);
        status = tn_error_last()->code;
    }
    tn__error_plugin(before);
    innermost = frame.outer;
    return status;
}

static tn_status call(tn_module *module, struct exchange *x)
{
    if (tn__likely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) == 0))
        return call_in_scope(module, x);
    struct watch watch;
    watch_begin(&watch, module);
    tn_status status = call_in_scope(module, x);
    watch_end(&watch, status);
    return status;
}

tn_tensor *tn_module_call(tn_module *module, tn_tensor *input)
{
    if (tn__unlikely(module == NULL || input == NULL)) {
        tn__null_input("an argument of tn_module_call");
        return NULL;
    }
    struct exchange x = { .input = input };
    if (call(module, &x) != TN_OK)
        return NULL;
    return tn_tensor_to_scope(x.output);
}

tn_status tn_module_call_pack(tn_module *module, const tn_pack *input, tn_pack *output)
{
    if (module == NULL || input == NULL || output == NULL)
        return tn__null_input("an argument of tn_module_call_pack");
    if (tn_pack_count(output) != 0)
        return tn_fail(TN_ERR_VALUE, "tn_module_call_pack: the output pack has %lld values already",
                       (long long)tn_pack_count(output));
    struct exchange x = { .pack_in = input, .pack_out = output };
    return call(module, &x);
}
