/* SPDX-License-Identifier: MIT
 *
 * Convolutions in one to three dimensions, also transposed. Names, options, initialization and repr
 * are PyTorch's. */
#include "helpers.h"

#include <math.h>
#include <string.h>

enum { MOST = 3 };

struct conv {
    int64_t in_channels;
    int64_t out_channels;
    tn_ints kernel_size;
    tn_ints stride;
    tn_value padding; /* a number, several numbers, 'same' or 'valid' */
    tn_ints output_padding;
    tn_ints dilation;
    int64_t groups;
    bool bias;
    const char *padding_mode;
    /* The options with one number for each dimension; set by build. */
    int64_t kernel[MOST], step[MOST], pad[MOST], more[MOST], apart[MOST];
};

#define CONV_IN                                                                                    \
    TN_OPTION_ROW(struct conv, in_channels, NULL, "channels of the input", TN_OPTION_KIND_INT,     \
                  TN_OPTION_REQUIRED)
#define CONV_FIRST                                                                                 \
    TN_OPTION_ROW(struct conv, out_channels, NULL, "channels of the result", TN_OPTION_KIND_INT,   \
                  TN_OPTION_REQUIRED),                                                             \
        TN_OPTION_ROW(struct conv, kernel_size, NULL, "size of a window", TN_OPTION_KIND_INTS,     \
                      TN_OPTION_REQUIRED),                                                         \
        TN_OPTION_ROW(struct conv, stride, "1", "stride between windows", TN_OPTION_KIND_INTS, 0)
#define CONV_PADDING(help) TN_OPTION_ROW(struct conv, padding, "0", help, TN_OPTION_KIND_VALUE, 0)
#define CONV_DILATION                                                                              \
    TN_OPTION_ROW(struct conv, dilation, "1", "spacing of the elements of a window",               \
                  TN_OPTION_KIND_INTS, 0)
#define CONV_GROUPS                                                                                \
    TN_OPTION_ROW(struct conv, groups, "1", "number of groups of channels", TN_OPTION_KIND_INT, 0)
#define CONV_BIAS                                                                                  \
    TN_OPTION_ROW(struct conv, bias, "True", "whether a bias is learned and added",                \
                  TN_OPTION_KIND_BOOL, 0)
#define CONV_MODE                                                                                  \
    TN_OPTION_ROW(struct conv, padding_mode, "'zeros'", "zeros, reflect, replicate or circular",   \
                  TN_OPTION_KIND_STRING, 0)

static const tn_option conv_options[] = {
    CONV_IN,       CONV_FIRST,   CONV_PADDING("padding on both sides; a number, or same or valid"),
    CONV_DILATION, CONV_GROUPS,  CONV_BIAS,
    CONV_MODE,     TN_OPTION_END
};
#define CONV_MORE                                                                                  \
    TN_OPTION_ROW(struct conv, output_padding, "0", "additional padding at the end",               \
                  TN_OPTION_KIND_INTS, 0)
static const tn_option transpose_options[] = {
    CONV_IN,       CONV_FIRST,  CONV_PADDING("padding removed from both sides"),
    CONV_MORE,     CONV_GROUPS, CONV_BIAS,
    CONV_DILATION, CONV_MODE,   TN_OPTION_END
};
/* The options of lazy layers: those above without in_channels. */
static const tn_option lazy_conv_options[] = {
    CONV_FIRST,    CONV_PADDING("padding on both sides; a number, or same or valid"),
    CONV_DILATION, CONV_GROUPS,
    CONV_BIAS,     CONV_MODE,
    TN_OPTION_END
};
static const tn_option lazy_transpose_options[] = {
    CONV_FIRST, CONV_PADDING("padding removed from both sides"),
    CONV_MORE,  CONV_GROUPS,
    CONV_BIAS,  CONV_DILATION,
    CONV_MODE,  TN_OPTION_END
};

static bool is_transposed(const tn_module *self)
{
    return strstr(tn_module_type(self), "Transpose") != NULL;
}

