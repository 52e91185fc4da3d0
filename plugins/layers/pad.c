/* SPDX-License-Identifier: MIT
 *
 * Padding of the last one to three dimensions. */
#include "helpers.h"
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
    TN_OPTION_ROW(struct padding, value, NULL, "value of the padding", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static tn_status pad_build(tn_module *self)
{
    int64_t dims = layers_dims(self);
    struct padding *s = tn_module_data(self);

    if (s->padding.count != 1 && s->padding.count != 2 * dims)
        return tn_fail(TN_ERR_VALUE,
                       "%s: padding: wrong count, got %lld; expected 1 or %lld numbers",
                       tn_module_type(self), (long long)s->padding.count, (long long)(2 * dims));
    for (int64_t i = 0; i < 2 * dims; i++)
        s->sizes[i] = s->padding.at[s->padding.count == 1 ? 0 : i];
    return TN_OK;
}

static tn_tensor *padded(tn_module *self, tn_tensor *x, const char *mode, double value)
{
    int64_t dims = layers_dims(self);
    const struct padding *s = tn_module_data(self);

    /* As in PyTorch, padding with a constant applies to the last dimensions of any tensor; the
     * other modes need images. There, the circular layers check this themselves: a ValueError. The
     * others leave it to the operator. */
    if (strcmp(mode, "constant") != 0 && tn_tensor_ndim(x) != dims + 1 &&
        tn_tensor_ndim(x) != dims + 2) {
        tn_fail(strcmp(mode, "circular") == 0 ? TN_ERR_VALUE : TN_ERR_RUNTIME,
                "%s: input: wrong number of dimensions, got %d; expected %d, or %d with a batch "
                "dimension",
                tn_module_type(self), (int)tn_tensor_ndim(x), (int)dims + 1, (int)dims + 2);
        return NULL;
    }
    return tn_pad(x, ((tn_ints){ s->sizes, 2 * dims }), mode, value);
}

static int64_t pad_repr(tn_module *self, char *out, size_t size)
{
    const struct padding *s = tn_module_data(self);
    int64_t dims = layers_dims(self);
    layers_text text = { out, size, 0 };

    layers_put_row(&text, (tn_ints){ s->sizes, 2 * dims }, 2 * dims);
    return text.used;
}

static int64_t constant_repr(tn_module *self, char *out, size_t size)
{
    const struct padding *s = tn_module_data(self);
    int64_t dims = layers_dims(self);
    layers_text text = { out, size, 0 };

    layers_put(&text, "padding=");
    layers_put_row(&text, (tn_ints){ s->sizes, 2 * dims }, 2 * dims);
    layers_put(&text, ", value=%g", s->value);
    return text.used;
}

static tn_tensor *zero_forward(tn_module *self, tn_tensor *x)
{
    return padded(self, x, "constant", 0);
}

static tn_tensor *constant_forward(tn_module *self, tn_tensor *x)
{
    const struct padding *s = tn_module_data(self);

    return padded(self, x, "constant", s->value);
}

static tn_tensor *reflection_forward(tn_module *self, tn_tensor *x)
{
    return padded(self, x, "reflect", 0);
}

static tn_tensor *replication_forward(tn_module *self, tn_tensor *x)
{
    return padded(self, x, "replicate", 0);
}

static tn_tensor *circular_forward(tn_module *self, tn_tensor *x)
{
    return padded(self, x, "circular", 0);
}

/* ---- the layers ---- */

#define PAD(forward_)                                                                              \
    .options = pad_options, .data_size = sizeof(struct padding), .build = pad_build,               \
    .forward = forward_, .repr = pad_repr
#define ZERO PAD(zero_forward), .help = "pads with zeros"
#define REFLECTION PAD(reflection_forward), .help = "pads with the image mirrored at its edges"
#define REPLICATION PAD(replication_forward), .help = "pads with the elements at the edges"
#define CIRCULAR PAD(circular_forward), .help = "pads with the elements of the opposite edge"
#define CONSTANT                                                                                   \
    .options = constant_options, .data_size = sizeof(struct padding), .build = pad_build,          \
    .forward = constant_forward, .repr = constant_repr, .help = "pads with a number"

LAYER(zero_pad1d, "ZeroPad1d", ZERO);
LAYER(zero_pad2d, "ZeroPad2d", ZERO);
LAYER(zero_pad3d, "ZeroPad3d", ZERO);
LAYER(constant_pad1d, "ConstantPad1d", CONSTANT);
LAYER(constant_pad2d, "ConstantPad2d", CONSTANT);
LAYER(constant_pad3d, "ConstantPad3d", CONSTANT);
LAYER(reflection_pad1d, "ReflectionPad1d", REFLECTION);
LAYER(reflection_pad2d, "ReflectionPad2d", REFLECTION);
LAYER(reflection_pad3d, "ReflectionPad3d", REFLECTION);
LAYER(replication_pad1d, "ReplicationPad1d", REPLICATION);
LAYER(replication_pad2d, "ReplicationPad2d", REPLICATION);
LAYER(replication_pad3d, "ReplicationPad3d", REPLICATION);
LAYER(circular_pad1d, "CircularPad1d", CIRCULAR);
LAYER(circular_pad2d, "CircularPad2d", CIRCULAR);
LAYER(circular_pad3d, "CircularPad3d", CIRCULAR);
