# SPDX-License-Identifier: MIT
#
# Networks and files compared with PyTorch. In make check: LeNet-5, ResNet-18, a transformer encoder and an LSTM against what PyTorch wrote into
# files/. Live, with PYTHON naming a Python that has PyTorch, safetensors and NumPy (without them they say SKIP):
# networks.py compares the networks of examples/networks with those of torchvision and transformers; network_lines.sh counts their lines;
# printed.py reads the printed text of every model of torchvision, prints it again and loads its weights.
# make_models_plugin.py compares the networks of the plugin tenon.models (test_models_plugin has their small ones in make check).
# make_lora.py trains LoRA adapters of GPT-2 small (test_lora has a small one in make check).
#   make models        the same with files of this hour, and whether those here are still what PyTorch says
# random_networks.py runs random networks in all ways beside PyTorch; it prints the program of a difference.
#   make random-networks PYTHON=... NETWORKS="--seed 7 --count 1000"
EXTRA_DIST += %D%/random_networks.py %D%/random_network_steps.py
EXTRA_DIST += %D%/lora_values.h %D%/make_lora.py %D%/make_spec_networks.py %D%/make_models_plugin.py %D%/networks.py %D%/printed.py %D%/network_lines.sh %D%/files
TESTS += %D%/network_lines.sh
.PHONY: models random-networks
random-networks: all
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/%D%/random_networks.py $(srcdir) $(builddir) $(NETWORKS) || test $$? -eq 77
check_PROGRAMS += %D%/lora %D%/printed %D%/models_plugin
%C%_lora_SOURCES = %D%/lora.c
%C%_lora_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
%C%_lora_LDADD = $(TN_LINK)
%C%_models_plugin_SOURCES = %D%/models_plugin.c
%C%_models_plugin_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
%C%_models_plugin_LDADD = $(TN_LINK) $(LIBM)
%C%_printed_SOURCES = %D%/printed.c
%C%_printed_CPPFLAGS = $(TN_PROGRAM_CPPFLAGS)
%C%_printed_LDADD = $(TN_LINK)

if HAVE_CHECK
check_PROGRAMS += %D%/test_lora
TESTS += %D%/test_lora
%C%_test_lora_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_lora_LDADD = $(TN_LINK_TEST)
check_PROGRAMS += %D%/test_models_plugin
TESTS += %D%/test_models_plugin
%C%_test_models_plugin_SOURCES = %D%/test_models_plugin.c $(TN_BACKEND_SHARED)
%C%_test_models_plugin_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_models_plugin_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_models_plugin_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
if HAVE_JANSSON
check_PROGRAMS += %D%/test_spec_networks
TESTS += %D%/test_spec_networks
%C%_test_spec_networks_SOURCES = %D%/test_spec_networks.c $(TN_BACKEND_SHARED)
%C%_test_spec_networks_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_spec_networks_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_spec_networks_DEPENDENCIES = $(TN_BACKEND_EXAMPLES)
models: all tests/models/lora tests/models/test_spec_networks tests/models/printed tests/models/models_plugin $(TN_NETWORKS)
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/tests/models/make_spec_networks.py --live $(srcdir) $(builddir) || test $$? -eq 77
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/tests/models/make_models_plugin.py --live $(srcdir) $(builddir) || test $$? -eq 77
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/tests/models/make_lora.py --live $(builddir) || test $$? -eq 77
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/tests/models/networks.py $(builddir) || test $$? -eq 77
	@python='$(PYTHON)'; $${python:-python3} $(srcdir)/tests/models/printed.py $(builddir) || test $$? -eq 77
endif
endif
