/* SPDX-License-Identifier: MIT
 *
 * Inference with networks that are built from modules, compared with PyTorch and onnxruntime: the
 * same weights and data, images with the channels first, the results compared. compare.c has the
 * command line. With bf16 weights and images have this type on both sides; onnxruntime has no such
 * kernels for processors. */
#include "compare.h"

static tn_status convert(tn_tensor **tensor, tn_dtype dtype)
{
    tn_tensor *to;

    if (*tensor == NULL || tn_tensor_dtype(*tensor) != TN_F32)
        return TN_OK;
    to = tn_keep(tn_cast(*tensor, dtype));
    tn_tensor_drop(*tensor);
    *tensor = to;
    return to != NULL ? TN_OK : tn_error_last_code();
}

static tn_status prepare(bench_task *task)
{
    tn_status status = tn_module_eval(task->module);

    if (task->dtype == TN_F32)
        return status;
    if (status == TN_OK)
        status = tn_module_to(task->module, NULL, task->dtype);
    if (status == TN_OK)
        status = convert(&task->x, task->dtype);
    for (int i = 0; i < BENCH_CACHE && status == TN_OK; i++)
        status = convert(&task->cache[i], task->dtype);
    return status;
}

static tn_tensor *step(bench_task *task)
{
    tn_tensor *y;

    if (tn_inference_begin(true) != TN_OK)
        return NULL;
    y = bench_network_call(task->network, task->module, task->x, task->cache);
    tn_inference_end();
    return y;
}

int main(int argc, char **argv)
{
    static const bench_program infer = { "infer", "eager,onnxruntime", "1,32", prepare, step, 1 };

    return bench_compare(argc, argv, &infer);
}
