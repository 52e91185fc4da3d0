/* SPDX-License-Identifier: MIT
 *
 * The contributions of this plugin, for its table in plugin.c. */
#ifndef TENON_PLUGIN_LAYERS_H
#define TENON_PLUGIN_LAYERS_H

#include <tenon/plugin.h>

/* linear.c */
TN_HIDDEN extern const tn_layer layer_linear, layer_identity;
/* activation.c */
TN_HIDDEN extern const tn_layer layer_relu, layer_sigmoid, layer_softmax, layer_log_softmax;
/* shape.c */
TN_HIDDEN extern const tn_layer layer_flatten, layer_unflatten;
/* container.c */
TN_HIDDEN extern const tn_layer layer_sequential;
/* loss.c */
TN_HIDDEN extern const tn_layer layer_cross_entropy_loss, layer_nll_loss;
/* init.c */
TN_HIDDEN extern const tn_init_def init_zeros, init_ones, init_constant, init_uniform, init_normal,
    init_kaiming_uniform, init_kaiming_normal, init_xavier_uniform, init_xavier_normal;

/* The status of an operator that returned a tensor or NULL. */
static inline tn_status status_of(const tn_tensor *result)
{
    return result != NULL ? TN_OK : tn_error_last()->code;
}

#endif
