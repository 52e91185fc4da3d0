/* SPDX-License-Identifier: MIT
 *
 * Who may have written a plugin: files and folders that others own or can write are refused, with
 * the reason in the load report and in the error of what is missing then. */
#include "tests/plugin/suite.h"

enum { OK = TN_OUTCOME_OK, REFUSED = TN_OUTCOME_REFUSED };

START_TEST(a_world_writable_file_is_refused_rule_14)
{
    place("good", "counting", NULL);
    ck_assert_int_eq(chmod(path_of("counting.so"), 0646), 0);
    expect("counting.so", REFUSED, TN_STAGE_OWNER, "the file is world-writable");
    expect_good_beside();
}
END_TEST

START_TEST(a_file_that_another_group_can_write_is_refused_rule_14)
{
    if (geteuid() != 0) {
        printf("SKIP: giving a file to another group takes root\n");
        return;
    }
    place("good", "counting", NULL);
    ck_assert_int_eq(chown(path_of("counting.so"), 0, 12345), 0);
    ck_assert_int_eq(chmod(path_of("counting.so"), 0664), 0);
    expect("counting.so", REFUSED, TN_STAGE_OWNER, "the file is writable by group 12345");
    expect_good_beside();
}
END_TEST

/* The group of the process may have one user only; another group that can only read does no harm.
 */
START_TEST(a_file_that_our_group_can_write_or_another_can_read_is_taken_rule_14)
{
    place("good", "counting", NULL);
    ck_assert_int_eq(chmod(path_of("good.so"), 0664), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(chown(path_of("counting.so"), 0, 12345), 0);
    ck_assert_int_eq(chmod(path_of("counting.so"), 0644), 0);
    expect("counting.so", OK, TN_STAGE_VERSION, "");
    expect_good_beside();
}
END_TEST

START_TEST(a_world_writable_folder_is_refused_whole_rule_14)
{
    char more[PATH_MAX];
    place("good", NULL);
    snprintf(more, sizeof more, "%s", path_of("open"));
    ck_assert_int_eq(mkdir(more, 0755), 0);
    place("counting", NULL);
    ck_assert_int_eq(rename(path_of("counting.so"), path_of("open/counting.so")), 0);
    ck_assert_int_eq(chmod(more, 0777), 0);
    setenv("TENON_PLUGIN_PATH_ADD", more, 1);
    expect("open", REFUSED, TN_STAGE_OWNER, "the folder is world-writable");
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "Counted"));
    tn_error_clear();
    expect_good_beside();
}
END_TEST

/* The error of a name that is not found says which folder was refused, and why. */
static void names_the_folder(const char *before)
{
    char words[PATH_MAX + 256];

    snprintf(words, sizeof words,
             "%s; plugin folder %s: REFUSED at owner: the folder is world-writable: anybody could "
             "have written code to it; chmod o-w",
             before, path_of("open"));
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "Counted"));
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in \"%s\"", words,
                  tn_error_text());
    tn_error_clear();
}

START_TEST(a_refused_folder_is_named_where_something_is_missing)
{
    char where[PATH_MAX + 32];
    place(NULL);
    ck_assert_int_eq(mkdir(path_of("open"), 0755), 0);
    ck_assert_int_eq(chmod(path_of("open"), 0777), 0);
    setenv("TENON_PLUGIN_PATH", path_of("open"), 1);
    snprintf(where, sizeof where, "no plugin file was found in TENON_PLUGIN_PATH=\"%s\"",
             path_of("open"));
    names_the_folder(where);
    ck_assert_ptr_null(tn_device_find("cpu"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "REFUSED at owner: the folder is world-"));
    tn_error_clear();
}
END_TEST

START_TEST(a_refused_folder_is_named_beside_plugins_that_load)
{
    place("good", NULL);
    ck_assert_int_eq(mkdir(path_of("open"), 0755), 0);
    ck_assert_int_eq(chmod(path_of("open"), 0777), 0);
    setenv("TENON_PLUGIN_PATH_ADD", path_of("open"), 1);
    names_the_folder("");
    expect_good_beside();
}
END_TEST

START_TEST(a_file_in_an_open_folder_behind_a_symlink_is_refused_rule_14)
{
    place("good", "counting", NULL);
    ck_assert_int_eq(mkdir(path_of("open"), 0777), 0);
    ck_assert_int_eq(chmod(path_of("open"), 0777), 0);
    ck_assert_int_eq(rename(path_of("counting.so"), path_of("open/counting.so")), 0);
    ck_assert_int_eq(symlink("open/counting.so", path_of("link.so")), 0);
    expect("open/counting.so", REFUSED, TN_STAGE_OWNER,
           "the folder that contains it is world-writable");
    expect_good_beside();
}
END_TEST

