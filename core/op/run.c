/* SPDX-License-Identifier: MIT
 *
 * How a call runs once its outputs are inferred: as a view, by a kernel of the device, by
 * decomposition (decompose.c), or on another device if the program asked for that (fallback.c). */
#include "core/op/prepared.h"
#include "core/tensor/capture.h"
#include "core/tensor/thread.h"
#include "core/tensor/trace.h"

#include <string.h>

static void drop_outputs(tn__work *work, tn_tensor **out)
{
    for (int32_t i = 0; i < work->n_out; i++) {
        if (out[i] != NULL)
            tn_tensor_drop(out[i]);
        out[i] = NULL;
    }
}

/* Makes every output whose shape is known. An in-place call has one output, which exists
 * already. */
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

/* tn_call.make_output: lets a kernel make an output whose shape only the kernel knows. */
static tn_status make_output(const tn_call *call, int32_t index, tn_ints shape)
{
    tn__work *work = call->host;
    tn_meta meta;

    if (index < 0 || index >= work->n_out)
        return tn__error_index(index, work->n_out, "%s: make_output: index: ", call->op);
    if (work->out[index] != NULL)
        return tn_fail(TN_ERR_RUNTIME, "%s: make_output: output %d exists already", call->op,
                       (int)index);
    if (shape.count < 0 || shape.count > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE,
                       "%s: make_output: wrong number of dimensions, got %lld; expected 0 to %d",
                       call->op, (long long)shape.count, TN_MAX_DIMS);
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

/* For a stream that records: lets the graph hold all memory of the call. */
static tn_status mark_recorded(tn__work *work, tn_tensor **out, tn_stream *stream)
{
    tn_status status = tn__capture_work(stream, work->op->def.name);
    bool writes = (work->op->flags & (TN__OP_WRITES | TN__OP_UPDATES)) != 0;

    for (int64_t i = 0; i < work->n_in && status == TN_OK; i++)
        if (!tn__is_none(work->in[i]) && work->in[i]->device == work->device)
            status = tn__capture_hold(stream, work->in[i]->storage,
                                      writes && tn__write_into(work, i));
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++)
        if (out[i] != NULL)
            status = tn__capture_hold(stream, out[i]->storage, true);
    return status;
}

/* Makes sure that memory of other streams is not reused before the work of this stream is done. */
static tn_status mark_use(tn__work *work, tn_tensor **out, tn_stream *stream, tn_call *call)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < work->n_in && status == TN_OK; i++)
        if (!tn__is_none(work->in[i]) && work->in[i]->device == work->device)
            status = tn__storage_use(work->in[i]->storage, stream);
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++)
        if (out[i] != NULL)
            status = tn__storage_use(out[i]->storage, stream);
    if (tn__likely(tn__capture_of(stream) == NULL) || status != TN_OK)
        return status;
    call->flags |= TN_CALL_CAPTURED;
    return mark_recorded(work, out, stream);
}

/* TENON_CHECK=1: after a kernel, checks the guard zones of all tensors. The stream is not locked,
 * because the check waits for all streams. The check takes longer with more tensors, so not every
 * call makes it: with N tensors, one in N / 64 calls does, or one in N / 2 if zones must be copied
 * from a device. */
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

/* Allocates the memory that a kernel needs in addition to its operands. *space is not changed if
 * the kernel needs none. */
static tn_status make_workspace(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                                size_t bytes, tn_tensor **space)
{
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
    return tn_fail(
        TN_ERR_ASSERT,
        "%s: kernel %s did not make output %d; a bug of the plugin that defines the kernel",
        work->op->def.name, entry->kernel.name, (int)i);
}

/* Locks the stream. Refuses, without the lock, if the stream records and the kernel cannot be
 * recorded. */
static tn_status lock_stream(const tn__kernel_entry *entry, const tn_call *call, tn_stream *stream)
{
    pthread_mutex_lock(stream->lock);
    if (tn__likely((call->flags & TN_CALL_CAPTURED) == 0) ||
        (entry->kernel.flags & TN_KERNEL_CAPTURE_SAFE) != 0)
        return TN_OK;
    pthread_mutex_unlock(stream->lock);
    return tn__capture_refuse(stream, entry->kernel.name,
                              "the kernel is not marked TN_KERNEL_CAPTURE_SAFE");
}

static tn_status run_failed(const tn__work *work, const tn__kernel_entry *entry, tn_stream *stream,
                            tn_status status)
{
    status = tn__device_result(work->device, status, entry->kernel.name);
    return stream->lock != NULL ? tn__capture_result(stream, status) : status;
}

