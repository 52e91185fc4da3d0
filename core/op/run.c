/* SPDX-License-Identifier: MIT
 *
 * How a call runs once its outputs are known: as a view, by a kernel of the device, by
 * decomposition, or, where the program asked for it, on another device. */
#include "core/op/private.h"
#include "core/tensor/thread.h"
#include "core/plugin/check_thread.h"

#include <string.h>

enum { REASONS = 400 };

static void drop_outputs(tn__work *work, tn_tensor **out)
{
    for (int32_t i = 0; i < work->n_out; i++) {
        if (out[i] != NULL)
            tn_tensor_drop(out[i]);
        out[i] = NULL;
    }
}

/* Makes every output whose shape is known; in-place there is one, and it exists. */
static TN__INLINE tn_status make_outputs(tn__work *work, tn_tensor **out, const tn_view **views)
{
    for (int32_t i = 0; i < work->n_out; i++) {
        if (work->into != NULL) {
            out[i] = tn_tensor_keep(work->into);
        } else if (work->meta[i].ndim >= 0) {
            out[i] = tn__tensor_make(&work->meta[i], work->device);
            if (tn__unlikely(out[i] == NULL)) {
                drop_outputs(work, out);
                return tn_error_prefix("%s: ", work->op->def.name);
            }
        } else {
            out[i] = NULL;
        }
        views[i] = out[i] != NULL ? &out[i]->view : NULL;
    }
    return TN_OK;
}

/* tn_call.make_output. */
static tn_status make_output(const tn_call *call, int32_t index, tn_ints shape)
{
    tn__work *work = call->host;
    tn_meta meta;

    if (index < 0 || index >= work->n_out)
        return tn_fail(TN_ERR_INDEX,
                       "%s: make_output: index out of range, got %d; the operator "
                       "has %d outputs",
                       call->op, (int)index, (int)work->n_out);
    if (work->out[index] != NULL)
        return tn_fail(TN_ERR_RUNTIME, "%s: make_output: output %d exists already", call->op,
                       (int)index);
    if (shape.count < 0 || shape.count > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE, "%s: make_output: wrong number of dimensions, got %lld",
                       call->op, (long long)shape.count);
    meta.dtype = work->meta[index].dtype;
    meta.ndim = (int32_t)shape.count;
    meta.flags = 0;
    meta.reserved = 0;
    meta.offset = 0;
    for (int64_t d = 0; d < shape.count; d++)
        meta.shape[d] = shape.at[d];
    work->out[index] = tn__tensor_make(&meta, work->device);
    if (work->out[index] == NULL)
        return tn_error_last_code();
    ((const tn_view **)(uintptr_t)call->out)[index] = &work->out[index]->view;
    return TN_OK;
}

/* Memory that another stream made is not given away before this stream is done with it. */
static tn_status mark_use(tn__work *work, tn_tensor **out, tn_stream *stream)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < work->n_in && status == TN_OK; i++)
        if (!tn__is_none(work->in[i]) && work->in[i]->device == work->device)
            status = tn__storage_use(work->in[i]->storage, stream);
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++)
        if (out[i] != NULL)
            status = tn__storage_use(out[i]->storage, stream);
    return status;
}

/* Why a kernel was not taken, gathered for the error if none is. */
static void add_reason(char *reasons, const tn__kernel_entry *entry, const char *words)
{
    size_t length = strlen(reasons);

    tn_snprint(reasons + length, REASONS - length, "%s%s: %s", length > 0 ? "; " : "",
               entry->kernel.name != NULL ? entry->kernel.name : "?",
               words[0] != '\0' ? words : "no reason given");
}

/* TENON_CHECK=1: guard zones around memory, looked at without the lock of the stream, since a look
 * waits for all streams. Looking at all of them takes long when there are many, so the more there
 * are, the more calls share one look. Where the host must copy the zones from a device, more calls
 * share it still. */
