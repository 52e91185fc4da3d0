# SPDX-License-Identifier: MIT

TN_PLUGINS += plugins/layers.la
plugins_layers_la_SOURCES = \
	%D%/activation_with_options.c \
	%D%/attention.c \
	%D%/call_children.c \
	%D%/container.c \
	%D%/conv.c \
	%D%/distance.c \
	%D%/dropout.c \
	%D%/embedding.c \
	%D%/fold.c %D%/fuse.c \
	%D%/init.c \
	%D%/init_matrix.c \
	%D%/layer_list.h \
	%D%/helpers.h \
	%D%/linear.c \
	%D%/loss.c \
	%D%/loss_adaptive.c \
	%D%/loss_cross_entropy.c \
	%D%/loss_triplet.c \
	%D%/loss_weight.c \
	%D%/norm.c \
	%D%/norm_last.c \
	%D%/pad.c \
	%D%/parameters.c \
	%D%/parametrize.c \
	%D%/parametrize.h \
	%D%/parametrize_lora.c \
	%D%/parametrize_orthogonal.c \
	%D%/parametrize_spectral.c \
	%D%/plugin.c \
	%D%/pool.c \
	%D%/pool_fractional.c \
	%D%/pool_unpool.c \
	%D%/resample.c \
	%D%/rnn.c \
	%D%/from_operators.c \
	%D%/from_operators.h \
	%D%/shape.c \
	%D%/softmax.c \
	%D%/repr_helpers.c \
	%D%/transformer.c \
	%D%/transformer_stack.c \
	%D%/window.h
plugins_layers_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS) -I$(builddir)/plugins/layers -I$(srcdir)/plugins/layers
plugins_layers_la_LDFLAGS = $(TN_PLUGIN_LINK)
plugins_layers_la_LIBADD = $(LIBM)
