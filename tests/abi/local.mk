# SPDX-License-Identifier: MIT
#
# What a released revision promises, tried with two synthetic ones. kept.sh, which compiles the core
# twice, is run by .ci/run (abi).

TESTS += tests/abi/diff.sh
EXTRA_DIST += %D%/diff.sh %D%/judge.pl %D%/kept.sh %D%/kept_plugin.c %D%/kept_program.c \
	%D%/probe.pl %D%/revisions.sh
