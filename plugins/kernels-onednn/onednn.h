/* SPDX-License-Identifier: MIT
 *
 * What the files of the pack share. */
#ifndef ONEDNN_H
#define ONEDNN_H

#include <sys/types.h>

#include "dnnl_api.h"

/* The process that opened oneDNN: in a child after fork its locks may stay locked. */
extern pid_t onednn_process;
/* Whether to take every shape that oneDNN can compute, not only those that measured faster. */
extern bool onednn_all_shapes;

/* convolution, convolution_grad_input, convolution_grad_weight. */
bool onednn_convolution_supports(const tn_call *call, char *reason, size_t size);
size_t onednn_convolution_workspace(const tn_call *call);
tn_status onednn_convolution(const tn_call *call);

#endif
