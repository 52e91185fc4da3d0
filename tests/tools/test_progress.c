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

/* Writes a step to a terminal of 60 columns; `out` gets what it received. */
static void write_to_terminal(char *out, size_t size)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    struct winsize window = { .ws_col = 60, .ws_row = 24 };
    FILE *to = fopen(ptsname(master), "w");
    ck_assert_ptr_nonnull(to);
    ck_assert_int_eq(ioctl(fileno(to), TIOCSWINSZ, &window), 0);
    progress *p = begin(to, PROGRESS_AUTO, 9);
    progress_metric metrics[] = { { "loss", 2, false }, { "accuracy", 0.5, true } };
    progress_begin(p, 9, "train", 10);
    time_now += 10;
    progress_step(p, 5, 50, metrics, 2);
    size_t length = 0;
    ssize_t count = 1;
    /* What was written may arrive in parts. */
    for (struct pollfd ready = { .fd = master, .events = POLLIN };
         count > 0 && length < size - 1 && poll(&ready, 1, 300) > 0; length += (size_t)count) {
        count = read(master, out + length, size - 1 - length);
        if (count < 0)
            break;
    }
    out[length] = '\0';
    progress_drop(p);
    fclose(to);
    close(master);
}

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
                             a_terminal_is_asked_for_its_width_and_people_for_their_wishes,
                             the_time_left_counts_epochs_that_have_ended,
                             off_is_off_and_nothing_is_nothing,
                             numbers_keep_their_significant_digits,
                             NULL };
    return suite_run("progress", tests);
}
