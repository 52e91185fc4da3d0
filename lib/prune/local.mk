# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kinds.c \
	%D%/mask.c \
	%D%/method.c \
	%D%/network.c \
	%D%/prune.c \
	%D%/prune.h \
	%D%/slots.c
