# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/optim.la
plugins_optim_la_SOURCES = \
	%D%/lbfgs.h %D%/optim.h \
	%D%/adadelta.c \
	%D%/adafactor.c \
	%D%/adagrad.c \
	%D%/adam.c \
	%D%/adamax.c \
	%D%/asgd.c \
	%D%/averaging.c \
	%D%/groups.c \
	%D%/lbfgs.c \
	%D%/lbfgs_search.c \
	%D%/lion.c \
	%D%/muon.c \
	%D%/nadam.c \
	%D%/numbers.c \
	%D%/options.c \
	%D%/plugin.c \
	%D%/radam.c \
	%D%/rmsprop.c \
	%D%/rprop.c \
	%D%/scheduler.c \
	%D%/scheduler.h \
	%D%/scheduler_compose.c \
	%D%/scheduler_cosine.c \
	%D%/scheduler_cycle.c \
	%D%/scheduler_plateau.c \
	%D%/sgd.c
plugins_optim_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_optim_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_optim_la_LIBADD = $(LIBM)
