# SPDX-License-Identifier: MIT
#
# make mutate N=120 SEED=1 PLACE=core/tensor: do the tests notice single changes of the product? docs/contributors/mutation.md

TESTS += %D%/changes.sh
EXTRA_DIST += %D%/mutate %D%/changes.pl %D%/cover.pl %D%/changes.sh

.PHONY: mutate clean-mutate
mutate:
	@$(PERL) $(srcdir)/tests/mutate/mutate $(srcdir) $(abs_builddir)/mutate 'N=$(N)' 'SEED=$(SEED)' 'PLACE=$(PLACE)' 'AGAIN=$(AGAIN)' 'JOBS=$(JOBS)' 'BUDGET=$(BUDGET)' \
		'ONLY=$(ONLY)'
clean-local: clean-mutate
clean-mutate:
	rm -rf mutate
