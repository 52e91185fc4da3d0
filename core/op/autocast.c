/* SPDX-License-Identifier: MIT
 *
 * Autocast: casts the inputs of a call, as the flags of the operator say. The casts are recorded,
 * so gradients reach the inputs in their own dtypes. */
#include "core/op/private.h"
#include "core/tensor/trace.h"

/* Returns the first input that decides on which device the call runs, NULL if there is none. */
static const tn_tensor *deciding(const tn__work *work)
{
    for (int64_t i = 0; i < work->n_in; i++)
        if (tn__tensor_ok(work->in[i]) &&
            (tn__operand(work->op, i)->flags & TN_OPERAND_ANY_DEVICE) == 0)
            return work->in[i];
    return NULL;
}

/* Returns the autocast flag of the operator for the device; 0 if it has none. For a device of the
 * host, returns the flag with HOST as the same flag without HOST. */
static uint64_t policy_of(const tn_op *op, const tn_device *device)
{
    uint64_t flags = op->flags & TN__OP_AUTOCAST;

    return (device->flags & TN_BACKEND_HOST_MEMORY) != 0
               ? flags / (TN_OP_AUTOCAST_HOST_LOW / TN_OP_AUTOCAST_LOW) & TN__OP_AUTOCAST &
                     (TN_OP_AUTOCAST_HOST_LOW - 1)
               : flags & (TN_OP_AUTOCAST_HOST_LOW - 1);
}

static bool is_eligible(const tn__work *work, int64_t i, tn_dtype dtype)
{
    const tn_operand *operand = tn__operand(work->op, i);
    uint64_t mask = operand->dtypes != 0 ? operand->dtypes : TN_MASK_ARITH;
    const tn_tensor *tensor = work->in[i];

    return tn__tensor_ok(tensor) &&
           ((TN_MASK_FLOAT & ~TN_BIT(TN_F64)) & TN_BIT(tensor->dtype)) != 0 &&
           (operand->flags & (TN_OPERAND_WRITTEN | TN_OPERAND_UPDATED)) == 0 &&
           (mask & TN_BIT(dtype)) != 0 &&
           tn__autocast_dtype_of(tensor->device->type) != TN_DTYPE_AUTO;
}

/* Returns the dtype of the region if all inputs that autocast casts have it, float32 otherwise. */
static tn_dtype widest(const tn__work *work, tn_dtype low)
{
    for (int64_t i = 0; i < work->n_in; i++)
        if (is_eligible(work, i, TN_F32) && work->in[i]->dtype != low)
            return TN_F32;
    return low;
}

/* Whether the call sets the option of the operator that is a dtype. */
static bool has_dtype(const tn_op *op, const void *options)
{
    const tn_option *row = op->dtype_option;
    tn_dtype dtype;
    uint32_t size;

    if (row == NULL || options == NULL)
        return false;
    memcpy(&size, options, sizeof size);
    if (size < row->offset + sizeof dtype)
        return false;
    memcpy(&dtype, (const uint8_t *)options + row->offset, sizeof dtype);
    return dtype != TN_DTYPE_AUTO;
}

/* Returns the cast of a tensor, with a reference. The region keeps that of a float32 leaf that
 * requires a gradient, which is probably a parameter and will be used again. */
static tn_tensor *cast(tn_tensor *tensor, tn_dtype dtype, bool keeps)
{
    bool recorded = tn__grad_on();
    tn_tensor *out = NULL;

    keeps = keeps &&
            (!tn__making.is.traced || (tn__tracer_here != NULL && tn__tracer_here->keeps_casts)) &&
            tensor->dtype == TN_F32 && tensor->requires_grad && tn__op_up.is_leaf(tensor) &&
            !tn__making.is.inference;
    if (keeps)
        out = tn__autocast_cached(tensor, dtype, recorded);
    if (out != NULL)
        return out;
    out = tn__call_cast(tensor, dtype);
    if (out != NULL && keeps && tn__autocast_cache(tensor, out, recorded) != TN_OK) {
        tn_tensor_drop(out);
        return NULL;
    }
    return out;
}

tn_status tn__autocast_inputs(tn__work *work, const void *options)
{
    const tn_op *op = work->op;
    const tn_tensor *first = tn__call_fits(op, work->n_in) ? deciding(work) : NULL;
    tn_dtype low, dtype;
    uint64_t policy;

    if (first == NULL || first->storage == &tn__infer_storage)
        return TN_OK;
    low = tn__autocast_dtype_of(first->device->type);
    policy = policy_of(op, first->device);
    if (low == TN_DTYPE_AUTO || policy == 0)
        return TN_OK;
    if (policy == TN_OP_AUTOCAST_REFUSED)
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: unsafe to autocast: its results can leave the range of %s; expected a "
                       "call in a region where autocast is off, with float32 inputs. %s",
                       op->def.name, tn_dtype_name(low), op->def.help != NULL ? op->def.help : "");
    if (policy == TN_OP_AUTOCAST_F32 && has_dtype(op, options))
        return TN_OK;
    dtype = policy == TN_OP_AUTOCAST_LOW   ? low
            : policy == TN_OP_AUTOCAST_F32 ? TN_F32
                                           : widest(work, low);
    for (int64_t i = 0; i < work->n_in; i++) {
        tn_tensor *tensor = work->in[i];

        if (tensor == NULL || tn__is_none(tensor))
            work->cast[i] = tensor;
        else if (is_eligible(work, i, dtype) && tensor->dtype != dtype)
            work->cast[i] = cast(tensor, dtype, policy == TN_OP_AUTOCAST_LOW);
        else
            work->cast[i] = tn_tensor_keep(tensor);
        if (work->cast[i] != NULL || tensor == NULL)
            continue;
        while (i-- > 0)
            if (tn__tensor_ok(work->cast[i]))
                tn_tensor_drop(work->cast[i]);
        return tn_error_last_code();
    }
    work->in = work->cast;
    work->promoted = true;
    return TN_OK;
}

tn_status tn__autocast_dtypes(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                              const void *options, tn_dtype *out)
{
    tn__work work = { .op = op, .in = in, .n_in = n_in };
    tn_status status;

    work.cast = tn_malloc(((size_t)n_in + 1) * sizeof(tn_tensor *));
    if (work.cast == NULL)
        return TN_ERR_MEMORY;
    status = tn__autocast_inputs(&work, options);
    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        out[i] = tn__tensor_ok(work.in[i]) ? (tn_dtype)work.in[i]->dtype : TN_DTYPE_AUTO;
        if (work.promoted && tn__tensor_ok(work.cast[i]))
            tn_tensor_drop(work.cast[i]);
    }
    tn_free(work.cast);
    return status;
}
