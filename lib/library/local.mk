# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kind_list.c \
	%D%/runners.c \
	%D%/upward_calls.c \
	%D%/host_tables.c \
	%D%/shutdown.c
