# SPDX-License-Identifier: MIT

# Installed by install-exec-hook, under the name that has the ABI.
noinst_PROGRAMS += tools/tenon
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
	%D%/installed.c \
	%D%/new.c \
	%D%/ops.c \
	%D%/plugins.c \
	%D%/show.c \
	%D%/summary.c \
	%D%/tenon.c \
	%D%/text.c \
	%D%/tool.h \
	%D%/why.c
tools_tenon_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS) -I$(srcdir) -DTN_CONFORM_DIR='"$(conformdir)"' \
	-DTN_CONFORM_BESIDE='"'`$(TN_FROM_TO) $(bindir) $(conformdir)`'"' \
	-DTN_TEMPLATE_DIR='"$(templatedir)"' -DTN_TEMPLATE_BESIDE='"'`$(TN_FROM_TO) $(bindir) $(templatedir)`'"'
tools_tenon_CFLAGS = $(AM_CFLAGS)
# The library of its own prefix goes before that of the place it was built for.
tools_tenon_LDFLAGS = $(AM_LDFLAGS) -Wl,-rpath,'$$ORIGIN/'`$(TN_FROM_TO) $(bindir) $(libdir)`
tools_tenon_LDADD = $(TN_LINK) $(LIBM)
