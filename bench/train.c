/* SPDX-License-Identifier: MIT
 *
 * Training steps of networks that are built from modules, compared with PyTorch: the same weights
 * and data, images with the channels first, the loss before each step compared. compare.c has the
 * command line. With bf16 both sides use autocast. */
#include <string.h>

#include "compare.h"

static tn_status prepare(bench_task *task)
{
    const char *spec = strcmp(task->network->optimizer, "SGD") == 0 ? "SGD(lr=0.001, momentum=0.9)"
                                                                    : "AdamW(lr=0.0003)";

    if (task->compiled != NULL && strcmp(task->compiled, "none") != 0)
        return tn_fail(TN_ERR_VALUE,
                       "--compiled: plans of training have no passes, got %s; "
                       "expected none",
                       task->compiled);
    if (task->compiled != NULL && tn_module_compile(task->module, "plan(train=True)") != TN_OK)
        return tn_error_last_code();
    task->optimizer = tn_optimizer_new(task->module, "%s", spec);
    return task->optimizer != NULL ? TN_OK : tn_error_last_code();
}

static tn_tensor *step(bench_task *task)
{
    bool low = task->dtype != TN_F32;
    tn_tensor *loss;

    if (low &&
        tn_autocast_begin(tn_device_type(tn_tensor_device(task->x)), task->dtype, true) != TN_OK)
        return NULL;
    loss = bench_network_loss(task->network,
                              bench_network_call(task->network, task->module, task->x, task->cache),
                              task->target);
    if (low)
        tn_autocast_end();
    if (loss == NULL || tn_backward(loss) != TN_OK || tn_optimizer_step(task->optimizer) != TN_OK ||
        tn_optimizer_zero_grad(task->optimizer) != TN_OK)
        return NULL;
    tn_item(loss); /* a program prints it; a device has finished then */
    return tn_failed() ? NULL : loss;
}

int main(int argc, char **argv)
{
    static const bench_program train = { "train", "eager", "0", prepare, step, 3, true };

    return bench_compare(argc, argv, &train);
}
