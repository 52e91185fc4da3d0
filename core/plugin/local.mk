# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/activate.c \
	%D%/check.c \
	%D%/check.h \
	%D%/check_backend.c \
	%D%/check_inputs.c \
	%D%/check_thread.c \
	%D%/check_thread.h \
	%D%/contribute.c \
	%D%/discover.c \
	%D%/filter.c \
	%D%/folder.c \
	%D%/host.c \
	%D%/host_tables.c \
	%D%/idle.c \
	%D%/internal.h \
	%D%/load.c \
	%D%/loader.h \
	%D%/mapped.c \
	%D%/options.c \
	%D%/place.c \
	%D%/registry.c \
	%D%/report.c \
	%D%/static.c
