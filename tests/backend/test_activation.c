/* SPDX-License-Identifier: MIT
 *
 * The activations of one input, with default options, on every device: values and derivatives
 * against float64. Their other options, and the activations with more inputs, are in
 * tests/oracle/elementwise.txt, the fused ones in test_conv_activation.c, test_linear.c and
 * test_norm.c. */
#include "tests/backend/backend.h"

#include "tests/folders.h"

enum { COUNT = 1500 };

/* ---- references ------------------------------------------------------------------------------ */

static double ref_relu(double x)
{
    return x < 0 ? 0 : x;
}

static double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double ref_relu6(double x)
{
    return fmin(fmax(x, 0), 6);
}

static double ref_relu_squared(double x)
{
    return x < 0 ? 0 : x * x;
}

static double ref_leaky_relu(double x)
{
    return x > 0 ? x : 0.01 * x;
}

static double ref_elu(double x)
{
    return x > 0 ? x : expm1(x);
}

static double ref_selu(double x)
{
    return 1.0507009873554804934193349852946 *
           (x > 0 ? x : 1.6732632423543772848170429916717 * expm1(x));
}

static double ref_gelu(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2));
}

static double ref_silu(double x)
{
    return x / (1 + exp(-x));
}

static double ref_mish(double x)
{
    return x * tanh(log1p(exp(x)));
}

static double ref_hardtanh(double x)
{
    return fmin(fmax(x, -1), 1);
}

static double ref_hardsigmoid(double x)
{
    return ref_relu6(x + 3) / 6;
}

static double ref_hardswish(double x)
{
    return x * ref_relu6(x + 3) / 6;
}

static double ref_logsigmoid(double x)
{
    return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}

static double ref_tanhshrink(double x)
{
    return x - tanh(x);
}

static double ref_softshrink(double x)
{
    return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : 0;
}

static double ref_hardshrink(double x)
{
    return fabs(x) > 0.5 ? x : 0;
}

static double ref_softplus(double x)
{
    return x > 20 ? x : log1p(exp(x));
}

static double ref_softsign(double x)
{
    return x / (1 + fabs(x));
}

/* Differences count relative to the result, or to `floor_` where that is larger. */
static const struct {
    struct unary unary;
    double floor_;
} rows[] = {
    { { "relu", ref_relu, -9, 9, 0 }, 0 },
    { { "sigmoid", ref_sigmoid, -15, 15, 3 }, 0 },
    { { "relu6", ref_relu6, -9, 9, 0 }, 0 },
    { { "relu_squared", ref_relu_squared, -9, 9, 1 }, 0 },
    { { "leaky_relu", ref_leaky_relu, -9, 9, 1 }, 0 },
    { { "elu", ref_elu, -9, 9, 3 }, 0 },
    { { "selu", ref_selu, -9, 9, 4 }, 0 },
    { { "celu", ref_elu, -9, 9, 3 }, 0 },
    { { "gelu", ref_gelu, -9, 9, 8 }, 1 },
    { { "silu", ref_silu, -9, 9, 4 }, 0 },
    { { "mish", ref_mish, -9, 9, 8 }, 0 },
    { { "hardtanh", ref_hardtanh, -9, 9, 0 }, 0 },
    { { "hardswish", ref_hardswish, -9, 9, 3 }, 1 },
    { { "hardsigmoid", ref_hardsigmoid, -9, 9, 2 }, 1 },
    { { "logsigmoid", ref_logsigmoid, -9, 9, 4 }, 1 },
    { { "tanhshrink", ref_tanhshrink, -9, 9, 4 }, 1 },
    { { "softshrink", ref_softshrink, -9, 9, 1 }, 0 },
    { { "hardshrink", ref_hardshrink, -9, 9, 0 }, 0 },
    { { "softplus", ref_softplus, -9, 9, 4 }, 1 },
    { { "softsign", ref_softsign, -9, 9, 2 }, 0 },
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- values ---------------------------------------------------------------------------------- */

START_TEST(activations_agree_with_float64_in_every_layout_and_in_place)
{
    static const int64_t sizes[] = { 3, 5, 4 };
    const tn_ints shapes[] = {
        TN_SCALAR_SHAPE, { sizes, 1 }, { sizes, 3 }, TN_SHAPE(0), TN_SHAPE(2, 0, 3)
    };

    EACH_DEVICE(device)
    for (int k = 0; k < ROWS; k++)
        unary_agrees(&rows[k].unary, device, shapes, sizeof shapes / sizeof *shapes,
                     rows[k].floor_);
    ck_assert_int_gt(checks_made, 15000);
}
END_TEST

static bool is_in_table(const char *op)
{
    bool found = false;

    for (int k = 0; k < ROWS && !found; k++)
        found = strcmp(rows[k].unary.op, op) == 0;
    return found;
}

START_TEST(every_activation_of_one_input_is_in_the_table)
{
    char path[TEST_PATH], line[512], op[64] = "";
    FILE *file = fopen(source_path(path, "sdk/operators/activation.ops"), "r");
    int inputs = 0, arguments = 0, found = 0;
    bool pointwise = false, more = true;

    ck_assert_ptr_nonnull(file);
    while (more) {
        more = fgets(line, sizeof line, file) != NULL;
        if (!more || strncmp(line, "op ", 3) == 0) { /* the block before it ends here */
            if (inputs == 1 && arguments == 0 && pointwise) {
                ck_assert_msg(is_in_table(op), "%s: the table has no row for it", op);
                found++;
            }
            inputs = arguments = 0;
            pointwise = false;
            ck_assert(!more || sscanf(line, "op %63s", op) == 1);
        }
        inputs += strncmp(line, "  in ", 5) == 0;
        arguments += strncmp(line, "  arg ", 6) == 0;
        if (strncmp(line, "  flags ", 8) == 0)
            pointwise = strstr(line, " pointwise") != NULL;
    }
    fclose(file);
    ck_assert_int_eq(found, ROWS);
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

/* ---- derivatives ----------------------------------------------------------------------------- */

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

static tn_tensor *slope(const char *op, tn_tensor *x)
{
    tn_tensor *y = NULL, *gradient = NULL;

    tn_tensor_set_requires_grad(x, true);
    ok(tn_op_call(tn_op_find(op, 0), &x, 1, NULL, &y, 1));
    ok(tn_backward(tn_sum(y)));
    there(gradient = tn_tensor_grad(x));
    return gradient;
}

START_TEST(derivatives_in_float32_are_those_of_the_cpu_in_float64)
{
    const tn_device *cpu = tn_device_find("cpu");

    there(cpu);
    EACH_DEVICE(device)
    for (int k = 0; k < ROWS; k++) {
        TN_SCOPE;
        double x[COUNT];
        tn_tensor *wide, *narrow;

        numbers(x, COUNT, -60, 60, TN_F32);
        wide = slope(rows[k].unary.op, put(cpu, TN_F64, TN_SHAPE(COUNT), x, DENSE));
        narrow = slope(rows[k].unary.op, put(device, TN_F32, TN_SHAPE(COUNT), x, DENSE));
        same(rows[k].unary.op, device, TN_F32, narrow, get(wide), 24, 1);
    }
    ck_assert_int_gt(checks_made, 50000);
}
END_TEST

RUN_SUITE("activations", activations_agree_with_float64_in_every_layout_and_in_place,
          every_activation_of_one_input_is_in_the_table, relu_keeps_infinity_and_NaN,
          relu_grad_follows_its_definition, derivatives_in_float32_are_those_of_the_cpu_in_float64)
