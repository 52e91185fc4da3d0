/* SPDX-License-Identifier: MIT
 *
 * Writing scripts as files of other frameworks. */
#ifndef TN_FOREIGN_EXPORT_EXPORT_H
#define TN_FOREIGN_EXPORT_EXPORT_H

#include <tenon/plugin.h>

/* graph.c: whether a module is a script. */
TN_HIDDEN bool export_is_script(const tn_module *module);
/* onnx.c: writes a script as a model of ONNX. */
TN_HIDDEN tn_status export_onnx(const tn_sink *sink, tn_module *script);
/* aten.c: writes a script as a program of PyTorch. */
TN_HIDDEN tn_status export_pt2(const tn_sink *sink, tn_module *script);

#endif
