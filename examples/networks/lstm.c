/* SPDX-License-Identifier: MIT
 *
 * A language model with an LSTM, as tests/models/networks.py defines it. */
#include "network.h"

static tn_tensor *language_model(tn_module *self, tn_tensor *words)
{
    tn_tensor *x = tn_module_call_child(self, "table", words), *y;

    tn_module_call_many(tn_module_child(self, "lstm"), &x, 1, &y, 1);
    return tn_module_call_child(self, "head", y);
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "LanguageModel", language_model);
}
