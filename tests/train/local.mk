# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/make_reference.py %D%/reference.h \
	%D%/make_schedules.py %D%/schedules.txt

if HAVE_CHECK
check_PROGRAMS += %D%/test_capturable %D%/test_optim %D%/test_schedules
TESTS += %D%/test_capturable %D%/test_optim %D%/test_schedules
%C%_test_capturable_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_capturable_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_optim_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_optim_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_schedules_CPPFLAGS = $(TN_TEST_CPPFLAGS) \
	-DSCHEDULES_FILE='"$(abs_srcdir)/%D%/schedules.txt"'
%C%_test_schedules_LDADD = $(TN_LINK_TEST_CORE)
endif
