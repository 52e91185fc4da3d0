# SPDX-License-Identifier: MIT

# The reference: the device type with which tenon check compares other devices.
TN_CONFORM_REFERENCE = \
	sdk/conform/reference.h \
	sdk/conform/reference.c \
	sdk/conform/reference_elementwise.c \
	sdk/conform/reference_reduction.c \
	sdk/conform/reference_index.c
TN_CONFORM = $(TN_CONFORM_REFERENCE) \
	sdk/conform/conform.h \
	sdk/conform/case_tensors.c \
	sdk/conform/cases.c \
	sdk/conform/child.c \
	sdk/conform/comms.c \
	sdk/conform/comms.h \
	sdk/conform/comms_ranks.c \
	sdk/conform/contract.c \
	sdk/conform/datasets.c \
	sdk/conform/device.c \
	sdk/conform/device_capture.c \
	sdk/conform/device_kinds.c \
	sdk/conform/device.h \
	sdk/conform/device_memory.c \
	sdk/conform/files.c \
	sdk/conform/formats.c \
	sdk/conform/graphs.c \
	sdk/conform/json.c \
	sdk/conform/layers_calls.c \
	sdk/conform/layers_cases.c \
	sdk/conform/layers_copies.c \
	sdk/conform/layers_given.c \
	sdk/conform/layers_gradients.c \
	sdk/conform/layers_hooks.c \
	sdk/conform/layers_life.c \
	sdk/conform/layers_options.c \
	sdk/conform/layers_state.c \
	sdk/conform/layers.c \
	sdk/conform/layers.h \
	sdk/conform/optimizers.c \
	sdk/conform/optimizers.h \
	sdk/conform/optimizers_groups.c \
	sdk/conform/optimizers_options.c \
	sdk/conform/option_values.c \
	sdk/conform/optimizers_cases.c \
	sdk/conform/pruning.c \
	sdk/conform/ops.c \
	sdk/conform/ops.h \
	sdk/conform/ops_after.c \
	sdk/conform/ops_compare.c \
	sdk/conform/ops_failures.c \
	sdk/conform/ops_gradients.c \
	sdk/conform/ops_kept.c \
	sdk/conform/ops_long.c \
	sdk/conform/ops_autocast.c \
	sdk/conform/ops_flags.c \
	sdk/conform/ops_own.c \
	sdk/conform/report_page.c \
	sdk/conform/reports.c \
	sdk/conform/process.c \
	sdk/conform/process.h \
	sdk/conform/run.c \
	sdk/conform/failing_memory.c \
	sdk/conform/value_compare.c

# The cases, made with PyTorch. tests/oracle compares Tenon with PyTorch's results; tenon check
# compares devices with the reference.
conformdir = $(pkgdatadir)/conform
conform_DATA = \
	tests/conform/layers.txt \
	tests/conform/optimizers.txt \
	tests/conform/pruning.txt \
	tests/conform/transforms.txt \
	tests/oracle/elementwise.txt \
	tests/oracle/reduction_order.txt \
	tests/oracle/reduction_shape_index.txt \
	tests/oracle/fft.txt \
	tests/oracle/fused.txt \
	tests/oracle/index.txt \
	tests/oracle/index_several.txt \
	tests/oracle/unique.txt \
	tests/oracle/linalg.txt \
	tests/oracle/elementwise_special.txt \
	tests/oracle/without_results.txt \
	tests/oracle/optimizer.txt \
	tests/oracle/loss.txt \
	tests/oracle/conv_pool_norm.txt \
	tests/oracle/opinfo.txt \
	tests/oracle/primitives.txt \
	tests/oracle/quantize.txt \
	tests/oracle/refused.txt \
	tests/oracle/basic.txt
