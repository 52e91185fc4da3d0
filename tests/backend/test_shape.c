/* SPDX-License-Identifier: MIT
 *
 * The gradient of narrow on every device. */
#include "tests/backend/backend.h"

START_TEST(narrow_grad_puts_the_gradient_into_zeros)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *gy = put(device, TN_F32, TN_SHAPE(2, 2), NUMBERS(1, 2, 3, 4), REVERSED);
        same("narrow_grad", device, TN_F32, tn_narrow_grad(gy, TN_SHAPE(2, 4), 1, 1),
             NUMBERS(0, 1, 2, 0, 0, 3, 4, 0), 0, 0);
    }
}
END_TEST

RUN_SUITE("shape", narrow_grad_puts_the_gradient_into_zeros)
