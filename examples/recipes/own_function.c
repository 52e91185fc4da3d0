/* SPDX-License-Identifier: MIT
 *
 * A function with a gradient of its own, PyTorch's torch.autograd.Function: the third Legendre
 * polynomial P(x) = (5 x^3 - 3 x) / 2. Its gradient is checked against differences; then
 * a + b P(c + d x) is fitted to the sine, as in PyTorch's tutorial. */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

enum { POINTS = 2000, STEPS = 2000 };

static tn_status legendre_forward(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                                  tn_tensor **out)
{
    tn_tensor *x = in[0], *cube = tn_mul(x, tn_mul(x, x));

    (void)user;
    out[0] = tn_sub(tn_mul_scalar(cube, 2.5), tn_mul_scalar(x, 1.5));
    return tn_function_save(ctx, x);
}

/* dP/dx = 1.5 (5 x^2 - 1), times the gradient of the output. */
static tn_status legendre_backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                                   tn_tensor **gin)
{
    tn_tensor *x = tn_function_saved(ctx, 0);
    tn_tensor *slope = tn_add_scalar(tn_mul_scalar(tn_mul(x, x), 7.5), -1.5);

    (void)user;
    gin[0] = tn_mul(gout[0], slope);
    return gin[0] != NULL ? TN_OK : tn_error_last_code();
}

static const tn_function legendre_function = { .name = "Legendre",
                                               .forward = legendre_forward,
                                               .backward = legendre_backward,
                                               .flags = TN_FUNCTION_OPERATORS };

static tn_tensor *legendre(tn_tensor *x)
{
    tn_tensor *y = NULL;

    return tn_function_call(&legendre_function, NULL, &x, 1, &y, 1) == TN_OK ? y : NULL;
}

static tn_status code(void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    out[0] = legendre(in[0]);
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

/* Compares the gradient, and the gradient of the gradient, with differences, in float64. */
static tn_status check(void)
{
    static const double points[5] = { -1.5, -0.5, 0, 0.3, 2 };
    TN_SCOPE;
    tn_tensor *x = tn_tensor_from(points, TN_F64, TN_SHAPE(5));

    tn_tensor_set_requires_grad(x, true);
    tn_status status = tn_gradcheck(code, NULL, &x, 1, 1, 1e-6, 1e-5);
    return status == TN_OK ? tn_gradgradcheck(code, NULL, &x, 1, 1, 1e-6, 1e-5) : status;
}

int main(void)
{
    static const double start[4] = { 0, -1, 0, 0.3 };
    tn_tensor *p[4]; /* a, b, c, d */

    if (check() == TN_OK)
        printf("the gradients are right\n");
    for (int i = 0; i < 4; i++)
        p[i] = tn_parameter(tn_tensor_full(TN_SCALAR_SHAPE, start[i], TN_F32, NULL), true);
    tn_tensor *x = tn_linspace(TN_NONE, -M_PI, M_PI, POINTS), *y = tn_sin(x);
    tn_optimizer *optimizer = tn_optimizer_parse(p, 4, "SGD(lr=5e-6)");

    for (int step = 0; step < STEPS && !tn_failed(); step++) {
        TN_SCOPE;
        tn_tensor *inner = legendre(tn_add(p[2], tn_mul(p[3], x)));
        tn_tensor *error = tn_sub(tn_add(p[0], tn_mul(p[1], inner)), y);
        tn_tensor *loss = tn_sum(tn_mul(error, error));

        if (step % 500 == 0)
            printf("step %4d  loss %.3f\n", step, tn_item(loss));
        tn_optimizer_zero_grad(optimizer);
        tn_backward(loss);
        tn_optimizer_step(optimizer);
    }
    if (!tn_failed())
        printf("y = %.4f + %.4f P(%.4f + %.4f x)\n", tn_item(p[0]), tn_item(p[1]), tn_item(p[2]),
               tn_item(p[3]));
    if (tn_failed())
        fprintf(stderr, "own_function: %s\n", tn_error_text());
    tn_optimizer_drop(optimizer);
    return tn_failed();
}
