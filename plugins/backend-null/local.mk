# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/backend-null.la
plugins_backend_null_la_SOURCES = %D%/plugin.c
plugins_backend_null_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_backend_null_la_LDFLAGS = $(TN_PLUGIN_LINK)
