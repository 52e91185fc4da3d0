# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/calls.c \
	%D%/host_tables.c \
	%D%/shutdown.c
