/* SPDX-License-Identifier: MIT
 *
 * ResNet-18 in C. The program registers two layers itself, a block and the network. Their children
 * have the names that torchvision uses, so that weights saved by PyTorch can be loaded. resnet18
 * WEIGHTS.pth IMAGE.npy [LOGITS.npy] prints the network as PyTorch does and saves the logits. `make
 * interchange` compares both with the output of PyTorch. */
#include <stdio.h>
#include <tenon/tenon.h>

struct block {
    int64_t in, out, stride;
};

static tn_status block_build(tn_module *self)
{
    const struct block *b = tn_module_data(self);
    tn_status status = tn_module_add_children(
        self,
        "conv1=Conv2d(%lld, %lld, 3, stride=%lld, padding=1, bias=False), bn1=BatchNorm2d(%lld), "
        "relu=ReLU(inplace=True), "
        "conv2=Conv2d(%lld, %lld, 3, stride=1, padding=1, bias=False), bn2=BatchNorm2d(%lld)",
        b->in, b->out, b->stride, b->out, b->out, b->out, b->out);
    if (status == TN_OK && b->in != b->out)
        status = tn_module_add_children(
            self,
            "downsample=Sequential(Conv2d(%lld, %lld, 1, stride=%lld, bias=False), "
            "BatchNorm2d(%lld))",
            b->in, b->out, b->stride, b->out);
    return status;
}

static tn_tensor *block_forward(tn_module *self, tn_tensor *x)
{
    const struct block *b = tn_module_data(self);
    tn_tensor *y = tn_module_call_child(self, "bn1", tn_module_call_child(self, "conv1", x));
    y = tn_module_call_child(self, "conv2", tn_module_call_child(self, "relu", y));
    y = tn_module_call_child(self, "bn2", y);
    y = tn_add(y, b->in != b->out ? tn_module_call_child(self, "downsample", x) : x);
    return tn_module_call_child(self, "relu", y);
}

static tn_status net_build(tn_module *self)
{
    return tn_module_add_children(
        self, "conv1=Conv2d(3, 64, 7, stride=2, padding=3, bias=False), bn1=BatchNorm2d(64), "
              "relu=ReLU(inplace=True), maxpool=MaxPool2d(3, stride=2, padding=1), "
              "layer1=Sequential(BasicBlock(64, 64), BasicBlock(64, 64)), "
              "layer2=Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128)), "
              "layer3=Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256)), "
              "layer4=Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512)), "
              "avgpool=AdaptiveAvgPool2d((1, 1)), fc=Linear(512, 1000)");
}

static tn_tensor *net_forward(tn_module *self, tn_tensor *x)
{
    for (int64_t i = 0; i < tn_module_child_count(self) - 1; i++)
        x = tn_module_call(tn_module_child_at(self, i), x);
    return tn_module_call_child(self, "fc", tn_flatten(x, 1, -1));
}

static int64_t no_words(tn_module *self, char *out, size_t size)
{
    return (void)self, tn_snprint(out, size, "");
}

static const tn_option options[] = { TN_OPTION_INT_REQUIRED(struct block, in, "channels"),
                                     TN_OPTION_INT_REQUIRED(struct block, out, "channels"),
                                     TN_OPTION_INT(struct block, stride, "1", "of conv1"),
                                     TN_OPTION_END };
static const tn_layer_def block = { TN_HEAD(tn_layer_def), .name = "BasicBlock",
                                    .options = options,    .data_size = sizeof(struct block),
                                    .build = block_build,  .forward = block_forward,
                                    .repr = no_words };
static const tn_layer_def net = { TN_HEAD(tn_layer_def), .name = "ResNet", .build = net_build,
                                  .forward = net_forward };

int main(int count, char **arguments)
{
    static char text[16384];

    if (count < 3)
        return fprintf(stderr, "usage: resnet18 WEIGHTS IMAGE.npy [LOGITS.npy]\n"), 2;
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
