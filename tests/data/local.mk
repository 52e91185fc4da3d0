# SPDX-License-Identifier: MIT

EXTRA_DIST += %D%/files %D%/images.h %D%/make_images.py %D%/make_transforms.py %D%/transforms.h

if HAVE_CHECK
check_PROGRAMS += %D%/test_builtin %D%/test_images
TESTS += %D%/test_builtin %D%/test_images
%C%_test_builtin_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_builtin_LDADD = $(TN_LINK_TEST)
%C%_test_images_CPPFLAGS = $(TN_TEST_CPPFLAGS) -I$(srcdir)/%D%
%C%_test_images_LDADD = $(TN_LINK_TEST)
endif
