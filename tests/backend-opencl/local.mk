# SPDX-License-Identifier: MIT

TESTS += %D%/hostile.sh
EXTRA_DIST += %D%/hostile.sh
if HAVE_OPENCL
check_LTLIBRARIES += %D%/fake.la
%C%_fake_la_SOURCES = %D%/fake.c
%C%_fake_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
endif

if HAVE_CHECK
check_PROGRAMS += %D%/test_opencl
TESTS += %D%/test_opencl
%C%_test_opencl_SOURCES = %D%/test_opencl.c tests/gpu/direct.h tests/gpu/optional.h
%C%_test_opencl_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_opencl_LDADD = $(TN_LINK_TEST_CORE)
check_LTLIBRARIES += %D%/failing.la
%C%_failing_la_SOURCES = %D%/failing.c
%C%_failing_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
endif
