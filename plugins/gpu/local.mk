# SPDX-License-Identifier: MIT
#
# The code that backend-opencl and backend-cuda share: the host side of the operators, which is
# compiled into each of them, and the kernel texts. OpenCL compiles a text when it is first used;
# nvcc compiles all texts at build time.

TN_GPU_HOST = %D%/gpu.h %D%/kernel_names.h %D%/kernel_defs.h %D%/arithmetic.c %D%/call.c %D%/compare.c \
	%D%/complex.c %D%/copy.c %D%/creation.c %D%/index.c %D%/kernel_names.c %D%/loss.c %D%/matmul.c \
	%D%/random.c %D%/reduction.c %D%/scalar.c %D%/scan.c %D%/shape.c %D%/softmax.c %D%/sort.c \
	%D%/unary.c %D%/view.c
TN_GPU_TEXTS = %D%/kernels/activation.cl %D%/kernels/arithmetic.cl %D%/kernels/compare.cl \
	%D%/kernels/copy.cl %D%/kernels/creation.cl %D%/kernels/index.cl %D%/kernels/loss.cl \
	%D%/kernels/matmul.cl %D%/kernels/random.cl %D%/kernels/reduction.cl %D%/kernels/scan.cl \
	%D%/kernels/softmax.cl %D%/kernels/sort.cl %D%/kernels/unary.cl
# Files that every text needs. each_type.cl is for nvcc and the fake driver of tests/fake-cuda, which
# compile a text for all types.
TN_GPU_COMMON = %D%/kernels/base/layout.cl %D%/kernels/base/common.cl %D%/kernels/base/types.cl
TN_GPU_EACH = %D%/kernels/base/each_type.cl
# Files that texts include.
TN_GPU_TEMPLATES = %D%/kernels/reduction_template.cl
EXTRA_DIST += $(TN_GPU_HOST) $(TN_GPU_COMMON) $(TN_GPU_EACH) $(TN_GPU_TEXTS) $(TN_GPU_TEMPLATES)
