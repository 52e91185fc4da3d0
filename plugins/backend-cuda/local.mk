# SPDX-License-Identifier: MIT
#
# With nvcc the kernels are inside the plugin; without it they are not, and its activation says so.

TN_CUDA_TEXTS = %D%/elementwise.cu %D%/functions.cu %D%/copy.cu %D%/move.cu %D%/reduce.cu %D%/matmul.cu %D%/softmax.cu %D%/loss.cu \
	%D%/random.cu %D%/along.cu

TN_PLUGINS += plugins/backend-cuda.la
plugins_backend_cuda_la_SOURCES = %D%/cu_api.h %D%/cu_api.c %D%/cuda.h %D%/device.c %D%/module.c %D%/blaslt.h \
	%D%/blaslt.c %D%/plugin.c %D%/dialect.cuh %D%/each.cuh $(TN_GPU_HOST)
plugins_backend_cuda_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_backend_cuda_la_LDFLAGS = $(TN_PLUGIN_LINK)
EXTRA_DIST += $(TN_CUDA_TEXTS)
if HAVE_NVCC
plugins_backend_cuda_la_CPPFLAGS += -DTN_WITH_CUDA_KERNELS
nodist_plugins_backend_cuda_la_SOURCES = $(TN_CUDA_TEXTS:.cu=.c)
CLEANFILES += $(TN_CUDA_TEXTS:.cu=.c)
# every kernel text is compiled for each type through each.cuh
$(TN_CUDA_TEXTS:.cu=.c): $(TN_GPU_TEXTS) %D%/dialect.cuh %D%/each.cuh
endif