static tn_status check_guards(const tn_device *device, const tn__kernel_entry *entry)
{
    static _Thread_local int64_t calls;
    const char *name = entry->kernel.name != NULL ? entry->kernel.name : entry->kernel.op;
    int64_t blocks_a_call = (device->flags & TN_BACKEND_HOST_MEMORY) != 0 ? 64 : 2;
    tn_memory_stats stats;
    int64_t shared;

    if (device->allocator == NULL || tn_device_memory(device, &stats) != TN_OK ||
        ++calls < stats.live_blocks / blocks_a_call)
        return TN_OK;
    shared = calls;
    calls = 0;
    if (tn__allocator_check(device->allocator) == TN_OK)
        return TN_OK;
    if (shared > 1)
        return tn_error_prefix(
            "checked boundary: plugin %q: kernel %s, or one of the %lld calls before it, wrote "
            "outside its outputs: ",
            entry->plugin->id, name, (long long)shared - 1);
    return tn_error_prefix("checked boundary: plugin %q: kernel %s wrote outside its outputs: ",
                           entry->plugin->id, name);
}

/* Memory that the kernel asks for in addition to its operands; *space is NULL when it wants
 * none. */
static tn_status make_workspace(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                                tn_tensor **space)
{
    size_t bytes = entry->kernel.workspace(call);
    tn_meta meta;

    if (bytes == 0)
        return TN_OK;
    meta.dtype = TN_U8;
    meta.ndim = 1;
    meta.flags = 0;
    meta.reserved = 0;
    meta.offset = 0;
    meta.shape[0] = (int64_t)bytes;
    *space = tn__tensor_make(&meta, work->device);
    if (*space == NULL)
        return tn_error_prefix("%s: workspace of %s: ", work->op->def.name, entry->kernel.name);
    call->workspace = &(*space)->view;
    return TN_OK;
}

static tn_status not_made(const tn__work *work, const tn__kernel_entry *entry, int32_t i)
{
    return tn_fail(TN_ERR_ASSERT,
                   "%s: kernel %s did not make output %d: a bug of the plugin that defines it",
                   work->op->def.name, entry->kernel.name, (int)i);
}

static TN__INLINE tn_status run_kernel(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                                       tn_stream *stream)
{
    tn_tensor *space = NULL;
    tn_status status = TN_OK;

    call->kernel = &entry->kernel;
    if (entry->kernel.workspace != NULL)
        status = make_workspace(work, entry, call, &space);
    if (tn__unlikely(status != TN_OK))
        return status;
    if (tn__unlikely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) > 0))
        tn__observer_kernel(work->op, call);
    tn__stream_lock(stream);
    status = entry->kernel.run(call);
    tn__stream_unlock(stream);
    if (tn__unlikely(status != TN_OK))
        status = tn__device_result(work->device, status,
                                   entry->kernel.name != NULL ? entry->kernel.name : call->op);
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++)
        if (tn__unlikely(work->out[i] == NULL))
            status = not_made(work, entry, i);
    if (tn__unlikely(tn__checked()) && status == TN_OK)
        status = check_guards(work->device, entry);
    if (tn__unlikely(space != NULL))
        tn_tensor_drop(space);
    call->workspace = NULL;
    return status;
}

static TN__INLINE bool nothing_to_write(tn__work *work, tn_tensor **out)
{
    if (work->op->flags & TN__OP_WRITES)
        return false;
    for (int32_t i = 0; i < work->n_out; i++)
        if (out[i] == NULL || out[i]->numel > 0)
            return false;
    return true;
}

/* Whether the plugin of a kernel could be started; a pack that does not start is none. *status is a
 * failure where the call cannot go on without it: after tn_shutdown, or without memory. */
static bool plugin_starts(const tn__kernel_entry *entry, char *reasons, tn_status *status)
{
    uint64_t mark = tn_error_mark(), failures = tn__memory_failures();

    if (tn__plugin_use(entry->plugin) == TN_OK)
        return true;
    if (atomic_load(&entry->plugin->ended) || tn__memory_failures() != failures) {
        *status = tn_error_last_code();
        return false;
    }
    add_reason(reasons, entry, tn_error_last()->message);
    tn_error_restore(mark);
    return false;
}

static TN__INLINE bool is_active(const tn__kernel_entry *entry)
{
    return entry->plugin == NULL ||
           atomic_load_explicit(&entry->plugin->active, memory_order_acquire) == 1;
}

static bool supports(const tn__kernel_entry *entry, const tn_call *call, char *reasons)
{
    char reason[160] = "";

    if (entry->kernel.supports(call, reason, sizeof reason))
        return true;
    add_reason(reasons, entry, reason);
    return false;
}

