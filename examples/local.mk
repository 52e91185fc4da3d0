# SPDX-License-Identifier: MIT
#
# xor.c and swish.c are the samples of the README, word for word. digits is a program that trains on the digits of the demo, without tenon train. tests/models compares resnet18 with PyTorch.

noinst_PROGRAMS += examples/digits examples/graph examples/graph_loop examples/graph_train examples/recipes/printed_model examples/resnet18 examples/xor
examples_digits_SOURCES = %D%/digits.c %D%/chart.c %D%/chart.h
examples_digits_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_digits_LDADD = $(TN_LINK) $(LIBM)
examples_graph_SOURCES = %D%/graph.c
examples_graph_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_graph_LDADD = $(TN_LINK)
examples_graph_loop_SOURCES = %D%/graph_loop.c
examples_graph_loop_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_graph_loop_LDADD = $(TN_LINK)
examples_graph_train_SOURCES = %D%/graph_train.c
examples_graph_train_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_graph_train_LDADD = $(TN_LINK)
examples_recipes_printed_model_SOURCES = %D%/recipes/printed_model.c
examples_recipes_printed_model_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_recipes_printed_model_LDADD = $(TN_LINK)
examples_resnet18_SOURCES = %D%/resnet18.c
examples_resnet18_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_resnet18_LDADD = $(TN_LINK)
examples_xor_SOURCES = %D%/xor.c
examples_xor_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_xor_LDADD = $(TN_LINK)

check_LTLIBRARIES += examples/swish.la
examples_swish_la_SOURCES = %D%/swish.c
examples_swish_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_swish_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere

# The example of docs/plugins/graphs.md, which tests/graph loads.
check_LTLIBRARIES += examples/graph_contributions.la
examples_graph_contributions_la_SOURCES = %D%/graph_contributions.c
examples_graph_contributions_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_graph_contributions_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere

# The example of docs/guides/from-pytorch.md, which tests/foreign loads.
check_LTLIBRARIES += examples/rules.la
examples_rules_la_SOURCES = %D%/rules.c
examples_rules_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
examples_rules_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere

noinst_SCRIPTS = examples/examples-demo
CLEANFILES += examples/examples-demo
examples/examples-demo: examples/demo.sh
	$(AM_V_GEN)$(MKDIR_P) examples && cp $(srcdir)/examples/demo.sh $@.tmp && chmod +x $@.tmp && mv -f $@.tmp $@
clean-local: clean-demo
clean-demo:
	rm -rf examples/demo
.PHONY: clean-demo

# The programs of docs/guides/recipes. tests/samples/recipes.sh builds them with an installed Tenon;
# printed_model is also built here, for `make interchange`.
EXTRA_DIST += %D%/recipes/fine_tune.c %D%/recipes/threads.c %D%/recipes/own_module.c %D%/recipes/profile.c %D%/recipes/handles.cpp %D%/recipes/train.py
EXTRA_DIST += %D%/recipes/averages.c %D%/recipes/char_gpt.c %D%/recipes/denoise.c %D%/recipes/embedded.c
EXTRA_DIST += %D%/recipes/module_hooks.c %D%/recipes/own_function.c

EXTRA_DIST += %D%/README.md %D%/demo.sh %D%/data/README.md %D%/data/digits.csv.gz %D%/data/alice.txt.gz

# The networks of `make models` (tests/models/networks.py), each of run.c and one file.
TN_NETWORKS = examples/networks/bert examples/networks/convnext_tiny examples/networks/dcgan examples/networks/densenet121 examples/networks/efficientnet_b0 examples/networks/gpt2 examples/networks/lstm examples/networks/mobilenet_v2 examples/networks/resnet50 examples/networks/swin_t examples/networks/unet examples/networks/vit_b_16
check_PROGRAMS += $(TN_NETWORKS)
TN_NETWORK_MAIN = %D%/networks/run.c %D%/networks/network.h
examples_networks_bert_SOURCES = %D%/networks/bert.c $(TN_NETWORK_MAIN)
examples_networks_bert_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_bert_LDADD = $(TN_LINK)
examples_networks_convnext_tiny_SOURCES = %D%/networks/convnext_tiny.c $(TN_NETWORK_MAIN)
examples_networks_convnext_tiny_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_convnext_tiny_LDADD = $(TN_LINK)
examples_networks_dcgan_SOURCES = %D%/networks/dcgan.c $(TN_NETWORK_MAIN)
examples_networks_dcgan_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_dcgan_LDADD = $(TN_LINK)
examples_networks_densenet121_SOURCES = %D%/networks/densenet121.c $(TN_NETWORK_MAIN)
examples_networks_densenet121_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_densenet121_LDADD = $(TN_LINK)
examples_networks_efficientnet_b0_SOURCES = %D%/networks/efficientnet_b0.c $(TN_NETWORK_MAIN)
examples_networks_efficientnet_b0_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_efficientnet_b0_LDADD = $(TN_LINK)
examples_networks_gpt2_SOURCES = %D%/networks/gpt2.c $(TN_NETWORK_MAIN)
examples_networks_gpt2_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_gpt2_LDADD = $(TN_LINK)
examples_networks_lstm_SOURCES = %D%/networks/lstm.c $(TN_NETWORK_MAIN)
examples_networks_lstm_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_lstm_LDADD = $(TN_LINK)
examples_networks_mobilenet_v2_SOURCES = %D%/networks/mobilenet_v2.c $(TN_NETWORK_MAIN)
examples_networks_mobilenet_v2_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_mobilenet_v2_LDADD = $(TN_LINK)
examples_networks_resnet50_SOURCES = %D%/networks/resnet50.c $(TN_NETWORK_MAIN)
examples_networks_resnet50_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_resnet50_LDADD = $(TN_LINK)
examples_networks_swin_t_SOURCES = %D%/networks/swin_t.c $(TN_NETWORK_MAIN)
examples_networks_swin_t_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_swin_t_LDADD = $(TN_LINK)
examples_networks_unet_SOURCES = %D%/networks/unet.c $(TN_NETWORK_MAIN)
examples_networks_unet_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_unet_LDADD = $(TN_LINK)
examples_networks_vit_b_16_SOURCES = %D%/networks/vit_b_16.c $(TN_NETWORK_MAIN)
examples_networks_vit_b_16_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
examples_networks_vit_b_16_LDADD = $(TN_LINK)

# Installed next to the documentation, for readers of the package.
examplesdir = $(docdir)/examples
dist_examples_DATA = %D%/README.md %D%/chart.c %D%/chart.h %D%/digits.c %D%/graph.c %D%/graph_contributions.c %D%/graph_loop.c %D%/graph_train.c %D%/resnet18.c %D%/rules.c %D%/swish.c %D%/xor.c
examplesrecipesdir = $(docdir)/examples/recipes
dist_examplesrecipes_DATA = %D%/recipes/averages.c %D%/recipes/char_gpt.c %D%/recipes/denoise.c %D%/recipes/embedded.c %D%/recipes/fine_tune.c %D%/recipes/handles.cpp %D%/recipes/module_hooks.c %D%/recipes/own_function.c %D%/recipes/own_module.c %D%/recipes/printed_model.c %D%/recipes/profile.c %D%/recipes/threads.c %D%/recipes/train.py
