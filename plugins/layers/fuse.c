/* SPDX-License-Identifier: MIT
 *
 * Helpers for layers that compute their followers in the same operator (tn_layer_def.fuse). */
#include "helpers.h"

int64_t layers_skip(const tn_follower *followers, int64_t count, int64_t at)
{
    while (at < count && followers[at].pointwise != NULL && followers[at].pointwise[0] == '\0')
        at++;
    return at;
}

tn_tensor *layers_plain_weight(tn_module *self, const tn_tensor *x, tn_ints shape)
{
    tn_dtype dtype = tn_tensor_dtype(x);
    tn_tensor *weight = tn_module_slot_kind(self, "weight") == TN_SLOT_PARAMETER
                            ? tn_module_get(self, "weight")
                            : TN_NONE;
    bool fits = (dtype == TN_F32 || dtype == TN_F64) && weight != NULL && weight != TN_NONE &&
                tn_tensor_dtype(weight) == dtype && tn_tensor_ndim(weight) == shape.count;

    for (int64_t i = 0; fits && i < shape.count; i++)
        fits = shape.at[i] < 0 || tn_tensor_size(weight, (int32_t)i) == shape.at[i];
    return fits ? weight : NULL;
}

bool layers_has_shape(const tn_tensor *sum, const tn_tensor *x, int64_t last)
{
    tn_ints a = tn_tensor_shape(sum), b = tn_tensor_shape(x);
    bool same = tn_tensor_dtype(sum) == tn_tensor_dtype(x) &&
                tn_tensor_device(sum) == tn_tensor_device(x) && a.count == b.count;

    for (int64_t i = 0; same && i < a.count; i++)
        same = a.at[i] == (last >= 0 && i == a.count - 1 ? last : b.at[i]);
    return same;
}

bool layers_norm_fits(const tn_channel_norm *norm, const tn_tensor *x, int64_t channels)
{
    tn_tensor *const parts[] = { norm->mean, norm->var, norm->weight, norm->bias };
    int32_t ndim = tn_tensor_ndim(x);
    bool fits = ndim >= norm->least_dims && ndim <= norm->most_dims && norm->eps > 0;

    for (int i = 0; fits && i < 4; i++)
        fits = (i >= 2 && parts[i] == TN_NONE) ||
               (tn_tensor_dtype(parts[i]) == tn_tensor_dtype(x) &&
                tn_tensor_device(parts[i]) == tn_tensor_device(x) &&
                tn_tensor_ndim(parts[i]) == 1 && tn_tensor_size(parts[i], 0) == channels);
    return fits;
}
