/* SPDX-License-Identifier: MIT
 *
 * Element types in views. */
#ifndef TN_CORE_BASE_DTYPE_H
#define TN_CORE_BASE_DTYPE_H

#include "core/base/internal.h"

/* The type of DLPack's code and bits (one lane); TN_DTYPE_AUTO if we have none. */
tn_dtype tn__dtype_of_code(uint8_t code, uint8_t bits);

/* What a view says of a type; bytes of an element, and the shift that multiplies by them. */
typedef struct tn__dtype_row {
    struct {
        uint8_t code; /* DLDataTypeCode */
        uint8_t bits;
        uint16_t lanes;
    } view;
    uint8_t size, shift;
} tn__dtype_row;
extern const tn__dtype_row tn__dtypes[TN_DTYPE_COUNT];

/* As one store: kernels load it at once, which would stall after several stores. */
static inline void tn__dtype_to_view(tn_dtype dtype, tn_view *view)
{
    _Static_assert(sizeof view->dtype == sizeof tn__dtypes[0].view, "both are DLPack's");
    memcpy(&view->dtype, &tn__dtypes[dtype].view, sizeof view->dtype);
}

#endif
