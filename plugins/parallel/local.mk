# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/parallel.la
plugins_parallel_la_SOURCES = \
	%D%/bucket.c \
	%D%/compare.c \
	%D%/ddp.c \
	%D%/ddp.h \
	%D%/group.c \
	%D%/parallel.h \
	%D%/plugin.c \
	%D%/share.c \
	%D%/step.c \
	%D%/sync_batch_norm.c \
	%D%/walk.c
plugins_parallel_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_parallel_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_parallel_la_LIBADD = $(LIBM)
