# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kinds.c \
	%D%/comm.c
