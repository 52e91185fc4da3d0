/* SPDX-License-Identifier: MIT
 *
 * Helpers of the layers that parametrize tensors of other layers (<tenon/parametrize.h>). */
#ifndef TN_LAYERS_PARAMETRIZE_H
#define TN_LAYERS_PARAMETRIZE_H

#include "helpers.h"

/* A name of an older format and the new one, both without the name of the tensor, "weight":
 * { "_g", "original0" } renames weight_g to parametrizations.weight.original0. A new name that
 * begins with a dot belongs to the parametrizing module itself: parametrizations.weight.0._u. */
typedef struct parametrize_row {
    const char *old, *now;
} parametrize_row;

/* For the `load_owner` of a layer: renames the entries if the state has all old names. */
TN_HIDDEN tn_status parametrize_rename(tn_module *self, tn_module *owner, const char *name,
                                       tn_loading *loading, const parametrize_row *rows,
                                       int64_t count);
/* Writes the shape of a tensor, "[2, 3]", for a message. */
TN_HIDDEN const char *parametrize_shape(const tn_tensor *tensor, char *out, size_t size);
/* Fails if `attached`: the data of such a module has the shape of its tensor, so it cannot be
 * attached to another one. */
TN_HIDDEN tn_status parametrize_once(tn_module *self, bool attached);
/* Sets *dim to the dimension that it means for `tensor`; a negative one counts from the end. */
TN_HIDDEN tn_status parametrize_dim(tn_module *self, const tn_tensor *tensor, int64_t *dim);
/* Returns the conjugate transpose of a batch of matrices. */
TN_HIDDEN tn_tensor *parametrize_adjoint(tn_tensor *x);

#endif