static TN__INLINE void make_call(tn__work *work, tn_call *call, tn_dtype dtype,
                                 const tn_view *const *views)
{
    call->head = (tn_head){ sizeof *call, TN_KIND_tn_call, 0, TN_ABI_MAJOR, TN_ABI_MINOR, 0, NULL };
    call->op = work->op->def.name;
    call->in = work->views;
    call->out = views;
    call->n_in = work->n_in;
    call->n_out = work->n_out;
    call->dtype = dtype;
    call->options = work->options;
    call->device = work->device->handle;
    call->workspace = NULL;
    call->make_output = make_output;
    call->host = work;
}

/* The first kernel that has the dtype and says yes. *done is false when there is none. */
static TN__INLINE tn_status try_kernels(tn__work *work, const struct tn__kernel_list *list,
                                        tn_dtype dtype, tn_tensor **out, char *reasons, bool *done)
{
    const tn_view *few_views[2];
    const tn_view **views = few_views;
    tn_stream *stream = NULL;
    bool made = false;
    tn_status status = TN_OK;
    tn_call call;

    *done = false;
    for (int32_t i = 0; i < list->count; i++) {
        const tn__kernel_entry *entry = list->at[i];
        const char *before;

        if ((entry->kernel.dtypes & TN_BIT(dtype)) == 0)
            continue;
        if (tn__unlikely(!is_active(entry)) && !plugin_starts(entry, reasons, &status)) {
            if (status != TN_OK)
                break;
            continue;
        }
        if (!made) {
            if (tn__unlikely(work->n_out > 2)) {
                views = tn_malloc((size_t)work->n_out * sizeof *views);
                if (views == NULL)
                    return TN_ERR_MEMORY;
            }
            status = make_outputs(work, out, views);
            if (tn__unlikely(status != TN_OK))
                break;
            made = true;
            work->out = out;
            if (tn__unlikely(nothing_to_write(work, out))) {
                *done = true;
                break;
            }
            make_call(work, &call, dtype, views);
            status = tn__device_usable(work->device);
            if (tn__unlikely(status != TN_OK))
                break;
            stream = tn__stream_current(work->device);
            if (tn__unlikely(stream == NULL)) {
                status = tn_error_last_code();
                break;
            }
            call.stream = stream->handle;
            if (stream->lock != NULL)
                status = mark_use(work, out, stream);
            if (tn__unlikely(status != TN_OK))
                break;
        }
        call.kernel = &entry->kernel;
        before = tn__error_plugin(entry->id);
        if (entry->kernel.supports != NULL && !supports(entry, &call, reasons)) {
            tn__error_plugin(before);
            continue;
        }
        status = run_kernel(work, entry, &call, stream);
        tn__error_plugin(before);
        *done = status == TN_OK;
        break;
    }
    if (tn__unlikely(views != few_views))
        tn_free(views);
    if (tn__unlikely(made && !*done))
        drop_outputs(work, out);
    return status;
}

/* Whether a result of a decomposition is what inference said. */
static tn_status check_result(const tn__work *work, int32_t i, const tn_tensor *result)
{
    const tn_meta *meta = &work->meta[i];
    bool same = result->dtype == meta->dtype && (meta->ndim < 0 || result->view.ndim == meta->ndim);

    for (int32_t d = 0; same && d < meta->ndim; d++)
        same = result->view.shape[d] == meta->shape[d];
    if (!same) {
        tn__text text = { 0 };
        tn_status status;

        tn__text_add(&text, "wrong result, got ");
        tn__tensor_text(&text, result);
        tn__text_add(&text, "; expected %s", tn_dtype_name(meta->dtype));
        if (meta->ndim >= 0)
            tn__tensor_text_ints(&text, (tn_ints){ meta->shape, meta->ndim });
        tn__text_put(&text, "", 1);
        status = tn_fail(
            TN_ERR_ASSERT, "%s: decomposition: %s; a bug of the plugin that defines it",
            work->op->def.name, text.failed ? "differs from what its infer returned" : text.at);
        tn__text_free(&text);
        return status;
    }
    return TN_OK;
}

/* Whether a result is a view of an input, and not of something that was made on the way. */
static bool is_view_of_input(const tn__work *work, const tn_tensor *result)
{
    for (int64_t i = 0; i < work->n_in; i++)
        if (tn__tensor_ok(work->in[i]) && work->in[i]->storage == result->storage)
            return true;
    return false;
}

