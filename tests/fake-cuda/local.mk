# SPDX-License-Identifier: MIT
#
# A driver library for backend-cuda without a GPU. Its kernels are the texts of plugins/gpu/kernels,
# compiled as C.

EXTRA_DIST += %D%/dialect.h %D%/kernels.pl $(TN_FAKE_KERNELS)
TN_FAKE_KERNELS = %D%/kernels/activation.fatbin %D%/kernels/arithmetic.fatbin \
	%D%/kernels/compare.fatbin \
	%D%/kernels/copy.fatbin %D%/kernels/creation.fatbin %D%/kernels/index.fatbin \
	%D%/kernels/loss.fatbin \
	%D%/kernels/matmul.fatbin %D%/kernels/random.fatbin %D%/kernels/reduction.fatbin \
	%D%/kernels/scan.fatbin %D%/kernels/softmax.fatbin %D%/kernels/sort.fatbin %D%/kernels/unary.fatbin

check_LTLIBRARIES += tests/fake-cuda.la
tests_fake_cuda_la_SOURCES = %D%/fake.h %D%/driver.h %D%/driver.c %D%/ipc.c %D%/memory.c %D%/streams.c \
	%D%/blaslt.c
nodist_tests_fake_cuda_la_SOURCES = %D%/kernels.c
tests_fake_cuda_la_CPPFLAGS = -I$(srcdir) $(TN_SDK_CPPFLAGS)
# integers wrap on a GPU
tests_fake_cuda_la_CFLAGS = $(AM_CFLAGS) -fwrapv -O1
tests_fake_cuda_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere $(AM_LDFLAGS)
tests_fake_cuda_la_LIBADD = $(LIBM)

%D%/kernels.c: %D%/dialect.h %D%/kernels.pl $(TN_GPU_COMMON) $(TN_GPU_EACH) $(TN_GPU_TEXTS) \
		$(TN_GPU_TEMPLATES)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CC) -E -P -x c $(srcdir)/tests/fake-cuda/dialect.h >$@.i && \
	    $(PERL) $(srcdir)/tests/fake-cuda/kernels.pl <$@.i >$@.tmp && rm -f $@.i && mv -f $@.tmp $@
CLEANFILES += %D%/kernels.c
