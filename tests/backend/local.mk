# SPDX-License-Identifier: MIT
#
# The strict device and its kernel pack are built as outside of the tree: with the sdk's headers and
# nothing else. tests/house/outside.sh builds them again against an installation.

TN_BACKEND_EXAMPLES = examples/strict-device/strict.la examples/kernel-pack/relu_pack.la
check_LTLIBRARIES += $(TN_BACKEND_EXAMPLES)
examples_strict_device_strict_la_SOURCES = examples/strict-device/strict.h \
	examples/strict-device/queue.h examples/strict-device/plugin.c examples/strict-device/queue.c \
	examples/strict-device/capture.c examples/strict-device/memory.c \
	examples/strict-device/inject.c examples/strict-device/copy.c examples/strict-device/creation.c \
	examples/strict-device/elementwise.c examples/strict-device/elementwise_function.c \
	examples/strict-device/index.c examples/strict-device/loss.c examples/strict-device/matmul.c \
	examples/strict-device/random.c examples/strict-device/reduction.c examples/strict-device/scan.c \
	examples/strict-device/shape.c examples/strict-device/sort.c
examples_strict_device_strict_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_strict_device_strict_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere
examples_strict_device_strict_la_LIBADD = $(LIBM)
examples_kernel_pack_relu_pack_la_SOURCES = examples/kernel-pack/relu_pack.c
examples_kernel_pack_relu_pack_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_kernel_pack_relu_pack_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere
EXTRA_DIST += examples/strict-device/Makefile examples/kernel-pack/Makefile

if HAVE_CHECK
TN_BACKEND_TESTS = %D%/test_activation %D%/test_basic_kernels %D%/test_bfloat16 %D%/test_conv \
	%D%/test_conv_activation %D%/test_conv_layouts %D%/test_copy %D%/test_decomposed \
	%D%/test_elementwise %D%/test_fft %D%/test_float16 %D%/test_float32_call %D%/test_index %D%/test_index_rows %D%/test_integers %D%/test_kept_weights %D%/test_large_pages %D%/test_large_tensors %D%/test_linear \
	%D%/test_loss %D%/test_math %D%/test_math_float32 %D%/test_math_float64 %D%/test_matmul \
	%D%/test_matmul_layouts %D%/test_norm %D%/test_one_pass %D%/test_optimizer %D%/test_pool %D%/test_quant %D%/test_random %D%/test_shared_memory \
	%D%/test_reduction %D%/test_reduction_prod %D%/test_rnn %D%/test_scalar %D%/test_scan %D%/test_sequence_cost \
	%D%/test_shape %D%/test_capture %D%/test_softmax %D%/test_sort %D%/test_special %D%/test_strict %D%/test_training \
	%D%/test_vector_tails
if HAVE_ONEDNN
TN_BACKEND_TESTS += %D%/test_onednn
%C%_test_onednn_SOURCES = %D%/test_onednn.c $(TN_BACKEND_SHARED)
%C%_test_onednn_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_onednn_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_onednn_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
endif
%C%_test_basic_kernels_SOURCES = %D%/test_basic_kernels.c $(TN_CONFORM_REFERENCE)
%C%_test_basic_kernels_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_basic_kernels_LDADD = $(TN_LINK_TEST) $(LIBM)
check_PROGRAMS += $(TN_BACKEND_TESTS)
TESTS += $(TN_BACKEND_TESTS)
TN_BACKEND_SHARED = %D%/backend.c %D%/backend.h

%C%_test_fft_SOURCES = %D%/test_fft.c $(TN_BACKEND_SHARED)
%C%_test_fft_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_fft_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_fft_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_quant_SOURCES = %D%/test_quant.c $(TN_BACKEND_SHARED)
%C%_test_quant_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_quant_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_quant_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_pool_SOURCES = %D%/test_pool.c
%C%_test_pool_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_pool_LDADD = $(TN_LINK_TEST) $(LIBM)
%C%_test_conv_SOURCES = %D%/test_conv.c %D%/conv_shapes.h
%C%_test_conv_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_conv_LDADD = $(TN_LINK_TEST) $(LIBM)
%C%_test_conv_layouts_SOURCES = %D%/test_conv_layouts.c
%C%_test_conv_layouts_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_conv_layouts_LDADD = $(TN_LINK_TEST) $(LIBM)

