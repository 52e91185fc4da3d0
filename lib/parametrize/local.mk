# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/inverse.c \
	%D%/list.c \
	%D%/parametrize.c \
	%D%/parametrize.h \
	%D%/remove.c \
	%D%/step.c \
	%D%/tree.c \
	%D%/value_cache.c \
	%D%/value_cache.h
