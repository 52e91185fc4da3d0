/* SPDX-License-Identifier: MIT
 *
 * The communicator `local`: exchanges in the background, and groups of processes that a launcher
 * has started. */
#include "tests/comm/ranks.h"

enum { LENGTH = 200000, WORKS = 6 };

static tn_tensor *filled(int64_t count, double value)
{
    tn_tensor *x = tn_tensor_full(TN_SHAPE(count), tn_scalar_float(value), TN_F32, NULL);

    need(x != NULL);
    return x;
}

static bool is_filled(tn_tensor *x, double value)
{
    return tn_item(tn_amax(x, tn_none_ints(), false)) == value &&
           tn_item(tn_amin(x, tn_none_ints(), false)) == value;
}

/* ---- works ----------------------------------------------------------------------------------- */

static void many_works(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    tn_tensor *x[WORKS], *b = filled(LENGTH, rank), *all = filled(10 * size, 0), *piece;
    tn_work *works[WORKS], *gather, *scatter;
    const int sum = size * (size - 1) / 2;
    tn_comm_stats stats;

    for (int i = 0; i < WORKS; i++) { /* from nothing to several buffers */
        x[i] = filled(i == 0 ? 0 : i * i * 7001, rank + i);
        works[i] = tn_comm_all_reduce_start(comm, x[i], TN_REDUCTION_SUM);
        need(works[i] != NULL);
    }
    gather = tn_comm_all_gather_start(comm, all, filled(10, rank));
    piece = filled(LENGTH, -1);
    scatter = tn_comm_reduce_scatter_start(comm, piece, filled(LENGTH * size, rank),
                                           TN_REDUCTION_MAX);
    /* a call that waits comes after all that was started */
    need_ok(tn_comm_broadcast(comm, b, size - 1));
    need(is_filled(b, size - 1));
    for (int i = WORKS - 1; i >= 0; i--) {
        bool done = false;

        need_ok(tn_work_done(works[i], &done));
        need(done);
        need_ok(tn_work_wait(works[i]));
        if (i > 0)
            need(is_filled(x[i], sum + size * i));
    }
    need_ok(tn_work_wait(scatter));
    need(is_filled(piece, size - 1));
    need_ok(tn_work_wait(gather));
    need(is_filled(tn_narrow(all, 0, 10 * (size - 1), 10), size - 1));
    need_ok(tn_comm_stats_of(comm, TN_EXCHANGE_ALL_REDUCE, &stats));
    need(stats.calls == WORKS - 1 && stats.bytes == (1 + 4 + 9 + 16 + 25) * 7001 * 4);
    need(stats.seconds > 0);
    tn_comm_drop(comm);
}

START_TEST(works_are_done_in_the_order_of_their_start)
{
    for (int size = 1; size <= 4; size++)
        run_ranks(many_works, size, false);
    run_ranks(many_works, 3, true);
}
END_TEST

/* Without any call that waits, looking is enough. */
static void look_only(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    tn_tensor *x = filled(LENGTH, rank + 1), *y = filled(5, 0);
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    tn_work *reduce = tn_comm_all_reduce_start(comm, x, TN_REDUCTION_PRODUCT);
    tn_work *get = tn_comm_recv_start(comm, y, last, 3);
    tn_work *put = tn_comm_send_start(comm, filled(5, 10 + rank), next, 3);
    bool done = false, got = false;

    need(reduce != NULL && get != NULL && put != NULL);
    for (int i = 0; i < 30000 && !(done && got); i++) {
        usleep(200);
        need_ok(tn_comm_progress(comm));
        need_ok(tn_work_done(reduce, &done));
        need_ok(tn_work_done(get, &got));
    }
    need(done && got);
    need_ok(tn_work_wait(put));
    need_ok(tn_work_wait(get));
    need_ok(tn_work_wait(reduce));
    need(is_filled(x, size == 2 ? 2 : 6));
    need(is_filled(y, 10 + last));
    tn_comm_drop(comm);
}

START_TEST(looking_at_works_is_enough)
{
    run_ranks(look_only, 2, false);
    run_ranks(look_only, 3, false);
    run_ranks(look_only, 2, true);
}
END_TEST

