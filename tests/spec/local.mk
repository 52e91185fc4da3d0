# SPDX-License-Identifier: MIT
#
# Which rows of the behaviour specification the tests have proven.

TESTS += tests/spec/test_table.sh
EXTRA_DIST += %D%/test_table.sh %D%/break %D%/rows.txt %D%/proves.h %D%/table %D%/whole.txt

.PHONY: spec
spec:
	@perl $(srcdir)/tests/spec/table $(SPEC_FLAGS) $(srcdir) $(builddir)
