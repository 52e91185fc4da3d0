/* SPDX-License-Identifier: MIT
 *
 * The communicator `local` when something is wrong: ranks that end, stop, abort, ask for different
 * exchanges, or never come. No case may hang. */
#include "tests/comm/ranks.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { LENGTH = 300000 }; /* floats, more than the buffers hold */

/* What a child has got: the tests read it. */
struct outcome {
    tn_status code;
    double seconds; /* from the end of the rank that fails */
    char text[900];
};
static struct shared {
    double moment; /* when the rank failed */
    _Atomic int joined;
    struct outcome of[MOST_RANKS];
} * seen;

static void make_shared(void)
{
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
}

static void note(int rank)
{
    seen->of[rank].code = tn_error_code();
    seen->of[rank].seconds = seconds_now() - seen->moment;
    snprintf(seen->of[rank].text, sizeof seen->of[rank].text, "%s", tn_error_text());
}

static tn_tensor *ones(int64_t count)
{
    tn_tensor *x = tn_tensor_full(TN_SHAPE(count), 1, TN_F32, NULL);

    need(x != NULL);
    return x;
}

/* Reduces until an error comes. */
static void reduce_for_ever(tn_comm *comm, int rank)
{
    TN_SCOPE;
    tn_tensor *x = ones(LENGTH);

    while (tn_comm_all_reduce(comm, x, TN_REDUCTION_MAX) == TN_OK)
        ;
    note(rank);
    tn_error_clear();
    /* the first reason stays, and comes at once */
    need(tn_comm_barrier(comm) == seen->of[rank].code);
    need(strstr(tn_error_text(), "all_reduce") != NULL || strstr(tn_error_text(), "abort") != NULL);
    tn_comm_drop(comm);
}

#define ck_text(rank_, code_, words)                                                               \
    ck_assert_msg(seen->of[rank_].code == (code_) && strstr(seen->of[rank_].text, words) != NULL,  \
                  "rank %d: %s: %s; expected %s", rank_, tn_status_name(seen->of[rank_].code),     \
                  seen->of[rank_].text, words)

/* ---- ranks that end -------------------------------------------------------------------------- */

static int victim;

static void reduce_until_killed(int rank, int size)
{
    tn_comm *comm = join(rank, size);

    seen->joined++;
    reduce_for_ever(comm, rank);
}

static void kill_one(int size, bool tcp)
{
    pid_t pids[MOST_RANKS] = { 0 };

    make_address(tcp);
    seen->joined = 0;
    start_ranks(reduce_until_killed, size, pids);
    for (int turns = 0; seen->joined < size && turns < 1000; turns++)
        usleep(10000);
    usleep(100000); /* in the midst of their reductions */
    seen->moment = seconds_now();
    ck_assert_int_gt(pids[victim], 0);
    kill(pids[victim], SIGKILL);
    for (int r = 0; r < size; r++)
        ck_assert_int_eq(end_of_rank(pids[r]), r == victim ? -SIGKILL : 0);
    for (int r = 0; r < size; r++) {
        char words[64];

        if (r == victim)
            continue;
        snprintf(words, sizeof words, "rank %d is lost, its process has ended: all_reduce #",
                 victim);
        ck_text(r, TN_ERR_PEER, words);
        ck_assert_double_lt(seen->of[r].seconds, 2);
    }
    remove_address();
}

START_TEST(a_killed_rank_is_an_error_of_all_others)
{
    make_shared();
    for (victim = 0; victim < 3; victim++)
        kill_one(3, false);
    victim = 1;
    kill_one(2, true);
}
END_TEST

/* The rank ends before the group is complete, after it has connected or before. */
static void end_in_open(int rank, int size)
{
    tn_comm *comm;

    if (rank == 1) { /* connects to rank 0, and ends before rank 2 comes */
        usleep(100000);
        alarm(1);
    }
    if (rank == 2)
        sleep(3);
    comm = join_for(rank, size, 5);
    note(rank);
    need(comm == NULL);
}

