# SPDX-License-Identifier: MIT

tools_tenon_SOURCES += \
	%D%/model.c \
	%D%/model.h
