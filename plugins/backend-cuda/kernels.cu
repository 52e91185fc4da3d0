/* SPDX-License-Identifier: MIT
 *
 * One kernel text of plugins/gpu/kernels for all its types; the build names it in TN_TEXT. */
#include "dialect.cuh"

#include "../gpu/kernels/each.cl"
