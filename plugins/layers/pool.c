/* SPDX-License-Identifier: MIT
 *
 * Pooling over windows in one to three dimensions. */
#include "helpers.h"

#include <math.h>

/* The options of all these layers. Each layer uses those that its table lists. */
struct pool {
    double norm_type;
    tn_ints_given kernel_size;
    tn_ints_given stride; /* count <= 0 (None): kernel_size */
    tn_ints_given padding;
    tn_ints_given dilation;
    tn_value output_size;
    int64_t sizes[3]; /* output_size for the operators; -1 (None): size of the input */
    int64_t n_sizes;
    bool return_indices;
    bool ceil_mode;
    bool count_include_pad;
    int64_t divisor_override;
};

#define KERNEL                                                                                     \
    TN_OPTION_ROW(struct pool, kernel_size, NULL, "size of a window", TN_OPTION_KIND_INTS,         \
                  TN_OPTION_REQUIRED | TN_OPTION_LISTS),                                           \
        TN_OPTION_ROW(struct pool, stride, "None", "stride between windows; None: kernel_size",    \
                      TN_OPTION_KIND_INTS, TN_OPTION_OPTIONAL | TN_OPTION_LISTS)
#define PADDING                                                                                    \
    TN_OPTION_ROW(struct pool, padding, "0", "padding on both sides", TN_OPTION_KIND_INTS,         \
                  TN_OPTION_LISTS)
#define CEIL                                                                                       \
    TN_OPTION_ROW(struct pool, ceil_mode, "False",                                                 \
                  "whether the last window may extend beyond the end", TN_OPTION_KIND_BOOL, 0)
#define INDICES                                                                                    \
    TN_OPTION_ROW(struct pool, return_indices, "False", "also returns the indices of the maxima",  \
                  TN_OPTION_KIND_BOOL, 0)

static const tn_option max_options[] = { KERNEL,
                                         PADDING,
                                         TN_OPTION_ROW(struct pool, dilation, "1",
                                                       "spacing of the elements of a window",
                                                       TN_OPTION_KIND_INTS, TN_OPTION_LISTS),
                                         INDICES,
                                         CEIL,
                                         TN_OPTION_END };
static const tn_option line_options[] = { /* AvgPool1d has no divisor_override */
                                          KERNEL, PADDING, CEIL,
                                          TN_OPTION_ROW(struct pool, count_include_pad, "True",
                                                        "whether the zeros of the padding count",
                                                        TN_OPTION_KIND_BOOL, 0),
                                          TN_OPTION_END
};
static const tn_option avg_options[] = {
    KERNEL,
    PADDING,
    CEIL,
    TN_OPTION_ROW(struct pool, count_include_pad, "True", "whether the zeros of the padding count",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct pool, divisor_override, "None",
                  "divisor of the sums; None: the number of elements", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_END
};
#define OUTPUT                                                                                     \
    TN_OPTION_ROW(                                                                                 \
        struct pool, output_size, NULL,                                                            \
        "size of the result, one number or one for each dimension; None: size of the input",       \
        TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED)
static const tn_option adaptive_options[] = { OUTPUT, TN_OPTION_END };
static const tn_option adaptive_max_options[] = { OUTPUT, INDICES, TN_OPTION_END };
static const tn_option lp_options[] = { TN_OPTION_ROW(struct pool, norm_type, NULL,
                                                      "the exponent p", TN_OPTION_KIND_FLOAT,
                                                      TN_OPTION_REQUIRED),
                                        KERNEL, CEIL, TN_OPTION_END };

static const tn_ints_given *stride_given(const struct pool *s)
{
    return s->stride.row.count > 0 ? &s->stride : &s->kernel_size;
}

static tn_ints stride_of(const struct pool *s)
{
    return stride_given(s)->row;
}

/* ---- building ---- */

static tn_status row_fits(tn_module *self, const char *option, tn_ints row, int64_t dims)
{
    if (row.count == 1 || row.count == dims)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s: wrong count, got %lld; expected 1 or %lld numbers",
                   tn_module_type(self), option, (long long)row.count, (long long)dims);
}

static tn_status pool_build(tn_module *self)
{
    int64_t dims = layers_dims(self);
    const struct pool *s = tn_module_data(self);
    tn_status status = row_fits(self, "kernel_size", s->kernel_size.row, dims);

    if (status == TN_OK && s->stride.row.count > 0)
        status = row_fits(self, "stride", s->stride.row, dims);
    if (status == TN_OK && s->padding.row.at != NULL)
        status = row_fits(self, "padding", s->padding.row, dims);
    if (status == TN_OK && s->dilation.row.at != NULL)
        status = row_fits(self, "dilation", s->dilation.row, dims);
    return status;
}

