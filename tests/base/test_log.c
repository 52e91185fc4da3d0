/* SPDX-License-Identifier: MIT
 *
 * The environment table and the log. */
#include "tests/base/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Forgets what was read, so that a test sees the environment that it sets. */
static void begin_anew(void)
{
    tn__log_shutdown();
    tn__env_forget();
}

/* ---- environment ----------------------------------------------------------------------------- */

START_TEST(the_table_has_every_variable_of_the_library_with_help)
{
    static const char *const names[] = {
        "TENON_DEVICE",   "TENON_PLUGIN_PATH", "TENON_PLUGIN_PATH_ADD", "TENON_PLUGINS",
        "TENON_FALLBACK", "TENON_LOG",         "TENON_NUM_THREADS",     "TENON_SEED",
        "TENON_MATH",     "TENON_PREPARED",    "TENON_CHECK",
    };

    begin_anew();
    for (int64_t i = 0; i < tn__countof(names); i++) {
        tn_env_row row = { 0 };
        int64_t index = 0;
        while (index < tn_env_count() && tn_env_at(index, &row) == TN_OK &&
               strcmp(row.name, names[i]) != 0)
            index++;
        ck_assert_msg(index < tn_env_count(), "%s", names[i]);
        ck_assert_ptr_nonnull(row.help);
        ck_assert_uint_gt(strlen(row.help), 10);
    }
    tn_error_clear();
    tn_env_row row;
    ck_assert_int_eq(tn_env_at(-1, &row), TN_ERR_INDEX);
    ck_assert_int_eq(tn_env_at(tn_env_count(), &row), TN_ERR_INDEX);
    expect_failure(TN_ERR_INDEX, "tn_env_at: index: out of range");
}
END_TEST

static tn_env_row row_of(const char *name)
{
    tn_env_row row;

    for (int64_t i = 0; tn_env_at(i, &row) == TN_OK; i++)
        if (strcmp(row.name, name) == 0)
            return row;
    ck_abort_msg("%s is not in the table", name);
    return row;
}

START_TEST(a_value_has_an_origin)
{
    begin_anew();
    unsetenv("TENON_SEED");
    unsetenv("TENON_MATH");
    ck_assert_ptr_null(tn_env_get("TENON_SEED"));
    ck_assert_str_eq(tn_env_get("TENON_MATH"), "default");
    ck_assert_str_eq(row_of("TENON_MATH").origin, "default");
    begin_anew();
    setenv("TENON_MATH", "exact", 1);
    setenv("TENON_SEED", "", 1); /* empty is unset */
    ck_assert_str_eq(tn_env_get("TENON_MATH"), "exact");
    ck_assert_str_eq(row_of("TENON_MATH").origin, "environment");
    ck_assert_ptr_null(tn_env_get("TENON_SEED"));
    /* Read once: later changes, and a freed environment, do not matter. */
    unsetenv("TENON_MATH");
    ck_assert_str_eq(tn_env_get("TENON_MATH"), "exact");
    tn__env_program("TENON_MATH", "fast");
    ck_assert_str_eq(tn_env_get("TENON_MATH"), "fast");
    ck_assert_str_eq(row_of("TENON_MATH").origin, "program");
    tn__env_program("TENON_MATH", NULL);
    ck_assert_str_eq(tn_env_get("TENON_MATH"), "exact");
    ck_assert_ptr_null(tn_env_get("PATH"));
    unsetenv("TENON_SEED");
    begin_anew();
}
END_TEST

START_TEST(a_plugin_adds_rows_that_are_there_once)
{
    char name[] = "TENON_SWISH_BETA", help[] = "slope inside the sigmoid";

    begin_anew();
    setenv("TENON_SWISH_BETA", "2.5%s", 1);
    int64_t count = tn_env_count();
    ck_assert_ptr_null(tn_env_get(name));
    ck_assert_int_eq(tn__env_add(name, help), TN_OK);
    ck_assert_int_eq(tn__env_add(name, help), TN_OK);
    memset(help, 0, sizeof help); /* it was copied */
    ck_assert_int_eq(tn_env_count(), count + 1);
    ck_assert_str_eq(tn_env_get(name), "2.5%s");
    ck_assert_str_eq(row_of(name).help, "slope inside the sigmoid");
    unsetenv("TENON_SWISH_BETA");
    begin_anew();
}
END_TEST

