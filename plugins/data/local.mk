# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/make_unicode.py

TN_PLUGINS += plugins/data.la
TN_PLUGIN_LIBS += $(LIBPNG_LIBS) $(LIBJPEG_LIBS)
plugins_data_la_SOURCES = \
	%D%/affine.c \
	%D%/bpe.c \
	%D%/bpe.h \
	%D%/bpe_split.c \
	%D%/bpe_vocabulary.c \
	%D%/cifar.c \
	%D%/color.c \
	%D%/columns.c \
	%D%/convert.c \
	%D%/crop.c \
	%D%/csv.c \
	%D%/csv.h \
	%D%/csv_label_options_template.h \
	%D%/csv_labels.c \
	%D%/csv_number_options_template.h \
	%D%/csv_rows.c \
	%D%/csv_text.c \
	%D%/data.h \
	%D%/erase.c \
	%D%/file.c \
	%D%/file_name.c \
	%D%/flip.c \
	%D%/folder.c \
	%D%/idx.c \
	%D%/image.h \
	%D%/image_bmp.c \
	%D%/image_exif.c \
	%D%/image_files.c \
	%D%/image_folder.c \
	%D%/image_format.c \
	%D%/image_gif.c \
	%D%/image_jpeg.c \
	%D%/image_png.c \
	%D%/image_read.c \
	%D%/image_tiff.c \
	%D%/image_webp.c \
	%D%/library.c \
	%D%/library.h \
	%D%/memory.c \
	%D%/mix.c \
	%D%/noise.c \
	%D%/numbers.c \
	%D%/plugin.c \
	%D%/resample.c \
	%D%/resample.h \
	%D%/resample_bytes.c \
	%D%/resample_plan.c \
	%D%/resize.c \
	%D%/sample.c \
	%D%/table.c \
	%D%/tensors.c \
	%D%/text.c \
	%D%/unicode_classes.h \
	%D%/wav_common.c \
	%D%/wav_files.c \
	%D%/wav_folder.c \
	%D%/wav_read.c \
	%D%/wav_resample.c \
	%D%/wav_sample.c \
	%D%/wav_sndfile.c \
	%D%/spectrum.c \
	%D%/spectrum_fft.c \
	%D%/spectrum.h \
	%D%/spectrum_options_template.h \
	%D%/wav.h %D%/wav_options_template.h
nodist_plugins_data_la_SOURCES = %D%/digits_text.c
plugins_data_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_data_la_CFLAGS = $(AM_CFLAGS) $(TN_FUZZED_CFLAGS) $(TN_LOOPS_CFLAGS) $(ZLIB_CFLAGS) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) $(LIBWEBP_CFLAGS) $(LIBTIFF_CFLAGS) $(LIBSNDFILE_CFLAGS)
plugins_data_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_data_la_LIBADD = $(ZLIB_LIBS) $(LIBPNG_LIBS) $(LIBJPEG_LIBS) $(LIBM)

# The digits of examples/data, as text inside the plugin: they need no path after the installation.
CLEANFILES += %D%/digits_text.c
%D%/digits_text.c: examples/data/digits.csv.gz build-aux/embed
	$(AM_V_GEN)$(MKDIR_P) $(@D) && gzip -dc $(srcdir)/examples/data/digits.csv.gz >$@.csv && \
	    $(PERL) $(srcdir)/build-aux/embed $@.csv digits.csv >$@.tmp && rm -f $@.csv && mv -f $@.tmp $@