static tn_status spread(const char *type, const char *name, tn_ints row, int dims, int64_t least,
                        int64_t *out)
{
    if (row.count != 1 && row.count != dims)
        return tn_fail(TN_ERR_VALUE, "%s: %s: wrong count, got %lld; expected 1 or %d numbers",
                       type, name, (long long)row.count, dims);
    for (int i = 0; i < dims; i++) {
        out[i] = row.at[row.count == 1 ? 0 : i];
        if (out[i] < least)
            return tn_fail(TN_ERR_VALUE, "%s: %s: out of range, got %lld; expected %lld or more",
                           type, name, (long long)out[i], (long long)least);
    }
    return TN_OK;
}

static bool says(const struct conv *s, const char *word)
{
    return s->padding.kind == TN_VALUE_STRING && strcmp(s->padding.as.s, word) == 0;
}

static tn_status read_padding(const char *type, struct conv *s, int dims, bool transposed)
{
    const tn_value *p = &s->padding;
    char got[80];
    int64_t row[MOST];

    if (p->kind == TN_VALUE_INT) {
        row[0] = p->as.i;
        return spread(type, "padding", (tn_ints){ row, 1 }, dims, 0, s->pad);
    }
    if (p->kind == TN_VALUE_LIST || p->kind == TN_VALUE_TUPLE) {
        bool ints = p->count == 1 || p->count == (uint32_t)dims;

        for (uint32_t i = 0; ints && i < p->count; i++) {
            ints = p->as.list[i].kind == TN_VALUE_INT;
            row[i] = p->as.list[i].as.i;
        }
        if (ints)
            return spread(type, "padding", (tn_ints){ row, p->count }, dims, 0, s->pad);
    }
    if (!transposed && (says(s, "same") || says(s, "valid"))) {
        for (int i = 0; i < dims; i++) {
            int64_t reach;

            if (__builtin_mul_overflow(s->apart[i], s->kernel[i] - 1, &reach))
                return tn_fail(TN_ERR_VALUE,
                               "%s: dilation: too large, got %lld with a kernel_size of %lld; "
                               "expected windows of fewer than 2^63 elements",
                               type, (long long)s->apart[i], (long long)s->kernel[i]);
            s->pad[i] = says(s, "same") ? reach / 2 : 0;
            if (says(s, "same") && s->step[i] != 1)
                return tn_fail(TN_ERR_VALUE,
                               "%s: stride: not possible with padding='same', got %lld; expected 1",
                               type, (long long)s->step[i]);
        }
        return TN_OK;
    }
    layers_put_value(&(layers_text){ .out = got, .size = sizeof got }, p);
    return tn_fail(TN_ERR_VALUE, "%s: padding: wrong value, got %s; expected 1 or %d numbers%s",
                   type, got, dims, transposed ? "" : ", 'same' or 'valid'");
}

/* Writes the shape of the weight: [out, in / groups, k...]; transposed: [in, out / groups, k...].
 */
static void weight_shape(const struct conv *s, int dims, bool transposed, int64_t *shape)
{
    shape[0] = transposed ? s->in_channels : s->out_channels;
    shape[1] = (transposed ? s->out_channels : s->in_channels) / s->groups;
    memcpy(shape + 2, s->kernel, (size_t)dims * sizeof *shape);
}

