/* SPDX-License-Identifier: MIT
 *
 * Checks of a call that several kernels use. */
#include "gpu.h"

bool gpu_supports(const tn_call *call, char *reason, size_t size)
{
    if (!gpu_device_supports(call, call->dtype, reason, size))
        return false;
    for (int64_t i = 0; i < call->n_in; i++)
        if (call->in[i] && !gpu_device_supports(call, tn_view_dtype(call->in[i]), reason, size))
            return false;
    return true;
}

tn_status gpu_same_types(const tn_call *call)
{
    tn_dtype out = tn_view_dtype(call->out[0]);

    for (int64_t i = 0; i < call->n_in; i++)
        if (tn_view_dtype(call->in[i]) != out)
            return tn_fail(
                TN_ERR_TYPE,
                "%s: input %lld: wrong dtype, got %s with a result of %s; expected equal dtypes",
                call->op, (long long)i, tn_dtype_name(tn_view_dtype(call->in[i])),
                tn_dtype_name(out));
    return TN_OK;
}
