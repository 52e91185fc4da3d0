# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/kinds.c \
	%D%/exchange.c \
	%D%/comm.c
