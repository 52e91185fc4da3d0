# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/comm.c
