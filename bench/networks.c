/* SPDX-License-Identifier: MIT */
#include "networks.h"

#include <string.h>

#include "ops.h"

/* ---- DenseNet-121 of torchvision: modules without a layer ------------------------------------ */

enum { GROWTH = 32, STEM = 64 };

/* Each layer gets the results of all layers before it. */
static tn_tensor *dense_block(tn_module *self, tn_tensor *x)
{
    for (int64_t i = 0; i < tn_module_child_count(self); i++) {
        tn_tensor *both[] = { x, tn_module_call(tn_module_child_at(self, i), x) };

        x = both[1] != NULL ? tn_cat(both, 2, 1) : NULL;
        if (x == NULL)
            return NULL;
    }
    return x;
}

static tn_tensor *densenet(tn_module *self, tn_tensor *x)
{
    x = tn_relu(tn_module_call_child(self, "features", x));
    x = tn_flatten(tn_adaptive_avg_pool2d(x, TN_SHAPE(1, 1)), 1, -1);
    return tn_module_call_child(self, "classifier", x);
}

/* Adds a child of a type of the program's own, which the parent keeps. */
static tn_module *add_plain(tn_module *to, const char *type, const char *name)
{
    tn_module *child = tn_module_plain(type);
    bool good = child != NULL && tn_module_add_child(to, name, child) == TN_OK;

    tn_module_drop(child);
    return good ? child : NULL;
}

static tn_status add_dense_layers(tn_module *features, int block, int count, int *channels)
{
    char name[32];
    tn_module *to;
    tn_status status;

    tn_snprint(name, sizeof name, "denseblock%d", block);
    to = add_plain(features, "_DenseBlock", name);
    status = to != NULL ? TN_OK : tn_error_last_code();
    for (int i = 1; i <= count && status == TN_OK; i++) {
        tn_module *layer;

        tn_snprint(name, sizeof name, "denselayer%d", i);
        layer = add_plain(to, "_DenseLayer", name);
        if (layer == NULL)
            return tn_error_last_code();
        status = tn_module_add_children(
            layer,
            "norm1=BatchNorm2d(%d), relu1=ReLU(inplace=True), "
            "conv1=Conv2d(%d, %d, 1, bias=False), norm2=BatchNorm2d(%d), "
            "relu2=ReLU(inplace=True), conv2=Conv2d(%d, %d, 3, padding=1, bias=False)",
            *channels, *channels, 4 * GROWTH, 4 * GROWTH, 4 * GROWTH, GROWTH);
        *channels += GROWTH;
    }
    return status;
}

static tn_status add_transition(tn_module *features, int block, int *channels)
{
    char name[32];
    tn_module *to;
    int inner = *channels;

    tn_snprint(name, sizeof name, "transition%d", block);
    to = add_plain(features, "_Transition", name);
    *channels /= 2;
    return to == NULL ? tn_error_last_code()
                      : tn_module_add_children(to,
                                               "norm=BatchNorm2d(%d), relu=ReLU(inplace=True), "
                                               "conv=Conv2d(%d, %d, 1, bias=False), "
                                               "pool=AvgPool2d(2, stride=2)",
                                               inner, inner, *channels);
}

static tn_status add_densenet(tn_module *module)
{
    static const int counts[] = { 6, 12, 24, 16 };
    tn_module *features;
    int channels = STEM;
    tn_status status = tn_module_add_children(
        module, "features=Sequential(conv0=Conv2d(3, 64, 7, stride=2, padding=3, bias=False), "
                "norm0=BatchNorm2d(64), relu0=ReLU(inplace=True), "
                "pool0=MaxPool2d(3, stride=2, padding=1)), classifier=Linear(1024, 1000)");

    features = status == TN_OK ? tn_module_child(module, "features") : NULL;
    for (int block = 0; block < 4 && status == TN_OK; block++) {
        status = add_dense_layers(features, block + 1, counts[block], &channels);
        if (status == TN_OK && block < 3)
            status = add_transition(features, block + 1, &channels);
    }
    if (status == TN_OK)
        status = tn_module_add_children(features, "norm5=BatchNorm2d(%d)", channels);
    if (status == TN_OK)
        status = tn_module_set_forwards(module, "_DenseLayer", tn_module_call_children);
    if (status == TN_OK)
        status = tn_module_set_forwards(module, "_DenseBlock", dense_block);
    if (status == TN_OK)
        status = tn_module_set_forwards(module, "_Transition", tn_module_call_children);
    return status == TN_OK ? tn_module_set_forwards(module, "DenseNet", densenet) : status;
}

