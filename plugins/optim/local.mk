# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/optim.la
plugins_optim_la_SOURCES = \
	%D%/optim.h \
	%D%/adam.c \
	%D%/groups.c \
	%D%/numbers.c \
	%D%/plugin.c \
	%D%/schedule.c \
	%D%/schedule.h \
	%D%/schedule_compose.c \
	%D%/schedule_cosine.c \
	%D%/schedule_cycle.c \
	%D%/schedule_plateau.c \
	%D%/sgd.c
plugins_optim_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_optim_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_optim_la_LIBADD = $(LIBM)
