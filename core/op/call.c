/* SPDX-License-Identifier: MIT
 *
 * One call of an operator: inputs are checked and promoted, options completed, outputs inferred;
 * then it runs (run.c) and is recorded (core/grad) where a gradient is wanted. In the steady state
 * nothing here takes a lock, parses or calls malloc. */
#include "core/grad/internal.h"
#include "core/op/parts.h"

static void describe(tn__text *text, const tn_op *op, int64_t i, const tn_tensor *tensor)
{
    tn__text_add(text, "%s is ", tn__operand(op, i)->name);
    tn__text_tensor(text, tensor);
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
    tn__text_add(
        &text,
        "; all have to be on one device, and nothing is moved silently: tn_copy_ copies between "
        "devices");
    return fail_text(TN_ERR_RUNTIME, op, &text);
}

static tn_status wrong_dtype(const tn_op *op, tn_tensor *const *in, int64_t i)
{
    uint32_t mask = tn__operand(op, i)->dtypes;
    tn__text text = { 0 };

    describe(&text, op, i, in[i]);
    tn__text_add(&text, "; accepted are");
    for (int d = 0; d < TN_DTYPE_COUNT; d++)
        if ((mask != 0 ? mask : TN_MASK_ARITH) & TN_BIT(d))
            tn__text_add(&text, " %s", tn_dtype_name(d));
    return fail_text(TN_ERR_TYPE, op, &text);
}

static tn_status wrong_count(const tn_op *op, int64_t n_in)
{
    tn__text text = { 0 };

    tn__text_add(&text, "%lld inputs, but it takes %s%d (", (long long)n_in,
                 op->flags & TN__OP_LIST ? "at least " : "", (int)op->def.n_inputs);
    for (int32_t i = 0; i < op->def.n_inputs; i++)
        tn__text_add(&text, "%s%s", i > 0 ? ", " : "", op->def.inputs[i].name);
    tn__text_add(&text, "); TN_NONE stands for an absent optional one");
    return fail_text(TN_ERR_VALUE, op, &text);
}

/* Counts, NULL-through, dtypes, devices. Says whether promotion has anything to do. */
static tn_status check_inputs(tn__work *work, bool *mixed)
{
    const tn_op *op = work->op;
    tn_tensor *const *in = work->in;
    int64_t first = -1;
    bool grad = false;
    int dtype = -1;

    if (tn__unlikely(op->flags & TN__OP_LIST ? work->n_in < op->def.n_inputs
                                             : work->n_in != op->def.n_inputs))
        return wrong_count(op, work->n_in);
    for (int64_t i = 0; i < work->n_in; i++) {
        const tn_operand *operand = tn__operand(op, i);
        tn_tensor *tensor = in[i];
        uint32_t mask;

        if (tn__unlikely(!tn__tensor_ok(tensor))) {
            if (tensor == NULL)
                return tn__null_input(op->def.name);
            if ((operand->flags & TN_OPERAND_OPTIONAL) == 0)
                return tn_fail(TN_ERR_VALUE, "%s: %s is TN_NONE, but it is not optional",
                               op->def.name, operand->name);
            work->views[i] = NULL;
            continue;
        }
        work->views[i] = &tensor->view;
        mask = operand->dtypes != 0 ? operand->dtypes : TN_MASK_ARITH;
        if (tn__unlikely((mask & TN_BIT(tensor->dtype)) == 0))
            return wrong_dtype(op, in, i);
        if ((operand->flags & TN_OPERAND_ANY_DEVICE) == 0) {
            if (first < 0) {
                first = i;
                work->device = tensor->device;
            } else if (tn__unlikely(tensor->device != work->device)) {
                return wrong_device(op, in, i, first);
            }
        }
        if ((operand->flags & TN_OPERAND_NO_PROMOTE) == 0) {
            *mixed |= dtype >= 0 && dtype != tensor->dtype;
            dtype = tensor->dtype;
        }
        grad |= tn__requires_grad(tensor) && (operand->flags & TN_OPERAND_NO_GRAD) == 0;
    }
    if (work->device == NULL) {
        work->device = tn_device_default();
        if (work->device == NULL)
            return tn_error_last()->code;
    }
    if ((op->flags & TN_OP_PROMOTE_FLOAT) && dtype >= 0 &&
        ((TN_MASK_FLOAT | TN_MASK_COMPLEX) & TN_BIT(dtype)) == 0)
        *mixed = true;
    work->dtype = op->flags & (TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT) && dtype >= 0 ? (tn_dtype)dtype
                                                                                  : TN_DTYPE_AUTO;
    work->wants_grad = grad && tn__grad_on();
    return TN_OK;
}

