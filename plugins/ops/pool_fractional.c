/* SPDX-License-Identifier: MIT
 *
 * Max pooling with windows at random positions. */
#include "formula.h"
enum { MOST = 3 };

static tn_status fractional_infer(tn_infer *infer, int32_t dims, tn_ints kernel, tn_ints output)
{
    const tn_view *x = infer->in[0], *samples = infer->in[1];
    int32_t before = x->ndim - dims;
    char text[TN__TEXT], text_s[TN__TEXT], text_k[TN__TEXT], text_o[TN__TEXT];
    bool fits = (before == 1 || before == 2) && samples->ndim == before + 1 &&
                samples->shape[before] == dims;

    for (int32_t d = 0; fits && d < before; d++)
        fits = samples->shape[d] == x->shape[d];
    if (!fits)
        return tn_fail(
            TN_ERR_VALUE,
            "x or samples: wrong shape, got %s and %s; expected x with %d dimensions after "
            "[N, C] or [C], and samples [N, C, %d] or [C, %d]",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_s, tn__common_shape(samples)), (int)dims, (int)dims, (int)dims);
    for (int32_t d = 1; d < x->ndim; d++)
        if (x->shape[d] == 0)
            return tn_fail(TN_ERR_RUNTIME,
                           "x: empty images, got %s; only the first dimension may be empty",
                           tn__common_text(text, tn__common_shape(x)));
    fits = kernel.count == dims && output.count == dims;
    for (int32_t d = 0; fits && d < dims; d++)
        fits = kernel.at[d] > 0 && output.at[d] > 0 && kernel.at[d] <= x->shape[before + d] &&
               output.at[d] <= x->shape[before + d] - kernel.at[d] + 1;
    if (!fits)
        return tn_fail(
            TN_ERR_VALUE,
            "kernel_size or output_size: wrong count or value, got %s and %s for x %s; expected %d "
            "numbers of at least 1 in each, output_size + kernel_size - 1 at most x's size",
            tn__common_text(text_k, kernel), tn__common_text(text_o, output),
            tn__common_text(text, tn__common_shape(x)), (int)dims);
    tn__common_open(infer);
    infer->out[1].dtype = TN_I64;
    return TN_OK;
}

/* Returns the first index of each window along one dimension, int64 [N, C, outputs]. */
static tn_tensor *begins(tn_tensor *sample, int64_t size, int64_t kernel, int64_t outputs)
{
    double alpha = outputs > 1 ? (double)(size - kernel) / (double)(outputs - 1) : 0;
    tn_tensor *i, *at, *last;

    if (sample == NULL)
        return NULL;
    i = tn_arange(sample, 0, outputs, 1, tn_tensor_dtype(sample));
    /* The last window ends at the end of the image. */
    last = tn_ge(tn_arange(sample, 0, outputs, 1, TN_I64),
                 tn_tensor_full(TN_SCALAR_SHAPE, outputs - 1, TN_I64, tn_tensor_device(sample)));
    at = minus(tn_trunc(tn_mul_scalar(plus(i, sample), alpha)),
               tn_trunc(tn_mul_scalar(sample, alpha)));
    return tn_cast(tn_where(last, number(at, (double)(size - kernel)), at), TN_I64);
}

static tn_status fractional(tn_tensor *const *in, int32_t dims, tn_ints kernel, tn_ints output,
                            tn_tensor **out)
{
    bool batched = tn_tensor_ndim(in[0]) == dims + 2;
    tn_tensor *x = batched ? in[0] : tn_unsqueeze(in[0], 0), *flat, *at = NULL, *most, *which;
    tn_tensor *samples = tn_detach(batched ? in[1] : tn_unsqueeze(in[1], 0));
    int64_t n, c, windows = 1, inside = 1, wide[2 + 2 * MOST], shape[2 + MOST];

    if (x == NULL || samples == NULL)
        return tn_error_last_code();
    n = tn_tensor_size(x, 0);
    c = tn_tensor_size(x, 1);
    /* The index of every element of every window, [N, C, o..., k...], is the sum over the
     * dimensions of the index along each. */
    for (int32_t d = 0; d < dims; d++) {
        int64_t size = tn_tensor_size(x, 2 + d);
        /* For 2-d images PyTorch stores the sample of the width before that of the height; for
         * volumes the order is depth, height, width. */
        tn_tensor *sample = tn_unsqueeze(tn_select(samples, 2, dims == 2 ? 1 - d : d), 2), *part;

        part = plus(tn_unsqueeze(begins(sample, size, kernel.at[d], output.at[d]), 3),
                    tn_arange(samples, 0, kernel.at[d], 1, TN_I64));
        wide[0] = n;
        wide[1] = c;
        for (int32_t i = 0; i < dims; i++) {
            wide[2 + i] = i == d ? output.at[d] : 1;
            wide[2 + dims + i] = i == d ? kernel.at[d] : 1;
        }
        part = tn_reshape(part, (tn_ints){ wide, 2 + 2 * dims });
        at = d == 0 ? part : plus(tn_mul_scalar(at, size), part);
        windows = tn__common_times(windows, output.at[d]);
        inside = tn__common_times(inside, kernel.at[d]);
    }
    at = tn_reshape(at, TN_SHAPE(n, c, tn__common_times(windows, inside)));
    flat = tn_flatten(x, 2, -1);
    if (tn_max_dim(tn_reshape(tn_gather(tn_detach(flat), at, 2), TN_SHAPE(n, c, windows, inside)),
                   3, &most, &which, true) != TN_OK)
        return tn_error_last_code();
    at = tn_select(tn_gather(tn_reshape(at, TN_SHAPE(n, c, windows, inside)), which, 3), 3, 0);
    shape[0] = n;
    shape[1] = c;
    memcpy(shape + 2, output.at, (size_t)dims * sizeof *shape);
    {
        tn_ints to = { batched ? shape : shape + 1, dims + (batched ? 2 : 1) };

        out[0] = tn_reshape(tn_gather(flat, at, 2), to);
        out[1] = tn_reshape(at, to);
    }
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last_code();
}

COMPOSED(fractional_max_pool2d, fractional_infer(infer, 2, o->kernel_size, o->output_size),
         fractional(in, 2, o->kernel_size, o->output_size, out));
COMPOSED(fractional_max_pool3d, fractional_infer(infer, 3, o->kernel_size, o->output_size),
         fractional(in, 3, o->kernel_size, o->output_size, out));