START_TEST(a_row_without_memory_is_an_error)
{
    begin_anew();
    tn_error_clear();
    tn__memory_fail(1);
    ck_assert_int_eq(tn__env_add("TENON_X_Y", "help"), TN_ERR_MEMORY);
    tn__memory_fail(1);
    ck_assert_int_eq(tn__env_program("TENON_MATH", "fast"), TN_ERR_MEMORY);
    setenv("TENON_MATH", "fast", 1);
    tn__memory_fail(1);
    ck_assert_str_eq(tn_env_get("TENON_MATH"), "default");
    expect_failure(TN_ERR_MEMORY, "out of host memory");
    tn__memory_fail(0);
    ck_assert_str_eq(tn_env_get("TENON_MATH"), "fast");
    unsetenv("TENON_MATH");
    begin_anew();
}
END_TEST

START_TEST(a_set_uid_program_ignores_the_environment) /* rule 14 */
{
    char path[] = "/tmp/tenon-setuid-XXXXXX", command[8192], self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    int file = mkstemp(path), status = -1;

    ck_assert(length > 0 && file >= 0);
    close(file);
    self[length] = 0;
    tn_snprint(command, sizeof command, "cp '%s' %s && chown 65534 %s && chmod 4755 %s", self, path,
               path, path);
    if (geteuid() != 0 || system(command) != 0) {
        printf("SKIP a_set_uid_program_ignores_the_environment: that takes root\n");
    } else {
        setenv("TENON_MATH", "exact", 1);
        tn_snprint(command, sizeof command, "%s --set-uid", path);
        status = system(command);
        unsetenv("TENON_MATH");
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            printf("SKIP a_set_uid_program_ignores_the_environment: /tmp is mounted nosuid\n");
        else
            ck_assert_int_eq(status, 0);
    }
    unlink(path);
}
END_TEST

/* The main function of the set-uid copy. Returns 0 if the variable was ignored and the table says
 * so. */
static int in_set_uid_program(void)
{
    if (geteuid() == getuid())
        return 77;
    if (tn__env_trusted() || strcmp(tn_env_get("TENON_MATH"), "default") != 0)
        return 1;
    return strcmp(row_of("TENON_MATH").origin, "ignored (set-uid)") != 0;
}

/* ---- log ------------------------------------------------------------------------------------- */

struct seen {
    int count, level;
    char plugin[32], text[256];
};

static void sink(void *user, int level, const char *plugin, const char *text)
{
    struct seen *seen = user;

    seen->count++;
    seen->level = level;
    tn_snprint(seen->plugin, sizeof seen->plugin, "%s", plugin);
    tn_snprint(seen->text, sizeof seen->text, "%s", text);
}

START_TEST(a_sink_gets_level_plugin_and_text)
{
    struct seen seen = { 0 };

    begin_anew();
    unsetenv("TENON_LOG");
    tn_set_log_sink(sink, &seen);
    tn_log(TN_LOG_INFO, "not at the default level");
    ck_assert_int_eq(seen.count, 0);
    const char *before = tn__error_plugin("org.example.x");
    tn_log(TN_LOG_WARNING, "%d%% of %s", 5, "100%n");
    tn__error_plugin(before);
    ck_assert_int_eq(seen.count, 1);
    ck_assert_int_eq(seen.level, TN_LOG_WARNING);
    ck_assert_str_eq(seen.plugin, "org.example.x");
    ck_assert_str_eq(seen.text, "5% of 100%n");
    before = tn__error_plugin("org.example.x"); /* the library's own words name no plugin */
    tn__log(TN_LOG_WARNING, "from %s", "below");
    ck_assert_str_eq(tn__error_plugin_id(), "org.example.x");
    tn__error_plugin(before);
    ck_assert_str_eq(seen.plugin, "");
    ck_assert_str_eq(seen.text, "from below");

    begin_anew();
    setenv("TENON_LOG", "debug", 1);
    tn_log(TN_LOG_DEBUG, "fine");
    ck_assert_str_eq(seen.text, "fine");
    ck_assert_str_eq(seen.plugin, "");
    begin_anew();
    setenv("TENON_LOG", "off", 1);
    tn_log(TN_LOG_ERROR, "silence");
    ck_assert_str_eq(seen.text, "fine");
    tn_set_log_sink(NULL, NULL);
    unsetenv("TENON_LOG");
    begin_anew();
}
END_TEST

/* hold_stderr() redirects standard error to a file; the function below it restores standard error
 * and returns what was written. */
static int hold_stderr(void)
{
    int saved = dup(STDERR_FILENO), file = open("/tmp", O_TMPFILE | O_RDWR, 0600);

    ck_assert_int_ge(file, 0);
    dup2(file, STDERR_FILENO);
    close(file);
    return saved;
}

