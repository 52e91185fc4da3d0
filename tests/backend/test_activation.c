/* SPDX-License-Identifier: MIT
 *
 * relu and sigmoid on every device, against float64. The other activations are in
 * tests/oracle/elementwise.txt, the fused ones in test_linear.c and test_norm.c. */
#include "tests/backend/backend.h"

static double ref_relu(double x)
{
    return x < 0 ? 0 : x;
}
static double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

START_TEST(activations_agree_with_float64_in_every_layout_and_in_place)
{
    static const struct unary unary[] = { { "relu", ref_relu, -9, 9, 0 },
                                          { "sigmoid", ref_sigmoid, -15, 15, 3 } };
    static const int64_t sizes[] = { 3, 5, 4 };
    const tn_ints shapes[] = {
        TN_SCALAR_SHAPE, { sizes, 1 }, { sizes, 3 }, TN_SHAPE(0), TN_SHAPE(2, 0, 3)
    };

    EACH_DEVICE(device)
    for (int k = 0; k < 2; k++)
        unary_agrees(&unary[k], device, shapes, sizeof shapes / sizeof *shapes, 0);
    ck_assert_int_gt(checks_made, 1500);
}
END_TEST

START_TEST(relu_keeps_infinity_and_NaN)
{
    static const double x[] = { -INFINITY, INFINITY, NAN, 0, -0.0, 1 };
    static const double relus[] = { 0, INFINITY, NAN, 0, 0, 1 };

    EACH_DEVICE(device)
    for (int t = 0; t < 2; t++) {
        TN_SCOPE;
        const tn_dtype floats[] = { TN_F32, TN_F64 };
        tn_tensor *in = put(device, floats[t], TN_SHAPE(6), x, DENSE);
        same("relu", device, floats[t], tn_relu(in), relus, 0, 0);
    }
}
END_TEST

START_TEST(relu_grad_follows_its_definition)
{
    EACH_DEVICE(device)
    {
        TN_SCOPE;
        tn_tensor *gy = put(device, TN_F32, TN_SHAPE(4), NUMBERS(5, 6, 7, 8), DENSE);
        tn_tensor *y = put(device, TN_F32, TN_SHAPE(4), NUMBERS(1, 0, NAN, -3), DENSE);
        same("relu_grad", device, TN_F32, tn_relu_grad(gy, y), NUMBERS(5, 0, 7, 0), 0, 0);
    }
}
END_TEST

RUN_SUITE("relu and sigmoid", activations_agree_with_float64_in_every_layout_and_in_place,
          relu_keeps_infinity_and_NaN, relu_grad_follows_its_definition)
