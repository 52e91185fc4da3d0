# SPDX-License-Identifier: MIT
#
# When the sources are there:
#   TN_PLUGINS += plugins/layers.la
#   plugins_layers_la_SOURCES = ...
#   plugins_layers_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
#   plugins_layers_la_LDFLAGS = $(TN_PLUGIN_LINK)
