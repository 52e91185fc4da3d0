/* SPDX-License-Identifier: MIT
 *
 * TENON_PLUGINS: the plugins that may be loaded, by name and by id. */
#include "tests/plugin/logged.h"

enum { OK = TN_OUTCOME_OK, REFUSED = TN_OUTCOME_REFUSED };

START_TEST(plugins_are_allowed_and_denied_by_globs)
{
    place("good", "counting", "older", NULL);
    setenv("TENON_PLUGINS", " good , o*,!old*", 1);
    expect("counting.so", REFUSED, TN_STAGE_FOUND, "excludes \"counting\"");
    expect("older.so", REFUSED, TN_STAGE_FOUND, "excludes \"older\"");
    expect_good_beside();
}
END_TEST

START_TEST(denials_alone_let_the_rest_in)
{
    place("good", "counting", "older", NULL);
    setenv("TENON_PLUGINS", "!count*", 1);
    expect("counting.so", REFUSED, TN_STAGE_FOUND, "TENON_PLUGINS=!count*");
    expect("older.so", OK, TN_STAGE_VERSION, "");
    expect_good_beside();
    expect_failure(tn_plugin_load(path_of("counting.so")), TN_ERR_REFUSED, "REFUSED at found");
}
END_TEST

START_TEST(a_plugin_is_denied_by_its_id)
{
    place("good", "counting", "older", NULL);
    setenv("TENON_PLUGINS", "!org.tenon.test.older", 1);
    expect("older.so", REFUSED, TN_STAGE_FOUND, "excludes \"org.tenon.test.older\"");
    expect("counting.so", OK, TN_STAGE_VERSION, "");
    expect_good_beside();
    ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(a_plugin_is_allowed_by_its_id)
{
    place("good", "counting", "older", NULL);
    setenv("TENON_PLUGINS", "good,org.tenon.test.[o-p]lder", 1);
    expect("older.so", OK, TN_STAGE_VERSION, "");
    expect("counting.so", REFUSED, TN_STAGE_FOUND, "excludes \"");
    expect_good_beside();
}
END_TEST

START_TEST(a_list_of_plugins_has_the_globs_of_the_shell)
{
    place("good", "counting", "older", NULL);
    setenv("TENON_PLUGINS", "[co]*,goo?,!o[a-k]der", 1);
    expect("counting.so", OK, TN_STAGE_VERSION, "");
    expect("older.so", OK, TN_STAGE_VERSION, "");
    expect_good_beside();
    ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(a_name_in_the_list_that_no_plugin_has_is_warned_about)
{
    place("good", "counting", NULL);
    setenv("TENON_PLUGINS", "good,cuonting,away*,!god,!backend-elsewhere,somewhere", 1);
    ck_assert_int_ge(tn_plugin_count(), 2);
    ck_assert_str_eq(logged,
                     "TENON_PLUGINS: no plugin is called \"cuonting\"; did you mean \"counting\"?\n"
                     "TENON_PLUGINS: no plugin is called \"god\"; did you mean \"good\"?\n"
                     "TENON_PLUGINS: no plugin is called \"backend-elsewhere\"\n"
                     "TENON_PLUGINS: no plugin is called \"somewhere\"\n");
    expect_good_beside();
}
END_TEST

START_TEST(a_filter_that_lets_nothing_in_is_named_in_every_error)
{
    place("good", "counting", NULL);
    setenv("TENON_PLUGINS", "nothing*", 1);
    ck_assert_ptr_null(tn_device_find("cpu"));
    expect_failure(TN_ERR_UNAVAILABLE, tn_error_code(), "TENON_PLUGINS=\"nothing*\" excludes ");
    ck_assert_ptr_null(tn_op_find("add", 0));
    expect_failure(TN_ERR_NOT_IMPLEMENTED, tn_error_code(), "TENON_PLUGINS=\"nothing*\" excludes ");
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "Linear"));
    expect_failure(TN_ERR_KEY, tn_error_code(), "TENON_PLUGINS=\"nothing*\" excludes ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("filter");
    TCase *all = tcase_create("filter");

    tcase_add_checked_fixture(all, set_up_log, take_down);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, plugins_are_allowed_and_denied_by_globs);
    tcase_add_test(all, denials_alone_let_the_rest_in);
    tcase_add_test(all, a_plugin_is_denied_by_its_id);
    tcase_add_test(all, a_plugin_is_allowed_by_its_id);
    tcase_add_test(all, a_list_of_plugins_has_the_globs_of_the_shell);
    tcase_add_test(all, a_name_in_the_list_that_no_plugin_has_is_warned_about);
    tcase_add_test(all, a_filter_that_lets_nothing_in_is_named_in_every_error);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
