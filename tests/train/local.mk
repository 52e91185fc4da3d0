# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/make_reference.py %D%/reference.h

if HAVE_CHECK
check_PROGRAMS += %D%/test_capturable %D%/test_optim
TESTS += %D%/test_capturable %D%/test_optim
%C%_test_capturable_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_capturable_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_optim_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_optim_LDADD = $(TN_LINK_TEST_CORE)
endif
