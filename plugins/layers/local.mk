# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/layers.la
plugins_layers_la_SOURCES = \
	%D%/layers.h \
	%D%/activation.c \
	%D%/container.c \
	%D%/init.c \
	%D%/linear.c \
	%D%/loss.c \
	%D%/plugin.c \
	%D%/shape.c
plugins_layers_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_layers_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_layers_la_LIBADD = $(LIBM)
