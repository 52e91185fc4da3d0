# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/make_sync_batch_norm.py %D%/suite.h %D%/sync_batch_norm.txt

if HAVE_CHECK
TN_PARALLEL_TESTS = %D%/test_ddp %D%/test_ddp_errors %D%/test_ddp_features \
	%D%/test_ddp_samples %D%/test_ddp_shards %D%/test_sync_batch_norm
check_PROGRAMS += $(TN_PARALLEL_TESTS)
TESTS += $(TN_PARALLEL_TESTS)
%C%_test_ddp_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_ddp_LDADD = $(TN_LINK_TEST)
%C%_test_ddp_errors_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_ddp_errors_LDADD = $(TN_LINK_TEST)
%C%_test_ddp_features_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_ddp_features_LDADD = $(TN_LINK_TEST)
%C%_test_ddp_samples_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_ddp_samples_LDADD = $(TN_LINK_TEST)
%C%_test_ddp_shards_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_ddp_shards_LDADD = $(TN_LINK_TEST)
%C%_test_sync_batch_norm_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_sync_batch_norm_LDADD = $(TN_LINK_TEST)
endif
