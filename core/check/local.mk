# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/backend.c \
	%D%/check.c \
	%D%/check.h \
	%D%/inputs.c
