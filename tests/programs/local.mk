# SPDX-License-Identifier: MIT
#
# Random programs compared with PyTorch: some as data in `make check`, thousands live.

check_PROGRAMS += tests/programs/replay_programs
TESTS += tests/programs/programs.sh
tests_programs_replay_programs_SOURCES = %D%/replay_programs.c
tests_programs_replay_programs_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
tests_programs_replay_programs_LDADD = $(TN_LINK) $(LIBM)
EXTRA_DIST += %D%/README.md %D%/programs.py %D%/programs.sh %D%/programs.txt

# SEEDS="FIRST COUNT": seeds; PYTHON names a Python that has PyTorch.
SEEDS = 1000 2000
.PHONY: programs
programs: all tests/programs/replay_programs
	@'$(PYTHON)' $(srcdir)/tests/programs/programs.py $(SEEDS) > tests/programs/live.txt && $(builddir)/run $(builddir)/tests/programs/replay_programs tests/programs/live.txt
CLEANFILES += tests/programs/live.txt
