/* SPDX-License-Identifier: MIT
 *
 * One call of an operator. Inputs are checked and promoted, options completed, outputs inferred;
 * then the call runs (run.c), and is recorded if a gradient is wanted (core/grad). Once plugins are
 * active and caches are filled, nothing here takes a lock, parses text or calls malloc. */
#include "core/op/private.h"

#include <tenon/ops.h>

static void describe(tn__text *text, const tn_op *op, int64_t i, const tn_tensor *tensor)
{
    tn__text_add(text, "%s is ", tn__operand(op, i)->name);
    tn__tensor_text(text, tensor);
}

static tn_status fail_text(tn_status code, const tn_op *op, tn__text *text)
{
    tn__text_put(text, "", 1);
    code = text->failed
               ? tn_fail(TN_ERR_MEMORY, "%s: out of memory for an error text", op->def.name)
               : tn_fail(code, "%s: %s", op->def.name, text->at);
    tn__text_free(text);
    return code;
}

static tn_status wrong_device(const tn_op *op, tn_tensor *const *in, int64_t i, int64_t first)
{
    tn__text text = { 0 };

    describe(&text, op, first, in[first]);
    tn__text_add(&text, ", ");
    describe(&text, op, i, in[i]);
    tn__text_add(&text, "; expected all on one device: tn_copy_ copies between devices");
    return fail_text(TN_ERR_RUNTIME, op, &text);
}

/* The dtypes that the core casts for an input that has indices or conditions; 0 for others. */
static uint64_t cast_from(const tn_operand *operand)
{
    return ((operand->flags & TN_OPERAND_FROM_I32) != 0 ? TN_BIT(TN_I32) : 0) |
           ((operand->flags & TN_OPERAND_FROM_U8) != 0 ? TN_BIT(TN_U8) : 0);
}

static tn_status wrong_dtype(const tn_op *op, tn_tensor *const *in, int64_t i)
{
    const tn_operand *operand = tn__operand(op, i);
    uint64_t mask = operand->dtypes != 0 ? operand->dtypes : TN_MASK_ARITH;
    tn__text text = { 0 };

    mask |= cast_from(operand);
    describe(&text, op, i, in[i]);
    tn__text_add(&text, "; expected one of");
    for (int d = 0; d < TN_DTYPE_COUNT; d++)
        if (mask & TN_BIT(d))
            tn__text_add(&text, " %s", tn_dtype_name(d));
    return fail_text(TN_ERR_TYPE, op, &text);
}

static tn_status wrong_count(const tn_op *op, int64_t n_in)
{
    tn__text text = { 0 };

    tn__text_add(&text, "inputs: wrong number, got %lld; expected %s%d (", (long long)n_in,
                 op->flags & TN__OP_LIST ? "at least " : "", (int)op->def.n_inputs);
    for (int32_t i = 0; i < op->def.n_inputs; i++)
        tn__text_add(&text, "%s%s", i > 0 ? ", " : "", op->def.inputs[i].name);
    tn__text_add(&text, "), with TN_NONE for an absent optional one");
    return fail_text(TN_ERR_VALUE, op, &text);
}

tn_status tn__call_fit(const tn_op *op, tn_tensor *const **in, int64_t *n_in, tn_tensor **space)
{
    int32_t most = op->def.n_inputs;
    int64_t n = *n_in;

    if (tn__likely(tn__call_fits(op, n)))
        return TN_OK;
    while (n > most && tn__is_none((*in)[n - 1]))
        n--;
    for (int64_t i = n > 0 ? n : 0; i < most; i++)
        if ((op->def.inputs[i].flags & TN_OPERAND_OPTIONAL) == 0)
            return wrong_count(op, *n_in);
    if (n > most || n < 0)
        return wrong_count(op, *n_in);
    for (int64_t i = 0; i < most; i++)
        space[i] = i < n ? (*in)[i] : TN_NONE;
    *in = space;
    *n_in = most;
    return TN_OK;
}

tn_status tn__call_null(const tn_op *op, const char *operand)
{
    char what[192];

    tn_snprint(what, sizeof what, "%s: %s", op->def.name, operand);
    return tn_error_null(what);
}

/* Fails because input i is not on the device of the first input. Inputs that may be on any device
 * (TN_OPERAND_ANY_DEVICE) do not count. */
static tn_status check_device(const tn__work *work, int64_t i)
{
    int64_t first = 0;

    while (tn__is_none(work->in[first]) ||
           (tn__operand(work->op, first)->flags & TN_OPERAND_ANY_DEVICE) != 0)
        first++;
    return wrong_device(work->op, work->in, i, first);
}