static tn_status conv_check(tn_module *self, int dims, bool transposed, bool lazy)
{
    struct conv *s = tn_module_data(self);
    const char *type = tn_module_type(self), *mode = s->padding_mode;
    tn_status status;

    if (s->groups < 1)
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */ "%s: groups must be a positive integer, got %lld",
                       type, (long long)s->groups);
    if (!lazy && (s->in_channels < 1 || s->in_channels % s->groups != 0))
        return tn_fail(
            TN_ERR_VALUE,
            /* PyTorch's wording */ "%s: in_channels %lld must be divisible by groups %lld", type,
            (long long)s->in_channels, (long long)s->groups);
    if (s->out_channels < 1 || s->out_channels % s->groups != 0)
        return tn_fail(
            TN_ERR_VALUE,
            /* PyTorch's wording */ "%s: out_channels %lld must be divisible by groups %lld", type,
            (long long)s->out_channels, (long long)s->groups);
    if (strcmp(mode, "zeros") != 0 &&
        (transposed || (strcmp(mode, "reflect") != 0 && strcmp(mode, "replicate") != 0 &&
                        strcmp(mode, "circular") != 0)))
        return tn_fail(TN_ERR_VALUE, "%s: padding_mode: unknown, got %q; %s", type, mode,
                       transposed ? "expected 'zeros'"
                                  : "expected 'zeros', 'reflect', 'replicate' or 'circular'");
    status = spread(type, "kernel_size", s->kernel_size, dims, 1, s->kernel);
    if (status == TN_OK)
        status = spread(type, "stride", s->stride, dims, 1, s->step);
    if (status == TN_OK)
        status = spread(type, "dilation", s->dilation, dims, 1, s->apart);
    if (status == TN_OK && transposed)
        status = spread(type, "output_padding", s->output_padding, dims, 0, s->more);
    return status == TN_OK ? read_padding(type, s, dims, transposed) : status;
}

static tn_status conv_build(tn_module *self)
{
    int dims = layers_dims(self);
    bool transposed = is_transposed(self);
    struct conv *s = tn_module_data(self);
    int64_t shape[2 + MOST];
    tn_status status = conv_check(self, dims, transposed, false);

    if (status != TN_OK)
        return status;
    weight_shape(s, dims, transposed, shape);
    status = layers_add(self, "weight", true, (tn_ints){ shape, 2 + dims });
    return status == TN_OK ? layers_add(self, "bias", s->bias, TN_SHAPE(s->out_channels)) : status;
}

/* Weight and bias are uniform in [-b, b] with b = 1/sqrt(fan_in), as in PyTorch. */
static tn_status conv_reset(tn_module *self)
{
    tn_tensor *weight = tn_module_get(self, "weight");
    tn_status status = tn_init(weight, "kaiming_uniform(a=%g)", sqrt(5.0));
    double fan = 1;

    for (int i = 1; status == TN_OK && i < tn_tensor_ndim(weight); i++)
        fan *= (double)tn_tensor_size(weight, i);
    return status == TN_OK ? layers_spread(self, "bias", fan > 0 ? 1 / sqrt(fan) : 0) : status;
}

/* ---- lazy layers: the first input determines in_channels ---- */

static tn_status lazy_build(tn_module *self)
{
    int dims = layers_dims(self);
    bool transposed = is_transposed(self);
    const struct conv *s = tn_module_data(self);
    tn_status status = conv_check(self, dims, transposed, true);

    if (status == TN_OK)
        status = tn_module_add_lazy(self, TN_SLOT_PARAMETER, "weight");
    if (status == TN_OK)
        status = s->bias ? tn_module_add_lazy(self, TN_SLOT_PARAMETER, "bias")
                         : tn_module_add_parameter(self, "bias", TN_NONE);
    return status;
}

static tn_status lazy_infer(tn_module *self, const tn_pack *input)
{
    int dims = layers_dims(self);
    bool transposed = is_transposed(self);
    struct conv *s = tn_module_data(self);
    int64_t shape[2 + MOST];
    tn_tensor *x = tn_pack_tensor(input, 0);
    tn_status status;

    if (x == NULL)
        return tn_error_last_code();
    if (tn_tensor_ndim(x) != dims + 1 && tn_tensor_ndim(x) != dims + 2)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "Expected %dD (unbatched) or %dD (batched) input to %s, but "
                       "got input of %d dimensions",
                       dims + 1, dims + 2, tn_module_type(self), (int)tn_tensor_ndim(x));
    s->in_channels = tn_tensor_size(x, -1 - dims);
    if (s->in_channels < 1 || s->in_channels % s->groups != 0) {
        status = tn_fail(
            TN_ERR_VALUE,
            /* PyTorch's wording */ "%s: in_channels %lld must be divisible by groups %lld",
            tn_module_type(self), (long long)s->in_channels, (long long)s->groups);
        s->in_channels = 0;
        return status;
    }
    weight_shape(s, dims, transposed, shape);
    status = tn_module_materialize(self, "weight", (tn_ints){ shape, 2 + dims });
    if (status == TN_OK && s->bias)
        status = tn_module_materialize(self, "bias", TN_SHAPE(s->out_channels));
    return status;
}

