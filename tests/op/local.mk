# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/op/test_oracle
TESTS += tests/op/test_oracle
tests_op_test_oracle_SOURCES = %D%/test_oracle.c %D%/with.h
tests_op_test_oracle_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_oracle_LDADD = $(TN_LINK_TEST)
EXTRA_DIST += tests/oracle/make-slice.py tests/oracle/slice.txt