START_TEST(a_world_writable_folder_above_is_refused_rule_14)
{
    char words[PATH_MAX + 64];
    place("good", "counting", NULL);
    ck_assert_int_eq(mkdir(path_of("open"), 0755), 0);
    ck_assert_int_eq(mkdir(path_of("open/inner"), 0755), 0);
    ck_assert_int_eq(mkdir(path_of("open/inner/plugins"), 0755), 0);
    ck_assert_int_eq(rename(path_of("counting.so"), path_of("open/inner/plugins/counting.so")), 0);
    ck_assert_int_eq(symlink("open/inner/plugins/counting.so", path_of("link.so")), 0);
    ck_assert_int_eq(chmod(path_of("open"), 0777), 0);
    setenv("TENON_PLUGIN_PATH_ADD", path_of("open/inner/plugins"), 1);
    snprintf(words, sizeof words, "the folder %s above it is world-writable", path_of("open"));
    expect("open/inner/plugins", REFUSED, TN_STAGE_OWNER, words);
    expect("open/inner/plugins/counting.so", REFUSED, TN_STAGE_OWNER, words);
    ck_assert_ptr_null(tn_registry_find(TN_KIND_tn_layer_def, "Counted"));
    tn_error_clear();
    expect_good_beside();
}
END_TEST

START_TEST(a_folder_above_with_the_sticky_bit_is_accepted_when_what_is_in_it_is_ours_rule_14)
{
    place("good", "counting", "older", NULL);
    ck_assert_int_eq(mkdir(path_of("open"), 0777), 0);
    ck_assert_int_eq(mkdir(path_of("open/ours"), 0755), 0);
    ck_assert_int_eq(rename(path_of("counting.so"), path_of("open/ours/counting.so")), 0);
    ck_assert_int_eq(symlink("open/ours/counting.so", path_of("link.so")), 0);
    if (getuid() == 0) { /* only root can give folders away */
        ck_assert_int_eq(mkdir(path_of("open/theirs"), 0755), 0);
        ck_assert_int_eq(mkdir(path_of("open/theirs/plugins"), 0755), 0);
        ck_assert_int_eq(rename(path_of("older.so"), path_of("open/theirs/plugins/older.so")), 0);
        ck_assert_int_eq(chown(path_of("open/theirs"), 12345, 12345), 0);
        setenv("TENON_PLUGIN_PATH_ADD", path_of("open/theirs/plugins"), 1);
    }
    ck_assert_int_eq(chmod(path_of("open"), 01777), 0);
    expect("open/ours/counting.so", OK, TN_STAGE_VERSION, "");
    if (getuid() == 0)
        expect("open/theirs/plugins", REFUSED, TN_STAGE_OWNER,
               "is owned by user 12345, who could replace it");
    expect_good_beside();
}
END_TEST

START_TEST(somebody_elses_file_is_refused_rule_14)
{
    if (getuid() != 0)
        return; /* only root can give files away */
    place("good", "counting", NULL);
    ck_assert_int_eq(chown(path_of("counting.so"), 12345, 12345), 0);
    expect("counting.so", REFUSED, TN_STAGE_OWNER, "owned by user 12345");
    expect_good_beside();
}
END_TEST

static Suite *owners(void)
{
    Suite *suite = suite_create("owners");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, set_up, take_down);
    tcase_set_timeout(files, 60);
    tcase_add_test(files, a_world_writable_file_is_refused_rule_14);
    tcase_add_test(files, a_file_that_another_group_can_write_is_refused_rule_14);
    tcase_add_test(files, a_file_that_our_group_can_write_or_another_can_read_is_taken_rule_14);
    tcase_add_test(files, a_world_writable_folder_is_refused_whole_rule_14);
    tcase_add_test(files, a_refused_folder_is_named_where_something_is_missing);
    tcase_add_test(files, a_refused_folder_is_named_beside_plugins_that_load);
    tcase_add_test(files, a_file_in_an_open_folder_behind_a_symlink_is_refused_rule_14);
    tcase_add_test(files, a_world_writable_folder_above_is_refused_rule_14);
    tcase_add_test(
        files, a_folder_above_with_the_sticky_bit_is_accepted_when_what_is_in_it_is_ours_rule_14);
    tcase_add_test(files, somebody_elses_file_is_refused_rule_14);
    suite_add_tcase(suite, files);
    return suite;
}

int main(void)
{
    return run_suite(owners());
}
