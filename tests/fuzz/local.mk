# SPDX-License-Identifier: MIT
#
# A fuzz target is a row in TN_FUZZERS with the three lines below, a file fuzz_NAME.c and a folder corpus/NAME.
# How to run one: fuzz.h.

TN_FUZZERS = \
	%D%/fuzz_cases \
	%D%/fuzz_checkpoint \
	%D%/fuzz_graph \
	%D%/fuzz_npy \
	%D%/fuzz_npz \
	%D%/fuzz_number \
	%D%/fuzz_onnx \
	%D%/fuzz_plugin \
	%D%/fuzz_pytorch \
	%D%/fuzz_spec \
	%D%/fuzz_wav

if HAVE_JANSSON
TN_FUZZERS += %D%/fuzz_pt2 %D%/fuzz_safetensors %D%/fuzz_script
endif

if FUZZERS
TN_FUZZ_MAIN =
TN_FUZZ_LINK = -fsanitize=fuzzer
EXTRA_PROGRAMS = $(TN_FUZZERS)
else
TN_FUZZ_MAIN = %D%/fuzz_main.c
TN_FUZZ_LINK =
check_PROGRAMS += $(TN_FUZZERS)
TESTS += %D%/run_corpus.sh
endif

%C%_fuzz_cases_SOURCES = %D%/fuzz_cases.c %D%/fuzz.h sdk/conform/cases.c sdk/conform/layers_cases.c \
	sdk/conform/case_tensors.c sdk/conform/files.c sdk/conform/conform.h sdk/conform/layers.h $(TN_CONFORM_REFERENCE) $(TN_FUZZ_MAIN)
%C%_fuzz_cases_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_cases_CFLAGS = $(AM_CFLAGS) $(TN_FUZZED_CFLAGS)
%C%_fuzz_cases_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_cases_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_checkpoint_SOURCES = %D%/fuzz_checkpoint.c %D%/file.h %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_checkpoint_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_checkpoint_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_checkpoint_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_npy_SOURCES = %D%/fuzz_npy.c %D%/file.h %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_npy_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_npy_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_npy_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_npz_SOURCES = %D%/fuzz_npz.c %D%/file.h %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_npz_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_npz_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_npz_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_number_SOURCES = %D%/fuzz_number.c %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_number_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_number_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_number_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_onnx_SOURCES = %D%/fuzz_onnx.c %D%/file.h %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_onnx_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_onnx_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_onnx_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_pt2_SOURCES = %D%/fuzz_pt2.c %D%/file.h %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_pt2_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_pt2_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_pt2_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_pytorch_SOURCES = %D%/fuzz_pytorch.c %D%/file.h %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_pytorch_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_pytorch_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_pytorch_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_plugin_SOURCES = %D%/fuzz_plugin.c %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_plugin_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_plugin_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_plugin_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_safetensors_SOURCES = %D%/fuzz_safetensors.c %D%/file.h %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_safetensors_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_safetensors_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_safetensors_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_script_SOURCES = %D%/fuzz_script.c %D%/file.h %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_script_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_script_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_script_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_graph_SOURCES = %D%/fuzz_graph.c %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_graph_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_graph_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_graph_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_spec_SOURCES = %D%/fuzz_spec.c %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_spec_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_spec_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_spec_LDADD = $(TN_LINK_CORE) $(LIBM)

%C%_fuzz_wav_SOURCES = %D%/fuzz_wav.c %D%/fuzz.h $(TN_FUZZ_MAIN)
%C%_fuzz_wav_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_fuzz_wav_LDFLAGS = $(TN_FUZZ_LINK) $(AM_LDFLAGS)
%C%_fuzz_wav_LDADD = $(TN_LINK_CORE) $(LIBM)

# Everything first: targets may need plugins, all need generated headers.
.PHONY: fuzzers
fuzzers: all
	$(MAKE) $(AM_MAKEFLAGS) $(TN_FUZZERS)

EXTRA_DIST += %D%/run_corpus.sh %D%/fuzz_main.c %D%/corpus
CLEANFILES += $(TN_FUZZERS)
