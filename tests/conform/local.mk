# SPDX-License-Identifier: MIT
#
# Tests of tenon check: that it finds what is wrong, and that our own plugins pass.

TESTS += tests/conform/check.sh tests/conform/own.sh
EXTRA_DIST += %D%/check.sh %D%/own.sh %D%/wrong.c %D%/wrong_layer.c %D%/cube.txt %D%/pair.txt %D%/layers.txt
