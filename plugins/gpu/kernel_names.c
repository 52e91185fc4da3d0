/* SPDX-License-Identifier: MIT
 *
 * The table of the kernels on the device with their names and texts, and the messages for errors
 * that kernels record there. */
#include "gpu.h"

#define GPU_KERNEL(name, text, shape) { #name, GPU_TEXT_##text, GPU_##shape },
const gpu_kernel_row gpu_kernel_rows[GPU_KERNEL_COUNT] = {
#include "kernel_names.h"
};

const char *gpu_type_name(tn_dtype dtype)
{
    static const char *const names[] = { "bool", "u8",  "i8",  "i16",  "i32", "i64", "f16", "bf16",
                                         "f32",  "f64", "c64", "c128", "u16", "u32", "u64" };

    return (size_t)dtype < sizeof names / sizeof *names ? names[dtype] : "?";
}

void gpu_kernel_text(char *out, size_t size, enum gpu_kernel kernel, tn_dtype type)
{
    tn_snprint(out, size, "tn_%s_%s", gpu_kernel_rows[kernel].name, gpu_type_name(type));
}

tn_status gpu_error_fail(const gpu_error *error, const char *device)
{
    if (error->op == GPU_ERROR_DIVISION)
        return tn_fail(
            TN_ERR_RUNTIME,
            "ZeroDivisionError on %s: element %lld: divisor is zero; expected none in integers",
            device, (long long)error->place);

    static const char *const ops[] = { "an operator", "nll_loss", "nll_loss_grad", "div",
                                       "gather",      "scatter",  "scatter_add" };
    size_t op = (size_t)error->op < sizeof ops / sizeof *ops ? (size_t)error->op : 0;

    if (error->op >= GPU_ERROR_GATHER)
        return tn_fail(
            TN_ERR_INDEX,
            "%s on %s: index %lld is out of bounds for dimension %lld with size %lld: 0 to %lld",
            ops[op], device, (long long)error->index, (long long)error->place,
            (long long)error->bound, (long long)(error->bound - 1));
    return tn_fail(
        TN_ERR_INDEX,
        "%s on %s: target[%lld]: out of range, got %lld; expected 0 to %lld or ignore_index",
        ops[op], device, (long long)error->place, (long long)error->index,
        (long long)(error->bound - 1));
}