START_TEST(a_rank_that_ends_in_open_is_an_error_of_the_others)
{
    pid_t pids[MOST_RANKS] = { 0 };

    make_shared();
    make_address(false);
    start_ranks(end_in_open, 3, pids);
    ck_assert_int_eq(end_of_rank(pids[1]), -SIGALRM);
    seen->moment = seconds_now();
    ck_assert_int_eq(end_of_rank(pids[0]), 0);
    ck_text(0, TN_ERR_PEER, "a process of the group has ended before all 3 were there");
    ck_assert_double_lt(seconds_now() - seen->moment, 2);
    kill(pids[2], SIGKILL);
    end_of_rank(pids[2]);
    unlink(address); /* none of rank 2, which was not there yet */
    snprintf(address, sizeof address, "%s/comm.1", folder);
    unlink(address); /* left by rank 1 */
    remove_address();
}
END_TEST

/* A rank that ends without closing the group, and one that closes it too early. */
static void leave(int rank, int size)
{
    tn_comm *comm = join(rank, size);

    if (rank == 1) {
        if (victim == 0)
            _exit(0);
        tn_comm_drop(comm);
        return;
    }
    seen->moment = seconds_now();
    reduce_for_ever(comm, rank);
}

START_TEST(a_rank_that_leaves_is_an_error_of_the_others)
{
    make_shared();
    for (victim = 0; victim < 2; victim++)
        for (int tcp = 0; tcp < 2; tcp++) {
            run_ranks(leave, 2, tcp);
            ck_text(0, TN_ERR_PEER, victim == 0 ? "rank 1 is lost" : "rank 1 has left the group");
            ck_text(0, TN_ERR_PEER, "it has not joined; it has begun no exchange");
            ck_assert_double_lt(seen->of[0].seconds, 2);
        }
}
END_TEST

/* The last exchange of a rank that then closes must reach the others. */
static void finish_and_leave(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    tn_tensor *x = ones(LENGTH), *y = ones(10);

    if (rank == 1)
        usleep(50000);
    need_ok(tn_comm_all_reduce(comm, x, TN_REDUCTION_SUM));
    need(tn_item(tn_amax(x, tn_none_ints(), false)) == size);
    if (rank == 0) {
        need_ok(tn_comm_send(comm, x, 1, 0));
        need_ok(tn_comm_broadcast(comm, y, 0));
    } else {
        need_ok(tn_comm_broadcast(comm, y, 0));
        usleep(100000);
        need_ok(tn_comm_recv(comm, x, 0, 0));
        need(tn_item(tn_amax(x, tn_none_ints(), false)) == size);
    }
    tn_comm_drop(comm);
}

START_TEST(what_a_rank_did_before_it_left_is_whole)
{
    run_ranks(finish_and_leave, 2, false);
    run_ranks(finish_and_leave, 2, true);
}
END_TEST

/* Opens, uses and closes groups; ends well whatever happens, if nothing hangs. */
static void open_use_close(int rank, int size)
{
    for (int g = 0; g < 4; g++) {
        TN_SCOPE;
        tn_comm *comm = join_for(rank, size, 0.5);
        tn_tensor *x = comm != NULL ? ones(LENGTH) : NULL;

        for (int i = 0; i < 5 && comm != NULL; i++)
            tn_comm_all_reduce(comm, x, TN_REDUCTION_MAX);
        tn_comm_drop(comm);
        if (tn_failed())
            break;
    }
    seen->of[rank].seconds = seconds_now();
}

START_TEST(a_rank_killed_at_any_moment_hangs_nobody)
{
    static const int delays[] = { 1, 8, 30 }; /* ms: in open, in exchanges, in close */
    int killed = 0;

    make_shared();
    for (int i = 0; i < 9; i++) {
        pid_t pids[MOST_RANKS] = { 0 };

        victim = i % 3;
        make_address(i % 2 == 1);
        start_ranks(open_use_close, 3, pids);
        usleep((useconds_t)delays[i / 3] * 1000);
        ck_assert_int_gt(pids[victim], 0);
        kill(pids[victim], SIGKILL);
        seen->moment = seconds_now();
        for (int r = 0; r < 3; r++) {
            int end = end_of_rank(pids[r]);

            killed += end == -SIGKILL;
            ck_assert(end == 0 || (r == victim && end == -SIGKILL));
            if (r != victim)
                ck_assert_double_lt(seen->of[r].seconds - seen->moment, 2.5);
            snprintf(address, sizeof address, "%s/comm.%d", folder, r);
            unlink(address); /* left by a rank that was killed in open */
        }
        remove_address();
    }
    ck_assert_int_gt(killed, 3);
}
END_TEST

