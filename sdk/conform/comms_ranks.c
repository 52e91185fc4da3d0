/* SPDX-License-Identifier: MIT
 *
 * Checks communicators in groups of two and four processes, for tenon check: values of all
 * exchanges, waiting, exchanges in the background, ranks that end or are late. Each rank is a child
 * of the process that tests, and writes what is wrong to memory that they share. */
#include "comms.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    RANKS = 4,
    TEXT = 600,
    TIMEOUT = 20, /* s that a call may wait in the tests that must succeed */
    SHORT = 1,    /* in those where a rank is late */
    LONG = 70001  /* elements, more than a small message */
};

/* What the ranks of a group share. */
struct board {
    _Atomic int arrived; /* ranks that have reached a point */
    struct {
        bool opened, failed;
        char text[TEXT];
    } of[RANKS];
};

/* One rank, in its process. */
struct rank {
    const conform *c;
    const tn_comm_def *def;
    struct board *board;
    const char *address;
    int number, size;
    tn_comm *comm;
};

typedef bool rank_test(struct rank *rank);

/* Notes what is wrong; returns false. */
TN_ATTR(format(printf, 2, 3)) static bool wrong(struct rank *rank, const char *format, ...)
{
    va_list args;

    if (rank->board->of[rank->number].failed)
        return false;
    rank->board->of[rank->number].failed = true;
    va_start(args, format);
    vsnprintf(rank->board->of[rank->number].text, TEXT, format, args);
    va_end(args);
    return false;
}

static bool did(struct rank *rank, tn_status status, const char *what)
{
    return status == TN_OK || wrong(rank, "%s: fails: %s", what, tn_error_text());
}

/* ---- values ---------------------------------------------------------------------------------- */

static double value_of(int rank, int64_t i)
{
    return (double)((i + 3 * rank) % 4 + 1);
}

static tn_tensor *make(struct rank *rank, const double *values, int64_t count, tn_dtype dtype)
{
    conform_tensor t = { .there = true, .dtype = TN_F64, .ndim = 1, .count = count };
    tn_tensor *x;

    t.shape[0] = count;
    t.values = (double *)(uintptr_t)values;
    x = conform_tensor_make(&t, dtype, rank->c->plugin->device, CONFORM_PLAIN, NULL);
    if (x == NULL)
        wrong(rank, "a tensor cannot be created: %s", tn_error_text());
    return x;
}

/* A tensor with the values of a rank from the place `from` on. */
static tn_tensor *ramp(struct rank *rank, int of, int64_t from, int64_t count, tn_dtype dtype)
{
    double *values = malloc((size_t)count * sizeof *values);
    tn_tensor *x = NULL;

    for (int64_t i = 0; values != NULL && i < count; i++)
        values[i] = value_of(of, from + i);
    if (values != NULL)
        x = make(rank, values, count, dtype);
    free(values);
    return x;
}

static double combined(tn_reduction reduction, int size, int64_t i)
{
    double result = value_of(0, i);

    for (int r = 1; r < size; r++) {
        double next = value_of(r, i);

        result = reduction == TN_REDUCTION_PRODUCT ? result * next
                 : reduction == TN_REDUCTION_MIN   ? fmin(result, next)
                 : reduction == TN_REDUCTION_MAX   ? fmax(result, next)
                                                   : result + next;
    }
    return reduction == TN_REDUCTION_AVERAGE ? result / size : result;
}

/* Compares a part of a tensor, from the place `at` on, with the values of a rank (`of`), or with
 * those of all ranks combined (-1), from the place `from` on. */
