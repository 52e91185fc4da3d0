# SPDX-License-Identifier: MIT

# Compiled into each plugin with rules for detectors.
TN_VISION_SOURCES = \
	%D%/deform.c \
	%D%/regions.c \
	%D%/suppress.c \
	%D%/vision.h

TN_PLUGINS += plugins/vision.la
plugins_vision_la_SOURCES = %D%/plugin.c $(TN_VISION_SOURCES)
plugins_vision_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_vision_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_vision_la_LIBADD = $(LIBM)
