/* SPDX-License-Identifier: MIT
 *
 * The generator of a DCGAN: one child, which is a Sequential. */
#include "network.h"

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "Generator", tn_module_call_children);
}
