# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/backward.c \
	%D%/call.c \
	%D%/computed.c \
	%D%/convert.c \
	%D%/copy.c \
	%D%/hooks.c \
	%D%/hooks.h \
	%D%/init.c \
	%D%/load.c \
	%D%/make.c \
	%D%/mode.c \
	%D%/module.c \
	%D%/paths.c \
	%D%/slots.c \
	%D%/state.c \
	%D%/text.c \
	%D%/walk.c
