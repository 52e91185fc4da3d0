# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/fd.c \
	%D%/fd.h \
	%D%/arena.c \
	%D%/dtype.c \
	%D%/dtype.h \
	%D%/env.c \
	%D%/error.c \
	%D%/mode_stack.c \
	%D%/fork.c \
	%D%/print.c \
	%D%/index.c \
	%D%/index.h \
	%D%/internal.h \
	%D%/log.c \
	%D%/map.c \
	%D%/map.h \
	%D%/memory.c \
	%D%/names.c \
	%D%/number.c \
	%D%/number.h \
	%D%/options.c \
	%D%/options_check.c \
	%D%/options_copy.c \
	%D%/options_get.c \
	%D%/options_print.c \
	%D%/pack.c \
	%D%/progress.c \
	%D%/spec.c \
	%D%/spec.h \
	%D%/spec_token.c \
	%D%/stack.c \
	%D%/stack.h \
	%D%/status.c \
	%D%/text.c \
	%D%/value.c \
	%D%/vector.c \
	%D%/vector.h \
	%D%/version.c
