# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/profile.sh %D%/suite.h %D%/json_checker.h
TESTS += %D%/profile.sh

if HAVE_CHECK
TN_PROFILE_TESTS = %D%/test_profile %D%/test_profile_files %D%/test_profile_schedule \
	%D%/test_profile_threads
check_PROGRAMS += $(TN_PROFILE_TESTS)
TESTS += $(TN_PROFILE_TESTS)

%C%_test_profile_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_profile_LDADD = $(TN_LINK_TEST)
%C%_test_profile_files_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_profile_files_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_profile_schedule_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_profile_schedule_LDADD = $(TN_LINK_TEST)
%C%_test_profile_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_profile_threads_LDADD = $(TN_LINK_TEST)
endif