/* Pads x before the convolution if padding_mode is not zeros. */
static tn_tensor *with_edges(const struct conv *s, tn_tensor *x, int dims)
{
    int64_t sizes[2 * MOST];

    for (int i = 0; i < dims; i++) {
        int64_t more = says(s, "same") ? s->apart[i] * (s->kernel[i] - 1) % 2 : 0;

        sizes[2 * (dims - 1 - i)] = s->pad[i];
        sizes[2 * (dims - 1 - i) + 1] = s->pad[i] + more;
    }
    return tn_pad(x, ((tn_ints){ sizes, 2 * dims }), s->padding_mode);
}

static int64_t conv_repr(tn_module *self, char *out, size_t size)
{
    int dims = layers_dims(self);
    bool transposed = is_transposed(self);
    const struct conv *s = tn_module_data(self);
    layers_text text = { out, size, 0 };
    bool padded = false, dilated = false, more = false;

    for (int i = 0; i < dims; i++) {
        padded |= s->pad[i] != 0;
        dilated |= s->apart[i] != 1;
        more |= s->more[i] != 0;
    }
    layers_put(&text, "%lld, %lld, kernel_size=", (long long)s->in_channels,
               (long long)s->out_channels);
    layers_put_row(&text, (tn_ints){ s->kernel, dims }, dims);
    layers_put(&text, ", stride=");
    layers_put_row(&text, (tn_ints){ s->step, dims }, dims);
    if (s->padding.kind == TN_VALUE_STRING) {
        layers_put(&text, ", padding=%s", s->padding.as.s);
    } else if (padded) {
        layers_put(&text, ", padding=");
        layers_put_row(&text, (tn_ints){ s->pad, dims }, dims);
    }
    if (dilated) {
        layers_put(&text, ", dilation=");
        layers_put_row(&text, (tn_ints){ s->apart, dims }, dims);
    }
    if (transposed && more) {
        layers_put(&text, ", output_padding=");
        layers_put_row(&text, (tn_ints){ s->more, dims }, dims);
    }
    if (s->groups != 1)
        layers_put(&text, ", groups=%lld", (long long)s->groups);
    if (!s->bias)
        layers_put(&text, ", bias=False");
    if (strcmp(s->padding_mode, "zeros") != 0)
        layers_put(&text, ", padding_mode=%s", s->padding_mode);
    return text.used;
}

/* ---- for each number of dimensions, the operator with the options of the layer ---- */

typedef tn_tensor *conv_op(const struct conv *s, tn_tensor *x, tn_tensor *weight, tn_tensor *bias,
                           bool edges);

#define CONV_OPTIONS(dims)                                                                         \
    ((tn_ints){ s->step, dims }), ((tn_ints){ s->pad, edges || says(s, "same") ? 0 : dims }),      \
        ((tn_ints){ s->apart, dims }), s->groups, !edges && says(s, "same") ? "same" : NULL

static tn_tensor *conv1d(const struct conv *s, tn_tensor *x, tn_tensor *weight, tn_tensor *bias,
                         bool edges)
{
    return tn_conv1d(x, weight, bias, CONV_OPTIONS(1));
}

static tn_tensor *conv2d(const struct conv *s, tn_tensor *x, tn_tensor *weight, tn_tensor *bias,
                         bool edges)
{
    return tn_conv2d(x, weight, bias, CONV_OPTIONS(2));
}

static tn_tensor *conv3d(const struct conv *s, tn_tensor *x, tn_tensor *weight, tn_tensor *bias,
                         bool edges)
{
    return tn_conv3d(x, weight, bias, CONV_OPTIONS(3));
}

