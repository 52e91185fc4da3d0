/* SPDX-License-Identifier: MIT
 *
 * How views (tn_view) describe dtypes. */
#ifndef TN_CORE_BASE_DTYPE_H
#define TN_CORE_BASE_DTYPE_H

#include "core/base/internal.h"

#include <tenon/tensor.h>

/* Returns the dtype for a type code and number of bits of DLPack (with one lane), or TN_DTYPE_AUTO
 * if no dtype corresponds to them. */
tn_dtype tn__dtype_of_code(uint8_t code, uint8_t bits);

/* The description of a dtype in a view; the size of an element in bytes, and its logarithm to base
 * 2, by which an element count is shifted to get bytes. */
typedef struct tn__dtype_row {
    struct {
        uint8_t code; /* DLDataTypeCode */
        uint8_t bits;
        uint16_t lanes;
    } view;
    uint8_t size, shift;
} tn__dtype_row;
extern const tn__dtype_row tn__dtypes[TN_DTYPE_COUNT];

/* Writes the dtype into the view with a single store: kernels read the three members with a single
 * load, which would stall after three separate stores. */
static inline void tn__dtype_to_view(tn_dtype dtype, tn_view *view)
{
    _Static_assert(sizeof view->dtype == sizeof tn__dtypes[0].view,
                   "both have the layout of DLDataType");
    memcpy(&view->dtype, &tn__dtypes[dtype].view, sizeof view->dtype);
}

#endif
