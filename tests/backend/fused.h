/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of fused operators: drawn tensors, and comparing bits. */
#ifndef TN_TESTS_BACKEND_FUSED_H
#define TN_TESTS_BACKEND_FUSED_H

#include "tests/backend/backend.h"

static inline tn_tensor *drawn(tn_ints shape, tn_dtype dtype, uint64_t seed)
{
    tn_tensor *x = tn_philox_normal(tn_tensor_empty(shape, dtype, tn_device_find("cpu")), TN_NONE,
                                    0, 1, (int64_t)seed, 0);

    ck_assert_msg(x != NULL, "%s", tn_error_text());
    return x;
}

static inline void same_bits(tn_tensor *a, tn_tensor *b, const char *what)
{
    size_t bytes = (size_t)tn_tensor_numel(a) * tn_dtype_size(tn_tensor_dtype(a));
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);

    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_numel(a), tn_tensor_numel(b));
    ck_assert_int_eq(tn_tensor_copy_out(a, x, bytes), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(b, y, bytes), TN_OK);
    ck_assert_msg(memcmp(x, y, bytes) == 0, "%s", what);
    free(x);
    free(y);
}

static inline tn_tensor *leaf(tn_tensor *x)
{
    tn_tensor_set_requires_grad(x, true);
    return x;
}

#endif
