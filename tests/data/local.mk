# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/bpe_ids.h %D%/colors.h %D%/files %D%/images.h %D%/make_colors.py \
	%D%/make_images.py %D%/make_parts.py %D%/make_text.py %D%/make_transforms.py %D%/toy.h \
	%D%/transforms.h

if HAVE_CHECK
check_PROGRAMS += %D%/test_builtin %D%/test_dataset %D%/test_images %D%/test_loader \
	%D%/test_loader_threads %D%/test_batches %D%/test_memory %D%/test_sounds %D%/test_text
TESTS += %D%/test_builtin %D%/test_dataset %D%/test_images %D%/test_loader %D%/test_loader_threads \
	%D%/test_batches %D%/test_memory %D%/test_sounds %D%/test_text
%C%_test_builtin_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_builtin_LDADD = $(TN_LINK_TEST)
%C%_test_dataset_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_dataset_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_images_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_images_LDADD = $(TN_LINK_TEST)
%C%_test_loader_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_loader_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_loader_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_loader_threads_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_batches_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_batches_LDADD = $(TN_LINK_TEST)
%C%_test_sounds_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_sounds_LDADD = $(TN_LINK_TEST)
%C%_test_text_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_text_LDADD = $(TN_LINK_TEST)
%C%_test_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_memory_LDADD = $(TN_LINK_TEST_CORE)
endif
