/* SPDX-License-Identifier: MIT
 *
 * Prepared calls (tn_op_prepare): checked, inferred and given a kernel once, then run many times
 * with other data. Only the prepared data changes afterwards, under a lock, so that several threads
 * may run a call at the same time. */
#include "core/op/prepared.h"
#include "core/base/dtype.h"
#include "core/tensor/capture.h"

static bool is_constant(uint64_t constant, int64_t i)
{
    return (constant >> (i < 63 ? i : 63) & 1) != 0;
}

/* ---- what can be kept ------------------------------------------------------------------------ */

static tn_status refused(const tn_op *op, const char *why, const char *instead)
{
    return tn_fail(TN_ERR_NOT_IMPLEMENTED, "tn_op_prepare: %s: %s; %s", op->def.name, why, instead);
}

static tn_status check_kind(const tn_op *op)
{
    if (op->def.flags & TN_OP_VIEW)
        return refused(op, "it returns a view, and no kernel runs", "tn_op_call costs no more");
    if (op->def.flags & TN_OP_RANDOM)
        return refused(op, "it draws random numbers, which each call would repeat",
                       "call it with tn_op_call");
    return TN_OK;
}

static tn_status check_work(const tn__work *work, tn_tensor *const *in)
{
    const tn_op *op = work->op;
    int64_t cast = 0; /* an input that tn_op_call would cast */

    if (work->wants_grad)
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_op_prepare: %s: %s requires grad, and a prepared call records no "
                       "gradient; prepare and run it between tn_grad_begin(false) and "
                       "tn_grad_end(), or call it with tn_op_call",
                       op->def.name, tn__op_grad_input(work));
    while (cast < work->n_in && work->in[cast] == in[cast])
        cast++;
    if (work->promoted && cast < work->n_in)
        return tn_fail(
            TN_ERR_TYPE,
            "tn_op_prepare: %s: %s: wrong dtype, got %s; expected %s, to which tn_op_call "
            "casts it: a prepared call casts no inputs, call tn_cast first",
            op->def.name, tn__operand(op, cast)->name, tn_dtype_name((tn_dtype)in[cast]->dtype),
            tn_dtype_name((tn_dtype)work->in[cast]->dtype));
    return TN_OK;
}

static tn_status no_kernel(const tn__work *work, tn_dtype dtype, const char *reasons)
{
    if (!tn__is_decomposed(work->op, dtype))
        return tn__op_missing(work, dtype, reasons);
    return tn_fail(
        TN_ERR_NOT_IMPLEMENTED,
        "tn_op_prepare: %s: device %s has no kernel for this call and decomposes it%s%s; "
        "prepare the operators of its decomposition, or call it with tn_op_call",
        work->op->def.name, tn_device_name(work->device), reasons[0] != '\0' ? ". Refused: " : "",
        reasons);
}

/* ---- making ---------------------------------------------------------------------------------- */

void tn__prepared_call(const tn_prepared *p, tn_call *call)
{
    *call = (tn_call){ TN_HEAD(tn_call),
                       .op = p->op->def.name,
                       .in = p->views,
                       .out = p->views + p->n_in,
                       .n_in = p->n_known,
                       .n_out = p->n_out,
                       .dtype = p->dtype,
                       .options = p->options,
                       .device = p->device->handle,
                       .on = p->device,
                       .kernel = p->entry != NULL ? &p->entry->kernel : NULL,
                       .constant = p->constant,
                       .flags = TN_CALL_REPEATED };
}

/* Returns a view of a shape, without memory; NULL and sets the error if memory runs out. */
static tn_view *empty_view(tn_prepared *p, tn_dtype dtype, int32_t ndim, const int64_t *shape,
                           const int64_t *strides)
{
    size_t bytes = (size_t)ndim * sizeof *shape;
    tn_view *view = tn__arena_alloc(p->arena, sizeof *view + 2 * bytes);

    if (view == NULL)
        return NULL;
    memset(view, 0, sizeof *view);
    view->device.type = p->device->type->dlpack;
    view->device.id = p->device->index;
    view->ndim = ndim;
    tn__dtype_to_view(dtype, view);
    view->shape = (int64_t *)(void *)(view + 1);
    view->strides = view->shape + ndim;
    memcpy(view->shape, shape, bytes);
    if (strides != NULL) {
        memcpy(view->strides, strides, bytes);
        return view;
    }
    for (int64_t d = ndim - 1, step = 1; d >= 0; d--) {
        view->strides[d] = step;
        step = tn__op_times(step, shape[d] > 0 ? shape[d] : 1);
    }
    return view;
}

