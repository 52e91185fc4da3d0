# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/needed.h \
	%D%/private.h \
	%D%/call.c \
	%D%/fallback.c \
	%D%/inplace.c \
	%D%/observer.c \
	%D%/promote.c \
	%D%/registry.c \
	%D%/run.c \
	%D%/write.c
