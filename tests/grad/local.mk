# SPDX-License-Identifier: MIT

TN_GRAD_TESTS = tests/grad/test_check tests/grad/test_elementwise tests/grad/test_engine tests/grad/test_inplace tests/grad/test_threads tests/grad/test_differential tests/grad/test_views
check_PROGRAMS += $(TN_GRAD_TESTS)
TESTS += $(TN_GRAD_TESTS)
tests_grad_test_check_SOURCES = %D%/test_check.c tests/op/with.h
tests_grad_test_check_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_check_LDADD = $(TN_LINK_TEST_CORE)
tests_grad_test_elementwise_SOURCES = %D%/test_elementwise.c tests/op/with.h
tests_grad_test_elementwise_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_elementwise_LDADD = $(TN_LINK_TEST)
tests_grad_test_differential_SOURCES = %D%/test_differential.c tests/op/with.h
tests_grad_test_differential_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_differential_LDADD = $(TN_LINK_TEST_CORE)
tests_grad_test_engine_SOURCES = %D%/test_engine.c tests/op/with.h
tests_grad_test_engine_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_engine_LDADD = $(TN_LINK_TEST)
tests_grad_test_inplace_SOURCES = %D%/test_inplace.c tests/op/with.h
tests_grad_test_inplace_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_inplace_LDADD = $(TN_LINK_TEST)
tests_grad_test_threads_SOURCES = %D%/test_threads.c tests/op/with.h
tests_grad_test_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_threads_LDADD = $(TN_LINK_TEST) -lpthread
tests_grad_test_views_SOURCES = %D%/test_views.c tests/op/with.h
tests_grad_test_views_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_views_LDADD = $(TN_LINK_TEST)
