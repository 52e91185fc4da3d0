# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/backend-cpu.la
plugins_backend_cpu_la_SOURCES = %D%/cpu.h %D%/kernels.h %D%/each.h %D%/float64.h %D%/float64-circles.h %D%/float64-errors.h %D%/float64-powers.h %D%/functions.h %D%/near.h %D%/roots.h %D%/through-double.h %D%/along.c %D%/attention.c %D%/bits.c %D%/blas.c %D%/convolution.c %D%/convolution-weight.c %D%/copy.c %D%/depthwise.c %D%/device.c %D%/direct.c \
	%D%/elementwise.c %D%/gemm.c %D%/index.c %D%/libm.c %D%/linear.c %D%/loss.c %D%/losses.c %D%/matmul.c %D%/matmul.h %D%/mixtures.c %D%/order.c %D%/permutation.c %D%/places.c %D%/plugin.c %D%/pooling.c %D%/random.c %D%/reduce.c %D%/reductions.c %D%/reduce.h %D%/scratch.c %D%/sequences.c %D%/softmax.c %D%/standardize.c %D%/steps.c %D%/strips.c %D%/types.c %D%/views.c %D%/where.c %D%/windows.c %D%/windows.h %D%/winograd.c
plugins_backend_cpu_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) $(TN_X86_LOOPS)
plugins_backend_cpu_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=off
plugins_backend_cpu_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_backend_cpu_la_LIBADD = libkernels-base.la $(LIBM)

# One source, compiled per instruction set; which one runs is chosen at activation. What GCC may assume: errno and the
# floating-point status of these loops are read by nobody. Contraction: see loops.c and products.c.
TN_LOOPS_SOURCES = %D%/narrow.c %D%/narrow.h %D%/convert.c %D%/loops.c %D%/curves.c %D%/folds.c %D%/moves.c %D%/norms.c %D%/norms.h %D%/transforms.c %D%/windows.h %D%/winograd.h %D%/step-loops.c %D%/cpu.h %D%/each.h %D%/float64.h %D%/float64-circles.h %D%/float64-errors.h %D%/float64-powers.h %D%/functions.h %D%/near.h %D%/roots.h %D%/through-double.h
TN_PRODUCTS_SOURCES = %D%/products.c %D%/cpu.h

noinst_LTLIBRARIES += libkernels-base.la libproducts-base.la
libkernels_base_la_SOURCES = $(TN_LOOPS_SOURCES)
libkernels_base_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN__LOOPS_NAME=tn__loops_base -DTN__LOOPS_TEXT='"baseline"'
libkernels_base_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=off
libkernels_base_la_LIBADD = libproducts-base.la
libproducts_base_la_SOURCES = $(TN_PRODUCTS_SOURCES)
libproducts_base_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN__PRODUCTS_NAME=tn__products_base
libproducts_base_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=fast

if HAVE_X86_LOOPS
TN_AVX2 = -mavx2 -mfma -mf16c
TN_AVX512 = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512
plugins_backend_cpu_la_LIBADD += libkernels-avx2.la libkernels-avx512.la

noinst_LTLIBRARIES += libkernels-avx2.la libproducts-avx2.la libkernels-avx512.la libproducts-avx512.la
libkernels_avx2_la_SOURCES = $(TN_LOOPS_SOURCES)
libkernels_avx2_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN__LOOPS_NAME=tn__loops_avx2 -DTN__LOOPS_TEXT='"avx2"' $(TN_X86_LOOPS)
libkernels_avx2_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=off $(TN_AVX2)
libkernels_avx2_la_LIBADD = libproducts-avx2.la
libproducts_avx2_la_SOURCES = $(TN_PRODUCTS_SOURCES)
libproducts_avx2_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN__PRODUCTS_NAME=tn__products_avx2 $(TN_X86_LOOPS)
libproducts_avx2_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=fast $(TN_AVX2)

libkernels_avx512_la_SOURCES = $(TN_LOOPS_SOURCES)
libkernels_avx512_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN__LOOPS_NAME=tn__loops_avx512 -DTN__LOOPS_TEXT='"avx512"' $(TN_X86_LOOPS)
libkernels_avx512_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=off $(TN_AVX512)
libkernels_avx512_la_LIBADD = libproducts-avx512.la
libproducts_avx512_la_SOURCES = $(TN_PRODUCTS_SOURCES)
libproducts_avx512_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -DTN__PRODUCTS_NAME=tn__products_avx512 $(TN_X86_LOOPS)
libproducts_avx512_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=fast $(TN_AVX512)
endif
EXTRA_DIST += %D%/fit-series.py