%C%_test_activation_SOURCES = %D%/test_activation.c $(TN_BACKEND_SHARED)
%C%_test_activation_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_activation_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_activation_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_large_pages_SOURCES = %D%/test_large_pages.c $(TN_BACKEND_SHARED)
%C%_test_large_pages_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_large_pages_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_large_pages_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_float32_call_SOURCES = %D%/test_float32_call.c tests/op/suite.h
%C%_test_float32_call_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_float32_call_LDADD = $(TN_LINK_TEST)
%C%_test_kept_weights_SOURCES = %D%/test_kept_weights.c tests/op/suite.h
%C%_test_kept_weights_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_kept_weights_LDADD = $(TN_LINK_TEST)
%C%_test_conv_activation_SOURCES = %D%/test_conv_activation.c %D%/fused.h $(TN_BACKEND_SHARED)
%C%_test_conv_activation_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_conv_activation_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_conv_activation_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_linear_SOURCES = %D%/test_linear.c %D%/fused.h $(TN_BACKEND_SHARED)
%C%_test_linear_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_linear_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_linear_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_bfloat16_SOURCES = %D%/test_bfloat16.c %D%/fused.h $(TN_BACKEND_SHARED)
%C%_test_bfloat16_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_bfloat16_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_bfloat16_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_rnn_SOURCES = %D%/test_rnn.c %D%/fused.h $(TN_BACKEND_SHARED)
%C%_test_rnn_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_rnn_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_rnn_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_loss_SOURCES = %D%/test_loss.c %D%/loss_reference.h $(TN_BACKEND_SHARED)
%C%_test_loss_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_loss_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_loss_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_matmul_layouts_SOURCES = %D%/test_matmul_layouts.c $(TN_BACKEND_SHARED)
%C%_test_matmul_layouts_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_matmul_layouts_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_matmul_layouts_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_norm_SOURCES = %D%/test_norm.c %D%/fused.h $(TN_BACKEND_SHARED)
%C%_test_norm_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_norm_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_norm_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_shape_SOURCES = %D%/test_shape.c $(TN_BACKEND_SHARED)
%C%_test_shape_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_shape_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_shape_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_softmax_SOURCES = %D%/test_softmax.c %D%/loss_reference.h $(TN_BACKEND_SHARED)
%C%_test_softmax_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_softmax_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_softmax_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_sequence_cost_SOURCES = %D%/test_sequence_cost.c $(TN_BACKEND_SHARED)
%C%_test_sequence_cost_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_sequence_cost_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_sequence_cost_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_math_float32_SOURCES = %D%/test_math_float32.c $(TN_BACKEND_SHARED)
%C%_test_math_float32_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_math_float32_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_math_float32_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_math_float64_SOURCES = %D%/test_math_float64.c $(TN_BACKEND_SHARED)
%C%_test_math_float64_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_math_float64_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_math_float64_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_matmul_SOURCES = %D%/test_matmul.c $(TN_BACKEND_SHARED)
%C%_test_matmul_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_matmul_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_matmul_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_large_tensors_SOURCES = %D%/test_large_tensors.c $(TN_BACKEND_SHARED)
%C%_test_large_tensors_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_large_tensors_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_large_tensors_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_vector_tails_SOURCES = %D%/test_vector_tails.c $(TN_BACKEND_SHARED)
%C%_test_vector_tails_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_vector_tails_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_vector_tails_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_float16_SOURCES = %D%/test_float16.c $(TN_BACKEND_SHARED)
%C%_test_float16_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_float16_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_float16_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_copy_SOURCES = %D%/test_copy.c $(TN_BACKEND_SHARED)
%C%_test_copy_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_copy_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_copy_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_elementwise_SOURCES = %D%/test_elementwise.c $(TN_BACKEND_SHARED)
%C%_test_elementwise_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_elementwise_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_elementwise_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_reduction_prod_SOURCES = %D%/test_reduction_prod.c %D%/types.h $(TN_BACKEND_SHARED)
%C%_test_reduction_prod_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_reduction_prod_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_reduction_prod_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_index_rows_SOURCES = %D%/test_index_rows.c $(TN_BACKEND_SHARED)
%C%_test_index_rows_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_index_rows_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_index_rows_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_integers_SOURCES = %D%/test_integers.c $(TN_BACKEND_SHARED)
%C%_test_integers_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_integers_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_integers_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_special_SOURCES = %D%/test_special.c $(TN_BACKEND_SHARED)
%C%_test_special_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_special_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_special_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_sort_SOURCES = %D%/test_sort.c %D%/types.h $(TN_BACKEND_SHARED)
%C%_test_sort_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_sort_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_sort_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_scan_SOURCES = %D%/test_scan.c %D%/types.h $(TN_BACKEND_SHARED)
%C%_test_scan_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_scan_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_scan_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_index_SOURCES = %D%/test_index.c %D%/types.h $(TN_BACKEND_SHARED)
%C%_test_index_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_index_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_index_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_scalar_SOURCES = %D%/test_scalar.c $(TN_BACKEND_SHARED)
%C%_test_scalar_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_scalar_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_scalar_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_math_SOURCES = %D%/test_math.c $(TN_BACKEND_SHARED)
%C%_test_math_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_math_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_math_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_one_pass_SOURCES = %D%/test_one_pass.c $(TN_BACKEND_SHARED)
%C%_test_one_pass_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_one_pass_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_one_pass_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_decomposed_SOURCES = %D%/test_decomposed.c $(TN_BACKEND_SHARED)
%C%_test_decomposed_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_decomposed_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_decomposed_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_shared_memory_SOURCES = %D%/test_shared_memory.c $(TN_BACKEND_SHARED)
%C%_test_shared_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_shared_memory_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_shared_memory_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_random_SOURCES = %D%/test_random.c $(TN_BACKEND_SHARED)
%C%_test_random_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_random_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_random_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_reduction_SOURCES = %D%/test_reduction.c $(TN_BACKEND_SHARED)
%C%_test_reduction_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_reduction_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_reduction_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_optimizer_SOURCES = %D%/test_optimizer.c $(TN_BACKEND_SHARED)
%C%_test_optimizer_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_optimizer_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_optimizer_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_capture_SOURCES = %D%/test_capture.c $(TN_BACKEND_SHARED)
%C%_test_capture_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_capture_LDADD = $(TN_LINK_TEST) $(LIBM)
EXTRA_%C%_test_capture_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_strict_SOURCES = %D%/test_strict.c $(TN_BACKEND_SHARED)
%C%_test_strict_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_strict_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_strict_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)

%C%_test_training_SOURCES = %D%/test_training.c $(TN_BACKEND_SHARED)
%C%_test_training_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_training_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_training_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
endif
EXTRA_DIST += %D%/make_loss_reference.py
