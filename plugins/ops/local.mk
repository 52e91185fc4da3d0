# SPDX-License-Identifier: MIT

# Compiled into each plugin that defines operators of the schema.
TN_OPS_SHARED = \
	%D%/broadcast.c \
	%D%/channels.c \
	%D%/channels.h \
	%D%/common.c \
	%D%/common.h \
	%D%/formula.h \
	%D%/scalar.c \
	%D%/scalar.h \
	%D%/window.c \
	%D%/window.h

TN_PLUGINS += plugins/ops.la
plugins_ops_la_SOURCES = $(TN_OPS_SHARED) \
	%D%/activation.c \
	%D%/arithmetic.c \
	%D%/arithmetic_exponent.c \
	%D%/arithmetic_float.c \
	%D%/arithmetic_integer.c \
	%D%/arithmetic_ternary.c \
	%D%/attention.c \
	%D%/attention_multi_head.c \
	%D%/compare.c \
	%D%/complex.c \
	%D%/complex_parts.c \
	%D%/conv.c \
	%D%/conv_1d_2d_3d.c \
	%D%/copy.c \
	%D%/creation.c \
	%D%/distance.c \
	%D%/dropout.c \
	%D%/einsum.c \
	%D%/embedding.c \
	%D%/fft.c \
	%D%/fft_frequency.c \
	%D%/fft.h \
	%D%/fft_steps.c \
	%D%/fft_stft.c \
	%D%/fold.c \
	%D%/index.c \
	%D%/index.h \
	%D%/index_copy.c \
	%D%/index_put.c \
	%D%/index_reduce.c \
	%D%/index_repeat.c \
	%D%/linalg.h \
	%D%/linalg_covariance.c \
	%D%/linalg_derived.c \
	%D%/linalg_norm.c \
	%D%/linalg_orthogonal.c \
	%D%/linalg_product.c \
	%D%/linalg_solve.c \
	%D%/linear.c \
	%D%/loss.c \
	%D%/loss.h \
	%D%/loss_ctc.c \
	%D%/loss_elementwise.c \
	%D%/loss_margin.c \
	%D%/matmul.c \
	%D%/matmul.h \
	%D%/matmul_grouped.c \
	%D%/norm.c \
	%D%/norm.h \
	%D%/norm_channel.c \
	%D%/optimizer.c \
	%D%/optimizer.h \
	%D%/optimizer_adaptive.c \
	%D%/pad.c \
	%D%/plugin.c \
	%D%/pool.c \
	%D%/pool_fractional.c \
	%D%/pool_1d_2d_3d.c \
	%D%/random.c \
	%D%/random_distribution.c \
	%D%/reduction.c \
	%D%/reduction.h \
	%D%/reduction_extreme.c \
	%D%/reduction_nan.c \
	%D%/reduction_norm.c \
	%D%/resample.c \
	%D%/resample_grid.c \
	%D%/rnn.c %D%/rnn.h %D%/rnn_steps.c \
	%D%/scan.c \
	%D%/scan_extreme.c \
	%D%/search.c \
	%D%/shape.c \
	%D%/shape_join.c \
	%D%/shape_slice.c \
	%D%/softmax.c \
	%D%/sort.c \
	%D%/sort_rank.c \
	%D%/special.c \
	%D%/special_bessel.c \
	%D%/special_gamma.c \
	%D%/special_incomplete.c \
	%D%/unary.c \
	%D%/unique.c
plugins_ops_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -I$(builddir)/plugins/ops -I$(srcdir)/plugins/ops
plugins_ops_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_ops_la_LIBADD = $(LIBM)
