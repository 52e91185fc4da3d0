/* SPDX-License-Identifier: MIT
 *
 * Declarations that the files of this kernel pack share. */
#ifndef TN_KERNELS_ONEDNN_ONEDNN_H
#define TN_KERNELS_ONEDNN_ONEDNN_H

#include <sys/types.h>

#include "dnnl_api.h"

/* The process that opened oneDNN. A child process after fork does not use oneDNN, because locks of
 * the library may be locked forever there. */
extern pid_t onednn_process;
/* Whether oneDNN is used for every shape that it can compute, or only for shapes for which it was
 * measured to be faster than the device's own kernels. */
extern bool onednn_all_shapes;

/* The kernels of convolution, convolution_grad_input and convolution_grad_weight. */
bool onednn_convolution_supports(const tn_call *call, char *reason, size_t size);
size_t onednn_convolution_workspace(const tn_call *call);
tn_status onednn_convolution(const tn_call *call);

#endif
