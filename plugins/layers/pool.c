/* SPDX-License-Identifier: MIT
 *
 * Pooling. */
#include "layers.h"

/* The options of all of them; each has those that its table names. */
struct pool {
    double norm_type;
    tn_ints kernel_size;
    tn_ints stride; /* count -1: the kernel */
    tn_ints padding;
    tn_ints dilation;
    tn_value output_size;
    int64_t sizes[3]; /* output_size as the operators take it: -1 for None, as the input has it */
    int64_t n_sizes;
    bool return_indices;
    bool ceil_mode;
    bool count_include_pad;
    int64_t divisor_override;
};

#define KERNEL                                                                                     \
    TN_OPTION_ROW(struct pool, kernel_size, NULL, "size of a window", TN_OPTION_KIND_INTS,         \
                  TN_OPTION_REQUIRED),                                                             \
        TN_OPTION_ROW(struct pool, stride, "None",                                                 \
                      "from one window to the next; None: the kernel", TN_OPTION_KIND_INTS,        \
                      TN_OPTION_OPTIONAL)
#define PADDING TN_OPTION_ROW(struct pool, padding, "0", "on both sides", TN_OPTION_KIND_INTS, 0)
#define CEIL                                                                                       \
    TN_OPTION_ROW(struct pool, ceil_mode, "False", "a last window may reach over the end",         \
                  TN_OPTION_KIND_BOOL, 0)
#define INDICES                                                                                    \
    TN_OPTION_ROW(struct pool, return_indices, "False", "gives the places, too",                   \
                  TN_OPTION_KIND_BOOL, 0)

static const tn_option max_options[] = { KERNEL,
                                         PADDING,
                                         TN_OPTION_ROW(struct pool, dilation, "1",
                                                       "between the elements of a window",
                                                       TN_OPTION_KIND_INTS, 0),
                                         INDICES,
                                         CEIL,
                                         TN_OPTION_END };
static const tn_option line_options[] = { /* AvgPool1d has no divisor */
                                          KERNEL, PADDING, CEIL,
                                          TN_OPTION_ROW(struct pool, count_include_pad, "True",
                                                        "the zeros count", TN_OPTION_KIND_BOOL, 0),
                                          TN_OPTION_END
};
static const tn_option avg_options[] = { KERNEL,
                                         PADDING,
                                         CEIL,
                                         TN_OPTION_ROW(struct pool, count_include_pad, "True",
                                                       "the zeros count", TN_OPTION_KIND_BOOL, 0),
                                         TN_OPTION_ROW(struct pool, divisor_override, "None",
                                                       "what sums are divided by",
                                                       TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
                                         TN_OPTION_END };
#define OUTPUT                                                                                     \
    TN_OPTION_ROW(                                                                                 \
        struct pool, output_size, NULL,                                                            \
        "of the result: one number or one for each dimension; None: as the input has it",          \
        TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED)
static const tn_option adaptive_options[] = { OUTPUT, TN_OPTION_END };
static const tn_option adaptive_max_options[] = { OUTPUT, INDICES, TN_OPTION_END };
static const tn_option lp_options[] = { TN_OPTION_ROW(struct pool, norm_type, NULL, "the power",
                                                      TN_OPTION_KIND_FLOAT, TN_OPTION_REQUIRED),
                                        KERNEL, CEIL, TN_OPTION_END };

static tn_ints stride_of(const struct pool *s)
{
    return s->stride.count > 0 ? s->stride : s->kernel_size;
}

/* ---- building ---- */

static tn_status row_fits(tn_module *self, const char *option, tn_ints row, int64_t dims)
{
    if (row.count == 1 || row.count == dims)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: %s has to be one number, or %lld of them; got %lld",
                   tn_module_type(self), option, (long long)dims, (long long)row.count);
}

static tn_status pool_build(tn_module *self, int64_t dims)
{
    const struct pool *s = tn_module_data(self);
    tn_status status = row_fits(self, "kernel_size", s->kernel_size, dims);

    if (status == TN_OK && s->stride.count > 0)
        status = row_fits(self, "stride", s->stride, dims);
    if (status == TN_OK && s->padding.at != NULL)
        status = row_fits(self, "padding", s->padding, dims);
    if (status == TN_OK && s->dilation.at != NULL)
        status = row_fits(self, "dilation", s->dilation, dims);
    return status;
}

static tn_status adaptive_build(tn_module *self, int64_t dims)
{
    struct pool *s = tn_module_data(self);
    const tn_value *v = &s->output_size;
    bool row = v->kind == TN_VALUE_LIST || v->kind == TN_VALUE_TUPLE;
    int64_t count = row ? (int64_t)v->count : 1;
    bool good = count == 1 || count == dims;

    for (int64_t i = 0; i < count && good; i++) {
        const tn_value *at = row ? &v->as.list[i] : v;

        good = at->kind == TN_VALUE_NONE || (at->kind == TN_VALUE_INT && at->as.i >= 0);
        s->sizes[i] = at->kind == TN_VALUE_NONE ? -1 : at->as.i;
    }
    s->n_sizes = count;
    if (good)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "%s: output_size has to be one size, or a row of %lld; a size is 0 or more, or "
                   "None for that of the input",
                   tn_module_type(self), (long long)dims);
}

