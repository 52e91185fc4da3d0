/* SPDX-License-Identifier: MIT
 *
 * The operators quantize_rows (range, scale and integers of each row in one pass over the memory)
 * and quantize to bytes with one scale. */
#include "base/kernel.h"
#include "quant/quant.h"

static bool supports_quantize_rows(const tn_call *call, char *reason, size_t size)
{
    if (tn__quant_dense(call->in[0]) && tn__span_result_dense(call))
        return true;
    tn_snprint(reason, size, "x or the result is not contiguous");
    return false;
}

struct rows {
    const tn_call *call;
    int64_t n;
};

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct rows *r = user;
    const tn_quantize_rows_options *o = r->call->options;
    const tn_view *const *out = r->call->out;
    bool dot;
    const struct tn__quant_loops *loops = tn__quant_loops_chosen(&dot);

    for (int64_t i = begin; i < end; i++) {
        struct tn__quant_row row = {
            .n = r->n,
            .x = (const float *)(const void *)tn__view_at(r->call->in[0]) + i * r->n,
            .symmetric = o->symmetric,
            .is_signed = o->dtype == TN_I8,
            .q = tn__view_at(out[0]) + i * r->n,
        };

        loops->row(&row);
        ((float *)(void *)tn__view_at(out[1]))[i] = row.scale;
        ((uint8_t *)tn__view_at(out[2]))[i] = (uint8_t)row.zero;
    }
    return TN_OK;
}

static tn_status run_quantize_rows(const tn_call *call)
{
    const tn_view *x = call->in[0];
    struct rows r = { call, x->shape[x->ndim - 1] };

    return tn_parallel_for(tn__span_view_count(call->out[1]), 1 + 32768 / (1 + r.n), part, &r);
}

/* ---- quantize ---- */

static bool supports_quantize(const tn_call *call, char *reason, size_t size)
{
    if (tn__span_view_count(call->in[1]) == 1 && tn__quant_dense(call->in[0]) &&
        tn__span_result_dense(call))
        return true;
    tn_snprint(reason, size, "several scales, or x or the result is not contiguous");
    return false;
}

struct bytes {
    const float *x;
    uint8_t *y;
    float scale;
    int32_t zero, low, high;
    const struct tn__quant_loops *loops;
};

static tn_status quantize_part(void *user, int64_t begin, int64_t end)
{
    const struct bytes *b = user;

    b->loops->to_bytes(end - begin, b->x + begin, b->scale, b->zero, b->low, b->high, b->y + begin);
    return TN_OK;
}

static tn_status run_quantize(const tn_call *call)
{
    const tn_quantize_options *o = call->options;
    const bool is_signed = call->dtype == TN_I8;
    struct bytes b = {
        .x = (const float *)(const void *)tn__view_at(call->in[0]),
        .y = (uint8_t *)tn__view_at(call->out[0]),
        .scale = tn__quant_float(call->in[1], 0),
        .zero = tn__quant_byte(call->in[2], 0),
        .low = o->qmin != INT64_MIN ? (int32_t)o->qmin
               : is_signed          ? -128
                                    : 0,
        .high = o->qmax != INT64_MIN ? (int32_t)o->qmax
                : is_signed          ? 127
                                     : 255,
    };
    bool dot;

    b.loops = tn__quant_loops_chosen(&dot);
    return tn_parallel_for(tn__span_view_count(call->out[0]), 32768, quantize_part, &b);
}

static const uint64_t quantize_dtypes[] = { TN_BIT(TN_F32), TN_BIT(TN_F32),
                                            TN_BIT(TN_I8) | TN_BIT(TN_U8),
                                            TN_BIT(TN_I8) | TN_BIT(TN_U8) };

static const tn_kernel_def kernels[] = {
    TN__KERNEL_KEEPS(quantize, TN_BIT(TN_I8) | TN_BIT(TN_U8), .supports = supports_quantize,
                     .operand_dtypes = quantize_dtypes),
    TN__KERNEL_SUPPORTS(quantize_rows, TN_BIT(TN_F32), supports_quantize_rows),
};
TN__KERNEL_TABLE(quant_rows);
