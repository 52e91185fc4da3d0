# SPDX-License-Identifier: MIT

EXTRA_DIST += \
	%D%/fixtures/build.sh \
	%D%/fixtures/crafted.c \
	%D%/fixtures/faulty.c \
	%D%/fixtures/interfaces.c \
	%D%/fixtures/misbehaving.c \
	%D%/fixtures/plain.c \
	%D%/logged.h \
	%D%/suite.h \
	%D%/stubs.h

# The bad plugins that the tests look at, and good ones.
tests/plugin/fixtures.stamp: $(srcdir)/%D%/fixtures/build.sh $(srcdir)/%D%/fixtures/plain.c \
		$(srcdir)/%D%/fixtures/crafted.c $(srcdir)/%D%/fixtures/faulty.c \
		$(srcdir)/%D%/fixtures/interfaces.c $(srcdir)/%D%/fixtures/misbehaving.c \
		$(TN_PUBLIC) $(TN_API_GENERATED) $(TN_OPS_GENERATED)
	$(AM_V_GEN)$(MKDIR_P) tests/plugin && $(SHELL) $(srcdir)/%D%/fixtures/build.sh \
	    '$(CC) $(TN_SDK_CPPFLAGS) $(CPPFLAGS) $(CFLAGS) $(TN_SANITIZE)' '$(srcdir)/%D%/fixtures' tests/plugin/built && touch $@
CLEANFILES += tests/plugin/fixtures.stamp

# The calls of test_nulls, from what the headers say.
EXTRA_DIST += %D%/nulls.pl
tests/plugin/nulls.h: $(srcdir)/%D%/nulls.pl sdk/api/api.stamp
	$(AM_V_GEN)$(MKDIR_P) tests/plugin && f=sdk/api.json; test -f $$f || f=$(srcdir)/$$f; \
	    $(PERL) $(srcdir)/%D%/nulls.pl $$f $@
CLEANFILES += tests/plugin/nulls.h

clean-local: clean-plugin-fixtures
.PHONY: clean-plugin-fixtures
clean-plugin-fixtures:
	rm -rf tests/plugin/built tests/plugin/place.*

if HAVE_CHECK
TN_PLUGIN_TESTS = \
	%D%/test_check \
	%D%/test_cores \
	%D%/test_descriptors \
	%D%/test_environment \
	%D%/test_filter \
	%D%/test_interfaces \
	%D%/test_kinds \
	%D%/test_loader \
	%D%/test_memory \
	%D%/test_names \
	%D%/test_nulls \
	%D%/test_owners \
	%D%/test_privilege \
	%D%/test_reserved \
	%D%/test_threads \
	%D%/test_unregister
check_PROGRAMS += $(TN_PLUGIN_TESTS)
TESTS += $(TN_PLUGIN_TESTS)

%C%_test_check_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_check_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_check_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_cores_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_cores_LDADD = $(TN_LINK_TEST_CORE)
EXTRA_%C%_test_cores_DEPENDENCIES = tests/plugin/fixtures.stamp libtenon.la
%C%_test_descriptors_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_descriptors_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_descriptors_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_environment_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_environment_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_environment_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_filter_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_filter_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_filter_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_interfaces_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_interfaces_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_interfaces_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_kinds_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_kinds_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_unregister_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_unregister_LDADD = $(TN_LINK_TEST_CORE)
%C%_test_owners_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_owners_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_owners_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_loader_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_loader_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_loader_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_memory_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_memory_LDADD = $(TN_LINK_TEST_CORE)
EXTRA_%C%_test_memory_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_names_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_names_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_names_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_nulls_CPPFLAGS = -I$(builddir) $(TN_TEST_CPPFLAGS)
%C%_test_nulls_LDADD = $(TN_LINK_TEST) $(LIBM)
$(%C%_test_nulls_OBJECTS): tests/plugin/nulls.h
%C%_test_privilege_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_privilege_LDADD = $(TN_LINK_TEST_CORE)
EXTRA_%C%_test_privilege_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_reserved_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_reserved_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_reserved_DEPENDENCIES = tests/plugin/fixtures.stamp
%C%_test_threads_CPPFLAGS = $(TN_TEST_CPPFLAGS)
%C%_test_threads_LDADD = $(TN_LINK_TEST)
EXTRA_%C%_test_threads_DEPENDENCIES = tests/plugin/fixtures.stamp
endif

EXTRA_DIST += %D%/new.sh %D%/test_generator.sh %D%/test_tool.sh
TESTS += %D%/new.sh %D%/test_generator.sh %D%/test_tool.sh
%D%/test_tool.log: tests/plugin/fixtures.stamp tools/tenon
