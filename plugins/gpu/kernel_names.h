/* SPDX-License-Identifier: MIT
 *
 * The names of all kernels on the device. kernel_defs.h lists the kernels that a backend registers,
 * which launch these. The includer defines GPU_KERNEL(name, text, shape): `text` is the file in
 * kernels/ that defines the kernel, and `shape` is the enum gpu_shape without its prefix. On the
 * device a kernel is called tn_<name>_<type>. */
GPU_KERNEL(relu, activation, ITEMS)
GPU_KERNEL(relu_grad, activation, ITEMS)
GPU_KERNEL(sigmoid, activation, ITEMS)

GPU_KERNEL(add, arithmetic, ITEMS)
GPU_KERNEL(sub, arithmetic, ITEMS)
GPU_KERNEL(mul, arithmetic, ITEMS)
GPU_KERNEL(div, arithmetic, ITEMS)
GPU_KERNEL(maximum, arithmetic, ITEMS)
GPU_KERNEL(add_scalar, arithmetic, ITEMS)
GPU_KERNEL(mul_scalar, arithmetic, ITEMS)
GPU_KERNEL(neg, arithmetic, ITEMS)
GPU_KERNEL(clamp, arithmetic, ITEMS)
GPU_KERNEL(zip, arithmetic, ITEMS)

GPU_KERNEL(compare, compare, ITEMS)
GPU_KERNEL(where, compare, ITEMS)

GPU_KERNEL(copy, copy, ITEMS)
GPU_KERNEL(move, copy, ITEMS)

GPU_KERNEL(arange, creation, ITEMS)
GPU_KERNEL(fill, creation, ITEMS)

GPU_KERNEL(gather, index, ITEMS)
GPU_KERNEL(nonzero, index, GROUPS)
GPU_KERNEL(scatter, index, ITEMS)
GPU_KERNEL(scatter_add, index, ITEMS)

GPU_KERNEL(nll_loss, loss, GROUPS)
GPU_KERNEL(nll_loss_grad, loss, ITEMS)

GPU_KERNEL(bmm, matmul, TILES)

GPU_KERNEL(philox_normal, random, ITEMS)
GPU_KERNEL(philox_uniform, random, ITEMS)

GPU_KERNEL(amax, reduction, GROUPS)
GPU_KERNEL(amax_item, reduction, ITEMS)
GPU_KERNEL(amin, reduction, GROUPS)
GPU_KERNEL(amin_item, reduction, ITEMS)
GPU_KERNEL(argmax, reduction, GROUPS)
GPU_KERNEL(prod, reduction, GROUPS)
GPU_KERNEL(prod_item, reduction, ITEMS)
GPU_KERNEL(prod_last, reduction, GROUPS)
GPU_KERNEL(prod_part, reduction, GROUPS)
GPU_KERNEL(sum, reduction, GROUPS)
GPU_KERNEL(sum_item, reduction, ITEMS)
GPU_KERNEL(sum_last, reduction, GROUPS)
GPU_KERNEL(sum_part, reduction, GROUPS)

GPU_KERNEL(scan, scan, GROUPS)

GPU_KERNEL(log_softmax_grad, softmax, GROUPS)
GPU_KERNEL(softmax, softmax, GROUPS)

GPU_KERNEL(sort, sort, ITEMS)

GPU_KERNEL(exp, unary, ITEMS)
GPU_KERNEL(log, unary, ITEMS)
GPU_KERNEL(map, unary, ITEMS)
GPU_KERNEL(sqrt, unary, ITEMS)
#undef GPU_KERNEL
