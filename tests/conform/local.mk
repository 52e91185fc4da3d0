# SPDX-License-Identifier: MIT
#
# Tests of tenon check: that it finds what is wrong, and that our own plugins pass.

TESTS += tests/conform/check.sh tests/conform/kinds.sh tests/conform/mutants.sh tests/conform/own_plugins.sh
EXTRA_DIST += %D%/check.sh %D%/kinds.sh %D%/mutants.sh %D%/own_plugins.sh %D%/mutants.txt \
	%D%/mutant_capture.h %D%/mutant_choose.h %D%/mutant_kernel.h %D%/mutant_cube.c %D%/mutant_cube.txt \
	%D%/mutant_comm.c %D%/mutant_data.c %D%/mutant_descent.c %D%/mutant_device.c %D%/mutant_format.c %D%/mutant_graph.c \
	%D%/mutant_layer.c %D%/mutant_layer.txt %D%/mutant_lists.c %D%/mutant_lists.txt %D%/mutant_op.c \
	%D%/mutant_op.txt %D%/mutant_optimizer.c %D%/mutant_optimizer.txt %D%/mutant_pair.c \
	%D%/mutant_pair.txt %D%/mutant_prune.c %D%/mutant_recorder.c %D%/mutant_relu.c %D%/mutant_scaled.c \
	%D%/mutant_scaled.txt %D%/bare.c %D%/layers.txt %D%/models.txt %D%/optimizers.txt %D%/pruning.txt \
	%D%/transforms.txt

# Changed cases, at random. By hand, in a build with sanitizers: ./run tests/conform/test_changed_cases --seed N --seconds N
if HAVE_CHECK
check_PROGRAMS += tests/conform/test_changed_cases
TESTS += tests/conform/test_changed_cases
tests_conform_test_changed_cases_SOURCES = %D%/test_changed_cases.c %D%/changed_values.h sdk/conform/cases.c \
	sdk/conform/case_tensors.c sdk/conform/files.c sdk/conform/conform.h $(TN_CONFORM_REFERENCE)
tests_conform_test_changed_cases_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_conform_test_changed_cases_LDADD = $(TN_LINK) $(LIBM)
endif
