# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/prune.la
plugins_prune_la_SOURCES = \
	%D%/amount.c \
	%D%/network.c \
	%D%/network.h \
	%D%/network_compact.c \
	%D%/network_flow.c \
	%D%/network_hooks.c \
	%D%/network_hooks.h \
	%D%/network_mask.c \
	%D%/network_values.c \
	%D%/pattern.c \
	%D%/plugin.c \
	%D%/prune.h \
	%D%/structured.c \
	%D%/unstructured.c
plugins_prune_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_prune_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_prune_la_LIBADD = $(LIBM)