static tn_tensor *conv_forward(tn_module *self, tn_tensor *x)
{
    static conv_op *const conv[] = { conv1d, conv2d, conv3d };
    const struct conv *s = tn_module_data(self);
    int dims = layers_dims(self);
    bool edges = strcmp(s->padding_mode, "zeros") != 0;

    if (edges)
        x = with_edges(s, x, dims);
    return conv[dims - 1](s, x, tn_module_get(self, "weight"), tn_module_get(self, "bias"), edges);
}

/* ---- with what follows ---- */

/* Sets the shape of the result and the padding on both sides. Returns false if x does not fit, or
 * if the padding differs between the two sides, or if the computations here could overflow. */
static bool fits(const struct conv *s, const tn_tensor *x, int dims, int64_t *shape, int64_t *pad)
{
    if (tn_tensor_ndim(x) != dims + 2 || tn_tensor_size(x, 1) != s->in_channels ||
        strcmp(s->padding_mode, "zeros") != 0)
        return false;
    shape[0] = tn_tensor_size(x, 0);
    shape[1] = s->out_channels;
    for (int i = 0; i < dims; i++) {
        int64_t reach, left;

        if (s->apart[i] > INT32_MAX || s->kernel[i] > INT32_MAX || s->pad[i] > INT32_MAX ||
            tn_tensor_size(x, 2 + i) > INT32_MAX)
            return false;
        reach = s->apart[i] * (s->kernel[i] - 1);
        pad[i] = says(s, "same") ? reach / 2 : s->pad[i];
        left = tn_tensor_size(x, 2 + i) + 2 * pad[i] - reach - 1;
        if (left < 0 || (says(s, "same") && reach % 2 != 0))
            return false;
        shape[2 + i] = left / s->step[i] + 1;
    }
    return true;
}

/* Returns the bias, which may be TN_NONE; NULL if it does not fit or is computed. */
static tn_tensor *plain_bias(tn_module *self, const tn_tensor *x, int64_t outputs)
{
    tn_tensor *bias = tn_module_slot_kind(self, "bias") == TN_SLOT_PARAMETER
                          ? tn_module_get(self, "bias")
                          : NULL;

    return bias == NULL || bias == TN_NONE ||
                   (tn_tensor_dtype(bias) == tn_tensor_dtype(x) &&
                    tn_tensor_device(bias) == tn_tensor_device(x) && tn_tensor_ndim(bias) == 1 &&
                    tn_tensor_size(bias, 0) == outputs)
               ? bias
               : NULL;
}

/* What a convolution computes with the modules and sums after it: a norm, a sum, an activation, in
 * this order. */
struct after {
    const tn_channel_norm *norm;
    tn_tensor *sum;
    const char *activation;
    int64_t count; /* followers */
};

static bool is_sum(const tn_tensor *sum, const tn_tensor *x, tn_ints shape)
{
    tn_ints own = tn_tensor_shape(sum);

    return tn_tensor_dtype(sum) == tn_tensor_dtype(x) &&
           tn_tensor_device(sum) == tn_tensor_device(x) && own.count == shape.count &&
           memcmp(own.at, shape.at, (size_t)shape.count * sizeof *shape.at) == 0;
}

static struct after after_of(const tn_follower *followers, int64_t count, const tn_tensor *x,
                             tn_ints shape)
{
    static const char *const known[] = { "relu", "relu6", "silu", "hardswish" };
    struct after after = { NULL, TN_NONE, "none", 0 };
    int64_t n = layers_skip(followers, count, 0);

    if (n < count && followers[n].norm != NULL) {
        if (!layers_norm_fits(followers[n].norm, x, shape.at[1]))
            return after;
        after.norm = followers[n].norm;
        after.count = n = layers_skip(followers, count, n + 1);
    }
    if (n < count && followers[n].add != NULL && is_sum(followers[n].add, x, shape)) {
        after.sum = followers[n].add;
        after.count = n = layers_skip(followers, count, n + 1);
    }
    for (size_t i = 0; n < count && i < sizeof known / sizeof *known; i++)
        if (followers[n].pointwise != NULL && strcmp(followers[n].pointwise, known[i]) == 0) {
            after.activation = known[i];
            after.count = n + 1;
            break;
        }
    return after.norm != NULL || after.sum != TN_NONE || strcmp(after.activation, "none") != 0
               ? after
               : (struct after){ .count = 0 };
}

