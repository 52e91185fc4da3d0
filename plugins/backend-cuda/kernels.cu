/* SPDX-License-Identifier: MIT
 *
 * Compiles one kernel text of plugins/gpu/kernels for all dtypes. The build compiles this
 * file once per text, with the path of the text in TN_TEXT. */
#include "dialect.cuh"

#include "../gpu/kernels/base/each_type.cl"
