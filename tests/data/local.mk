# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/toy.h

if HAVE_CHECK
check_PROGRAMS += %D%/test_dataset %D%/test_loader %D%/test_loader_threads
TESTS += %D%/test_dataset %D%/test_loader %D%/test_loader_threads
%C%_test_dataset_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_dataset_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_loader_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_loader_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_loader_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_loader_threads_LDADD = $(TN_LINK_TEST_CORE)
endif
