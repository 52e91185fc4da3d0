/* SPDX-License-Identifier: MIT
 *
 * Brings a ResNet of torchvision to C: the text that print(model) writes describes the modules, two
 * forwards complete it, and the file of weights is loaded as PyTorch saved it.
 *
 *     printed_model MODEL.txt WEIGHTS.pth IMAGE.npy [LOGITS.npy]
 *
 * `make interchange` compares the logits with those of PyTorch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

/* Calls the children whose names are given, one after the other; those that are not there are left
 * out. */
static tn_tensor *chain(tn_module *self, const char *const *names, tn_tensor *x)
{
    for (; *names != NULL; names++)
        if (tn_module_slot_kind(self, *names) == TN_SLOT_CHILD)
            x = tn_module_call_child(self, *names, x);
    return x;
}

/* BasicBlock has two convolutions, Bottleneck three. */
static tn_tensor *block(tn_module *self, tn_tensor *x)
{
    static const char *const last[] = { "conv3", "bn3", NULL }, *const skip[] = { "downsample",
                                                                                  NULL };
    tn_tensor *y = tn_module_call_child(self, "bn1", tn_module_call_child(self, "conv1", x));

    y = tn_module_call_child(self, "conv2", tn_module_call_child(self, "relu", y));
    y = tn_module_call_child(self, "bn2", y);
    if (tn_module_slot_kind(self, "conv3") == TN_SLOT_CHILD)
        y = chain(self, last, tn_module_call_child(self, "relu", y));
    return tn_module_call_child(self, "relu", tn_add(y, chain(self, skip, x), NULL));
}

static tn_tensor *resnet(tn_module *self, tn_tensor *x)
{
    static const char *const body[] = { "conv1",  "bn1",    "relu",   "maxpool", "layer1",
                                        "layer2", "layer3", "layer4", "avgpool", NULL };

    return tn_module_call_child(self, "fc", tn_flatten(chain(self, body, x), 1, -1));
}

/* Gives each module of the program's types its forward. */
static void set_forwards(tn_module *model)
{
    tn_walk *walk = tn_walk_begin(model, TN_SLOT_CHILD, NULL);

    for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk)) {
        const char *type = tn_module_type(at->module);

        if (strcmp(type, "ResNet") == 0)
            tn_module_set_forward(at->module, resnet, NULL, NULL);
        else if (strcmp(type, "BasicBlock") == 0 || strcmp(type, "Bottleneck") == 0)
            tn_module_set_forward(at->module, block, NULL, NULL);
    }
    tn_walk_end(walk);
}

static const char *read_text(const char *path)
{
    static char text[1 << 17];
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        perror(path);
        exit(1);
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void predict(tn_module *model, const char *image, const char *save)
{
    tn_state *in = tn_state_load(image), *out = tn_state_new();
    tn_tensor *logits = in != NULL ? tn_module_call(model, tn_state_tensor(in, 0)) : NULL;

    if (logits != NULL)
        printf("class %lld\n", (long long)tn_item(tn_argmax(logits, NULL)));
    if (logits != NULL && save != NULL && tn_state_set(out, "logits", tn_detach(logits)) == TN_OK)
        tn_state_save(out, save);
    tn_state_drop(in);
    tn_state_drop(out);
}

int main(int count, char **arguments)
{
    tn_module *model;

    if (count < 4) {
        fprintf(stderr, "usage: printed_model MODEL.txt WEIGHTS.pth IMAGE.npy [LOGITS.npy]\n");
        return 2;
    }
    model = tn_module_parse(read_text(arguments[1]));
    if (model != NULL)
        set_forwards(model);
    if (tn_module_load(model, arguments[2]) == TN_OK && tn_module_eval(model) == TN_OK)
        predict(model, arguments[3], count > 4 ? arguments[4] : NULL);
    if (tn_failed())
        fprintf(stderr, "printed_model: %s\n", tn_error_text());
    tn_module_drop(model);
    return tn_failed();
}
