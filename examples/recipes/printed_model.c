/* SPDX-License-Identifier: MIT
 *
 * Runs a ResNet that was written for PyTorch:
 *
 *     printed_model WEIGHTS IMAGES [LOGITS] <MODEL.txt
 *
 * MODEL.txt is the text that print(model) writes in Python. */
#include <stdio.h>
#include <tenon/tenon.h>

/* The forward of the class BasicBlock. */
static tn_tensor *block(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_chain(self, "conv1 bn1 relu conv2 bn2", x);

    if (tn_module_slot_kind(self, "downsample") == TN_SLOT_CHILD)
        x = tn_module_call_child(self, "downsample", x);
    return tn_relu(tn_add(y, x));
}

/* The forward of the class ResNet. */
static tn_tensor *resnet(tn_module *self, tn_tensor *x)
{
    x = tn_module_call_chain(self, "conv1 bn1 relu maxpool layer1 layer2 layer3 layer4 avgpool", x);
    return tn_module_call_child(self, "fc", tn_flatten(x, 1, -1));
}

/* Builds the network from the text, without values, and maps the file of weights into it. */
static tn_module *network(const char *text, const char *weights)
{
    tn_module *net = tn_module_parse_skip_init(NULL, text);

    if (net != NULL) {
        tn_module_set_forwards(net, "BasicBlock", block);
        tn_module_set_forwards(net, "ResNet", resnet);
        tn_module_load(net, weights);
        tn_module_eval(net);
    }
    return net;
}

/* Prints the class of the first image, and saves the logits of all images. */
static void predict(tn_module *net, tn_state *data, const char *save)
{
    TN_SCOPE;
    tn_grad_begin(false);
    tn_tensor *logits = tn_module_call(net, tn_state_tensor(data, 0));
    tn_grad_end();
    double class = tn_item(tn_argmax(tn_narrow(logits, 0, 0, 1)));

    if (!tn_failed())
        printf("class %g\n", class);
    if (save != NULL && logits != NULL) {
        tn_state *out = tn_state_new();

        if (tn_state_set(out, "logits", logits) == TN_OK)
            tn_state_save(out, save);
        tn_state_drop(out);
    }
}

int main(int count, char **arguments)
{
    static char text[1 << 17];

    if (count < 3 || fread(text, 1, sizeof text - 1, stdin) == 0) {
        fprintf(stderr, "usage: printed_model WEIGHTS IMAGES [LOGITS] <MODEL.txt\n");
        return 2;
    }
    tn_module *net = network(text, arguments[1]);
    tn_state *data = tn_state_load(arguments[2]);

    if (!tn_failed())
        predict(net, data, count > 3 ? arguments[3] : NULL);
    if (tn_failed())
        fprintf(stderr, "printed_model: %s\n", tn_error_text());
    tn_state_drop(data);
    tn_module_drop(net);
    return tn_failed();
}
