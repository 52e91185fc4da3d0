/* SPDX-License-Identifier: MIT
 *
 * Every writer of files while things go wrong: calls that fail, a full disk, a limit on the size of
 * files, closed standard streams, a kill at every step. The old file must stay until the new file
 * is complete, other files must not change, and no temporary file may remain. */
#include "lib/io/private.h"

#include "tests/io/failing_calls.h"
#include "tests/io/registered_formats.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

/* ---- calls that fail ------------------------------------------------------------------------- */

static const struct {
    const char *what;
    unsigned calls;
    int number;
    bool onwards, no_tmpfile;
} kinds[] = {
    { "a full disk", 1u << CALL_WRITE, ENOSPC, true, false },
    { "a full disk, with names", 1u << CALL_WRITE, ENOSPC, true, true },
    { "a write that fails once", 1u << CALL_WRITE, EIO, false, false },
    { "a file that cannot be made", 1u << CALL_OPEN, EMFILE, true, false },
    { "a sync that fails", 1u << CALL_SYNC, EIO, false, false },
    { "a sync that fails, with names", 1u << CALL_SYNC, EIO, false, true },
    { "a disk without space for a name", 1u << CALL_LINK, ENOSPC, true, false },
    { "a rename that fails", 1u << CALL_RENAME, EBUSY, true, false },
    { "a rename that fails, with names", 1u << CALL_RENAME, EBUSY, true, true },
};

/* Saves `fresh` over an old file with the n-th call failing, for each n. A save that fails changes
 * nothing, except when only the sync of the folder fails: then the new file is there. */
static void fail_every_call(const char *path, int kind)
{
    tn_state *old = saving_state(path, 1), *fresh = saving_state(path, 2);
    for (int64_t n = 1;; n++) {
        ck_assert_msg(save_as(old, path) == TN_OK, "%s", tn_error_text());
        char *before = folder_text();
        memset(&fault, 0, sizeof fault);
        fault.calls = kinds[kind].calls;
        fault.number = kinds[kind].number;
        fault.onwards = kinds[kind].onwards;
        fault.no_tmpfile = kinds[kind].no_tmpfile;
        fault.nth = n;
        fault.armed = true;
        tn_status status = save_as(fresh, path);
        faults_off();
        ck_assert_int_lt(n, 100);
        if (fault.seen < n) {
            /* The call was not made at all: the save is complete. */
            ck_assert_int_eq(status, TN_OK);
            ck_assert_int_gt(n, 1);
            free(before);
            break;
        }
        ck_assert_msg(status == TN_ERR_IO, "%s, call %lld", kinds[kind].what, (long long)n);
        ck_assert_int_eq(tn_error_last()->native, kinds[kind].number);
        if (kinds[kind].calls == 1u << CALL_SYNC && value_of(path) == 2) {
            expect_failure(TN_ERR_IO, "written, but its folder cannot be synced");
            free(before);
        } else {
            expect_folder_text(before, kinds[kind].what);
        }
        tn_error_clear();
    }
    ck_assert(value_of(path) == 2);
    tn_state_drop(old);
    tn_state_drop(fresh);
}

START_TEST(a_call_that_fails_leaves_the_old_file_and_nothing_else)
{
    for (int p = 0, count = saving_count(); p < count; p++) {
        in_folder();
        put_foreign();
        for (int kind = 0; kind < tn__countof(kinds); kind++)
            fail_every_call(saving_paths[p], kind);
        leave_folder();
    }
}
END_TEST

START_TEST(short_writes_and_file_systems_that_can_do_less_make_the_same_files)
{
    for (int p = 0, count = saving_count(); p < count; p++) {
        const char *path = saving_paths[p];
        tn_state *state = saving_state(path, 3);
        in_folder();
        put_foreign();
        ck_assert_msg(save_as(state, path) == TN_OK, "%s", tn_error_text());
        char *before = folder_text();
        for (int way = 0; way < 3; way++) {
            /* Twice, so that a set has its first names again. */
            for (int twice = 0; twice < 2; twice++) {
                memset(&fault, 0, sizeof fault);
                fault.short_write = way == 0;
                fault.no_tmpfile = way == 1;
                fault.no_link = way == 2;
                fault.armed = true;
                tn_status status = save_as(state, path);
                faults_off();
                ck_assert_msg(status == TN_OK, "%s", tn_error_text());
                ck_assert_msg(!tn_failed(), "%s", tn_error_text());
            }
            char *now = folder_text();
            ck_assert_msg(strcmp(before, now) == 0, "%s%s", before, now);
            free(now);
        }
        free(before);
        tn_state_drop(state);
        leave_folder();
    }
}
END_TEST

/* ---- a full disk ----------------------------------------------------------------------------- */

