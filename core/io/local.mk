# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/file.c \
	%D%/parts.c \
	%D%/reader.c \
	%D%/texts.c \
	%D%/ties.c \
	%D%/writer.c