/* Checks an input that is NULL or TN_NONE. */
static tn_status check_absent(const tn_op *op, const tn_tensor *tensor, const tn_operand *operand)
{
    if (tensor == NULL)
        return tn__call_null(op, operand->name);
    if ((operand->flags & TN_OPERAND_OPTIONAL) == 0)
        return tn_fail(TN_ERR_VALUE, "%s: %s: no tensor, got TN_NONE; expected a tensor",
                       op->def.name, operand->name);
    return TN_OK;
}

/* Checks that each input is there and has an allowed dtype and device. *mixed:
 * there is something to promote, or an index or condition to cast. */
static TN__INLINE tn_status check_inputs(tn__work *work, bool *mixed)
{
    const tn_op *op = work->op;
    tn_tensor *const *in = work->in;
    const tn_device *device = NULL;
    bool grad = false, differ = false;
    int dtype = -1;

    for (int64_t i = 0; i < work->n_in; i++) {
        const tn_operand *operand = tn__operand(op, i);
        uint64_t flags = operand->flags, mask = operand->dtypes;
        tn_tensor *tensor = in[i];

        if (tn__unlikely(!tn__tensor_ok(tensor))) {
            tn_status status = check_absent(op, tensor, operand);

            if (status != TN_OK)
                return status;
            work->views[i] = NULL;
            continue;
        }
        work->views[i] = &tensor->view;
        if (tn__unlikely(((mask != 0 ? mask : TN_MASK_ARITH) & TN_BIT(tensor->dtype)) == 0)) {
            if ((cast_from(operand) & TN_BIT(tensor->dtype)) == 0)
                return wrong_dtype(op, in, i);
            *mixed = differ = true;
        }
        if (tn__likely((flags & TN_OPERAND_ANY_DEVICE) == 0)) {
            if (device == NULL)
                device = tensor->device;
            else if (tn__unlikely(tensor->device != device))
                return check_device(work, i);
        }
        if (tn__likely((flags & TN_OPERAND_NO_PROMOTE) == 0)) {
            differ |= dtype != tensor->dtype && dtype >= 0;
            dtype = tensor->dtype;
        }
        grad |= (flags & TN_OPERAND_NO_GRAD) == 0 && tn__requires_grad(tensor);
    }
    if (tn__unlikely(device == NULL) && (device = tn_default_device()) == NULL)
        return tn_error_last_code();
    work->device = device;
    work->dtype = TN_DTYPE_AUTO;
    if (op->flags & (TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT) && dtype >= 0) {
        work->dtype = (tn_dtype)dtype;
        *mixed = differ || ((op->flags & TN_OP_PROMOTE_FLOAT) &&
                            ((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(dtype)) == 0);
    }
    work->wants_grad = grad && tn__grad_on();
    return TN_OK;
}

/* Returns the dtype that input i has in the call: int64 for an index, bool for a condition,
 * work->dtype if the input takes part in promotion, else its own. */
static tn_dtype dtype_in_call(const tn__work *work, int64_t i)
{
    const tn_operand *operand = tn__operand(work->op, i);
    tn_dtype dtype = (tn_dtype)work->given[i]->dtype;

    if ((cast_from(operand) & TN_BIT(dtype)) != 0)
        return operand->dtypes == TN_BIT(TN_BOOL) ? TN_BOOL : TN_I64;
    return work->dtype == TN_DTYPE_AUTO || (operand->flags & TN_OPERAND_NO_PROMOTE) != 0
               ? dtype
               : work->dtype;
}

/* Casts indices to int64, conditions to bool, and the inputs that take part in promotion to
 * work->dtype. The casts are recorded if gradients are wanted. */
static tn_status cast_inputs(tn__work *work)
{
    for (int64_t i = 0; i < work->n_in; i++) {
        tn_tensor *tensor = work->given[i];

        if (!tn__is_none(tensor)) {
            tn_dtype dtype = dtype_in_call(work, i);

            if ((tn_dtype)tensor->dtype == dtype)
                tn_tensor_keep(tensor);
            else
                tensor = tensor->storage == &tn__infer_storage ? tn__infer_cast(tensor, dtype)
                                                               : tn__call_cast(tensor, dtype);
        }
        if (tensor == NULL) {
            for (int64_t k = 0; !work->promoted && k < i; k++)
                if (!tn__is_none(work->cast[k]))
                    tn_tensor_drop(work->cast[k]);
            return tn_error_last_code();
        }
        if (work->promoted &&
            !tn__is_none(work->cast[i])) /* second cast: drops the result of the first */
            tn_tensor_drop(work->cast[i]);
        work->cast[i] = tensor;
        work->views[i] = tn__is_none(tensor) ? NULL : &tensor->view;
    }
    work->in = work->cast;
    work->promoted = true;
    return TN_OK;
}

static TN__INLINE tn_status complete_options(tn__work *work, const void *options)
{
    const tn_op *op = work->op;
    tn_status status = TN_OK;
    bool none = false;
    uint32_t size;

    if (options == NULL || op->def.options == NULL) {
        if (tn__unlikely(op->needs_options) && options == NULL)
            return tn__call_options_missing(&op->def, 0);
        if (tn__unlikely(options != NULL))
            status = tn__call_options_none(&op->def, options);
        work->options = op->def.defaults; /* NULL: the operator has no options */
        return status;
    }
    memcpy(&size, options, sizeof size);
    work->options = options;
    if (tn__unlikely(size != op->def.options_size))
        status = tn__call_options_other(work, options);
    else if (op->points)
        status = tn__call_options_pointers(&op->def, options, &none);
    if (tn__unlikely(none))
        status = tn__call_options_other(work, options);
    if (tn__unlikely(status != TN_OK))
        return status;
    return tn__likely(op->dtype_option == NULL) ? TN_OK : tn__call_options_dtype(work);
}

static tn_status infer_again(tn__work *work, tn_dtype dtype);

static tn_status wrong_output(const tn__work *work, int32_t i)
{
    return tn_fail(
        TN_ERR_VALUE,
        "%s: output %s: wrong, got %d dimensions and dtype %s; expected at most %d dimensions and "
        "a valid dtype",
        work->op->def.name, work->op->def.outputs[i].name, (int)work->meta[i].ndim,
        tn_dtype_name(work->meta[i].dtype), TN_MAX_DIMS);
}

static TN__INLINE tn_status infer(tn__work *work, bool again)
{
    const tn_op *op = work->op;
    const char *before;
    tn_status status;
    tn_infer ask;

    ask.head = (tn_head){ sizeof ask,   TN_KIND_tn_infer, 0,   TN_ABI_MAJOR,
                          TN_ABI_MINOR, TN_ABI_MINOR,     NULL };
    ask.op = &op->def;
    ask.in = work->views;
    ask.n_in = work->n_in;
    ask.options = work->options;
    ask.dtype = work->dtype;
    ask.n_out = work->n_out;
    ask.out = work->meta;
    ask.in0_offset = 0;
    ask.group = 0;
    ask.only_read = 0;
    ask.device_flags = 0;
    if (work->device != NULL && work->device->type != NULL) { /* NULL: in tn_op_infer */
        const struct tn__kernel_list *list = tn__kernels_of(op, work->device->type);

        if (tn__unlikely(list == NULL))
            return TN_ERR_MEMORY;
        ask.device_flags = work->device->flags;
        if (tn__unlikely(list->ordered))
            ask.device_flags = tn__kernel_order(work, list);
    }
    if ((op->flags & TN_OP_VIEW) && !tn__is_none(work->in[0]))
        ask.in0_offset = tn_tensor_offset(work->in[0]);
    for (int32_t i = 0; i < work->n_out; i++) {
        work->meta[i].dtype = work->dtype;
        work->meta[i].ndim = 0;
        work->meta[i].flags = 0;
        work->meta[i].reserved = 0;
        work->meta[i].offset = 0;
    }
    before = tn__error_plugin(op->id);
    status = op->def.infer(&ask);
    tn__error_plugin(before);
    if (tn__unlikely(status != TN_OK)) {
        tn__error_status_of(status, op->def.name);
        return tn_error_prefix("%s: ", op->def.name);
    }
    if (tn__unlikely(ask.dtype != work->dtype) && !again)
        return infer_again(work, ask.dtype);
    if (tn__unlikely(ask.dtype != work->dtype))
        return tn_fail(
            TN_ERR_ASSERT,
            "%s: inference requests %s and then %s; a bug of the plugin that defines the "
            "operator",
            op->def.name, tn_dtype_name(work->dtype), tn_dtype_name(ask.dtype));
    work->group = ask.group;
    work->only_read = ask.only_read;
    for (int32_t i = 0; i < work->n_out; i++)
        if (tn__unlikely((uint32_t)work->meta[i].ndim + 1 > TN_MAX_DIMS + 1 ||
                         (uint32_t)work->meta[i].dtype >= TN_DTYPE_COUNT))
            return wrong_output(work, i);
    return TN_OK;
}

/* Casts the inputs again, because inference asked for another dtype than promotion gave. */
static tn_status infer_again(tn__work *work, tn_dtype dtype)
{
    tn_status status;

    work->dtype = dtype;
    status = cast_inputs(work);
    return status == TN_OK ? infer(work, true) : status;
}

static tn_status begin_many(tn__work *work)
{
    work->heap = tn_malloc((size_t)work->n_in * 2 * sizeof(void *));
    if (work->heap == NULL)
        return TN_ERR_MEMORY;
    work->views = work->heap;
    work->cast = (tn_tensor **)work->heap + work->n_in;
    return TN_OK;
}

static tn_status promote_inputs(tn__work *work)
{
    tn_status status = TN_OK;

    if (work->dtype != TN_DTYPE_AUTO)
        status = tn__promote(work->op, work->in, work->n_in, &work->dtype);
    return status == TN_OK ? cast_inputs(work) : status;
}

static void release(tn__work *work)
{
    if (work->promoted)
        for (int64_t i = 0; i < work->n_in; i++)
            if (tn__tensor_ok(work->cast[i]))
                tn_tensor_drop(work->cast[i]);
    tn_free(work->option_heap);
    tn_free(work->heap);
}

static TN__INLINE void end(tn__work *work)
{
    if (tn__unlikely(work->promoted || work->option_heap != NULL || work->heap != NULL))
        release(work);
}

static TN__INLINE tn_status begin(tn__work *work, const tn_op *op, tn_tensor *const *in,
                                  int64_t n_in, const void *options, tn_meta *meta, tn_tensor *into)
{
    bool mixed = false;
    tn_status status = TN_OK;

    work->op = op;
    work->in = in;
    work->n_in = n_in;
    work->promoted = false;
    work->n_out = op->def.n_outputs;
    work->meta = meta;
    work->views = work->few_views;
    work->cast = work->few_cast;
    work->out = NULL;
    work->into = into;
    work->heap = NULL;
    work->option_heap = NULL;
    if (tn__unlikely(n_in != op->def.n_inputs))
        status = tn__call_fit(op, &work->in, &work->n_in, work->fitted);
    if (tn__unlikely(work->n_in > TN__FEW) && status == TN_OK)
        status = begin_many(work);
    if (tn__unlikely(tn__autocast_on()) && (op->flags & TN__OP_AUTOCAST) != 0 && into == NULL &&
        status == TN_OK)
        status = tn__autocast_inputs(work, options);
    work->given = work->in;
    if (tn__likely(status == TN_OK))
        status = check_inputs(work, &mixed);
    if (tn__unlikely(mixed) && status == TN_OK)
        status = promote_inputs(work);
    if (tn__likely(status == TN_OK))
        status = complete_options(work, options);
    if (tn__likely(status == TN_OK))
        status = infer(work, false);
    if (tn__unlikely(status != TN_OK))
        end(work);
    return status;
}

tn_status tn__call_begin(tn__work *work, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                         const void *options, tn_meta *meta, tn_tensor *into)
{
    return begin(work, op, in, n_in, options, meta, into);
}

void tn__call_end(tn__work *work)
{
    end(work);
}

tn_status tn__call_recorded(tn__work *work, tn_tensor **out)
{
    const tn_op_def *def = &work->op->def;
    tn_status status;

    if (def->derive == NULL && def->decompose != NULL)
        return tn__run_work(work, out, true);
    status = tn__run_work(work, out, false);
    if (status != TN_OK)
        return status;
    /* The operator returned one of its inputs, as a cast to the same dtype does: nothing was
     * computed, and nothing is recorded. */
    for (int64_t i = 0; i < work->n_in; i++)
        if (work->n_out == 1 && out[0] == work->in[i])
            return TN_OK;
    status = tn__op_up.grad_record(work->op, work->in, work->n_in, work->options, out, work->n_out);
    if (status != TN_OK)
        for (int32_t i = 0; i < work->n_out; i++) {
            tn_tensor_drop(out[i]);
            out[i] = NULL;
        }
    return status;
}

/* `meta` has space for all outputs. */
static TN__INLINE tn_status run_call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                                     const void *options, tn_tensor **out, tn_meta *meta)
{
    tn__work work;
    tn_status status = begin(&work, op, in, n_in, options, meta, NULL);

    if (tn__unlikely(status != TN_OK))
        return status;
    if (tn__unlikely(op->flags & (TN__OP_WRITES | TN__OP_UPDATES)))
        status = tn__write_call(&work, out);
    else if (tn__unlikely(work.wants_grad))
        status = tn__call_recorded(&work, out);
    else
        status = tn__run_work(&work, out, false);
    end(&work);
    return status;
}

