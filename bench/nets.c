/* SPDX-License-Identifier: MIT
 *
 * An MLP, LeNet-5, ResNet-18 in two sizes and a transformer encoder. train.py has the same. */
#include <math.h>
#include <stdlib.h>

#include "nets.h"
#include "ops.h"

/* ---- parameters ------------------------------------------------------------------------------ */

static tn_tensor *parameter(bench_model *m, tn_ints shape, double middle, double spread)
{
    if (!m->made && m->n_parameters < BENCH_TENSORS) {
        tn_tensor *made = bench_tensor("normal", 0, shape, TN_F32, &m->state);

        made = tn_add_scalar_(tn_mul_scalar_(made, spread), middle); /* no extra memory */
        if (made == NULL)
            return NULL;
        tn_tensor_set_requires_grad(made, true);
        m->parameters[m->n_parameters++] = tn_keep(made);
    }
    return m->parameters[m->next_parameter++];
}

static tn_tensor *buffer(bench_model *m, int64_t size, double value)
{
    if (!m->made && m->n_buffers < BENCH_TENSORS) {
        tn_tensor *made = tn_tensor_full(TN_SHAPE(size), value, TN_F32, NULL);

        if (made == NULL)
            return NULL;
        m->buffers[m->n_buffers++] = tn_keep(made);
    }
    return m->buffers[m->next_buffer++];
}

