# SPDX-License-Identifier: MIT
#
# The kernels that backend-opencl and backend-cuda share, called directly.

TN_GPU_RUNS = %D%/kernels-opencl.sh %D%/kernels-oclgrind.sh %D%/kernels-cuda.sh %D%/kernels-cuda-blas.sh
EXTRA_DIST += tests/folders.h docs/backend-opencl.md docs/backend-cuda.md tests/device/run tests/device/pack tests/device/steps tests/device/test_run.sh $(TN_GPU_RUNS)
TESTS += tests/device/test_run.sh
CLEANFILES += %D%/oclgrind.log

if HAVE_CHECK
check_PROGRAMS += %D%/test_kernels
TESTS += $(TN_GPU_RUNS)
%C%_test_kernels_SOURCES = %D%/test_kernels.c %D%/kernels.h %D%/kernels_elementwise.c %D%/kernels_copies.c %D%/kernels_sums.c \
	%D%/kernels_losses.c %D%/kernels_draws.c %D%/direct.h
%C%_test_kernels_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_kernels_LDADD = $(TN_LINK_TEST_CORE)
endif