/* For a caller that does not know all outputs: drops those that it leaves out. */
static tn_status call_some(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                           tn_tensor **out, int64_t n_out)
{
    int32_t most = op->def.n_outputs;
    tn_tensor *all[TN_MAX_OPERANDS];
    tn_status status;

    if (n_out > most || n_out < 0 ||
        (n_out < most && tn__operand_since(&op->def.outputs[n_out]) == 0))
        return tn_fail(TN_ERR_VALUE, "%s: outputs: wrong count, got space for %lld; expected %d",
                       op->def.name, (long long)n_out, (int)most);
    status = tn__call_plain(op, in, n_in, options, all, most, NULL);
    for (int32_t i = 0; i < most && status == TN_OK; i++)
        if (i < n_out)
            out[i] = all[i];
        else
            tn_tensor_drop(all[i]);
    return status;
}

tn_status tn__call_plain(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                         tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    tn_meta few[2], *meta = few;
    tn_status status;

    if (into != NULL)
        return tn__inplace_call(op, in, n_in, options, into);
    if (tn__unlikely(n_out != op->def.n_outputs))
        return call_some(op, in, n_in, options, out, n_out);
    if (tn__unlikely(n_out > 2)) {
        meta = tn_malloc((size_t)n_out * sizeof *meta);
        if (meta == NULL)
            return TN_ERR_MEMORY;
    }
    status = run_call(op, in, n_in, options, out, meta);
    if (tn__unlikely(meta != few))
        tn_free(meta);
    return status;
}

