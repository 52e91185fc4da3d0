# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/private.h \
	%D%/averaging.c \
	%D%/optimizer.c \
	%D%/optimizer_load.c \
	%D%/optimizer_options.c \
	%D%/optimizer_save.c \
	%D%/optimizer_state.c \
	%D%/scheduler.c \
	%D%/statistics.c \
	%D%/step.c \
	%D%/step_hooks.c
