/* SPDX-License-Identifier: MIT
 *
 * Gradients of views whose base was changed, and of in-place changes through views. In this
 * file a region is the part of a tensor, with the shape of the base, that a view shows. */
#include "core/grad/private.h"

#include <tenon/ops.h>

static tn_status zero(tn_tensor *tensor)
{
    const tn_op *fill = tn__op_needed(TN__NEED_fill);
    tn_fill_options options = TN_FILL_OPTIONS;

    if (fill == NULL)
        return tn_error_last_code();
    options.value = tn_scalar_float(0.0);
    return tn__op_run(fill, &tensor, 1, &options, NULL, 0, tensor);
}

tn_tensor *tn__grad_zeros_like(const tn_tensor *tensor)
{
    tn_meta meta;

    tn__tensor_meta(tensor, &meta);
    meta.flags = 0;
    meta.offset = 0;
    return tn__grad_zeros(&meta, tensor->device);
}

tn_tensor *tn__grad_zeros(const tn_meta *meta, const tn_device *device)
{
    tn_tensor *out = tn__tensor_make(meta, device);

    if (out != NULL && zero(out) != TN_OK) {
        tn_tensor_drop(out);
        return NULL;
    }
    return out;
}

/* Returns the region of `whole` under the view. `whole` has the shape of the base. */
static tn_tensor *region(tn_tensor *whole, const tn_meta *view)
{
    tn_meta meta = *view;

    meta.offset += tn_tensor_offset(whole) * (int64_t)tn_dtype_size((tn_dtype)whole->dtype) /
                   (int64_t)tn_dtype_size(view->dtype);
    return tn__tensor_over(whole->storage, &meta);
}

/* Like region(), but with a history: a view of `whole`, which the scope owns. */
static tn_tensor *recorded_region(tn_tensor *whole, const tn_meta *view)
{
    tn_tensor *part = region(whole, view);
    tn__edge edge;

    if (part == NULL || tn__scope_push(part) == NULL || tn__grad_view(part, whole) != TN_OK)
        return NULL;
    part->autograd->generation--; /* outdated, so that tn__grad_edge() makes the history */
    return tn__grad_edge(part, &edge) == TN_OK ? part : NULL;
}

tn_status tn__view_gradient_output(tn__node *slice, tn__edge *edge)
{
    const tn_meta *base = slice->as.slice.base;
    void *tail;
    tn__node *node = tn__node_new(TN__NODE_STRIDED, "view", 1, 1, 0, base->ndim,
                                  2 * sizeof(tn_meta), &tail);

    if (node == NULL)
        return tn_error_last_code();
    node->as.slice.inner = NULL;
    node->as.slice.base = tail;
    node->as.slice.view = node->as.slice.base + 1;
    *node->as.slice.base = *base;
    *node->as.slice.view = *slice->as.slice.view;
    node->seen[0].ndim = (int16_t)base->ndim;
    node->seen[0].dtype = (uint16_t)base->dtype;
    for (int32_t d = 0; d < base->ndim; d++)
        node->seen[0].shape[d] = base->shape[d];
    node->edges[0].node = tn__node_keep(slice);
    tn__node_follow(node, slice);
    edge->node = node;
    edge->index = 0;
    return TN_OK;
}

/* If a view shows one element several times along a dimension (expand), the gradients of these are
 * added up. Sets such dimensions of *view to length 1 and replaces *gradient, which is owned, by
 * the sum. */
static tn_status fold(tn_meta *view, tn_tensor **gradient)
{
    const tn_op *op = tn__op_needed(TN__NEED_sum_to);
    tn_sum_to_options options = TN_SUM_TO_OPTIONS;
    tn_tensor *sum = NULL;
    tn_status status;
    bool any = false;

    for (int32_t d = 0; d < view->ndim; d++)
        if (view->strides[d] == 0 && view->shape[d] > 1) {
            view->shape[d] = 1;
            any = true;
        }
    if (!any)
        return TN_OK;
    if (op == NULL)
        return tn_error_last_code();
    options.shape = (tn_ints){ view->shape, view->ndim };
    status = tn__call_plain(op, gradient, 1, &options, &sum, 1, NULL);
    if (status != TN_OK)
        return status;
    tn_tensor_drop(*gradient);
    *gradient = sum;
    return TN_OK;
}

