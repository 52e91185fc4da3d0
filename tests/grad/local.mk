# SPDX-License-Identifier: MIT

if HAVE_CHECK
TN_GRAD_TESTS = tests/grad/test_anomaly tests/grad/test_check tests/grad/test_complex tests/grad/test_differential tests/grad/test_elementwise tests/grad/test_engine tests/grad/test_function tests/grad/test_hooks tests/grad/test_inplace tests/grad/test_inplace_forms tests/grad/test_modes tests/grad/test_threads tests/grad/test_views
check_PROGRAMS += $(TN_GRAD_TESTS)
TESTS += $(TN_GRAD_TESTS)
tests_grad_test_anomaly_SOURCES = %D%/test_anomaly.c tests/op/with.h
tests_grad_test_anomaly_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_anomaly_LDADD = $(TN_LINK_TEST)
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
tests_grad_test_hooks_SOURCES = %D%/test_hooks.c tests/op/with.h
tests_grad_test_hooks_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_hooks_LDADD = $(TN_LINK_TEST_CORE)
tests_grad_test_inplace_SOURCES = %D%/test_inplace.c tests/op/with.h
tests_grad_test_inplace_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_inplace_LDADD = $(TN_LINK_TEST)
tests_grad_test_inplace_forms_SOURCES = %D%/test_inplace_forms.c tests/op/with.h
tests_grad_test_inplace_forms_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_inplace_forms_LDADD = $(TN_LINK_TEST)
tests_grad_test_threads_SOURCES = %D%/test_threads.c tests/op/with.h
tests_grad_test_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_threads_LDADD = $(TN_LINK_TEST) -lpthread
tests_grad_test_views_SOURCES = %D%/test_views.c tests/op/with.h
tests_grad_test_views_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_views_LDADD = $(TN_LINK_TEST)
tests_grad_test_complex_SOURCES = %D%/test_complex.c tests/op/with.h
tests_grad_test_complex_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_complex_LDADD = $(TN_LINK_TEST)
tests_grad_test_function_SOURCES = %D%/test_function.c tests/op/with.h
tests_grad_test_function_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_function_LDADD = $(TN_LINK_TEST_CORE)
tests_grad_test_modes_SOURCES = %D%/test_modes.c tests/op/with.h
tests_grad_test_modes_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_grad_test_modes_LDADD = $(TN_LINK_TEST)
endif
