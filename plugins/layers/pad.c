/* SPDX-License-Identifier: MIT
 *
 * Padding of the last one to three dimensions. */
#include "layers.h"
#include <string.h>

enum { MOST = 3 };

struct padding {
    tn_ints padding;
    double value;
    int64_t sizes[2 * MOST];
};

static const tn_option pad_options[] = {
    TN_OPTION_ROW(struct padding, padding, NULL,
                  "one number, or before and after from the last dimension on", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED),
    TN_OPTION_END
};
static const tn_option constant_options[] = {
    TN_OPTION_ROW(struct padding, padding, NULL,
                  "one number, or before and after from the last dimension on", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct padding, value, NULL, "what the edges are", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static tn_status pad_build(tn_module *self, int64_t dims)
{
    struct padding *s = tn_module_data(self);

    if (s->padding.count != 1 && s->padding.count != 2 * dims)
        return tn_fail(TN_ERR_VALUE, "%s: padding has to be one number, or %lld of them",
                       tn_module_type(self), (long long)(2 * dims));
    for (int64_t i = 0; i < 2 * dims; i++)
        s->sizes[i] = s->padding.at[s->padding.count == 1 ? 0 : i];
    return TN_OK;
}

static tn_tensor *padded(tn_module *self, tn_tensor *x, int64_t dims, const char *mode,
                         double value)
{
    const struct padding *s = tn_module_data(self);
    tn_pad_options o = TN_PAD_OPTIONS;

    /* Constants go to the last dimensions of any tensor, as with PyTorch; the others to images. */
    if (strcmp(mode, "constant") != 0 && tn_tensor_ndim(x) != dims + 1 &&
        tn_tensor_ndim(x) != dims + 2) {
        tn_fail(TN_ERR_RUNTIME, "%s: x has %d dimension%s; expected %d, or %d with a batch",
                tn_module_type(self), (int)tn_tensor_ndim(x), tn_tensor_ndim(x) == 1 ? "" : "s",
                (int)dims + 1, (int)dims + 2);
        return NULL;
    }
    o.mode = mode;
    o.value = value;
    return tn_pad(x, (tn_ints){ s->sizes, 2 * dims }, &o);
}

static int64_t pad_repr(tn_module *self, char *out, size_t size, int64_t dims, bool value)
{
    const struct padding *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    if (value)
        layers_put(&text, "padding=");
    layers_put_row(&text, (tn_ints){ s->sizes, 2 * dims }, 2 * dims);
    if (value)
        layers_put(&text, ", value=%g", s->value);
    return text.used;
}

#define PAD(dims, id, Name, table, mode, value_, has_value, help_)                                 \
    static tn_status id##dims##_build(tn_module *self)                                             \
    {                                                                                              \
        return pad_build(self, dims);                                                              \
    }                                                                                              \
    static tn_tensor *id##dims##_forward(tn_module *self, tn_tensor *x)                            \
    {                                                                                              \
        const struct padding *s = tn_module_data(self);                                            \
        (void)s;                                                                                   \
        return padded(self, x, dims, mode, value_);                                                \
    }                                                                                              \
    static int64_t id##dims##_repr(tn_module *self, char *out, size_t size)                        \
    {                                                                                              \
        return pad_repr(self, out, size, dims, has_value);                                         \
    }                                                                                              \
    const tn_layer layer_##id##dims##d = {                                                         \
        TN_HEAD(tn_layer),                                                                         \
        .name = #Name #dims "d",                                                                   \
        .help = help_,                                                                             \
        .options = table,                                                                          \
        .data_size = sizeof(struct padding),                                                       \
        .version = 1,                                                                              \
        .build = id##dims##_build,                                                                 \
        .forward = id##dims##_forward,                                                             \
        .repr = id##dims##_repr,                                                                   \
    };
#define PADS(dims)                                                                                 \
    PAD(dims, zero_pad, ZeroPad, pad_options, "constant", 0, false, "zeros at the edges")          \
    PAD(dims, constant_pad, ConstantPad, constant_options, "constant", s->value, true,             \
        "a number at the edges")                                                                   \
    PAD(dims, reflection_pad, ReflectionPad, pad_options, "reflect", 0, false,                     \
        "the image mirrored at the edges")                                                         \
    PAD(dims, replication_pad, ReplicationPad, pad_options, "replicate", 0, false,                 \
        "the edges repeated")                                                                      \
    PAD(dims, circular_pad, CircularPad, pad_options, "circular", 0, false,                        \
        "the image goes on at the other edge")
PADS(1)
PADS(2)
PADS(3)
