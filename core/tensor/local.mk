# SPDX-License-Identifier: MIT

libcore_la_SOURCES += \
	%D%/kinds.c \
	%D%/allocator.c \
	%D%/allocator.h \
	%D%/autocast.c \
	%D%/autocast.h \
	%D%/capture.c \
	%D%/capture.h \
	%D%/capture_graph.c \
	%D%/capture_graph.h \
	%D%/boundary.c \
	%D%/boundary.h \
	%D%/convert.c \
	%D%/convert.h \
	%D%/copy.c \
	%D%/copy.h \
	%D%/event.c \
	%D%/fill.c \
	%D%/default.c \
	%D%/device.c \
	%D%/device.h \
	%D%/device_info.c \
	%D%/dlpack.c \
	%D%/guard.c \
	%D%/internal.h \
	%D%/memory.c \
	%D%/mode.c \
	%D%/mode.h \
	%D%/pinned.c \
	%D%/pinned.h \
	%D%/query.c \
	%D%/random_state.c \
	%D%/random_state.h \
	%D%/scope.c \
	%D%/allocator_segment.c \
	%D%/shared_memory.c \
	%D%/allocator_stats.c \
	%D%/storage.c \
	%D%/stream.c \
	%D%/tensor.c \
	%D%/thread.c \
	%D%/thread.h \
	%D%/thread_pool.c \
	%D%/trace.c \
	%D%/trace.h \
	%D%/view.c