/* Returns a set of dimensions, as bits. If the index in these dimensions is fixed, the view shows
 * no element twice. Of all such sets, returns the one with the fewest combinations of indices. The
 * set is empty for most views and has one dimension for windows that overlap (unfold). */
static uint32_t repeated_dims(const tn_meta *view)
{
    uint32_t best = 0;
    int64_t fewest = INT64_MAX;

    if (tn__view_strides_nest(view->shape, view->strides, view->ndim, 0))
        return 0;
    for (uint32_t set = 1; set < UINT32_C(1) << view->ndim; set++) {
        int64_t places = 1;

        for (int32_t d = 0; d < view->ndim; d++)
            if ((set >> d & 1) != 0)
                places *= view->shape[d];
        if (places < fewest && tn__view_strides_nest(view->shape, view->strides, view->ndim, set)) {
            fewest = places;
            best = set;
        }
    }
    return best;
}

/* Adds a gradient to the elements of `whole` that `view` shows. Neither `whole` nor `view` may show
 * an element twice. */
static tn_status add_to(tn_tensor *whole, const tn_meta *view, tn_tensor *gradient, bool record)
{
    const tn_op *op = tn__op_needed(TN__NEED_add);
    tn_add_options options = TN_ADD_OPTIONS;
    tn_tensor *in[2] = { NULL, gradient };
    tn_status status;

    if (op == NULL)
        return tn_error_last_code();
    in[0] = record ? recorded_region(whole, view) : region(whole, view);
    if (in[0] == NULL)
        return tn_error_last_code();
    status = record ? tn__inplace_call(op, in, 2, &options, in[0])
                    : tn__op_run(op, in, 2, &options, NULL, 0, in[0]);
    if (!record)
        tn_tensor_drop(in[0]);
    return status;
}

/* Moves to the next index along the dimensions in `set`. Returns false after the last index. */
static bool next_place(const tn_meta *of, uint32_t set, int64_t *place)
{
    for (int32_t d = of->ndim - 1; d >= 0; d--) {
        if ((set >> d & 1) == 0)
            continue;
        if (++place[d] < of->shape[d])
            return true;
        place[d] = 0;
    }
    return false;
}

/* Returns the part at one place along the dimensions in `set`, which get length 1. */
static tn_meta part_at(const tn_meta *of, uint32_t set, const int64_t *place)
{
    tn_meta part = *of;

    for (int32_t d = 0; d < of->ndim; d++)
        if ((set >> d & 1) != 0) {
            part.offset += place[d] * of->strides[d];
            part.shape[d] = 1;
        }
    return part;
}

/* Adds the gradient of windows that overlap, one place after the other, because the windows at one
 * place do not overlap. */
static tn_status add_parts(tn_tensor *whole, const tn_meta *view, uint32_t set, tn_tensor *gradient,
                           bool record)
{
    const tn_op *copy = tn__op_needed(TN__NEED_copy);
    int64_t place[TN_MAX_DIMS] = { 0 };
    tn_tensor *dense = NULL;
    tn_meta of;
    tn_status status;

    if (copy == NULL)
        return tn_error_last_code();
    if (record) /* a copy, so that its parts are views with a history */
        status = tn__call_plain(copy, &gradient, 1, NULL, &dense, 1, NULL);
    else
        status = (dense = tn_tensor_keep(gradient)) != NULL ? TN_OK : tn_error_last_code();
    if (status != TN_OK)
        return status;
    tn__tensor_meta(dense, &of);
    of.offset = 0; /* region() counts from the first element */
    do {
        tn_meta from = part_at(&of, set, place), to = part_at(view, set, place);
        tn_tensor *part = record ? recorded_region(dense, &from) : region(dense, &from);

        status = part == NULL ? tn_error_last_code() : add_to(whole, &to, part, record);
        if (!record)
            tn_tensor_drop(part);
    } while (status == TN_OK && next_place(&of, set, place));
    tn_tensor_drop(dense);
    return status;
}

/* Copies a gradient to the region of `whole` under `view`. */
static tn_status put(tn_tensor *whole, const tn_meta *view, tn_tensor *gradient, bool record)
{
    const tn_op *copy = tn__op_needed(TN__NEED_copy);
    tn_tensor *part = record ? recorded_region(whole, view) : region(whole, view);
    tn_status status;

    if (copy == NULL || part == NULL)
        return tn_error_last_code();
    if (record)
        return tn__inplace_call(copy, &gradient, 1, NULL, part);
    status = tn__copy(part, gradient);
    tn_tensor_drop(part);
    return status;
}

