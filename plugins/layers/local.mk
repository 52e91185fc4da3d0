# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/layers.la
plugins_layers_la_SOURCES = \
	%D%/layers.h \
	%D%/adaptive.c \
	%D%/activation.c \
	%D%/activations.c \
	%D%/arguments.c \
	%D%/attention.c \
	%D%/container.c \
	%D%/convolution.c \
	%D%/distance.c \
	%D%/dropout.c \
	%D%/embedding.c \
	%D%/fractional.c \
	%D%/init.c \
	%D%/init_matrix.c \
	%D%/linear.c \
	%D%/loss.c \
	%D%/losses.c \
	%D%/normalization.c \
	%D%/padding.c \
	%D%/parameters.c \
	%D%/recurrent.c \
	%D%/pooling.c \
	%D%/plugin.c \
	%D%/shape.c \
	%D%/stack.c \
	%D%/text.c \
	%D%/transformer.c \
	%D%/upsample.c \
	%D%/windows.c
plugins_layers_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_layers_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_layers_la_LIBADD = $(LIBM)