/* A product of `count` multiply-adds, with its two gradients. */
static void count_up(bench_model *m, double count)
{
    if (!m->made)
        m->multiply += count * (m->first ? 2 : 3);
    m->first = false;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* f(dense(x)) + residual, TN_NONE for no sum. */
static tn_tensor *dense_then(bench_model *m, tn_tensor *x, int64_t outputs, const char *activation,
                             tn_tensor *residual)
{
    int64_t inputs = tn_tensor_size(x, -1);
    tn_tensor *w = parameter(m, TN_SHAPE(outputs, inputs), 0, 1 / sqrt((double)inputs));
    tn_tensor *b = parameter(m, TN_SHAPE(outputs), 0, 0.01), *y, *before;

    count_up(m, (double)tn_tensor_numel(x) * (double)outputs);
    return tn_linear_activation(x, w, b, residual, activation, &y, &before) == TN_OK ? y : NULL;
}

static tn_tensor *dense(bench_model *m, tn_tensor *x, int64_t outputs)
{
    return dense_then(m, x, outputs, "none", TN_NONE);
}

static tn_tensor *windows(bench_model *m, tn_tensor *x, int64_t outputs, int64_t kernel,
                          int64_t stride, int64_t padding, bool bias)
{
    tn_conv2d_options o = TN_CONV2D_OPTIONS;
    int64_t inputs = tn_tensor_size(x, 1), members = inputs * kernel * kernel;
    tn_tensor *w = parameter(m, TN_SHAPE(outputs, inputs, kernel, kernel), 0,
                             1.3 / sqrt((double)members)),
              *y;

    o.stride = TN_SHAPE(stride, stride);
    o.padding = TN_SHAPE(padding, padding);
    y = tn_conv2d(x, w, bias ? parameter(m, TN_SHAPE(outputs), 0, 0.01) : TN_NONE, &o);
    if (y != NULL)
        count_up(m, (double)tn_tensor_numel(y) * (double)members);
    return y;
}

typedef struct by_channel {
    tn_tensor *mean, *var, *weight, *bias;
} by_channel;

static by_channel by_channel_of(bench_model *m, tn_tensor *x)
{
    int64_t channels = tn_tensor_size(x, 1);
    by_channel c;

    c.mean = buffer(m, channels, 0);
    c.var = buffer(m, channels, 1);
    c.weight = parameter(m, TN_SHAPE(channels), 1, 0.1);
    c.bias = parameter(m, TN_SHAPE(channels), 0, 0.1);
    return c;
}

static tn_tensor *normal(bench_model *m, tn_tensor *x)
{
    tn_batch_norm_options o = TN_BATCH_NORM_OPTIONS;
    by_channel c = by_channel_of(m, x);

    o.training = true;
    return tn_batch_norm(x, c.mean, c.var, c.weight, c.bias, &o);
}

/* relu(normal(x) + residual), TN_NONE for no sum. */
static tn_tensor *normal_relu(tn_tensor *x, by_channel c, tn_tensor *residual)
{
    tn_batch_norm_relu_options o = TN_BATCH_NORM_RELU_OPTIONS;

    o.training = true;
    return tn_batch_norm_relu(x, c.mean, c.var, c.weight, c.bias, residual, &o);
}

/* A convolution without bias, normalization, relu. */
static tn_tensor *windows_relu(bench_model *m, tn_tensor *x, int64_t outputs, int64_t kernel,
                               int64_t stride, int64_t padding)
{
    tn_tensor *y = windows(m, x, outputs, kernel, stride, padding, false);

    return normal_relu(y, by_channel_of(m, y), TN_NONE);
}

static tn_tensor *rows_normal(bench_model *m, tn_tensor *x)
{
    int64_t size = tn_tensor_size(x, -1);
    tn_tensor *w = parameter(m, TN_SHAPE(size), 1, 0.1), *b = parameter(m, TN_SHAPE(size), 0, 0.1);

    return tn_layer_norm(x, w, b, TN_SHAPE(size), NULL);
}

static tn_tensor *halves(tn_tensor *x)
{
    return tn_max_pool2d(x, TN_SHAPE(2, 2), NULL);
}

/* ---- networks -------------------------------------------------------------------------------- */

static tn_tensor *mlp(bench_model *m, tn_tensor *x)
{
    x = dense_then(m, x, 512, "relu", TN_NONE);
    x = dense_then(m, x, 512, "relu", TN_NONE);
    return dense(m, x, 10);
}

static tn_tensor *lenet(bench_model *m, tn_tensor *x)
{
    x = halves(tn_relu(windows(m, x, 6, 5, 1, 2, true)));
    x = halves(tn_relu(windows(m, x, 16, 5, 1, 0, true)));
    x = tn_reshape(x, TN_SHAPE(tn_tensor_size(x, 0), 400));
    x = dense_then(m, x, 120, "relu", TN_NONE);
    x = dense_then(m, x, 84, "relu", TN_NONE);
    return dense(m, x, 10);
}

static tn_tensor *block(bench_model *m, tn_tensor *x, int64_t outputs, int64_t stride)
{
    tn_tensor *y = windows_relu(m, x, outputs, 3, stride, 1);
    by_channel last;

    y = windows(m, y, outputs, 3, 1, 1, false);
    last = by_channel_of(m, y); /* in the peer's order: before those of the short way */
    if (stride > 1)
        x = normal(m, windows(m, x, outputs, 1, stride, 0, false));
    return normal_relu(y, last, x);
}

static tn_tensor *stages(bench_model *m, tn_tensor *x, int64_t classes)
{
    static const int64_t dims[2] = { 2, 3 };
    tn_mean_options o = TN_MEAN_OPTIONS;

    for (int stage = 0; stage < 4; stage++) {
        x = block(m, x, INT64_C(64) << stage, stage > 0 ? 2 : 1);
        x = block(m, x, INT64_C(64) << stage, 1);
    }
    o.dims = (tn_ints){ dims, 2 };
    return dense(m, tn_mean(x, &o), classes);
}

static tn_tensor *resnet_small(bench_model *m, tn_tensor *x)
{
    return stages(m, windows_relu(m, x, 64, 3, 1, 1), 10);
}

static tn_tensor *resnet(bench_model *m, tn_tensor *x)
{
    tn_max_pool2d_options o = TN_MAX_POOL2D_OPTIONS;

    o.stride = TN_SHAPE(2, 2);
    o.padding = TN_SHAPE(1, 1);
    x = windows_relu(m, x, 64, 7, 2, 3);
    return stages(m, tn_max_pool2d(x, TN_SHAPE(3, 3), &o), 1000);
}

enum { WIDTH = 256, HEADS = 4, LAYERS = 4 };

/* [N, L, E] as [N, heads, L, E / heads], part `which` of three. */
static tn_tensor *heads_of(tn_tensor *all, int64_t which)
{
    int64_t n = tn_tensor_size(all, 0), length = tn_tensor_size(all, 1);

    return tn_transpose(tn_reshape(tn_narrow(all, 2, which * WIDTH, WIDTH),
                                   TN_SHAPE(n, length, HEADS, WIDTH / HEADS)),
                        1, 2);
}

/* residual + attention(x) */
static tn_tensor *attention(bench_model *m, tn_tensor *x, tn_tensor *residual)
{
    int64_t n = tn_tensor_size(x, 0), length = tn_tensor_size(x, 1);
    tn_tensor *all = dense(m, x, 3 * WIDTH);
    tn_tensor *y = tn_scaled_dot_product_attention(heads_of(all, 0), heads_of(all, 1),
                                                   heads_of(all, 2), TN_NONE, NULL);

    count_up(m, 2.0 * (double)(n * length * length * WIDTH));
    return dense_then(m, tn_reshape(tn_transpose(y, 1, 2), TN_SHAPE(n, length, WIDTH)), WIDTH,
                      "none", residual);
}

static tn_tensor *transformer(bench_model *m, tn_tensor *x)
{
    static const int64_t along[1] = { 1 };
    tn_mean_options o = TN_MEAN_OPTIONS;
    int64_t length = tn_tensor_size(x, 1);
    tn_tensor *table = parameter(m, TN_SHAPE(1000, WIDTH), 0, 0.5),
              *places = parameter(m, TN_SHAPE(length, WIDTH), 0, 0.5);

    m->first = false;
    x = tn_add(tn_embedding(table, x, NULL), places, NULL);
    for (int layer = 0; layer < LAYERS; layer++) {
        tn_tensor *wide;

        x = attention(m, rows_normal(m, x), x);
        wide = dense_then(m, rows_normal(m, x), 4 * WIDTH, "gelu", TN_NONE);
        x = dense_then(m, wide, WIDTH, "none", x);
    }
    o.dims = (tn_ints){ along, 1 };
    return dense(m, tn_mean(rows_normal(m, x), &o), 10);
}

const bench_net bench_nets[] = {
    { "mlp", "MLP 784-512-512-10, batch 128", "SGD", { 128, 784 }, 2, 10, 0, false, mlp },
    { "lenet", "LeNet-5, 1x28x28, batch 64", "SGD", { 64, 1, 28, 28 }, 4, 10, 0, true, lenet },
    { "resnet-cifar",
      "ResNet-18, 3x32x32, batch 32",
      "SGD",
      { 32, 3, 32, 32 },
      4,
      10,
      0,
      true,
      resnet_small },
    { "resnet-224",
      "ResNet-18, 3x224x224, batch 8",
      "SGD",
      { 8, 3, 224, 224 },
      4,
      1000,
      0,
      true,
      resnet },
    { "transformer",
      "Encoder d256 L4 h4, 128 tokens, batch 8",
      "AdamW",
      { 8, 128 },
      2,
      10,
      1000,
      false,
      transformer },
};
const int bench_n_nets = (int)(sizeof bench_nets / sizeof bench_nets[0]);
