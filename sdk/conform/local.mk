# SPDX-License-Identifier: MIT

# The device type that tenon check compares with.
TN_CONFORM_REFERENCE = \
	sdk/conform/reference.h \
	sdk/conform/reference.c \
	sdk/conform/reference_each.c \
	sdk/conform/reference_fold.c \
	sdk/conform/reference_move.c
TN_CONFORM = $(TN_CONFORM_REFERENCE) \
	sdk/conform/conform.h \
	sdk/conform/cases.c \
	sdk/conform/child.c \
	sdk/conform/contract.c \
	sdk/conform/files.c \
	sdk/conform/formats.c \
	sdk/conform/json.c \
	sdk/conform/layer_calls.c \
	sdk/conform/layer_cases.c \
	sdk/conform/layer_copies.c \
	sdk/conform/layer_gradients.c \
	sdk/conform/layer_hooks.c \
	sdk/conform/layer_state.c \
	sdk/conform/layers.c \
	sdk/conform/layers.h \
	sdk/conform/optimizers.c \
	sdk/conform/ops.c \
	sdk/conform/ops.h \
	sdk/conform/ops_compare.c \
	sdk/conform/ops_failures.c \
	sdk/conform/ops_gradients.c \
	sdk/conform/reports.c \
	sdk/conform/run.c \
	sdk/conform/scarce.c \
	sdk/conform/values.c

# The cases, which PyTorch made: tests/oracle replays them against its results, the kit against the reference.
conformdir = $(pkgdatadir)/conform
conform_DATA = \
	tests/conform/layers.txt \
	tests/conform/optimizers.txt \
	tests/oracle/elementwise.txt \
	tests/oracle/families.txt \
	tests/oracle/fused.txt \
	tests/oracle/kernels.txt \
	tests/oracle/steps.txt \
	tests/oracle/losses.txt \
	tests/oracle/networks.txt \
	tests/oracle/opinfo.txt \
	tests/oracle/primitives.txt \
	tests/oracle/refused.txt \
	tests/oracle/slice.txt