/* ---- ranks that are late --------------------------------------------------------------------- */

static void wait_for_stopped(int rank, int size)
{
    tn_comm *comm = join_for(rank, size, 1);

    need(comm != NULL);
    if (rank == 1)
        raise(SIGSTOP);
    seen->moment = seconds_now();
    reduce_for_ever(comm, rank);
}

START_TEST(a_stopped_rank_is_late_and_named)
{
    pid_t pids[MOST_RANKS] = { 0 };

    make_shared();
    make_address(false);
    start_ranks(wait_for_stopped, 3, pids);
    ck_assert_int_eq(end_of_rank(pids[0]), 0);
    ck_assert_int_eq(end_of_rank(pids[2]), 0);
    kill(pids[1], SIGCONT);
    ck_assert_int_eq(end_of_rank(pids[1]), 0);
    for (int r = 0; r < 3; r++) { /* one meets the limit, and tells the others */
        ck_text(r, seen->of[r].code == TN_ERR_TIMEOUT ? TN_ERR_TIMEOUT : TN_ERR_PEER,
                "all_reduce #0 (300000 float32, MAX): no progress for 1.");
        ck_text(r, seen->of[r].code, "late: rank 1; waiting: 0, 2; rank 1 has not joined");
        ck_assert_double_lt(seen->of[r].seconds, 2);
    }
    ck_assert(seen->of[0].code == TN_ERR_TIMEOUT || seen->of[2].code == TN_ERR_TIMEOUT);
    remove_address();
}
END_TEST

static void wait_for_nobody(int rank, int size)
{
    tn_comm *comm;

    if (rank > 0)
        return;
    comm = join_for(rank, size, 0.5);
    need(comm == NULL);
    note(rank);
}

START_TEST(a_rank_that_never_comes_is_named)
{
    make_shared();
    for (int tcp = 0; tcp < 2; tcp++) {
        run_ranks(wait_for_nobody, 3, tcp);
        ck_text(0, TN_ERR_TIMEOUT, "has waited 0.5");
        ck_text(0, TN_ERR_TIMEOUT, "s for rank 1, 2; expected 3 processes with this address");
    }
}
END_TEST

/* ---- ranks that do something else ------------------------------------------------------------ */

static int mistake;

static void differ(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    tn_tensor *x = ones(LENGTH), *y = tn_cast(ones(LENGTH), TN_F64), *z = ones(LENGTH - 1);
    tn_status status = TN_OK;

    need_ok(tn_comm_barrier(comm));
    if (rank != 1)
        status = tn_comm_all_reduce(comm, x, TN_REDUCTION_SUM);
    else if (mistake == 0)
        status = tn_comm_broadcast(comm, x, 1);
    else if (mistake == 1)
        status = tn_comm_all_reduce(comm, y, TN_REDUCTION_SUM);
    else if (mistake == 2)
        status = tn_comm_all_reduce(comm, z, TN_REDUCTION_SUM);
    else if (mistake == 3)
        status = tn_comm_all_reduce(comm, x, TN_REDUCTION_MAX);
    else
        status = tn_comm_barrier(comm);
    note(rank);
    need(status == TN_ERR_VALUE);
    need(tn_item(tn_amax(x, tn_none_ints(), false)) == 1); /* no sum is visible */
    tn_comm_drop(comm);
}