static const char *release_stderr(int saved)
{
    static char text[8192];
    ssize_t length;

    lseek(STDERR_FILENO, 0, SEEK_SET);
    length = read(STDERR_FILENO, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = 0;
    dup2(saved, STDERR_FILENO);
    close(saved);
    return text;
}

START_TEST(by_default_warnings_and_errors_go_to_standard_error_in_whole_lines)
{
    char longer[6000];

    begin_anew();
    unsetenv("TENON_LOG");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    int saved = hold_stderr();
    tn_log(TN_LOG_INFO, "no");
    tn_log(TN_LOG_WARNING, "two\nlines");
    const char *before = tn__error_plugin("org.example.x");
    tn_log(TN_LOG_ERROR, "%s", "bad");
    tn__error_plugin(before);
    tn_log(TN_LOG_ERROR, "%s", longer);
    const char *text = release_stderr(saved);
    const char *expected =
        "tenon: warning: two lines\ntenon: error: [org.example.x] bad\ntenon: error: xxx";
    ck_assert_int_eq(strncmp(text, expected, strlen(expected)), 0);
    ck_assert_str_eq(text + strlen(text) - 5, "x...\n");
    begin_anew();
}
END_TEST

START_TEST(a_wrong_level_is_itself_a_line_of_the_log)
{
    begin_anew();
    setenv("TENON_LOG", "loud%n", 1);
    int saved = hold_stderr();
    tn_log(TN_LOG_WARNING, "after");
    const char *text = release_stderr(saved);
    ck_assert_ptr_nonnull(strstr(text, "TENON_LOG=\"loud%n\" is unknown; expected off, error"));
    ck_assert_ptr_nonnull(strstr(text, "tenon: warning: after\n"));
    begin_anew();
    setenv("TENON_LOG", "debug:/nowhere/at/all", 1);
    saved = hold_stderr();
    tn_log(TN_LOG_DEBUG, "after");
    text = release_stderr(saved);
    ck_assert_ptr_nonnull(strstr(text, "cannot be opened"));
    ck_assert_ptr_nonnull(strstr(text, "tenon: debug: after\n"));
    unsetenv("TENON_LOG");
    begin_anew();
}
END_TEST

START_TEST(the_log_goes_to_a_file)
{
    char path[] = "/tmp/tenon-log-XXXXXX", value[64], text[256] = "";
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    begin_anew();
    tn_snprint(value, sizeof value, "info:%s", path);
    setenv("TENON_LOG", value, 1);
    tn_log(TN_LOG_DEBUG, "no");
    tn_log(TN_LOG_INFO, "one");
    tn_log(TN_LOG_ERROR, "two");
    ck_assert_int_gt(read(file, text, sizeof text - 1), 0);
    ck_assert_str_eq(text, "tenon: info: one\ntenon: error: two\n");
    close(file);
    unlink(path);
    unsetenv("TENON_LOG");
    begin_anew();
}
END_TEST

/* ---- FIFOs, closed streams, limits ----------------------------------------------------------- */

static void log_to(const char *path)
{
    char value[64];
    begin_anew();
    tn_snprint(value, sizeof value, "debug:%s", path);
    setenv("TENON_LOG", value, 1);
}

static void log_no_more(const char *path)
{
    unsetenv("TENON_LOG");
    begin_anew();
    unlink(path);
}

START_TEST(a_fifo_that_nobody_reads_does_not_hang)
{
    char path[] = "/tmp/tenon-log-XXXXXX";
    ck_assert_ptr_nonnull(mktemp(path));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    log_to(path);
    alarm(20);
    int saved = hold_stderr();
    tn_log(TN_LOG_DEBUG, "after");
    const char *text = release_stderr(saved);
    ck_assert_ptr_nonnull(strstr(text, "cannot be opened for writing: it is a pipe that no "
                                       "process reads: the log goes to standard error"));
    ck_assert_ptr_nonnull(strstr(text, "tenon: debug: after\n"));
    log_no_more(path);
}
END_TEST

START_TEST(a_fifo_whose_reader_stalls_loses_lines_and_says_so)
{
    char path[] = "/tmp/tenon-log-XXXXXX", text[1 << 17];
    ck_assert_ptr_nonnull(mktemp(path));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    log_to(path);
    alarm(60);
    tn_log(TN_LOG_DEBUG, "first");
    for (int i = 0; i < 4000; i++) /* more than a pipe holds */
        tn_log(TN_LOG_DEBUG, "line %d of many, so that the pipe fills", i);
    ssize_t got = read(reader, text, sizeof text - 1);
    ck_assert_int_gt(got, 4096);
    text[got] = 0;
    ck_assert_int_eq(strncmp(text, "tenon: debug: first\n", 20), 0);
    ck_assert_int_eq(text[got - 1], '\n'); /* whole lines only */
    tn_log(TN_LOG_DEBUG, "last");
    got = read(reader, text, sizeof text - 1);
    ck_assert_int_gt(got, 0);
    text[got] = 0;
    ck_assert_ptr_nonnull(strstr(text, "lines before this one were lost: the pipe was full\n"));
    ck_assert_ptr_nonnull(strstr(text, "tenon: debug: last\n"));
    close(reader);
    log_no_more(path);
}
END_TEST

/* What the program prints does not go into the log, and the log is complete. */
START_TEST(a_log_file_is_no_standard_stream)
{
    char path[] = "/tmp/tenon-log-XXXXXX", text[64] = "";
    int saved[3], file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    log_to(path);
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    tn_log(TN_LOG_DEBUG, "one");
    ssize_t printed[3];
    for (int i = 0; i < 3; i++)
        printed[i] = write(i, "printed", 7);
    tn_log(TN_LOG_DEBUG, "two");
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(printed[i], -1);
    ck_assert_int_gt(pread(file, text, sizeof text - 1, 0), 0);
    ck_assert_str_eq(text, "tenon: debug: one\ntenon: debug: two\n");
    close(file);
    log_no_more(path);
}
END_TEST

START_TEST(a_log_file_that_may_not_grow_does_not_end_the_process)
{
    char path[] = "/tmp/tenon-log-XXXXXX";
    struct rlimit before, small;
    struct stat info;
    sigset_t pending;
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    log_to(path);
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){ 100, before.rlim_max };
    /* No assertion until the old limit is back: libcheck writes to a file, too. */
    int limited = setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 20; i++)
        tn_log(TN_LOG_DEBUG, "a line of the log");
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_eq(limited, 0);
    sigpending(&pending);
    ck_assert_int_eq(sigismember(&pending, SIGXFSZ), 0);
    ck_assert_int_eq(fstat(file, &info), 0);
    ck_assert_int_eq(info.st_size, 100);
    close(file);
    log_no_more(path);
}
END_TEST

