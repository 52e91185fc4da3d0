/* SPDX-License-Identifier: MIT
 *
 * Normalization: what norm.c and norm_running.c share. */
#ifndef TN_BACKEND_CPU_NN_NORM_H
#define TN_BACKEND_CPU_NN_NORM_H

#include "base/dtype.h"
#include "base/kernel.h"
#include "simd/norm.h"

/* Whether the channels of a dense view, dimension 1, have stride 1, as the backend orders the
 * results of convolutions. Dimensions of size 1 do not matter. */
bool tn__norm_is_channels_last(const tn_view *view);
/* Whether the view has the layout that `layout` describes: channels last, or contiguous. True for
 * NULL. */
bool tn__norm_has_layout(const struct tn__norm_layout *layout, const tn_view *view);

/* batch_norm and batch_norm_relu with running statistics, in one pass over x. The kernels
 * support no other calls. */
bool tn__norm_supports_running(const tn_call *call, char *reason, size_t size);
tn_status tn__norm_batch(const tn_call *call);
tn_status tn__norm_batch_relu(const tn_call *call);
/* Writes the numbers by which batch_norm in evaluation multiplies each of n channels, and those
 * that it adds then. `moments` are the dense running mean and variance, weight and bias; the last
 * two may be NULL. */
void tn__norm_scale_shift(enum tn__ct ct, const tn_view *const *moments, double eps, int64_t n,
                          void *scale, void *shift);

#endif
