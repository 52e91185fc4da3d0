# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/formats.la
TN_PLUGIN_LIBS += $(JANSSON_LIBS) $(ZLIB_LIBS)
plugins_formats_la_SOURCES = \
	%D%/checkpoint.c \
	%D%/checkpoint-read.c \
	%D%/formats.h \
	%D%/npy.c \
	%D%/npz.c \
	%D%/pickle.c \
	%D%/pickle.h \
	%D%/pickle-calls.c \
	%D%/pickle-values.c \
	%D%/plugin.c \
	%D%/pytorch.c \
	%D%/pytorch.h \
	%D%/pytorch-legacy.c \
	%D%/pytorch-state.c \
	%D%/pytorch-storage.c \
	%D%/pytorch-value.c \
	%D%/values.c \
	%D%/zip.c \
	%D%/zip.h \
	%D%/zip-crc.c \
	%D%/zip-inflate.c \
	%D%/zip-write.c
if HAVE_JANSSON
plugins_formats_la_SOURCES += \
	%D%/safetensors.c \
	%D%/safetensors-header.c \
	%D%/safetensors-index.c
endif
plugins_formats_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_formats_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
plugins_formats_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_formats_la_LIBADD = $(JANSSON_LIBS) $(ZLIB_LIBS)
