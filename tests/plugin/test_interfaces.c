/* SPDX-License-Identifier: MIT
 *
 * Interfaces that plugins provide for each other: a plugin finds those of the plugins that it
 * requires; a wrong id, a wrong table, or a plugin that does not require the provider is refused.
 */
#include "tests/plugin/suite.h"

#include <tenon/query.h>

enum { OK = TN_OUTCOME_OK, REFUSED = TN_OUTCOME_REFUSED, FAILED = TN_OUTCOME_FAILED };

struct rules {
    int64_t (*twice)(int64_t x);
    int64_t (*thrice)(int64_t x);
};

START_TEST(a_plugin_uses_what_another_gives_that_it_requires)
{
    place("takes", "gives", NULL);
    ck_assert_msg(tn_plugin_activate("org.tenon.test.a_taker") == TN_OK, "%s", tn_error_text());
    expect("takes.so", OK, TN_STAGE_ACTIVATE, "");
    expect("gives.so", OK, TN_STAGE_ACTIVATE, "");
}
END_TEST

START_TEST(one_that_does_not_require_the_giver_is_refused)
{
    place("takes_unasked", "gives", NULL);
    ck_assert_int_ne(tn_plugin_activate("org.tenon.test.unasked"), TN_OK);
    expect("takes_unasked.so", REFUSED, TN_STAGE_ACTIVATE,
           "provided by \"org.tenon.test.gives\", which is not among the requirements of the "
           "plugin \"org.tenon.test.unasked\"");
}
END_TEST

START_TEST(a_program_finds_the_newest_revision_that_fits)
{
    tn_interface_need need = { "org.tenon.test.gives.rules", 0, 9, sizeof(void (*)(void)), 0 };
    uint32_t revision = 0;

    place("gives", NULL);
    const struct rules *rules = tn_interface_find(NULL, &need, &revision);
    ck_assert_msg(rules != NULL, "%s", tn_error_text());
    ck_assert_int_eq(revision, 2);
    ck_assert_int_eq(rules->twice(4), 8);
    need.max = 1;
    ck_assert_ptr_nonnull(tn_interface_find(NULL, &need, &revision));
    ck_assert_int_eq(revision, 1);
    need.size = sizeof(struct rules); /* revision 1 is shorter */
    ck_assert_ptr_null(tn_interface_find(NULL, &need, NULL));
    expect_failure(TN_ERR_VERSION, TN_ERR_VERSION,
                   "compiled against another version, got 16 bytes; expected 8");
    need.min = need.max = 3;
    ck_assert_ptr_null(tn_interface_find(NULL, &need, NULL));
    expect_failure(TN_ERR_VERSION, TN_ERR_VERSION,
                   "org.tenon.test.gives has no revision from 3 to 3");
    need = (tn_interface_need){ "org.tenon.test.gives.draft", 0, 0, sizeof(void *), 0 };
    ck_assert_ptr_null(tn_interface_find(NULL, &need, NULL));
    expect_failure(TN_ERR_VERSION, TN_ERR_VERSION,
                   "compiled against another draft, got 8 bytes; expected 16");
    need.id = "org.tenon.test.absent";
    ck_assert_ptr_null(tn_interface_find(NULL, &need, NULL));
    expect_failure(TN_ERR_KEY, TN_ERR_KEY,
                   "interface \"org.tenon.test.absent\": no plugin provides it");
    need.reserved = 1;
    ck_assert_ptr_null(tn_interface_find(NULL, &need, NULL));
    expect_failure(TN_ERR_VALUE, TN_ERR_VALUE, "need: reserved: nonzero, got 1; expected 0");
}
END_TEST

START_TEST(ids_and_tables_that_are_wrong_refuse_the_plugin)
{
    place("gives", "gives_of_host", "gives_of_other", "gives_twice", "gives_nothing",
          "gives_reserved", "gives_clash", NULL);
    expect("gives.so", OK, TN_STAGE_VERSION, "");
    expect("gives_of_host.so", REFUSED, TN_STAGE_VERSION,
           "interface \"tenon.op\": id: taken by the host");
    expect("gives_of_other.so", REFUSED, TN_STAGE_VERSION,
           "interface \"org.tenon.test.gives.rules\": wrong id; expected one that begins with the "
           "id of the plugin (\"org.tenon.test.of_other.name\")");
    expect("gives_twice.so", REFUSED, TN_STAGE_VERSION, "revision 1 is declared twice");
    expect("gives_nothing.so", REFUSED, TN_STAGE_VERSION, "wrong table, got 16 bytes and NULL");
    expect("gives_reserved.so", REFUSED, TN_STAGE_VERSION, "reserved: reserved in Tenon");
    expect("gives_clash.so", REFUSED, TN_STAGE_VERSION, "provided by org.tenon.test.gives (");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interfaces of plugins");
    TCase *tests = tcase_create("interfaces of plugins");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, take_down);
    tcase_add_test(tests, a_plugin_uses_what_another_gives_that_it_requires);
    tcase_add_test(tests, one_that_does_not_require_the_giver_is_refused);
    tcase_add_test(tests, a_program_finds_the_newest_revision_that_fits);
    tcase_add_test(tests, ids_and_tables_that_are_wrong_refuse_the_plugin);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
