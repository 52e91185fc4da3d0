# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/activate.c \
	%D%/check_thread.h \
	%D%/contribute.c \
	%D%/discover.c \
	%D%/filter.c \
	%D%/folder.c \
	%D%/host.c \
	%D%/idle.c \
	%D%/internal.h \
	%D%/load.c \
	%D%/mapped.c \
	%D%/options.c \
	%D%/place.c \
	%D%/private.h \
	%D%/registry.c \
	%D%/report.c \
	%D%/static.c
