# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/private.h \
	%D%/optimizer.c \
	%D%/optimizer_options.c \
	%D%/optimizer_state.c \
	%D%/scheduler.c \
	%D%/step.c