static tn_ints output_of(const struct pool *s)
{
    return (tn_ints){ s->sizes, s->n_sizes };
}

/* ---- text ---- */

static const char *truth(bool value)
{
    return value ? "True" : "False";
}

static int64_t max_repr(tn_module *self, char *out, size_t size)
{
    const struct pool *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "kernel_size=");
    layers_put_row(&text, s->kernel_size, 0);
    layers_put(&text, ", stride=");
    layers_put_row(&text, stride_of(s), 0);
    layers_put(&text, ", padding=");
    layers_put_row(&text, s->padding, 0);
    layers_put(&text, ", dilation=");
    layers_put_row(&text, s->dilation, 0);
    layers_put(&text, ", ceil_mode=%s", truth(s->ceil_mode));
    return text.used;
}

static int64_t avg_text(tn_module *self, char *out, size_t size, int64_t dims)
{
    const struct pool *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "kernel_size=");
    layers_put_row(&text, s->kernel_size, dims);
    layers_put(&text, ", stride=");
    layers_put_row(&text, stride_of(s), dims);
    layers_put(&text, ", padding=");
    layers_put_row(&text, s->padding, dims);
    return text.used;
}

static int64_t line_repr(tn_module *self, char *out, size_t size)
{
    return avg_text(self, out, size, 1);
}

static int64_t avg_repr(tn_module *self, char *out, size_t size)
{
    return avg_text(self, out, size, 0);
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

    if (s->norm_type == (double)(int64_t)s->norm_type)
        layers_put(&text, "norm_type=%lld, kernel_size=", (long long)s->norm_type);
    else
        layers_put(&text, "norm_type=%g, kernel_size=", s->norm_type);
    layers_put_row(&text, s->kernel_size, 0);
    layers_put(&text, ", stride=");
    if (s->stride.count > 0)
        layers_put_row(&text, s->stride, 0);
    else
        layers_put(&text, "None");
    layers_put(&text, ", ceil_mode=%s", truth(s->ceil_mode));
    return text.used;
}

