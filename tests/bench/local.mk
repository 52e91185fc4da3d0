# SPDX-License-Identifier: MIT

TESTS += tests/bench/networks.sh
EXTRA_DIST += tests/bench/networks.sh
