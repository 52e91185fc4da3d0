# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/backend.c \
	%D%/boundary.c \
	%D%/boundary.h \
	%D%/inputs.c
