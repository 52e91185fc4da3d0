# SPDX-License-Identifier: MIT
#
# The command `tenon train`: one file a line. The tests of the report compile its files, too.

tools_tenon_SOURCES += examples/chart.c
tools_tenon_SOURCES += examples/chart.h
tools_tenon_SOURCES += %D%/progress.c
tools_tenon_SOURCES += %D%/progress.h
tools_tenon_SOURCES += $(TN_REPORT)

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
