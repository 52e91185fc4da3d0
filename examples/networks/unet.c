/* SPDX-License-Identifier: MIT
 *
 * A U-Net with two levels below the first, as tests/models/networks.py defines it. */
#include "network.h"

static tn_tensor *up(tn_module *self, const char *name, tn_tensor *x, tn_tensor *skip)
{
    tn_tensor *both[] = { skip, tn_module_call_child(self, name, x) };

    return tn_cat(both, 2, 1);
}

static tn_tensor *unet(tn_module *self, tn_tensor *x)
{
    tn_tensor *first = tn_module_call_child(self, "down1", x);
    tn_tensor *second = tn_module_call_chain(self, "pool down2", first);

    x = tn_module_call_chain(self, "pool bottom", second);
    x = tn_module_call_child(self, "join2", up(self, "up2", x, second));
    return tn_module_call_chain(self, "join1 head", up(self, "up1", x, first));
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "Double", tn_module_call_children);
    tn_module_set_forwards(net, "UNet", unet);
}
