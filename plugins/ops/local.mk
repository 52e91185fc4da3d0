# SPDX-License-Identifier: MIT
#
# When the sources are there:
#   TN_PLUGINS += plugins/ops.la
#   plugins_ops_la_SOURCES = ...
#   plugins_ops_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
#   plugins_ops_la_LDFLAGS = $(TN_PLUGIN_LINK)
