# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/kinds.c \
	%D%/blocks.c \
	%D%/build.c \
	%D%/compile.c \
	%D%/control.c \
	%D%/control.h \
	%D%/text_decompositions.c \
	%D%/graph.c \
	%D%/lint.c \
	%D%/match.c \
	%D%/module.c \
	%D%/node.c \
	%D%/node_query.c \
	%D%/pass.c \
	%D%/private.h \
	%D%/query.c \
	%D%/region.c \
	%D%/region_replace.c \
	%D%/region_run.c \
	%D%/run.c \
	%D%/run.h \
	%D%/run_part.c \
	%D%/script.c \
	%D%/script_convert.c \
	%D%/symbols.c \
	%D%/symbols_run.c \
	%D%/text.c \
	%D%/text_forms.c \
	%D%/text_functions.c \
	%D%/text_head.c \
	%D%/text_read.c \
	%D%/text_read.h \
	%D%/text_read_block.c \
	%D%/text_value.c \
	%D%/trace.c \
	%D%/trace_block.c \
	%D%/trace_graph.c \
	%D%/trace_module.c \
	%D%/tracing.h \
	%D%/values.c
