/* SPDX-License-Identifier: MIT
 *
 * What run.c asks of a network. Some of these networks come by name, too: the plugin tenon.models
 * provides resnet50, mobilenet_v2, vit_base, unet and gpt2_small. */
#ifndef NETWORKS_NETWORK_H
#define NETWORKS_NETWORK_H

#include <tenon/tenon.h>

/* Gives the modules of a printed network that no plugin provides their forwards. */
void network_forwards(tn_module *net);

#endif
