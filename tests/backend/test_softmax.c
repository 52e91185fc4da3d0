/* SPDX-License-Identifier: MIT
 *
 * softmax and log_softmax on every device, against PyTorch's numbers. */
#include "tests/backend/backend.h"
#include "tests/backend/loss_reference.h"

static const tn_dtype floats[] = { TN_F32, TN_F64 };

START_TEST(softmax_and_log_softmax_along_any_dimension_are_those_of_PyTorch)
{
    static const double *const soft[] = { reference_softmax_0, reference_softmax_1 };
    static const double *const logs[] = { reference_log_softmax_0, reference_log_softmax_1 };
    EACH_DEVICE(device)
    for (int t = 0; t < 2; t++)
        for (int dim = 0; dim < 2; dim++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                TN_SCOPE;
                tn_tensor *x = put(device, floats[t], TN_SHAPE(5, 4), reference_x,
                                   (enum layout)layout);
                same("softmax", device, floats[t], tn_softmax(x, dim), soft[dim], 8, 0.1);
                same("log_softmax", device, floats[t], tn_log_softmax(x, dim - 2), logs[dim], 8, 1);
            }
}
END_TEST

START_TEST(softmax_of_large_numbers_does_not_overflow)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *x = put(device, TN_F32, TN_SHAPE(1, 3), NUMBERS(1000, 1000, -1000), DENSE);
        same("softmax", device, TN_F32, tn_softmax(x, 1), NUMBERS(0.5, 0.5, 0), 2, 0);
        same("log_softmax", device, TN_F32, tn_log_softmax(x, 1),
             NUMBERS(-M_LN2, -M_LN2, -2000 - M_LN2), 2, 0);
    }
}
END_TEST

RUN_SUITE("softmax", softmax_and_log_softmax_along_any_dimension_are_those_of_PyTorch,
          softmax_of_large_numbers_does_not_overflow)