/* Casts the inputs that take part in promotion to work->dtype; gradients follow. */
static tn_status cast_inputs(tn__work *work)
{
    for (int64_t i = 0; i < work->n_in; i++) {
        tn_tensor *tensor = work->in[i];

        if (!tn__is_none(tensor)) {
            if ((tn__operand(work->op, i)->flags & TN_OPERAND_NO_PROMOTE) == 0 &&
                (tn_dtype)tensor->dtype != work->dtype)
                tensor = tn__cast(tensor, work->dtype);
            else
                tn_tensor_keep(tensor);
        }
        if (tensor == NULL) {
            for (int64_t k = 0; !work->promoted && k < i; k++)
                if (!tn__is_none(work->cast[k]))
                    tn_tensor_drop(work->cast[k]);
            return tn_error_last()->code;
        }
        if (work->promoted &&
            !tn__is_none(work->cast[i])) /* the second time: what the first made */
            tn_tensor_drop(work->cast[i]);
        work->cast[i] = tensor;
        work->views[i] = tn__is_none(tensor) ? NULL : &tensor->view;
    }
    work->in = work->cast;
    work->promoted = true;
    return TN_OK;
}

/* The options with all that the caller's struct does not have, when it is of another version of the
 * header. */
static tn_status complete_options(tn__work *work, const void *options)
{
    const tn_op_def *def = &work->op->def;
    uint32_t size;
    uint8_t *space = (uint8_t *)work->option_space;

    if (def->options == NULL) {
        work->options = NULL;
        return TN_OK;
    }
    if (options == NULL) {
        if (work->op->needs_options) {
            for (const tn_option *row = def->options; row->kind != TN_OPTION_KIND_END; row++)
                if (row->flags & TN_OPTION_REQUIRED)
                    return tn_fail(TN_ERR_VALUE, "%s: %s (%s) has no default: it has to be given",
                                   def->name, row->name, row->help);
        }
        work->options = def->defaults;
        return TN_OK;
    }
    memcpy(&size, options, sizeof size);
    if (tn__likely(size == def->options_size)) {
        work->options = options;
        return TN_OK;
    }
    if (size < sizeof size)
        return tn_fail(TN_ERR_VALUE,
                       "%s: options.size is %u: begin with the operator's TN_..._OPTIONS",
                       def->name, size);
    for (uint32_t i = def->options_size; i < size; i++)
        if (((const uint8_t *)options)[i] != 0)
            return tn_fail(
                TN_ERR_VERSION,
                "%s: the options have %u bytes and use what this version, which knows %u, does "
                "not have",
                def->name, size, def->options_size);
    if (def->options_size > sizeof work->option_space) {
        space = work->option_heap = tn_malloc(def->options_size);
        if (space == NULL)
            return TN_ERR_MEMORY;
    }
    memcpy(space, def->defaults, def->options_size);
    memcpy(space, options, size < def->options_size ? size : def->options_size);
    memcpy(space, &def->options_size, sizeof def->options_size);
    work->options = space;
    return TN_OK;
}

