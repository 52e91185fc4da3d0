/* SPDX-License-Identifier: MIT
 *
 * Files between processes: one that is killed while it saves, one that loads what another has
 * saved. This program starts itself again, with the name of a task as its argument. */
#include "tests/base/suite.h"

#include "tests/spec/proves.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TENSORS = 5, ELEMENTS = 30000 };

static const char network[] = "Sequential(Linear(3, 4), Tanh(), Linear(4, 2))";

/* ---- what the child does --------------------------------------------------------------------- */

static tn_state *filled(double value)
{
    TN_SCOPE;
    tn_state *state = tn_state_new();
    for (int i = 0; i < TENSORS; i++) {
        char name[8];
        tn_snprint(name, sizeof name, "t%d", i);
        tn_state_set(state, name, tn_tensor_full(TN_SHAPE(ELEMENTS), value, TN_F32, NULL));
    }
    return state;
}

static bool die_at(void *user, const char *what, uint64_t done, uint64_t total)
{
    (void)what, (void)done, (void)total;
    if (--*(int *)user == 0)
        raise(SIGKILL);
    return true;
}

/* Saves. Ends the process at the report of progress with this number, if there is one. */
static int save_once(const char *path, int reports)
{
    tn_state *state = filled(2);
    tn_set_progress(die_at, &reports);
    tn_status status = tn_state_save(state, path);
    tn_set_progress(NULL, NULL);
    tn_state_drop(state);
    return status == TN_OK ? 0 : 3;
}

/* Says on standard output that it has begun, then saves until it is killed. */
static int save_without_end(const char *path)
{
    tn_state *states[] = { filled(1), filled(2) };
    if (write(STDOUT_FILENO, "!", 1) != 1)
        return 3;
    for (int i = 0; tn_state_save(states[i % 2], path) == TN_OK; i++)
        ;
    return 3;
}

static int answer(const char *path)
{
    TN_SCOPE;
    float out[2] = { 0, 0 };
    tn_module *net = tn_module_new(network);
    if (tn_module_load(net, path) != TN_OK)
        return 3;
    tn_tensor *y = tn_module_call(net, tn_tensor_full(TN_SHAPE(1, 3), 0.5, TN_F32, NULL));
    tn_status status = tn_tensor_copy_out(y, out, sizeof out);
    tn_module_drop(net);
    return status == TN_OK && write(STDOUT_FILENO, out, sizeof out) == sizeof out ? 0 : 3;
}

/* ---- what the parent does -------------------------------------------------------------------- */

static pid_t start(const char *task, const char *path, int number, int *output)
{
    int ends[2];
    char text[16];
    ck_assert_int_eq(pipe(ends), 0);
    tn_snprint(text, sizeof text, "%d", number);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "test_processes", task, path, text, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    close(ends[1]);
    *output = ends[0];
    return pid;
}

static int end_of(pid_t pid, int output)
{
    int status = 0;
    close(output);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static bool killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* The file is one of the two whole ones; returns which. */
static int whole(const char *path)
{
    static float values[ELEMENTS];
    tn_state *state = tn_state_load(path);
    ck_assert_msg(state != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_state_count(state), TENSORS);
    int which = 0;
    for (int64_t i = 0; i < TENSORS; i++) {
        ck_assert_int_eq(tn_tensor_copy_out(tn_state_tensor(state, i), values, sizeof values),
                         TN_OK);
        which = i == 0 ? (int)values[0] : which;
        ck_assert(which == 1 || which == 2);
        for (int k = 0; k < ELEMENTS; k++)
            ck_assert(values[k] == (float)which);
    }
    tn_state_drop(state);
    return which;
}

static void save_first(const char *folder, char *path, size_t size)
{
    tn_snprint(path, size, "%s/weights.safetensors", folder);
    tn_state *state = filled(1);
    ck_assert_msg(tn_state_save(state, path) == TN_OK, "%s", tn_error_text());
    tn_state_drop(state);
}

/* Removes the folder and returns how many files are in it except the saved one. */
static int clear_folder(const char *folder)
{
    char name[400];
    int left = 0;
    DIR *all = opendir(folder);
    ck_assert_ptr_nonnull(all);
    for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        left += strcmp(entry->d_name, "weights.safetensors") != 0;
        tn_snprint(name, sizeof name, "%s/%s", folder, entry->d_name);
        unlink(name);
    }
    closedir(all);
    ck_assert_int_eq(rmdir(folder), 0);
    return left;
}

START_TEST(a_process_that_is_killed_between_two_writes_leaves_the_old_file)
{
    char folder[] = "killed-XXXXXX", path[64];
    int output, at = 1, status;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    save_first(folder, path, sizeof path);
    while (killed(status = end_of(start("once", path, at, &output), output))) {
        ck_assert_int_eq(whole(path), 1);
        at++;
    }
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    ck_assert_int_eq(whole(path), 2);
    ck_assert_int_gt(at, TENSORS); /* it did die in the middle */
    ck_assert_int_eq(clear_folder(folder), 0);
}
END_TEST

START_TEST(a_process_that_is_killed_at_any_moment_leaves_the_old_file_or_the_new_one)
{
    char folder[] = "killed-XXXXXX", path[64], byte;
    uint32_t seed = 12345;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    save_first(folder, path, sizeof path);
    for (int i = 0; i < 8; i++) {
        int output;
        pid_t pid = start("always", path, 0, &output);
        ck_assert_int_eq(read(output, &byte, 1), 1);
        seed = seed * 1664525 + 1013904223;
        usleep((seed >> 16) % 15000);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert(killed(end_of(pid, output)));
        whole(path);
    }
    save_first(folder, path, sizeof path);
    ck_assert_int_eq(clear_folder(folder), 0);
}
END_TEST

START_TEST(a_new_process_answers_as_the_one_that_saved_ser_008)
{
    TN_SCOPE;
    char folder[] = "answer-XXXXXX", path[64];
    float ours[2], theirs[2];
    int output;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    tn_snprint(path, sizeof path, "%s/weights.safetensors", folder);
    tn_module *net = tn_module_new(network);
    ck_assert_msg(tn_module_save(net, path) == TN_OK, "%s", tn_error_text());
    tn_tensor *y = tn_module_call(net, tn_tensor_full(TN_SHAPE(1, 3), 0.5, TN_F32, NULL));
    ck_assert_int_eq(tn_tensor_copy_out(y, ours, sizeof ours), TN_OK);
    pid_t pid = start("answer", path, 0, &output);
    ck_assert_int_eq(read(output, theirs, sizeof theirs), sizeof theirs);
    ck_assert_int_eq(end_of(pid, output), 0);
    ck_assert_mem_eq(ours, theirs, sizeof ours);
    tn_module_drop(net);
    ck_assert_int_eq(clear_folder(folder), 0);
    TN_PROVES("SER-008");
}
END_TEST

int main(int count, char **arguments)
{
    const TTest *const tests[] = {
        a_process_that_is_killed_between_two_writes_leaves_the_old_file,
        a_process_that_is_killed_at_any_moment_leaves_the_old_file_or_the_new_one,
        a_new_process_answers_as_the_one_that_saved_ser_008,
        NULL,
    };
    if (count == 4) {
        const char *task = arguments[1], *path = arguments[2];
        int status = strcmp(task, "once") == 0     ? save_once(path, atoi(arguments[3]))
                     : strcmp(task, "always") == 0 ? save_without_end(path)
                                                   : answer(path);
        tn_shutdown();
        return status;
    }
    return suite_run("processes", tests);
}