/* Lets a plan record the kernel. */
static tn_status record(tn__work *work, const tn__kernel_entry *entry, const tn_call *call,
                        const tn_tensor *space)
{
    bool writes = (work->op->flags & (TN__OP_WRITES | TN__OP_UPDATES)) != 0;
    tn__kernel_step step = { .op = work->op,
                             .entry = entry,
                             .plugin = entry->id,
                             .call = call,
                             .in = work->in,
                             .out = work->out,
                             .device = work->device,
                             .workspace = space != NULL ? (uint64_t)space->numel : 0 };

    for (int64_t i = 0; i < work->n_in && writes; i++)
        if (tn__write_into(work, i))
            step.writes |= UINT64_C(1) << (i < 63 ? i : 63);
    return tn__tracer_here->kernel(tn__tracer_here, &step);
}

/* For a trace: the kernel does not run, so the outputs have no values. */
static tn_status skip(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                      tn_tensor *space)
{
    tn_status status = TN_OK;

    for (int32_t i = 0; i < work->n_out; i++) {
        if (work->out[i] == NULL)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "%s: the shape of %s depends on values, which a trace does not have",
                           work->op->def.name, work->op->def.outputs[i].name);
        if ((work->out[i]->storage->flags & TN__STORAGE_TRACED) != 0)
            work->out[i]->storage->flags |= TN__STORAGE_PENDING;
    }
    if (tn__tracer_here->kernel != NULL)
        status = record(work, entry, call, space);
    tn_tensor_drop(space);
    call->workspace = NULL;
    return status;
}

static TN__INLINE tn_status run_with(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                                     tn_stream *stream, tn_tensor *space)
{
    tn_status status = TN_OK;

    if (tn__unlikely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) > 0)) {
        if (tn__trace_skips(work->n_out > 0 ? work->out[0] : NULL))
            return skip(work, entry, call, space);
        tn__observer_kernel(work->op, call);
    }
    if (stream->lock != NULL)
        status = lock_stream(entry, call, stream);
    if (tn__likely(status == TN_OK)) {
        status = entry->kernel.run(call);
        tn__stream_unlock(stream);
    }
    if (tn__unlikely(status != TN_OK))
        status = run_failed(work, entry, stream, status);
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++)
        if (tn__unlikely(work->out[i] == NULL))
            status = not_made(work, entry, i);
    if (tn__unlikely(tn__boundary_on()) && status == TN_OK && !(call->flags & TN_CALL_CAPTURED))
        status = check_guards(work->device, entry);
    if (tn__unlikely(space != NULL))
        tn_tensor_drop(space);
    call->workspace = NULL;
    return status;
}

