# SPDX-License-Identifier: MIT

if HAVE_ONEDNN
TN_PLUGINS += plugins/kernels-onednn.la
plugins_kernels_onednn_la_SOURCES = %D%/dnnl_api.h %D%/dnnl_api.c %D%/onednn.h %D%/plan.h %D%/plan.c %D%/conv.c %D%/plugin.c
plugins_kernels_onednn_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_kernels_onednn_la_LDFLAGS = $(TN_PLUGIN_LINK)
endif
