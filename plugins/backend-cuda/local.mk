# SPDX-License-Identifier: MIT
#
# With nvcc the kernels are compiled into the plugin. Without nvcc the plugin has no kernels, and its
# activation fails with a message that says so, unless the user loads kernels from files.

TN_PLUGINS += plugins/backend-cuda.la
plugins_backend_cuda_la_SOURCES = %D%/cu_api.h %D%/cu_functions.h %D%/cu_api.c \
	%D%/blaslt.h %D%/blaslt_functions.h %D%/blaslt.c %D%/blaslt_matmul.c %D%/cuda.h \
	%D%/capture.c %D%/context.c %D%/device.c %D%/launch.c %D%/memory.c %D%/plugin.c %D%/program.c %D%/stream.c %D%/transfer.c \
	$(TN_GPU_HOST)
plugins_backend_cuda_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_backend_cuda_la_LDFLAGS = $(TN_PLUGIN_LINK)
EXTRA_DIST += %D%/kernels.cu %D%/dialect.cuh
if HAVE_NVCC
TN_CUDA_KERNELS = %D%/activation.c %D%/arithmetic.c %D%/compare.c %D%/copy.c %D%/creation.c \
	%D%/index.c %D%/loss.c %D%/matmul.c %D%/random.c %D%/reduction.c %D%/scan.c %D%/softmax.c \
	%D%/sort.c %D%/unary.c
plugins_backend_cuda_la_CPPFLAGS += -DTN_WITH_CUDA_KERNELS
nodist_plugins_backend_cuda_la_SOURCES = $(TN_CUDA_KERNELS)
CLEANFILES += $(TN_CUDA_KERNELS)
# kernels.cu is compiled once per kernel text. The resulting file has the name of the text.
$(TN_CUDA_KERNELS): %D%/kernels.cu %D%/dialect.cuh $(TN_GPU_COMMON) $(TN_GPU_EACH)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && text=`basename $@ .c` && \
	    $(TN_NVCC) "-DTN_TEXT=\"../$$text.cl\"" -o $@.fatbin $(srcdir)/%D%/kernels.cu && \
	    $(PERL) $(srcdir)/build-aux/embed $@.fatbin $$text.fatbin >$@.tmp && \
	    rm -f $@.fatbin && mv -f $@.tmp $@
%D%/activation.c: plugins/gpu/kernels/activation.cl
%D%/arithmetic.c: plugins/gpu/kernels/arithmetic.cl
%D%/compare.c: plugins/gpu/kernels/compare.cl
%D%/copy.c: plugins/gpu/kernels/copy.cl
%D%/creation.c: plugins/gpu/kernels/creation.cl
%D%/index.c: plugins/gpu/kernels/index.cl
%D%/loss.c: plugins/gpu/kernels/loss.cl
%D%/matmul.c: plugins/gpu/kernels/matmul.cl
%D%/random.c: plugins/gpu/kernels/random.cl
%D%/reduction.c: plugins/gpu/kernels/reduction.cl plugins/gpu/kernels/reduction_template.cl
%D%/scan.c: plugins/gpu/kernels/scan.cl
%D%/softmax.c: plugins/gpu/kernels/softmax.cl
%D%/sort.c: plugins/gpu/kernels/sort.cl
%D%/unary.c: plugins/gpu/kernels/unary.cl
endif
