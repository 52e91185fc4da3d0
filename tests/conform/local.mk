# SPDX-License-Identifier: MIT
#
# Tests of tenon check: that it finds what is wrong, and that our own plugins pass.

TESTS += tests/conform/check.sh tests/conform/kinds.sh tests/conform/mutants.sh tests/conform/own_plugins.sh
EXTRA_DIST += %D%/mutants.sh %D%/mutants.txt %D%/mutant_choose.h %D%/mutant_device.c %D%/mutant_recorder.c %D%/mutant_capture.h %D%/mutant_kernel.h %D%/mutant_op.c %D%/mutant_op.txt %D%/mutant_layer.c %D%/mutant_layer.txt %D%/mutant_optimizer.c %D%/mutant_optimizer.txt %D%/mutant_format.c %D%/check.sh %D%/own_plugins.sh %D%/wrong.c %D%/wrong_layer.c %D%/wrong_optimizer.c %D%/wrong_format.c %D%/wrong_data.c %D%/wrong_prune.c %D%/pruning.txt %D%/wrong_graph.c %D%/kinds.sh %D%/lists.c %D%/lists.txt %D%/bare.c %D%/optimizers.txt %D%/transforms.txt %D%/cube.txt %D%/pair.txt %D%/layers.txt %D%/models.txt

# Changed cases, at random. By hand, in a build with sanitizers: ./run tests/conform/test_changed_cases --seed N --seconds N
if HAVE_CHECK
check_PROGRAMS += tests/conform/test_changed_cases
TESTS += tests/conform/test_changed_cases
tests_conform_test_changed_cases_SOURCES = %D%/test_changed_cases.c %D%/changed_values.h sdk/conform/cases.c \
	sdk/conform/case_tensors.c sdk/conform/files.c sdk/conform/conform.h $(TN_CONFORM_REFERENCE)
tests_conform_test_changed_cases_CPPFLAGS = $(TN_TEST_CPPFLAGS)
tests_conform_test_changed_cases_LDADD = $(TN_LINK) $(LIBM)
endif
