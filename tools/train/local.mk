# SPDX-License-Identifier: MIT
#
# The command `tenon train`: one file a line.

tools_tenon_SOURCES += %D%/progress.c
tools_tenon_SOURCES += %D%/progress.h
tools_tenon_SOURCES += %D%/report.c
tools_tenon_SOURCES += %D%/report.h
tools_tenon_SOURCES += %D%/report_files.c
tools_tenon_SOURCES += %D%/report_private.h
tools_tenon_SOURCES += %D%/report_rows.c
tools_tenon_SOURCES += %D%/report_series.c
tools_tenon_SOURCES += %D%/report_text.c
