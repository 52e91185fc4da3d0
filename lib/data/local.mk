# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kinds.c \
	%D%/private.h \
	%D%/batch.c \
	%D%/batch.h \
	%D%/dataset.c \
	%D%/dataset_made.c \
	%D%/internal.h \
	%D%/loader.c \
	%D%/loader.h \
	%D%/loader_order.c \
	%D%/loader_state.c \
	%D%/loader_worker.c \
	%D%/loader_transform.c \
	%D%/transform_list.c \
	%D%/transform.c
