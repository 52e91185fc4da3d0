# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kinds.c \
	%D%/internal.h \
	%D%/needed.c \
	%D%/needed.h \
	%D%/private.h \
	%D%/call.c \
	%D%/autocast.c \
	%D%/call_options.c \
	%D%/decompose.c \
	%D%/definition.c \
	%D%/fallback.c \
	%D%/infer.c \
	%D%/inplace.c \
	%D%/weight_cache.c \
	%D%/kernel.c \
	%D%/kernel_priority.c \
	%D%/observer.c \
	%D%/range.c \
	%D%/prepared.c \
	%D%/prepared.h \
	%D%/prepared_data.c \
	%D%/prepared_run.c \
	%D%/promote.c \
	%D%/registry.c \
	%D%/run.c \
	%D%/write.c