/* Over TCP, a work may be done before the others have got all: waiting for it sends the rest, so
 * the rank need not make another call. */
static void send_the_rest(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    tn_tensor *x = filled(10, rank == 0 ? 7 : 0), *much = filled(40 * LENGTH, rank);
    /* what the socket cannot hold is in front of the broadcast */
    tn_work *message = rank == 0 ? tn_comm_send_start(comm, much, 1, 0)
                                 : tn_comm_recv_start(comm, much, 0, 0);
    tn_work *work = tn_comm_broadcast_start(comm, x, 0);
    const double since = seconds_now();
    bool done = false;

    need(message != NULL && work != NULL);
    if (rank == 0) {
        while (!done)
            need_ok(tn_work_done(work, &done));
        need_ok(tn_work_wait(work));
        sleep(2);
    } else {
        usleep(200000);
        need_ok(tn_work_wait(work));
        need(seconds_now() - since < 1.5);
        need(is_filled(x, 7));
    }
    need_ok(tn_work_wait(message));
    need(is_filled(much, 0));
    tn_comm_drop(comm);
}

START_TEST(waiting_for_a_work_that_is_done_sends_the_rest)
{
    run_ranks(send_the_rest, 2, true);
}
END_TEST

/* A rank ends while works run: those that are done stay good, the others fail. */
static void lose_works(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    tn_tensor *x = filled(LENGTH, 1), *y = filled(LENGTH, 1);
    tn_work *first = tn_comm_all_reduce_start(comm, x, TN_REDUCTION_SUM), *second, *third;

    need(first != NULL);
    if (rank == 1) {
        need_ok(tn_work_wait(first));
        _exit(0);
    }
    second = tn_comm_all_reduce_start(comm, y, TN_REDUCTION_SUM);
    third = tn_comm_recv_start(comm, y, 1, 0);
    /* TCP may lose what a process has sent before it ended */
    need(tn_work_wait(first) == TN_OK ? is_filled(x, size) : over_tcp);
    tn_comm_drop(comm); /* the works keep the group */
    if (second != NULL) {
        need(tn_work_wait(second) == TN_ERR_PEER);
        need(strstr(tn_error_text(), "rank 1 is lost") != NULL);
    }
    if (third != NULL)
        need(tn_work_wait(third) == TN_ERR_PEER);
}

START_TEST(works_fail_when_a_rank_is_lost)
{
    run_ranks(lose_works, 2, false);
    run_ranks(lose_works, 3, false);
    run_ranks(lose_works, 2, true);
}
END_TEST

/* ---- launchers ------------------------------------------------------------------------------- */

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

static void reduce_world(int size)
{
    TN_SCOPE;
    tn_comm *comm = tn_comm_new(NULL, NULL);
    tn_tensor *x = filled(3, 1);

    need(comm != NULL);
    need(tn_comm_size(comm) == size);
    need_ok(tn_comm_all_reduce(comm, x, TN_REDUCTION_SUM));
    need(is_filled(x, size));
    tn_comm_drop(comm);
}

static void by_tenon_run(int rank, int size)
{
    set_number("TENON_COMM_RANK", rank);
    set_number("TENON_COMM_SIZE", size);
    setenv("TENON_COMM_ADDRESS", address, 1);
    setenv("TENON_COMM_TOKEN", token, 1);
    setenv("TENON_COMM_TIMEOUT", "20", 1);
    reduce_world(size);
}

static void by_torchrun(int rank, int size)
{
    setenv("XDG_RUNTIME_DIR", folder, 1);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", size);
    set_number("LOCAL_WORLD_SIZE", size);
    setenv("MASTER_PORT", "29500", 1);
    reduce_world(size);
    if (rank == 0) { /* the folder for sockets is empty, and for this user alone */
        char path[128];

        snprintf(path, sizeof path, "%s/tenon-%u", folder, (unsigned)geteuid());
        need(rmdir(path) == 0);
    }
}

