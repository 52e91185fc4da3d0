/* SPDX-License-Identifier: MIT
 *
 * The progress of a run: what is written to a terminal and elsewhere, by a clock of the test. */
#include "tests/base/suite.h"

#include "tools/train/progress.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static double time_now;

static double clock_of_test(void)
{
    return time_now;
}

static progress *begin(FILE *to, int style, int64_t epochs)
{
    progress_setup setup = { to, style, epochs, 0, clock_of_test };
    time_now = 100;
    progress *p = progress_new(&setup);
    ck_assert_ptr_nonnull(p);
    return p;
}

static void expect(FILE *to, const char *wanted)
{
    char text[4096];
    rewind(to);
    text[fread(text, 1, sizeof text - 1, to)] = '\0';
    ck_assert_str_eq(text, wanted);
    fclose(to);
}

START_TEST(a_file_gets_whole_lines_at_an_interval)
{
    FILE *to = tmpfile();
    progress *p = begin(to, PROGRESS_AUTO, 2);
    progress_metric metrics[] = { { "loss", 0.123456, false }, { "acc\x1b[2J", 0.5, true } };
    progress_begin(p, 1, "train", 100);
    for (int step = 1; step <= 100; step++) {
        time_now += 0.25;
        progress_step(p, step, step * 64, metrics, 2);
    }
    progress_epoch(p, metrics, 1);
    progress_say(p, "saved %s", "x");
    progress_drop(p);
    expect(to, "epoch 1/2  train 40/100  256 samples/s  40s left  loss 0.1235  acc?[2J 0.5000\n"
               "epoch 1/2  train 80/100  256 samples/s  30s left  loss 0.1235  acc?[2J 0.5000\n"
               "epoch 1/2  25s  loss 0.1235\nsaved x\n");
}
END_TEST

START_TEST(a_terminal_has_one_line_that_fits)
{
    FILE *to = tmpfile();
    setenv("COLUMNS", "51", 1); /* too narrow for a metric */
    progress *p = begin(to, PROGRESS_LINE, 0);
    progress_metric metrics[] = { { "loss", 2, false }, { "accuracy", 0.5, true } };
    progress_begin(p, 3, "train", 10);
    time_now += 1;
    progress_step(p, 5, 50, metrics, 2);
    time_now += 0.05; /* too soon */
    progress_step(p, 6, 60, metrics, 2);
    progress_clear(p);
    setenv("COLUMNS", "120", 1);
    time_now += 0.95;
    progress_step(p, 8, 80, metrics, 2);
    time_now += 3598;
    progress_epoch(p, metrics, 2);
    progress_drop(p);
    expect(to,
           "\repoch 3  train 5/10  50 samples/s  1s left\x1b[K\r\x1b[K"
           "\repoch 3  train 8/10 [===================>    ]  40 samples/s  0s left  loss 2.000  "
           "accuracy 0.5000\x1b[K\r\x1b[Kepoch 3  1h00m  loss 2.000  accuracy 0.5000\n");
}
END_TEST

/* Makes a terminal. `master` receives what is written to it. */
static FILE *terminal(int *master, int columns, int rows)
{
    struct winsize window = { .ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows };
    *master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert(*master >= 0 && grantpt(*master) == 0 && unlockpt(*master) == 0);
    FILE *to = fopen(ptsname(*master), "w");
    ck_assert_ptr_nonnull(to);
    ck_assert_int_eq(ioctl(fileno(to), TIOCSWINSZ, &window), 0);
    return to;
}

/* Reads what a terminal received, until nothing more comes. */
static void receive(int master, char *out, size_t size, int wait)
{
    size_t length = 0;
    ssize_t count = 1;
    for (struct pollfd ready = { .fd = master, .events = POLLIN };
         count > 0 && length < size - 1 && poll(&ready, 1, wait) > 0; length += (size_t)count) {
        count = read(master, out + length, size - 1 - length);
        if (count < 0)
            break;
    }
    out[length] = '\0';
}

