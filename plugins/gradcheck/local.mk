# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/gradcheck.la
plugins_gradcheck_la_SOURCES = %D%/gradcheck.c
plugins_gradcheck_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_gradcheck_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_gradcheck_la_LIBADD = $(LIBM)
