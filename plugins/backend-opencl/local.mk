# SPDX-License-Identifier: MIT
#
# When the sources are there:
#   TN_PLUGINS += plugins/backend-opencl.la
#   plugins_backend_opencl_la_SOURCES = ...
#   plugins_backend_opencl_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
#   plugins_backend_opencl_la_LDFLAGS = $(TN_PLUGIN_LINK)
