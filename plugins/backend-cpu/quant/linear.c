/* SPDX-License-Identifier: MIT
 *
 * The operators linear_int8 and matmul_int8. */
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "quant/quant.h"

/* Whether the rows of x are contiguous and one after the other. */
static bool takes(const tn_call *call, int64_t k, char *reason, size_t size)
{
    if (k > TN__QUANT_MOST) {
        tn_snprint(reason, size, "more than %d products of each sum", TN__QUANT_MOST);
        return false;
    }
    if (!tn__quant_dense(call->in[0]) || !tn__span_result_dense(call)) {
        tn_snprint(reason, size, "x or the result is not contiguous");
        return false;
    }
    return true;
}

static bool supports_linear_int8(const tn_call *call, char *reason, size_t size)
{
    const tn_view *w = call->in[TN__QUANT_WEIGHT];

    if (!tn__quant_dense(call->in[TN__QUANT_RESIDUAL])) {
        tn_snprint(reason, size, "residual is not contiguous");
        return false;
    }
    return takes(call, w->shape[1], reason, size);
}

/* ---- the weight ---- */

static struct tn__quant_source linear_source(const tn_call *call)
{
    const tn_view *w = call->in[TN__QUANT_WEIGHT];

    return (struct tn__quant_source){ .at = NULL,
                                      .n = w->shape[0],
                                      .taps = 1,
                                      .channels = w->shape[1],
                                      .n_step = w->strides[0],
                                      .step = w->strides[1],
                                      .is_signed = tn__quant_is_signed(w) };
}

static struct tn__quant_source product_source(const tn_call *call)
{
    const tn_view *b = call->in[1];

    return (struct tn__quant_source){ .at = NULL,
                                      .n = b->shape[1],
                                      .taps = 1,
                                      .channels = b->shape[0],
                                      .n_step = b->strides[1],
                                      .step = b->strides[0],
                                      .is_signed = tn__quant_is_signed(b) };
}

static uint64_t key_linear_int8(const tn_call *call)
{
    return tn__span_view_count(call->in[TN__QUANT_WEIGHT]) >= 1024 ? 1 : 0;
}

/* Packs input `which` for later calls. */
static tn_status keep(const tn_call *call, int which, struct tn__quant_source from,
                      tn_prepared_data *out)
{
    if (!(call->constant >> which & 1))
        return TN_OK;
    from.at = (const uint8_t *)tn__view_at(call->in[which]);
    out->bytes = tn__quant_weight_bytes(&from);
    out->data = tn__scratch_own((size_t)out->bytes);
    if (out->data == NULL)
        return TN_ERR_MEMORY;
    if (tn__quant_weight_pack(&from, out->data) != NULL)
        return TN_OK;
    tn__scratch_free(out->data);
    out->data = NULL;
    return tn_error_last_code();
}

static tn_status prepare_linear_int8(const tn_call *call, tn_prepared_data *out)
{
    return keep(call, TN__QUANT_WEIGHT, linear_source(call), out);
}

static uint64_t key_matmul_int8(const tn_call *call)
{
    return tn__span_view_count(call->in[1]) >= 1024 ? 1 : 0;
}

static tn_status prepare_matmul_int8(const tn_call *call, tn_prepared_data *out)
{
    return keep(call, 1, product_source(call), out);
}

static void release(const tn_kernel_def *kernel, void *data)
{
    (void)kernel;
    tn__scratch_free(data);
}

/* ---- the rows ---- */

/* Rows of x in signed bytes, with the vectors that belong to them: one piece of memory. */
struct rows {
    int8_t *x;
    float *scale;
    int32_t *zero, *sum;
};

static void *take_rows(int64_t rows, int64_t step, struct rows *to)
{
    char *memory = tn__scratch_take((size_t)rows * (size_t)(step + 12));

    if (memory == NULL)
        return NULL;
    to->scale = (float *)(void *)memory;
    to->zero = (int32_t *)(void *)(memory + rows * 4);
    to->sum = (int32_t *)(void *)(memory + rows * 8);
    to->x = (int8_t *)memory + rows * 12;
    return memory;
}

static void make_rows(const tn_view *x, int64_t rows, int64_t k, int64_t step, struct rows *to)
{
    for (int64_t i = 0; i < rows; i++)
        tn__quant_row(tn__view_at(x) + i * k, k, tn__quant_is_signed(x), to->x + i * step, step,
                      &to->sum[i]);
}

/* The product of the rows of x with the weight, which is packed here unless it was prepared. */
static tn_status multiply(const tn_call *call, const struct tn__quant_source *from, int64_t rows,
                          struct rows *to, struct tn__quant_run *run)
{
    const tn_view *x = call->in[0];
    void *packed = call->prepared ? NULL : tn__scratch_take(tn__quant_weight_bytes(from));
    tn_status status;

