# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/internal.h \
	%D%/private.h \
	%D%/blocks.c \
	%D%/build.c \
	%D%/compile.c \
	%D%/control.c \
	%D%/control.h \
	%D%/functions.c \
	%D%/graph.c \
	%D%/lint.c \
	%D%/node.c \
	%D%/pass.c \
	%D%/plan.c \
	%D%/plan.h \
	%D%/plan_binding.c \
	%D%/plan_memory.c \
	%D%/plan_record.c \
	%D%/plan_run.c \
	%D%/plan_module.c \
	%D%/query.c \
	%D%/region.c \
	%D%/region_replace.c \
	%D%/region_run.c \
	%D%/run.c \
	%D%/script.c \
	%D%/script_convert.c \
	%D%/symbols.c \
	%D%/symbols_run.c \
	%D%/text.c \
	%D%/text_forms.c \
	%D%/text_functions.c \
	%D%/text_head.c \
	%D%/text_read.c \
	%D%/text_read_block.c \
	%D%/text_read.h \
	%D%/text_value.c \
	%D%/match.c \
	%D%/module.c \
	%D%/trace.c \
	%D%/trace_block.c \
	%D%/trace_graph.c \
	%D%/trace_module.c \
	%D%/tracing.h \
	%D%/values.c
