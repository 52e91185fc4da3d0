# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/conform_cases.h %D%/empty_batches.txt %D%/control.h %D%/exchange.h %D%/grown_op.h %D%/json_skip.h %D%/make_networks.py %D%/networks.h %D%/networks.txt %D%/operator_case.h %D%/other_passes.h %D%/plan_module.h %D%/plan_training.h %D%/suite.h %D%/traced.h
.PHONY: graph-networks

if HAVE_CHECK
TN_GRAPH_TESTS = %D%/test_callbacks %D%/test_memory_results %D%/test_script_threads %D%/test_graph %D%/test_text %D%/test_trace %D%/test_trace_refusals \
	%D%/test_trace_editing %D%/test_graph_modules %D%/test_traced_layers %D%/test_layer_forms %D%/test_passes_plugin \
	%D%/test_pass_inplace \
	%D%/test_symbols %D%/test_passes %D%/test_compilers %D%/test_comm \
	%D%/test_plans %D%/test_plan_steps %D%/test_plan_module %D%/test_plan_train %D%/test_plan_train_guards %D%/test_plan_train_cases \
	%D%/test_plan_train_memory %D%/test_plan_whole_step %D%/test_recompute_pass %D%/test_plan_train_eager %D%/test_plan_train_state %D%/test_script \
	%D%/test_control %D%/test_control_graphs %D%/test_control_refusals %D%/test_ported_graphs \
	%D%/test_traced_operators %D%/test_script_plans %D%/test_fuse %D%/test_random_graphs %D%/test_plan_networks %D%/test_pass_operators \
	%D%/test_plan_device_graph %D%/test_plan_step_results %D%/test_empty_batches
if HAVE_JANSSON
TN_GRAPH_TESTS += %D%/test_script_files %D%/test_script_trees %D%/test_control_scripts \
	%D%/test_script_operators %D%/test_script_modes
endif
check_PROGRAMS += $(TN_GRAPH_TESTS)
TESTS += $(TN_GRAPH_TESTS)
%C%_test_callbacks_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_callbacks_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_memory_results_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_memory_results_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_script_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_script_threads_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_graph_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_graph_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_text_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_text_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_trace_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_trace_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_trace_refusals_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_trace_refusals_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_trace_editing_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_trace_editing_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_graph_modules_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_graph_modules_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_traced_operators_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_traced_operators_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_layer_forms_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_layer_forms_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_traced_layers_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_traced_layers_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_pass_inplace_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_pass_inplace_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_passes_plugin_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_passes_plugin_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_symbols_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_symbols_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_passes_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_passes_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_compilers_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_compilers_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_comm_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_comm_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_train_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_train_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_train_guards_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_train_guards_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_train_eager_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_train_eager_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_train_state_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_train_state_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_recompute_pass_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_recompute_pass_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_empty_batches_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_empty_batches_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_whole_step_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_whole_step_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_train_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_train_memory_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_train_cases_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_train_cases_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_device_graph_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_device_graph_LDADD = $(TN_LINK_TEST_CORE)
EXTRA_%C%_test_plan_device_graph_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
%C%_test_plan_step_results_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_step_results_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_pass_operators_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_pass_operators_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_networks_SOURCES = %D%/test_plan_networks.c %D%/networks.c %D%/rebuilt.c bench/networks.c \
	bench/networks.h bench/numbers.c bench/ops.h
%C%_test_plan_networks_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_networks_LDADD = $(TN_LINK_TEST_CORE)
# A hundred steps in place of two; about 20 minutes.
graph-networks: all tests/graph/test_plan_networks
	TN_GRAPH_STEPS=100 ./run tests/graph/test_plan_networks
%C%_test_plan_steps_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_steps_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plan_module_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plan_module_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_script_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_script_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_script_plans_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_script_plans_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_fuse_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_fuse_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_random_graphs_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_random_graphs_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_script_files_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_script_files_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_script_trees_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_script_trees_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_script_operators_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_script_operators_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_script_modes_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_script_modes_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_ported_graphs_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_ported_graphs_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_plans_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_plans_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_control_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_control_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_control_graphs_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_control_graphs_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_control_refusals_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_control_refusals_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_control_scripts_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_control_scripts_LDADD = $(TN_LINK_TEST_CORE)
endif
