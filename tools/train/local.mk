# SPDX-License-Identifier: MIT

tools_tenon_SOURCES += \
	%D%/bench.c \
	%D%/bench.h \
	%D%/bench_measure.c \
	%D%/classes.c \
	%D%/eval.c \
	%D%/metrics.c \
	%D%/metrics.h \
	%D%/model.c \
	%D%/model.h \
	%D%/png.c \
	%D%/predict.c \
	%D%/predict.h \
	%D%/predict_inputs.c \
	%D%/predict_output.c \
	%D%/work.c \
	%D%/work.h
