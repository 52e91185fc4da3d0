/* SPDX-License-Identifier: MIT
 *
 * A module that the program defines itself: a parameter, a buffer, three children and a forward,
 * which has a setting. It is trained, copied, saved and loaded like any other. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

struct gate {
    double limit; /* the scale of tanh */
};

/* y = body(x) * limit * tanh(scale) + skip(x), and counts its calls in training. */
static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct gate *gate = tn_module_user(self);
    tn_tensor *scale = tn_mul_scalar(tn_tanh(tn_module_get(self, "scale")), gate->limit);
    tn_tensor *y = tn_mul(tn_module_call_chain(self, "body act", x), scale);

    if (tn_module_is_training(self) && tn_add_scalar_(tn_module_get(self, "calls"), 1) == NULL)
        return NULL;
    return tn_add(y, tn_module_call_child(self, "skip", x));
}

static tn_module *gate_new(int in, int out, double limit)
{
    TN_SCOPE;
    tn_module *self = tn_module_plain("Gate");
    struct gate *gate = malloc(sizeof *gate);

    if (self == NULL || gate == NULL) {
        if (self != NULL)
            tn_fail(TN_ERR_MEMORY, "Gate: out of memory");
        goto failed;
    }
    gate->limit = limit;
    if (tn_module_set_forward(self, forward, gate, free) != TN_OK)
        goto failed;
    gate = NULL; /* the module frees it now */
    tn_tensor *calls = tn_tensor_full(TN_SCALAR_SHAPE, 0.0, TN_I64, NULL);
    if (tn_module_add_parameter(self, "scale", tn_parameter(tn_ones(TN_SHAPE(out)), true)) ==
            TN_OK &&
        tn_module_add_buffer(self, "calls", calls, 0) == TN_OK &&
        tn_module_add_children(self, "body=Linear(%d, %d), act=GELU(), skip=Linear(%d, %d)", in,
                               out, in, out) == TN_OK)
        return self;
failed:
    free(gate);
    tn_module_drop(self);
    return NULL;
}

/* Sequential(Gate, Linear(8, 1)). */
static tn_module *network(void)
{
    tn_module *net = tn_module_new("Sequential()"), *gate = gate_new(2, 8, 2.0);
    tn_module *last = tn_module_new("Linear(8, 1)");

    tn_module_add_child(net, "gate", gate);
    tn_module_add_child(net, "last", last);
    tn_module_drop(gate);
    tn_module_drop(last);
    return net;
}

static double loss_of(tn_module *net, bool backward)
{
    static const float xs[4][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } },
                       ys[4] = { 0, 1, 1, 0 };
    TN_SCOPE;
    tn_tensor *x = tn_tensor_from(xs, TN_F32, TN_SHAPE(4, 2));
    tn_tensor *y = tn_tensor_from(ys, TN_F32, TN_SHAPE(4, 1));
    tn_tensor *loss = tn_mse_loss(tn_module_call(net, x), y);

    if (backward)
        tn_backward(loss);
    return tn_item(loss);
}

int main(void)
{
    static char text[1024];

    tn_random_seed(1);
    tn_module *net = network(), *copy = NULL, *other = network();
    tn_optimizer *optimizer = tn_optimizer_new(net, "Adam(lr=0.03)");
    if (tn_module_repr(net, text, sizeof text) > 0)
        printf("%s\n", text);

    for (int step = 0; step < 50 && !tn_failed(); step++) {
        double loss = loss_of(net, true);
        if (step == 0)
            printf("loss before %.6f\n", loss);
        tn_optimizer_step(optimizer);
        tn_module_zero_grad(net);
    }
    tn_module_eval(net);
    tn_module_eval(other);
    copy = tn_module_copy(net);
    tn_module_save(net, "gate.safetensors");
    tn_module_load(other, "gate.safetensors");
    if (!tn_failed())
        printf("loss after  %.6f, of the copy %.6f, loaded %.6f\n", loss_of(net, false),
               loss_of(copy, false), loss_of(other, false));
    if (!tn_failed())
        printf("calls %g\n", tn_item(tn_module_find_buffer(other, "gate.calls")));
    if (tn_failed())
        fprintf(stderr, "own_module: %s\n", tn_error_text());
    tn_optimizer_drop(optimizer);
    tn_module_drop(copy);
    tn_module_drop(other);
    tn_module_drop(net);
    return tn_failed();
}
