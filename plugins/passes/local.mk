# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/passes.la
plugins_passes_la_SOURCES = \
	%D%/passes.h \
	%D%/recompute.c \
	%D%/constants.c \
	%D%/conv_bn_linear_bn.c \
	%D%/cse.c \
	%D%/dead.c \
	%D%/decompose.c \
	%D%/dropout.c \
	%D%/epilogue.c \
	%D%/inplace.c \
	%D%/plugin.c
plugins_passes_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_passes_la_LDFLAGS = $(TN_PLUGIN_LINK)