static tn_status adaptive_build(tn_module *self)
{
    int64_t dims = layers_dims(self);
    struct pool *s = tn_module_data(self);
    const tn_value *v = &s->output_size;
    bool row = v->kind == TN_VALUE_LIST || v->kind == TN_VALUE_TUPLE;
    int64_t count = row ? (int64_t)v->count : 1;
    bool good = count == 1 || count == dims;
    char got[80];

    for (int64_t i = 0; i < count && good; i++) {
        const tn_value *at = row ? &v->as.list[i] : v;

        good = at->kind == TN_VALUE_NONE || (at->kind == TN_VALUE_INT && at->as.i >= 0);
        s->sizes[i] = at->kind == TN_VALUE_NONE ? -1 : at->as.i;
    }
    s->n_sizes = count;
    if (good)
        return TN_OK;
    if (count != 1 && count != dims)
        return tn_fail(TN_ERR_VALUE,
                       "%s: output_size: wrong count, got %lld sizes; expected 1 or %lld",
                       tn_module_type(self), (long long)count, (long long)dims);
    layers_put_value(&(layers_text){ .out = got, .size = sizeof got }, v);
    return tn_fail(TN_ERR_VALUE,
                   "%s: output_size: wrong size, got %s; expected 0 or more, or None for the size "
                   "of the input",
                   tn_module_type(self), got);
}

static tn_ints output_of(const struct pool *s)
{
    return (tn_ints){ s->sizes, s->n_sizes };
}

/* ---- repr ---- */

static const char *true_or_false(bool value)
{
    return value ? "True" : "False";
}

/* PyTorch's pools print their numbers as they were given; AvgPool1d prints tuples. */
static void put_given(layers_text *text, const tn_ints_given *given, int64_t dims)
{
    if (!given->list || dims > 0) {
        layers_put_row(text, given->row, dims);
        return;
    }
    for (int64_t i = 0; i < given->row.count; i++)
        layers_put(text, "%s%lld", i > 0 ? ", " : "[", (long long)given->row.at[i]);
    layers_put(text, "]");
}

static int64_t max_repr(tn_module *self, char *out, size_t size)
{
    const struct pool *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "kernel_size=");
    put_given(&text, &s->kernel_size, 0);
    layers_put(&text, ", stride=");
    put_given(&text, stride_given(s), 0);
    layers_put(&text, ", padding=");
    put_given(&text, &s->padding, 0);
    layers_put(&text, ", dilation=");
    put_given(&text, &s->dilation, 0);
    layers_put(&text, ", ceil_mode=%s", true_or_false(s->ceil_mode));
    return text.used;
}

/* AvgPool1d prints its numbers in parentheses, as in PyTorch. */
static int64_t avg_repr(tn_module *self, char *out, size_t size)
{
    const struct pool *s = tn_module_data(self);
    int64_t dims = layers_dims(self) == 1 ? 1 : 0;
    layers_text text = { out, size, 0 };

    layers_put(&text, "kernel_size=");
    put_given(&text, &s->kernel_size, dims);
    layers_put(&text, ", stride=");
    put_given(&text, stride_given(s), dims);
    layers_put(&text, ", padding=");
    put_given(&text, &s->padding, dims);
    return text.used;
}

static void put_size(layers_text *text, int64_t size)
{
    if (size < 0)
        layers_put(text, "None");
    else
        layers_put(text, "%lld", (long long)size);
}

static int64_t adaptive_repr(tn_module *self, char *out, size_t size)
{
    const struct pool *s = tn_module_data(self);
    layers_text text = { out, size, 0 };
    bool one = s->output_size.kind != TN_VALUE_LIST && s->output_size.kind != TN_VALUE_TUPLE;

    layers_put(&text, one ? "output_size=" : "output_size=(");
    for (int64_t i = 0; i < s->n_sizes; i++) {
        layers_put(&text, i > 0 ? ", " : "");
        put_size(&text, s->sizes[i]);
    }
    layers_put(&text, one ? "" : s->n_sizes == 1 ? ",)" : ")");
    return text.used;
}