static tn_status infer(tn__work *work)
{
    const tn_op_def *def = &work->op->def;
    const tn_tensor *first = work->n_in > 0 && !tn__is_none(work->in[0]) ? work->in[0] : NULL;
    const char *before;
    tn_status status;
    tn_infer ask;

    for (int round = 0;; round++) {
        ask.head = (tn_head){
            sizeof ask, TN_KIND_tn_infer, 0, TN_ABI_MAJOR, TN_ABI_MINOR, 0, NULL
        };
        ask.in = work->views;
        ask.n_in = work->n_in;
        ask.options = work->options;
        ask.dtype = work->dtype;
        ask.n_out = work->n_out;
        ask.out = work->meta;
        ask.in0_offset = 0;
        if ((work->op->flags & TN_OP_VIEW) && first != NULL)
            ask.in0_offset = tn_tensor_offset(first);
        for (int32_t i = 0; i < work->n_out; i++) {
            work->meta[i].dtype = work->dtype;
            work->meta[i].ndim = 0;
            work->meta[i].flags = 0;
            work->meta[i].reserved = 0;
            work->meta[i].offset = 0;
        }
        before = tn__error_plugin(work->op->plugin != NULL ? work->op->plugin->id : "");
        status = def->infer(&ask);
        tn__error_plugin(before);
        if (tn__unlikely(status != TN_OK)) {
            tn__status_of(status, def->name);
            return tn_error_prefix("%s: ", def->name);
        }
        if (tn__likely(ask.dtype == work->dtype))
            break;
        if (round > 0)
            return tn_fail(
                TN_ERR_ASSERT,
                "%s: its infer asks for %s and then for %s: a bug of the plugin that has it",
                def->name, tn_dtype_name(work->dtype), tn_dtype_name(ask.dtype));
        work->dtype = ask.dtype;
        status = cast_inputs(work);
        if (status != TN_OK)
            return status;
    }
    for (int32_t i = 0; i < work->n_out; i++)
        if (tn__unlikely(work->meta[i].ndim < -1 || work->meta[i].ndim > TN_MAX_DIMS ||
                         (unsigned)work->meta[i].dtype >= TN_DTYPE_COUNT))
            return tn_fail(
                TN_ERR_VALUE,
                "%s: output %s would have %d dimensions and dtype %s; at most %d, and a dtype",
                def->name, def->outputs[i].name, (int)work->meta[i].ndim,
                tn_dtype_name(work->meta[i].dtype), TN_MAX_DIMS);
    return TN_OK;
}

tn_status tn__work_begin(tn__work *work, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                         const void *options, tn_meta *meta, tn_tensor *into)
{
    bool mixed = false;
    tn_status status;

    work->op = op;
    work->in = in;
    work->n_in = n_in;
    work->device = NULL;
    work->promoted = false;
    work->n_out = op->def.n_outputs;
    work->meta = meta;
    work->views = work->few_views;
    work->cast = work->few_cast;
    work->out = NULL;
    work->into = into;
    work->made = 0;
    work->heap = NULL;
    work->option_heap = NULL;
    if (tn__unlikely(n_in > TN__FEW)) {
        work->heap = tn_malloc((size_t)n_in * 2 * sizeof(void *));
        if (work->heap == NULL)
            return TN_ERR_MEMORY;
        work->views = work->heap;
        work->cast = (tn_tensor **)work->heap + n_in;
    }
    status = check_inputs(work, &mixed);
    if (tn__unlikely(status != TN_OK))
        goto fail;
    if (tn__unlikely(mixed) && (op->flags & (TN_OP_PROMOTE | TN_OP_PROMOTE_FLOAT))) {
        status = tn__promote(op, in, n_in, &work->dtype);
        if (status == TN_OK)
            status = cast_inputs(work);
        if (status != TN_OK)
            goto fail;
    }
    status = complete_options(work, options);
    if (tn__likely(status == TN_OK))
        status = infer(work);
    if (tn__likely(status == TN_OK))
        return TN_OK;
fail:
    tn__work_end(work);
    return status;
}

void tn__work_end(tn__work *work)
{
    if (tn__unlikely(work->promoted))
        for (int64_t i = 0; i < work->n_in; i++)
            if (!tn__is_none(work->cast[i]))
                tn_tensor_drop(work->cast[i]);
    if (tn__unlikely(work->option_heap != NULL))
        tn_free(work->option_heap);
    if (tn__unlikely(work->heap != NULL))
        tn_free(work->heap);
}

