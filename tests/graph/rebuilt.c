/* SPDX-License-Identifier: MIT
 *
 * The forwards of all networks of examples/networks in one program: each file there is for a
 * program of its own, so functions that several have get the name of the network in front. */
#include "examples/networks/network.h"
#include "tests/graph/networks.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define network_forwards JOIN(NETWORK, forwards)
#define attention JOIN(NETWORK, attention)
#define block JOIN(NETWORK, block)

#define NETWORKS(X)                                                                                \
    X(bert)                                                                                        \
    X(convnext_tiny)                                                                               \
    X(dcgan)                                                                                       \
    X(densenet121)                                                                                 \
    X(efficientnet_b0) X(gpt2) X(lstm) X(mobilenet_v2) X(resnet50) X(swin_t) X(unet) X(vit_b_16)
#define DECLARE(name) static void name##_forwards(tn_module *net);
NETWORKS(DECLARE)

#define NETWORK bert
#include "examples/networks/bert.c"
#undef NETWORK
#define NETWORK convnext_tiny
#include "examples/networks/convnext_tiny.c"
#undef NETWORK
#define NETWORK dcgan
#include "examples/networks/dcgan.c"
#undef NETWORK
#define NETWORK densenet121
#include "examples/networks/densenet121.c"
#undef NETWORK
#define NETWORK efficientnet_b0
#include "examples/networks/efficientnet_b0.c"
#undef NETWORK
#define NETWORK gpt2
#include "examples/networks/gpt2.c"
#undef NETWORK
#define NETWORK lstm
#include "examples/networks/lstm.c"
#undef NETWORK
#define NETWORK mobilenet_v2
#include "examples/networks/mobilenet_v2.c"
#undef NETWORK
#define NETWORK resnet50
#include "examples/networks/resnet50.c"
#undef NETWORK
#define NETWORK swin_t
#include "examples/networks/swin_t.c"
#undef NETWORK
#define NETWORK unet
#include "examples/networks/unet.c"
#undef NETWORK
#define NETWORK vit_b_16
#include "examples/networks/vit_b_16.c"
#undef NETWORK

#define ROW(name) { #name, name##_forwards },
const struct rebuilt rebuilt[] = { NETWORKS(ROW){ NULL, NULL } };
