# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/checkpoint.la
plugins_checkpoint_la_SOURCES = \
	%D%/checkpoint.h \
	%D%/objects.c \
	%D%/plugin.c \
	%D%/plugins.c \
	%D%/restoring.c \
	%D%/saving.c
plugins_checkpoint_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_checkpoint_la_LDFLAGS = $(TN_PLUGIN_LINK)
