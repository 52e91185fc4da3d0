# SPDX-License-Identifier: MIT
#
# xor.c and swish.c are the samples of the README, word for word; digits is the demo; resnet18 is what tests/models compares.

noinst_PROGRAMS += examples/digits examples/resnet18 examples/xor
examples_digits_SOURCES = %D%/digits.c %D%/chart.c %D%/chart.h
examples_digits_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_digits_LDADD = $(TN_LINK) $(LIBM)
examples_resnet18_SOURCES = %D%/resnet18.c
examples_resnet18_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_resnet18_LDADD = $(TN_LINK)
examples_xor_SOURCES = %D%/xor.c
examples_xor_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_xor_LDADD = $(TN_LINK)

check_LTLIBRARIES += examples/swish.la
examples_swish_la_SOURCES = %D%/swish.c
examples_swish_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_swish_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere

# The parts of docs/plugins/graphs.md, which tests/graph uses.
check_LTLIBRARIES += examples/graph_doors.la
examples_graph_doors_la_SOURCES = %D%/graph_doors.c
examples_graph_doors_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_graph_doors_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere

noinst_SCRIPTS = examples/examples-demo
CLEANFILES += examples/examples-demo
examples/examples-demo: examples/demo.sh Makefile
	$(AM_V_GEN)$(MKDIR_P) examples && data=`cd $(srcdir)/examples/data && pwd`/digits.csv.gz && \
	    sed "s|@data@|$$data|" $(srcdir)/examples/demo.sh >$@.tmp && chmod +x $@.tmp && mv -f $@.tmp $@
clean-local: clean-demo
clean-demo:
	rm -rf examples/demo
.PHONY: clean-demo

EXTRA_DIST += %D%/demo.sh %D%/data/README.md %D%/data/digits.csv.gz
