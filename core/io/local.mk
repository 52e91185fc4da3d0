# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/file.c \
	%D%/reader.c \
	%D%/writer.c