/* Writes a step to a terminal of 60 columns; `out` gets what it received. */
static void write_to_terminal(char *out, size_t size)
{
    int master;
    FILE *to = terminal(&master, 60, 24);
    progress *p = begin(to, PROGRESS_AUTO, 9);
    progress_metric metrics[] = { { "loss", 2, false }, { "accuracy", 0.5, true } };
    progress_begin(p, 9, "train", 10);
    time_now += 10;
    progress_step(p, 5, 50, metrics, 2);
    receive(master, out, size, 300);
    progress_drop(p);
    fclose(to);
    close(master);
}

/* as after --resume --epochs 10 */
START_TEST(an_epoch_beyond_the_last_has_no_number_of_all)
{
    FILE *to = tmpfile();
    progress *p = begin(to, PROGRESS_AUTO, 10);
    progress_begin(p, 32, "train", 100);
    time_now += 25;
    progress_epoch(p, NULL, 0);
    progress_begin(p, 10, "train", 100);
    time_now += 25;
    progress_epoch(p, NULL, 0);
    progress_drop(p);
    expect(to, "epoch 32  25s\nepoch 10/10  25s\n");
}
END_TEST

START_TEST(a_terminal_is_asked_for_its_width_and_people_for_their_wishes)
{
    char text[512];
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    write_to_terminal(text, sizeof text);
    ck_assert_str_eq(text, "\repoch 9/9  train 5/10  5 samples/s  10s left  loss 2.000\x1b[K");
    const char *lines =
        "epoch 9/9  train 5/10  5 samples/s  10s left  loss 2.000  accuracy 0.5000\r\n";
    setenv("NO_COLOR", "1", 1);
    write_to_terminal(text, sizeof text);
    ck_assert_str_eq(text, lines);
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    write_to_terminal(text, sizeof text);
    ck_assert_str_eq(text, lines);
}
END_TEST

START_TEST(the_line_of_an_epoch_fits_the_terminal)
{
    static const struct {
        int columns;
        const char *line;
    } all[] = {
        { 100, "epoch 12/20  9.0s  loss 0.1234  accuracy 0.9000  val_loss 0.2500  "
               "val_accuracy 0.8750\r\n" },
        { 80, "epoch 12/20  9.0s  loss 0.1234  acc 0.9000  val_loss 0.2500  val_acc 0.8750\r\n" },
        { 74, "epoch 12/20  loss 0.1234  acc 0.9000  val_loss 0.2500  val_acc 0.8750\r\n" },
        { 60, "epoch 12/20  loss 0.1234  acc 0.9000  val_loss 0.2500\r\n" },
    };
    const progress_metric metrics[] = { { "loss", 0.1234, false },
                                        { "accuracy", 0.9, true },
                                        { "val_loss", 0.25, false },
                                        { "val_accuracy", 0.875, true } };
    char text[512];
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int master;
        FILE *to = terminal(&master, all[i].columns, 24);
        progress *p = begin(to, PROGRESS_AUTO, 20);
        progress_begin(p, 12, "train", 10);
        time_now += 9;
        progress_epoch(p, metrics, 4);
        receive(master, text, sizeof text, 200);
        ck_assert_str_eq(text, all[i].line);
        progress_drop(p);
        fclose(to);
        close(master);
    }
    unsetenv("NO_COLOR");
}
END_TEST

START_TEST(the_room_below_the_lines_is_known)
{
    int master;
    FILE *to = terminal(&master, 80, 6), *file = tmpfile();
    progress *p = begin(to, PROGRESS_AUTO, 9), *plain = begin(file, PROGRESS_AUTO, 9);
    ck_assert_int_eq(progress_room(p), 6);
    ck_assert_int_eq(progress_room(plain), -1);
    ck_assert_int_eq(progress_room(NULL), -1);
    progress_say(p, "a line");
    progress_begin(p, 1, "train", 10);
    progress_step(p, 5, 50, NULL, 0); /* does not stay */
    progress_epoch(p, NULL, 0);
    ck_assert_int_eq(progress_room(p), 4);
    for (int i = 0; i < 9; i++)
        progress_epoch(p, NULL, 0);
    ck_assert_int_eq(progress_room(p), 0);
    progress_drop(p);
    progress_drop(plain);
    fclose(to);
    fclose(file);
    close(master);
}
END_TEST

