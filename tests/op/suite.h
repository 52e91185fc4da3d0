/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of operators and gradients: running a suite in this process (device threads
 * do not survive a fork), small tensors, values. */
#ifndef TN_TESTS_OP_SUITE_H
#define TN_TESTS_OP_SUITE_H

#include "tests/libcheck.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    tn_shutdown();
    return failed > 0;
}

/* VEC(1, 2, 3): a float32 row; LEAF the same, requiring grad. */
#define VEC(...)                                                                                   \
    tn_tensor_from((const float[]){ __VA_ARGS__ }, TN_F32,                                         \
                   TN_SHAPE((int64_t)(sizeof((float[]){ __VA_ARGS__ }) / sizeof(float))))
#define LEAF(...) with_grad(VEC(__VA_ARGS__))

TN_ATTR(unused) static tn_tensor *with_grad(tn_tensor *tensor)
{
    ck_assert_int_eq(tn_tensor_set_requires_grad(tensor, true), TN_OK);
    return tensor;
}

/* Element `index` in row-major order. */
TN_ATTR(unused) static double at(tn_tensor *tensor, int64_t index)
{
    double value = NAN;
    int64_t count;
    double *all;
    tn_tensor *wide;

    ck_assert_ptr_nonnull(tensor);
    ck_assert_ptr_ne(tensor, TN_NONE);
    count = tn_tensor_numel(tensor);
    ck_assert_int_lt(index, count);
    wide = tn_copy_(tn_tensor_empty(tn_tensor_shape(tensor), TN_F64, tn_tensor_device(tensor)),
                    tn_detach(tensor));
    all = malloc((size_t)count * sizeof *all);
    ck_assert_int_eq(tn_tensor_copy_out(wide, all, (size_t)count * sizeof *all), TN_OK);
    value = all[index];
    free(all);
    return value;
}

#define HAS(tensor, ...)                                                                           \
    do {                                                                                           \
        const double expected_[] = { __VA_ARGS__ };                                                \
        tn_tensor *tensor_ = (tensor);                                                             \
        ck_assert_msg(tensor_ != NULL, "%s: %s", #tensor, tn_error_text());                        \
        ck_assert_int_eq(tn_tensor_numel(tensor_),                                                 \
                         (int64_t)(sizeof expected_ / sizeof expected_[0]));                       \
        for (size_t i_ = 0; i_ < sizeof expected_ / sizeof expected_[0]; i_++)                     \
            ck_assert_double_eq_tol(at(tensor_, (int64_t)i_), expected_[i_], 1e-6);                \
    } while (0)

/* The last call failed with this code, and this text is in the message; clears it. */
#define FAILED(code_, words)                                                                       \
    do {                                                                                           \
        ck_assert_int_eq(tn_error_code(), code_);                                                  \
        ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in: %s", words,       \
                      tn_error_text());                                                            \
        tn_error_clear();                                                                          \
    } while (0)

#define FINE() ck_assert_msg(!tn_failed(), "%s", tn_error_text())

/* The numbers start, start + step, ... of float64. */
static inline tn_tensor *stepped(tn_ints shape, double step, double start)
{
    int64_t count = 1;

    for (int64_t i = 0; i < shape.count; i++)
        count *= shape.at[i];
    return tn_reshape(
        tn_add_scalar(tn_mul_scalar(tn_cast(tn_arange(VEC(0), 0, (double)count), TN_F64), step),
                      start),
        shape);
}

#endif
