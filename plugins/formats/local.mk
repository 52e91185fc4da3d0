# SPDX-License-Identifier: MIT
#
# When the sources are there:
#   TN_PLUGINS += plugins/formats.la
#   plugins_formats_la_SOURCES = ...
#   plugins_formats_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
#   plugins_formats_la_LDFLAGS = $(TN_PLUGIN_LINK)
