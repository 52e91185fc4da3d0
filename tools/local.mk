# SPDX-License-Identifier: MIT

# The commands, in the order of the help: for each there is a `const command NAME_command`.
TN_COMMANDS = plugins why devices ops env info inspect convert summary graph eval predict bench check \
	new train finetune sweep run report prune quantize script profile complete

# Not from $(TN_COMMANDS): the Makefile may be older than the list.
tools/command_list.h: $(srcdir)/tools/local.mk
	$(AM_V_GEN)$(MKDIR_P) tools && $(PERL) -0777 -ne 's/\\\n//g; \
	    print map { "COMMAND($$_)\n" } split " ", /^TN_COMMANDS =(.*)/m ? $$1 : ""' \
	    $(srcdir)/tools/local.mk >$@.tmp && mv -f $@.tmp $@
BUILT_SOURCES += tools/command_list.h
CLEANFILES += tools/command_list.h

# install-exec-hook installs this program under a name with the ABI version.
noinst_PROGRAMS += tools/tenon
tools_tenon_SOURCES = \
	$(TN_CONFORM) \
	%D%/check.c \
	%D%/child.c \
	%D%/complete.c \
	%D%/count.c \
	%D%/convert.c \
	%D%/count.h \
	%D%/devices.c \
	%D%/env.c \
	%D%/files.c \
	%D%/files.h \
	%D%/graph.c \
	%D%/graph_c.c \
	%D%/graph_c_blocks.c \
	%D%/graph_c.h \
	%D%/graph_c_forward.c \
	%D%/graph_c_module.c \
	%D%/graph_c_values.c \
	%D%/graph_page.c \
	%D%/graph_page.h \
	%D%/graph_script.js \
	%D%/graph_style.css \
	%D%/info.c \
	%D%/input.c \
	%D%/inspect.c \
	%D%/installed.c \
	%D%/new.c \
	%D%/ops.c \
	%D%/plugins.c \
	%D%/profile.c \
	%D%/read_file.c \
	%D%/run.c \
	%D%/prune.c \
	%D%/script.c \
	%D%/script.h \
	%D%/show.c \
	%D%/statistics.c \
	%D%/summary.c \
	%D%/summary.h \
	%D%/summary_script.c \
	%D%/tenon.c \
	%D%/text.c \
	%D%/tool.h \
	%D%/why.c
tools_tenon_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS) -I$(builddir) -I$(srcdir) -DTN_CONFORM_DIR='"$(conformdir)"' \
	-DTN_CONFORM_BESIDE='"'`$(TN_FROM_TO) $(bindir) $(conformdir)`'"' \
	-DTN_TEMPLATE_DIR='"$(templatedir)"' -DTN_TEMPLATE_BESIDE='"'`$(TN_FROM_TO) $(bindir) $(templatedir)`'"'
tools_tenon_CFLAGS = $(AM_CFLAGS)
# Looks for the library relative to the program first, so that the installation can be moved.
tools_tenon_LDFLAGS = $(AM_LDFLAGS) -Wl,-rpath,'$$ORIGIN/'`$(TN_FROM_TO) $(bindir) $(libdir)`
tools_tenon_LDADD = $(TN_LINK) $(LIBM)

EXTRA_DIST += %D%/completion/bash %D%/completion/zsh
CLEANFILES += %D%/graph_script.c %D%/graph_style.c

include %D%/train/local.mk
