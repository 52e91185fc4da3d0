# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/optimizer.c \
	%D%/scheduler.c