static bool is_input(const tn__work *work, const tn_tensor *result)
{
    for (int64_t i = 0; i < work->n_in; i++)
        if (work->in[i] == result)
            return true;
    return false;
}

/* What a result of a decomposition is to later gradients. An input that was returned as it is
 * stays as it is: other threads may be reading it. */
static void settle_result(const tn__work *work, tn_tensor *result, bool quiet)
{
    bool seen;

    if (is_input(work, result))
        return;
    seen = is_view_of_input(work, result);
    result->blind &= !(quiet && tn__grad_on()) && seen;
    if (!seen && work->n_out == 1) /* what it is a view of has no other reference */
        tn__op_up.grad_alone(result);
}

static tn_status decompose(tn__work *work, tn_tensor **out, bool record)
{
    const tn_op_def *def = &work->op->def;
    uint64_t scope = tn_scope_begin();
    const char *before = tn__error_plugin(work->op->id);
    /* Inner operators record themselves: views remember their base also while no gradient is
     * wanted yet. */
    bool quiet = !record && (def->derive != NULL || work->into != NULL);
    tn_decompose ask = { TN_HEAD(tn_decompose), .op = def,          .options = work->options,
                         .in = work->in,        .n_in = work->n_in, .out = out,
                         .n_out = work->n_out };
    tn__check_thread thread;
    tn_status status;

    for (int32_t i = 0; i < work->n_out; i++)
        out[i] = NULL;
    if (quiet)
        tn_grad_begin(false);
    tn__check_enter(&thread);
    status = tn__error_status_of(def->decompose(&ask), def->name);
    status = tn__check_leave(&thread, work->op->id, def->name, status);
    if (quiet)
        tn_grad_end();
    /* An inner operator names itself; the caller asked for this one. */
    if (status != TN_OK && tn_failed() && strstr(tn_error_text(), def->name) == NULL)
        status = tn_error_prefix("%s: ", def->name);
    tn__error_plugin(before);
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++) {
        if (!tn__tensor_ok(out[i]))
            status = tn_fail(TN_ERR_ASSERT,
                             "%s: decomposition: returned no %s, a bug of the plugin that defines "
                             "it",
                             def->name, def->outputs[i].name);
        else
            status = check_result(work, i, out[i]);
    }
    for (int32_t i = 0; i < work->n_out; i++) {
        if (status == TN_OK) {
            settle_result(work, out[i], quiet);
            tn_tensor_keep(out[i]);
        } else {
            out[i] = NULL;
        }
    }
    tn_scope_end(scope);
    return status;
}

static tn_status run_view(tn__work *work, tn_tensor **out)
{
    if (tn__is_none(work->in[0]))
        return tn_fail(TN_ERR_VALUE, "%s: no tensor to view, got TN_NONE; expected a tensor",
                       work->op->def.name);
    out[0] = tn__tensor_over(work->in[0]->storage, &work->meta[0]);
    if (out[0] == NULL)
        return tn_error_prefix("%s: ", work->op->def.name);
    if (!tn__grad_on() && !work->in[0]->requires_grad) {
        out[0]->blind = true;
    } else if (tn__op_up.grad_view(out[0], work->in[0]) != TN_OK) {
        tn_tensor_drop(out[0]);
        out[0] = NULL;
        return tn_error_last_code();
    }
    return TN_OK;
}

/* The decomposition into an existing tensor: computed aside, then copied. */
static tn_status decompose_into(tn__work *work, tn_tensor **out)
{
    tn_tensor *result = NULL;
    tn_status status = decompose(work, &result, false);

    if (status != TN_OK)
        return status;
    status = tn__copy(work->into, result);
    tn_tensor_drop(result);
    if (status == TN_OK)
        out[0] = tn_tensor_keep(work->into);
    return status;
}

