/* SPDX-License-Identifier: MIT
 *
 * The operators linear, x weight^T + bias over the last dimension, and linear_activation, linear
 * followed by an activation and the addition of a residual. */
#include "base/scratch.h"
#include "matmul/matmul.h"
#include "op/copy.h"
#include "op/elementwise.h"
#include "simd/simd.h"

#include <string.h>

/* Returns whether all dimensions but the last can be merged into one; *rows and *stride are then
 * the size and stride of the merged dimension. */
static bool as_rows(const tn_view *view, int64_t *rows, int64_t *stride)
{
    *rows = 1;
    *stride = view->ndim > 1 ? view->strides[view->ndim - 2] : 0;
    bool first = true;
    int64_t expect = 0;
    for (int32_t i = view->ndim - 1; i-- > 0;) {
        *rows *= view->shape[i];
        if (view->shape[i] == 1)
            continue;
        if (first)
            *stride = view->strides[i];
        else if (view->strides[i] != expect)
            return false;
        first = false;
        expect = view->strides[i] * view->shape[i];
    }
    return true;
}

struct layer {
    const tn_view *x, *weight, *bias, *y;
    const struct tn__finish *finish; /* applied to the product; NULL: nothing */
    bool finished;                   /* the product has applied `finish` */
    const char *panels;              /* the packed weight, or NULL */
};

static tn_status compute(const tn_call *call, struct layer *l);

/* Computes a layer with a contiguous copy of x, for an x whose leading dimensions cannot be
 * merged. */
static tn_status compute_copied(const tn_call *call, const struct layer *given, bool *finished)
{
    const tn_view *x = given->x;
    int64_t strides[TN_MAX_DIMS], next = 1;
    for (int32_t i = x->ndim; i-- > 0; next *= x->shape[i])
        strides[i] = next;
    tn_view dense = *x;
    dense.byte_offset = 0;
    dense.strides = strides;
    dense.data = tn_malloc((size_t)(next > 0 ? next : 1) * (size_t)tn__view_item(x));
    if (!dense.data)
        return TN_ERR_MEMORY;
    tn_status status = tn__copy_views(&dense, x);
    if (status == TN_OK) {
        struct layer l = *given;
        l.x = &dense;
        status = compute(call, &l);
        *finished = l.finished;
    }
    tn_free(dense.data);
    return status;
}

static tn_status compute(const tn_call *call, struct layer *l)
{
    const tn_view *x = l->x, *weight = l->weight, *y = l->y, *bias = l->bias;
    int64_t x_rows, x_stride, y_rows, y_stride;
    if (!as_rows(x, &x_rows, &x_stride))
        return compute_copied(call, l, &l->finished);
    if (!as_rows(y, &y_rows, &y_stride))
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: result: wrong strides; expected equal distances between all rows",
                       call->op);
    struct tn__product p = { .batch = 1,
                             .m = x_rows,
                             .n = weight->shape[0],
                             .k = weight->shape[1],
                             .finish = l->finish,
                             .panels = l->panels };
    p.y = tn__matrix_of(y, -1, y->ndim - 1);
    p.a = tn__matrix_of(x, -1, x->ndim - 1);
    p.y.row = y_stride * p.y.item;
    p.a.row = x_stride * p.a.item;
    p.b = tn__matrix_of(weight, 1, 0);
    p.ct = tn__dtype_ct(p.y.dtype);
    if (p.m == 1) { /* the stride of a single row can be any number */
        p.y.row = p.n * p.y.item;
        p.a.row = p.k * p.a.item;
    }
    if (bias) {
        p.bias = tn__view_at(bias);
        p.bias_step = bias->strides[0] * tn__view_item(bias);
        p.bias_dtype = tn_view_dtype(bias);
    }
    tn_status status = tn__matmul_run(&p, y);
    l->finished = p.finished;
    return status;
}

/* ---- the packed weight, kept between calls --------------------------------------------------- */

/* Returns the key of the panels that the product reads. Returns 0 if panels are not kept: the
 * product does not pack (few rows, one output, another dtype), it has so many rows that packing
 * does not matter, or the weight is very small or very large. */
static uint64_t key_linear(const tn_call *call)
{
    enum { MOST_ROWS = 1024 };
    const tn_view *x = call->in[0], *weight = call->in[1];
    double elements;
    int64_t rows = 1;

    if (weight->ndim == 1)
        return 0;
    elements = (double)weight->shape[0] * (double)weight->shape[1];
    for (int32_t i = 0; i + 1 < x->ndim; i++)
        rows *= x->shape[i];
    return (call->dtype == TN_F32 || call->dtype == TN_F64) && rows >= TN__PACKED_ROWS &&
                   rows <= MOST_ROWS && weight->shape[0] > 1 && elements >= 1024 && elements <= 64e6
               ? 1
               : 0;
}

static tn_status prepare_linear(const tn_call *call, tn_prepared_data *out)
{
    const tn_view *weight = call->in[1];
    const enum tn__ct ct = tn__dtype_ct(call->dtype);
    struct tn__matrix b;
    tn_status status;
    int64_t n, k;

    if (!(call->constant >> 1 & 1) || key_linear(call) == 0 || tn_view_dtype(weight) != call->dtype)
        return TN_OK;
    n = weight->shape[0];
    k = weight->shape[1];
    b = tn__matrix_of(weight, 1, 0);
    out->bytes = (uint64_t)tn__packed_bytes(ct, k, n);
    out->data = tn__scratch_own((size_t)out->bytes);
    if (!out->data)
        return TN_ERR_MEMORY;
    status = tn__packed_panels(ct, k, n, &b, out->data);
    if (status != TN_OK) {
        tn__scratch_free(out->data);
        out->data = NULL;
    }
    return status;
}

