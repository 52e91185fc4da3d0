/* SPDX-License-Identifier: MIT
 *
 * The operator complex, which makes complex numbers from real and imaginary parts. */
#include "gpu.h"

/* Real and imaginary part of a complex number are adjacent in memory, so the operator consists of
 * two strided copies. */
tn_status gpu_run_complex(const tn_call *call)
{
    const tn_view *y = call->out[0];
    int64_t strides[TN_MAX_DIMS];
    tn_view part = *y;
    tn_status status;

    part.dtype = call->in[0]->dtype;
    part.strides = strides;
    for (int32_t d = 0; d < y->ndim; d++)
        strides[d] = y->strides[d] * 2;
    status = gpu_copy_view(call, &part, call->in[0]);
    part.byte_offset += (uint64_t)gpu_item_size(&part);
    return status ? status : gpu_copy_view(call, &part, call->in[1]);
}
