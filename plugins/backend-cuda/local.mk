# SPDX-License-Identifier: MIT
#
# When the sources are there:
#   TN_PLUGINS += plugins/backend-cuda.la
#   plugins_backend_cuda_la_SOURCES = ...
#   plugins_backend_cuda_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
#   plugins_backend_cuda_la_LDFLAGS = $(TN_PLUGIN_LINK)
