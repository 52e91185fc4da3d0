# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/comm-local.la
plugins_comm_local_la_SOURCES = \
	%D%/board.c \
	%D%/board.h \
	%D%/exchange.c \
	%D%/exchange.h \
	%D%/frame.c \
	%D%/frame.h \
	%D%/group.c \
	%D%/group.h \
	%D%/mesh.c \
	%D%/mesh.h \
	%D%/message.c \
	%D%/message.h \
	%D%/narrow.h \
	%D%/plugin.c \
	%D%/reduce.c \
	%D%/reduce.h \
	%D%/reduce_template.h \
	%D%/report.c \
	%D%/report.h \
	%D%/world.c \
	%D%/world.h
plugins_comm_local_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_comm_local_la_LDFLAGS = $(TN_PLUGIN_LINK)
