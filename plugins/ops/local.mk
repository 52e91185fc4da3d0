# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/ops.la
plugins_ops_la_SOURCES = \
	%D%/common.h \
	%D%/elementwise.h \
	%D%/families.h \
	%D%/activation.c \
	%D%/activations.c \
	%D%/arithmetic.c \
	%D%/common.c \
	%D%/compare.c \
	%D%/complex.c \
	%D%/complex_parts.c \
	%D%/creation.c \
	%D%/loss.c \
	%D%/losses.c \
	%D%/losses.h \
	%D%/losses_weighted.c \
	%D%/dropout.c \
	%D%/matrix.c \
	%D%/plugin.c \
	%D%/steps.c \
	%D%/arrange.c \
	%D%/creations.c \
	%D%/draws.c \
	%D%/einsum.c \
	%D%/products.c \
	%D%/index.c \
	%D%/indexing.c \
	%D%/windows.c \
	%D%/sliding.h \
	%D%/sliding.c \
	%D%/attend.c %D%/attention.c \
	%D%/bags.c \
	%D%/ctc.c \
	%D%/recurrent.c \
	%D%/sampling.c \
	%D%/resample.c \
	%D%/convolution.c \
	%D%/convolutions.c \
	%D%/distance.c \
	%D%/normalization.h \
	%D%/normalization.c \
	%D%/normalization_channels.c \
	%D%/pooling.c \
	%D%/pools.c \
	%D%/reduction.c \
	%D%/reductions.c \
	%D%/scans.c \
	%D%/powers.c \
	%D%/shape.c \
	%D%/unary.c
plugins_ops_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -I$(builddir)/plugins/ops -I$(srcdir)/plugins/ops
plugins_ops_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_ops_la_LIBADD = $(LIBM)
