/* SPDX-License-Identifier: MIT
 *
 * What run.c needs from the file of a network. The plugin tenon.models also provides some of these
 * networks by name: resnet50, mobilenet_v2, vit_base, unet and gpt2_small. */
#ifndef NETWORKS_NETWORK_H
#define NETWORKS_NETWORK_H

#include <tenon/tenon.h>

/* Sets the forwards of all modules of a printed network whose types no plugin provides. */
void network_forwards(tn_module *net);

#endif
