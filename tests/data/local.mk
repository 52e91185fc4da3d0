# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/compare_pictures.py %D%/compare_tokens.py %D%/bpe_ids.h %D%/colors.h %D%/files %D%/images.h \
	%D%/loaders.h %D%/made_pictures.py %D%/make_colors.py %D%/make_images.py %D%/make_library_pictures.py %D%/library_pictures.h %D%/make_odd_pictures.py %D%/odd_pictures.h %D%/make_parts.py %D%/make_resized.py %D%/make_sounds.py %D%/make_spectra.py %D%/spectra.h %D%/sounds.h %D%/resized.h %D%/make_text.py %D%/make_transforms.py %D%/toy.h \
	%D%/transforms.h

if HAVE_CHECK
check_PROGRAMS += %D%/test_data_plugin %D%/test_dataset %D%/test_images %D%/test_library_pictures %D%/test_loader \
	%D%/test_loader_state %D%/test_loader_threads %D%/test_colors %D%/test_memory \
	%D%/test_picture %D%/test_tables %D%/test_wav %D%/test_text %D%/test_transforms %D%/test_resized %D%/test_spectra
TESTS += %D%/test_data_plugin %D%/test_dataset %D%/test_images %D%/test_library_pictures %D%/test_loader %D%/test_loader_state \
	%D%/test_loader_threads %D%/test_colors %D%/test_memory %D%/test_picture %D%/test_tables %D%/test_wav %D%/test_text \
	%D%/test_transforms %D%/test_resized %D%/test_spectra
%C%_test_data_plugin_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_data_plugin_LDADD = $(TN_LINK_TEST)
%C%_test_dataset_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_dataset_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_spectra_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_spectra_LDADD = $(TN_LINK_TEST) $(LIBM)
%C%_test_images_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_images_LDADD = $(TN_LINK_TEST)
%C%_test_library_pictures_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_library_pictures_LDADD = $(TN_LINK_TEST)
%C%_test_loader_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_loader_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_loader_state_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_loader_state_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_loader_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_loader_threads_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_colors_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_colors_LDADD = $(TN_LINK_TEST)
%C%_test_picture_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_picture_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_tables_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_tables_LDADD = $(TN_LINK_TEST)
%C%_test_wav_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_wav_LDADD = $(TN_LINK_TEST)
%C%_test_text_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_text_LDADD = $(TN_LINK_TEST)
%C%_test_transforms_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_transforms_LDADD = $(TN_LINK_TEST)
%C%_test_resized_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_resized_LDADD = $(TN_LINK_TEST)
%C%_test_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_memory_LDADD = $(TN_LINK_TEST_CORE)
endif

# TextBPE beside the tokenizer of transformers, transforms of pictures beside those of torchvision:
# PYTHON names a Python that has them.
.PHONY: data-tokens data-pictures data-python
data-python: all
	rm -rf %D%/python && $(MKDIR_P) %D%/python && cp -r $(srcdir)/bindings/python/tenon %D%/python
	chmod -R u+w %D%/python
	sdk=sdk; test -f sdk/api.json || sdk=$(srcdir)/sdk; \
	    $${PYTHON:-python3} $(srcdir)/bindings/python/generate.py $$sdk %D%/python/tenon/_api.py
TN_DATA_RUN = TENON_LIBRARY=$(abs_builddir)/.libs/libtenon.so PYTHONPATH=%D%/python \
	TENON_PLUGIN_PATH=$(abs_builddir)/plugins/.libs $${PYTHON:-python3}
data-tokens: data-python
	$(TN_DATA_RUN) $(srcdir)/%D%/compare_tokens.py $(abs_srcdir)/%D%/files/bpe
data-pictures: data-python
	$(TN_DATA_RUN) $(srcdir)/%D%/compare_pictures.py $(DATA_PICTURES)
clean-local: clean-data-tokens
.PHONY: clean-data-tokens
clean-data-tokens:
	rm -rf %D%/python