static tn_tensor *conv_fuse(tn_module *self, tn_tensor *x, const tn_follower *followers,
                            int64_t count, int64_t *done)
{
    const struct conv *s = tn_module_data(self);
    int dims = layers_dims(self);
    int64_t shape[2 + MOST], pad[MOST], own[2 + MOST];
    tn_convolution_activation_options o = TN_CONVOLUTION_ACTIVATION_OPTIONS;
    tn_tensor *weight, *bias;
    struct after after;

    *done = 0;
    if (!fits(s, x, dims, shape, pad))
        return NULL;
    weight_shape(s, dims, false, own);
    weight = layers_plain_weight(self, x, (tn_ints){ own, 2 + dims });
    bias = weight != NULL ? plain_bias(self, x, s->out_channels) : NULL;
    if (bias == NULL || tn_tensor_device(weight) != tn_tensor_device(x))
        return NULL;
    after = after_of(followers, count, x, (tn_ints){ shape, 2 + dims });
    if (after.count == 0)
        return NULL;
    o.stride = (tn_ints){ s->step, dims };
    o.padding = (tn_ints){ pad, dims };
    o.dilation = (tn_ints){ s->apart, dims };
    o.groups = s->groups;
    *done = after.count;
    if (after.norm == NULL)
        return tn_convolution_activation(x, weight, bias, TN_NONE, TN_NONE, TN_NONE, TN_NONE,
                                         after.sum, after.activation, o.stride, o.padding,
                                         o.dilation, o.groups, o.eps);
    o.eps = after.norm->eps;
    return tn_convolution_activation(
        x, weight, bias, after.norm->mean, after.norm->var, after.norm->weight, after.norm->bias,
        after.sum, after.activation, o.stride, o.padding, o.dilation, o.groups, o.eps);
}

#define CONV_TRANSPOSE_OPTIONS(dims)                                                               \
    ((tn_ints){ s->step, dims }), ((tn_ints){ s->pad, dims }), ((tn_ints){ s->more, dims }),       \
        s->groups, ((tn_ints){ s->apart, dims })

static tn_tensor *conv_transpose1d(const struct conv *s, tn_tensor *x, tn_tensor *weight,
                                   tn_tensor *bias)
{
    return tn_conv_transpose1d(x, weight, bias, CONV_TRANSPOSE_OPTIONS(1));
}

static tn_tensor *conv_transpose2d(const struct conv *s, tn_tensor *x, tn_tensor *weight,
                                   tn_tensor *bias)
{
    return tn_conv_transpose2d(x, weight, bias, CONV_TRANSPOSE_OPTIONS(2));
}

static tn_tensor *conv_transpose3d(const struct conv *s, tn_tensor *x, tn_tensor *weight,
                                   tn_tensor *bias)
{
    return tn_conv_transpose3d(x, weight, bias, CONV_TRANSPOSE_OPTIONS(3));
}

static tn_tensor *conv_transpose_forward(tn_module *self, tn_tensor *x)
{
    static tn_tensor *(*const conv_transpose[])(const struct conv *, tn_tensor *, tn_tensor *,
                                                tn_tensor *) = { conv_transpose1d, conv_transpose2d,
                                                                 conv_transpose3d };

    return conv_transpose[layers_dims(self) - 1](
        tn_module_data(self), x, tn_module_get(self, "weight"), tn_module_get(self, "bias"));
}

/* ---- channels ---- */

static const tn_channel_row conv_rows[] = {
    { "weight", "out_channels", 0, TN_CHANNELS_OUT },
    { "bias", NULL, 0, TN_CHANNELS_OUT },
    { "weight", "in_channels", 1, TN_CHANNELS_IN },
};

