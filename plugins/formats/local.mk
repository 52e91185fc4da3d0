# SPDX-License-Identifier: MIT

if HAVE_JANSSON
TN_PLUGINS += plugins/formats.la
TN_PLUGIN_LIBS += $(JANSSON_LIBS)
plugins_formats_la_SOURCES = \
	%D%/formats.h \
	%D%/npy.c \
	%D%/plugin.c \
	%D%/safetensors.c \
	%D%/safetensors-header.c \
	%D%/values.c
plugins_formats_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_formats_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
plugins_formats_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_formats_la_LIBADD = $(JANSSON_LIBS)
endif
