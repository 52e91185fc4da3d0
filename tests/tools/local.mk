# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/bench.sh %D%/browser.sh %D%/classes.json %D%/commands.sh %D%/compare.pl %D%/complete.sh %D%/doors.sh %D%/eval.sh %D%/odd_files.sh %D%/options.sh %D%/files \
	%D%/graph.sh %D%/graph_c.sh %D%/graph_c_program.c %D%/labels.txt %D%/make_models.py %D%/pictures.py %D%/predict.sh %D%/prune.sh %D%/quantize.sh %D%/report.sh %D%/run.sh %D%/script.sh
TESTS += %D%/bench.sh %D%/browser.sh %D%/complete.sh %D%/doors.sh %D%/eval.sh %D%/odd_files.sh %D%/options.sh %D%/graph.sh %D%/graph_c.sh %D%/predict.sh %D%/prune.sh %D%/quantize.sh %D%/report.sh %D%/run.sh %D%/script.sh

# Pictures that tenon predict reads and writes, compared with Pillow, which PYTHON has (else: SKIP).
.PHONY: pictures
pictures: all
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/%D%/pictures.py $(srcdir) $(builddir) || test $$? -eq 77

check_PROGRAMS += %D%/run_program
%C%_run_program_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
%C%_run_program_LDADD = $(TN_LINK)

# Parts of `tenon train` that are no command of their own.
EXTRA_DIST += %D%/readers.h %D%/read_report.py

# The files of a report, read by TensorBoard, NumPy, pandas and Pillow, which PYTHON has (else: SKIP).
.PHONY: tensorboard
tensorboard: all
	@$(MAKE) $(AM_MAKEFLAGS) -s %D%/test_report && rm -rf %D%/report.run && \
	    ./run %D%/test_report --write %D%/report.run
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/%D%/read_report.py %D%/report.run || test $$? -eq 77
	@rm -rf %D%/report.run

if HAVE_CHECK
check_PROGRAMS += %D%/test_report %D%/test_progress
TESTS += %D%/test_report %D%/test_progress
%C%_test_report_SOURCES = $(TN_REPORT) \
	examples/chart.c \
	examples/chart.h \
	sdk/conform/json.c \
	%D%/test_page.c \
	%D%/test_report.c
%C%_test_report_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_report_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_progress_SOURCES = tools/train/progress.c \
	tools/train/progress.h \
	%D%/test_progress.c
%C%_test_progress_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_progress_LDADD = $(TN_LINK_TEST_CORE)
endif
