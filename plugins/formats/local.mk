# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/formats.la
TN_PLUGIN_LIBS += $(JANSSON_LIBS) $(ZLIB_LIBS)
plugins_formats_la_SOURCES = \
	%D%/checkpoint.c \
	%D%/checkpoint_read.c \
	%D%/checkpoint_sum.c \
	%D%/formats.h \
	%D%/npy.c \
	%D%/npz.c \
	%D%/others.c \
	%D%/pickle.c \
	%D%/pickle.h \
	%D%/pickle_calls.c \
	%D%/pickle_values.c \
	%D%/plugin.c \
	%D%/pytorch.c \
	%D%/pytorch.h \
	%D%/pytorch_legacy.c \
	%D%/pytorch_state.c \
	%D%/pytorch_storage.c \
	%D%/pytorch_value.c \
	%D%/values.c \
	$(TN_ZIP_SOURCES)
if HAVE_JANSSON
plugins_formats_la_SOURCES += \
	%D%/json.h \
	%D%/safetensors.c \
	%D%/safetensors_header.c \
	%D%/safetensors_index.c \
	%D%/script.c \
	%D%/script.h \
	%D%/script_read.c %D%/script_requires.c
endif
plugins_formats_la_CPPFLAGS = -I$(srcdir)/plugins/zip $(TN_PLUGIN_CPPFLAGS)
plugins_formats_la_CFLAGS = $(AM_CFLAGS) $(TN_FUZZED_CFLAGS) $(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
plugins_formats_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_formats_la_LIBADD = $(JANSSON_LIBS) $(ZLIB_LIBS)
