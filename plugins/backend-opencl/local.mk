# SPDX-License-Identifier: MIT

TN_OPENCL_TEXTS = %D%/dialect.cl $(TN_GPU_COMMON) $(TN_GPU_TEXTS)
tenon_HEADERS += sdk/include/tenon/native.h
EXTRA_DIST += %D%/dialect.cl

if HAVE_OPENCL
TN_PLUGINS += plugins/backend-opencl.la
plugins_backend_opencl_la_SOURCES = %D%/cl_api.h %D%/cl_api.c %D%/opencl.h %D%/device.c %D%/event.c %D%/launch.c \
	%D%/plugin.c %D%/probe.c %D%/program.c $(TN_GPU_HOST)
nodist_plugins_backend_opencl_la_SOURCES = %D%/texts.c
plugins_backend_opencl_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_backend_opencl_la_LDFLAGS = $(TN_PLUGIN_LINK)
endif

# texts.c contains all kernel texts.
%D%/texts.c: $(TN_OPENCL_TEXTS) $(TN_GPU_TEMPLATES) build-aux/embed
	$(AM_V_GEN)$(MKDIR_P) $(@D) && rm -f $@.tmp && for f in $(TN_OPENCL_TEXTS); do \
	    test -f $$f || f=$(srcdir)/$$f; \
	    $(PERL) $(srcdir)/build-aux/embed --text $$f >>$@.tmp || exit 1; done && mv -f $@.tmp $@
CLEANFILES += %D%/texts.c
