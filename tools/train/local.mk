# SPDX-License-Identifier: MIT
#
# The commands for models: one file a line.

tools_tenon_SOURCES += %D%/config.c
tools_tenon_SOURCES += %D%/model.c
tools_tenon_SOURCES += %D%/model.h
tools_tenon_SOURCES += %D%/progress.c
tools_tenon_SOURCES += %D%/progress.h
tools_tenon_SOURCES += %D%/report.c
tools_tenon_SOURCES += %D%/report.h
tools_tenon_SOURCES += %D%/report_files.c
tools_tenon_SOURCES += %D%/report_private.h
tools_tenon_SOURCES += %D%/report_rows.c
tools_tenon_SOURCES += %D%/report_series.c
tools_tenon_SOURCES += %D%/report_text.c
tools_tenon_SOURCES += %D%/settings.c
tools_tenon_SOURCES += %D%/settings.h
