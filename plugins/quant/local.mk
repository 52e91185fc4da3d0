# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/quant.la
plugins_quant_la_SOURCES = \
	%D%/choose.c \
	%D%/convolution.c \
	%D%/fake_quantize.c \
	%D%/packed.c \
	%D%/packed_blocks.c \
	%D%/plugin.c \
	%D%/product.c \
	%D%/quant.h \
	%D%/quantize.c \
	%D%/scale.c \
	$(TN_OPS_SHARED)
plugins_quant_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -I$(builddir)/plugins/ops -I$(srcdir)/plugins/ops
plugins_quant_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_quant_la_LIBADD = $(LIBM)