/* One tensor in; the result, and its places where they were asked for. */
static tn_status one_tensor(const tn_pack *input, tn_tensor **x)
{
    if (tn_pack_count(input) != 1)
        return tn_fail(TN_ERR_TYPE, "a pooling layer takes one tensor, got %lld values",
                       (long long)tn_pack_count(input));
    *x = tn_pack_tensor(input, 0);
    return *x != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status give(tn_pack *output, tn_tensor *y, tn_tensor *places)
{
    tn_status status = y == NULL || places == NULL ? tn_error_last()->code
                                                   : tn_pack_add(output, NULL, tn_value_tensor(y));

    return status != TN_OK || places == TN_NONE
               ? status
               : tn_pack_add(output, NULL, tn_value_tensor(places));
}

#define POOL(dims, avg_table, avg_print, divisor_line)                                             \
    static tn_status pool##dims##_build(tn_module *self)                                           \
    {                                                                                              \
        return pool_build(self, dims);                                                             \
    }                                                                                              \
    static tn_status adaptive##dims##_build(tn_module *self)                                       \
    {                                                                                              \
        return adaptive_build(self, dims);                                                         \
    }                                                                                              \
    static tn_status max##dims##_call(tn_module *self, const tn_pack *input, tn_pack *output)      \
    {                                                                                              \
        const struct pool *s = tn_module_data(self);                                               \
        tn_max_pool##dims##d_with_indices_options o = TN_MAX_POOL##dims##D_WITH_INDICES_OPTIONS;   \
        tn_max_pool##dims##d_options plain = TN_MAX_POOL##dims##D_OPTIONS;                         \
        tn_tensor *x, *y, *places;                                                                 \
        tn_status status = one_tensor(input, &x);                                                  \
        if (status != TN_OK)                                                                       \
            return status;                                                                         \
        o.stride = plain.stride = stride_of(s);                                                    \
        o.padding = plain.padding = s->padding;                                                    \
        o.dilation = plain.dilation = s->dilation;                                                 \
        o.ceil_mode = plain.ceil_mode = s->ceil_mode;                                              \
        if (!s->return_indices)                                                                    \
            return give(output, tn_max_pool##dims##d(x, s->kernel_size, &plain), TN_NONE);         \
        status = tn_max_pool##dims##d_with_indices(x, s->kernel_size, &o, &y, &places);            \
        return status != TN_OK ? status : give(output, y, places);                                 \
    }                                                                                              \
    static tn_tensor *avg##dims##_forward(tn_module *self, tn_tensor *x)                           \
    {                                                                                              \
        const struct pool *s = tn_module_data(self);                                               \
        tn_avg_pool##dims##d_options o = TN_AVG_POOL##dims##D_OPTIONS;                             \
        o.stride = stride_of(s);                                                                   \
        o.padding = s->padding;                                                                    \
        o.ceil_mode = s->ceil_mode;                                                                \
        o.count_include_pad = s->count_include_pad;                                                \
        divisor_line return tn_avg_pool##dims##d(x, s->kernel_size, &o);                           \
    }                                                                                              \
    static tn_tensor *adaptive_avg##dims##_forward(tn_module *self, tn_tensor *x)                  \
    {                                                                                              \
        const struct pool *s = tn_module_data(self);                                               \
        return tn_adaptive_avg_pool##dims##d(x, output_of(s));                                     \
    }                                                                                              \
    static tn_status adaptive_max##dims##_call(tn_module *self, const tn_pack *input,              \
                                               tn_pack *output)                                    \
    {                                                                                              \
        const struct pool *s = tn_module_data(self);                                               \
        tn_tensor *x, *y, *places;                                                                 \
        tn_status status = one_tensor(input, &x);                                                  \
        if (status != TN_OK)                                                                       \
            return status;                                                                         \
        if (!s->return_indices)                                                                    \
            return give(output, tn_adaptive_max_pool##dims##d(x, output_of(s)), TN_NONE);          \
        status = tn_adaptive_max_pool##dims##d_with_indices(x, output_of(s), &y, &places);         \
        return status != TN_OK ? status : give(output, y, places);                                 \
    }                                                                                              \
    static tn_tensor *lp##dims##_forward(tn_module *self, tn_tensor *x)                            \
    {                                                                                              \
        const struct pool *s = tn_module_data(self);                                               \
        tn_lp_pool##dims##d_options o = TN_LP_POOL##dims##D_OPTIONS;                               \
        o.stride = stride_of(s);                                                                   \
        o.ceil_mode = s->ceil_mode;                                                                \
        return tn_lp_pool##dims##d(x, s->norm_type, s->kernel_size, &o);                           \
    }                                                                                              \
    const tn_layer layer_max_pool##dims##d = {                                                     \
        TN_HEAD(tn_layer),                                                                         \
        .name = "MaxPool" #dims "d",                                                               \
        .help = "the largest of each window",                                                      \
        .options = max_options,                                                                    \
        .data_size = sizeof(struct pool),                                                          \
        .version = 1,                                                                              \
        .build = pool##dims##_build,                                                               \
        .call = max##dims##_call,                                                                  \
        .repr = max_repr,                                                                          \
    };                                                                                             \
    const tn_layer layer_avg_pool##dims##d = {                                                     \
        TN_HEAD(tn_layer),                                                                         \
        .name = "AvgPool" #dims "d",                                                               \
        .help = "the mean of each window",                                                         \
        .options = avg_table,                                                                      \
        .data_size = sizeof(struct pool),                                                          \
        .version = 1,                                                                              \
        .build = pool##dims##_build,                                                               \
        .forward = avg##dims##_forward,                                                            \
        .repr = avg_print,                                                                         \
    };                                                                                             \
    const tn_layer layer_adaptive_avg_pool##dims##d = {                                            \
        TN_HEAD(tn_layer),                                                                         \
        .name = "AdaptiveAvgPool" #dims "d",                                                       \
        .help = "the mean of windows that divide the input evenly",                                \
        .options = adaptive_options,                                                               \
        .data_size = sizeof(struct pool),                                                          \
        .version = 1,                                                                              \
        .build = adaptive##dims##_build,                                                           \
        .forward = adaptive_avg##dims##_forward,                                                   \
        .repr = adaptive_repr,                                                                     \
    };                                                                                             \
    const tn_layer layer_adaptive_max_pool##dims##d = {                                            \
        TN_HEAD(tn_layer),                                                                         \
        .name = "AdaptiveMaxPool" #dims "d",                                                       \
        .help = "the largest of windows that divide the input evenly",                             \
        .options = adaptive_max_options,                                                           \
        .data_size = sizeof(struct pool),                                                          \
        .version = 1,                                                                              \
        .build = adaptive##dims##_build,                                                           \
        .call = adaptive_max##dims##_call,                                                         \
        .repr = adaptive_repr,                                                                     \
    };                                                                                             \
    const tn_layer layer_lp_pool##dims##d = {                                                      \
        TN_HEAD(tn_layer),                                                                         \
        .name = "LPPool" #dims "d",                                                                \
        .help = "(sum over each window of x^p)^(1/p)",                                             \
        .options = lp_options,                                                                     \
        .data_size = sizeof(struct pool),                                                          \
        .version = 1,                                                                              \
        .build = pool##dims##_build,                                                               \
        .forward = lp##dims##_forward,                                                             \
        .repr = lp_repr,                                                                           \
    };
POOL(1, line_options, line_repr, )
POOL(2, avg_options, avg_repr, o.divisor_override = s->divisor_override;)
POOL(3, avg_options, avg_repr, o.divisor_override = s->divisor_override;)
