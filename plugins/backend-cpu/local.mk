# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/backend-cpu.la
TN_CPU_SHARED = %D%/base/activation_list.h %D%/base/dtype.h %D%/base/elementwise.h \
	%D%/base/for_floats.h %D%/base/for_sizes.h %D%/base/index_run.h %D%/base/kernel.h %D%/base/philox.h \
	%D%/base/pages.h %D%/base/scratch.h %D%/base/span.h %D%/base/vectorize.h %D%/conv/conv.h %D%/conv/epilogue.h %D%/conv/images.h %D%/conv/planes_template.h %D%/conv/weight.h %D%/conv/winograd.h \
	%D%/fft/plan.h %D%/fft/single.h \
	%D%/math/exp_log.h %D%/math/float16.h %D%/math/float32.h %D%/math/float32_via_float64.h \
	%D%/math/float64.h %D%/math/float64_avx512.h %D%/math/float64_erf.h %D%/math/float64_pow.h \
	%D%/math/float64_tables.h %D%/math/float64_trig.h \
	%D%/math/sqrt.h %D%/linalg/lapack.h %D%/matmul/bfloat16.h %D%/matmul/blas.h %D%/matmul/gemm.h %D%/matmul/matmul.h %D%/nn/attention.h \
	%D%/nn/norm_running_template.h %D%/nn/pool_avg_template.h %D%/nn/pool_grad_template.h %D%/nn/pool_max_template.h \
	%D%/op/compare_where_template.h %D%/op/complex_template.h %D%/op/copy.h %D%/op/elementwise.h %D%/op/float32_call.h %D%/op/fuse.h %D%/op/histogram_template.h \
	%D%/op/scatter_add_template.h %D%/op/index_flat_template.h %D%/op/masked_scatter_template.h %D%/op/index_reduce_template.h %D%/op/index_span.h \
	%D%/op/index_template.h %D%/op/reduction.h %D%/op/reduction_prepare.h %D%/op/scan_pieces.h \
	%D%/op/scan_grad_template.h %D%/op/scan_template.h %D%/op/search_template.h \
	%D%/op/sort_template.h \
	%D%/quant/loops.h %D%/quant/loops_plain.h %D%/quant/loops_x86.h %D%/quant/quant.h \
	%D%/simd/chain_template.h %D%/simd/copy_template.h %D%/simd/eight.h %D%/simd/elementwise.h %D%/simd/elementwise_template.h %D%/simd/extremes_template.h \
	%D%/simd/fft_passes_template.h %D%/simd/fft_template.h \
	%D%/simd/float16_scalar_template.h %D%/simd/float16_template.h \
	%D%/simd/float16_vector_template.h %D%/simd/elementwise_costly_template.h \
	%D%/simd/gemm_strip_rows_template.h %D%/simd/gemm_strip_step.h \
	%D%/simd/gemm_strip_template.h %D%/simd/gemm_all_strips_template.h \
	%D%/simd/gemm_strip_widths_template.h %D%/simd/gemm_template.h \
	%D%/simd/gemm_part.h %D%/simd/gemm_tile_template.h %D%/simd/guarded_template.h %D%/simd/integers_template.h %D%/simd/loop_template.h \
	%D%/simd/norm.h %D%/simd/norm_template.h %D%/simd/optimizer_rules_template.h %D%/simd/optimizer_template.h \
	%D%/simd/pool_max_template.h %D%/simd/random_template.h %D%/simd/reduction_rows_sum_template.h \
	%D%/simd/reduction_rows_combine_template.h %D%/simd/reduction_template.h %D%/simd/rnn_template.h %D%/simd/simd.h \
	%D%/simd/sinc_template.h %D%/simd/softmax_template.h %D%/simd/special_template.h %D%/simd/sqrt_template.h %D%/simd/sum_template.h %D%/device.h
plugins_backend_cpu_la_SOURCES = $(TN_CPU_SHARED) %D%/plugin.c %D%/device.c %D%/shared_memory.c \
	%D%/base/dtype.c %D%/base/pages.c %D%/base/scratch.c %D%/base/span.c \
	%D%/op/activation.c %D%/op/arithmetic.c %D%/op/arithmetic_bits.c %D%/op/arithmetic_ternary.c %D%/op/compare.c \
	%D%/op/compare_bitwise.c %D%/op/compare_where.c \
	%D%/op/complex.c %D%/op/copy.c %D%/op/creation.c %D%/op/elementwise.c %D%/op/float32_call.c \
	%D%/op/elementwise_scalar.c %D%/op/embedding.c %D%/op/fuse.c %D%/op/histogram.c %D%/op/index.c %D%/op/masked_scatter.c %D%/op/index_nonzero.c \
	%D%/op/index_reduce.c %D%/op/index_span.c %D%/op/random.c \
	%D%/op/random_permutation.c %D%/op/reduction.c %D%/op/reduction_prepare.c %D%/op/reduction_strided.c %D%/op/scan.c \
	%D%/op/scan_extreme.c %D%/op/scan_grad.c %D%/op/scan_pieces.c %D%/op/search.c %D%/op/sort.c %D%/op/special.c %D%/op/unary.c \
	%D%/nn/attention.c %D%/nn/attention_block.c %D%/nn/attention_grad.c \
	%D%/nn/loss_elementwise.c %D%/nn/loss_nll.c %D%/nn/norm.c %D%/nn/norm.h %D%/nn/norm_running.c \
	%D%/nn/optimizer.c %D%/nn/optimizer.h %D%/nn/optimizer_rules.c %D%/nn/pool.c %D%/nn/rnn.c \
	%D%/nn/softmax.c \
	%D%/quant/convolution.c %D%/quant/depthwise.c %D%/quant/linear.c %D%/quant/packed.c %D%/quant/product.c \
	%D%/quant/rows.c %D%/quant/weight.c \
	%D%/fft/fft.c %D%/fft/plan.c %D%/fft/single.c \
	%D%/linalg/factor.c %D%/linalg/lapack.c %D%/linalg/orthogonal.c \
	%D%/matmul/addmm.c %D%/matmul/bfloat16.c %D%/matmul/bfloat16_x86.c %D%/matmul/blas.c %D%/matmul/gemm.c %D%/matmul/linear.c %D%/matmul/matmul.c \
	%D%/matmul/narrow.c %D%/matmul/packed.c \
	%D%/conv/conv.c %D%/conv/depthwise.c %D%/conv/direct.c %D%/conv/epilogue.c %D%/conv/grad_weight.c %D%/conv/images.c \
	%D%/conv/im2col.c %D%/conv/planes.c %D%/conv/grad_input_few_channels.c %D%/conv/weight.c %D%/conv/winograd.c