static void release(const tn_kernel_def *kernel, void *data)
{
    (void)kernel;
    tn__scratch_free(data);
}

/* A weight [in] is a matrix of one row, with results [..., 1]. */
static tn_status run_row(const tn_call *call)
{
    const tn_view *weight = call->in[1], *bias = call->n_in > 2 ? call->in[2] : NULL;
    int64_t row_shape[] = { 1, weight->shape[0] }, row_strides[] = { 0, weight->strides[0] };
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS], one = 1, none = 0;
    tn_view row = *weight, y = *call->out[0], shift;
    struct layer l = { .x = call->in[0], .weight = &row, .y = &y };

    memcpy(shape, y.shape, (size_t)y.ndim * sizeof *shape);
    memcpy(strides, y.strides, (size_t)y.ndim * sizeof *strides);
    shape[y.ndim] = 1;
    strides[y.ndim++] = 1;
    y.shape = shape;
    y.strides = strides;
    row.ndim = 2;
    row.shape = row_shape;
    row.strides = row_strides;
    if (bias) {
        shift = *bias;
        shift.ndim = 1;
        shift.shape = &one;
        shift.strides = &none;
        l.bias = &shift;
    }
    return compute(call, &l);
}

static tn_status run_linear(const tn_call *call)
{
    if (call->in[1]->ndim == 1)
        return run_row(call);
    struct layer l = { .panels = call->prepared,
                       .x = call->in[0],
                       .weight = call->in[1],
                       .bias = call->n_in > 2 ? call->in[2] : NULL,
                       .y = call->out[0] };
    return compute(call, &l);
}

/* ---- with an activation and a residual ------------------------------------------------------- */

/* Returns the operation of an activation, TN__EW_COUNT if there is none. */
static enum tn__ew follower(const char *activation)
{
    return strcmp(activation, "relu") == 0        ? TN__EW_relu
           : strcmp(activation, "gelu") == 0      ? TN__EW_gelu
           : strcmp(activation, "gelu_tanh") == 0 ? TN__EW_gelu_tanh
           : strcmp(activation, "silu") == 0      ? TN__EW_silu
                                                  : TN__EW_COUNT;
}

/* Returns whether each row of `view` is contiguous and all rows are equally far apart; *at is then
 * the first address, *step the distance of rows in bytes. */
static bool find_rows(const tn_view *view, char **at, int64_t *step)
{
    int64_t rows, stride;
    if ((view->shape[view->ndim - 1] > 1 && view->strides[view->ndim - 1] != 1) ||
        !as_rows(view, &rows, &stride))
        return false;
    *at = tn__view_at(view);
    *step = stride * tn__view_item(view);
    return true;
}

/* Applies the activation to z and adds the residual in separate passes over the result, for
 * products that could not do it themselves. */
static tn_status follow(const tn_call *call, enum tn__ew op, const tn_view *z,
                        const tn_view *residual)
{
    const tn_view *in[2] = { z, z }, *y = call->out[0];
    tn_call pass = *call;
    tn_status status = TN_OK;
    pass.in = in;
    if (op != TN__EW_COUNT)
        status = tn__elementwise_run(&pass, op, 1, NULL);
    if (residual && status == TN_OK) {
        in[0] = y;
        in[1] = residual;
        status = tn__elementwise_run(&pass, TN__EW_add, 2, NULL);
    }
    return status;
}

static tn_status run_linear_activation(const tn_call *call)
{
    const tn_linear_activation_options *o = call->options;
    const tn_view *y = call->out[0], *before = call->out[1], *residual = call->in[3];
    enum tn__ew op = follower(o->activation);
    tn_dtype dtype = tn_view_dtype(y);
    struct tn__finish finish = { 0 };
    struct layer l = { .panels = call->prepared,
                       .x = call->in[0],
                       .weight = call->in[1],
                       .bias = call->in[2],
                       .y = y };
    bool kept = before->ndim == y->ndim && tn__span_view_count(before) == tn__span_view_count(y) &&
                (op == TN__EW_gelu || op == TN__EW_gelu_tanh || op == TN__EW_silu || residual);
    char *at;
    int64_t step;

    if (tn__span_view_count(y) == 0)
        return TN_OK;
    if (kept && op != TN__EW_COUNT)
        l.y = before;
    if ((dtype == TN_F32 || dtype == TN_F64) && (op != TN__EW_COUNT || residual) &&
        find_rows(l.y, &at, &step) && (l.y == y || find_rows(y, &finish.into, &finish.into_row)) &&
        (!residual || find_rows(residual, &at, &finish.residual_row))) {
        finish.residual = residual ? at : NULL;
        finish.loop = op != TN__EW_COUNT ? tn__loop_of(op, tn__dtype_ct(dtype)) : NULL;
        l.finish = &finish;
    }
    tn_status status = compute(call, &l);
    if (status == TN_OK && !l.finished)
        status = follow(call, op, l.y, residual);
    return status;
}

static const tn_kernel_def kernels[] = {
    /* Both have the same functions, so that they share the kept weights. */
    TN__KERNEL_KEEPS(linear, TN__FLOATS, .weights = 2, .prepare_key = key_linear,
                     .prepare = prepare_linear, .release = release),
    TN__KERNEL_KEEPS(linear_activation, TN__FLOATS, .weights = 2, .prepare_key = key_linear,
                     .prepare = prepare_linear, .release = release),
};
TN__KERNEL_TABLE(linear);
