# SPDX-License-Identifier: MIT

check_PROGRAMS += tests/grad/test_engine tests/grad/test_inplace
TESTS += tests/grad/test_engine tests/grad/test_inplace
tests_grad_test_engine_SOURCES = %D%/test_engine.c tests/op/with.h
tests_grad_test_engine_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_engine_LDADD = $(TN_LINK_TEST)
tests_grad_test_inplace_SOURCES = %D%/test_inplace.c tests/op/with.h
tests_grad_test_inplace_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_inplace_LDADD = $(TN_LINK_TEST)
