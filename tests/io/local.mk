# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/interchange.py %D%/failing_calls.h %D%/hostile_files.sh %D%/streams.sh %D%/make_safetensors_npy.py %D%/make_pytorch_npz.py %D%/make_torchscript.py %D%/memory.h %D%/registered_formats.h %D%/states.h %D%/checkpoint_sum.h %D%/state_values.h %D%/files

TESTS += %D%/hostile_files.sh %D%/streams.sh

# Files both ways with PyTorch, safetensors and NumPy, which PYTHON has (else: SKIP); ResNet-18 of
# full size; what tenon summary counts.
.PHONY: interchange
interchange: all
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/%D%/interchange.py $(srcdir) $(builddir) || test $$? -eq 77

if HAVE_CHECK
check_PROGRAMS += %D%/test_siblings
TESTS += %D%/test_siblings
%C%_test_siblings_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_siblings_LDADD = $(TN_LINK_TEST_CORE)

check_PROGRAMS += %D%/test_files
TESTS += %D%/test_files
%C%_test_files_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_files_LDADD = $(TN_LINK_TEST_CORE)
check_PROGRAMS += %D%/test_checkpoint %D%/test_npy %D%/test_npz %D%/test_pytorch %D%/test_torchscript
TESTS += %D%/test_checkpoint %D%/test_npy %D%/test_npz %D%/test_pytorch %D%/test_torchscript
%C%_test_checkpoint_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_checkpoint_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_npy_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_npy_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_npz_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_npz_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_pytorch_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_pytorch_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_torchscript_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_torchscript_LDADD = $(TN_LINK_TEST_CORE)
if HAVE_JANSSON
check_PROGRAMS += %D%/test_folder %D%/test_module_load %D%/test_safetensors_index %D%/test_processes %D%/test_safetensors %D%/test_saving %D%/test_states
TESTS += %D%/test_folder %D%/test_module_load %D%/test_safetensors_index %D%/test_processes %D%/test_safetensors %D%/test_saving %D%/test_states
%C%_test_folder_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_folder_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_module_load_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_module_load_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_safetensors_index_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_safetensors_index_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_processes_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_processes_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_safetensors_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_safetensors_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_saving_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_saving_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_states_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_states_LDADD = $(TN_LINK_TEST_CORE)
endif
endif
