# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/error.c \
	%D%/format.c \
	%D%/internal.h \
	%D%/memory.c \
	%D%/names.c \
	%D%/number.c \
	%D%/number.h \
	%D%/status.c \
	%D%/text.c
