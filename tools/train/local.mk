# SPDX-License-Identifier: MIT
#
# The commands for models: one file a line.

tools_tenon_SOURCES += %D%/build.c
tools_tenon_SOURCES += %D%/config.c
tools_tenon_SOURCES += %D%/epochs.c
tools_tenon_SOURCES += %D%/freeze.c
tools_tenon_SOURCES += %D%/head.c
tools_tenon_SOURCES += %D%/model.c
tools_tenon_SOURCES += %D%/model.h
tools_tenon_SOURCES += %D%/nonfinite.c
tools_tenon_SOURCES += %D%/progress.c
tools_tenon_SOURCES += %D%/progress.h
tools_tenon_SOURCES += %D%/record.c
tools_tenon_SOURCES += %D%/report.c
tools_tenon_SOURCES += %D%/report.h
tools_tenon_SOURCES += %D%/report_files.c
tools_tenon_SOURCES += %D%/report_private.h
tools_tenon_SOURCES += %D%/report_rows.c
tools_tenon_SOURCES += %D%/report_series.c
tools_tenon_SOURCES += %D%/report_text.c
tools_tenon_SOURCES += %D%/resume.c
tools_tenon_SOURCES += %D%/save.c
tools_tenon_SOURCES += %D%/settings.c
tools_tenon_SOURCES += %D%/settings.h
tools_tenon_SOURCES += %D%/step.c
tools_tenon_SOURCES += %D%/stop.c
tools_tenon_SOURCES += %D%/train.c
tools_tenon_SOURCES += %D%/train.h
tools_tenon_SOURCES += %D%/validate.c
