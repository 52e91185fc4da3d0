/* SPDX-License-Identifier: MIT
 *
 * Runs the network that it is linked with:
 *
 *     NETWORK WEIGHTS DATA LOGITS.safetensors <MODEL.txt
 *
 * MODEL.txt is the text that print(model) writes in Python, WEIGHTS the file of weights that was
 * saved there, and the first tensor of the file DATA is the input. The file of the network has
 * all that Tenon cannot know from this text: the forwards. */
#include <stdio.h>
#include "network.h"

int main(int count, char **arguments)
{
    static char text[1 << 17];
    tn_module *net;
    tn_state *data;

    if (count != 4 || fread(text, 1, sizeof text - 1, stdin) == 0) {
        fprintf(stderr, "usage: NETWORK WEIGHTS DATA LOGITS.safetensors <MODEL.txt\n");
        return 2;
    }
    net = tn_module_parse_skip_init(NULL, text); /* without values: the file's are mapped */
    data = tn_state_load(arguments[2]);
    if (net != NULL)
        network_forwards(net);
    if (!tn_failed() && tn_module_load(net, arguments[1]) == TN_OK &&
        tn_module_eval(net) == TN_OK && tn_grad_begin(false) == TN_OK) {
        tn_tensor *logits = tn_module_call(net, tn_state_tensor(data, 0));

        tn_grad_end();
        if (logits != NULL && tn_state_set(data, "logits", logits) == TN_OK)
            tn_state_save(data, arguments[3]);
    }
    if (tn_failed())
        fprintf(stderr, "%s\n", tn_error_text());
    tn_state_drop(data);
    tn_module_drop(net);
    return tn_failed();
}