static void by_mpirun(int rank, int size)
{
    setenv("XDG_RUNTIME_DIR", folder, 1);
    set_number("OMPI_COMM_WORLD_RANK", rank);
    set_number("OMPI_COMM_WORLD_SIZE", size);
    set_number("OMPI_COMM_WORLD_LOCAL_SIZE", size);
    set_number("PMI_RANK", rank); /* both agree */
    set_number("PMI_SIZE", size);
    reduce_world(size);
    if (rank == 0) {
        char path[128];

        snprintf(path, sizeof path, "%s/tenon-%u", folder, (unsigned)geteuid());
        need(rmdir(path) == 0);
    }
}

static void alone(int rank, int size)
{
    (void)rank;
    setenv("SLURM_PROCID", "0", 1); /* salloc and sbatch: one task */
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    reduce_world(size);
}

START_TEST(processes_of_a_launcher_find_each_other)
{
    run_ranks(by_tenon_run, 3, false);
    run_ranks(by_tenon_run, 2, true);
    run_ranks(by_torchrun, 2, false);
    run_ranks(by_mpirun, 2, false);
    run_ranks(alone, 1, false);
}
END_TEST

static const struct wrong {
    const char *variables; /* NAME=VALUE, separated by spaces */
    const char *words;
} wrongs[] = {
    { "TENON_COMM_RANK=2 TENON_COMM_SIZE=2", "got TENON_COMM_RANK=2 and TENON_COMM_SIZE=2" },
    { "TENON_COMM_RANK=0", "got TENON_COMM_RANK=0 and TENON_COMM_SIZE=0" },
    { "TENON_COMM_SIZE=-4 TENON_COMM_RANK=0", "TENON_COMM_SIZE=-4" },
    { "TENON_COMM_SIZE=2 TENON_COMM_RANK=0", "address: missing for 2 processes" },
    { "RANK=x WORLD_SIZE=2", "RANK: wrong, got \"x\"; expected a whole number from 0 on" },
    { "RANK=0 WORLD_SIZE=0", "WORLD_SIZE: wrong, got \"0\"; expected a whole number from 1 on" },
    { "RANK=5 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4", "got RANK=5 and WORLD_SIZE=4" },
    { "RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2",
      "torchrun has started 4 processes on several hosts; this communicator serves the processes "
      "of one host" },
    { "RANK=0 WORLD_SIZE=2 PMI_RANK=1 PMI_SIZE=2",
      "two launchers disagree: RANK=0 and WORLD_SIZE=2, PMI_RANK=1 and PMI_SIZE=2" },
    { "TENON_COMM_RANK=0 TENON_COMM_SIZE=3 RANK=0 WORLD_SIZE=2",
      "two launchers disagree: TENON_COMM_RANK=0 and TENON_COMM_SIZE=3, RANK=0" },
    { "TENON_COMM_TIMEOUT=-1 TENON_COMM_RANK=0 TENON_COMM_SIZE=2 TENON_COMM_ADDRESS=/tmp/x",
      "timeout: wrong, got -1.0" },
    { "XDG_RUNTIME_DIR=/nowhere RANK=0 WORLD_SIZE=2", "/nowhere/tenon-" },
};
static const struct wrong *wrong;

static void try_wrong(int rank, int size)
{
    char text[200], *rest = text;

    (void)rank, (void)size;
    snprintf(text, sizeof text, "%s", wrong->variables);
    for (char *one; (one = strtok_r(rest, " ", &rest)) != NULL;) {
        char *value = strchr(one, '=');

        *value = '\0';
        setenv(one, value + 1, 1);
    }
    need(tn_comm_new(NULL, NULL) == NULL);
    if (strstr(tn_error_text(), wrong->words) == NULL)
        fprintf(stderr, "expected %s\n", wrong->words);
    need(strstr(tn_error_text(), wrong->words) != NULL);
}

START_TEST(wrong_variables_are_refused)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        wrong = &wrongs[i];
        run_ranks(try_wrong, 1, false);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { works_are_done_in_the_order_of_their_start,
                                   looking_at_works_is_enough,
                                   waiting_for_a_work_that_is_done_sends_the_rest,
                                   works_fail_when_a_rank_is_lost,
                                   processes_of_a_launcher_find_each_other,
                                   wrong_variables_are_refused,
                                   NULL };

    return suite_run("local: works", tests);
}
