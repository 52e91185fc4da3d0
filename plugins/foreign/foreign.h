/* SPDX-License-Identifier: MIT
 *
 * What the files of this plugin share: its formats and its settings. */
#ifndef TN_FOREIGN_FOREIGN_H
#define TN_FOREIGN_FOREIGN_H

#include <tenon/plugin.h>

#define FOREIGN_VERSION "0.1.0"

/* pt2.c */
TN_HIDDEN extern const tn_format_def foreign_pt2;

/* onnx/load.c */
TN_HIDDEN extern const tn_format_def onnx_format;

/* plugin.c: limits the memory that a file can take beyond its own size: adds `more` bytes to *sum,
 * the total of this file so far; fails with TN_ERR_REFUSED if *sum then exceeds the setting. */
TN_HIDDEN tn_status foreign_unpacked(const tn_source *source, uint64_t *sum, uint64_t more);

/* plugin.c: settings for models of ONNX that are written: the version of the operators, and how
 * many bytes of tensors are in the model and not in a file beside it. */
TN_HIDDEN int64_t foreign_onnx_opset(void);
TN_HIDDEN int64_t foreign_onnx_inside(void);

#endif
