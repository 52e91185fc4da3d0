# SPDX-License-Identifier: MIT

bin_PROGRAMS += tools/tenon
tools_tenon_SOURCES = \
	$(TN_CONFORM) \
	%D%/check.c \
	%D%/child.c \
	%D%/count.c \
	%D%/count.h \
	%D%/devices.c \
	%D%/env.c \
	%D%/info.c \
	%D%/inspect.c \
	%D%/ops.c \
	%D%/plugins.c \
	%D%/show.c \
	%D%/summary.c \
	%D%/tenon.c \
	%D%/text.c \
	%D%/tool.h \
	%D%/why.c
tools_tenon_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS) -I$(srcdir) -DTN_CONFORM_DIR='"$(conformdir)"'
tools_tenon_CFLAGS = $(AM_CFLAGS)
tools_tenon_LDADD = $(TN_LINK) $(LIBM)
