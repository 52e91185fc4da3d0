/* SPDX-License-Identifier: MIT
 *
 * Options at their extremes: bounds on memory and time, and the result or error of a call compared
 * with that of PyTorch (which option_values.py wrote). All rows run; the failures are printed
 * together. */
#ifndef TN_TESTS_ORACLE_OPTION_ROWS_H
#define TN_TESTS_ORACLE_OPTION_ROWS_H

#include "tests/libcheck.h"
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

enum { SECONDS = 30 };
static const size_t most_bytes = (size_t)512 << 20;

/* A deliberate difference from PyTorch: patterns of the row's subject, option and value. */
typedef struct difference {
    const char *subject, *option, *value, *why;
    int used;
} difference;

static char current[1024]; /* the row that runs, for a crash */
static bool each_alone;    /* --each: a process for each row, so that a crash is one failure */
static int rows_run, rows_wrong, rows_without_lapack;

/* ---- bounds ---- */

static void *bounded_alloc(void *user, size_t size, size_t alignment)
{
    void *block = NULL;

    (void)user;
    if (size > most_bytes || posix_memalign(&block, alignment < 16 ? 16 : alignment, size + 1))
        return NULL;
    return block;
}

static void bounded_free(void *user, void *block, size_t size, size_t alignment)
{
    (void)user;
    (void)size;
    (void)alignment;
    free(block);
}

static void *bounded_resize(void *user, void *block, size_t old_size, size_t size, size_t alignment)
{
    void *moved = bounded_alloc(user, size, alignment);

    if (moved == NULL)
        return NULL;
    if (block != NULL)
        memcpy(moved, block, old_size < size ? old_size : size);
    free(block);
    return moved;
}

static void name_the_row(int number)
{
    static const char crashed[] = ": crashed, or ran for too long\n";

    if (write(2, current, strlen(current)) < 0 || write(2, crashed, sizeof crashed - 1) < 0)
        _exit(2);
    signal(number, SIG_DFL);
    raise(number);
}

static void bound_all(void)
{
    static const int numbers[] = { SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGPROF };
    static const tn_allocator bounded = { .alloc = bounded_alloc,
                                          .resize = bounded_resize,
                                          .free = bounded_free };

    ck_assert_int_eq(tn_set_allocator(&bounded), TN_OK);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], name_the_row);
}

/* ---- verdicts ---- */

static bool like(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}

static bool is_difference(difference *list, const char *subject, const char *option,
                          const char *value)
{
    for (difference *d = list; d->subject != NULL; d++)
        if (like(d->subject, subject) && like(d->option, option) && like(d->value, value)) {
            d->used++;
            return true;
        }
    return false;
}

static void wrong_row(const char *format, const char *what)
{
    fprintf(stderr, "%s: ", current);
    fprintf(stderr, format, what);
    fprintf(stderr, "\n");
    rows_wrong++;
}

/* "2,3", "-" without dimensions. */
static void shape_text(tn_tensor *y, char *out, size_t size)
{
    tn_ints shape = tn_tensor_shape(y);
    size_t used = 0;

    snprintf(out, size, "-");
    for (int64_t d = 0; d < shape.count && used < size; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", d > 0 ? "," : "",
                                 (long long)shape.at[d]);
}

/* `y` is the first result; NULL if the call failed. The message must then name the option or the
 * operator, except if the verdict is none (for example for the operators of gradients, which
 * programs do not call). */
static void judge(const char *verdict, tn_tensor *y, const char *subject, const char *option,
                  bool differs)
{
    char shape[256];

    if (y == NULL && strstr(tn_error_text(), "needs LAPACK") != NULL) {
        rows_without_lapack++; /* only the cpu has these kernels, and only with OpenBLAS */
        return;
    }
    if (y == NULL && (tn_error_code() == TN_OK || tn_error_text()[0] == '\0'))
        wrong_row("%s", "refused without a message");
    else if (y == NULL && strstr(tn_error_text(), "a bug of the plugin") != NULL)
        wrong_row("%s", tn_error_text());
    else if (y == NULL && tn_error_code() != TN_ERR_MEMORY && strcmp(verdict, "none") != 0 &&
             strstr(tn_error_text(), subject) == NULL && strstr(tn_error_text(), option) == NULL)
        wrong_row("refused without its name: %s", tn_error_text());
    if (differs || strcmp(verdict, "none") == 0)
        return;
    if (strncmp(verdict, "taken ", 6) != 0) {
        if (y != NULL)
            wrong_row("taken, PyTorch says %s", verdict);
        return;
    }
    if (y == NULL) {
        wrong_row("PyTorch takes it: %s", tn_error_text());
        return;
    }
    shape_text(y, shape, sizeof shape);
    if (strcmp(shape, verdict + 6) != 0) {
        fprintf(stderr, "%s: PyTorch's shape is %s, ours ", current, verdict + 6);
        fprintf(stderr, "%s\n", shape);
        rows_wrong++;
    }
}

/* Limits the processor time of a row, which does not depend on how busy the machine is. 0 seconds
 * remove the limit. */
static void bound_time(int seconds)
{
    const struct itimerval timer = { { 0, 0 }, { seconds, 0 } };

    setitimer(ITIMER_PROF, &timer, NULL);
}

/* Runs one row, in a process of its own where that was asked for. */
static void run_row(void (*row)(void *user), void *user)
{
    int status = 0;

    rows_run++;
    if (!each_alone) {
        bound_time(SECONDS);
        row(user);
        bound_time(0);
        return;
    }
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int before = rows_wrong;

        bound_time(SECONDS);
        row(user);
        fflush(NULL);
        _exit(rows_wrong > before);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    rows_wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void expect_all_right(const difference *list, int least)
{
    for (const difference *d = list; d->subject != NULL; d++)
        if (d->used == 0 && !each_alone) {
            fprintf(stderr, "no row is met by the difference %s %s %s\n", d->subject, d->option,
                    d->value);
            rows_wrong++;
        }
    if (rows_without_lapack > 0)
        printf("%d rows were not judged: LAPACK was not found\n", rows_without_lapack);
    ck_assert_msg(rows_wrong == 0, "%d of %d rows are wrong; they are named above", rows_wrong,
                  rows_run);
    ck_assert_int_gt(rows_run, least);
}

#endif
