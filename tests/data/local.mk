# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/files %D%/images.h %D%/make_images.py %D%/make_transforms.py %D%/toy.h \
	%D%/transforms.h

if HAVE_CHECK
check_PROGRAMS += %D%/test_builtin %D%/test_dataset %D%/test_images %D%/test_loader \
	%D%/test_loader_threads
TESTS += %D%/test_builtin %D%/test_dataset %D%/test_images %D%/test_loader %D%/test_loader_threads
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
endif
