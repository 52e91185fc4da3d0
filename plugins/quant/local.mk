# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/quant.la
plugins_quant_la_SOURCES = \
	%D%/choose.c \
	%D%/convolution.c \
	%D%/fake_quantize.c \
	%D%/flow.c %D%/flow.h \
	%D%/flow_measure.c \
	%D%/flow_prepare.c \
	%D%/fuse_list.c \
	%D%/layer.c \
	%D%/layer_conv.c \
	%D%/layer_embedding.c \
	%D%/layer_fake_quantize.c \
	%D%/layer_linear.c \
	%D%/layer_range.c \
	%D%/layer_range_histogram.c \
	%D%/module_list.h \
	%D%/modules.h \
	%D%/packed.c \
	%D%/packed_blocks.c \
	%D%/plugin.c \
	%D%/product.c \
	%D%/quant.h \
	%D%/quantize.c \
	%D%/scale.c \
	%D%/scheme.c \
	%D%/weight.c \
	$(TN_OPS_SHARED)
plugins_quant_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -I$(builddir)/plugins/ops -I$(srcdir)/plugins/ops
plugins_quant_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_quant_la_LIBADD = $(LIBM)
