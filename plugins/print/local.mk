# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/print.la
plugins_print_la_SOURCES = %D%/decimal.c %D%/element.c %D%/plugin.c %D%/print.h %D%/tensor.c \
	%D%/text.c
plugins_print_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_print_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_print_la_LIBADD = $(LIBM)
