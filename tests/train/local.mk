# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/lbfgs.h %D%/make_lbfgs.py %D%/lbfgs_hundred.h %D%/make_lbfgs_hundred.py \
	%D%/optim_complex.h %D%/make_optim_complex.py %D%/make_reference.py %D%/make_optim_hundred.py \
	%D%/make_scaler.py %D%/scaler.h %D%/make_schedulers.py %D%/make_ported_schedulers.py %D%/make_curves.py %D%/curves.txt %D%/make_ported_inputs.py \
	%D%/ported_inputs.h \
	%D%/ported_schedulers.txt %D%/schedulers.h %D%/make_states.py %D%/reference.h %D%/optim_hundred.h \
	%D%/schedulers.txt %D%/states.h %D%/whole.h \
	%D%/files/adam.pt %D%/files/adamw.pt %D%/files/plain.pt %D%/files/sgd.pt \
	%D%/files/lbfgs-0.pt %D%/files/lbfgs-1.pt %D%/files/lbfgs-2.pt %D%/files/lbfgs-3.pt %D%/files/lbfgs-4.pt \
	%D%/files/lbfgs-5.pt %D%/files/lbfgs-6.pt %D%/files/lbfgs-7.pt %D%/files/lbfgs-8.pt %D%/files/lbfgs-9.pt

# tenon train, killed and continued. `make kills` kills it 50 times.
TESTS += %D%/amp.sh %D%/compile.sh %D%/devices.sh %D%/ends.sh %D%/kills.sh %D%/metrics.sh %D%/ranks.sh %D%/refusals.sh %D%/sweep.sh %D%/tables.sh %D%/texts.sh
EXTRA_DIST += %D%/amp.sh %D%/compile.sh %D%/devices.sh %D%/ends.sh %D%/kills.sh %D%/metrics.sh %D%/ranks.sh %D%/refusals.sh %D%/sweep.sh %D%/tables.sh %D%/texts.sh
# tenon train, ended or failing at each call that changes a file.
TESTS += %D%/faults.sh
EXTRA_DIST += %D%/faults.sh
check_LTLIBRARIES += %D%/fault.la
%C%_fault_la_SOURCES = %D%/fault.c
%C%_fault_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
%C%_fault_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
%C%_fault_la_LIBADD = -ldl
# Trains four networks with PyTorch, and with Tenon, and compares the losses.
.PHONY: curves
curves: all %D%/test_curves
	@TENON_PLUGIN_PATH='$(abs_builddir)/plugins/.libs' $${PYTHON-python3} \
	    $(srcdir)/%D%/make_curves.py --against $(abs_builddir)/%D%/test_curves
.PHONY: kills
kills: all
	@abs_builddir='$(abs_builddir)' TENON_PLUGIN_PATH='$(abs_builddir)/plugins/.libs' \
	    $(SHELL) $(srcdir)/%D%/kills.sh 50

if HAVE_CHECK
check_PROGRAMS += %D%/test_checkpoint
TESTS += %D%/test_checkpoint
%C%_test_checkpoint_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_checkpoint_LDADD = $(TN_LINK_TEST_CORE)
check_PROGRAMS += %D%/test_scaler %D%/test_averaging %D%/test_capturable %D%/test_lbfgs \
	%D%/test_memory \
	%D%/test_optim %D%/test_optim_hundred %D%/test_optim_memory %D%/test_schedulers %D%/test_state \
	%D%/test_step %D%/test_curves %D%/test_ported_averaging %D%/test_ported_optim %D%/test_ported_schedulers
TESTS += %D%/test_scaler %D%/test_averaging %D%/test_capturable %D%/test_lbfgs %D%/test_memory \
	%D%/test_optim %D%/test_optim_hundred %D%/test_optim_memory %D%/test_schedulers %D%/test_state \
	%D%/test_step %D%/test_curves %D%/test_ported_averaging %D%/test_ported_optim %D%/test_ported_schedulers
%C%_test_scaler_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_scaler_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_averaging_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_averaging_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_capturable_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_capturable_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_lbfgs_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_lbfgs_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_memory_LDADD = $(TN_LINK_TEST_CORE)
check_PROGRAMS += %D%/test_lbfgs_hundred %D%/test_optim_complex
TESTS += %D%/test_lbfgs_hundred %D%/test_optim_complex
%C%_test_lbfgs_hundred_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_lbfgs_hundred_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_optim_complex_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_optim_complex_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_optim_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_optim_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_schedulers_CPPFLAGS = $(TN_TEST_CPPFLAGS) \
	-DSCHEDULERS_FILE='"$(abs_srcdir)/%D%/schedulers.txt"'
%C%_test_ported_schedulers_CPPFLAGS = $(TN_TEST_CPPFLAGS) \
	-DSCHEDULERS_FILE='"$(abs_srcdir)/%D%/ported_schedulers.txt"'
%C%_test_ported_schedulers_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_curves_CPPFLAGS = $(TN_TEST_CPPFLAGS) -DCURVES_FILE='"$(abs_srcdir)/%D%/curves.txt"'
%C%_test_curves_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_ported_averaging_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_ported_averaging_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_ported_optim_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_ported_optim_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_schedulers_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_optim_hundred_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_optim_hundred_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_optim_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_optim_memory_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_state_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_state_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_step_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_step_LDADD = $(TN_LINK_TEST_CORE)
endif
