/* SPDX-License-Identifier: MIT
 *
 * Two copies of the core in one process: this program has one linked in and opens libtenon.so
 * besides. A plugin belongs to the copy that called its query first (rule 20). */
#include "tests/plugin/suite.h"

#include <dlfcn.h>

START_TEST(a_plugin_refuses_the_second_core_with_words_rule_20)
{
    typedef tn_status load_fn(const char *path);
    typedef int64_t count_fn(void);
    typedef tn_status report_fn(int64_t index, tn_plugin_report * out);
    load_fn *load;
    count_fn *count;
    report_fn *report_at;
    tn_plugin_report report;
    bool found = false;
    place("good", "older", NULL);
    expect_good_beside();

    void *second = dlopen(TN_TEST_BUILDDIR "/.libs/libtenon.so", RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(second != NULL, "%s", dlerror());
    *(void **)&load = dlsym(second, "tn_plugin_load");
    *(void **)&count = dlsym(second, "tn_plugin_count");
    *(void **)&report_at = dlsym(second, "tn_plugin_report_at");
    ck_assert(load && count && report_at);
    ck_assert_msg(load != tn_plugin_load, "there is only one core");
    ck_assert_int_eq(load(path_of("good.so")), TN_ERR_REFUSED);
    for (int64_t i = 0; i < count(); i++) {
        ck_assert_int_eq(report_at(i, &report), TN_OK);
        if (strcmp(report.file, path_of("good.so")))
            continue;
        ck_assert_int_eq(report.outcome, TN_OUTCOME_REFUSED);
        ck_assert_int_eq(report.stage, TN_STAGE_QUERY);
        ck_assert_ptr_nonnull(
            strstr(report.reason, "belongs to another copy of libtenon in this process"));
        found = true;
    }
    ck_assert(found);

    /* Rule 16 holds for the library, too: threads have storage that it has to free at their end. */
    ck_assert_int_eq(dlclose(second), 0);
    ck_assert_ptr_nonnull(dlopen(TN_TEST_BUILDDIR "/.libs/libtenon.so", RTLD_NOW | RTLD_NOLOAD));
    expect_good_beside();
}
END_TEST

static Suite *cores(void)
{
    Suite *suite = suite_create("two cores");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up, take_down);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, a_plugin_refuses_the_second_core_with_words_rule_20);
    suite_add_tcase(suite, all);
    return suite;
}

int main(void)
{
    return run_suite(cores());
}
