#include <stdio.h>
#include <tenon/tenon.h>

int main(void)
{
    static const float   xs[4][2] = { {0, 0}, {0, 1}, {1, 0}, {1, 1} };
    static const int64_t ys[4]    = { 0, 1, 1, 0 };

    /* TENON_DEVICE=cuda,cpu in the environment, or tn_set_default_device("cuda:0") here,
     * chooses the device. */
    tn_module    *net = tn_module_new("Sequential(Linear(2, 16), ReLU(), Linear(16, 2))");
    tn_optimizer *opt = tn_optimizer_new(net, "Adam(lr=1e-2)");

    for (int step = 0; step < 500 && !tn_failed(); step++) {
        TN_SCOPE;                                       /* temporaries end with the block */
        tn_tensor *x    = tn_tensor_from(xs, TN_F32, TN_SHAPE(4, 2));
        tn_tensor *y    = tn_tensor_from(ys, TN_I64, TN_SHAPE(4));
        tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);
        tn_module_zero_grad(net);
        tn_backward(loss);
        tn_optimizer_step(opt);
        if (step % 100 == 0)
            printf("%3d  %.4f\n", step, tn_item(loss));
    }
    tn_module_save(net, "xor.safetensors");
    if (tn_failed())
        fprintf(stderr, "%s\n", tn_error_text());
    tn_optimizer_drop(opt);
    tn_module_drop(net);
    return tn_failed();
}
