# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/hook.c \
	%D%/internal.h
