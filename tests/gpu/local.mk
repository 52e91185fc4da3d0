# SPDX-License-Identifier: MIT
#
# Calls the kernels that backend-opencl and backend-cuda share, without the core.

TN_GPU_RUNS = %D%/kernels_opencl.sh %D%/kernels_oclgrind.sh %D%/kernels_cuda.sh \
	%D%/kernels_cuda_blas.sh
EXTRA_DIST += tests/folders.h tests/device/run \
	tests/device/pack tests/device/steps tests/device/report.md tests/device/test_run.sh $(TN_GPU_RUNS)
TESTS += tests/device/test_run.sh
CLEANFILES += %D%/oclgrind.log

if HAVE_CHECK
check_PROGRAMS += %D%/test_kernels
TESTS += $(TN_GPU_RUNS)
%C%_test_kernels_SOURCES = %D%/test_kernels.c %D%/kernels.h %D%/direct.h \
	%D%/kernels_copy.c %D%/kernels_elementwise.c %D%/kernels_loss.c %D%/kernels_matmul.c \
	%D%/kernels_random.c %D%/kernels_reduction.c
%C%_test_kernels_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_kernels_LDADD = $(TN_LINK_TEST_CORE)
endif
