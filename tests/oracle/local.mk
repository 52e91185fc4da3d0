# SPDX-License-Identifier: MIT
#
# PyTorch as the judge, live. What is replayed in `make check` is replayed by tests/op/test_oracle.

check_PROGRAMS += tests/oracle/replay
tests_oracle_replay_SOURCES = %D%/replay.c
tests_oracle_replay_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
tests_oracle_replay_LDADD = $(TN_LINK) $(LIBM)
EXTRA_DIST += %D%/README.md %D%/rows.h %D%/opinfo.py %D%/opinfo_map.py %D%/networks_map.py %D%/live %D%/holes %D%/opinfo.txt %D%/refused.txt %D%/make_primitives.py %D%/primitives.txt %D%/make_kernels.py %D%/kernels.txt %D%/make_steps.py %D%/steps.txt %D%/make_fused.py %D%/fused.txt

# ORACLE_FLAGS="--device opencl:0 --verbose"; PYTHON names a Python that has PyTorch.
.PHONY: oracle
oracle: all tests/oracle/replay
	@PYTHON='$(PYTHON)' sh $(srcdir)/tests/oracle/live $(srcdir) $(builddir) $(ORACLE_FLAGS)
CLEANFILES += tests/oracle/samples.bin