START_TEST(different_exchanges_are_an_error_of_all_with_both_signatures)
{
    static const char *const words[] = {
        "rank 1 for broadcast #1 (300000 float32, root 1)",
        "rank 1 for all_reduce #1 (300000 float64, SUM)",
        "rank 1 for all_reduce #1 (299999 float32, SUM)",
        "rank 1 for all_reduce #1 (300000 float32, MAX)",
        "rank 1 for barrier #1",
    };

    make_shared();
    for (mistake = 0; mistake < 5; mistake++)
        for (int tcp = 0; tcp < 2; tcp++) {
            run_ranks(differ, tcp ? 2 : 3, tcp);
            for (int r = 0; r < (tcp ? 2 : 3); r++) {
                ck_text(r, TN_ERR_VALUE, "the ranks ask for different exchanges: rank ");
                ck_text(r, TN_ERR_VALUE, words[mistake]);
                ck_text(r, TN_ERR_VALUE, " for all_reduce #1 (300000 float32, SUM)");
            }
        }
}
END_TEST

static void wrong_message(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);

    if (rank == 0)
        need_ok(tn_comm_send(comm, ones(10), 1, 3));
    else
        need(tn_comm_recv(comm, ones(11), 0, 3) == TN_ERR_VALUE);
    if (rank == 0)
        need(tn_comm_barrier(comm) == TN_ERR_VALUE);
    note(rank);
    tn_comm_drop(comm);
}

START_TEST(a_message_of_another_size_is_an_error)
{
    make_shared();
    run_ranks(wrong_message, 2, false);
    for (int r = 0; r < 2; r++)
        ck_text(r, TN_ERR_VALUE,
                "rank 1 receives 11 float32 with tag 3; rank 0 sent 40 bytes of float32");
}
END_TEST

/* ---- abort, fork ----------------------------------------------------------------------------- */

static void abort_group(int rank, int size)
{
    tn_comm *comm = join(rank, size);

    seen->moment = seconds_now();
    if (rank == 1) {
        usleep(100000);
        need_ok(tn_comm_abort(comm));
        need(tn_comm_barrier(comm) == TN_ERR_PEER);
        tn_comm_drop(comm);
        return;
    }
    reduce_for_ever(comm, rank);
}

/* What a rank completed before it aborts is complete for the others, too. */
static void finish_and_abort(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    tn_tensor *x = ones(LENGTH), *y = ones(10);

    need_ok(tn_comm_all_reduce(comm, x, TN_REDUCTION_SUM));
    if (rank == 0) {
        need_ok(tn_comm_send(comm, y, 1, 0));
        need_ok(tn_comm_abort(comm));
    } else {
        need(tn_item(tn_amin(x, tn_none_ints(), false)) == size);
        if (tn_comm_recv(comm, y, 0, 0) != TN_OK) /* the abort may come between the calls */
            need(strstr(tn_error_text(), "rank 0 reports: rank 0 has aborted") != NULL);
        tn_error_clear();
        need(tn_comm_barrier(comm) == TN_ERR_PEER);
        need(strstr(tn_error_text(), "rank 0 reports: rank 0 has aborted") != NULL);
    }
    tn_comm_drop(comm);
}

START_TEST(what_a_rank_did_before_it_aborts_is_whole)
{
    for (int i = 0; i < 20; i++)
        run_ranks(finish_and_abort, 2, i % 4 == 3);
    run_ranks(finish_and_abort, 2, true);
}
END_TEST

START_TEST(abort_stops_the_others)
{
    make_shared();
    run_ranks(abort_group, 3, false);
    for (int r = 0; r < 3; r += 2) {
        ck_text(r, TN_ERR_PEER, "rank 1 reports: rank 1 has aborted the group");
        ck_assert_double_lt(seen->of[r].seconds, 2);
    }
}
END_TEST

static void *abort_later(void *comm)
{
    usleep(100000);
    tn_comm_abort(comm);
    return NULL;
}

/* Another thread of the rank that waits. */
static void abort_by_thread(int rank, int size)
{
    TN_SCOPE;
    tn_comm *comm = join(rank, size);
    pthread_t thread;

    if (rank == 1) {
        usleep(300000);
        need(tn_comm_barrier(comm) == TN_ERR_PEER);
    } else {
        need(pthread_create(&thread, NULL, abort_later, comm) == 0);
        need(tn_comm_all_reduce(comm, ones(LENGTH), TN_REDUCTION_SUM) == TN_ERR_PEER);
        need(pthread_join(thread, NULL) == 0);
    }
    note(rank);
    tn_comm_drop(comm);
}

