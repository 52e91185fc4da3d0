# SPDX-License-Identifier: MIT

tools_tenon_SOURCES += \
	%D%/classes.c \
	%D%/eval.c \
	%D%/metrics.c \
	%D%/metrics.h \
	%D%/model.c \
	%D%/model.h \
	%D%/work.c \
	%D%/work.h
