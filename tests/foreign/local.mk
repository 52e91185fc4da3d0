# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/check_rules.py %D%/files %D%/function_case.py %D%/function_cases.py \
	%D%/function_cases_images.py %D%/function_cases_layers.py %D%/function_cases_numbers.py \
	%D%/function_cases_shapes.py %D%/function_cases_values.py %D%/make_functions.py \
	%D%/make_modules.py %D%/make_onnx.py %D%/onnx_operator_cases.py %D%/make_training.py \
	%D%/export_cases.py %D%/onnx_node_cases.py %D%/training.sh %D%/export.sh

if HAVE_CHECK
check_PROGRAMS += %D%/test_onnx
TESTS += %D%/test_onnx
%C%_test_onnx_SOURCES = %D%/test_onnx.c %D%/onnx_file.h
%C%_test_onnx_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_onnx_LDADD = $(TN_LINK_TEST)
check_PROGRAMS += %D%/test_export
TESTS += %D%/test_export
%C%_test_export_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_export_LDADD = $(TN_LINK_TEST)
if HAVE_JANSSON
%C%_test_export_CPPFLAGS += -DTN_TEST_PT2
TESTS += %D%/training.sh %D%/export.sh
check_PROGRAMS += %D%/test_functions %D%/test_pt2
TESTS += %D%/test_functions %D%/test_pt2
%C%_test_functions_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_functions_LDADD = $(TN_LINK_TEST)
%C%_test_pt2_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_pt2_LDADD = $(TN_LINK_TEST_CORE)
endif
endif