static tn_status strided_run(tn__node *node, tn_tensor *gout, bool record, tn_tensor **gin)
{
    tn_tensor *whole = tn__tensor_make(node->as.slice.base, gout->device);
    tn_meta view = *node->as.slice.view;
    tn_tensor *gradient;
    uint32_t repeated;
    tn_status status;

    if (whole == NULL || tn__scope_push(whole) == NULL)
        return tn_error_last_code();
    status = zero(whole);
    if (status != TN_OK)
        return status;
    gradient = tn_tensor_keep(gout);
    status = fold(&view, &gradient);
    repeated = repeated_dims(&view);
    if (status == TN_OK && repeated != 0)
        status = add_parts(whole, &view, repeated, gradient, record);
    else if (status == TN_OK)
        status = put(whole, &view, gradient, record);
    tn_tensor_drop(gradient);
    gin[0] = whole;
    return status;
}

/* Sets gin[0] to the gradient of what the change left of the base, and *under to a copy of the part
 * under the view. The scope owns both. */
static tn_status split(tn__node *node, tn_tensor *gout, tn_tensor **under, tn_tensor **gin)
{
    tn_tensor *whole = tn__tensor_make(node->as.slice.base, gout->device), *part;
    tn_status status;

    if (whole == NULL || tn__scope_push(whole) == NULL)
        return tn_error_last_code();
    status = tn__copy(whole, gout);
    if (status != TN_OK)
        return status;
    part = region(whole, node->as.slice.view);
    if (part == NULL || tn__scope_push(part) == NULL)
        return tn_error_last_code();
    *under = tn__grad_copy(part);
    if (*under == NULL || tn__scope_push(*under) == NULL)
        return tn_error_last_code();
    gin[0] = whole;
    return zero(part);
}

/* Like split(), but recorded. The derivative of an in-place change through a view is itself an
 * in-place change through a view, and can therefore be differentiated again. */
static tn_status split_recorded(tn__node *node, tn_tensor *gout, tn_tensor **under, tn_tensor **gin)
{
    const tn_op *copy = tn__op_needed(TN__NEED_copy), *fill = tn__op_needed(TN__NEED_fill);
    tn_tensor *whole = tn__tensor_make(node->as.slice.base, gout->device), *part;
    tn_fill_options options = TN_FILL_OPTIONS;
    tn_status status;

    if (whole == NULL || tn__scope_push(whole) == NULL || copy == NULL || fill == NULL)
        return tn_error_last_code();
    status = tn__inplace_call(copy, &gout, 1, NULL, whole);
    if (status != TN_OK)
        return status;
    part = recorded_region(whole, node->as.slice.view);
    if (part == NULL)
        return tn_error_last_code();
    status = tn__call_plain(copy, &part, 1, NULL, under, 1, NULL);
    if (status != TN_OK)
        return status;
    if (tn__scope_push(*under) == NULL)
        return tn_error_last_code();
    options.value = tn_scalar_float(0.0);
    gin[0] = whole;
    return tn__inplace_call(fill, &part, 1, &options, part);
}

tn_status tn__view_gradient_run(tn__node *node, tn_tensor *gout, uint32_t need, bool record,
                                tn_tensor **gin)
{
    tn__node *inner = node->as.slice.inner;
    tn_tensor *under = NULL;
    tn_status status;

    if (node->kind == TN__NODE_STRIDED)
        return strided_run(node, gout, record, gin);
    for (int32_t i = 0; i < node->n_in; i++)
        gin[i] = TN_NONE;
    status = record ? split_recorded(node, gout, &under, gin) : split(node, gout, &under, gin);
    if (status != TN_OK)
        return status;
    if (need >> 1 == 0 || inner->n_in == 0)
        return TN_OK;
    status = tn__node_run(inner, &under, need >> 1, record, gin + 1, NULL);
    for (int32_t i = 1; i < node->n_in && status == TN_OK; i++)
        if (!tn__is_none(gin[i]) && tn__scope_push(gin[i]) == NULL) {
            status = tn_error_last_code();
            gin[i] = TN_NONE;
        }
    return status;
}
