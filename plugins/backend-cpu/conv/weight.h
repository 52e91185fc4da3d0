/* SPDX-License-Identifier: MIT
 *
 * The weight of a convolution in the order in which products read it. */
#ifndef TN_BACKEND_CPU_CONV_WEIGHT_H
#define TN_BACKEND_CPU_CONV_WEIGHT_H

#include "conv/conv.h"

/* The packing of the weight into panels [group][panel][depth][width]: a group has `columns`
 * columns, `width` of them in each panel. */
struct tn__panels {
    enum tn__ct ct;
    int64_t item, width, depth, columns, groups;
    int64_t inner; /* depth = taps * inner; inner = channels, or outputs for the gradient */
    int64_t taps;
    bool turned; /* for the gradient: taps in reverse order, outputs and channels exchanged */
    const char *weight; /* [groups * outputs][channels][taps] */
    char *to;
};

/* Sets *at to the weight's elements of type `ct` in row-major order: the weight itself if it is
 * contiguous and of this type, otherwise a copy, which the caller returns with
 * tn__scratch_give(*copy). */
tn_status tn__weight_plain(const tn_view *weight, enum tn__ct ct, const char **at, void **copy);
/* How a convolution, or the gradient of its input, reads the weight. */
enum tn__reading {
    TN__READ_IN_PLACE,
    TN__READ_PANELS,      /* of whole windows (struct tn__panels) */
    TN__READ_TRANSFORMED, /* winograd.c */
    TN__READ_TAPS,        /* [group][tap][panel][output][width], for gradients with strides */
    TN__READ_WINDOWS /* [panel][output][width], columns [tap][channel] (grad_input_few_channels.c)
                      */
};
/* Returns the panels of the weight of a convolution; the caller sets their members `weight` and
 * `to`. */
struct tn__panels tn__weight_panels(const struct tn__windows *w, bool turned);
/* Returns the bytes of a weight in the order `how`; `turned` is for gradients of inputs. */
int64_t tn__weight_bytes(const struct tn__windows *w, enum tn__reading how);
/* Copies the weight into the order `how`, on all threads. */
tn_status tn__weight_order(const struct tn__windows *w, enum tn__reading how, bool turned,
                           const tn_view *weight, void *to);
/* Sets *at to the weight in the order `how`: `prepared` or, if it is NULL, a copy, which the caller
 * returns with tn__scratch_give(*copy). */
tn_status tn__weight_take(const struct tn__windows *w, enum tn__reading how, bool turned,
                          const tn_view *weight, const void *prepared, const char **at,
                          void **copy);
/* The parts of a kernel (tn_kernel_def): prepare_key for a call of these windows, prepare, and
 * release. */
uint64_t tn__weight_key(const struct tn__windows *w, enum tn__reading how);
tn_status tn__weight_prepare(const tn_call *call, const struct tn__windows *w, enum tn__reading how,
                             bool turned, tn_prepared_data *out);
void tn__weight_release(const tn_kernel_def *kernel, void *data);

#endif
