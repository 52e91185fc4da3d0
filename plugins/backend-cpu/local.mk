# SPDX-License-Identifier: MIT
#
# When the sources are there:
#   TN_PLUGINS += plugins/backend-cpu.la
#   plugins_backend_cpu_la_SOURCES = ...
#   plugins_backend_cpu_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
#   plugins_backend_cpu_la_LDFLAGS = $(TN_PLUGIN_LINK)