tn_status tn__run_work(tn__work *work, tn_tensor **out, bool record)
{
    const tn_op *op = work->op;
    const struct tn__kernel_list *list;
    char reasons[REASONS];
    tn_dtype dtype;
    bool done = false;
    tn_status status;

    if (op->def.flags & TN_OP_VIEW)
        return run_view(work, out);
    if (record)
        return decompose(work, out, true);
    dtype = work->meta[0].dtype;
    if (op->def.dispatch_input >= 0 && !tn__is_none(work->in[op->def.dispatch_input]))
        dtype = (tn_dtype)work->in[op->def.dispatch_input]->dtype;
    list = tn__kernels_of(op, work->device->type);
    if (tn__unlikely(list == NULL))
        return TN_ERR_MEMORY;
    reasons[0] = '\0';
    if (tn__likely(list->count > 0)) {
        status = try_kernels(work, list, dtype, out, reasons, &done);
        if (tn__likely(done) || status != TN_OK)
            return status;
    }
    if (tn__is_decomposed(op, dtype))
        return work->into != NULL ? decompose_into(work, out) : decompose(work, out, false);
    if (work->device->flags & TN_BACKEND_NO_MEMORY) { /* shapes and types are all there is */
        const tn_view *views[TN_MAX_OPERANDS];

        for (int32_t i = 0; i < work->n_out; i++)
            if (work->meta[i].ndim < 0)
                return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                               "%s: the shape of %s depends on values, and %s has none",
                               op->def.name, op->def.outputs[i].name, tn_device_name(work->device));
        return make_outputs(work, out, views);
    }
    if (op->flags & TN__OP_WRITES) /* what was moved would not come back */
        return tn__op_missing(work, dtype, reasons);
    status = tn__fallback(work, out, &done);
    if (done || status != TN_OK)
        return status;
    return tn__op_missing(work, dtype, reasons);
}

tn_status tn__op_run_kernel(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                            const void *options, tn_tensor *const *out, int64_t n_out)
{
    const tn_view *in_views[TN__FEW], *out_views[TN__FEW];
    const struct tn__kernel_list *list;
    tn_tensor *made[TN__FEW];
    char reasons[REASONS] = "";
    tn__work work = { 0 };
    tn_dtype dtype;
    tn_status status = TN_OK;

    if (op == NULL)
        return tn__error_null_input("tn__op_run_kernel");
    if (n_in > TN__FEW || n_out > TN__FEW || n_out < 1)
        return tn_fail(TN_ERR_VALUE, "%s: too many operands for a direct run", op->def.name);
    work.op = op;
    work.in = in;
    work.n_in = n_in;
    work.n_out = (int32_t)n_out;
    work.options = options != NULL ? options : op->def.defaults;
    work.device = out[0]->device;
    work.views = in_views;
    for (int64_t i = 0; i < n_in; i++)
        in_views[i] = tn__is_none(in[i]) ? NULL : &in[i]->view;
    for (int64_t i = 0; i < n_out; i++) {
        made[i] = out[i];
        out_views[i] = &out[i]->view;
    }
    work.out = made;
    if (nothing_to_write(&work, made))
        return TN_OK;
    dtype = (tn_dtype)out[0]->dtype;
    if (op->def.dispatch_input >= 0 && op->def.dispatch_input < n_in &&
        !tn__is_none(in[op->def.dispatch_input]))
        dtype = (tn_dtype)in[op->def.dispatch_input]->dtype;
    list = tn__kernels_of(op, work.device->type);
    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int32_t i = 0; i < list->count; i++) {
        const tn__kernel_entry *entry = list->at[i];
        const char *before;
        tn_stream *stream;
        tn_call call;

        if ((entry->kernel.dtypes & TN_BIT(dtype)) == 0)
            continue;
        if (entry->plugin != NULL && tn__plugin_use(entry->plugin) != TN_OK)
            return tn_error_last_code();
        status = tn__device_usable(work.device);
        if (status != TN_OK)
            return status;
        stream = tn__stream_current(work.device);
        if (stream == NULL)
            return tn_error_last_code();
        make_call(&work, &call, dtype, out_views);
        call.kernel = &entry->kernel;
        call.stream = stream->handle;
        if (stream->lock != NULL) {
            status = mark_use(&work, made, stream);
            if (status != TN_OK)
                return status;
        }
        before = tn__error_plugin(entry->id);
        if (entry->kernel.supports != NULL && !supports(entry, &call, reasons)) {
            tn__error_plugin(before);
            continue;
        }
        status = run_kernel(&work, entry, &call, stream);
        tn__error_plugin(before);
        return status;
    }
    if (work.device->flags & TN_BACKEND_NO_MEMORY)
        return TN_OK;
    return tn__op_missing(&work, dtype, reasons);
}
