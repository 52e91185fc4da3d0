/* SPDX-License-Identifier: MIT
 *
 * The dtypes, devices and layouts of tests of operators along a dimension. */
#ifndef TN_TESTS_BACKEND_TYPES_H
#define TN_TESTS_BACKEND_TYPES_H

#include "tests/backend/backend.h"

static const tn_dtype types[] = { TN_F32, TN_F64, TN_F16, TN_BF16, TN_I64, TN_I32, TN_U8 };
enum { TYPES = sizeof types / sizeof *types };
static const double x[6] = { 3, 1, 2, 0, 2, 5 };

static bool whole(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) == 0;
}

#define EACH_TYPE(device, t, op)                                                                   \
    EACH_DEVICE(device)                                                                            \
    for (int t = 0; t < TYPES; t++)                                                                \
        for (int layout = 0; layout < LAYOUTS; layout++)                                           \
            if (device_has(device, op,                                                             \
                           whole(types[t]) && strncmp(op, "cum", 3) == 0 ? TN_I64 : types[t]))

#endif
