# SPDX-License-Identifier: MIT
#
# When the sources are there:
#   TN_PLUGINS += plugins/optim.la
#   plugins_optim_la_SOURCES = ...
#   plugins_optim_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
#   plugins_optim_la_LDFLAGS = $(TN_PLUGIN_LINK)