static inline tn_status call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                             const void *options, tn_tensor **out, int64_t n_out)
{
    if (tn__unlikely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) > 0)) {
        tn_tensor *space[TN_MAX_OPERANDS];
        tn_status status = tn__call_fit(op, &in, &n_in, space);

        return status == TN_OK ? tn__observer_call(op, in, n_in, options, out, n_out, NULL)
                               : status;
    }
    return tn__call_plain(op, in, n_in, options, out, n_out, NULL);
}

tn_status tn_op_call(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                     tn_tensor **out, int64_t n_out)
{
    tn_status status;

    if (!tn__given(out != NULL || n_out <= 0, "tn_op_call: out"))
        return TN_ERR_VALUE;
    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    if (op == NULL)
        return tn_error_null("tn_op_call: operator");
    if (!tn__given(in != NULL || n_in <= 0, "tn_op_call: in"))
        return TN_ERR_VALUE;
    status = call(op, in, n_in, options, out, n_out);
    for (int64_t i = 0; i < n_out && tn__likely(status == TN_OK); i++) {
        out[i] = tn__scope_push(out[i]);
        if (tn__likely(out[i] != NULL))
            continue;
        while (++i < n_out)
            tn_tensor_drop(out[i]);
        status = tn_error_last_code();
    }
    if (tn__unlikely(status != TN_OK))
        for (int64_t i = 0; i < n_out; i++)
            out[i] = NULL;
    return status;
}

