# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/private.h \
	%D%/build.c \
	%D%/compile.c \
	%D%/graph.c \
	%D%/lint.c \
	%D%/node.c \
	%D%/pass.c \
	%D%/region.c \
	%D%/region_replace.c \
	%D%/region_run.c \
	%D%/run.c
