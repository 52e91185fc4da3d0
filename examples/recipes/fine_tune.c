/* SPDX-License-Identifier: MIT
 *
 * Gives a ResNet of PyTorch a head for three new classes, and trains only this head:
 *
 *     fine_tune WEIGHTS TUNED.safetensors <MODEL.txt */
#include <stdio.h>
#include <tenon/tenon.h>

enum { CLASSES = 3, BATCH = 24 };

static tn_tensor *block(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_chain(self, "conv1 bn1 relu conv2 bn2", x);

    if (tn_module_slot_kind(self, "downsample") == TN_SLOT_CHILD)
        x = tn_module_call_child(self, "downsample", x);
    return tn_relu(tn_add(y, x));
}

static tn_tensor *resnet(tn_module *self, tn_tensor *x)
{
    x = tn_module_call_chain(self, "conv1 bn1 relu maxpool layer1 layer2 layer3 layer4 avgpool", x);
    return tn_module_call_child(self, "fc", tn_flatten(x, 1, -1));
}

/* Builds the network with its old head and its weights. */
static tn_module *network(const char *text, const char *weights)
{
    tn_module *net = tn_module_parse_skip_init(NULL, text);

    if (net != NULL) {
        tn_module_set_forwards(net, "BasicBlock", block);
        tn_module_set_forwards(net, "ResNet", resnet);
        tn_module_load(net, weights);
    }
    return net;
}

/* Freezes all parameters, then replaces the head. The new one requires gradients. */
static void replace_head(tn_module *net)
{
    tn_tensor *old = tn_module_find_parameter(net, "fc.weight");
    long long features = old != NULL ? (long long)tn_tensor_size(old, 1) : 0;
    tn_module *head = tn_module_new("Linear(%lld, %d)", features, CLASSES);

    tn_module_set_requires_grad(net, false);
    tn_module_set_child(net, "fc", head, true);
    tn_module_drop(head); /* the network has a reference of its own */
}

/* Images of noise in which channel k is brighter, and k as target. */
static tn_tensor *images(tn_tensor **target)
{
    static float pixels[BATCH][3][32][32];
    int64_t classes[BATCH];
    uint32_t random = 1;

    for (int i = 0; i < BATCH; i++) {
        classes[i] = i % CLASSES;
        for (int j = 0; j < 3 * 32 * 32; j++) {
            random = random * 1664525u + 1013904223u;
            pixels[i][j / 1024][j / 32 % 32][j % 32] = (float)(random >> 8) / (1 << 24) +
                                                       (float)(j / 1024 == i % CLASSES);
        }
    }
    *target = tn_tensor_from(classes, TN_I64, TN_SHAPE(BATCH));
    return tn_tensor_from(pixels, TN_F32, TN_SHAPE(BATCH, 3, 32, 32));
}

/* Prints the parameters that are trained, and the loss of every twentieth step. */
static void train(tn_module *net)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, "Adam(lr=0.2)");
    tn_walk *walk = tn_walk_begin(net, TN_SLOT_PARAMETER, NULL);

    for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk))
        if (tn_tensor_requires_grad(at->tensor))
            printf("learns: %s\n", at->path);
    tn_walk_end(walk);

    tn_module_eval(net); /* batch norm keeps its running statistics, too */
    for (int step = 0; step <= 100 && !tn_failed(); step++) {
        TN_SCOPE;
        tn_tensor *y, *x = images(&y);
        tn_tensor *loss = tn_cross_entropy(tn_module_call(net, x), y);

        if (step % 20 == 0)
            printf("step %3d  loss %.4f\n", step, tn_item(loss));
        tn_module_zero_grad(net);
        tn_backward(loss);
        tn_optimizer_step(optimizer);
    }
    tn_optimizer_drop(optimizer);
}

static double correct(tn_module *net)
{
    TN_SCOPE;
    tn_tensor *y, *x = images(&y);

    tn_grad_begin(false);
    tn_tensor *hits = tn_sum(tn_eq(tn_argmax(tn_module_call(net, x), -1), y));
    tn_grad_end();
    return tn_item(hits);
}

int main(int count, char **arguments)
{
    static char text[1 << 17];

    if (count != 3 || fread(text, 1, sizeof text - 1, stdin) == 0) {
        fprintf(stderr, "usage: fine_tune WEIGHTS TUNED.safetensors <MODEL.txt\n");
        return 2;
    }
    tn_random_seed(1); /* the new head is random; with a seed every run prints the same */
    tn_module *net = network(text, arguments[1]);
    if (net != NULL)
        replace_head(net);
    if (!tn_failed())
        train(net);
    tn_module_save(net, arguments[2]);
    if (!tn_failed())
        printf("saved; %g of %d are right\n", correct(net), BATCH);
    if (tn_failed())
        fprintf(stderr, "fine_tune: %s\n", tn_error_text());
    tn_module_drop(net);
    return tn_failed();
}
