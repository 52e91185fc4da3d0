/* SPDX-License-Identifier: MIT
 *
 * QuantizedConv1d, 2d and 3d: convolutions with a weight of integers. The options are those of
 * Conv1d, 2d and 3d, and how weight and input are stored. */
#include "modules.h"

enum { MOST = 3 };

struct conv {
    int64_t in_channels;
    int64_t out_channels;
    tn_ints kernel_size;
    tn_ints stride;
    tn_value padding; /* a number, several numbers, 'same' or 'valid' */
    tn_ints dilation;
    int64_t groups;
    bool bias;
    const char *padding_mode;
    const char *weight;
    const char *activation;
    /* The options with one number for each dimension; set by build, like what follows. */
    int64_t kernel[MOST], step[MOST], apart[MOST];
    int64_t before[MOST], after[MOST]; /* the padding */
    uint32_t how;
    bool apart_padding; /* the input is padded by an operator of its own */
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct conv, in_channels, NULL, "channels of the input", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct conv, out_channels, NULL, "channels of the result", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct conv, kernel_size, NULL, "size of a window", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct conv, stride, "1", "stride between windows", TN_OPTION_KIND_INTS, 0),
    TN_OPTION_ROW(struct conv, padding, "0", "padding on both sides; a number, or same or valid",
                  TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_ROW(struct conv, dilation, "1", "spacing of the elements of a window",
                  TN_OPTION_KIND_INTS, 0),
    TN_OPTION_ROW(struct conv, groups, "1", "number of groups of channels", TN_OPTION_KIND_INT, 0),
    TN_OPTION_ROW(struct conv, bias, "True", "whether a bias is added", TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct conv, padding_mode, "'zeros'", "zeros, reflect, replicate or circular",
                  TN_OPTION_KIND_STRING, 0),
    TN_OPTION_ROW(struct conv, weight, "'int8'", "how the weight is stored: int8",
                  TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD),
    TN_OPTION_ROW(struct conv, activation, "'row'",
                  "the scales of the input: row (one for each sample), tensor or static, or none "
                  "for a product of floats",
                  TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD),
    TN_OPTION_END
};

/* Returns the number of dimensions, which is the digit in the name of the layer. */
static int dims_of(const tn_module *self)
{
    const char *type = tn_module_type(self);

    return type[strlen(type) - 2] - '0';
}

/* ---- options --------------------------------------------------------------------------------- */

/* Stores one number for each dimension. */
static tn_status spread(const tn_module *self, const char *name, tn_ints row, int64_t least,
                        int64_t *out)
{
    const int dims = dims_of(self);

    if (row.count != 1 && row.count != dims)
        return tn_fail(TN_ERR_VALUE, "%s: %s: wrong count, got %lld; expected 1 or %d numbers",
                       tn_module_type(self), name, (long long)row.count, dims);
    for (int i = 0; i < dims; i++) {
        out[i] = row.at[row.count == 1 ? 0 : i];
        if (out[i] < least || out[i] > INT32_MAX)
            return tn_fail(TN_ERR_VALUE,
                           "%s: %s: out of range, got %lld; expected %lld to 2147483647",
                           tn_module_type(self), name, (long long)out[i], (long long)least);
    }
    return TN_OK;
}

static bool says(const tn_value *value, const char *word)
{
    return value->kind == TN_VALUE_STRING && strcmp(value->as.s, word) == 0;
}

/* 'same': the sizes stay, and an odd number of elements is one more at the end. */
static tn_status same_padding(const tn_module *self, struct conv *s)
{
    for (int i = 0; i < dims_of(self); i++) {
        int64_t all = s->apart[i] * (s->kernel[i] - 1);

        if (s->step[i] != 1)
            return tn_fail(TN_ERR_VALUE,
                           "%s: stride: not possible with padding='same', got %lld; expected 1",
                           tn_module_type(self), (long long)s->step[i]);
        s->before[i] = all / 2;
        s->after[i] = all - all / 2;
        s->apart_padding |= s->before[i] != s->after[i];
    }
    return TN_OK;
}

