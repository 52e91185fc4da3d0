/* SPDX-License-Identifier: MIT
 *
 * Every allocation of discovery is made to fail in turn: an error each time, no crash, no leak,
 * and the next call goes on where memory ran out. Needs the core's internals (tn__fail_alloc),
 * and a process for each turn. */
#include "tests/plugin/place.h"

#include <sys/wait.h>

#include "core/plugin/internal.h"

enum { DONE = 3 };

/* In a child: returns whether all allocations went well (DONE), or 0 when failing was met
 * decently. */
static int attempt(uint64_t nth)
{
    tn_plugin_report report;
    tn__fail_alloc(nth);
    int64_t count = tn_plugin_count();
    bool failed = tn__fail_alloc(0) >= nth;
    if (count < 0 && tn_error_code() != TN_ERR_MEMORY)
        return 10;
    if (count < 0 && !failed)
        return 11;
    tn_error_clear();
    int64_t again = tn_plugin_count();
    if (again < count || again < 5)
        return 12;
    int good = 0;
    for (int64_t i = 0; i < again; i++) {
        if (tn_plugin_report_at(i, &report) != TN_OK || !report.reason || !report.file[0])
            return 13;
        if (report.outcome != TN_OUTCOME_OK && !report.reason[0])
            return 14;
        good += report.outcome == TN_OUTCOME_OK && !report.refused;
    }
    if (!failed && good < 3)
        return 15;
    tn_error_clear();
    if (tn_registry_find(TN_KIND_tn_layer, "GoodLayer") &&
        tn_plugin_activate("org.tenon.test.good") != TN_OK)
        return 16;
    tn_error_clear();
    tn_shutdown();
    return failed ? 0 : DONE;
}

START_TEST(each_allocation_of_discovery_fails_in_turn_law_4)
{
    place("good", "needs_good", "options", "taken_name", "text", "failing_query", NULL);
    setenv("TENON_OPTIONS_SIZES", "[1, 2, 3]", 1);
    setenv("TENON_LOG", "off", 1);
    for (uint64_t nth = 1; nth < 2000; nth++) {
        int status;
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (!child)
            exit(attempt(nth)); /* exit, so that LeakSanitizer has its say */
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status), "allocation %d: killed by signal %d", (int)nth,
                      WTERMSIG(status));
        if (WEXITSTATUS(status) == DONE) {
            ck_assert_uint_gt(nth, 20);
            return;
        }
        ck_assert_msg(!WEXITSTATUS(status), "allocation %d: check %d failed", (int)nth,
                      WEXITSTATUS(status));
    }
    ck_abort_msg("discovery never ran out of allocations to fail");
}
END_TEST

static Suite *memory(void)
{
    Suite *suite = suite_create("memory of the loader");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up, take_down);
    tcase_set_timeout(all, 300);
    tcase_add_test(all, each_allocation_of_discovery_fails_in_turn_law_4);
    suite_add_tcase(suite, all);
    return suite;
}

int main(void)
{
    return run_suite(memory());
}