TN_CPU_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -I$(srcdir)/plugins/backend-cpu
plugins_backend_cpu_la_CPPFLAGS = $(TN_CPU_CPPFLAGS) $(TN_X86_LOOPS)
plugins_backend_cpu_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=off
plugins_backend_cpu_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_backend_cpu_la_LIBADD = libsimd-baseline.la $(LIBM)

# The files of simd/ are compiled once per instruction set; choose_variant() in plugin.c selects one
# at run time. TN_LOOPS_CFLAGS lets GCC assume that no code reads errno or the floating-point status
# after these loops. Only fft.c and gemm.c are compiled with contraction to fused multiply-adds; the
# heads of these files and of simd/elementwise.c say why.
TN_SIMD_SOURCES = $(TN_CPU_SHARED) %D%/quant/loops.c %D%/simd/chain.c %D%/simd/convert.c %D%/simd/copy.c \
	%D%/simd/elementwise.c %D%/simd/float16.c %D%/simd/elementwise_costly.c %D%/simd/integers.c %D%/simd/norm.c \
	%D%/simd/optimizer.c %D%/simd/pool_max.c %D%/simd/random.c \
	%D%/simd/reduction.c %D%/simd/rnn.c %D%/simd/softmax.c %D%/simd/special.c %D%/simd/winograd.c
TN_SIMD_FUSED_SOURCES = $(TN_CPU_SHARED) %D%/simd/fft.c %D%/simd/gemm.c

noinst_LTLIBRARIES += libsimd-baseline.la libsimd-fused-baseline.la
libsimd_baseline_la_SOURCES = $(TN_SIMD_SOURCES)
libsimd_baseline_la_CPPFLAGS = $(TN_CPU_CPPFLAGS) -DTN__SIMD_SET=baseline
libsimd_baseline_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=off
libsimd_baseline_la_LIBADD = libsimd-fused-baseline.la
libsimd_fused_baseline_la_SOURCES = $(TN_SIMD_FUSED_SOURCES)
libsimd_fused_baseline_la_CPPFLAGS = $(TN_CPU_CPPFLAGS) -DTN__SIMD_SET=baseline
libsimd_fused_baseline_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=fast

if HAVE_AVX2
TN_AVX2 = -mavx2 -mfma -mf16c
plugins_backend_cpu_la_LIBADD += libsimd-avx2.la
noinst_LTLIBRARIES += libsimd-avx2.la libsimd-fused-avx2.la
libsimd_avx2_la_SOURCES = $(TN_SIMD_SOURCES)
libsimd_avx2_la_CPPFLAGS = $(TN_CPU_CPPFLAGS) -DTN__SIMD_SET=avx2 $(TN_X86_LOOPS)
libsimd_avx2_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=off $(TN_AVX2)
libsimd_avx2_la_LIBADD = libsimd-fused-avx2.la
libsimd_fused_avx2_la_SOURCES = $(TN_SIMD_FUSED_SOURCES)
libsimd_fused_avx2_la_CPPFLAGS = $(TN_CPU_CPPFLAGS) -DTN__SIMD_SET=avx2 $(TN_X86_LOOPS)
libsimd_fused_avx2_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=fast $(TN_AVX2)
endif

if HAVE_AVX512
TN_AVX512 = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512
plugins_backend_cpu_la_LIBADD += libsimd-avx512.la
noinst_LTLIBRARIES += libsimd-avx512.la libsimd-fused-avx512.la
libsimd_avx512_la_SOURCES = $(TN_SIMD_SOURCES)
libsimd_avx512_la_CPPFLAGS = $(TN_CPU_CPPFLAGS) -DTN__SIMD_SET=avx512 $(TN_X86_LOOPS)
libsimd_avx512_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=off $(TN_AVX512)
libsimd_avx512_la_LIBADD = libsimd-fused-avx512.la
libsimd_fused_avx512_la_SOURCES = $(TN_SIMD_FUSED_SOURCES)
libsimd_fused_avx512_la_CPPFLAGS = $(TN_CPU_CPPFLAGS) -DTN__SIMD_SET=avx512 $(TN_X86_LOOPS)
libsimd_fused_avx512_la_CFLAGS = $(AM_CFLAGS) $(TN_LOOPS_CFLAGS) -ffp-contract=fast $(TN_AVX512)
endif
EXTRA_DIST += %D%/math/fit_series.py %D%/math/fit_tables.py