/* Writes what `tenon ARGUMENTS` prints to a terminal of this width; 0 columns: to a pipe. */
static void run_tenon(int columns, const char *const *arguments, char *out, size_t size)
{
    const char *build = getenv("abs_builddir"), *given[24] = { "tenon" };
    char tool[4096];
    int ends[2], master = -1;
    FILE *to = columns > 0 ? terminal(&master, columns, 24) : NULL;
    for (int i = 0; arguments[i] != NULL; i++)
        given[i + 1] = arguments[i];
    snprintf(tool, sizeof tool, "%s/tools/tenon", build != NULL ? build : ".");
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(to != NULL ? fileno(to) : ends[1], STDOUT_FILENO);
        execv(tool, (char *const *)(uintptr_t)given);
        _exit(127);
    }
    close(ends[1]);
    if (to != NULL)
        fclose(to);
    receive(to != NULL ? master : ends[0], out, size, 60000);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close(ends[0]);
    if (master >= 0)
        close(master);
}

/* Splits a text into its words, and returns their number and the longest line. */
static int words_of(char *text, char **words, int most, size_t *longest)
{
    int count = 0;
    *longest = 0;
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\r\n");
        *longest = length > *longest ? length : *longest;
        if (line[strcspn(line, "\n")] == '\0')
            break;
    }
    for (char *word = strtok(text, " \r\n"); word != NULL && count < most;
         word = strtok(NULL, " \r\n"))
        words[count++] = word;
    return count;
}

START_TEST(help_is_wrapped_between_words_at_the_width_of_the_terminal)
{
    enum { SIZE = 1 << 14, MOST = 2000 };
    static char wide[SIZE], narrow[SIZE];
    static char *wanted[MOST], *got[MOST];
    static const char *const help[] = { "train", "--help", NULL };
    size_t longest;
    run_tenon(0, help, wide, sizeof wide);
    int count = words_of(wide, wanted, MOST, &longest);
    ck_assert_int_gt(count, 200);
    ck_assert_uint_le(longest, 100);
    ck_assert_uint_gt(longest, 90);
    for (int columns = 80; columns >= 50; columns -= 15) {
        run_tenon(columns, help, narrow, sizeof narrow);
        ck_assert_int_eq(words_of(narrow, got, MOST, &longest), count);
        ck_assert_uint_le(longest, columns);
        ck_assert_uint_gt(longest, columns - 10);
        for (int i = 0; i < count; i++)
            ck_assert_str_eq(got[i], wanted[i]);
    }
}
END_TEST

