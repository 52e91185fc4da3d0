# SPDX-License-Identifier: MIT
#
# The tests of core/tensor have devices of their own (fixture.c) and need no plugin.

EXTRA_DIST += %D%/numpy_text.py %D%/test_numpy.sh
TESTS += %D%/test_numpy.sh

if HAVE_CHECK
TN_TENSOR_TESTS = \
	%D%/test_allocator %D%/test_capture %D%/test_copy %D%/test_device_list %D%/test_dlpack %D%/test_dtype %D%/test_memory \
	%D%/test_memory_kinds \
	%D%/test_guard %D%/test_pinned %D%/test_print %D%/test_random %D%/test_stream %D%/test_tensor %D%/test_thread_pool %D%/test_threads
check_PROGRAMS += $(TN_TENSOR_TESTS)
TESTS += $(TN_TENSOR_TESTS)

TN_TENSOR_FIXTURE = %D%/fixture.c %D%/fixture.h %D%/fixture_kernels.c %D%/fixture_memory.c

%C%_test_allocator_SOURCES = %D%/test_allocator.c $(TN_TENSOR_FIXTURE)
%C%_test_allocator_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_allocator_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_capture_SOURCES = %D%/test_capture.c $(TN_TENSOR_FIXTURE)
%C%_test_capture_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_capture_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_copy_SOURCES = %D%/test_copy.c $(TN_TENSOR_FIXTURE)
%C%_test_copy_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_copy_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_device_list_SOURCES = %D%/test_device_list.c $(TN_TENSOR_FIXTURE)
%C%_test_device_list_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_device_list_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_dlpack_SOURCES = %D%/test_dlpack.c $(TN_TENSOR_FIXTURE)
%C%_test_dlpack_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_dlpack_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_dtype_SOURCES = %D%/test_dtype.c $(TN_TENSOR_FIXTURE) %D%/promotion.h
%C%_test_dtype_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_dtype_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_memory_SOURCES = %D%/test_memory.c $(TN_TENSOR_FIXTURE)
%C%_test_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_memory_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_memory_kinds_SOURCES = %D%/test_memory_kinds.c $(TN_TENSOR_FIXTURE)
%C%_test_memory_kinds_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_memory_kinds_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_guard_SOURCES = %D%/test_guard.c $(TN_TENSOR_FIXTURE)
%C%_test_guard_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_guard_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_pinned_SOURCES = %D%/test_pinned.c $(TN_TENSOR_FIXTURE)
%C%_test_pinned_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_pinned_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_print_SOURCES = %D%/test_print.c $(TN_TENSOR_FIXTURE) %D%/numpy_text.h
%C%_test_print_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_print_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_random_SOURCES = %D%/test_random.c $(TN_TENSOR_FIXTURE)
%C%_test_random_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_random_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_stream_SOURCES = %D%/test_stream.c $(TN_TENSOR_FIXTURE)
%C%_test_stream_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_stream_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_tensor_SOURCES = %D%/test_tensor.c $(TN_TENSOR_FIXTURE)
%C%_test_tensor_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_tensor_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_thread_pool_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_thread_pool_LDADD = $(TN_LINK_TEST_CORE)

%C%_test_threads_SOURCES = %D%/test_threads.c $(TN_TENSOR_FIXTURE)
%C%_test_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_threads_LDADD = $(TN_LINK_TEST_CORE)
endif
