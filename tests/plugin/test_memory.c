/* SPDX-License-Identifier: MIT
 *
 * Every allocation of discovery is made to fail in turn: an error each time, no crash, no leak,
 * and the next call continues where memory ran out. Needs the core's internals (tn__memory_fail),
 * and a process for each turn. */
#include "tests/plugin/suite.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "core/plugin/internal.h"

enum { DONE = 3, WORDS = 1 << 16 };

/* Returns a text with a line for each plugin and the names of each kind of contribution. It has no
 * reasons of plugins: these may be missing after a failed allocation. */
static void describe(char *out)
{
    static const uint32_t kinds[] = { TN_KIND_tn_op_def, TN_KIND_tn_layer_def,
                                      TN_KIND_tn_backend_def, TN_KIND_tn_optimizer_def,
                                      TN_KIND_tn_format_def };
    tn_plugin_report report;
    size_t used = 0;
    int64_t count = tn_plugin_count();
    for (int64_t i = 0; i < count; i++) {
        if (tn_plugin_report_at(i, &report) != TN_OK)
            return;
        used += (size_t)snprintf(out + used, WORDS - used, "%s|%s|%s|%d|%d|%lld|%lld\n", report.id,
                                 report.version, report.file, report.outcome, report.stage,
                                 (long long)report.contributions, (long long)report.refused);
    }
    for (int k = 0; k < 5; k++)
        for (int64_t i = 0; i < tn_registry_count(kinds[k]); i++)
            used += (size_t)snprintf(out + used, WORDS - used, "%u %s\n", kinds[k],
                                     tn_registry_name(kinds[k], i));
}

static char *whole, *now; /* shared with the children */

/* Runs in a child. Returns DONE if no allocation failed. Returns 0 if one failed, the first attempt
 * returned an error, and the second attempt found everything. */
static int attempt(uint64_t nth)
{
    tn__memory_fail(nth);
    int64_t count = tn_plugin_count();
    bool failed = tn__memory_fail(0) >= nth;
    if (count < 0 && tn_error_code() != TN_ERR_MEMORY)
        return 10;
    if (count < 0 && !failed)
        return 11;
    tn_error_clear();
    describe(now);
    if (tn_failed())
        return 12;
    if (strcmp(now, whole))
        return 13;
    tn__memory_fail(nth);
    tn_status status = tn_plugin_activate("org.tenon.test.counting");
    failed = tn__memory_fail(0) >= nth || failed;
    if (status != TN_OK && status != TN_ERR_MEMORY)
        return 14;
    tn_error_clear();
    if (tn_plugin_activate("org.tenon.test.counting") != TN_OK)
        return 15;
    tn_shutdown();
    return failed ? 0 : DONE;
}

START_TEST(each_allocation_of_discovery_fails_in_turn_law_4)
{
    int status;
    place("good", "needs_good", "options", "taken_name", "text", "failing_query", "counting",
          "bad_kernels", "needs_absent", "nosymbol", "cut", "some_too_many", NULL);
    whole = mmap(NULL, 2 * WORDS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(whole != MAP_FAILED);
    now = whole + WORDS;
    setenv("TENON_OPTIONS_SIZES", "[1, 2, 3]", 1);
    setenv("TENON_LOG", "off", 1);
    pid_t first = fork();
    if (!first) {
        describe(whole);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(first, &status, 0), first);
    ck_assert_ptr_nonnull(strstr(whole, "GoodLayer"));
    for (uint64_t nth = 1; nth < 2000; nth++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (!child)
            exit(attempt(nth)); /* not _exit, so that LeakSanitizer checks this process */
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status), "allocation %d: killed by signal %d", (int)nth,
                      WTERMSIG(status));
        if (WEXITSTATUS(status) == DONE) {
            ck_assert_uint_gt(nth, 20);
            return;
        }
        ck_assert_msg(!WEXITSTATUS(status), "allocation %d: check %d failed:\n%s\nnot\n%s",
                      (int)nth, WEXITSTATUS(status), now, whole);
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
