/* SPDX-License-Identifier: MIT
 *
 * A U-Net learns to remove noise from pictures of handwritten digits, and writes what it does to
 * denoise.png: the digits in the first row, with noise in the second, without it in the third.
 *
 *     denoise [EPOCHS] */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/picture.h>
#include <tenon/tenon.h>

static tn_tensor *with_noise(tn_tensor *x)
{
    return tn_add(x, tn_mul_scalar(tn_normal(x), 0.5));
}

static void train(tn_module *net, tn_loader *loader, int epochs)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, "AdamW(lr=3e-3)");
    tn_scheduler *scheduler = tn_scheduler_new(
        optimizer, "OneCycleLR(max_lr=3e-3, epochs=%d, steps_per_epoch=%d)", epochs,
        (int)tn_loader_count(loader));

    for (int epoch = 0; epoch < epochs && !tn_failed(); epoch++) {
        double sum = 0;
        for (tn_pack *batch; (batch = tn_loader_next(loader)) != NULL;) {
            TN_SCOPE;
            tn_tensor *clean = tn_pack_tensor(batch, 0);
            tn_tensor *loss = tn_mse_loss(tn_module_call(net, with_noise(clean)), clean);

            tn_optimizer_zero_grad(optimizer);
            tn_backward(loss);
            tn_optimizer_step(optimizer);
            tn_scheduler_step(scheduler);
            sum += tn_item(loss);
        }
        printf("epoch %d  loss %.4f\n", epoch, sum / (double)tn_loader_count(loader));
        fflush(stdout);
    }
    tn_scheduler_drop(scheduler);
    tn_optimizer_drop(optimizer);
}

/* Prints the mean squared errors before and after, and writes the pictures. */
static void show(tn_module *net, tn_tensor *clean)
{
    TN_SCOPE;
    tn_grad_begin(false);
    tn_module_eval(net);
    tn_tensor *noisy = with_noise(clean), *better = tn_module_call(net, noisy);
    double before = tn_item(tn_mse_loss(noisy, clean));
    double after = tn_item(tn_mse_loss(better, clean));

    if (!tn_failed())
        printf("error with noise %.4f, without %.4f\n", before, after);
    tn_picture_save(tn_cat((tn_tensor *[3]){ clean, noisy, better }, 3, 0), "denoise.png",
                    tn_tensor_size(clean, 0));
    tn_grad_end();
}

int main(int count, char **arguments)
{
    int epochs = count > 1 ? atoi(arguments[1]) : 5;

    tn_random_seed(1);
    tn_dataset *digits = tn_dataset_new("Digits(split='train')");
    tn_dataset *large = tn_dataset_transform(digits, "Resize(32)");
    tn_dataset *test = tn_dataset_new("Digits(split='test')");
    tn_dataset *large_test = tn_dataset_transform(test, "Resize(32)");
    tn_loader *loader = tn_loader_new(large, "batch_size=32, shuffle=True, seed=1");
    tn_loader *ten = tn_loader_new(large_test, "batch_size=10");
    tn_module *net = tn_module_new("unet(in_channels=1, out_channels=1, base=8, depth=2)");

    if (!tn_failed())
        train(net, loader, epochs);
    if (!tn_failed())
        show(net, tn_pack_tensor(tn_loader_next(ten), 0));
    if (tn_failed())
        fprintf(stderr, "denoise: %s\n", tn_error_text());
    tn_module_drop(net);
    tn_loader_drop(ten);
    tn_loader_drop(loader);
    tn_dataset_drop(large_test);
    tn_dataset_drop(test);
    tn_dataset_drop(large);
    tn_dataset_drop(digits);
    return tn_failed();
}
