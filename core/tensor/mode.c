/* SPDX-License-Identifier: MIT
 *
 * The modes of a thread that can be nested: gradient mode (whether operators record) and inference
 * mode (nothing is recorded, and tensors that are made in it never take part in a graph). Anomaly
 * mode has only its variables here. */
#include "core/tensor/mode.h"

#include <string.h>

_Thread_local bool tn__grad_off_here TN__TLS_NEAR;
_Thread_local bool tn__anomaly_here TN__TLS_NEAR;
_Thread_local int32_t tn__anomaly_depth;
static _Thread_local int32_t grad_depth;

bool tn_grad_enabled(void)
{
    return tn__grad_on();
}

tn_status tn__mode_begin(tn__mode_kind kind, int32_t *depth, bool *here, bool now, const char *who)
{
    tn_status status = TN_OK;

    if (*depth > TN__MODE_DEPTH)
        status = TN_ERR_RUNTIME;
    else if (*depth == TN__MODE_DEPTH)
        status = tn_fail(TN_ERR_RUNTIME,
                         "%s: nested too deep; expected at most %d levels; the mode set here lasts "
                         "until level %d ends",
                         who, TN__MODE_DEPTH, TN__MODE_DEPTH);
    else if (!tn__mode_stack_push(kind, *depth, *here))
        status = tn_fail(TN_ERR_MEMORY, "%s: out of memory", who);
    ++*depth;
    if (status != TN_ERR_MEMORY)
        *here = now;
    return status;
}

void tn__mode_end(tn__mode_kind kind, int32_t *depth, bool *here, const char *who)
{
    uint8_t before;

    if (*depth == 0) {
        /* "tn_grad_end": no "tn_grad_begin" */
        tn_fail(TN_ERR_RUNTIME, "%s: no %.*sbegin in this thread", who, (int)strlen(who) - 3, who);
        return;
    }
    --*depth;
    if (*depth < TN__MODE_DEPTH && tn__mode_stack_pop(kind, *depth, &before))
        *here = before;
}

tn_status tn_grad_begin(bool enabled)
{
    return tn__mode_begin(TN__MODE_GRAD, &grad_depth, &tn__grad_off_here,
                          !enabled || tn__making.is.inference, "tn_grad_begin");
}

void tn_grad_end(void)
{
    tn__mode_end(TN__MODE_GRAD, &grad_depth, &tn__grad_off_here, "tn_grad_end");
}

/* ---- inference ------------------------------------------------------------------ */

static _Thread_local int32_t inference_depth;

bool tn_inference_enabled(void)
{
    return tn__making.is.inference;
}

tn_status tn_inference_begin(bool enabled)
{
    tn_status status = tn__mode_begin(TN__MODE_INFERENCE, &inference_depth,
                                      &tn__making.is.inference, enabled, "tn_inference_begin");
    tn_status gradients = tn__mode_begin(TN__MODE_GRAD, &grad_depth, &tn__grad_off_here, enabled,
                                         "tn_inference_begin");

    return status != TN_OK ? status : gradients;
}

void tn_inference_end(void)
{
    if (inference_depth > 0)
        tn__mode_end(TN__MODE_GRAD, &grad_depth, &tn__grad_off_here, "tn_inference_end");
    tn__mode_end(TN__MODE_INFERENCE, &inference_depth, &tn__making.is.inference,
                 "tn_inference_end");
}

/* ---- all of them ---------------------------------------------------------------- */

void tn__modes_get(int32_t depth[3], bool now[3])
{
    depth[0] = grad_depth;
    depth[1] = inference_depth;
    depth[2] = tn__anomaly_depth;
    now[0] = tn__grad_off_here;
    now[1] = tn__making.is.inference;
    now[2] = tn__anomaly_here;
}

void tn__modes_set(const int32_t depth[3], const bool now[3])
{
    grad_depth = depth[0];
    inference_depth = depth[1];
    tn__anomaly_depth = depth[2];
    tn__grad_off_here = now[0];
    tn__making.is.inference = now[1];
    tn__anomaly_here = now[2];
}

bool tn_tensor_is_inference(const tn_tensor *tensor)
{
    if (tn__tensor_ok(tensor))
        return (tensor->storage->flags & TN__STORAGE_INFERENCE) != 0;
    tn__tensor_bad(tensor, "tn_tensor_is_inference");
    return false;
}