static int64_t lp_repr(tn_module *self, char *out, size_t size)
{
    const struct pool *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    if (fabs(s->norm_type) < 0x1p63 && s->norm_type == trunc(s->norm_type))
        layers_put(&text, "norm_type=%lld, kernel_size=", (long long)s->norm_type);
    else
        layers_put(&text, "norm_type=%g, kernel_size=", s->norm_type);
    put_given(&text, &s->kernel_size, 0);
    layers_put(&text, ", stride=");
    if (s->stride.row.count > 0)
        put_given(&text, &s->stride, 0);
    else
        layers_put(&text, "None");
    layers_put(&text, ", ceil_mode=%s", true_or_false(s->ceil_mode));
    return text.used;
}

/* ---- maxima ---- */

/* Returns the only input of a call. Returns NULL and sets the error if there is not exactly one. */
static tn_tensor *one_tensor(const tn_pack *input)
{
    if (tn_pack_count(input) == 1)
        return tn_pack_tensor(input, 0);
    (void)tn_fail(TN_ERR_TYPE, "inputs: wrong number, got %lld; expected 1",
                  (long long)tn_pack_count(input));
    return NULL;
}

/* Adds the result y, and the indices unless they are TN_NONE. */
static tn_status give(tn_pack *output, tn_tensor *y, tn_tensor *indices)
{
    tn_status status = y == NULL || indices == NULL ? tn_error_last_code()
                                                    : tn_pack_add(output, NULL, tn_value_tensor(y));

    return status != TN_OK || indices == TN_NONE
               ? status
               : tn_pack_add(output, NULL, tn_value_tensor(indices));
}

/* For each number of dimensions, the operator with the options of the layer. */
typedef tn_tensor *pool_op(const struct pool *s, tn_tensor *x);
typedef tn_status pool_with_indices_op(const struct pool *s, tn_tensor *x, tn_tensor **y,
                                       tn_tensor **indices);

#define MAX_WINDOW stride_of(s), s->padding.row, s->dilation.row, s->ceil_mode
#define MAX_POOL(op)                                                                               \
    static tn_tensor *op(const struct pool *s, tn_tensor *x)                                       \
    {                                                                                              \
        return tn_##op(x, s->kernel_size.row, MAX_WINDOW);                                         \
    }
#define MAX_POOL_WITH_INDICES(op)                                                                  \
    static tn_status op(const struct pool *s, tn_tensor *x, tn_tensor **y, tn_tensor **indices)    \
    {                                                                                              \
        return tn_##op(x, s->kernel_size.row, y, indices, MAX_WINDOW);                             \
    }
MAX_POOL(max_pool1d)
MAX_POOL(max_pool2d)
MAX_POOL(max_pool3d)
MAX_POOL_WITH_INDICES(max_pool1d_with_indices)
MAX_POOL_WITH_INDICES(max_pool2d_with_indices)
MAX_POOL_WITH_INDICES(max_pool3d_with_indices)

static tn_status max_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static pool_op *const max_pool[] = { max_pool1d, max_pool2d, max_pool3d };
    static pool_with_indices_op *const with_indices[] = { max_pool1d_with_indices,
                                                          max_pool2d_with_indices,
                                                          max_pool3d_with_indices };
    const struct pool *s = tn_module_data(self);
    int dims = layers_dims(self);
    tn_tensor *x = one_tensor(input), *y, *indices;
    tn_status status;

    if (x == NULL)
        return tn_error_last_code();
    if (!s->return_indices)
        return give(output, max_pool[dims - 1](s, x), TN_NONE);
    status = with_indices[dims - 1](s, x, &y, &indices);
    return status != TN_OK ? status : give(output, y, indices);
}

static tn_status adaptive_max_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static tn_tensor *(*const max_pool[])(tn_tensor *, tn_ints) = { tn_adaptive_max_pool1d,
                                                                    tn_adaptive_max_pool2d,
                                                                    tn_adaptive_max_pool3d };
    static tn_status (*const with_indices[])(tn_tensor *, tn_ints, tn_tensor **, tn_tensor **) = {
        tn_adaptive_max_pool1d_with_indices, tn_adaptive_max_pool2d_with_indices,
        tn_adaptive_max_pool3d_with_indices
    };
    const struct pool *s = tn_module_data(self);
    int dims = layers_dims(self);
    tn_tensor *x = one_tensor(input), *y, *indices;
    tn_status status;

    if (x == NULL)
        return tn_error_last_code();
    if (!s->return_indices)
        return give(output, max_pool[dims - 1](x, output_of(s)), TN_NONE);
    status = with_indices[dims - 1](x, output_of(s), &y, &indices);
    return status != TN_OK ? status : give(output, y, indices);
}

