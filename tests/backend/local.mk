# SPDX-License-Identifier: MIT
#
# The strict device and its kernel pack are built here as a stranger would build them: with the sdk's headers and nothing else. tests/house/outside.sh
# does it once more against an installation.

TN_BACKEND_EXAMPLES = examples/strict-device/strict.la examples/kernel-pack/relu_pack.la
check_LTLIBRARIES += $(TN_BACKEND_EXAMPLES)
examples_strict_device_strict_la_SOURCES = examples/strict-device/strict.h examples/strict-device/plugin.c \
	examples/strict-device/queue.c examples/strict-device/memory.c examples/strict-device/inject.c \
	examples/strict-device/elementwise.c examples/strict-device/functions.c \
	examples/strict-device/reduce.c examples/strict-device/along.c
examples_strict_device_strict_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_strict_device_strict_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere
examples_strict_device_strict_la_LIBADD = $(LIBM)
examples_kernel_pack_relu_pack_la_SOURCES = examples/kernel-pack/relu_pack.c
examples_kernel_pack_relu_pack_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_kernel_pack_relu_pack_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere
EXTRA_DIST += examples/strict-device/Makefile examples/kernel-pack/Makefile

if HAVE_CHECK
TN_BACKEND_TESTS = %D%/test_along %D%/test_convolution %D%/test_copies %D%/test_curves %D%/test_elementwise %D%/test_float64 %D%/test_folds %D%/test_functions %D%/test_fused %D%/test_lengths %D%/test_moves %D%/test_narrow \
	%D%/test_onepass %D%/test_pooling %D%/test_products %D%/test_random %D%/test_reduce %D%/test_steps %D%/test_strict %D%/test_training
if HAVE_ONEDNN
TN_BACKEND_TESTS += %D%/test_onednn
%C%_test_onednn_SOURCES = %D%/test_onednn.c $(TN_BACKEND_SHARED)
%C%_test_onednn_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_onednn_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_onednn_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
endif
check_PROGRAMS += $(TN_BACKEND_TESTS)
TESTS += $(TN_BACKEND_TESTS)
TN_BACKEND_SHARED = %D%/backend.c %D%/backend.h

%C%_test_pooling_SOURCES = %D%/test_pooling.c
%C%_test_pooling_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_pooling_LDADD = $(TN_LINK_TEST) $(LIBM)
%C%_test_convolution_SOURCES = %D%/test_convolution.c
%C%_test_convolution_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_convolution_LDADD = $(TN_LINK_TEST) $(LIBM)

%C%_test_fused_SOURCES = %D%/test_fused.c
%C%_test_fused_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_fused_LDADD = $(TN_LINK_TEST) $(LIBM)

%C%_test_lengths_SOURCES = %D%/test_lengths.c $(TN_BACKEND_SHARED)
%C%_test_lengths_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_lengths_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_lengths_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_curves_SOURCES = %D%/test_curves.c $(TN_BACKEND_SHARED)
%C%_test_curves_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_curves_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_curves_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_float64_SOURCES = %D%/test_float64.c $(TN_BACKEND_SHARED)
%C%_test_float64_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_float64_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_float64_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_products_SOURCES = %D%/test_products.c $(TN_BACKEND_SHARED)
%C%_test_products_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_products_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_products_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_folds_SOURCES = %D%/test_folds.c $(TN_BACKEND_SHARED)
%C%_test_folds_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_folds_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_folds_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_moves_SOURCES = %D%/test_moves.c $(TN_BACKEND_SHARED)
%C%_test_moves_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_moves_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_moves_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_narrow_SOURCES = %D%/test_narrow.c $(TN_BACKEND_SHARED)
%C%_test_narrow_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_narrow_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_narrow_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_copies_SOURCES = %D%/test_copies.c $(TN_BACKEND_SHARED)
%C%_test_copies_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_copies_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_copies_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_elementwise_SOURCES = %D%/test_elementwise.c $(TN_BACKEND_SHARED)
%C%_test_elementwise_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_elementwise_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_elementwise_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_along_SOURCES = %D%/test_along.c $(TN_BACKEND_SHARED)
%C%_test_along_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_along_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_along_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_functions_SOURCES = %D%/test_functions.c $(TN_BACKEND_SHARED)
%C%_test_functions_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_functions_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_functions_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_onepass_SOURCES = %D%/test_onepass.c $(TN_BACKEND_SHARED)
%C%_test_onepass_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_onepass_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_onepass_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_random_SOURCES = %D%/test_random.c $(TN_BACKEND_SHARED)
%C%_test_random_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_random_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_random_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_reduce_SOURCES = %D%/test_reduce.c %D%/reference.h $(TN_BACKEND_SHARED)
%C%_test_reduce_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_reduce_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_reduce_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_steps_SOURCES = %D%/test_steps.c $(TN_BACKEND_SHARED)
%C%_test_steps_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_steps_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_steps_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_strict_SOURCES = %D%/test_strict.c $(TN_BACKEND_SHARED)
%C%_test_strict_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_strict_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_strict_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_training_SOURCES = %D%/test_training.c $(TN_BACKEND_SHARED)
%C%_test_training_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_training_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_training_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
endif
EXTRA_DIST += %D%/make-reference.py
