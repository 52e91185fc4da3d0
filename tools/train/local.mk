# SPDX-License-Identifier: MIT
#
# The commands for models. The tests of the report compile its files, too.

tools_tenon_SOURCES += examples/chart.c
tools_tenon_SOURCES += examples/chart.h
tools_tenon_SOURCES += %D%/bench.c
tools_tenon_SOURCES += %D%/bench.h
tools_tenon_SOURCES += %D%/bench_measure.c
tools_tenon_SOURCES += %D%/build.c
tools_tenon_SOURCES += %D%/classes.c
tools_tenon_SOURCES += %D%/config.c
tools_tenon_SOURCES += %D%/epochs.c
tools_tenon_SOURCES += %D%/eval.c
tools_tenon_SOURCES += %D%/eval.h
tools_tenon_SOURCES += %D%/eval_answer.c
tools_tenon_SOURCES += %D%/find_lr.c
tools_tenon_SOURCES += %D%/fit.c
tools_tenon_SOURCES += %D%/freeze.c
tools_tenon_SOURCES += %D%/head.c
tools_tenon_SOURCES += %D%/left_out.c
tools_tenon_SOURCES += %D%/metrics.c
tools_tenon_SOURCES += %D%/metrics.h
tools_tenon_SOURCES += %D%/model.c
tools_tenon_SOURCES += %D%/model.h
tools_tenon_SOURCES += %D%/nonfinite.c
tools_tenon_SOURCES += %D%/png.c
tools_tenon_SOURCES += %D%/predict.c
tools_tenon_SOURCES += %D%/predict.h
tools_tenon_SOURCES += %D%/predict_inputs.c
tools_tenon_SOURCES += %D%/predict_output.c
tools_tenon_SOURCES += %D%/progress.c
tools_tenon_SOURCES += %D%/progress.h
tools_tenon_SOURCES += %D%/record.c
tools_tenon_SOURCES += %D%/resume.c
tools_tenon_SOURCES += %D%/save.c
tools_tenon_SOURCES += %D%/settings.c
tools_tenon_SOURCES += %D%/settings.h
tools_tenon_SOURCES += %D%/step.c
tools_tenon_SOURCES += %D%/stop.c
tools_tenon_SOURCES += %D%/train.c
tools_tenon_SOURCES += %D%/train.h
tools_tenon_SOURCES += %D%/validate.c
tools_tenon_SOURCES += %D%/work.c
tools_tenon_SOURCES += %D%/work.h

tools_tenon_SOURCES += $(TN_REPORT)

CLEANFILES += %D%/page_script.c %D%/page_style.c
TN_REPORT = %D%/page_script.js
TN_REPORT += %D%/page_style.css
TN_REPORT += %D%/report.c
TN_REPORT += %D%/report.h
TN_REPORT += %D%/report_counts.c
TN_REPORT += %D%/report_events.c
TN_REPORT += %D%/report_files.c
TN_REPORT += %D%/report_histograms.c
TN_REPORT += %D%/report_matrix.c
TN_REPORT += %D%/report_page.c
TN_REPORT += %D%/report_plot.c
TN_REPORT += %D%/report_png.c
TN_REPORT += %D%/report_private.h
TN_REPORT += %D%/report_replay.c
TN_REPORT += %D%/report_ridges.c
TN_REPORT += %D%/report_rows.c
TN_REPORT += %D%/report_samples.c
TN_REPORT += %D%/report_series.c
TN_REPORT += %D%/report_text.c