static bool holds(struct rank *rank, tn_tensor *x, int64_t at, int64_t count, int of, int64_t from,
                  tn_reduction reduction, const char *what)
{
    int64_t n = 0;
    double *got = conform_values(x, &n);
    bool well = got != NULL && n >= at + count;

    if (!well)
        wrong(rank, "%s: the result cannot be read: %s", what, tn_error_text());
    for (int64_t i = 0; well && i < count; i++) {
        double expected = of >= 0 ? value_of(of, from + i)
                                  : combined(reduction, rank->size, from + i);

        if (got[at + i] != expected)
            well = wrong(rank, "%s of %lld %s: element %lld: wrong value, got %.9g; expected %.9g",
                         what, (long long)count, tn_dtype_name(tn_tensor_dtype(x)),
                         (long long)(at + i), got[at + i], expected);
    }
    free(got);
    return well;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

static bool reduces(struct rank *rank, tn_dtype dtype, int64_t count)
{
    for (tn_reduction r = 0; r < TN_REDUCTION_COUNT; r++) {
        TN_SCOPE;
        tn_tensor *x = ramp(rank, rank->number, 0, count, dtype), *out, *in;

        if (r == TN_REDUCTION_AVERAGE && dtype != TN_F32)
            continue;
        if (rank->def->all_reduce != NULL &&
            (!did(rank, tn_comm_all_reduce(rank->comm, x, r), "all_reduce") ||
             !holds(rank, x, 0, count, -1, 0, r, "all_reduce")))
            return false;
        out = ramp(rank, 0, 0, count, dtype);
        in = ramp(rank, rank->number, 0, count * rank->size, dtype);
        if (rank->def->reduce_scatter != NULL &&
            (!did(rank, tn_comm_reduce_scatter(rank->comm, out, in, r), "reduce_scatter") ||
             !holds(rank, out, 0, count, -1, rank->number * count, r, "reduce_scatter")))
            return false;
    }
    return true;
}

static bool moves(struct rank *rank, tn_dtype dtype, int64_t count)
{
    TN_SCOPE;
    const int next = (rank->number + 1) % rank->size;
    const int last = (rank->number + rank->size - 1) % rank->size;
    tn_tensor *own = ramp(rank, rank->number, 0, count, dtype);
    tn_tensor *x = ramp(rank, 0, 0, count, dtype);
    tn_tensor *all = ramp(rank, 0, 0, count * rank->size, dtype);

    for (int root = 0; root < rank->size && rank->def->broadcast != NULL; root++) {
        tn_tensor *y = ramp(rank, rank->number, 0, count, dtype);

        if (!did(rank, tn_comm_broadcast(rank->comm, y, root), "broadcast") ||
            !holds(rank, y, 0, count, root, 0, 0, "broadcast"))
            return false;
    }
    if (rank->def->all_gather != NULL) {
        if (!did(rank, tn_comm_all_gather(rank->comm, all, own), "all_gather"))
            return false;
        for (int r = 0; r < rank->size; r++)
            if (!holds(rank, all, r * count, count, r, 0, 0, "all_gather"))
                return false;
    }
    if (rank->def->send == NULL || rank->def->recv == NULL)
        return true;
    if (rank->number % 2 == 0) /* so that an engine whose send waits for the receiver works */
        return did(rank, tn_comm_send(rank->comm, own, next, 5), "send") &&
               did(rank, tn_comm_recv(rank->comm, x, last, 5), "recv") &&
               holds(rank, x, 0, count, last, 0, 0, "recv");
    return did(rank, tn_comm_recv(rank->comm, x, last, 5), "recv") &&
           holds(rank, x, 0, count, last, 0, 0, "recv") &&
           did(rank, tn_comm_send(rank->comm, own, next, 5), "send");
}

static bool test_values(struct rank *rank)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_I64 };
    static const int64_t counts[] = { 1, 7, LONG };

    for (int d = 0; d < 2; d++)
        for (int n = 0; n < 3; n++)
            if ((rank->def->dtypes & TN_BIT(dtypes[d])) &&
                (!reduces(rank, dtypes[d], counts[n]) || !moves(rank, dtypes[d], counts[n])))
                return false;
    return true;
}