static TN__INLINE tn_status run_kernel(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                                       tn_stream *stream)
{
    tn__prepared_data *kept = NULL;
    tn_tensor *space = NULL;
    tn_status status = TN_OK;

    if (entry->kernel.workspace != NULL)
        status = make_workspace(work, entry, call, entry->kernel.workspace(call), &space);
    if (tn__unlikely(status != TN_OK))
        return status;
    if (entry->kernel.prepare_key != NULL && tn__tracer_here == NULL)
        kept = tn__weight_cache_hold(work, entry, call);
    status = run_with(work, entry, call, stream, space);
    if (tn__unlikely(kept != NULL)) {
        tn__prepared_data_drop(kept);
        call->prepared = NULL;
        call->constant = 0;
    }
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

static TN__INLINE void make_call(tn__work *work, tn_call *call, tn_dtype dtype,
                                 const tn_view *const *views)
{
    call->head = (tn_head){ sizeof *call, TN_KIND_tn_call, 0,   TN_ABI_MAJOR,
                            TN_ABI_MINOR, TN_ABI_MINOR,    NULL };
    call->op = work->op->def.name;
    call->in = work->views;
    call->out = views;
    call->n_in = work->n_in;
    call->n_out = work->n_out;
    call->dtype = dtype;
    call->options = work->options;
    call->device = work->device->handle;
    call->on = work->device;
    call->workspace = NULL;
    call->make_output = make_output;
    call->host = work;
    call->constant = 0;
    call->prepared = NULL;
    call->flags = 0;
}

/* Runs the first kernel that has the dtype and takes the call. *done is false if there is none. */
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

        if (!tn__kernel_counts(work->op, entry, dtype))
            continue;
        if (tn__unlikely(!tn__kernel_is_active(entry)) &&
            !tn__kernel_starts(entry, reasons, &status)) {
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
                status = mark_use(work, out, stream, &call);
            if (tn__unlikely(status != TN_OK))
                break;
        }
        call.kernel = &entry->kernel;
        before = tn__error_plugin(entry->id);
        if (entry->asks && !tn__kernel_takes(work->op, entry, &call, reasons)) {
            tn__error_plugin(before);
            continue;
        }
        if (tn__unlikely((entry->kernel.flags & TN_KERNEL_DECOMPOSE) != 0)) {
            tn__error_plugin(before);
            break;
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

tn_status tn__run_work(tn__work *work, tn_tensor **out, bool record)
{
    const tn_op *op = work->op;
    const struct tn__kernel_list *list;
    char reasons[TN__REASONS];
    tn_dtype dtype;
    bool done = false;
    tn_status status;

    if (op->def.flags & TN_OP_VIEW)
        return run_view(work, out);
    if (record)
        return tn__decompose(work, out, true);
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
    if (tn__unlikely(work->given == NULL))
        return tn__op_missing(work, dtype, reasons);
    if (tn__is_decomposed(op, dtype))
        return work->into != NULL ? tn__decompose_into(work, out) : tn__decompose(work, out, false);
    if (work->device->flags & TN_BACKEND_NO_MEMORY) { /* only shapes and dtypes exist */
        const tn_view *views[TN_MAX_OPERANDS];

        for (int32_t i = 0; i < work->n_out; i++)
            if (work->meta[i].ndim < 0)
                return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                               "%s: the shape of %s depends on values, and %s has none",
                               op->def.name, op->def.outputs[i].name, tn_device_name(work->device));
        return make_outputs(work, out, views);
    }
    status = tn__fallback(work, out, &done);
    if (done || status != TN_OK)
        return status;
    return tn__op_missing(work, dtype, reasons);
}

tn_status tn__run_prepared(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                           size_t workspace)
{
    tn_stream *stream = tn__stream_current(work->device);
    tn_tensor *space = NULL;
    const char *before;
    tn_status status = TN_OK;

    if (tn__unlikely(stream == NULL))
        return tn_error_last_code();
    if (nothing_to_write(work, work->out))
        return TN_OK;
    call->stream = stream->handle;
    call->host = work;
    call->make_output = make_output;
    if (stream->lock != NULL)
        status = mark_use(work, work->out, stream, call);
    if (status == TN_OK && workspace > 0)
        status = make_workspace(work, entry, call, workspace, &space);
    if (tn__unlikely(status != TN_OK))
        return status;
    before = tn__error_plugin(entry->id);
    status = run_with(work, entry, call, stream, space);
    tn__error_plugin(before);
    return status;
}

/* Runs a kernel of an operator that the folder below needs, without inference, into a tensor that
 * exists. Its caller knows what to do if there is no kernel. */
static tn_status run_needed(const tn_op *op, tn_tensor *in, const void *options, tn_tensor *into)
{
    const tn_view *view = &in->view;
    tn_meta meta; /* of which only the dtype is read */
    tn_tensor *out[1] = { NULL };
    tn__work work = { .op = op,
                      .in = &in,
                      .n_in = 1,
                      .n_out = 1,
                      .options = options,
                      .device = into->device,
                      .views = &view,
                      .meta = &meta,
                      .into = into };

    meta.dtype = (tn_dtype)into->dtype;
    tn_status status = tn__run_work(&work, out, false);
    if (out[0] != NULL)
        tn_tensor_drop(out[0]);
    return status;
}

tn_status tn__op_copy(tn_tensor *to, tn_tensor *from)
{
    const tn_op *op = tn__op_needed(TN__NEED_copy);

    return op != NULL ? run_needed(op, from, op->def.defaults, to) : TN_ERR_NOT_IMPLEMENTED;
}

tn_status tn__op_fill(tn_tensor *tensor, tn_scalar value)
{
    /* The layout of the schema's struct of options: its size, then the argument. */
    const struct {
        uint32_t size;
        tn_scalar value;
    } options = { sizeof options, value };
    const tn_op *op = tn__op_needed(TN__NEED_fill);

    if (op == NULL)
        return TN_ERR_NOT_IMPLEMENTED;
    /* Inference fails if the dtype cannot hold the value. */
    tn_status status = tn__op_takes(op, &tensor, 1, &options);
    return status == TN_OK ? run_needed(op, tensor, &options, tensor) : status;
}