static tn_status see_input(tn_prepared *p, int64_t i, const tn_tensor *tensor)
{
    tn__prepared_input *seen = &p->in[i];
    tn_view *view;

    seen->ndim = -1;
    if (tn__is_none(tensor))
        return TN_OK;
    view = empty_view(p, (tn_dtype)tensor->dtype, tensor->view.ndim, tensor->view.shape,
                      tensor->view.strides);
    if (view == NULL)
        return TN_ERR_MEMORY;
    view->device = tensor->view.device;
    p->views[i] = view;
    seen->dtype = tensor->dtype;
    seen->ndim = (int8_t)tensor->view.ndim;
    seen->shape = view->shape;
    seen->strides = view->strides;
    if (is_constant(p->constant, i)) {
        view->data = tensor->view.data;
        view->byte_offset = tensor->view.byte_offset;
        seen->byte_offset = view->byte_offset;
        seen->storage = tn__storage_keep(tensor->storage);
    }
    return TN_OK;
}

static tn_status see_output(tn_prepared *p, int32_t i, const tn_meta *meta)
{
    tn_view *view;

    p->meta[i] = *meta;
    if (meta->ndim < 0) /* only the kernel knows the shape */
        return TN_OK;
    view = empty_view(p, meta->dtype, meta->ndim, meta->shape,
                      meta->flags & TN_META_STRIDED ? meta->strides : NULL);
    p->views[p->n_in + i] = view;
    return view != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status keep_options(tn_prepared *p, const void *options)
{
    const tn_op_def *def = &p->op->def;
    void *space;

    p->options = options;
    if (options == NULL || options == def->defaults || def->options == NULL)
        return TN_OK;
    space = tn__arena_alloc(p->arena,
                            tn__options_copy(def->options, options, def->options_size, NULL));
    if (space == NULL)
        return TN_ERR_MEMORY;
    tn__options_copy(def->options, options, def->options_size, space);
    p->options = space;
    return TN_OK;
}

/* Fills in all of the prepared call but its kernel. */
static tn_status see(tn_prepared *p, const tn__work *work)
{
    tn_status status;

    p->arena = tn__arena_new();
    if (p->arena == NULL)
        return TN_ERR_MEMORY;
    p->in = tn__arena_alloc(p->arena, (size_t)(work->n_in + 1) * sizeof *p->in);
    p->meta = tn__arena_alloc(p->arena, (size_t)(work->n_out + 1) * sizeof *p->meta);
    p->views = tn__arena_alloc(p->arena, (size_t)(work->n_in + work->n_out + 1) * sizeof *p->views);
    if (p->in == NULL || p->meta == NULL || p->views == NULL)
        return TN_ERR_MEMORY;
    memset(p->in, 0, (size_t)work->n_in * sizeof *p->in);
    memset(p->views, 0, (size_t)(work->n_in + work->n_out) * sizeof *p->views);
    p->device = work->device;
    p->n_out = work->n_out;
    p->group = work->group;
    p->only_read = work->only_read;
    p->dtype = work->n_out > 0 ? work->meta[0].dtype : TN_DTYPE_AUTO;
    if (p->op->def.dispatch_input >= 0 && !tn__is_none(work->in[p->op->def.dispatch_input]))
        p->dtype = (tn_dtype)work->in[p->op->def.dispatch_input]->dtype;
    p->n_in = p->n_known = work->n_in;
    status = keep_options(p, work->options);
    for (int64_t i = 0; i < work->n_in && status == TN_OK; i++)
        status = see_input(p, i, work->in[i]);
    for (int32_t i = 0; i < work->n_out && status == TN_OK; i++)
        status = see_output(p, i, &work->meta[i]);
    return status;
}

static tn_status choose_kernel(tn_prepared *p, const tn__work *work)
{
    const struct tn__kernel_list *list = tn__kernels_of(p->op, p->device->type);
    char reasons[TN__REASONS];
    tn_status status = TN_OK;
    tn_call call;

    if (list == NULL)
        return TN_ERR_MEMORY;
    reasons[0] = '\0';
    tn__prepared_call(p, &call);
    for (int32_t i = 0; i < list->count && p->entry == NULL; i++) {
        const tn__kernel_entry *entry = list->at[i];
        const char *before;

        if (!tn__kernel_counts(p->op, entry, p->dtype))
            continue;
        if (!tn__kernel_is_active(entry) && !tn__kernel_starts(entry, reasons, &status)) {
            if (status != TN_OK)
                return status;
            continue;
        }
        call.kernel = &entry->kernel;
        before = tn__error_plugin(entry->id);
        if (!entry->asks || tn__kernel_takes(p->op, entry, &call, reasons))
            p->entry = entry;
        p->n_known = call.n_in;
        if (p->entry != NULL && (entry->kernel.flags & TN_KERNEL_DECOMPOSE) != 0) {
            tn__error_plugin(before);
            p->entry = NULL;
            break;
        }
        if (p->entry != NULL && entry->kernel.workspace != NULL)
            p->workspace = entry->kernel.workspace(&call);
        tn__error_plugin(before);
    }
    return p->entry != NULL ? TN_OK : no_kernel(work, p->dtype, reasons);
}

static void read_versions(const tn_prepared *p, uint64_t *versions)
{
    for (int64_t i = 0; i < p->n_in; i++)
        versions[i] = p->in[i].storage != NULL
                          ? atomic_load_explicit(&p->in[i].storage->version, memory_order_acquire)
                          : 0;
}

/* Prepares new data. Returns the old data in *old. The caller holds the lock. */
static tn_status prepare_data(tn_prepared *p, tn__prepared_data **old)
{
    tn__prepared_data *made;
    tn_call call;

    tn__prepared_call(p, &call);
    made = tn__prepared_data_new(p->entry, p->device, &call);
    if (made == NULL)
        return tn_error_last_code();
    read_versions(p, made->versions);
    *old = p->data;
    p->data = made;
    return TN_OK;
}

tn_status tn__prepared_hold(tn_prepared *p, tn__prepared_data **out)
{
    tn__prepared_data *old = NULL;
    tn_status status = TN_OK;
    bool moved = false;

    *out = NULL;
    if (tn__likely(p->entry->kernel.prepare == NULL))
        return TN_OK;
    pthread_mutex_lock(&p->lock);
    for (int64_t i = 0; i < p->n_in; i++)
        if (p->in[i].storage != NULL)
            moved |= p->data->versions[i] !=
                     atomic_load_explicit(&p->in[i].storage->version, memory_order_acquire);
    if (tn__unlikely(moved))
        status = tn__capture_refuse_on(
            p->device, "tn_prepared_run",
            "a constant input was written, and the data prepared from it "
            "has to be made again; run the call once before the capture");
    if (tn__unlikely(moved) && status == TN_OK)
        status = prepare_data(p, &old);
    if (status == TN_OK) {
        *out = p->data;
        atomic_fetch_add_explicit(&p->data->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&p->lock);
    tn__prepared_data_drop(old);
    return status;
}

static void free_prepared(tn_prepared *p)
{
    for (int64_t i = 0; p->in != NULL && i < p->n_in; i++)
        if (p->in[i].storage != NULL)
            tn__storage_drop(p->in[i].storage);
    if (p->arena != NULL)
        tn__arena_free(p->arena);
    pthread_mutex_destroy(&p->lock);
    tn_free(p);
}

static tn_prepared *prepare(tn__work *work, uint64_t constant)
{
    tn_prepared *p = tn_calloc(1, sizeof *p);
    tn__prepared_data *none = NULL;
    tn_status status;

    if (p == NULL)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->op = work->op;
    p->constant = constant;
    status = tn__device_usable(work->device);
    if (status == TN_OK)
        status = see(p, work);
    if (status == TN_OK)
        status = choose_kernel(p, work);
    if (status == TN_OK && p->entry->kernel.prepare != NULL)
        status = prepare_data(p, &none);
    if (status != TN_OK) {
        free_prepared(p);
        return NULL;
    }
    atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&p->device->handles, 1);
    return p;
}

tn_prepared *tn_op_prepare(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                           uint64_t constant)
{
    tn_meta meta[TN_MAX_OPERANDS];
    tn_tensor *space[TN_MAX_OPERANDS];
    tn_prepared *prepared = NULL;
    tn__work work;

    if (op == NULL) {
        tn_error_null("tn_op_prepare: operator");
        return NULL;
    }
    if (!tn__given(in != NULL || n_in <= 0, "tn_op_prepare: in") || check_kind(op) != TN_OK ||
        tn__call_fit(op, &in, &n_in, space) != TN_OK ||
        tn__call_begin(&work, op, in, n_in, options, meta, NULL) != TN_OK)
        return NULL;
    if (check_work(&work, in) == TN_OK)
        prepared = prepare(&work, constant);
    tn__call_end(&work);
    return prepared;
}

const tn_kernel_def *tn_prepared_kernel(const tn_prepared *prepared)
{
    return tn__given(prepared != NULL, "tn_prepared_kernel: prepared") ? &prepared->entry->kernel
                                                                       : NULL;
}

void tn_prepared_drop(tn_prepared *prepared)
{
    const tn_device *device;

    if (prepared == NULL)
        return;
    device = prepared->device;
    tn__prepared_data_drop(prepared->data);
    free_prepared(prepared);
    atomic_fetch_sub((_Atomic int32_t *)(uintptr_t)&device->handles, 1);
}