/* The sums of numbers that must be rounded are the same on all ranks, to the bit. */
static bool test_bits(struct rank *rank)
{
    TN_SCOPE;
    double values[1000];
    tn_tensor *x, *first;
    int64_t n = 0;
    bool well;

    if (rank->def->all_reduce == NULL || rank->def->broadcast == NULL ||
        !(rank->def->dtypes & TN_BIT(TN_F32)))
        return true;
    for (int i = 0; i < 1000; i++)
        values[i] = sin(1.0 + i * 7 + rank->number * 13) * pow(10, i % 9 - 4);
    x = make(rank, values, 1000, TN_F32);
    if (!did(rank, tn_comm_all_reduce(rank->comm, x, TN_REDUCTION_SUM), "all_reduce"))
        return false;
    first = tn_clone(x);
    if (!did(rank, tn_comm_broadcast(rank->comm, first, 0), "broadcast"))
        return false;
    double *a = conform_values(x, &n), *b = conform_values(first, &n);
    well = a != NULL && b != NULL && memcmp(a, b, 1000 * sizeof *a) == 0;
    free(a);
    free(b);
    return well || wrong(rank, "all_reduce: the sum differs from that of rank 0; expected the same "
                               "bits on all ranks");
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool test_barrier(struct rank *rank)
{
    if (rank->def->barrier == NULL)
        return true;
    for (int late = 0; late < rank->size; late++) {
        if (rank->number == late)
            usleep(20000);
        atomic_fetch_add(&rank->board->arrived, 1);
        if (!did(rank, tn_comm_barrier(rank->comm), "barrier"))
            return false;
        if (atomic_load(&rank->board->arrived) < rank->size * (late + 1))
            return wrong(rank, "barrier: it does not wait for rank %d", late);
        if (!did(rank, tn_comm_barrier(rank->comm), "barrier"))
            return false;
    }
    return true;
}

/* A work must not be done before the last rank has started it, and its result is right. */
static bool test_works(struct rank *rank)
{
    TN_SCOPE;
    const bool late = rank->number == rank->size - 1;
    tn_tensor *x[3];
    tn_work *works[3];
    tn_comm_stats stats = { 0, 0, 0 };
    bool done = false;

    if (rank->def->start == NULL || rank->def->all_reduce == NULL)
        return true;
    atomic_fetch_add(&rank->board->arrived, 1);
    while (late && atomic_load(&rank->board->arrived) < rank->size - 1)
        usleep(1000);
    if (late) {
        usleep(50000);
        atomic_fetch_add(&rank->board->arrived, RANKS);
    }
    for (int i = 0; i < 3; i++) {
        x[i] = ramp(rank, rank->number, 0, 7 + 30000 * i, TN_F32);
        works[i] = tn_comm_all_reduce_start(rank->comm, x[i], TN_REDUCTION_SUM);
        if (works[i] == NULL)
            return wrong(rank, "start: fails: %s", tn_error_text());
    }
    for (int i = 0; i < 30000 && !done; i++) {
        usleep(100);
        if (!did(rank, tn_comm_progress(rank->comm), "progress") ||
            !did(rank, tn_work_done(works[0], &done), "progress"))
            return false;
        if (done && atomic_load(&rank->board->arrived) < RANKS)
            return wrong(rank, "progress: a work is done before the last rank has started it");
    }
    if (!done)
        return wrong(rank, "progress: a work that all ranks have started is never done");
    for (int i = 0; i < 3; i++)
        if (!did(rank, tn_work_wait(works[i]), "wait") ||
            !holds(rank, x[i], 0, 7 + 30000 * i, -1, 0, TN_REDUCTION_SUM, "start: all_reduce"))
            return false;
    return did(rank, tn_comm_stats_of(rank->comm, TN_EXCHANGE_ALL_REDUCE, &stats), "statistics") &&
           (stats.calls == 3 ||
            wrong(rank, "statistics: wrong calls, got %lld; expected 3", (long long)stats.calls));
}

/* ---- ranks that fail ------------------------------------------------------------------------- */

/* Expects that an exchange fails because of another rank, within the time limit and 2 s. */
static bool fails_in_time(struct rank *rank, double seconds, const char *what)
{
    TN_SCOPE;
    const double since = conform_now();
    tn_tensor *x = ramp(rank, rank->number, 0, LONG, TN_F32);
    tn_status status = TN_OK;

    for (int i = 0; i < 3 && status == TN_OK; i++) /* a rank need not notice it at once */
        status = rank->def->all_reduce != NULL ? tn_comm_all_reduce(rank->comm, x, TN_REDUCTION_MAX)
                                               : tn_comm_barrier(rank->comm);
    if (status != TN_ERR_PEER && status != TN_ERR_TIMEOUT)
        return wrong(rank, "%s: an exchange returns %s; expected TN_ERR_PEER or TN_ERR_TIMEOUT",
                     what, tn_status_name(status));
    if (conform_now() - since > seconds + 2)
        return wrong(rank, "%s: an exchange fails after %.1f s; expected at most %.1f s", what,
                     conform_now() - since, seconds + 2);
    tn_error_clear();
    if (tn_comm_barrier(rank->comm) == TN_OK)
        return wrong(rank, "%s: a later exchange succeeds; expected the first failure", what);
    return true;
}

static bool test_lost(struct rank *rank)
{
    if (rank->number == rank->size - 1)
        _exit(0);
    return fails_in_time(rank, SHORT, "a rank has ended");
}

static bool test_late(struct rank *rank)
{
    if (rank->number == rank->size - 1) {
        usleep((SHORT + 2) * 1000000);
        return true;
    }
    return fails_in_time(rank, SHORT, "a rank is late");
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void run_rank(struct rank *rank, rank_test *test, double seconds)
{
    const tn_comm_args args = { TN_HEAD(tn_comm_args),
                                .rank = rank->number,
                                .size = rank->size,
                                .address = rank->address,
                                .device = rank->c->plugin->device,
                                .timeout = seconds };

    rank->comm = tn_comm_new(rank->c->subject, &args);
    if (rank->comm == NULL) {
        wrong(rank, "%s", tn_error_text());
        _exit(0);
    }
    rank->board->of[rank->number].opened = true;
    test(rank);
    tn_comm_drop(rank->comm);
    _exit(0);
}

/* Waits for the ranks. Returns the signal that ended one; 0: none. */
static int end_of_ranks(const pid_t *ranks, int size)
{
    int ended = 0;

    for (int r = 0; r < size; r++) {
        int status = 0;

        while (ranks[r] > 0 && waitpid(ranks[r], &status, 0) < 0 && errno == EINTR)
            continue;
        if (ranks[r] > 0 && WIFSIGNALED(status))
            ended = WTERMSIG(status);
    }
    return ended;
}

/* Runs a test in a group of processes. *opened tells whether the group came about. */
static bool in_ranks(conform *c, const tn_comm_def *def, int size, rank_test *test, double seconds,
                     bool *opened)
{
    char folder[] = "/tmp/tenon-check-XXXXXX", address[64];
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t ranks[RANKS] = { 0 };
    bool well = true;
    int ended;

    if (board == MAP_FAILED || mkdtemp(folder) == NULL)
        return conform_fail(c, "memory or a folder for a group: %s", strerror(errno));
    snprintf(address, sizeof address, "%s/comm", folder);
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        struct rank rank = { c, def, board, address, r, size, NULL };

        ranks[r] = fork();
        if (ranks[r] == 0)
            run_rank(&rank, test, seconds);
    }
    ended = end_of_ranks(ranks, size);
    *opened = false;
    for (int r = 0; r < size; r++)
        *opened = *opened || board->of[r].opened;
    c->checks++;
    if (ended != 0)
        well = conform_fail(c, "a group of %d processes: signal %d ended a process", size, ended);
    for (int r = 0; r < size && well && *opened; r++)
        if (board->of[r].failed)
            well = conform_fail(c, "a group of %d processes: rank %d: %s", size, r,
                                board->of[r].text);
    if (well && !*opened)
        conform_skip(c, "groups of several processes: %s", board->of[0].text);
    rmdir(folder); /* an engine that leaves names there keeps it */
    munmap(board, sizeof *board);
    return well;
}

bool conform_comm_ranks(conform *c, const tn_comm_def *def)
{
    static const struct {
        rank_test *run;
        double seconds;
        int most; /* the size of the largest group */
    } tests[] = {
        { test_values, TIMEOUT, RANKS },  { test_bits, TIMEOUT, RANKS },
        { test_barrier, TIMEOUT, RANKS }, { test_works, TIMEOUT, RANKS },
        { test_lost, SHORT, RANKS },      { test_late, SHORT, 2 },
    };
    bool opened = true;

    if (!tn_device_is_host(c->plugin->device)) {
        conform_skip(c, "groups of several processes: the device has no host memory");
        return true;
    }
    for (int size = 2; size <= RANKS; size *= 2)
        for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
            if (opened && size <= tests[i].most &&
                !in_ranks(c, def, size, tests[i].run, tests[i].seconds, &opened))
                return false;
    return true;
}
