# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/private.h \
	%D%/optimizer.c \
	%D%/scheduler.c
