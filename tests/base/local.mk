# SPDX-License-Identifier: MIT

EXTRA_DIST += tests/libcheck.h tests/idle_fork.h tests/valgrind.supp %D%/suite.h

if HAVE_CHECK
TN_BASE_TESTS = \
	%D%/test_containers \
	%D%/test_error \
	%D%/test_print \
	%D%/test_log \
	%D%/test_memory \
	%D%/test_options \
	%D%/test_spec
check_PROGRAMS += $(TN_BASE_TESTS)
TESTS += $(TN_BASE_TESTS)

%C%_test_containers_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_containers_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_error_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_error_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_print_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_print_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_log_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_log_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_memory_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_options_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_options_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_spec_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_spec_LDADD = $(TN_LINK_TEST_CORE)
endif