tn_status tn__work_call(tn__work *work, tn_tensor **out)
{
    const tn_op_def *def = &work->op->def;
    tn_status status;

    if (tn__likely(!work->wants_grad))
        return tn__work_run(work, out, false);
    if (def->derive == NULL && def->decompose != NULL)
        return tn__work_run(work, out, true);
    status = tn__work_run(work, out, false);
    if (status != TN_OK)
        return status;
    for (int64_t i = 0; i < work->n_in;
         i++) /* nothing was done (a cast to the same type): nothing to record */
        if (work->n_out == 1 && out[0] == work->in[i])
            return TN_OK;
    status = tn__grad_record(work->op, work->in, work->n_in, work->options, out, work->n_out);
    if (status != TN_OK)
        for (int32_t i = 0; i < work->n_out; i++) {
            tn_tensor_drop(out[i]);
            out[i] = NULL;
        }
    return status;
}

tn_status tn__plain_call(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                         tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    tn_meta few[2];
    tn_meta *meta = few;
    tn__work work;
    tn_status status;

    if (into != NULL)
        return tn__inplace_call(op, in, n_in, options, into);
    if (tn__unlikely(n_out != op->def.n_outputs))
        return tn_fail(TN_ERR_VALUE, "%s: it has %d outputs, room was given for %lld", op->def.name,
                       (int)op->def.n_outputs, (long long)n_out);
    if (tn__unlikely(n_out > 2)) {
        meta = tn_malloc((size_t)n_out * sizeof *meta);
        if (meta == NULL)
            return TN_ERR_MEMORY;
    }
    status = tn__work_begin(&work, op, in, n_in, options, meta, NULL);
    if (tn__likely(status == TN_OK)) {
        status = tn__unlikely(op->flags & TN__OP_WRITES) ? tn__writing_call(&work, out)
                                                         : tn__work_call(&work, out);
        tn__work_end(&work);
    }
    if (tn__unlikely(meta != few))
        tn_free(meta);
    return status;
}

static tn_status call(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                      tn_tensor **out, int64_t n_out)
{
    tn_status status;

    if (tn__unlikely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) > 0))
        status = tn__observed_call(op, in, n_in, options, out, n_out, NULL);
    else
        status = tn__plain_call(op, in, n_in, options, out, n_out, NULL);
    if (tn__unlikely(status != TN_OK))
        return status;
    for (int64_t i = 0; i < n_out; i++) {
        out[i] = tn__scope_push(out[i]);
        if (tn__unlikely(out[i] == NULL)) {
            while (++i < n_out)
                tn_tensor_drop(out[i]);
            return tn_error_last()->code;
        }
    }
    return TN_OK;
}

tn_status tn_op_call(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                     tn_tensor **out, int64_t n_out)
{
    tn_status status;

    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    if (op == NULL)
        return tn__null_input("tn_op_call");
    status = call(op, in, n_in, options, out, n_out);
    if (tn__unlikely(status != TN_OK))
        for (int64_t i = 0; i < n_out; i++)
            out[i] = NULL;
    return status;
}

tn_tensor *tn_op_call1(tn_op_ref *ref, tn_tensor *const *in, int64_t n_in, const void *options)
{
    const tn_op *op = tn_op_lookup(ref);
    tn_tensor *out = NULL;

    if (tn__unlikely(op == NULL) || tn__unlikely(call(op, in, n_in, options, &out, 1) != TN_OK))
        return NULL;
    return out;
}

tn_status tn__op_run(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                     tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    tn_status status;

    tn_grad_begin(false);
    status = tn__plain_call(op, in, n_in, options, out, n_out, into);
    tn_grad_end();
    return status;
}

tn_tensor *tn__cast(tn_tensor *tensor, tn_dtype dtype)
{
    const tn_op *op = tn__needed(TN__NEED_cast);
    tn_cast_options options = TN_CAST_OPTIONS;
    tn_tensor *out = NULL;

    if (op == NULL)
        return NULL;
    options.dtype = dtype;
    return tn__plain_call(op, &tensor, 1, &options, &out, 1, NULL) == TN_OK ? out : NULL;
}
