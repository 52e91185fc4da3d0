/* SPDX-License-Identifier: MIT
 *
 * Rights: the loader in a set-uid program, where the user who starts it chooses the environment,
 * and files that the user may not read. Both need root. */
#include "tests/plugin/suite.h"

#include <sys/auxv.h>
#include <sys/wait.h>

#define NOBODY 65534

static const char *const hostile[] = { "TENON_PLUGIN_PATH", "TENON_PLUGIN_PATH_ADD",
                                       "TENON_PLUGINS",     "TENON_LOG",
                                       "TENON_CHECK",       "TENON_DEVICE",
                                       "TENON_NUM_THREADS", "TENON_FALLBACK" };

/* Runs in the set-uid copy of this program. Returns 0, the number of the check that failed, or 77
 * if the system ignored the set-uid bit. */
static int in_set_uid_program(const char *theirs)
{
    tn_plugin_report report;
    tn_env_row row;
    if (!getauxval(AT_SECURE) || geteuid() != 0 || getuid() != NOBODY)
        return 77;
    int64_t count = tn_plugin_count();
    if (count < 0)
        return 1;
    for (int64_t i = 0; i < count; i++)
        if (tn_plugin_report_at(i, &report) != TN_OK ||
            !strncmp(report.file, theirs, strlen(theirs) - strlen("good.so")))
            return 2; /* the path of the environment was looked at */
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        for (int64_t at = 0; at < tn_env_count(); at++)
            if (tn_env_at(at, &row) == TN_OK && !strcmp(row.name, hostile[i]) &&
                (strcmp(row.origin, "ignored (set-uid)") ||
                 (row.value && !strcmp(row.value, getenv(row.name)))))
                return 3;
    /* A file of the user who started the program has a foreign owner, also when it is named
     * explicitly. */
    if (tn_plugin_load(theirs) != TN_ERR_REFUSED || !strstr(tn_error_text(), "owned by user 65534"))
        return 4;
    tn_error_clear();
    tn_shutdown();
    return 0;
}

/* Calls `what` in a process of the user nobody. Returns its result, or 77 if the process cannot
 * become nobody or nobody cannot read the folder. */
static int as_nobody(int (*what)(const char *), const char *argument)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        if (setgid(NOBODY) || setuid(NOBODY) || access(folder, R_OK | X_OK))
            _exit(77);
        _exit(what(argument));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int start(const char *theirs)
{
    execl(path_of("program"), "program", "--set-uid", theirs, (char *)NULL);
    return 76;
}

START_TEST(a_set_uid_program_loads_nothing_that_its_caller_chose_rule_14)
{
    char self[PATH_MAX] = "", log[PATH_MAX + 64], theirs[PATH_MAX];
    struct stat at;
    if (getuid() != 0) {
        printf("SKIP: only root can make a set-uid program\n");
        return;
    }
    ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
    copy_file(self, path_of("program"));
    ck_assert_int_eq(chmod(path_of("program"), 04755), 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_int_eq(mkdir(path_of("theirs"), 0755), 0);
    snprintf(theirs, sizeof theirs, "%s", path_of("theirs/good.so"));
    copy_file(FIXTURES "good.so", theirs);
    ck_assert_int_eq(chown(theirs, NOBODY, NOBODY), 0);
    ck_assert_int_eq(chown(path_of("theirs"), NOBODY, NOBODY), 0);
    snprintf(log, sizeof log, "debug:%s", path_of("theirs/log"));
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        setenv(hostile[i], "1", 1);
    setenv("TENON_PLUGIN_PATH", path_of("theirs"), 1);
    setenv("TENON_PLUGIN_PATH_ADD", path_of("theirs"), 1);
    setenv("TENON_PLUGINS", "good", 1);
    setenv("TENON_LOG", log, 1);
    int result = as_nobody(start, theirs);
    if (result == 77)
        printf("SKIP: nobody cannot come here, or the folder is mounted without set-uid\n");
    else
        ck_assert_msg(result == 0, "check %d of the set-uid program failed", result);
    ck_assert_msg(stat(path_of("theirs/log"), &at), "the log went where TENON_LOG said");
}
END_TEST

static int sees_what_it_may_not_read(const char *unused)
{
    (void)unused;
    expect("secret.so", TN_OUTCOME_FAILED, TN_STAGE_READABLE, "cannot be read: Permission denied");
    expect("closed", TN_OUTCOME_FAILED, TN_STAGE_READABLE,
           "the folder cannot be read: Permission denied");
    expect_good_beside();
    return tn_failed();
}

START_TEST(a_set_uid_or_set_gid_file_is_refused_rule_14)
{
    place("good", "counting", "gives", NULL);
    ck_assert_int_eq(chmod(path_of("counting.so"), 04755), 0);
    ck_assert_int_eq(chmod(path_of("gives.so"), 02755), 0);
    expect("counting.so", TN_OUTCOME_REFUSED, TN_STAGE_OWNER, "the file is set-uid or set-gid");
    expect("gives.so", TN_OUTCOME_REFUSED, TN_STAGE_OWNER, "the file is set-uid or set-gid");
    expect_good_beside();
}
END_TEST

START_TEST(a_file_without_the_right_to_read_it_is_named_rule_18)
{
    if (getuid() != 0) {
        printf("SKIP: only root can become somebody else\n");
        return;
    }
    place("good", "counting", NULL);
    ck_assert_int_eq(rename(path_of("counting.so"), path_of("secret.so")), 0);
    ck_assert_int_eq(chmod(path_of("secret.so"), 0600), 0);
    ck_assert_int_eq(mkdir(path_of("closed"), 0711), 0);
    ck_assert_int_eq(chmod(path_of("closed"), 0711), 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    setenv("TENON_PLUGIN_PATH_ADD", path_of("closed"), 1);
    int result = as_nobody(sees_what_it_may_not_read, NULL);
    if (result == 77)
        printf("SKIP: nobody cannot come to the folder of the tests\n");
    else
        ck_assert_int_eq(result, 0);
}
END_TEST

static Suite *privilege(void)
{
    Suite *suite = suite_create("rights");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, set_up, take_down);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, a_set_uid_program_loads_nothing_that_its_caller_chose_rule_14);
    tcase_add_test(all, a_set_uid_or_set_gid_file_is_refused_rule_14);
    tcase_add_test(all, a_file_without_the_right_to_read_it_is_named_rule_18);
    suite_add_tcase(suite, all);
    return suite;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--set-uid"))
        return in_set_uid_program(argv[2]);
    return run_suite(privilege());
}
