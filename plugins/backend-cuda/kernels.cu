/* SPDX-License-Identifier: MIT
 *
 * One kernel text of plugins/gpu/kernels, for all its types. The build compiles this file once
 * per text, with its name in TN_TEXT. */
#include "dialect.cuh"

#include "../gpu/kernels/base/each_type.cl"
