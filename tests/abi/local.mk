# SPDX-License-Identifier: MIT
#
# What a released revision promises, tried with two synthetic ones. kept.sh, which compiles the core
# twice, is run by .ci/run (abi).

TESTS += tests/abi/diff.sh tests/abi/grow.sh
EXTRA_DIST += %D%/diff.sh %D%/grow.sh %D%/grown.h %D%/grown.ops %D%/grown_plugin.c \
	%D%/grown_program.c %D%/judge.pl %D%/kept.sh %D%/kept_plugin.c %D%/kept_program.c \
	%D%/probe.pl %D%/revisions.sh
