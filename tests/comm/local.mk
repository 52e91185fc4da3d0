# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/ranks.h

if HAVE_CHECK
TN_COMM_TESTS = %D%/test_local %D%/test_local_failures %D%/test_local_works
check_PROGRAMS += $(TN_COMM_TESTS)
TESTS += $(TN_COMM_TESTS)
%C%_test_local_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_local_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_local_failures_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_local_failures_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_local_works_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_local_works_LDADD = $(TN_LINK_TEST_CORE)
endif