static tn_status read_padding(const tn_module *self, struct conv *s)
{
    const tn_value *p = &s->padding, one = tn_value_int(0);
    int64_t row[MOST];
    uint32_t count = 1;
    tn_status status;

    if (says(p, "same"))
        return same_padding(self, s);
    if (says(p, "valid"))
        p = &one;
    if (p->kind == TN_VALUE_LIST || p->kind == TN_VALUE_TUPLE)
        count = p->count;
    for (uint32_t i = 0; i < count && i < MOST; i++) {
        const tn_value *item = p->kind == TN_VALUE_INT ? p : tn_value_item(p, i);

        if (item == NULL || item->kind != TN_VALUE_INT)
            return tn_fail(TN_ERR_VALUE,
                           "%s: padding: wrong value, got %s; expected 1 or %d numbers, 'same' or "
                           "'valid'",
                           tn_module_type(self),
                           tn_value_kind_name(item != NULL ? item->kind : p->kind), dims_of(self));
        row[i] = item->as.i;
    }
    status = spread(self, "padding", (tn_ints){ row, count }, 0, s->before);
    memcpy(s->after, s->before, sizeof s->after);
    return status;
}

static tn_status check_channels(const tn_module *self, const struct conv *s)
{
    const char *type = tn_module_type(self);

    if (s->groups < 1 || s->in_channels < 1 || s->in_channels % s->groups != 0 ||
        s->out_channels < 1 || s->out_channels % s->groups != 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: in_channels, out_channels or groups: do not fit, got %lld, %lld and "
                       "%lld; expected positive numbers, channels that groups divides",
                       type, (long long)s->in_channels, (long long)s->out_channels,
                       (long long)s->groups);
    if (strcmp(s->padding_mode, "zeros") != 0 && strcmp(s->padding_mode, "reflect") != 0 &&
        strcmp(s->padding_mode, "replicate") != 0 && strcmp(s->padding_mode, "circular") != 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: padding_mode: unknown, got %q; expected 'zeros', 'reflect', "
                       "'replicate' or 'circular'",
                       type, s->padding_mode);
    if (strcmp(s->weight, "int8") != 0)
        return tn_fail(TN_ERR_VALUE, "%s: weight: unknown format, got %q; expected int8", type,
                       s->weight);
    return TN_OK;
}

static tn_status build(tn_module *self)
{
    struct conv *s = tn_module_data(self);
    const int dims = dims_of(self);
    int64_t shape[2 + MOST];
    tn_status status = check_channels(self, s);

    if (status == TN_OK)
        status = spread(self, "kernel_size", s->kernel_size, 1, s->kernel);
    if (status == TN_OK)
        status = spread(self, "stride", s->stride, 1, s->step);
    if (status == TN_OK)
        status = spread(self, "dilation", s->dilation, 1, s->apart);
    s->apart_padding = strcmp(s->padding_mode, "zeros") != 0;
    if (status == TN_OK)
        status = read_padding(self, s);
    if (status != TN_OK)
        return status;
    s->how = quant_activation(self, s->activation,
                              QUANT_ROW | QUANT_TENSOR | QUANT_STATIC | QUANT_NONE);
    if (s->how == 0)
        return tn_error_last_code();
    shape[0] = s->out_channels;
    shape[1] = s->in_channels / s->groups;
    memcpy(shape + 2, s->kernel, (size_t)dims * sizeof *shape);
    status = quant_add_buffer(self, "weight", TN_I8, (tn_ints){ shape, 2 + dims }, 0, true);
    return status == TN_OK
               ? quant_add_scales(self, s->bias, s->out_channels, TN_SHAPE(s->out_channels), s->how)
               : status;
}

static tn_status load_state(tn_module *self, tn_loading *loading)
{
    return quant_load(self, loading, quant_format_find(tn_module_type(self), "int8"), 0);
}

/* ---- the printed form ------------------------------------------------------------------------ */

static void put_row(char *out, size_t size, int64_t *used, const char *name, const int64_t *row,
                    int dims)
{
    quant_put(out, size, used, ", %s=(", name);
    for (int i = 0; i < dims; i++)
        quant_put(out, size, used, "%s%lld", i > 0 ? ", " : "", (long long)row[i]);
    quant_put(out, size, used, dims == 1 ? ",)" : ")");
}

static bool differs(const int64_t *row, int dims, int64_t usual)
{
    for (int i = 0; i < dims; i++)
        if (row[i] != usual)
            return true;
    return false;
}

