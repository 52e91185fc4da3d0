# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/check.h \
	%D%/host_tables.c \
	%D%/internal.h \
	%D%/static.c
