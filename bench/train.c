/* SPDX-License-Identifier: MIT
 *
 * Training steps of networks that are built from modules, compared with PyTorch: the same weights
 * and data, images with the channels first, the loss before each step compared. compare.c has the
 * command line. With bf16 both sides use autocast. With --compiled none calls run plans of
 * training, with --compiled step plans of whole steps. */
#include <string.h>

#include "compare.h"

static tn_status call_loss(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *loss = bench_network_loss(tn_module_user(self), tn_pack_tensor(input, 0),
                                         tn_pack_tensor(input, 1));

    return loss != NULL ? tn_pack_add(output, NULL, tn_value_tensor(loss)) : tn_error_last_code();
}

/* Makes a plan of whole steps. */
static tn_status make_step(bench_task *task)
{
    tn_module *loss = tn_module_plain("Loss");
    tn_status status = tn_module_set_call(loss, call_loss, (void *)(uintptr_t)task->network, NULL);

    if (status == TN_OK)
        task->whole = tn_step_new(task->module, loss, task->optimizer, NULL);
    tn_module_drop(loss);
    return task->whole != NULL ? TN_OK : tn_error_last_code();
}

static tn_status prepare(bench_task *task)
{
    const char *spec = strcmp(task->network->optimizer, "SGD") == 0 ? "SGD(lr=0.001, momentum=0.9)"
                                                                    : "AdamW(lr=0.0003)";

    bool whole = task->compiled != NULL && strcmp(task->compiled, "step") == 0;

    if (task->compiled != NULL && !whole && strcmp(task->compiled, "none") != 0)
        return tn_fail(TN_ERR_VALUE,
                       "--compiled: plans of training have no passes, got %s; "
                       "expected none, or step for plans of whole steps",
                       task->compiled);
    if (whole && (task->network->forward != NULL || task->dtype != TN_F32))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "--compiled step: %s is not called with one tensor, or needs autocast",
                       task->network->title);
    if (task->compiled != NULL && !whole &&
        tn_module_compile(task->module, "plan(train=True)") != TN_OK)
        return tn_error_last_code();
    task->optimizer = tn_optimizer_new(task->module, "%s", spec);
    return task->optimizer == NULL ? tn_error_last_code() : whole ? make_step(task) : TN_OK;
}

static tn_tensor *step(bench_task *task)
{
    bool low = task->dtype != TN_F32;
    tn_tensor *loss;

    if (task->whole != NULL) {
        tn_tensor *in[] = { task->x, task->target };

        if (tn_step_run(task->whole, in, 2, &loss, 1) != TN_OK)
            return NULL;
        tn_item(loss);
        return tn_failed() ? NULL : loss;
    }
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