START_TEST(a_full_disk_leaves_the_old_file_and_takes_no_room)
{
    static const char size[] = "size=1200k";
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0) {
        printf("SKIP a_full_disk_leaves_the_old_file_and_takes_no_room: mounting takes root\n");
        return;
    }
    for (int p = 0, count = saving_count(); p < count; p++) {
        const char *path = saving_paths[p];
        tn_state *old = saving_state(path, 1), *large = saving_state(path, 2);
        TN_SCOPE;
        tn_state_set(large, "arr_0", tn_tensor_full(TN_SHAPE(400000), 2, TN_F32, NULL));
        in_folder();
        ck_assert_int_eq(mount("none", folder, "tmpfs", 0, size), 0);
        ck_assert_int_eq(chdir(folder), 0);
        put_foreign();
        ck_assert_msg(save_as(old, path) == TN_OK, "%s", tn_error_text());
        struct statvfs before_room, room;
        ck_assert_int_eq(statvfs(".", &before_room), 0);
        char *before = folder_text();
        ck_assert_int_eq(save_as(large, path), TN_ERR_IO);
        ck_assert_int_eq(tn_error_last()->native, ENOSPC);
        expect_failure(TN_ERR_IO, "No space left on device");
        expect_folder_text(before, path);
        ck_assert(value_of(path) == 1);
        ck_assert_int_eq(statvfs(".", &room), 0);
        ck_assert_uint_eq(room.f_bfree, before_room.f_bfree);
        ck_assert_uint_eq(room.f_ffree, before_room.f_ffree);
        ck_assert_int_eq(chdir("/"), 0);
        ck_assert_int_eq(umount(folder), 0);
        ck_assert_int_eq(rmdir(folder), 0);
        tn_state_drop(old);
        tn_state_drop(large);
    }
}
END_TEST

/* ---- a limit on the size of files ------------------------------------------------------------ */

static int signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

/* With the default action, which ends the process, and with a handler of the program. */
START_TEST(a_limit_on_the_size_of_files_is_an_error_and_no_signal)
{
    struct rlimit before, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int p = 0, count = saving_count(); p < count; p++) {
        const char *path = saving_paths[p];
        tn_state *old = saving_state(path, 1), *fresh = saving_state(path, 2);
        in_folder();
        put_foreign();
        ck_assert_int_eq(save_as(old, path), TN_OK);
        for (int with_handler = 0; with_handler < 2; with_handler++) {
            struct sigaction action = { .sa_handler = with_handler ? count_signal : SIG_DFL };
            struct sigaction after;
            sigset_t mask_before, mask_after, pending;
            ck_assert_int_eq(sigaction(SIGXFSZ, &action, NULL), 0);
            pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
            char *text = folder_text();
            small = (struct rlimit){ 70000, before.rlim_max };
            ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
            tn_status status = save_as(fresh, path);
            setrlimit(RLIMIT_FSIZE, &before);
            ck_assert_int_eq(status, TN_ERR_IO);
            ck_assert_int_eq(tn_error_last()->native, EFBIG);
            expect_failure(TN_ERR_IO, "cannot write: File too large");
            expect_folder_text(text, path);
            ck_assert_int_eq(signals, 0);
            ck_assert_int_eq(sigaction(SIGXFSZ, NULL, &after), 0);
            ck_assert(after.sa_handler == action.sa_handler);
            pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
            sigpending(&pending);
            ck_assert_int_eq(sigismember(&pending, SIGXFSZ), 0);
            ck_assert_int_eq(sigismember(&mask_after, SIGXFSZ), sigismember(&mask_before, SIGXFSZ));
        }
        ck_assert(value_of(path) == 1);
        tn_state_drop(old);
        tn_state_drop(fresh);
        leave_folder();
    }
}
END_TEST

/* A signal that the program itself has blocked stays pending. */
START_TEST(a_pending_signal_of_the_program_stays)
{
    struct rlimit before, small;
    sigset_t set, pending;
    tn_state *state = saving_state("w.npy", 1);
    in_folder();
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_kill(pthread_self(), SIGXFSZ);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ 70000, before.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_int_eq(save_as(state, "w.npy"), TN_ERR_IO);
    setrlimit(RLIMIT_FSIZE, &before);
    tn_error_clear();
    sigpending(&pending);
    ck_assert_int_eq(sigismember(&pending, SIGXFSZ), 1);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

/* ---- closed standard streams ----------------------------------------------------------------- */

static bool print_much(void *user, const char *what, uint64_t done, uint64_t total)
{
    (void)user, (void)what, (void)done, (void)total;
    tn_log(TN_LOG_ERROR, "a line of the log");
    for (int stream = 0; stream < 3; stream++)
        if (write(stream, "printed", 7) < 0)
            continue; /* it is closed, as it should be */
    return true;
}

/* Runs `task` with those standard streams closed whose bits are set. */
static tn_status closed(unsigned streams, tn_status (*task)(const void *user), const void *user)
{
    int saved[3];
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        dup2(nothing, i);
    }
    for (int i = 0; i < 3; i++)
        if ((streams & 1u << i) != 0)
            close(i);
    tn_set_progress(print_much, NULL);
    tn_status status = task(user);
    tn_set_progress(NULL, NULL);
    unsigned open_now = 0;
    for (int i = 0; i < 3; i++)
        open_now |= (fcntl(i, F_GETFD) >= 0 ? 1u : 0) << i;
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    close(nothing);
    ck_assert_uint_eq(open_now, 7 & ~streams); /* nothing took their place for good */
    return status;
}