static tn_module *new_densenet(void)
{
    tn_module *module = tn_module_plain("DenseNet");

    if (module == NULL || add_densenet(module) == TN_OK)
        return module;
    tn_module_drop(module);
    return NULL;
}

/* ---- GPT-2: one token after 128 others, whose keys and values are in a cache ----------------- */

enum { LAYERS = 12, HEADS = 12, WIDTH = 768, PAST = 128 };

static tn_ints past(int64_t batch)
{
    static int64_t shape[4];

    memcpy(shape, ((int64_t[]){ batch, HEADS, PAST, WIDTH / HEADS }), sizeof shape);
    return (tn_ints){ shape, 4 };
}

static tn_tensor *heads(tn_tensor *x)
{
    tn_ints shape = TN_SHAPE(tn_tensor_size(x, 0), tn_tensor_size(x, 1), HEADS, -1);

    return tn_transpose(tn_reshape(x, shape), 1, 2);
}

static tn_tensor *with_past(tn_tensor *before, tn_tensor *x)
{
    tn_tensor *both[] = { before, x };

    return x != NULL ? tn_cat(both, 2, 2) : NULL;
}

static tn_tensor *block_after(tn_module *block, tn_tensor *x, tn_tensor *const *cache)
{
    tn_tensor *part[3] = { NULL, NULL, NULL }, *y;

    tn_chunk(tn_module_call_chain(block, "ln_1 attn.c_attn", x), 3, -1, part, 3);
    y = tn_scaled_dot_product_attention(heads(part[0]), with_past(cache[0], heads(part[1])),
                                        with_past(cache[1], heads(part[2])));
    y = tn_module_call_chain(block, "attn.c_proj", tn_flatten(tn_transpose(y, 1, 2), 2, -1));
    x = tn_add(x, y);
    return tn_add(x, tn_module_call_chain(block, "ln_2 mlp", x));
}

static tn_tensor *next_token(tn_module *module, tn_tensor *x, tn_tensor *const *cache)
{
    tn_module *body = tn_module_child(module, "transformer"), *blocks;
    tn_tensor *place = tn_narrow(tn_module_find_tensor(body, "wpe.weight"), 0, PAST, 1);

    if (body == NULL || place == NULL)
        return NULL;
    x = tn_add(tn_module_call_child(body, "wte", x), place);
    blocks = tn_module_child(body, "h");
    for (int64_t i = 0; i < LAYERS && x != NULL; i++)
        x = block_after(tn_module_child_at(blocks, i), x, &cache[2 * i]);
    return tn_module_call_child(module, "lm_head", tn_module_call_child(body, "ln_f", x));
}

/* ---- the table ------------------------------------------------------------------------------- */

#define GPT2 "gpt2_small(dropout=0.0)"
#define UP(in, out, stride, padding)                                                               \
    "ConvTranspose2d(" #in ", " #out ", 4, stride=" #stride ", padding=" #padding                  \
    ", bias=False), BatchNorm2d(" #out "), ReLU(inplace=True), "
#define SOUND(in, out, size)                                                                       \
    "Conv1d(" #in ", " #out ", " size "), BatchNorm1d(" #out "), ReLU(), MaxPool1d(4), "

