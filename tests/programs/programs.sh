#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The programs of programs.txt have the results that PyTorch had.
exec "$abs_builddir/tests/programs/replay_programs" "$abs_srcdir/tests/programs/programs.txt"
