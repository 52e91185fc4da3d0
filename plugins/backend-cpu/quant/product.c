/* SPDX-License-Identifier: MIT
 *
 * Products of rows of bytes with packed weights, and what follows the sums. */
#include "quant/quant.h"

#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "simd/simd.h"

enum { ROWS = 48 /* rows of a piece */ };

const struct tn__quant_loops *tn__quant_loops_chosen(bool *dot)
{
    *dot = false;
#ifdef TN__HAVE_AVX512
    if (strcmp(tn__simd.name, "avx512") == 0) {
        *dot = __builtin_cpu_supports("avx512vnni") != 0;
        return &tn__quant_loops_avx512;
    }
#endif
#ifdef TN__HAVE_AVX2
    if (strcmp(tn__simd.name, "avx2") == 0)
        return &tn__quant_loops_avx2;
#endif
    return &tn__quant_loops_baseline;
}

/* ---- elements of small tensors ---- */

static const char *element(const tn_view *view, int64_t i)
{
    int64_t offset = 0;

    if (view->ndim == 1)
        return tn__view_at(view) + i * view->strides[0] * tn__view_item(view);
    for (int32_t d = view->ndim; d-- > 0 && i > 0;) {
        if (view->shape[d] > 1) {
            offset += i % view->shape[d] * view->strides[d];
            i /= view->shape[d];
        }
    }
    return tn__view_at(view) + offset * tn__view_item(view);
}

int32_t tn__quant_byte(const tn_view *view, int64_t i)
{
    const char *at;

    if (view == NULL)
        return 0;
    at = element(view, i);
    return tn__quant_is_signed(view) ? *(const int8_t *)at : *(const uint8_t *)at;
}

float tn__quant_float(const tn_view *view, int64_t i)
{
    return *(const float *)(const void *)element(view, i);
}

bool tn__quant_dense(const tn_view *view)
{
    return view == NULL || tn__span_view_dense(view);
}

/* ---- rows and channels ---- */

void tn__quant_row(const void *x, int64_t k, bool is_signed, int8_t *to, int64_t step, int32_t *sum)
{
    bool dot;

    *sum = (int32_t)tn__quant_loops_chosen(&dot)->flip(k, x, is_signed ? 0 : 128, to);
    memset(to + k, 0, (size_t)(step - k));
}

void tn__quant_row_scale(const tn_call *call, int64_t i, float *scale, int32_t *zero)
{
    const tn_view *x_zero = call->in[TN__QUANT_X_ZERO];

    *scale = tn__quant_float(call->in[TN__QUANT_X_SCALE], i);
    *zero = x_zero != NULL ? tn__quant_byte(x_zero, i) : 0;
    if (!tn__quant_is_signed(call->in[TN__QUANT_X]))
        *zero -= 128;
}

#define FLOATS TN_BIT(TN_F32)
#define BYTES (TN_BIT(TN_I8) | TN_BIT(TN_U8))
const uint64_t tn__quant_product_dtypes[TN__QUANT_INPUTS + 1] = {
    BYTES,  FLOATS, BYTES,          FLOATS, BYTES, BYTES,         FLOATS,
    FLOATS, BYTES,  FLOATS | BYTES, FLOATS, BYTES, FLOATS | BYTES
};

void *tn__quant_channels(const tn_call *call, int64_t first, int64_t n, struct tn__quant_run *run)
{
    const tn_view *scale = call->in[TN__QUANT_WEIGHT_SCALE];
    const tn_view *zero = call->in[TN__QUANT_WEIGHT_ZERO], *bias = call->in[TN__QUANT_BIAS];
    const int64_t whole = tn__quant_whole(n);
    const bool one = tn__span_view_count(scale) == 1;
    const int32_t offset = tn__quant_is_signed(call->in[TN__QUANT_WEIGHT]) ? 128 : 0;
    float *memory = tn__scratch_take((size_t)whole * 3 * sizeof(float)), *shift;
    int32_t *zeros;

    if (memory == NULL)
        return NULL;
    memset(memory, 0, (size_t)whole * 3 * sizeof(float));
    shift = memory + whole;
    zeros = (int32_t *)(void *)(memory + 2 * whole);
    for (int64_t i = 0; i < n; i++) {
        memory[i] = tn__quant_float(scale, one ? 0 : first + i);
        zeros[i] = offset + (zero != NULL ? tn__quant_byte(zero, one ? 0 : first + i) : 0);
        if (bias != NULL)
            shift[i] = tn__quant_float(bias, first + i);
    }
    run->w_scale = memory;
    run->w_zero = zeros;
    run->bias = bias != NULL ? shift : NULL;
    run->residual = call->in[TN__QUANT_RESIDUAL];
    if (call->in[TN__QUANT_Y_SCALE] != NULL)
        run->y_scale = tn__quant_float(call->in[TN__QUANT_Y_SCALE], 0);
    run->y_zero = tn__quant_byte(call->in[TN__QUANT_Y_ZERO], 0);
    if (call->in[TN__QUANT_RESIDUAL_SCALE] != NULL)
        run->residual_scale = tn__quant_float(call->in[TN__QUANT_RESIDUAL_SCALE], 0);
    run->residual_zero = tn__quant_byte(call->in[TN__QUANT_RESIDUAL_ZERO], 0);
    run->dtype = tn_view_dtype(call->out[0]);
    return memory;
}

