# SPDX-License-Identifier: MIT

EXTRA_DIST += tests/oracle/cases.py tests/oracle/make_basic.py tests/oracle/basic.txt tests/oracle/make_elementwise.py \
	tests/oracle/elementwise.txt tests/oracle/make_reduction_shape_index.py tests/oracle/reduction_shape_index.txt \
	tests/oracle/make_conv_pool_norm.py tests/oracle/conv_pool_norm.txt \
	tests/oracle/make_loss.py tests/oracle/loss.txt tests/oracle/make_special.py tests/oracle/special.txt
EXTRA_DIST += tests/oracle/make_index.py tests/oracle/index.txt
TESTS += tests/op/instructions.sh tests/op/schema.sh
EXTRA_DIST += tests/op/instructions.sh tests/op/schema.sh

if HAVE_CHECK
check_PROGRAMS += tests/op/test_oracle tests/op/test_dispatch tests/op/test_elementwise tests/op/test_memory
TESTS += tests/op/test_oracle tests/op/test_dispatch tests/op/test_elementwise tests/op/test_memory
tests_op_test_elementwise_SOURCES = %D%/test_elementwise.c %D%/suite.h
tests_op_test_elementwise_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_elementwise_LDADD = $(TN_LINK_TEST)
tests_op_test_memory_SOURCES = %D%/test_memory.c %D%/toy_device.h
tests_op_test_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_memory_LDADD = $(TN_LINK_TEST_CORE)
tests_op_test_oracle_SOURCES = %D%/test_oracle.c %D%/suite.h $(TN_CONFORM_REFERENCE)
tests_op_test_oracle_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_oracle_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_tests_op_test_oracle_DEPENDENCIES = examples/strict-device/strict.la tests/fake-cuda.la
check_PROGRAMS += tests/op/test_flags
TESTS += tests/op/test_flags
tests_op_test_flags_SOURCES = %D%/test_flags.c %D%/toy_op.h %D%/suite.h
tests_op_test_flags_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_flags_LDADD = $(TN_LINK_TEST)
check_PROGRAMS += tests/op/test_equality
TESTS += tests/op/test_equality
tests_op_test_equality_SOURCES = %D%/test_equality.c %D%/suite.h
tests_op_test_equality_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_equality_LDADD = $(TN_LINK_TEST)
check_PROGRAMS += tests/op/test_pieces
TESTS += tests/op/test_pieces
tests_op_test_pieces_SOURCES = %D%/test_pieces.c %D%/suite.h
tests_op_test_pieces_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_pieces_LDADD = $(TN_LINK_TEST)
check_PROGRAMS += tests/op/test_nn
TESTS += tests/op/test_nn
tests_op_test_nn_SOURCES = %D%/test_nn.c %D%/suite.h
tests_op_test_nn_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_nn_LDADD = $(TN_LINK_TEST)
check_PROGRAMS += tests/op/test_distributions
TESTS += tests/op/test_distributions
tests_op_test_distributions_SOURCES = %D%/test_distributions.c %D%/suite.h
tests_op_test_distributions_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_distributions_LDADD = $(TN_LINK_TEST)
check_PROGRAMS += tests/op/test_random
TESTS += tests/op/test_random
tests_op_test_random_SOURCES = %D%/test_random.c %D%/suite.h
tests_op_test_random_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_random_LDADD = $(TN_LINK_TEST)
check_PROGRAMS += tests/op/test_call
TESTS += tests/op/test_call
tests_op_test_call_SOURCES = %D%/test_call.c %D%/suite.h
tests_op_test_call_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_call_LDADD = $(TN_LINK_TEST_CORE)
tests_op_test_dispatch_SOURCES = %D%/test_dispatch.c %D%/suite.h %D%/toy_device.h %D%/toy_op.h
tests_op_test_dispatch_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_dispatch_LDADD = $(TN_LINK_TEST_CORE)
check_PROGRAMS += tests/op/test_attention
TESTS += tests/op/test_attention
tests_op_test_attention_SOURCES = %D%/test_attention.c %D%/suite.h
tests_op_test_attention_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_attention_LDADD = $(TN_LINK_TEST) $(LIBM)
check_PROGRAMS += tests/op/test_mixed tests/op/test_numbers
TESTS += tests/op/test_mixed tests/op/test_numbers
tests_op_test_mixed_SOURCES = %D%/test_mixed.c %D%/suite.h sdk/conform/cases.c sdk/conform/case_tensors.c sdk/conform/files.c $(TN_CONFORM_REFERENCE)
tests_op_test_mixed_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_mixed_LDADD = $(TN_LINK_TEST) $(LIBM)
tests_op_test_numbers_SOURCES = %D%/test_numbers.c %D%/suite.h
tests_op_test_numbers_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_numbers_LDADD = $(TN_LINK_TEST) $(LIBM)
check_PROGRAMS += tests/op/test_operator_options
TESTS += tests/op/test_operator_options
tests_op_test_operator_options_SOURCES = %D%/test_operator_options.c %D%/suite.h
tests_op_test_operator_options_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_operator_options_LDADD = $(TN_LINK_TEST) $(LIBM)
check_PROGRAMS += tests/op/test_prepared
TESTS += tests/op/test_prepared
tests_op_test_prepared_SOURCES = %D%/test_prepared.c %D%/suite.h %D%/toy_device.h
tests_op_test_prepared_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_op_test_prepared_LDADD = $(TN_LINK_TEST_CORE) $(LIBM)
endif
EXTRA_DIST += tests/oracle/make_operator_options.py tests/oracle/operator_options.txt