const bench_network bench_networks[] = {
    { .name = "mlp",
      .title = "MLP 784-512-512-10",
      .spec = "Sequential(Linear(784, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10))",
      .input = { 784 },
      .n_input = 1,
      .classes = 10,
      .batch = 128,
      .optimizer = "SGD" },
    { .name = "lenet",
      .title = "LeNet-5, 1x28x28",
      .spec = "Sequential(Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), "
              "ReLU(), MaxPool2d(2), Flatten(), Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), "
              "Linear(84, 10))",
      .input = { 1, 28, 28 },
      .n_input = 3,
      .classes = 10,
      .batch = 64,
      .optimizer = "SGD" },
    { .name = "resnet18-cifar",
      .title = "ResNet-18, 3x32x32",
      .spec = "resnet18(num_classes=10, stem='small')",
      .input = { 3, 32, 32 },
      .n_input = 3,
      .classes = 10,
      .batch = 32,
      .optimizer = "SGD" },
    { .name = "resnet18",
      .title = "ResNet-18, 3x224x224",
      .spec = "resnet18()",
      .input = { 3, 224, 224 },
      .n_input = 3,
      .classes = 1000,
      .batch = 8,
      .optimizer = "SGD" },
    { .name = "encoder",
      .title = "encoder d256 L4 h4, 128 tokens",
      .spec = "Sequential(Embedding(1000, 256), TransformerEncoder(TransformerEncoderLayer(256, 4, "
              "1024, 0.0, 'gelu', batch_first=True, norm_first=True), 4), LayerNorm(256), "
              "Linear(256, 10))",
      .input = { 128 },
      .n_input = 1,
      .tokens = 1000,
      .classes = 10,
      .batch = 8,
      .optimizer = "AdamW" },
    { .name = "lstm",
      .title = "LSTM language model 2x256, 64 tokens",
      .spec = "lstm_lm(10000, embedding_dim=256, hidden_size=256, dropout=0.0)",
      .input = { 64 },
      .n_input = 1,
      .tokens = 10000,
      .classes = 10000,
      .batch = 16,
      .optimizer = "SGD" },
    { .name = "resnet50",
      .title = "ResNet-50, 3x224x224",
      .spec = "resnet50()",
      .input = { 3, 224, 224 },
      .n_input = 3,
      .classes = 1000,
      .batch = 4,
      .optimizer = "SGD" },
    { .name = "mobilenet",
      .title = "MobileNetV2, 3x224x224",
      .spec = "mobilenet_v2(dropout=0.0)",
      .input = { 3, 224, 224 },
      .n_input = 3,
      .classes = 1000,
      .batch = 4,
      .optimizer = "SGD" },
    { .name = "densenet",
      .title = "DenseNet-121, 3x224x224",
      .make = new_densenet,
      .input = { 3, 224, 224 },
      .n_input = 3,
      .classes = 1000,
      .batch = 4,
      .optimizer = "SGD" },
    { .name = "unet",
      .title = "U-Net base 32, 3x128x128",
      .spec = "unet(3, 2, base=32)",
      .input = { 3, 128, 128 },
      .n_input = 3,
      .classes = 2,
      .batch = 4,
      .optimizer = "SGD" },
    { .name = "dcgan",
      .title = "DCGAN, generator of 3x64x64",
      .spec = "Sequential(" UP(100, 512, 1, 0) UP(512, 256, 2, 1) UP(256, 128, 2, 1)
          UP(128, 64, 2, 1) "ConvTranspose2d(64, 3, 4, stride=2, padding=1, bias=False), Tanh())",
      .input = { 100, 1, 1 },
      .n_input = 3,
      .batch = 16,
      .optimizer = "SGD" },
    { .name = "vit",
      .title = "ViT-B/16, 3x224x224",
      .spec = "vit_base()",
      .input = { 3, 224, 224 },
      .n_input = 3,
      .classes = 1000,
      .batch = 2,
      .optimizer = "AdamW" },
    { .name = "bert-tiny",
      .title = "BERT-tiny d128 L2 h2, 128 tokens",
      .spec = "Sequential(Embedding(30522, 128), LayerNorm(128), TransformerEncoder("
              "TransformerEncoderLayer(128, 2, 512, 0.0, 'gelu', batch_first=True), 2), "
              "Linear(128, 2))",
      .input = { 128 },
      .n_input = 1,
      .tokens = 30522,
      .classes = 2,
      .batch = 32,
      .optimizer = "AdamW" },
    { .name = "gpt2",
      .title = "GPT-2 small, prompt of 128 tokens",
      .spec = GPT2,
      .input = { 128 },
      .n_input = 1,
      .tokens = 50257,
      .classes = 50257,
      .batch = 1,
      .optimizer = "AdamW" },
    { .name = "gpt2-token",
      .title = "GPT-2 small, a token after 128 in a cache",
      .spec = GPT2,
      .forward = next_token,
      .cache = past,
      .input = { 1 },
      .n_input = 1,
      .tokens = 50257,
      .classes = 50257 },
    { .name = "faces-p",
      .title = "face detector, proposals of 3x160x120",
      .spec = "Sequential(Conv2d(3, 10, 3), PReLU(10), MaxPool2d(2, 2, ceil_mode=True), "
              "Conv2d(10, 16, 3), PReLU(16), Conv2d(16, 32, 3), PReLU(32), Conv2d(32, 6, 1))",
      .input = { 3, 160, 120 },
      .n_input = 3,
      .classes = 6,
      .batch = 8,
      .optimizer = "SGD" },
    { .name = "faces-r",
      .title = "face detector, 3x24x24",
      .spec = "Sequential(Conv2d(3, 28, 3), PReLU(28), MaxPool2d(3, 2, ceil_mode=True), "
              "Conv2d(28, 48, 3), PReLU(48), MaxPool2d(3, 2, ceil_mode=True), Conv2d(48, 64, 2), "
              "PReLU(64), Flatten(), Linear(576, 128), PReLU(128), Linear(128, 6))",
      .input = { 3, 24, 24 },
      .n_input = 3,
      .classes = 6,
      .batch = 64,
      .optimizer = "SGD" },
    { .name = "faces-o",
      .title = "face detector, 3x48x48",
      .spec = "Sequential(Conv2d(3, 32, 3), PReLU(32), MaxPool2d(3, 2, ceil_mode=True), "
              "Conv2d(32, 64, 3), PReLU(64), MaxPool2d(3, 2, ceil_mode=True), Conv2d(64, 64, 3), "
              "PReLU(64), MaxPool2d(2, 2, ceil_mode=True), Conv2d(64, 128, 2), PReLU(128), "
              "Flatten(), Linear(1152, 256), PReLU(256), Linear(256, 16))",
      .input = { 3, 48, 48 },
      .n_input = 3,
      .classes = 16,
      .batch = 32,
      .optimizer = "SGD" },
    { .name = "audio",
      .title = "1-d convolutions, a second at 16 kHz",
      .spec = "Sequential(" SOUND(1, 32, "80, stride=4") SOUND(32, 32, "3") SOUND(32, 64, "3")
          SOUND(64, 64, "3") "AdaptiveAvgPool1d(1), Flatten(), Linear(64, 35))",
      .input = { 1, 16000 },
      .n_input = 2,
      .classes = 35,
      .batch = 16,
      .optimizer = "SGD" },
};
const int bench_n_networks = sizeof bench_networks / sizeof *bench_networks;