tn_tensor *tn_op_call1(tn_op_ref *ref, tn_tensor *const *in, int64_t n_in, const void *options)
{
    tn_tensor *out = NULL;
    tn_status status;
    tn_meta meta;

    if (!tn__given(ref != NULL, "tn_op_call1: ref") ||
        !tn__given(in != NULL || n_in <= 0, "tn_op_call1: in"))
        return NULL;
    const tn_op *op = tn__op_of(ref);
    if (tn__unlikely(op == NULL))
        return NULL;
    if (tn__likely(op->def.n_outputs == 1 &&
                   atomic_load_explicit(&tn__observers_on, memory_order_relaxed) == 0))
        status = run_call(op, in, n_in, options, &out, &meta);
    else
        status = call(op, in, n_in, options, &out, 1);
    return tn__likely(status == TN_OK) ? tn__scope_push(out) : NULL;
}

tn_status tn__op_run(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                     tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    tn_status status = tn_grad_begin(false);
    if (status == TN_OK)
        status = tn__call_plain(op, in, n_in, options, out, n_out, into);
    tn_grad_end();
    return status;
}

tn_status tn__op_takes(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options)
{
    tn__work work;
    tn_meta meta;
    tn_status status = tn__call_begin(&work, op, in, n_in, options, &meta, NULL);

    if (status == TN_OK)
        tn__call_end(&work);
    return status;
}

tn_tensor *tn__call_cast(tn_tensor *tensor, tn_dtype dtype)
{
    const tn_op *op = tn__op_needed(TN__NEED_cast);
    tn_cast_options options = TN_CAST_OPTIONS;
    tn_tensor *out = NULL;

    if (op == NULL)
        return NULL;
    options.dtype = dtype;
    return tn__call_plain(op, &tensor, 1, &options, &out, 1, NULL) == TN_OK ? out : NULL;
}