struct saving {
    const tn_state *state;
    const char *path;
};

static tn_status save_it(const void *user)
{
    const struct saving *s = user;
    return save_as(s->state, s->path);
}

static tn_status load_it(const void *user)
{
    const struct saving *s = user;
    tn_state *state = tn_state_load(s->path);
    tn_state_drop(state);
    return state != NULL ? TN_OK : tn_error_last_code();
}

START_TEST(closed_standard_streams_do_not_become_the_file)
{
    for (int p = 0, count = saving_count(); p < count; p++) {
        struct saving s = { saving_state(saving_paths[p], 1), saving_paths[p] };
        in_folder();
        put_foreign();
        ck_assert_int_eq(save_it(&s), TN_OK);
        char *before = folder_text();
        for (unsigned streams = 1; streams < 8; streams++) {
            for (int twice = 0; twice < 2; twice++)
                ck_assert_msg(closed(streams, save_it, &s) == TN_OK, "%s", tn_error_text());
            ck_assert_msg(closed(streams, load_it, &s) == TN_OK, "%s", tn_error_text());
            char *now = folder_text();
            ck_assert_msg(strcmp(before, now) == 0, "%u:\n%s%s", streams, before, now);
            free(now);
        }
        free(before);
        tn_state_drop((tn_state *)s.state);
        leave_folder();
    }
}
END_TEST

/* ---- a kill ---------------------------------------------------------------------------------- */

/* A child that saves; returns how it ended. */
static int save_in_child(const tn_state *state, const char *path, bool no_tmpfile, int64_t nth)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        memset(&fault, 0, sizeof fault);
        fault.calls = (1u << CALLS) - 1;
        fault.kill = true;
        fault.no_tmpfile = no_tmpfile;
        fault.nth = nth;
        fault.armed = true;
        _exit(save_as(state, path) == TN_OK ? 0 : 3);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

/* Kills a save before each of its calls in turn. The file is always the old or the new one, and
 * later saves remove what was left. */
static void kill_at_every_call(const char *path, bool no_tmpfile)
{
    tn_state *old = saving_state(path, 1), *fresh = saving_state(path, 2);
    put_foreign();
    ck_assert_msg(save_as(old, path) == TN_OK, "%s", tn_error_text());
    ck_assert_msg(save_as(old, path) == TN_OK, "%s", tn_error_text());
    ck_assert_msg(save_as(old, path) == TN_OK, "%s", tn_error_text());
    int64_t n = 1, left = 0;
    for (int status;; n++) {
        char *before = folder_text();
        status = save_in_child(fresh, path, no_tmpfile, n);
        double value = value_of(path);
        if (!WIFSIGNALED(status)) {
            ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
            ck_assert(value == 2);
            free(before);
            break;
        }
        ck_assert_int_eq(WTERMSIG(status), SIGKILL);
        ck_assert(value == 1 || value == 2);
        ck_assert_int_lt(n, 200);
        char *after = folder_text();
        left += value == 1 && strcmp(before, after) != 0;
        free(after);
        /* After at most four saves a set has the names again that it had. */
        for (int i = 0; i < 4; i++) {
            ck_assert_msg(save_as(old, path) == TN_OK, "%s", tn_error_text());
            char *now = folder_text();
            bool same = strcmp(before, now) == 0;
            free(now);
            if (same)
                break;
            ck_assert_msg(i < 3, "killed at call %lld of %s: something was left", (long long)n,
                          path);
        }
        free(before);
    }
    ck_assert_int_gt(n, 4); /* it did die in the middle */
    if (no_tmpfile)
        ck_assert_int_gt(left, 0); /* and left something, which then was removed */
    tn_state_drop(old);
    tn_state_drop(fresh);
}

START_TEST(a_kill_at_any_call_leaves_a_whole_file_and_nothing_after_the_next_save)
{
    for (int p = 0, count = saving_count(); p < count; p++) {
        for (int no_tmpfile = 0; no_tmpfile < 2; no_tmpfile++) {
            in_folder();
            kill_at_every_call(saving_paths[p], no_tmpfile);
            leave_folder();
        }
    }
}
END_TEST

