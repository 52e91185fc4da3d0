# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/models.la
plugins_models_la_SOURCES = \
	%D%/check.c \
	%D%/gpt2.c \
	%D%/init.c \
	%D%/lstm_lm.c \
	%D%/mlp.c \
	%D%/mobilenet.c \
	%D%/model_list.h \
	%D%/models.h \
	%D%/plugin.c \
	%D%/resnet.c \
	%D%/unet.c \
	%D%/vit.c
plugins_models_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
plugins_models_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_models_la_LIBADD = $(LIBM)
