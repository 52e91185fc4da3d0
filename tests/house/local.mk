# SPDX-License-Identifier: MIT
#
# Tests of the house itself: what the rules say of headers, symbols, includes and layout.

TN_HOUSE_TESTS = \
	tests/house/configure.sh \
	tests/house/laws.sh \
	tests/house/headers.sh \
	tests/house/layout.sh \
	tests/house/symbols.sh \
	tests/house/outside.sh
TESTS += $(TN_HOUSE_TESTS)
EXTRA_DIST += $(TN_HOUSE_TESTS) %D%/layout.pl %D%/layout.golden %D%/descriptors.c

# What shell tests build on besides the library.
tests/house/symbols.log tests/house/outside.log: all-am
