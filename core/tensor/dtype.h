/* SPDX-License-Identifier: MIT
 *
 * Element types in views, for the files of this room. */
#ifndef TN_CORE_TENSOR_DTYPE_H
#define TN_CORE_TENSOR_DTYPE_H

#include "core/tensor/internal.h"

/* The type of DLPack's code and bits (one lane); TN_DTYPE_AUTO if we have none. */
tn_dtype tn__dtype_of_code(uint8_t code, uint8_t bits);
void tn__dtype_to_view(tn_dtype dtype, tn_view *view);

#endif
