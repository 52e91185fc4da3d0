/* SPDX-License-Identifier: MIT
 *
 * ResNet-18 written in C: two layers that the program registers itself, blocks and network, with the names that
 * torchvision gives, so that weights which PyTorch wrote fit. resnet18 WEIGHTS.pth IMAGE.npy [LOGITS.npy] prints the
 * network as PyTorch does and the logits. tests/models/resnet18.py compares them with PyTorch's. */
#include <stdio.h>
#include <tenon/tenon.h>

struct block {
    int64_t in, out, stride;
};

static tn_status add(tn_module *self, const char *name, tn_module *child)
{
    tn_status status = tn_module_add_child(self, name, child);
    tn_module_drop(child);
    return status;
}

static tn_tensor *call(tn_module *self, const char *name, tn_tensor *x)
{
    return tn_module_call(tn_module_child(self, name), x);
}

static tn_status block_build(tn_module *self)
{
    const struct block *b = tn_module_data(self);
    add(self, "conv1",
        tn_module_new("Conv2d(%lld, %lld, kernel_size=3, stride=%lld, padding=1, bias=False)",
                      b->in, b->out, b->stride));
    add(self, "bn1", tn_module_new("BatchNorm2d(%lld)", b->out));
    add(self, "relu", tn_module_new("ReLU(inplace=True)"));
    add(self, "conv2",
        tn_module_new("Conv2d(%lld, %lld, kernel_size=3, stride=1, padding=1, bias=False)", b->out,
                      b->out));
    add(self, "bn2", tn_module_new("BatchNorm2d(%lld)", b->out));
    if (b->in != b->out)
        add(self, "downsample",
            tn_module_new(
                "Sequential(Conv2d(%lld, %lld, kernel_size=1, stride=%lld, bias=False), BatchNorm2d(%lld))",
                b->in, b->out, b->stride, b->out));
    return tn_failed() ? tn_error_code() : TN_OK;
}

static tn_tensor *block_forward(tn_module *self, tn_tensor *x)
{
    const struct block *b = tn_module_data(self);
    tn_tensor *y = call(self, "relu", call(self, "bn1", call(self, "conv1", x)));
    y = call(self, "bn2", call(self, "conv2", y));
    return call(self, "relu", tn_add(y, b->in != b->out ? call(self, "downsample", x) : x, NULL));
}

static tn_status net_build(tn_module *self)
{
    add(self, "conv1",
        tn_module_new("Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)"));
    add(self, "bn1", tn_module_new("BatchNorm2d(64)"));
    add(self, "relu", tn_module_new("ReLU(inplace=True)"));
    add(self, "maxpool", tn_module_new("MaxPool2d(kernel_size=3, stride=2, padding=1)"));
    for (long long i = 0, in = 64, out = 64; i < 4; i++, in = out, out *= 2) {
        char name[] = { 'l', 'a', 'y', 'e', 'r', (char)('1' + i), '\0' };
        add(self, name,
            tn_module_new("Sequential(BasicBlock(%lld, %lld, %lld), BasicBlock(%lld, %lld, 1))", in,
                          out, i > 0 ? 2ll : 1ll, out, out));
    }
    add(self, "avgpool", tn_module_new("AdaptiveAvgPool2d((1, 1))"));
    add(self, "fc", tn_module_new("Linear(512, 1000)"));
    return tn_failed() ? tn_error_code() : TN_OK;
}

static tn_tensor *net_forward(tn_module *self, tn_tensor *x)
{
    static const char *const steps[] = { "conv1",  "bn1",    "relu",   "maxpool", "layer1",
                                         "layer2", "layer3", "layer4", "avgpool" };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        x = call(self, steps[i], x);
    return call(self, "fc",
                tn_flatten(x, &(tn_flatten_options){ .size = sizeof(tn_flatten_options),
                                                     .start_dim = 1,
                                                     .end_dim = -1 }));
}

static int64_t no_words(tn_module *self, char *out, size_t size)
{
    return (void)self, tn_snprint(out, size, "");
}

static const tn_option block_options[] = {
    TN_OPTION_INT_REQUIRED(struct block, in, "channels"),
    TN_OPTION_INT_REQUIRED(struct block, out, "channels"),
    TN_OPTION_INT(struct block, stride, "1", "of the first convolution"), TN_OPTION_END
};
static const tn_layer block = { TN_HEAD(tn_layer),        .name = "BasicBlock",
                                .options = block_options, .data_size = sizeof(struct block),
                                .build = block_build,     .forward = block_forward,
                                .repr = no_words };
static const tn_layer net = { TN_HEAD(tn_layer), .name = "ResNet", .build = net_build,
                              .forward = net_forward };

int main(int count, char **arguments)
{
    static char text[16384];
    if (count < 3) {
        fprintf(stderr, "usage: resnet18 WEIGHTS IMAGE.npy [LOGITS.npy]\n");
        return 2;
    }
    tn_register(&block);
    tn_register(&net);
    tn_module *model = tn_module_new("ResNet()");
    tn_module_load(model, arguments[1]);
    tn_module_eval(model);
    tn_module_repr(model, text, sizeof text);
    puts(text);
    tn_state *image = tn_state_load(arguments[2]), *result = tn_state_new();
    tn_tensor *logits = tn_module_call(model, tn_state_tensor(image, 0));
    if (logits != NULL && count > 3) {
        tn_state_set(result, "logits", tn_tensor_detach(logits));
        tn_state_save(result, arguments[3]);
    }
    if (tn_failed())
        fprintf(stderr, "resnet18: %s\n", tn_error_text());
    tn_state_drop(image);
    tn_state_drop(result);
    tn_module_drop(model);
    return tn_failed();
}
