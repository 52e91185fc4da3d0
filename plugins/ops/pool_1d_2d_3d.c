/* SPDX-License-Identifier: MIT
 *
 * The pooling operators that programs call, for one to three dimensions, with or without a batch
 * dimension N. All are decomposed, most of them into the primitives of pool.c. */
#include "window.h"

static tn_status image_open(tn_infer *infer, int32_t dims)
{
    const tn_view *x = infer->in[0];
    tn_status status = tn__window_check(x, dims);
    char text[TN__TEXT];

    if (status != TN_OK)
        return status;
    for (int32_t d = x->ndim - dims - 1; d < x->ndim; d++)
        if (x->shape[d] < 1)
            return tn_fail(TN_ERR_RUNTIME, "x: wrong shape, got %s; expected no size of 0 except N",
                           tn__common_text(text, tn__common_shape(x)));
    status = tn__common_open(infer);
    if (status == TN_OK && infer->n_out > 1)
        infer->out[1].dtype = TN_I64;
    return status;
}

static tn_status two_given(tn_tensor **out, int32_t n_out, tn_tensor **result, int32_t dims,
                           const tn_tensor *x)
{
    for (int32_t i = 0; i < n_out; i++) {
        out[i] = tn__window_unbatched(result[i], dims, x);
        if (out[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* ---- max_pool and avg_pool ---- */

static tn_status max_pooled(tn_tensor *const *in, int32_t dims, const tn_max_pool_options *o,
                            tn_tensor **out, int32_t n_out)
{
    tn_tensor *both[2];
    tn_status status = tn_max_pool(tn__window_batched(in[0], dims), o->kernel, &both[0], &both[1],
                                   o->stride, o->padding, o->dilation, o->ceil_mode);

    return status != TN_OK ? status : two_given(out, n_out, both, dims, in[0]);
}

/* Options of max_pool from the options `o` of max_pool1d, max_pool2d or max_pool3d. */
#define MAX_OPTIONS                                                                                \
    &(tn_max_pool_options)                                                                         \
    {                                                                                              \
        .size = (uint32_t)sizeof(tn_max_pool_options), .kernel = o->kernel, .stride = o->stride,   \
        .padding = o->padding, .dilation = o->dilation, .ceil_mode = o->ceil_mode                  \
    }

COMPOSED(max_pool1d, image_open(infer, 1), max_pooled(in, 1, MAX_OPTIONS, out, 1));
COMPOSED(max_pool2d, image_open(infer, 2), max_pooled(in, 2, MAX_OPTIONS, out, 1));
COMPOSED(max_pool3d, image_open(infer, 3), max_pooled(in, 3, MAX_OPTIONS, out, 1));
COMPOSED(max_pool1d_with_indices, image_open(infer, 1), max_pooled(in, 1, MAX_OPTIONS, out, 2));
COMPOSED(max_pool2d_with_indices, image_open(infer, 2), max_pooled(in, 2, MAX_OPTIONS, out, 2));
COMPOSED(max_pool3d_with_indices, image_open(infer, 3), max_pooled(in, 3, MAX_OPTIONS, out, 2));

static tn_status avg_pooled(tn_tensor *const *in, int32_t dims, tn_ints kernel,
                            const tn_avg_pool_options *o, tn_tensor **out)
{
    return tn__common_given(
        out, tn__window_unbatched(tn_avg_pool(tn__window_batched(in[0], dims), kernel, o->stride,
                                              o->padding, o->ceil_mode, o->count_include_pad,
                                              o->divisor_override),
                                  dims, in[0]));
}

#define AVG_OPTIONS                                                                                \
    &(tn_avg_pool_options)                                                                         \
    {                                                                                              \
        .size = (uint32_t)sizeof(tn_avg_pool_options), .stride = o->stride, .padding = o->padding, \
        .ceil_mode = o->ceil_mode, .count_include_pad = o->count_include_pad,                      \
        .divisor_override = o->divisor_override                                                    \
    }

COMPOSED(avg_pool1d, image_open(infer, 1), avg_pooled(in, 1, o->kernel, AVG_OPTIONS, out));
COMPOSED(avg_pool2d, image_open(infer, 2), avg_pooled(in, 2, o->kernel, AVG_OPTIONS, out));
COMPOSED(avg_pool3d, image_open(infer, 3), avg_pooled(in, 3, o->kernel, AVG_OPTIONS, out));

/* ---- adaptive pooling ---- */

/* Windows of different sizes are gathered by index. This many elements in the windows along one
 * dimension need 2 GiB of indices; a larger output_size is probably a mistake, so it is an
 * error. */
enum { MOST_CHOSEN = 1 << 28 };

static tn_status adaptive_size(tn_tensor *x, tn_ints given, int32_t dims, int64_t *out)
{
    tn_status status = tn__window_row(given, dims, -1, -1, "output_size", out);
    int64_t shape[2 + TN__WINDOW_DIMS] = { tn_tensor_size(x, 0), tn_tensor_size(x, 1) };
    bool even = true; /* in all dimensions: then the windows are those of an ordinary pooling */
    char text[TN__TEXT];

    if (given.count < 1)
        return tn_fail(TN_ERR_VALUE, "output_size: wrong count, got %s; expected 1 or %d numbers",
                       tn__common_text(text, given), (int)dims);
    for (int32_t i = 0; i < dims && status == TN_OK; i++) {
        int64_t size = tn_tensor_size(x, 2 + i);

        if (out[i] == -1)
            out[i] = size;
        if (size < 1)
            return tn_fail(TN_ERR_RUNTIME,
                           "x: wrong shape, got %s; expected no dimension of size 0",
                           tn__common_text(text, tn_tensor_shape(x)));
        even = even && out[i] > 0 && size % out[i] == 0;
    }
    for (int32_t i = 0; i < dims && status == TN_OK && !even; i++) {
        int64_t size = tn_tensor_size(x, 2 + i);

        if (out[i] > 0 && out[i] > MOST_CHOSEN / ((size - 1) / out[i] + 2))
            return tn_fail(
                TN_ERR_VALUE,
                "output_size: too large, got %s: the windows of image dimension %d (size %lld) "
                "have more than %lld elements in all; expected divisors of all sizes, or smaller "
                "numbers",
                tn__common_text(text, given), (int)i, (long long)size, (long long)MOST_CHOSEN);
    }
    for (int32_t i = 0; i < dims && status == TN_OK; i++)
        shape[2 + i] = out[i];
    if (status == TN_OK && tn__common_count((tn_ints){ shape, 2 + dims }) > (int64_t)1 << 48)
        return tn_fail(TN_ERR_VALUE,
                       "output_size: too large, got %s; expected a result of at most 2^48 elements",
                       tn__common_text(text, given));
    return status;
}

/* Window i begins at floor(i * size / count) and ends before ceil((i + 1) * size / count). */
static int64_t begin_of(int64_t i, int64_t size, int64_t count)
{
    return i * size / count;
}

static int64_t end_of(int64_t i, int64_t size, int64_t count)
{
    return ((i + 1) * size + count - 1) / count;
}

/* The begin of each window, or the end of each if `ends`, computed on the device of `like` */
static tn_tensor *bounds(tn_tensor *like, int64_t size, int64_t count, bool ends)
{
    tn_tensor *i;

    i = tn_mul_scalar(tn_arange(like, ends ? 1 : 0, count + (ends ? 1 : 0), 1, TN_I64), size);
    if (ends)
        i = tn_add_scalar(i, count - 1);
    return i == NULL
               ? NULL
               : tn_div(i,
                        tn_tensor_full(TN_SHAPE(), (double)count, TN_I64, tn_tensor_device(like)),
                        "floor");
}

static int64_t longest_of(int64_t size, int64_t count)
{
    int64_t longest = 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t length = end_of(i, size, count) - begin_of(i, size, count);

        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Returns the windows along `dim`: [.., size, ..] to [.., count, longest, ..]. Shorter windows
 * repeat their last element, which does not change the maximum. */
static tn_tensor *windows_along(tn_tensor *x, int64_t dim, int64_t size, int64_t count)
{
    int64_t longest = longest_of(size, count), shape[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(x);
    tn_tensor *places, *last;

    places = tn_add(tn_unsqueeze(bounds(x, size, count, false), 1),
                    tn_arange(x, 0, longest, 1, TN_I64));
    last = tn_unsqueeze(tn_add_scalar(bounds(x, size, count, true), -1), 1);
    x = tn_index_select(x, tn_reshape(tn_minimum(places, last), TN_SHAPE(count * longest)), dim);
    if (x == NULL)
        return NULL;
    for (int32_t i = 0, j = 0; i < ndim; i++) {
        if (i == dim) {
            shape[j++] = count;
            shape[j++] = longest;
        } else {
            shape[j++] = tn_tensor_size(x, i);
        }
    }
    return tn_reshape(x, (tn_ints){ shape, ndim + 1 });
}

/* Returns the mean of each window along one dimension. Adds each element only to the windows that
 * contain it, so that an infinity does not affect other windows. There are at most size + count
 * pairs of element and window. `first` has one pair for each element (or for each window if there
 * are more windows than elements); `from` and `to` have the remaining pairs. */
static tn_tensor *mean_along(tn_tensor *x, int64_t dim, int64_t count)
{
    int64_t size = tn_tensor_size(x, dim), shape[TN_MAX_DIMS], ones[TN_MAX_DIMS], shared = 0;
    int32_t ndim = tn_tensor_ndim(x);
    int64_t *row;
    tn_tensor *first = NULL, *from = NULL, *to = NULL, *length = NULL, *y;

    if (count == size)
        return x;
    row = tn_calloc((size_t)tn__common_plus(size, count), 4 * sizeof *row);
    if (row != NULL) {
        int64_t *element = row + size + count, *window = element + size + count,
                *lengths = window + size + count, reached = 0;

        for (int64_t i = 0; i < count; i++) {
            int64_t begin = begin_of(i, size, count), end = end_of(i, size, count);

            lengths[i] = end - begin;
            if (count > size)
                row[i] = begin;
            for (int64_t e = begin; e < end; e++)
                if (count > size ? e > begin : e < reached) {
                    element[shared] = e;
                    window[shared++] = i;
                } else if (count <= size) {
                    row[e] = i;
                }
            reached = end;
        }
        first = tn__common_placed(row, count > size ? count : size, TN_I64, x);
        from = tn__common_placed(element, shared, TN_I64, x);
        to = tn__common_placed(window, shared, TN_I64, x);
        length = tn_cast(tn__common_placed(lengths, count, TN_I64, x), tn_tensor_dtype(x));
    }
    tn_free(row);
    if (first == NULL || from == NULL || to == NULL || length == NULL)
        return NULL;
    for (int32_t i = 0; i < ndim; i++) {
        shape[i] = i == dim ? count : tn_tensor_size(x, i);
        ones[i] = i == dim ? count : 1;
    }
    y = count > size ? tn_index_select(x, first, dim)
                     : tn_index_add(tn__common_zeros(x, (tn_ints){ shape, ndim }), first, x, dim);
    if (shared > 0)
        y = tn_index_add(y, to, tn_index_select(x, from, dim), dim);
    return tn_div(y, tn_reshape(length, (tn_ints){ ones, ndim }));
}

static tn_status mean_adaptive(tn_tensor *const *in, int32_t dims, tn_ints given, tn_tensor **out)
{
    tn_tensor *x = tn__window_batched(in[0], dims);
    int64_t count[TN__WINDOW_DIMS], kernel[TN__WINDOW_DIMS];
    tn_dtype dtype = tn_tensor_dtype(in[0]);
    bool even = true, narrow = tn__common_narrow(in[0]);

    if (x == NULL || adaptive_size(x, given, dims, count) != TN_OK)
        return tn_error_last_code();
    for (int32_t i = 0; i < dims; i++) {
        even &= count[i] > 0 && tn_tensor_size(x, 2 + i) % count[i] == 0;
        kernel[i] = count[i] > 0 ? tn_tensor_size(x, 2 + i) / count[i] : 0;
    }
    if (even)
        x = tn_avg_pool(x, ((tn_ints){ kernel, dims }));
    else if (narrow) /* sums are computed in float32 */
        x = tn_cast(x, TN_F32);
    for (int32_t i = 0; i < dims && !even && x != NULL; i++)
        x = count[i] > 0 ? mean_along(x, 2 + i, count[i]) : tn_narrow(x, 2 + i, 0, 0);
    if (!even && narrow && x != NULL)
        x = tn_cast(x, dtype);
    x = tn__window_unbatched(x, dims, in[0]);
    return tn__common_given(out, x == in[0] ? tn_copy(x) : x);
}

/* Returns the tensor [n, c, size...] as [n, c, count..., elements of a window]. */
static tn_tensor *adaptive_windows(tn_tensor *x, int32_t dims, const int64_t *count)
{
    int64_t order[2 + 2 * TN__WINDOW_DIMS] = { 0, 1 };

    for (int32_t i = 0; i < dims && x != NULL; i++) {
        x = windows_along(x, 2 + 2 * i, tn_tensor_size(x, 2 + 2 * i), count[i]);
        order[2 + i] = 2 + 2 * i;
        order[2 + dims + i] = 3 + 2 * i;
    }
    return tn_flatten(tn_permute(x, (tn_ints){ order, 2 + 2 * dims }), 2 + dims, -1);
}

static tn_status max_adaptive(tn_tensor *const *in, int32_t dims, tn_ints given, tn_tensor **out,
                              int32_t n_out)
{
    tn_tensor *x = tn__window_batched(in[0], dims), *windows, *places, *both[2], *which;
    int64_t count[TN__WINDOW_DIMS], kernel[TN__WINDOW_DIMS], shape[2 + TN__WINDOW_DIMS] = { 1, 1 },
                                                                       all = 1, last = 2 + dims;
    bool even = true, empty = false;
    tn_status status;

    if (x == NULL || adaptive_size(x, given, dims, count) != TN_OK)
        return tn_error_last_code();
    for (int32_t i = 0; i < dims; i++) {
        int64_t size = tn_tensor_size(x, 2 + i);

        even &= count[i] > 0 && size % count[i] == 0;
        kernel[i] = count[i] > 0 ? size / count[i] : 0;
        shape[2 + i] = size;
        all = tn__common_times(all, size);
    }
    if (even) {
        status = tn_max_pool(x, ((tn_ints){ kernel, dims }), &both[0], &both[1]);
        return status != TN_OK ? status : two_given(out, n_out, both, dims, in[0]);
    }
    for (int32_t i = 0; i < dims; i++)
        empty |= count[i] < 1;
    if (empty) {
        shape[0] = tn_tensor_size(x, 0);
        shape[1] = tn_tensor_size(x, 1);
        memcpy(shape + 2, count, (size_t)dims * sizeof *shape);
        both[0] = tn__common_zeros(x, (tn_ints){ shape, last });
        both[1] = tn_tensor_full((tn_ints){ shape, last }, 0.0, TN_I64, tn_tensor_device(x));
        return two_given(out, n_out, both, dims, in[0]);
    }
    windows = adaptive_windows(x, dims, count);
    places = adaptive_windows(tn_reshape(tn_arange(x, 0, all), (tn_ints){ shape, last }), dims,
                              count);
    status = tn_max_dim(windows, last, &both[0], &which, true);
    if (status != TN_OK)
        return status;
    both[0] = tn_squeeze(both[0], TN_INTS(last));
    both[1] = tn_squeeze(tn_gather(tn_expand(places, tn_tensor_shape(windows)), which, last),
                         TN_INTS(last));
    return two_given(out, n_out, both, dims, in[0]);
}

COMPOSED(adaptive_avg_pool1d, image_open(infer, 1), mean_adaptive(in, 1, o->output_size, out));
COMPOSED(adaptive_avg_pool2d, image_open(infer, 2), mean_adaptive(in, 2, o->output_size, out));
COMPOSED(adaptive_avg_pool3d, image_open(infer, 3), mean_adaptive(in, 3, o->output_size, out));
COMPOSED(adaptive_max_pool1d, image_open(infer, 1), max_adaptive(in, 1, o->output_size, out, 1));
COMPOSED(adaptive_max_pool2d, image_open(infer, 2), max_adaptive(in, 2, o->output_size, out, 1));
COMPOSED(adaptive_max_pool3d, image_open(infer, 3), max_adaptive(in, 3, o->output_size, out, 1));
COMPOSED(adaptive_max_pool1d_with_indices, image_open(infer, 1),
         max_adaptive(in, 1, o->output_size, out, 2));
COMPOSED(adaptive_max_pool2d_with_indices, image_open(infer, 2),
         max_adaptive(in, 2, o->output_size, out, 2));
COMPOSED(adaptive_max_pool3d_with_indices, image_open(infer, 3),
         max_adaptive(in, 3, o->output_size, out, 2));

/* ---- lp_pool ---- */

/* PyTorch's formula: (sign(y) relu(|y|) n)^(1 / p), with y the mean of x^p over the n elements of a
 * window. sign(y) relu(|y|) equals y, but its gradient is 0 where y is 0. */
static tn_status powers(tn_tensor *const *in, int32_t dims, double p, tn_ints kernel,
                        const tn_avg_pool_options *o, tn_tensor **out)
{
    tn_tensor *x = tn__window_batched(in[0], dims), *y;
    int64_t row[TN__WINDOW_DIMS];

    if (x == NULL || tn__window_row(kernel, dims, 1, 1, "kernel", row) != TN_OK)
        return tn_error_last_code();
    if (p == 0)
        return tn_fail(TN_ERR_VALUE, "p: out of range, got 0; expected any other number");
    y = tn_avg_pool(tn_pow_scalar(x, p), kernel, o->stride, o->padding, o->ceil_mode,
                    o->count_include_pad, o->divisor_override);
    y = tn_mul(tn_sign(y), tn_relu(tn_abs(y)));
    y = tn_pow_scalar(tn_mul_scalar(y, (double)tn__window_product(row, dims)), 1.0 / p);
    return tn__common_given(out, tn__window_unbatched(y, dims, in[0]));
}

#define LP_OPTIONS                                                                                 \
    &(tn_avg_pool_options)                                                                         \
    {                                                                                              \
        .size = (uint32_t)sizeof(tn_avg_pool_options), .stride = o->stride,                        \
        .ceil_mode = o->ceil_mode, .count_include_pad = true, .divisor_override = INT64_MIN        \
    }

COMPOSED(lp_pool1d, image_open(infer, 1), powers(in, 1, o->p, o->kernel, LP_OPTIONS, out));
COMPOSED(lp_pool2d, image_open(infer, 2), powers(in, 2, o->p, o->kernel, LP_OPTIONS, out));
COMPOSED(lp_pool3d, image_open(infer, 3), powers(in, 3, o->p, o->kernel, LP_OPTIONS, out));

/* ---- max_unpool ---- */

static bool same_shape(tn_ints a, tn_ints b)
{
    return a.count == b.count && memcmp(a.at, b.at, (size_t)a.count * sizeof *a.at) == 0;
}

static tn_status unpooled(tn_tensor *const *in, int32_t dims, tn_ints kernel, tn_ints stride,
                          tn_ints padding, tn_ints wanted, tn_tensor **out)
{
    tn_tensor *x = tn__window_batched(in[0], dims), *indices = tn__window_batched(in[1], dims);
    int64_t k[TN__WINDOW_DIMS], s[TN__WINDOW_DIMS], p[TN__WINDOW_DIMS], shape[2 + TN__WINDOW_DIMS],
        all = 1;
    char text[TN__TEXT], text_i[TN__TEXT];

    if (x == NULL || indices == NULL || tn__window_row(kernel, dims, 1, 1, "kernel", k) != TN_OK ||
        tn__window_row(stride.count > 0 ? stride : kernel, dims, 1, 1, "stride", s) != TN_OK ||
        tn__window_row(padding, dims, 0, 0, "padding", p) != TN_OK)
        return tn_error_last_code();
    if (!same_shape(tn_tensor_shape(in[0]), tn_tensor_shape(in[1])))
        return tn_fail(TN_ERR_RUNTIME,
                       "x or indices: wrong shape, got %s and %s; expected the same shape",
                       tn__common_text(text, tn_tensor_shape(in[0])),
                       tn__common_text(text_i, tn_tensor_shape(in[1])));
    /* output_size may also contain N and C in front. */
    if (wanted.count > dims) {
        wanted.at += wanted.count - dims;
        wanted.count = dims;
    }
    if (wanted.count > 0 && wanted.count != dims)
        return tn_fail(TN_ERR_VALUE, "output_size: wrong count, got %s; expected %d numbers",
                       tn__common_text(text, wanted), (int)dims);
    shape[0] = tn_tensor_size(x, 0);
    shape[1] = tn_tensor_size(x, 1);
    for (int32_t i = 0; i < dims; i++) {
        int64_t usual = tn__common_plus(tn__common_times(tn_tensor_size(x, 2 + i) - 1, s[i]),
                                        k[i]) -
                        2 * p[i];
        int64_t least = usual - s[i], most = tn__common_plus(usual, s[i]);

        shape[2 + i] = wanted.count > 0 ? wanted.at[i] : usual;
        if (shape[2 + i] <= least || shape[2 + i] >= most)
            return tn_fail(
                TN_ERR_VALUE,
                "output_size: out of range, got %s; expected %lld to %lld for image dimension %d",
                tn__common_text(text, wanted), (long long)least + 1, (long long)most - 1, (int)i);
        if (__builtin_mul_overflow(all, shape[2 + i], &all))
            return tn_fail(
                TN_ERR_VALUE,
                "kernel, stride or output_size: too large, got a result with size %lld in "
                "image dimension %d; expected less than 2^63 elements in all",
                (long long)shape[2 + i], (int)i);
    }
    x = tn_scatter(tn__common_zeros(x, TN_SHAPE(shape[0], shape[1], all)),
                   tn_flatten(indices, 2, -1), tn_flatten(x, 2, -1), 2);
    return tn__common_given(
        out, tn__window_unbatched(tn_reshape(x, (tn_ints){ shape, 2 + dims }), dims, in[0]));
}

COMPOSED(max_unpool1d, image_open(infer, 1),
         unpooled(in, 1, o->kernel, o->stride, o->padding, o->output_size, out));
COMPOSED(max_unpool2d, image_open(infer, 2),
         unpooled(in, 2, o->kernel, o->stride, o->padding, o->output_size, out));
COMPOSED(max_unpool3d, image_open(infer, 3),
         unpooled(in, 3, o->kernel, o->stride, o->padding, o->output_size, out));
