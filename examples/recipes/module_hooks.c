/* SPDX-License-Identifier: MIT
 *
 * The hooks of PyTorch's note "Modules": one adds 1 to the input of a module, one makes the module
 * residual, one replaces the gradient of the input by 42. */
#include <stdio.h>
#include <tenon/tenon.h>

/* def forward_pre_hook(m, inputs): return inputs[0] + 1. */
static tn_status add_one(void *user, tn_module *module, const tn_pack *input, tn_pack *replacement,
                         tn_hook_outcome *outcome)
{
    tn_tensor *x = tn_pack_tensor(input, 0);

    (void)user;
    (void)module;
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(replacement, NULL, tn_value_tensor(tn_add_scalar(x, 1)));
}

/* def forward_hook(m, inputs, output): return output + inputs[0]. */
static tn_status residual(void *user, tn_module *module, const tn_pack *input,
                          const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    tn_tensor *x = tn_pack_tensor(input, 0), *y = tn_pack_tensor(output, 0);

    (void)user;
    (void)module;
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(replacement, NULL, tn_value_tensor(tn_add(y, x)));
}

/* def backward_hook(m, grad_inputs, grad_outputs): return [ones_like(g) * 42 for g in grad_inputs].
 * The number is the argument `user` of the registration. */
static tn_status replace_gradient(void *user, tn_module *module, const tn_pack *grad_input,
                                  const tn_pack *grad_output, tn_pack *replacement,
                                  tn_hook_outcome *outcome)
{
    const double *number = user;
    tn_tensor *gradient = tn_pack_tensor(grad_input, 0);

    (void)module;
    (void)grad_output;
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(replacement, NULL, tn_value_tensor(tn_fill(gradient, *number)));
}

/* Prints the result of the module for x, and the gradients of x and of the weight. */
static void show(const char *when, tn_module *linear)
{
    static const float numbers[3] = { 1, 2, 3 };
    char value[64], of_x[64], of_weight[128];
    TN_SCOPE;
    tn_tensor *x = tn_tensor_from(numbers, TN_F32, TN_SHAPE(1, 3));

    tn_tensor_set_requires_grad(x, true);
    tn_module_zero_grad(linear);
    tn_tensor *y = tn_module_call(linear, x);
    tn_backward(tn_sum(y));
    if (tn_failed())
        return;
    tn_tensor_text(y, value, sizeof value);
    tn_tensor_text(tn_tensor_grad(x), of_x, sizeof of_x);
    tn_tensor_text(tn_tensor_grad(tn_module_get(linear, "weight")), of_weight, sizeof of_weight);
    printf("%-9s y %s, gradient of x %s, of the weight\n%s\n", when, value, of_x, of_weight);
}

int main(void)
{
    static double answer = 42;
    tn_module *linear = tn_module_new("Linear(3, 3, bias=False)");

    if (linear != NULL) { /* y = 2 x */
        TN_SCOPE;
        tn_tensor *twice = tn_mul_scalar(tn_eye(TN_NONE, 3), 2);
        tn_module_set(linear, "weight", tn_parameter(twice, true));
    }
    show("no hook", linear);
    tn_hook_handle first = tn_module_hook_forward_pre(linear, add_one, 0, NULL, NULL);
    show("input + 1", linear);
    tn_hook_handle second = tn_module_hook_forward(linear, residual, 0, NULL, NULL);
    show("residual", linear);
    tn_hook_handle third = tn_module_hook_backward(linear, replace_gradient, 0, &answer, NULL);
    show("42", linear);
    tn_hook_remove(first);
    tn_hook_remove(second);
    tn_hook_remove(third);
    show("removed", linear);
    if (tn_failed())
        fprintf(stderr, "module_hooks: %s\n", tn_error_text());
    tn_module_drop(linear);
    return tn_failed();
}