START_TEST(a_thread_stops_the_call_of_another)
{
    make_shared();
    run_ranks(abort_by_thread, 2, false);
    ck_text(0, TN_ERR_PEER, "rank 0 has aborted the group");
    ck_text(1, TN_ERR_PEER, "rank 0 reports: rank 0 has aborted the group");
}
END_TEST

static void fork_and_reduce(int rank, int size)
{
    tn_comm *comm = join(rank, size);
    pid_t child = fork();

    if (child == 0) {
        need(tn_comm_barrier(comm) == TN_ERR_RUNTIME);
        need(strstr(tn_error_text(), "open a group in this process") != NULL);
        tn_comm_drop(comm); /* does not speak for the parent */
        _exit(0);
    }
    need(end_of_rank(child) == 0);
    need_ok(tn_comm_barrier(comm));
    tn_comm_drop(comm);
}

START_TEST(a_child_after_fork_does_not_use_the_group)
{
    run_ranks(fork_and_reduce, 2, false);
}
END_TEST

/* ---- groups that do not fit ------------------------------------------------------------------ */

static void refuse(const char *spec, int size, const char *where, const char *words)
{
    const tn_comm_args args = { TN_HEAD(tn_comm_args), .size = size, .address = where,
                                .timeout = 0.2 };

    ck_assert_ptr_null(tn_comm_new(spec, &args));
    expect_failure(TN_ERR_VALUE, words);
}

START_TEST(wrong_groups_are_refused)
{
    refuse("local", 2, NULL, "address: missing for 2 processes");
    refuse("local", 2, "", "address: missing for 2 processes");
    refuse("local", 2, "here", "address: wrong, got \"here\"");
    refuse("local", 2, "127.0.0.1:0", "address: wrong");
    refuse("local", 2, "127.0.0.1:65535", "with a port from 1 to 65534");
    refuse("local", 2, "node17:29500", "address: another host, got \"node17:29500\"");
    refuse("local", 2, "127.0.0.1:29500", "token: missing");
    refuse("local(token='12')", 2, "127.0.0.1:29500", "token: wrong, got 2 characters");
    refuse("local", 257, "/tmp/x", "size: too large, got 257; expected at most 256");
    refuse("local(token='zz23456789abcdef0123456789abcdef')", 2, "/tmp/x", "token: wrong");
}
END_TEST

static void other_size(int rank, int size)
{
    need(join_for(rank, rank == 0 ? size : size + 1, 2) == NULL);
    note(rank);
}

static void same_rank(int rank, int size)
{
    (void)rank;
    need(join_for(rank == 2 ? 1 : rank, size, 2) == NULL);
    note(rank);
}

START_TEST(ranks_that_do_not_fit_together_are_refused)
{
    make_shared();
    run_ranks(other_size, 2, false);
    ck_text(0, TN_ERR_VALUE, "rank 0 has a group of 2 ranks, rank 1 of 3");
    ck_text(1, TN_ERR_VALUE, "rank 1 has a group of 3 ranks, rank 0 of 2");
    run_ranks(same_rank, 3, false);
    ck_assert_int_ne(seen->of[0].code, TN_OK);
}
END_TEST

/* A file that is no socket is not removed. */
START_TEST(a_file_at_the_address_stays)
{
    char path[128];
    FILE *file;

    make_address(false);
    snprintf(path, sizeof path, "%s.0", address);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    ck_assert_ptr_null(join_for(0, 2, 0.5));
    expect_failure(TN_ERR_IO, "rank 0 cannot listen at");
    ck_assert_int_eq(unlink(path), 0);
    remove_address();
}
END_TEST

