# SPDX-License-Identifier: MIT

if HAVE_CHECK
check_PROGRAMS += %D%/test_cuda
TESTS += %D%/test_cuda
%C%_test_cuda_SOURCES = %D%/test_cuda.c %D%/matmul.c %D%/failures.c %D%/memory.c %D%/capture.c %D%/driver.h tests/gpu/direct.h tests/gpu/optional.h
%C%_test_cuda_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_cuda_LDADD = $(TN_LINK_TEST_CORE)
endif
