/* SPDX-License-Identifier: MIT
 *
 * Moving and converting a module: every tensor object stays, what it looks at is exchanged. First all new values are
 * made, then all are exchanged, so that a failure leaves the module as it was. */
#include "core/module/internal.h"

struct exchange {
    tn_tensor *tensor; /* borrowed from the walk or from a parameter of it */
    tn_tensor *with;   /* owned */
};

struct conversion {
    const tn_device *device; /* NULL: keep */
    tn_dtype dtype;          /* TN_DTYPE_AUTO: keep */
    struct exchange *at;
    int64_t count, capacity;
};

/* Strides of a copy: those of `tensor` when it fills its memory without gaps or repeats, else row-major. */
static void dense_strides(const tn_tensor *tensor, tn_meta *meta)
{
    int order[TN_MAX_DIMS];
    for (int i = 0; i < meta->ndim; i++) {
        int at = i;
        for (; at > 0 && meta->strides[order[at - 1]] > meta->strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    int64_t expect = 1;
    bool dense = tensor->numel > 0;
    for (int i = 0; i < meta->ndim && dense; i++) {
        int dim = order[i];
        if (meta->shape[dim] == 1)
            continue;
        dense = meta->strides[dim] == expect;
        expect *= meta->shape[dim];
    }
    meta->flags = dense ? TN_META_STRIDED : 0;
    meta->offset = 0;
}

static bool changes_dtype(const struct conversion *c, const tn_tensor *tensor)
{
    const uint32_t convertible = TN_MASK_FLOAT | TN_MASK_COMPLEX;
    tn_dtype dtype = tn_tensor_dtype(tensor);
    return c->dtype != TN_DTYPE_AUTO && c->dtype != dtype && (TN_BIT(dtype) & convertible) != 0;
}

/* The same values with the conversion's dtype and device; the caller owns it. */
static tn_tensor *converted(const struct conversion *c, const tn_tensor *tensor)
{
    tn_meta meta;
    tn__tensor_meta(tensor, &meta);
    dense_strides(tensor, &meta);
    if (changes_dtype(c, tensor))
        meta.dtype = c->dtype;
    const tn_device *device = c->device != NULL ? c->device : tn_tensor_device(tensor);
    if (tn_device_has_memory(device) && !tn_device_has_memory(tn_tensor_device(tensor))) {
        tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "cannot copy out of a tensor on %s, which has no values: make the module on %s instead",
            tn_device_name(tn_tensor_device(tensor)), tn_device_name(device));
        return NULL;
    }
    tn_tensor *made = tn__tensor_make(&meta, device);
    if (made == NULL || !tn_device_has_memory(device) || tensor->numel == 0)
        return made;
    if (tn__copy(made, tensor) == TN_OK)
        return made;
    tn_tensor_drop(made);
    return NULL;
}

static tn_status plan(struct conversion *c, tn_tensor *tensor)
{
    bool moves = c->device != NULL && c->device != tn_tensor_device(tensor);
    if (!moves && !changes_dtype(c, tensor))
        return TN_OK;
    if (c->count == c->capacity) {
        int64_t capacity = c->capacity > 0 ? c->capacity * 2 : 16;
        struct exchange *grown = tn_realloc(c->at, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        c->at = grown;
        c->capacity = capacity;
    }
    tn_tensor *with = converted(c, tensor);
    if (with == NULL)
        return tn_error_last()->code;
    c->at[c->count++] = (struct exchange){ tensor, with };
    return TN_OK;
}

/* A gradient follows its parameter; it is exchanged first, so that the two fit whenever somebody looks. */
static tn_status plan_all(struct conversion *c, const tn__walk *walk)
{
    for (int64_t i = 0; i < walk->count; i++) {
        tn_tensor *gradient = tn_tensor_grad(walk->at[i].tensor);
        tn_status status = TN_OK;
        if (gradient != NULL && !tn__is_none(gradient))
            status = plan(c, gradient);
        if (status == TN_OK)
            status = plan(c, walk->at[i].tensor);
        if (status != TN_OK) {
            tn_error_prefix("moving or converting \"%s\": ", walk->at[i].path);
            return status;
        }
    }
    return TN_OK;
}

static tn_status swap_all(struct conversion *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        tn_status status = tn_tensor_swap(c->at[i].tensor, c->at[i].with);
        if (status == TN_OK)
            continue;
        while (i-- > 0)
            tn_tensor_swap(c->at[i].tensor, c->at[i].with);
        return status;
    }
    return TN_OK;
}

tn_status tn_module_to(tn_module *module, const tn_device *device, tn_dtype dtype)
{
    if (module == NULL)
        return tn__null_input("an argument of tn_module_to");
    if (dtype != TN_DTYPE_AUTO && ((unsigned)dtype >= TN_DTYPE_COUNT ||
                                   (TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) == 0))
        return tn_fail(
            TN_ERR_TYPE,
            "tn_module_to only accepts floating point or complex dtypes, but got desired "
            "dtype=%s",
            tn_dtype_name(dtype));
    tn__walk walk = { NULL, 0, 0 };
    struct conversion c = { .device = device, .dtype = dtype };
    tn_status status = tn__walk_collect(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false, &walk);
    if (status != TN_OK)
        return status;
    uint64_t scope = tn_scope_begin();
    tn_grad_begin(false);
    status = plan_all(&c, &walk);
    if (status == TN_OK)
        status = swap_all(&c);
    tn_grad_end();
    tn_scope_end(scope);
    for (int64_t i = 0; i < c.count; i++)
        tn_tensor_drop(c.at[i].with);
    tn_free(c.at);
    tn__walk_free(&walk);
    return status;
}