/* ---- the product ---- */

void tn__quant_residual(const struct tn__quant_run *r, int64_t from, int64_t step, int64_t n,
                        float *to)
{
    const int64_t item = tn__view_item(r->residual);
    const char *at = tn__view_at(r->residual) + from * item;
    const tn_dtype dtype = tn_view_dtype(r->residual);

    for (int64_t i = 0; i < n; i++, at += step * item) {
        if (dtype == TN_F32) {
            to[i] = *(const float *)(const void *)at;
        } else {
            int32_t q = dtype == TN_I8 ? *(const int8_t *)at : *(const uint8_t *)at;

            to[i] = (float)(q - r->residual_zero) * r->residual_scale;
        }
    }
}

/* Finishes one row of a piece. */
static void end_row(const struct tn__quant_run *r, const struct tn__quant_loops *loops, int64_t row,
                    int64_t first, int64_t n, const int32_t *sums, void *y)
{
    const int64_t item = (int64_t)tn_dtype_size(r->dtype);
    float residual[TN__QUANT_COLUMNS];
    struct tn__quant_finish f = {
        .n = n,
        .sums = sums,
        .w_sum = r->w->sums + first,
        .w_zero = r->w_zero + first,
        .x_zero = r->x_zero[row],
        .x_sum = r->x_sum[row],
        .k = (int32_t)r->w->k,
        .min = r->min,
        .max = r->max,
        .quantized = r->dtype == TN_I8 || r->dtype == TN_U8,
        .is_signed = r->dtype == TN_I8,
        .y_scale = r->y_scale,
        .y_zero = r->y_zero,
        .y = y,
    };

    if (r->x_scale != NULL) {
        f.x_scale = r->x_scale[row];
        f.w_scale = r->w_scale + first;
        f.bias = r->bias != NULL ? r->bias + first : NULL;
        if (r->residual != NULL) {
            tn__quant_residual(r,
                               r->residual_offset + (row * r->y_row + first * r->y_column) / item,
                               r->y_column / item, n, residual);
            f.residual = residual;
        }
    } else {
        f.whole = f.y;
    }
    loops->finish(&f);
}

/* Stores a piece of rows [rows][64] as lines of channels, for a result whose rows are next to each
 * other. */
static void store_channels(const struct tn__quant_run *r, int64_t rows, int64_t n,
                           const void *piece, char *to)
{
    for (int64_t c = 0; c < n; c++, to += r->y_column) {
        if (tn_dtype_size(r->dtype) == 1)
            for (int64_t i = 0; i < rows; i++)
                to[i] = ((const char *)piece)[i * TN__QUANT_COLUMNS + c];
        else
            for (int64_t i = 0; i < rows; i++)
                ((int32_t *)(void *)to)[i] = ((const int32_t *)piece)[i * TN__QUANT_COLUMNS + c];
    }
}

/* Pieces [begin, end): 48 rows and 64 channels each; those of the same channels follow each other,
 * so that the weight stays in the cache. */
static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct tn__quant_run *r = user;
    const int64_t down = (r->rows + ROWS - 1) / ROWS;
    const int64_t item = (int64_t)tn_dtype_size(r->dtype);
    const bool by_rows = r->y_column == item;
    int32_t sums[ROWS * TN__QUANT_COLUMNS], piece[ROWS * TN__QUANT_COLUMNS];
    bool dot;
    const struct tn__quant_loops *loops = tn__quant_loops_chosen(&dot);

    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % down * ROWS, first = i / down * TN__QUANT_COLUMNS;
        const int64_t rows = r->rows - row < ROWS ? r->rows - row : ROWS;
        const int64_t n = r->w->n - first < TN__QUANT_COLUMNS ? r->w->n - first : TN__QUANT_COLUMNS;
        const struct tn__quant_product p = {
            .x = r->x + row * r->x_step,
            .x_step = r->x_step,
            .rows = rows,
            .quads = r->w->quads,
            .panels = r->w->panels + first * TN__QUANT_QUAD * r->w->quads,
            .n_panels = (n + TN__QUANT_PANEL - 1) / TN__QUANT_PANEL,
            .sums = sums,
            .dot = dot,
        };

        loops->product(&p);
        for (int64_t j = 0; j < rows; j++)
            end_row(r, loops, row + j, first, n, sums + j * TN__QUANT_COLUMNS,
                    by_rows ? r->y + (row + j) * r->y_row + first * item
                            : (char *)piece + j * TN__QUANT_COLUMNS * item);
        if (!by_rows)
            store_channels(r, rows, n, piece, r->y + row * item + first * r->y_column);
    }
    return TN_OK;
}

tn_status tn__quant_run(const struct tn__quant_run *run)
{
    const int64_t down = (run->rows + ROWS - 1) / ROWS;
    const int64_t across = (run->w->n + TN__QUANT_COLUMNS - 1) / TN__QUANT_COLUMNS;
    const int64_t rows = run->rows < ROWS ? run->rows : ROWS;

    return tn_parallel_for(down * across,
                           1 + (1 << 19) / (1 + rows * TN__QUANT_COLUMNS * run->w->k), part,
                           (void *)(uintptr_t)run);
}