static int64_t repr(tn_module *self, char *out, size_t size)
{
    const struct conv *s = tn_module_data(self);
    const int dims = dims_of(self);
    int64_t used = 0;

    quant_put(out, size, &used, "%lld, %lld", (long long)s->in_channels,
              (long long)s->out_channels);
    put_row(out, size, &used, "kernel_size", s->kernel, dims);
    put_row(out, size, &used, "stride", s->step, dims);
    if (s->padding.kind == TN_VALUE_STRING)
        quant_put(out, size, &used, ", padding='%s'", s->padding.as.s);
    else if (differs(s->before, dims, 0))
        put_row(out, size, &used, "padding", s->before, dims);
    if (differs(s->apart, dims, 1))
        put_row(out, size, &used, "dilation", s->apart, dims);
    if (s->groups != 1)
        quant_put(out, size, &used, ", groups=%lld", (long long)s->groups);
    if (!s->bias)
        quant_put(out, size, &used, ", bias=False");
    if (strcmp(s->padding_mode, "zeros") != 0)
        quant_put(out, size, &used, ", padding_mode='%s'", s->padding_mode);
    quant_put(out, size, &used, ", weight='%s', activation='%s'", s->weight, s->activation);
    return used;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Pads x by an operator of its own: with other values than 0, or more on one side. */
static tn_tensor *padded(const struct conv *s, tn_tensor *x, int dims)
{
    int64_t sizes[2 * MOST];
    bool zeros = strcmp(s->padding_mode, "zeros") == 0;

    for (int i = 0; i < dims; i++) {
        sizes[2 * (dims - 1 - i)] = s->before[i];
        sizes[2 * (dims - 1 - i) + 1] = s->after[i];
    }
    return tn_pad(x, ((tn_ints){ sizes, 2 * dims }), zeros ? "constant" : s->padding_mode);
}

#define CONV_OPTIONS                                                                               \
    ((tn_ints){ s->step, dims }), ((tn_ints){ s->before, s->apart_padding ? 0 : dims }),           \
        ((tn_ints){ s->apart, dims }), s->groups

/* Returns the result for a batch. */
static tn_tensor *convolve(tn_module *self, tn_tensor *x)
{
    static const int64_t all[] = { 1, 2, 3, 4 };
    const struct conv *s = tn_module_data(self);
    const int dims = dims_of(self);
    tn_ints sample = { all, 1 + dims };
    tn_tensor *weight = tn_module_get(self, "weight"), *scale, *y;
    quant_input in;

    scale = tn_module_get(self, "weight_scale");
    if (s->apart_padding)
        x = padded(s, x, dims);
    if (x == NULL)
        return NULL;
    if (s->how == QUANT_NONE)
        return tn_convolution(x, tn_cast(tn_dequantize(weight, scale), tn_tensor_dtype(x)),
                              quant_bias(self, tn_tensor_dtype(x)), CONV_OPTIONS);
    if (quant_without_gradient(self, x) != TN_OK ||
        quant_take_input(self, x, s->how, &sample, &in) != TN_OK)
        return NULL;
    y = tn_convolution_int8(in.integers, in.scale, weight, scale, in.zero_point, TN_NONE,
                            quant_bias(self, TN_F32), TN_NONE, TN_NONE, TN_NONE, TN_NONE, TN_NONE,
                            CONV_OPTIONS);
    return tn_cast(y, tn_tensor_dtype(x));
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const int dims = dims_of(self);

    if (tn_tensor_ndim(x) == dims + 1)
        return tn_squeeze(convolve(self, tn_unsqueeze(x, 0)), TN_INTS(0));
    if (tn_tensor_ndim(x) == dims + 2)
        return convolve(self, x);
    tn_fail(TN_ERR_RUNTIME, "%s: input: wrong number of dimensions, got %d; expected %d or %d",
            tn_module_type(self), (int)tn_tensor_ndim(x), dims + 1, dims + 2);
    return NULL;
}

#define CONV_LAYER(id, name_, of)                                                                  \
    const tn_layer_def layer_##id = { TN_HEAD(tn_layer_def),                                       \
                                      .name = name_,                                               \
                                      .help = of " with a weight of integers; takes and gives "    \
                                                 "floats",                                         \
                                      .options = options,                                          \
                                      .data_size = sizeof(struct conv),                            \
                                      .version = 1,                                                \
                                      .build = build,                                              \
                                      .forward = forward,                                          \
                                      .repr = repr,                                                \
                                      .load_state = load_state,                                    \
                                      .flags = TN_LAYER_READS_INPUT }
CONV_LAYER(quantized_conv1d, "QuantizedConv1d", "Conv1d");
CONV_LAYER(quantized_conv2d, "QuantizedConv2d", "Conv2d");
CONV_LAYER(quantized_conv3d, "QuantizedConv3d", "Conv3d");
