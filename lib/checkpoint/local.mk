# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/private.h \
	%D%/objects.c \
	%D%/plugins.c \
	%D%/restoring.c \
	%D%/saving.c
