/* SPDX-License-Identifier: MIT
 *
 * What the files of this plugin share: its formats and its settings. */
#ifndef TN_FOREIGN_FOREIGN_H
#define TN_FOREIGN_FOREIGN_H

#include <tenon/plugin.h>

/* pt2.c */
TN_HIDDEN extern const tn_format_def foreign_pt2;

/* onnx/load.c */
TN_HIDDEN extern const tn_format_def onnx_format;

/* plugin.c: limits the memory that a file can take beyond its own size: adds `more` bytes to *sum,
 * the total of this file so far; fails with TN_ERR_REFUSED if *sum then exceeds the setting. */
TN_HIDDEN tn_status foreign_unpacked(const tn_source *source, uint64_t *sum, uint64_t more);

#endif