/* Saves in turns until it is killed. */
static pid_t save_for_ever(tn_state *const states[2], const char *path, bool no_tmpfile)
{
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        memset(&fault, 0, sizeof fault);
        fault.no_tmpfile = no_tmpfile;
        fault.armed = true;
        if (syscall(SYS_write, ready[1], "!", 1) != 1)
            _exit(3);
        for (int i = 0; save_as(states[i % 2], path) == TN_OK; i++)
            ;
        _exit(3);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

START_TEST(two_hundred_kills_at_random_moments_do_no_harm)
{
    static const struct {
        const char *path;
        bool no_tmpfile;
    } ways[] = { { "w.safetensors", false },
                 { "w.npz", true },
                 { "w.safetensors.index.json", false },
                 { "w.safetensors.index.json", true } };
    uint32_t seed = 12345;
    for (int w = 0; w < tn__countof(ways); w++) {
        const char *path = ways[w].path;
        tn_state *states[] = { saving_state(path, 1), saving_state(path, 2) };
        in_folder();
        put_foreign();
        ck_assert_int_eq(save_as(states[0], path), TN_OK);
        char *before = folder_text();
        for (int i = 0; i < 50; i++) {
            int status;
            pid_t pid = save_for_ever(states, path, ways[w].no_tmpfile);
            seed = seed * 1664525 + 1013904223;
            usleep((seed >> 16) % 4000);
            ck_assert_int_eq(kill(pid, SIGKILL), 0);
            ck_assert_int_eq(waitpid(pid, &status, 0), pid);
            ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            double value = value_of(path);
            ck_assert(value == 1 || value == 2);
        }
        /* A set has its first names again after at most four saves. */
        for (int i = 0;; i++) {
            ck_assert_int_eq(save_as(states[0], path), TN_OK);
            char *now = folder_text();
            bool same = strcmp(before, now) == 0;
            ck_assert_msg(same || i < 3, "before:\n%safterwards:\n%s", before, now);
            free(now);
            if (same)
                break;
        }
        free(before);
        tn_state_drop(states[0]);
        tn_state_drop(states[1]);
        leave_folder();
    }
}
END_TEST

/* Where files have no names while they are written, a kill leaves none. */
START_TEST(a_killed_save_of_one_file_leaves_nothing)
{
    tn_state *state = saving_state("w.npz", 1);
    int64_t n = 1;
    in_folder();
    if (open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) < 0) {
        printf("SKIP a_killed_save_of_one_file_leaves_nothing: no files without names here\n");
        leave_folder();
        return;
    }
    char *before = folder_text();
    while (WIFSIGNALED(save_in_child(state, "w.npz", false, n))) {
        char *now = folder_text();
        ck_assert_msg(strcmp(now, before) == 0 || strncmp(now, "w.npz ", 6) == 0, "%s", now);
        ck_assert_ptr_null(strstr(now, ".tmp"));
        free(now);
        unlink("w.npz");
        n++;
    }
    ck_assert_int_gt(n, 4);
    free(before);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

/* A save does not remove the temporary files of another save that is under way. */
START_TEST(the_files_of_a_live_save_stay)
{
    int ready[2];
    char byte;
    tn_state *state = saving_state("w.npz", 1);
    in_folder();
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        tn__file_set set;
        char name[TN__TEMPORARY_NAME];
        int here = open(".", O_RDONLY | O_CLOEXEC);
        bool well = tn__temporary_create(here, ".tmp", 0600, name) >= 0 &&
                    tn__file_set_open(&set, "w.safetensors.index.json") == TN_OK;
        if (!well || syscall(SYS_write, ready[1], "!", 1) != 1)
            _exit(3);
        pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(save_as(state, "w.npz"), TN_OK);
    char *text = folder_text();
    ck_assert_ptr_nonnull(strstr(text, ".tmp "));
    ck_assert_ptr_nonnull(strstr(text, ".set "));
    free(text);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(save_as(state, "w.npz"), TN_OK);
    text = folder_text();
    ck_assert_ptr_null(strstr(text, ".tenon-"));
    free(text);
    tn_state_drop(state);
    leave_folder();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_call_that_fails_leaves_the_old_file_and_nothing_else,
        short_writes_and_file_systems_that_can_do_less_make_the_same_files,
        a_full_disk_leaves_the_old_file_and_takes_no_room,
        a_limit_on_the_size_of_files_is_an_error_and_no_signal,
        a_pending_signal_of_the_program_stays,
        closed_standard_streams_do_not_become_the_file,
        a_kill_at_any_call_leaves_a_whole_file_and_nothing_after_the_next_save,
        two_hundred_kills_at_random_moments_do_no_harm,
        a_killed_save_of_one_file_leaves_nothing,
        the_files_of_a_live_save_stay,
        NULL,
    };
    return suite_run("saving", tests);
}
