# SPDX-License-Identifier: MIT
#
# plugins/gpu is what this backend and backend-cuda share: operators on the host's side. The texts of the kernels lie here; nvcc compiles
# the same ones.

TN_GPU_HOST = plugins/gpu/gpu.h plugins/gpu/views.c plugins/gpu/elementwise.c plugins/gpu/functions.c plugins/gpu/along.c plugins/gpu/copy.c \
	plugins/gpu/reduce.c plugins/gpu/matmul.c plugins/gpu/softmax.c plugins/gpu/loss.c plugins/gpu/random.c
TN_GPU_TEXTS = %D%/layout.cl %D%/common.cl %D%/types.cl %D%/elementwise.cl %D%/functions.cl %D%/copy.cl %D%/move.cl %D%/reduce.cl \
	%D%/matmul.cl %D%/softmax.cl %D%/loss.cl %D%/random.cl %D%/along.cl

tenon_HEADERS += sdk/include/tenon/native.h
EXTRA_DIST += $(TN_GPU_TEXTS) %D%/dialect.cl

if HAVE_OPENCL
TN_PLUGINS += plugins/backend-opencl.la
plugins_backend_opencl_la_SOURCES = %D%/cl_api.h %D%/cl_api.c %D%/opencl.h %D%/device.c %D%/program.c %D%/plugin.c \
	$(TN_GPU_HOST)
nodist_plugins_backend_opencl_la_SOURCES = %D%/texts.c
plugins_backend_opencl_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_backend_opencl_la_LDFLAGS = $(TN_PLUGIN_LINK)
endif

# One file with all texts: a name.c beside each name.cl would meet the names of C files.
%D%/texts.c: $(TN_GPU_TEXTS) %D%/dialect.cl build-aux/embed
	$(AM_V_GEN)$(MKDIR_P) $(@D) && rm -f $@.tmp && for f in $(TN_GPU_TEXTS) %D%/dialect.cl; do \
	    test -f $$f || f=$(srcdir)/$$f; \
	    $(PERL) $(srcdir)/build-aux/embed --text $$f >>$@.tmp || exit 1; done && mv -f $@.tmp $@
CLEANFILES += %D%/texts.c
