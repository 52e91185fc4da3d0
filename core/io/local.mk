# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/private.h \
	%D%/file.c \
	%D%/own.c \
	%D%/parts.c \
	%D%/place.c \
	%D%/reader.c \
	%D%/set.c \
	%D%/texts.c \
	%D%/ties.c \
	%D%/writer.c
