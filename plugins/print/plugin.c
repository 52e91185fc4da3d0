/* SPDX-License-Identifier: MIT
 *
 * The plugin tenon.print, which provides the function of <tenon/print.h>. */
#include "print.h"

static const tn_print_api api = { print_tensor };

static const tn_interface_row interfaces[] = {
    { "tenon.print.api", 0, sizeof api, &api, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),        .id = "tenon.print", .version = "0.1.0",
    .help = "tensors as text", .license = "MIT",    .interfaces = interfaces,
};
TN_PLUGIN_EXPORT(plugin);
