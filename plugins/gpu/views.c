/* SPDX-License-Identifier: MIT
 *
 * Views as kernels want them: counted in elements, with as few dimensions as possible; numbers as the device stores them. */
#include "gpu.h"

#include <math.h>
#include <string.h>

#define GPU_KERNEL_ROW_(name, text, shape) { #name, GPU_TEXT_##text, GPU_##shape },
const gpu_kernel_row gpu_kernel_rows[GPU_KERNEL_COUNT] = { GPU_KERNELS(GPU_KERNEL_ROW_) };
#define GPU_KERNEL_ID_(name, text, shape) GPU_##name,
const enum gpu_kernel gpu_ids[GPU_KERNEL_COUNT] = { GPU_KERNELS(GPU_KERNEL_ID_) };

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

int64_t gpu_count(const tn_view *view)
{
    int64_t count = 1;

    for (int32_t d = 0; d < view->ndim; d++)
        count *= view->shape[d];
    return count;
}

int64_t gpu_item_size(const tn_view *view)
{
    return (int64_t)(view->dtype.bits * view->dtype.lanes / 8);
}

int64_t gpu_offset(const tn_view *view)
{
    return (int64_t)(view->byte_offset / (uint64_t)gpu_item_size(view));
}

bool gpu_dense(const tn_view *view)
{
    int64_t expected = 1;

    for (int32_t d = view->ndim - 1; d >= 0; d--) {
        if (view->shape[d] != 1 && view->strides[d] != expected)
            return false;
        expected *= view->shape[d];
    }
    return true;
}

/* Shape, and strides of `count` operands; the number of dimensions. */
static int32_t walk_dims(int64_t *shape, int64_t (*stride)[GPU_DIMS], const tn_view *const *views,
                         int32_t count)
{
    const tn_view *first = views[0];
    int32_t n = 0;

    for (int32_t d = 0; d < first->ndim; d++) {
        int64_t own_stride[4];
        bool joins = n > 0;

        if (first->shape[d] == 1)
            continue;
        for (int32_t k = 0; k < count; k++) {
            int32_t own = d - (first->ndim - views[k]->ndim);

            own_stride[k] = own < 0 || views[k]->shape[own] == 1 ? 0 : views[k]->strides[own];
            joins = joins && stride[k][n - 1] == own_stride[k] * first->shape[d];
        }
        if (joins)
            shape[n - 1] *= first->shape[d];
        else
            shape[n++] = first->shape[d];
        for (int32_t k = 0; k < count; k++)
            stride[k][n - 1] = own_stride[k];
    }
    if (n == 0)
        shape[n++] = 1;
    return n;
}

void gpu_walk_make(gpu_walk *walk, const tn_view *const *views, int32_t count)
{
    memset(walk, 0, sizeof *walk);
    walk->count = gpu_count(views[0]);
    walk->small = walk->count < INT32_MAX;
    for (int32_t k = 0; k < count; k++)
        walk->offset[k] = gpu_offset(views[k]);
    walk->ndim = walk_dims(walk->shape, walk->stride, views, count);
}

void gpu_walk4_make(gpu_walk4 *walk, const tn_view *const views[4])
{
    memset(walk, 0, sizeof *walk);
    walk->count = gpu_count(views[0]);
    walk->small = walk->count < INT32_MAX;
    for (int32_t k = 0; k < 4; k++)
        walk->offset[k] = gpu_offset(views[k]);
    walk->ndim = walk_dims(walk->shape, walk->stride, views, 4);
}

gpu_arg gpu_scalar_arg(gpu_scalar *scalar, tn_dtype dtype, double value)
{
    gpu_arg arg = { scalar, sizeof(int32_t) };

    switch (dtype) {
    case TN_F64:
        scalar->d = value;
        arg.size = sizeof scalar->d;
        break;
    case TN_F16:
    case TN_BF16:
    case TN_F32: scalar->f = (float)value; break;
    case TN_I64:
        scalar->l = (int64_t)value;
        arg.size = sizeof scalar->l;
        break;
    default:
        /* through 64 bits: narrower integers wrap */
        scalar->i = (int32_t)(uint32_t)(uint64_t)(int64_t)value;
        break;
    }
    return arg;
}

/* float to float16, to nearest even. */
static uint16_t half_bits(float value)
{
    uint32_t bits, sign, rest, mantissa;
    int32_t exponent, shift;

    memcpy(&bits, &value, sizeof bits);
    sign = bits >> 16 & 0x8000u;
    rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00u);
    exponent = (int32_t)(rest >> 23) - 112;
    mantissa = (rest & 0x7fffffu) | 0x800000u;
    if (exponent <= 0) {
        if (exponent < -10)
            return (uint16_t)sign;
        shift = 14 - exponent;
        rest = mantissa >> shift;
        mantissa &= (1u << shift) - 1;
        if (mantissa > 1u << (shift - 1) || (mantissa == 1u << (shift - 1) && (rest & 1)))
            rest++;
        return (uint16_t)(sign | rest);
    }
    rest = (uint32_t)exponent << 10 | (mantissa >> 13 & 0x3ffu);
    mantissa &= 0x1fffu;
    if (mantissa > 0x1000u || (mantissa == 0x1000u && (rest & 1)))
        rest++;
    return (uint16_t)(sign | rest);
}

static uint16_t brain_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* A double to 64 bits of whole number, also where C leaves it open. */
static int64_t whole(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 9223372036854775808.0)
        return INT64_MAX;
    if (value <= -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)value;
}

void gpu_bits(tn_dtype dtype, double value, uint64_t bits[2])
{
    float narrow = (float)value;

    bits[0] = 0;
    bits[1] = 0;
    switch (dtype) {
    case TN_BOOL: bits[0] = value != 0; break;
    case TN_F16: bits[0] = half_bits(narrow); break;
    case TN_BF16: bits[0] = brain_bits(narrow); break;
    case TN_F32:
    case TN_C64: memcpy(bits, &narrow, sizeof narrow); break;
    case TN_F64:
    case TN_C128: memcpy(bits, &value, sizeof value); break;
    case TN_U64:
        bits[0] = value >= 9223372036854775808.0 && value < 18446744073709551616.0
                      ? (uint64_t)value
                      : (uint64_t)whole(value);
        break;
    default: bits[0] = (uint64_t)whole(value); break;
    }
}

tn_status gpu_error_say(const gpu_error *error, const char *device)
{
    if (error->op == GPU_ERROR_DIVISION)
        return tn_fail(TN_ERR_RUNTIME,
                       "ZeroDivisionError on %s: element %lld divides a whole number by zero",
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
        "%s on %s: target[%lld] is %lld, which is out of range for %lld classes (0 to %lld, or ignore_index)",
        ops[op], device, (long long)error->place, (long long)error->index, (long long)error->bound,
        (long long)(error->bound - 1));
}

bool gpu_supports(const tn_call *call, char *reason, size_t size)
{
    if (!gpu_device_has(call, call->dtype, reason, size))
        return false;
    for (int64_t i = 0; i < call->n_in; i++)
        if (call->in[i] && !gpu_device_has(call, tn_view_dtype(call->in[i]), reason, size))
            return false;
    return true;
}
