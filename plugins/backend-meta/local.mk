# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/backend-meta.la
plugins_backend_meta_la_SOURCES = %D%/plugin.c
plugins_backend_meta_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_backend_meta_la_LDFLAGS = $(TN_PLUGIN_LINK)
