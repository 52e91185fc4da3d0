# SPDX-License-Identifier: MIT
#
# PyTorch as the judge, live. What is replayed in `make check` is replayed by tests/op/test_oracle.

check_PROGRAMS += tests/oracle/replay_opinfo
tests_oracle_replay_opinfo_SOURCES = %D%/replay_opinfo.c %D%/replay_numbers.h
tests_oracle_replay_opinfo_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
tests_oracle_replay_opinfo_LDADD = $(TN_LINK) $(LIBM)
EXTRA_DIST += %D%/README.md %D%/case.h %D%/rows.h %D%/shares.h %D%/opinfo.py %D%/opinfo_samples.py %D%/opinfo_write.py %D%/pytorch_operators.py %D%/pytorch_operators_nn.py %D%/live %D%/holes %D%/opinfo.txt %D%/refused.txt %D%/make_primitives.py %D%/primitives.txt %D%/make_without_results.py %D%/without_results.txt %D%/make_optimizer.py %D%/optimizer.txt %D%/make_fused.py %D%/fused.txt %D%/make_linalg.py %D%/linalg.txt %D%/make_reduction_order.py %D%/reduction_order.txt
EXTRA_DIST += %D%/pytorch_operators_index.py %D%/pytorch_names.py %D%/random_calls.py %D%/random_indexing.py %D%/random_calls_operators.py
EXTRA_DIST += %D%/results.pl
EXTRA_DIST += %D%/make_fft.py %D%/fft.txt
EXTRA_DIST += %D%/make_empty_batches.py
EXTRA_DIST += %D%/make_quantize.py %D%/quantize.txt

# ORACLE_FLAGS="--device opencl:0 --verbose"; PYTHON names a Python that has PyTorch.
.PHONY: oracle
oracle: all tests/oracle/replay_opinfo
	@PYTHON='$(PYTHON)' sh $(srcdir)/tests/oracle/live $(srcdir) $(builddir) $(ORACLE_FLAGS)
CLEANFILES += tests/oracle/samples.bin
