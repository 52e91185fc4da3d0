# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/private.h \
	%D%/recompute.c \
	%D%/engine.h \
	%D%/anomaly.c \
	%D%/backward.c \
	%D%/engine.c \
	%D%/function.c \
	%D%/history.c \
	%D%/hooks.c \
	%D%/inplace.c \
	%D%/node.c \
	%D%/view_gradient.c \
	%D%/node_run.c \
	%D%/tensor.c
