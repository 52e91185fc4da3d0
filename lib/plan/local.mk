# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/backward.c \
	%D%/binding.c \
	%D%/check.c \
	%D%/device_graph.c \
	%D%/memory.c \
	%D%/module.c \
	%D%/parts.c \
	%D%/parts.h \
	%D%/plan.c \
	%D%/plan.h \
	%D%/print.c \
	%D%/record.c \
	%D%/run.c \
	%D%/run_no_kernel.c \
	%D%/steps.c \
	%D%/train.c \
	%D%/train.h \
	%D%/train_record.c \
	%D%/train_saved.c \
	%D%/whole_step.c \
	%D%/whole_step.h \
	%D%/whole_step_merge.c