START_TEST(the_chart_at_the_end_leaves_the_epochs_on_the_screen)
{
    static char text[1 << 16];
    static const struct {
        const char *epochs;
        bool chart;
    } all[] = { { "6", true }, { "12", false } };
    char folder[] = "/tmp/tenon-progress-XXXXXX", out[64], command[96];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(out, sizeof out, "%s/%d", folder, i);
        const char *const train[] = { "train",
                                      "Sequential(Flatten(), Linear(64, 10))",
                                      "--data",
                                      "Digits(split='test')",
                                      "--val-split",
                                      "0.5",
                                      "--batch-size",
                                      "179",
                                      "--epochs",
                                      all[i].epochs,
                                      "--out",
                                      out,
                                      NULL };
        setenv("NO_COLOR", "1", 1);
        run_tenon(80, train, text, sizeof text);
        unsetenv("NO_COLOR");
        if (strstr(text, "epoch 1/") == NULL)
            break; /* this build has no data or no format; the text says so */
        int lines = 0;
        for (const char *c = text; *c != '\0'; c++)
            lines += *c == '\n';
        ck_assert_msg(lines < 24, "%d lines:\n%s", lines, text);
        ck_assert_msg((strstr(text, "training loss by epoch") != NULL) == all[i].chart, "%s", text);
        ck_assert_ptr_nonnull(strstr(text, "best.safetensors"));
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(the_time_left_counts_epochs_that_have_ended)
{
    FILE *to = tmpfile();
    setenv("COLUMNS", "200", 1);
    progress *p = begin(to, PROGRESS_PLAIN, 3);
    progress_begin(p, 1, "train", 0);
    time_now += 60;
    progress_step(p, 7, 0, NULL, 0);
    progress_begin(p, 1, "validate", 4);
    time_now += 40;
    progress_step(p, 1, 8, NULL, 0);
    progress_epoch(p, NULL, 0);
    progress_begin(p, 2, "train", 10);
    time_now += 20;
    progress_step(p, 5, 5, NULL, 0);
    progress_drop(p);
    expect(to, "epoch 1/3  train 7\nepoch 1/3  validate 1/4  0 samples/s  2m00s left\n"
               "epoch 1/3  1m40s\nepoch 2/3  train 5/10  0 samples/s  2m00s left\n");
}
END_TEST

START_TEST(off_is_off_and_nothing_is_nothing)
{
    FILE *to = tmpfile();
    progress *p = begin(to, PROGRESS_OFF, 1);
    progress_begin(p, 1, "train", 1);
    time_now += 100;
    progress_step(p, 1, 1, NULL, 0);
    progress_epoch(p, NULL, 0);
    progress_say(p, "a line");
    progress_drop(p);
    expect(to, "a line\n");
    progress_begin(NULL, 1, "train", 1);
    progress_step(NULL, 1, 1, NULL, 0);
    progress_epoch(NULL, NULL, 0);
    progress_say(NULL, "x");
    progress_clear(NULL);
    progress_drop(NULL);
    tn__memory_fail(1);
    progress_setup setup = { stderr, PROGRESS_AUTO, 1, 0, NULL };
    ck_assert_ptr_null(progress_new(&setup));
    tn__memory_fail(0);
    expect_failure(TN_ERR_MEMORY, "");
}
END_TEST

START_TEST(numbers_keep_their_significant_digits)
{
    static const struct {
        double number;
        int digits;
        const char *text;
    } all[] = {
        { 0, 4, "0.000" },          { 2, 4, "2.000" },           { -2.20513, 4, "-2.205" },
        { 9.99961, 4, "10.00" },    { 0.0125, 4, "0.01250" },    { 0.000123456, 4, "0.0001235" },
        { 12345.6, 4, "12346" },    { 1234.56, 4, "1235" },      { 1234567, 4, "1.235e+06" },
        { 1.5e-5, 4, "1.500e-05" }, { 0.957275, 6, "0.957275" }, { 1.4745801, 6, "1.47458" },
        { INFINITY, 4, "inf" },     { NAN, 4, "nan" },
    };
    char text[32];

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ck_assert_str_eq(progress_number(all[i].number, all[i].digits, text, sizeof text),
                         all[i].text);
}
END_TEST

int main(void)
{
    const TTest *tests[] = { a_file_gets_whole_lines_at_an_interval,
                             a_terminal_has_one_line_that_fits,
                             an_epoch_beyond_the_last_has_no_number_of_all,
                             a_terminal_is_asked_for_its_width_and_people_for_their_wishes,
                             the_line_of_an_epoch_fits_the_terminal,
                             the_room_below_the_lines_is_known,
                             help_is_wrapped_between_words_at_the_width_of_the_terminal,
                             the_chart_at_the_end_leaves_the_epochs_on_the_screen,
                             the_time_left_counts_epochs_that_have_ended,
                             off_is_off_and_nothing_is_nothing,
                             numbers_keep_their_significant_digits,
                             NULL };
    return suite_run("progress", tests);
}