/* ---- using them ------------------------------------------------------------------------------ */

tn_module *bench_network_new(const bench_network *network)
{
    return network->make != NULL ? network->make() : tn_module_parse(network->spec);
}

tn_tensor *bench_network_call(const bench_network *network, tn_module *module, tn_tensor *x,
                              tn_tensor *const *cache)
{
    return network->forward != NULL ? network->forward(module, x, cache)
                                    : tn_module_call(module, x);
}

/* Results [N, L, classes] of tokens are rows of a table for the cross entropy. */
static tn_tensor *rows_of(const bench_network *network, tn_tensor *y)
{
    return y != NULL && network->tokens > 0 && tn_tensor_ndim(y) == 3 ? tn_flatten(y, 0, 1) : y;
}

tn_tensor *bench_network_loss(const bench_network *network, tn_tensor *y, tn_tensor *target)
{
    return network->classes == 0 ? tn_mse_loss(y, target)
                                 : tn_cross_entropy(rows_of(network, y), target);
}

tn_tensor *bench_network_target(const bench_network *network, tn_tensor *y, uint64_t *state)
{
    tn_ints shape = tn_tensor_shape(y = rows_of(network, y));
    int64_t sizes[TN_MAX_DIMS], count = 0;

    if (network->classes == 0)
        return bench_tensor("normal", 0, shape, TN_F32, state);
    for (int64_t i = 0; i < shape.count; i++)
        if (i != 1)
            sizes[count++] = shape.at[i];
    return bench_tensor("below", network->classes, (tn_ints){ sizes, count }, TN_I64, state);
}