/* ---- means and power means ---- */

#define AVG_POOL(op, divisor)                                                                      \
    static tn_tensor *op(const struct pool *s, tn_tensor *x)                                       \
    {                                                                                              \
        return tn_##op(x, s->kernel_size.row, stride_of(s), s->padding.row, s->ceil_mode,          \
                       s->count_include_pad, divisor);                                             \
    }
AVG_POOL(avg_pool1d, INT64_MIN)
AVG_POOL(avg_pool2d, s->divisor_override)
AVG_POOL(avg_pool3d, s->divisor_override)

static tn_tensor *avg_forward(tn_module *self, tn_tensor *x)
{
    static pool_op *const avg_pool[] = { avg_pool1d, avg_pool2d, avg_pool3d };

    return avg_pool[layers_dims(self) - 1](tn_module_data(self), x);
}

static tn_tensor *adaptive_avg_forward(tn_module *self, tn_tensor *x)
{
    static tn_tensor *(*const avg_pool[])(tn_tensor *, tn_ints) = { tn_adaptive_avg_pool1d,
                                                                    tn_adaptive_avg_pool2d,
                                                                    tn_adaptive_avg_pool3d };

    return avg_pool[layers_dims(self) - 1](x, output_of(tn_module_data(self)));
}

#define LP_POOL(op)                                                                                \
    static tn_tensor *op(const struct pool *s, tn_tensor *x)                                       \
    {                                                                                              \
        return tn_##op(x, s->norm_type, s->kernel_size.row, stride_of(s), s->ceil_mode);           \
    }
LP_POOL(lp_pool1d)
LP_POOL(lp_pool2d)
LP_POOL(lp_pool3d)

static tn_tensor *lp_forward(tn_module *self, tn_tensor *x)
{
    static pool_op *const lp_pool[] = { lp_pool1d, lp_pool2d, lp_pool3d };

    return lp_pool[layers_dims(self) - 1](tn_module_data(self), x);
}

/* ---- the layers ---- */

#define MAX                                                                                        \
    .help = "the maximum of each window", .options = max_options,                                  \
    .data_size = sizeof(struct pool), .build = pool_build, .call = max_call, .repr = max_repr
LAYER(max_pool1d, "MaxPool1d", MAX);
LAYER(max_pool2d, "MaxPool2d", MAX);
LAYER(max_pool3d, "MaxPool3d", MAX);

#define AVG                                                                                        \
    .help = "the mean of each window", .data_size = sizeof(struct pool), .build = pool_build,      \
    .forward = avg_forward, .repr = avg_repr
LAYER(avg_pool1d, "AvgPool1d", AVG, .options = line_options);
LAYER(avg_pool2d, "AvgPool2d", AVG, .options = avg_options);
LAYER(avg_pool3d, "AvgPool3d", AVG, .options = avg_options);

#define ADAPTIVE_AVG                                                                               \
    .help = "the mean of windows that divide the input evenly", .options = adaptive_options,       \
    .data_size = sizeof(struct pool), .build = adaptive_build, .forward = adaptive_avg_forward,    \
    .repr = adaptive_repr
LAYER(adaptive_avg_pool1d, "AdaptiveAvgPool1d", ADAPTIVE_AVG);
LAYER(adaptive_avg_pool2d, "AdaptiveAvgPool2d", ADAPTIVE_AVG);
LAYER(adaptive_avg_pool3d, "AdaptiveAvgPool3d", ADAPTIVE_AVG);

#define ADAPTIVE_MAX                                                                               \
    .help = "the maximum of windows that divide the input evenly",                                 \
    .options = adaptive_max_options, .data_size = sizeof(struct pool), .build = adaptive_build,    \
    .call = adaptive_max_call, .repr = adaptive_repr
LAYER(adaptive_max_pool1d, "AdaptiveMaxPool1d", ADAPTIVE_MAX);
LAYER(adaptive_max_pool2d, "AdaptiveMaxPool2d", ADAPTIVE_MAX);
LAYER(adaptive_max_pool3d, "AdaptiveMaxPool3d", ADAPTIVE_MAX);

#define LP                                                                                         \
    .help = "(sum over each window of x^p)^(1/p)", .options = lp_options,                          \
    .data_size = sizeof(struct pool), .build = pool_build, .forward = lp_forward, .repr = lp_repr
LAYER(lp_pool1d, "LPPool1d", LP);
LAYER(lp_pool2d, "LPPool2d", LP);
LAYER(lp_pool3d, "LPPool3d", LP);
