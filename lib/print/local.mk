# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/decimal.c \
	%D%/decimal.h \
	%D%/tensor.c
