# SPDX-License-Identifier: MIT
#
# Tests of the project's rules for headers, symbols, includes and layout.

TN_HOUSE_TESTS = \
	tests/house/api.sh \
	tests/house/bootstrap.sh \
	tests/house/columns.sh \
	tests/house/configure.sh \
	tests/house/guards.sh \
	tests/house/laws.sh \
	tests/house/folders.sh \
	tests/house/messages.sh \
	tests/house/names.sh \
	tests/house/headers.sh \
	tests/house/layout.sh \
	tests/house/symbols.sh \
	tests/house/host_tables.sh \
	tests/house/links.sh \
	tests/house/operator_results.sh \
	tests/house/outside.sh \
	tests/house/prefix.sh
TESTS += $(TN_HOUSE_TESTS)
if HAVE_CHECK
else
TESTS += tests/house/without_check.sh
endif
if STATIC_PLUGINS
TESTS += tests/house/static.sh
endif
EXTRA_DIST += $(TN_HOUSE_TESTS) %D%/static.sh %D%/without_check.sh %D%/api.pl %D%/api_kept.txt %D%/folders.pl %D%/names.pl %D%/messages.pl %D%/layout.pl %D%/layout.golden %D%/host_tables.golden %D%/descriptors.c %D%/descriptors_cxx17.cc
