# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/private.h \
	%D%/dataset.c \
	%D%/dataset_made.c \
	%D%/transform.c
