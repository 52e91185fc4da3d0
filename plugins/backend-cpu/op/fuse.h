/* SPDX-License-Identifier: MIT
 *
 * The compiler of elementwise regions, and what it needs of plugin.c. */
#ifndef TN_BACKEND_CPU_OP_FUSE_H
#define TN_BACKEND_CPU_OP_FUSE_H

#include <tenon/plugin.h>

extern const tn_compiler_def tn__compiler_fuse;

/* Stores the joined table of the plugin's kernels; returns its length. */
size_t tn__plugin_kernels(const tn_kernel_def **rows);

#endif