START_TEST(a_closed_pipe_does_not_end_the_process)
{
    int ends[2], saved = dup(STDERR_FILENO);
    sigset_t pending;

    begin_anew();
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    tn_log(TN_LOG_ERROR, "into the void");
    dup2(saved, STDERR_FILENO);
    close(saved);
    sigpending(&pending);
    ck_assert_int_eq(sigismember(&pending, SIGPIPE), 0);
}
END_TEST

static void chatty(void *user, int level, const char *plugin, const char *text)
{
    (void)level;
    (void)plugin;
    (void)text;
    ++*(int *)user;
    tn_log(TN_LOG_ERROR, "from inside a sink");
}

START_TEST(a_sink_that_logs_does_not_hang)
{
    int count = 0;

    begin_anew();
    tn_set_log_sink(chatty, &count);
    int saved = hold_stderr();
    tn_log(TN_LOG_ERROR, "once");
    ck_assert_str_eq(release_stderr(saved), "tenon: error: from inside a sink\n");
    ck_assert_int_eq(count, 1);
    tn_set_log_sink(NULL, NULL);
}
END_TEST

static void *log_much(void *user)
{
    for (int i = 0; i < 200; i++)
        tn_log(TN_LOG_WARNING, "line %d of thread", i);
    return user;
}

START_TEST(threads_log_whole_lines)
{
    pthread_t threads[4];
    struct seen seen = { 0 };

    begin_anew();
    tn_set_log_sink(sink, &seen);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_much, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tn_set_log_sink(NULL, NULL);
    ck_assert_int_eq(seen.count, 800);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        the_table_has_every_variable_of_the_library_with_help,
        a_value_has_an_origin,
        a_plugin_adds_rows_that_are_there_once,
        a_row_without_memory_is_an_error,
        a_set_uid_program_ignores_the_environment,
        a_sink_gets_level_plugin_and_text,
        by_default_warnings_and_errors_go_to_standard_error_in_whole_lines,
        a_wrong_level_is_itself_a_line_of_the_log,
        the_log_goes_to_a_file,
        a_fifo_that_nobody_reads_does_not_hang,
        a_fifo_whose_reader_stalls_loses_lines_and_says_so,
        a_log_file_is_no_standard_stream,
        a_log_file_that_may_not_grow_does_not_end_the_process,
        a_closed_pipe_does_not_end_the_process,
        a_sink_that_logs_does_not_hang,
        threads_log_whole_lines,
        NULL,
    };

    if (argc > 1 && strcmp(argv[1], "--set-uid") == 0)
        _exit(in_set_uid_program()); /* past leak checkers, which cannot work there */
    return suite_run("log", tests);
}
