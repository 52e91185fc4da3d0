# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/toy.h

if HAVE_CHECK
check_PROGRAMS += %D%/test_dataset
TESTS += %D%/test_dataset
%C%_test_dataset_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_dataset_LDADD = $(TN_LINK_TEST_CORE)
endif
