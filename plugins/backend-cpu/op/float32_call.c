/* SPDX-License-Identifier: MIT
 *
 * Calls in float32 in place of calls in float16 or bfloat16. */
#include "op/float32_call.h"
#include "base/scratch.h"
#include "base/span.h"
#include "op/copy.h"

static bool is_narrow(const tn_view *view)
{
    return view != NULL && tn__dtype_is_narrow(tn_view_dtype(view));
}

bool tn__float32_call_needed(const tn_call *call)
{
    bool needed = false;

    for (int64_t i = 0; i < call->n_in && !needed; i++)
        needed = is_narrow(call->in[i]);
    for (int32_t i = 0; call->out && i < call->n_out && !needed; i++)
        needed = is_narrow(call->out[i]);
    return needed;
}

/* Returns whether the elements fill their memory without gaps, in any order of the dimensions. */
static bool without_gaps(const tn_view *view)
{
    bool seen[TN_MAX_DIMS] = { false };
    int64_t expect = 1;

    for (int32_t n = 0; n < view->ndim; n++) {
        int32_t d = 0;

        while (d < view->ndim && (seen[d] || (view->shape[d] != 1 && view->strides[d] != expect)))
            d++;
        if (d == view->ndim)
            return false;
        seen[d] = true;
        expect *= view->shape[d];
    }
    return true;
}

static const tn_view *describe(struct tn__float32_call *to, int64_t number, const tn_view *view)
{
    tn_view *out = &to->views[number];
    int64_t next = 1;

    if (!is_narrow(view))
        return view;
    *out = *view;
    tn__view_as_floats(out, 32);
    out->data = NULL;
    out->byte_offset = 0;
    if (without_gaps(view))
        return out;
    for (int32_t d = view->ndim; d-- > 0; next *= view->shape[d])
        to->strides[number][d] = next;
    out->strides = to->strides[number];
    return out;
}

void tn__float32_call_describe(struct tn__float32_call *to, const tn_call *call)
{
    to->call = *call;
    to->call.in = to->in;
    for (int64_t i = 0; i < call->n_in; i++)
        to->in[i] = describe(to, i, call->in[i]);
    if (call->out == NULL)
        return;
    to->call.out = to->out;
    for (int32_t i = 0; i < call->n_out; i++)
        to->out[i] = describe(to, call->n_in + i, call->out[i]);
}

/* Gives operand `number` memory, if `describe` replaced the operand. */
static tn_status add_memory(struct tn__float32_call *to, int64_t number, const tn_view *view)
{
    int64_t count;

    if (!is_narrow(view))
        return TN_OK;
    count = tn__span_view_count(view);
    to->views[number].data = tn__scratch_take((size_t)count * sizeof(float));
    return to->views[number].data ? TN_OK : TN_ERR_MEMORY;
}

tn_status tn__float32_call_run(const tn_call *call, uint64_t unread,
                               tn_status (*run)(const tn_call *call))
{
    struct tn__float32_call to;
    const int64_t all = call->n_in + call->n_out;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < all; i++)
        to.views[i].data = NULL;
    tn__float32_call_describe(&to, call);
    for (int64_t i = 0; i < call->n_in && status == TN_OK; i++) {
        if ((unread >> i & 1) != 0)
            continue;
        status = add_memory(&to, i, call->in[i]);
        if (status == TN_OK && is_narrow(call->in[i]))
            status = tn__copy_views(&to.views[i], call->in[i]);
    }
    for (int32_t i = 0; i < call->n_out && status == TN_OK; i++)
        status = add_memory(&to, call->n_in + i, call->out[i]);
    if (status == TN_OK)
        status = run(&to.call);
    for (int32_t i = 0; i < call->n_out && status == TN_OK; i++)
        if (is_narrow(call->out[i]))
            status = tn__copy_views(call->out[i], &to.views[call->n_in + i]);
    for (int64_t i = 0; i < all; i++)
        tn__scratch_give(to.views[i].data);
    return status;
}
