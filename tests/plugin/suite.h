/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of the loader: a folder of their own with fixtures in it, and lines of
 * the report. Each test runs in a process of its own (libcheck forks), because plugins are
 * looked for once per process. */
#ifndef TN_TESTS_PLUGIN_SUITE_H
#define TN_TESTS_PLUGIN_SUITE_H

#include "tests/libcheck.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/query.h>
#include <tenon/tenon.h>

static char folder[PATH_MAX];

#define FIXTURES TN_TEST_BUILDDIR "/tests/plugin/built/"

/* The path of a file in the test's folder; valid until the eighth call after it. */
static TN_ATTR(unused) const char *path_of(const char *name)
{
    static _Thread_local char paths[8][PATH_MAX + 256];
    static _Thread_local int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static TN_ATTR(unused) void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    ssize_t count;
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ck_assert_msg(in >= 0, "fixture %s is missing", from);
    ck_assert_int_ge(out, 0);
    while ((count = read(in, bytes, sizeof bytes)) > 0)
        ck_assert_int_eq(write(out, bytes, (size_t)count), count);
    close(in);
    close(out);
}

/* Puts fixtures into the folder, NULL ends the list: place("good", "text", NULL). */
static TN_ATTR(unused) void place(const char *first, ...)
{
    va_list names;
    va_start(names, first);
    for (const char *name = first; name; name = va_arg(names, const char *)) {
        char from[PATH_MAX], to[PATH_MAX];
        struct stat at;
        const char *end = strchr(name, '.') ? "" : ".so";
        snprintf(from, sizeof from, FIXTURES "%s%s", name, end);
        snprintf(to, sizeof to, "%s%s", path_of(name), end);
        ck_assert_msg(!stat(from, &at), "fixture %s is missing", from);
        if (S_ISDIR(at.st_mode))
            ck_assert_int_eq(mkdir(to, 0755), 0);
        else
            copy_file(from, to);
    }
    va_end(names);
}

static void set_up(void)
{
    char real[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", TN_TEST_BUILDDIR "/tests/plugin/place.XXXXXX");
    umask(022);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_ptr_nonnull(realpath(folder, real));
    memcpy(folder, real, strlen(real) + 1);
    setenv("TENON_PLUGIN_PATH", folder, 1);
    unsetenv("TENON_PLUGIN_PATH_ADD");
    unsetenv("TENON_PLUGINS");
    unsetenv("TENON_CHECK");
}

static void take_down(void)
{
    char command[2 * PATH_MAX + 64];
    if (!folder[0])
        return;
    snprintf(command, sizeof command, "chmod -R u+w '%s'; rm -rf '%s'", folder, folder);
    ck_assert_int_eq(system(command), 0);
}

/* The line of the report for a file of the folder (or an id), which must exist. */
static TN_ATTR(unused) tn_plugin_report line_of(const char *name)
{
    tn_plugin_report report;
    const char *path = path_of(name);
    int64_t count = tn_plugin_count();
    for (int64_t i = 0; i < count; i++) {
        ck_assert_int_eq(tn_plugin_report_at(i, &report), TN_OK);
        if (!strcmp(report.file, path) || !strcmp(report.id, name) || !strcmp(report.file, name))
            return report;
    }
    for (int64_t i = 0; i < count; i++) {
        tn_plugin_report_at(i, &report);
        fprintf(stderr, "%s|%s|%s|%s|%s\n", report.id, report.file, tn_outcome_name(report.outcome),
                tn_stage_name(report.stage), report.reason);
    }
    ck_abort_msg("no line for %s", name);
    return report;
}

static TN_ATTR(unused) void expect(const char *name, int outcome, int stage, const char *words)
{
    tn_plugin_report report = line_of(name);
    ck_assert_msg(report.outcome == outcome && report.stage == stage &&
                      strstr(report.reason, words),
                  "%s: wanted %s at %s with \"%s\", got %s at %s: %s", name,
                  tn_outcome_name(outcome), tn_stage_name(stage), words,
                  tn_outcome_name(report.outcome), tn_stage_name(report.stage), report.reason);
    if (outcome == TN_OUTCOME_OK && !*words)
        ck_assert_str_eq(report.reason, "");
}

/* The fixture "good", which is in the same folder, has loaded. */
static TN_ATTR(unused) void expect_good_beside(void)
{
    expect("good.so", TN_OUTCOME_OK, TN_STAGE_VERSION, "");
    ck_assert_ptr_nonnull(tn_registry_find(TN_KIND_tn_layer_def, "GoodLayer"));
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}

static TN_ATTR(unused) void expect_failure(tn_status status, tn_status code, const char *words)
{
    ck_assert_msg(status == code && strstr(tn_error_text(), words),
                  "wanted %s with \"%s\", got %s: %s", tn_status_name(code), words,
                  tn_status_name(status), tn_error_text());
    tn_error_clear();
}

static int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    if (srunner_fork_status(runner) == CK_NOFORK) {
        printf("SKIP: plugins are looked for once per process, so these tests need CK_FORK\n");
        return 77;
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
