/* SPDX-License-Identifier: MIT
 *
 * The operator quantize_rows: range, scale and integers of each row in one pass over the memory. */
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

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(quantize_rows, TN_BIT(TN_F32), supports_quantize_rows),
};
TN__KERNEL_TABLE(quant_rows);
