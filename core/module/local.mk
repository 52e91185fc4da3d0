# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kinds.c \
	%D%/internal.h \
	%D%/backward.c \
	%D%/build_limit.c \
	%D%/call.c \
	%D%/call.h \
	%D%/call_observe.c \
	%D%/call_path.c \
	%D%/chain.c \
	%D%/call_many.c \
	%D%/compile.c \
	%D%/computed.c \
	%D%/container.c \
	%D%/convert.c \
	%D%/copy.c \
	%D%/depth.c \
	%D%/depth.h \
	%D%/hooks.c \
	%D%/hooks.h \
	%D%/init.c \
	%D%/lazy.c \
	%D%/load_take.c \
	%D%/loading.c \
	%D%/loading.h \
	%D%/make.c \
	%D%/make_printed.c \
	%D%/mode.c \
	%D%/mode_seen.h \
	%D%/module.c \
	%D%/option.c \
	%D%/own_forward.c \
	%D%/paths.c \
	%D%/recompute.c \
	%D%/load_report.c \
	%D%/saving.c \
	%D%/slot_map.c \
	%D%/slots.c \
	%D%/state.c \
	%D%/state_hooks.c \
	%D%/tree.c \
	%D%/name_table.c \
	%D%/name_table.h \
	%D%/repr.c \
	%D%/walk.c