    run->w = call->prepared ? call->prepared : packed ? tn__quant_weight_pack(from, packed) : NULL;
    if (run->w == NULL) {
        tn__scratch_give(packed);
        return packed == NULL ? TN_ERR_MEMORY : tn_error_last_code();
    }
    run->x_step = run->w->quads * TN__QUANT_QUAD;
    make_rows(x, rows, from->channels, run->x_step, to);
    run->x = to->x;
    run->x_sum = to->sum;
    run->x_zero = to->zero;
    run->rows = rows;
    run->y = tn__view_at(call->out[0]);
    run->y_column = tn__view_item(call->out[0]);
    run->y_row = from->n * run->y_column;
    status = tn__quant_run(run);
    tn__scratch_give(packed);
    return status;
}

static tn_status run_linear_int8(const tn_call *call)
{
    const tn_linear_int8_options *o = call->options;
    struct tn__quant_source from = linear_source(call);
    struct tn__quant_run run = { .min = (float)o->min, .max = (float)o->max };
    const int64_t count = tn__span_view_count(call->out[0]);
    const int64_t rows = from.n > 0 ? count / from.n : 0;
    struct rows to;
    void *memory, *channels;
    tn_status status = TN_ERR_MEMORY;

    if (count == 0)
        return TN_OK;
    from.at = (const uint8_t *)tn__view_at(call->in[TN__QUANT_WEIGHT]);
    memory = take_rows(rows, (from.channels + TN__QUANT_QUAD - 1) / TN__QUANT_QUAD * TN__QUANT_QUAD,
                       &to);
    channels = tn__quant_channels(call, 0, from.n, &run);
    if (memory != NULL && channels != NULL) {
        bool one = tn__span_view_count(call->in[TN__QUANT_X_SCALE]) == 1;

        for (int64_t i = 0; i < rows; i++)
            tn__quant_row_scale(call, one ? 0 : i, &to.scale[i], &to.zero[i]);
        run.x_scale = to.scale;
        status = multiply(call, &from, rows, &to, &run);
    }
    tn__scratch_give(channels);
    tn__scratch_give(memory);
    return status;
}

/* ---- matmul_int8 ---- */

static bool supports_matmul_int8(const tn_call *call, char *reason, size_t size)
{
    if (call->in[1]->ndim != 2) {
        tn_snprint(reason, size, "b is no matrix");
        return false;
    }
    return takes(call, call->in[1]->shape[0], reason, size);
}

static tn_status run_matmul_int8(const tn_call *call)
{
    const tn_view *a = call->in[0], *b = call->in[1], *b_zero = call->in[3];
    const tn_view *a_zero = call->in[2];
    struct tn__quant_source from = product_source(call);
    struct tn__quant_run run = { .dtype = TN_I32 };
    const int64_t count = tn__span_view_count(call->out[0]);
    const int64_t rows = from.n > 0 ? count / from.n : 0;
    const bool one_a = a_zero != NULL && tn__span_view_count(a_zero) == 1;
    const bool one_b = b_zero != NULL && tn__span_view_count(b_zero) == 1;
    struct rows to;
    void *memory;
    int32_t *zeros;
    tn_status status = TN_ERR_MEMORY;

    if (count == 0)
        return TN_OK;
    from.at = (const uint8_t *)tn__view_at(b);
    memory = take_rows(rows, (from.channels + TN__QUANT_QUAD - 1) / TN__QUANT_QUAD * TN__QUANT_QUAD,
                       &to);
    zeros = tn__scratch_take((size_t)tn__quant_whole(from.n) * sizeof *zeros);
    if (memory != NULL && zeros != NULL) {
        memset(zeros, 0, (size_t)tn__quant_whole(from.n) * sizeof *zeros);
        for (int64_t i = 0; i < from.n; i++)
            zeros[i] = tn__quant_byte(b_zero, one_b ? 0 : i) + (tn__quant_is_signed(b) ? 128 : 0);
        for (int64_t i = 0; i < rows; i++)
            to.zero[i] = tn__quant_byte(a_zero, one_a || !a_zero    ? 0
                                                : a_zero->ndim == 1 ? i % a->shape[a->ndim - 2]
                                                                    : i) -
                         (tn__quant_is_signed(a) ? 0 : 128);
        run.w_zero = zeros;
        status = multiply(call, &from, rows, &to, &run);
    }
    tn__scratch_give(zeros);
    tn__scratch_give(memory);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_KEEPS(linear_int8, TN_BIT(TN_I8) | TN_BIT(TN_U8), .supports = supports_linear_int8,
                     .operand_dtypes = tn__quant_product_dtypes, .weights = 1 << TN__QUANT_WEIGHT,
                     .prepare_key = key_linear_int8, .prepare = prepare_linear_int8,
                     .release = release),
    TN__KERNEL_KEEPS(matmul_int8, TN_BIT(TN_I8) | TN_BIT(TN_U8), .supports = supports_matmul_int8,
                     .weights = 2, .prepare_key = key_matmul_int8, .prepare = prepare_matmul_int8,
                     .release = release),
};
TN__KERNEL_TABLE(quant_linear);
