# SPDX-License-Identifier: MIT

TESTS += %D%/samples.sh
EXTRA_DIST += %D%/samples.sh