/* A stranger connects with another token, and one sends nothing. */
static void strange(int rank, int size)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int file;

    if (rank < 2) {
        tn_comm_drop(join(rank, size - 1));
        return;
    }
    snprintf(at.sun_path, sizeof at.sun_path, "%s.0", address);
    for (int i = 0; i < 20; i++) {
        file = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(file, (struct sockaddr *)&at, sizeof at) == 0 && i % 2 == 0) {
            char greeting[512] = "tenon-c1 and then something else";

            need(send(file, greeting, sizeof greeting, MSG_NOSIGNAL) != 0);
        }
        usleep(2000);
    }
}

START_TEST(strangers_do_not_disturb)
{
    run_ranks(strange, 3, false);
}
END_TEST

/* Takes part in the opening of a group as rank 0 of 2, over TCP. Returns the connection. */
static int open_by_hand(void)
{
    struct {
        char magic[8], token[32];
        int32_t rank, size;
        uint64_t board, shared;
    } greeting;
    const struct sockaddr_in at = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                    .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)) };
    int listener = socket(AF_INET, SOCK_STREAM, 0), file, one = 1;
    char byte;

    need(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
    need(bind(listener, (const struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0);
    file = accept(listener, NULL, NULL);
    close(listener);
    need(recv(file, &greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting);
    greeting.rank = 0;
    need(send(file, &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting);
    need(recv(file, &byte, 1, 0) == 1 && send(file, &byte, 1, MSG_NOSIGNAL) == 1);
    return file;
}

/* After a message that is good comes a frame of no kind, and bytes for which there is no place. */
static void send_nonsense(int rank, int size)
{
    enum { MESSAGE = 2, NONSENSE = 1 << 20 };
    const struct {
        uint32_t kind;
        int32_t tag;
        uint64_t at, bytes;
    } good = { MESSAGE, 3, TN_F32, 40 }, bad = { 99, 0, 0, NONSENSE };
    static char bytes[NONSENSE];
    int file;

    if (rank == 1) {
        TN_SCOPE;
        tn_comm *comm = join(rank, size);
        tn_tensor *x = ones(10);

        need_ok(tn_comm_recv(comm, x, 0, 3));
        need(tn_item(tn_sum(x)) == 0);
        need(tn_comm_barrier(comm) == TN_ERR_PEER);
        note(rank);
        tn_comm_drop(comm);
        return;
    }
    file = open_by_hand();
    need(send(file, &good, sizeof good, MSG_NOSIGNAL) == sizeof good);
    need(send(file, bytes, 40, MSG_NOSIGNAL) == 40);
    usleep(100000); /* the other rank has received it */
    memset(bytes, 0xff, sizeof bytes);
    need(send(file, &bad, sizeof bad, MSG_NOSIGNAL) == sizeof bad);
    while (send(file, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        continue; /* until the other rank closes the connection */
    close(file);
}

START_TEST(a_malformed_frame_is_an_error)
{
    make_shared();
    run_ranks(send_nonsense, 2, true);
    ck_text(1, TN_ERR_PEER, "rank 0 sent a malformed frame: kind 99, 1048576 bytes at 0");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_killed_rank_is_an_error_of_all_others,
                                   a_rank_killed_at_any_moment_hangs_nobody,
                                   a_thread_stops_the_call_of_another,
                                   a_rank_that_ends_in_open_is_an_error_of_the_others,
                                   a_rank_that_leaves_is_an_error_of_the_others,
                                   what_a_rank_did_before_it_left_is_whole,
                                   a_stopped_rank_is_late_and_named,
                                   a_rank_that_never_comes_is_named,
                                   different_exchanges_are_an_error_of_all_with_both_signatures,
                                   a_message_of_another_size_is_an_error,
                                   abort_stops_the_others,
                                   what_a_rank_did_before_it_aborts_is_whole,
                                   a_child_after_fork_does_not_use_the_group,
                                   wrong_groups_are_refused,
                                   ranks_that_do_not_fit_together_are_refused,
                                   a_file_at_the_address_stays,
                                   strangers_do_not_disturb,
                                   a_malformed_frame_is_an_error,
                                   NULL };

    return suite_run("local: failures", tests);
}
