# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kinds.c \
	%D%/internal.h \
	%D%/private.h \
	%D%/optimizer.c \
	%D%/optimizer_load.c \
	%D%/optimizer_options.c \
	%D%/optimizer_save.c \
	%D%/optimizer_state.c \
	%D%/scheduler.h \
	%D%/scheduler.c \
	%D%/scheduler_children.c \
	%D%/scheduler_state.c \
	%D%/running_statistics.c \
	%D%/step.c \
	%D%/step_hooks.c