static const tn_channel_row transpose_rows[] = {
    { "weight", "out_channels", 1, TN_CHANNELS_OUT },
    { "bias", NULL, 0, TN_CHANNELS_OUT },
    { "weight", "in_channels", 0, TN_CHANNELS_IN },
};

/* One filter for each channel. */
static const tn_channel_row each_rows[] = {
    { "weight", "out_channels", 0, TN_CHANNELS_SAME },
    { "bias", "in_channels", 0, TN_CHANNELS_SAME },
    { NULL, "groups", 0, TN_CHANNELS_SAME },
};

static tn_status conv_channels(tn_module *self, tn_channels *out)
{
    const struct conv *s = tn_module_data(self);
    bool each = s->groups == s->in_channels && s->groups == s->out_channels;

    if (s->groups != 1 && !each)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: groups: its channels belong together in groups, got %lld; expected 1, "
                       "or a group for each channel",
                       tn_module_type(self), (long long)s->groups);
    out->rows = s->groups != 1 ? each_rows : is_transposed(self) ? transpose_rows : conv_rows;
    out->n_rows = 3;
    out->in_axis = out->out_axis = -1 - layers_dims(self);
    return TN_OK;
}

/* ---- the layers ---- */

#define CONV_LAYER                                                                                 \
    .options = conv_options, .data_size = sizeof(struct conv), .build = conv_build,                \
    .reset = conv_reset, .forward = conv_forward, .repr = conv_repr, .channels = conv_channels,    \
    .fuse = conv_fuse, .flags = TN_LAYER_FUSE_NO_GRAD | TN_LAYER_READS_INPUT
#define CONV_HELP "y = weight * x + bias, where * is the cross-correlation over "
LAYER(conv1d, "Conv1d", CONV_LAYER, .help = CONV_HELP "1 dimension");
LAYER(conv2d, "Conv2d", CONV_LAYER, .help = CONV_HELP "2 dimensions");
LAYER(conv3d, "Conv3d", CONV_LAYER, .help = CONV_HELP "3 dimensions");

#define TRANSPOSE_LAYER                                                                            \
    .options = transpose_options, .data_size = sizeof(struct conv), .build = conv_build,           \
    .reset = conv_reset, .forward = conv_transpose_forward, .repr = conv_repr,                     \
    .channels = conv_channels
#define TRANSPOSE_HELP "the transposed convolution over "
LAYER(conv_transpose1d, "ConvTranspose1d", TRANSPOSE_LAYER, .help = TRANSPOSE_HELP "1 dimension");
LAYER(conv_transpose2d, "ConvTranspose2d", TRANSPOSE_LAYER, .help = TRANSPOSE_HELP "2 dimensions");
LAYER(conv_transpose3d, "ConvTranspose3d", TRANSPOSE_LAYER, .help = TRANSPOSE_HELP "3 dimensions");

#define LAZY(name)                                                                                 \
    .help = "a " name " that takes in_channels from its first input", .becomes = name,             \
    .data_size = sizeof(struct conv), .build = lazy_build, .infer = lazy_infer, .repr = conv_repr
#define LAZY_CONV(name)                                                                            \
    "Lazy" name, LAZY(name), .options = lazy_conv_options, .forward = conv_forward
#define LAZY_TRANSPOSE(name)                                                                       \
    "Lazy" name, LAZY(name), .options = lazy_transpose_options, .forward = conv_transpose_forward
LAYER(lazy_conv1d, LAZY_CONV("Conv1d"));
LAYER(lazy_conv2d, LAZY_CONV("Conv2d"));
LAYER(lazy_conv3d, LAZY_CONV("Conv3d"));
LAYER(lazy_conv_transpose1d, LAZY_TRANSPOSE("ConvTranspose1d"));
LAYER(lazy_conv_transpose2d, LAZY_TRANSPOSE("ConvTranspose2d"));
LAYER(lazy_conv_transpose3d, LAZY_TRANSPOSE("ConvTranspose3d"));
