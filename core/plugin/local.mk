# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kind.c \
	%D%/kind.h \
	%D%/activate.c \
	%D%/contribute.c \
	%D%/discover.c \
	%D%/filter.c \
	%D%/folder.c \
	%D%/host.c \
	%D%/unused_kernels.c \
	%D%/interfaces.c \
	%D%/internal.h \
	%D%/load.c \
	%D%/address.c \
	%D%/options.c \
	%D%/file_check.c \
	%D%/private.h \
	%D%/registry.c \
	%D%/report.c \
	%D%/reserved.c

if !STATIC_PLUGINS
libcore_la_SOURCES += %D%/static.c
endif
