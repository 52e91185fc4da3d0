# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/backward_hooks.h %D%/each_oracle_layer.h %D%/forward_hooks.h %D%/hooks.h %D%/layer_inputs.h %D%/make_parametrize.py %D%/make_prune.py %D%/make_quantize.py %D%/parametrize.h %D%/parametrize_values.h %D%/prune.h %D%/prune_network.h %D%/quantize.h %D%/prune.txt %D%/quantize.txt %D%/toy_layers.h %D%/state_layers.h %D%/suite.h tests/oracle/make_layers.py tests/oracle/layers.txt \
	tests/oracle/option_rows.h tests/oracle/option_values.py tests/oracle/make_layer_options.py tests/oracle/layer_options.txt \
	tests/oracle/make_strides.py tests/oracle/strides.txt

if HAVE_CHECK
TN_MODULE_TESTS = \
	%D%/test_backward_graphs \
	%D%/test_backward_hooks \
	%D%/test_building \
	%D%/test_call \
	%D%/test_chain \
	%D%/test_chain_conv \
	%D%/test_convert \
	%D%/test_copy \
	%D%/test_depth \
	%D%/test_every_layer \
	%D%/test_every_layer_threads \
	%D%/test_fuse_list \
	%D%/test_layer_options \
	%D%/test_hooks \
	%D%/test_hooks_life \
	%D%/test_hooks_registration \
	%D%/test_init \
	%D%/test_container \
	%D%/test_layer_values \
	%D%/test_lazy \
	%D%/test_loss_weights \
	%D%/test_make \
	%D%/test_memory \
	%D%/test_mode \
	%D%/test_names \
	%D%/test_options \
	%D%/test_option_sizes \
	%D%/test_own_forward \
	%D%/test_parameters \
	%D%/test_parametrize \
	%D%/test_parametrize_cache \
	%D%/test_parametrize_copies \
	%D%/test_parametrize_memory \
	%D%/test_parametrize_rules \
	%D%/test_parametrize_values \
	%D%/test_paths \
	%D%/test_process_end \
	%D%/test_prune \
	%D%/test_prune_chains \
	%D%/test_prune_methods \
	%D%/test_prune_network \
	%D%/test_prune_pytorch \
	%D%/test_prune_reload \
	%D%/test_quantize \
	%D%/test_quantize_flows \
	%D%/test_quantize_layers \
	%D%/test_quantize_pytorch \
	%D%/test_layers \
	%D%/test_rows \
	%D%/test_slots \
	%D%/test_state \
	%D%/test_state_hooks \
	%D%/test_state_in \
	%D%/test_state_out \
	%D%/test_strides \
	%D%/test_locale_environment \
	%D%/test_vision \
	%D%/test_walks
check_PROGRAMS += $(TN_MODULE_TESTS)
TESTS += $(TN_MODULE_TESTS)
%C%_test_building_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_building_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_call_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_call_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_backward_hooks_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_backward_hooks_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_every_layer_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_every_layer_threads_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_hooks_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_hooks_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_backward_graphs_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_backward_graphs_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_hooks_life_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_hooks_life_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_hooks_registration_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_hooks_registration_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_init_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_init_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_chain_SOURCES = %D%/test_chain.c %D%/chains.h
%C%_test_chain_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_chain_LDADD = $(TN_LINK_TEST)
%C%_test_chain_conv_SOURCES = %D%/test_chain_conv.c %D%/chains.h
%C%_test_chain_conv_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_chain_conv_LDADD = $(TN_LINK_TEST)
%C%_test_container_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_container_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_layer_values_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_layer_values_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_lazy_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_lazy_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_make_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_make_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_loss_weights_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_loss_weights_LDADD = $(TN_LINK_TEST)
%C%_test_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_memory_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_options_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_options_LDADD = $(TN_LINK_TEST)
%C%_test_own_forward_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_own_forward_LDADD = $(TN_LINK_TEST)
%C%_test_parametrize_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_parametrize_LDADD = $(TN_LINK_TEST)
%C%_test_parametrize_cache_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_parametrize_cache_LDADD = $(TN_LINK_TEST)
%C%_test_parametrize_copies_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_parametrize_copies_LDADD = $(TN_LINK_TEST)
%C%_test_parametrize_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_parametrize_memory_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_parametrize_rules_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_parametrize_rules_LDADD = $(TN_LINK_TEST)
%C%_test_parametrize_values_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_parametrize_values_LDADD = $(TN_LINK_TEST)
%C%_test_paths_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_paths_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_process_end_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_process_end_LDADD = $(TN_LINK_TEST)
%C%_test_fuse_list_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_fuse_list_LDADD = $(TN_LINK_TEST)
%C%_test_quantize_layers_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_quantize_layers_LDADD = $(TN_LINK_TEST)
%C%_test_quantize_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_quantize_LDADD = $(TN_LINK_TEST)
%C%_test_quantize_flows_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_quantize_flows_LDADD = $(TN_LINK_TEST)
%C%_test_quantize_pytorch_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_quantize_pytorch_LDADD = $(TN_LINK_TEST)
%C%_test_prune_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_prune_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_prune_chains_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_prune_chains_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_prune_methods_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_prune_methods_LDADD = $(TN_LINK_TEST_CORE)
EXTRA_%C%_test_prune_methods_DEPENDENCIES = %D%/prune_plugin.la
%C%_test_prune_network_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_prune_network_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_prune_pytorch_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_prune_pytorch_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_prune_reload_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_prune_reload_LDADD = $(TN_LINK_TEST_CORE)
check_LTLIBRARIES += %D%/prune_plugin.la
%C%_prune_plugin_la_SOURCES = %D%/prune_plugin.c
%C%_prune_plugin_la_CPPFLAGS = $(TN_PLUGIN_CPPFLAGS)
%C%_prune_plugin_la_LDFLAGS = $(TN_PLUGIN_LINK) -rpath /nowhere

# Pruning beside PyTorch, which PYTHON has, with another seed each time (SEED=N: with that one).
prune: %D%/test_prune_pytorch
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/%D%/make_prune.py %D%/make_quantize.py $${SEED:-$$(date +%s)} 60 \
	    >%D%/prune.live && \
	TENON_TEST_PRUNE=%D%/prune.live $(builddir)/run $(builddir)/%D%/test_prune_pytorch
CLEANFILES += %D%/prune.live
%C%_test_layers_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_layers_LDADD = $(TN_LINK_TEST)
%C%_test_rows_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_rows_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_slots_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_slots_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_state_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_state_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_state_hooks_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_state_hooks_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_state_in_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_state_in_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_state_out_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_state_out_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_locale_environment_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_locale_environment_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_convert_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_convert_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_depth_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_depth_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_copy_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_copy_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_mode_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_mode_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_names_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_names_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_vision_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_vision_LDADD = $(TN_LINK_TEST)
%C%_test_option_sizes_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_option_sizes_LDADD = $(TN_LINK_TEST)
%C%_test_walks_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_walks_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_parameters_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_parameters_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_every_layer_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_every_layer_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_layer_options_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_layer_options_LDADD = $(TN_LINK_TEST)
%C%_test_strides_CPPFLAGS = $(TN_TEST_CPPFLAGS) -DSTRIDES_FILE='"$(abs_srcdir)/tests/oracle/strides.txt"'
%C%_test_strides_LDADD = $(TN_LINK_TEST_CORE)
endif
