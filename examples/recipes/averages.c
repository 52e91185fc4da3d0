/* SPDX-License-Identifier: MIT
 *
 * Trains a network on handwritten digits and keeps two averages of it, PyTorch's AveragedModel: an
 * exponential one of all steps (EMA), and an equal one of the last epochs, which are trained with a
 * constant rate (SWA). The statistics of batch normalization are computed anew for both. */
#include <stdio.h>
#include <tenon/tenon.h>

enum { EPOCHS = 8, SWA_START = 5 };

static const char model[] =
    "Sequential(Conv2d(1, 16, 3, padding=1), BatchNorm2d(16), ReLU(), MaxPool2d(2),"
    " Conv2d(16, 32, 3, padding=1), BatchNorm2d(32), ReLU(), Flatten(), Linear(512, 10))";

/* The images of the next batch, for the statistics: TN_NONE after the last one. */
static tn_tensor *next_images(void *user)
{
    tn_pack *batch = tn_loader_next(user);

    if (batch == NULL)
        return tn_failed() ? NULL : TN_NONE;
    return tn_pack_tensor(batch, 0);
}

/* Returns the part of the samples that the network classifies correctly. */
static double accuracy(tn_module *net, tn_loader *loader)
{
    double right = 0, count = 0;

    tn_module_eval(net);
    tn_grad_begin(false);
    for (tn_pack *batch; (batch = tn_loader_next(loader)) != NULL;) {
        TN_SCOPE;
        tn_tensor *x = tn_pack_tensor(batch, 0), *y = tn_pack_tensor(batch, 1);
        right += tn_item(tn_sum(tn_eq(tn_argmax(tn_module_call(net, x), -1), y)));
        count += (double)tn_tensor_size(x, 0);
    }
    tn_grad_end();
    tn_module_train(net, true);
    return right / count;
}

static void train(tn_module *net, tn_module *ema, tn_module *swa, tn_loader *loader)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1, momentum=0.9)");
    tn_scheduler *cosine = tn_scheduler_new(optimizer, "CosineAnnealingLR(T_max=%d)", EPOCHS);
    tn_scheduler *constant = NULL;

    for (int epoch = 0; epoch < EPOCHS && !tn_failed(); epoch++) {
        double sum = 0, rate = 0;
        if (epoch == SWA_START) /* from its rate now to 0.05, in two epochs */
            constant = tn_scheduler_new(optimizer, "SWALR(swa_lr=0.05, anneal_epochs=2)");
        for (tn_pack *batch; (batch = tn_loader_next(loader)) != NULL;) {
            TN_SCOPE;
            tn_tensor *x = tn_pack_tensor(batch, 0), *y = tn_pack_tensor(batch, 1);
            tn_optimizer_zero_grad(optimizer);
            tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);
            tn_backward(loss);
            tn_optimizer_step(optimizer);
            tn_average_update(ema, net);
            sum += tn_item(loss);
        }
        tn_optimizer_get(optimizer, 0, "lr", &rate);
        printf("epoch %d  rate %.4f  loss %.4f\n", epoch, rate,
               sum / (double)tn_loader_count(loader));
        if (epoch >= SWA_START)
            tn_average_update(swa, net);
        tn_scheduler_step(epoch >= SWA_START ? constant : cosine);
    }
    tn_scheduler_drop(constant);
    tn_scheduler_drop(cosine);
    tn_optimizer_drop(optimizer);
}

int main(void)
{
    tn_average_options exponential = TN_AVERAGE_OPTIONS;
    exponential.kind = TN_AVERAGE_EXPONENTIAL;
    exponential.decay = 0.98;

    tn_random_seed(1);
    tn_dataset *digits = tn_dataset_new("Digits(split='train')");
    tn_dataset *moved = tn_dataset_transform(digits, "RandomCrop(8, padding=1)");
    tn_dataset *test = tn_dataset_new("Digits(split='test')");
    tn_loader *train_loader = tn_loader_new(moved, "batch_size=32, shuffle=True, seed=1");
    tn_loader *test_loader = tn_loader_new(test, "batch_size=120");
    tn_module *net = tn_module_new(model);
    tn_module *ema = tn_average_new(net, &exponential), *swa = tn_average_new(net, NULL);

    train(net, ema, swa, train_loader);
    if (!tn_failed())
        printf("updates: %lld and %lld\n", (long long)tn_average_count(ema),
               (long long)tn_average_count(swa));
    tn_module_update_statistics(ema, next_images, train_loader, NULL);
    tn_module_update_statistics(swa, next_images, train_loader, NULL);
    if (!tn_failed())
        printf("accuracy %.4f, of the EMA %.4f, of the SWA %.4f\n", accuracy(net, test_loader),
               accuracy(ema, test_loader), accuracy(swa, test_loader));
    tn_module_save(tn_module_find(swa, "module"), "digits-swa.safetensors");
    if (tn_failed())
        fprintf(stderr, "averages: %s\n", tn_error_text());
    tn_module_drop(swa);
    tn_module_drop(ema);
    tn_module_drop(net);
    tn_loader_drop(test_loader);
    tn_loader_drop(train_loader);
    tn_dataset_drop(test);
    tn_dataset_drop(moved);
    tn_dataset_drop(digits);
    return tn_failed();
}
