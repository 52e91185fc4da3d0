/* SPDX-License-Identifier: MIT
 *
 * tenon run -n N COMMAND: starts a program N times and tells each process its rank, so that
 * tn_comm_new(NULL, NULL) connects them. Prints whole lines with the rank before them, ends all
 * processes when one has failed, and starts them again if the user wants that. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_RANKS = 256,
    LINE = 16384,     /* bytes of a longer line are printed in parts */
    TURNS = 16,       /* reads of a pipe at a time: a program may print without end */
    PAUSE = 20,       /* ms between two looks at the processes */
    LEAVE = 3000,     /* ms for the others to end by themselves when one has failed */
    TERM = 5000,      /* ms from SIGTERM to SIGKILL */
    LOST = 75,        /* the status if a process was lost: the work can be tried again */
    NOT_STARTED = 127 /* the status if the command cannot be started, as in a shell */
};

struct wishes {
    int64_t ranks, restarts, timeout; /* timeout 0: the default of the communicator */
    bool tcp;
    const char *log; /* a folder; NULL: none */
    char **command;
};

/* A pipe from a process, and the start of a line that has come through it. */
struct stream {
    int pipe; /* -1: closed */
    int to;   /* where lines are printed */
    size_t used;
    char line[LINE];
};

struct rank {
    pid_t pid; /* 0: it has ended */
    struct stream streams[2];
    int log; /* -1: none */
};

/* One start of all processes. */
struct attempt {
    const struct wishes *wishes;
    const char *folder;
    int64_t number;
    struct rank *ranks;
    int64_t running;
    int64_t failed;    /* the first rank that has failed; -1: none */
    int status;        /* of that rank: an exit status; a signal gives LOST */
    int64_t signalled; /* when the others were told to end, in ms; 0: not yet */
    int64_t since;     /* when the first rank failed, in ms */
    bool killed;
};

static volatile sig_atomic_t caught;

static void catch_signal(int number)
{
    caught = number;
}

static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* Interrupts a wait, so that the first process that ends is seen first. */
static void wake_up(int number)
{
    (void)number;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(file, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* nobody reads: the processes go on */
        bytes += n;
        size -= (size_t)n;
    }
}

/* Prints a line of a rank in one piece. */
static void print_line(const struct rank *rank, const struct stream *stream, int64_t number,
                       const char *bytes, size_t size)
{
    char text[LINE + 32];
    size_t length = (size_t)snprintf(text, sizeof text, "[%lld] ", (long long)number);

    memcpy(text + length, bytes, size);
    length += size;
    text[length++] = '\n';
    write_all(stream->to, text, length);
    if (rank->log >= 0) {
        memmove(text, bytes, size);
        text[size] = '\n';
        write_all(rank->log, text, size + 1);
    }
}

/* Prints the lines that are whole; at the end, or if a line fills the buffer, the rest, too. */
static void print_lines(const struct rank *rank, struct stream *stream, int64_t number, bool end)
{
    char *start = stream->line, *stop;

    while ((stop = memchr(start, '\n', stream->used)) != NULL) {
        print_line(rank, stream, number, start, (size_t)(stop - start));
        stream->used -= (size_t)(stop + 1 - start);
        start = stop + 1;
    }
    if (stream->used > 0 && (end || stream->used == LINE)) {
        print_line(rank, stream, number, start, stream->used);
        stream->used = 0;
    }
    memmove(stream->line, start, stream->used);
}

static void read_stream(const struct rank *rank, struct stream *stream, int64_t number)
{
    ssize_t n = 1;

    for (int turn = 0; turn < TURNS && n > 0; turn++) {
        n = read(stream->pipe, stream->line + stream->used, LINE - stream->used);
        if (n > 0) {
            stream->used += (size_t)n;
            print_lines(rank, stream, number, false);
        }
    }
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    print_lines(rank, stream, number, true);
    close(stream->pipe);
    stream->pipe = -1;
}

/* Waits a moment for output and prints it. */
static void print_output(struct attempt *attempt)
{
    static struct pollfd files[2 * MOST_RANKS];
    static int at[2 * MOST_RANKS];
    nfds_t count = 0;

    for (int i = 0; i < 2 * (int)attempt->wishes->ranks; i++)
        if (attempt->ranks[i / 2].streams[i % 2].pipe >= 0) {
            files[count] = (struct pollfd){ attempt->ranks[i / 2].streams[i % 2].pipe, POLLIN, 0 };
            at[count++] = i;
        }
    if (poll(files, count, PAUSE) <= 0)
        return;
    for (nfds_t i = 0; i < count; i++)
        if (files[i].revents != 0)
            read_stream(&attempt->ranks[at[i] / 2], &attempt->ranks[at[i] / 2].streams[at[i] % 2],
                        at[i] / 2);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void set_number(const char *name, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)number);
    setenv(name, text, 1);
}

/* Sets the secret of the job: 128 random bits. */
static bool set_token(void)
{
    unsigned char bytes[16];
    char text[2 * sizeof bytes + 1];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return setenv("TENON_COMM_TOKEN", text, 1) == 0;
}

static int64_t cores(void)
{
    cpu_set_t set;
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

/* Sets what is the same for all processes of an attempt. */
static bool set_variables(const struct attempt *attempt)
{
    const struct wishes *wishes = attempt->wishes;
    char address[PATH_MAX + 64];
    int64_t threads = cores() / wishes->ranks;

    if (wishes->tcp) { /* ports below those that the system gives to others */
        uint16_t random = 0;

        if (getrandom(&random, sizeof random, 0) != sizeof random)
            return false;
        snprintf(address, sizeof address, "127.0.0.1:%d", 10000 + random % 20000);
    } else
        snprintf(address, sizeof address, "%s/comm-%lld", attempt->folder,
                 (long long)attempt->number);
    setenv("TENON_COMM_ADDRESS", address, 1);
    set_number("TENON_COMM_SIZE", wishes->ranks);
    if (wishes->timeout > 0)
        set_number("TENON_COMM_TIMEOUT", wishes->timeout);
    if (getenv("TENON_NUM_THREADS") == NULL)
        set_number("TENON_NUM_THREADS", threads > 0 ? threads : 1);
    return set_token();
}

/* Runs in the child: becomes the command. Writes the error to `failure` if that fails. */
static void become(const struct wishes *wishes, int64_t number, const int *out, const int *err,
                   int failure)
{
    const int nothing = open("/dev/null", O_RDONLY);

    setpgid(0, 0); /* a signal then reaches what the command starts as well */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    set_number("TENON_COMM_RANK", number);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (!is_ignored(SIGHUP))
        signal(SIGHUP, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    execvp(wishes->command[0], wishes->command);
    int error = errno;
    if (write(failure, &error, sizeof error) != sizeof error)
        _exit(NOT_STARTED);
    _exit(NOT_STARTED);
}

static void close_pair(const int *pair)
{
    if (pair[0] >= 0)
        close(pair[0]);
    if (pair[1] >= 0)
        close(pair[1]);
}

/* Starts one process. Returns 0, or the error. */
static int start_rank(struct attempt *attempt, int64_t number)
{
    struct rank *rank = &attempt->ranks[number];
    int out[2] = { -1, -1 }, err[2] = { -1, -1 }, failure[2] = { -1, -1 }, error = 0;

    if (pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
        pipe2(failure, O_CLOEXEC) == 0) {
        rank->pid = fork();
        if (rank->pid == 0)
            become(attempt->wishes, number, out, err, failure[1]);
    } else
        rank->pid = -1;
    if (rank->pid < 0) {
        error = errno;
        rank->pid = 0;
        close_pair(out);
        close_pair(err);
        close_pair(failure);
        return error;
    }
    attempt->running++;
    setpgid(rank->pid, rank->pid);
    close(out[1]);
    close(err[1]);
    close(failure[1]);
    ssize_t n;
    while ((n = read(failure[0], &error, sizeof error)) < 0 && errno == EINTR)
        continue;
    if (n != sizeof error)
        error = 0; /* the pipe was closed: the command runs */
    close(failure[0]);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    rank->streams[0].pipe = out[0];
    rank->streams[1].pipe = err[0];
    return error;
}

/* Opens the file for the output of a rank. Returns false after a message. */
static bool open_log(const struct attempt *attempt, int64_t number)
{
    char path[PATH_MAX + 64];
    struct rank *rank = &attempt->ranks[number];

    if (attempt->wishes->log == NULL)
        return true;
    snprintf(path, sizeof path, "%s/rank-%lld.txt", attempt->wishes->log, (long long)number);
    rank->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (rank->log < 0)
        fprintf(stderr, "tenon run: --log: %s: cannot be written: %s\n", path, strerror(errno));
    return rank->log >= 0;
}

/* ---- end ------------------------------------------------------------------------------------- */

static void signal_all(const struct attempt *attempt, int number)
{
    for (int64_t r = 0; r < attempt->wishes->ranks; r++)
        if (attempt->ranks[r].pid > 0)
            kill(-attempt->ranks[r].pid, number);
}

/* Notes the end of a process. */
static void note_end(struct attempt *attempt, int64_t number, int status)
{
    const bool lost = WIFSIGNALED(status);
    const int code = lost ? LOST : WEXITSTATUS(status);

    attempt->ranks[number].pid = 0;
    attempt->running--;
    /* A process that was killed may be seen a moment after those that have noticed it. */
    if (code == 0 ||
        (attempt->failed >= 0 && (!lost || attempt->status == LOST || attempt->signalled != 0)))
        return;
    if (attempt->failed < 0)
        attempt->since = now_ms();
    attempt->failed = number;
    attempt->status = code;
    if (caught != 0)
        return;
    if (lost)
        fprintf(stderr, "tenon run: rank %lld was ended by SIG%s\n", (long long)number,
                sigabbrev_np(WTERMSIG(status)));
    else
        fprintf(stderr, "tenon run: rank %lld ended with status %d\n", (long long)number, code);
}

static void collect(struct attempt *attempt)
{
    for (int64_t r = 0; r < attempt->wishes->ranks; r++) {
        const pid_t pid = attempt->ranks[r].pid;
        siginfo_t end = { .si_pid = 0 };
        int status;

        if (pid <= 0 || waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            end.si_pid == 0)
            continue;
        /* what it has started must not go on as this rank; until waitpid the group is its own */
        if (end.si_code != CLD_EXITED || end.si_status != 0)
            kill(-pid, SIGTERM);
        if (waitpid(pid, &status, 0) == pid)
            note_end(attempt, r, status);
    }
}

/* Ends the processes that are left when one has failed, or this one was told to end. */
static void end_others(struct attempt *attempt)
{
    const int64_t now = now_ms();
    const bool told = caught != 0;

    if (attempt->signalled == 0 &&
        (told || (attempt->failed >= 0 && now - attempt->since > LEAVE))) {
        attempt->signalled = now;
        signal_all(attempt, told ? caught : SIGTERM);
        signal_all(attempt, SIGCONT); /* one that is stopped must get it, too */
    }
    if (attempt->signalled > 0 && !attempt->killed && now - attempt->signalled > TERM) {
        attempt->killed = true;
        signal_all(attempt, SIGKILL);
    }
}

/* Prints what is left in the pipes. What a command has started may hold them open for ever. */
static void close_streams(struct attempt *attempt)
{
    for (int64_t r = 0; r < attempt->wishes->ranks; r++) {
        struct rank *rank = &attempt->ranks[r];

        for (int i = 0; i < 2; i++) {
            if (rank->streams[i].pipe < 0)
                continue;
            read_stream(rank, &rank->streams[i], r);
            print_lines(rank, &rank->streams[i], r, true);
            if (rank->streams[i].pipe >= 0)
                close(rank->streams[i].pipe);
        }
        if (rank->log >= 0)
            close(rank->log);
    }
}

/* Starts all processes and waits for their end. */
static int run_attempt(struct attempt *attempt)
{
    int error = 0;
    int64_t r = 0;

    for (; r < attempt->wishes->ranks && error == 0; r++) {
        for (int i = 0; i < 2; i++)
            attempt->ranks[r].streams[i] = (struct stream){ -1, i + 1, 0, { 0 } };
        attempt->ranks[r].log = -1;
        if (!open_log(attempt, r))
            error = -1;
        else if ((error = start_rank(attempt, r)) != 0)
            fprintf(stderr, "tenon run: %s: process %lld of %lld cannot be started: %s\n",
                    attempt->wishes->command[0], (long long)r + 1,
                    (long long)attempt->wishes->ranks, strerror(error));
    }
    for (; r < attempt->wishes->ranks; r++)
        attempt->ranks[r] = (struct rank){ 0, { { .pipe = -1 }, { .pipe = -1 } }, -1 };
    if (error != 0) {
        signal_all(attempt, SIGKILL);
        attempt->failed = 0;
        attempt->status = error > 0 ? NOT_STARTED : EXIT_NOT_OK;
        attempt->since = attempt->signalled = now_ms(); /* those that SIGKILL ends are not lost */
        attempt->killed = true;
    }
    while (attempt->running > 0) {
        print_output(attempt);
        collect(attempt);
        end_others(attempt);
    }
    close_streams(attempt);
    return attempt->failed >= 0 ? attempt->status : EXIT_OK;
}

/* Removes the sockets that killed processes have left, and their folder. */
static void remove_folder(const char *folder, const struct wishes *wishes)
{
    char path[PATH_MAX + 64];

    for (int64_t a = 0; a <= wishes->restarts; a++)
        for (int64_t r = 0; r < wishes->ranks; r++) {
            snprintf(path, sizeof path, "%s/comm-%lld.%lld", folder, (long long)a, (long long)r);
            unlink(path);
        }
    rmdir(folder);
}

static int run_all(const struct wishes *wishes)
{
    const struct sigaction end = { .sa_handler = catch_signal }, child = { .sa_handler = wake_up };
    const char *root = getenv("TMPDIR");
    char folder[PATH_MAX];
    struct attempt attempt = { .wishes = wishes, .folder = folder };
    int code = EXIT_NOT_OK;

    snprintf(folder, sizeof folder, "%s/tenon-run-XXXXXX",
             root != NULL && *root == '/' && strlen(root) < 60 ? root : "/tmp");
    attempt.ranks = calloc((size_t)wishes->ranks, sizeof *attempt.ranks);
    if (attempt.ranks == NULL || mkdtemp(folder) == NULL) {
        fprintf(stderr, "tenon run: %s: cannot be made: %s\n", folder, strerror(errno));
        free(attempt.ranks);
        return EXIT_NOT_OK;
    }
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    if (!is_ignored(SIGHUP)) /* nohup sets it so */
        sigaction(SIGHUP, &end, NULL);
    sigaction(SIGCHLD, &child, NULL);
    signal(SIGPIPE, SIG_IGN);
    for (; attempt.number <= wishes->restarts; attempt.number++) {
        attempt.failed = -1;
        attempt.signalled = 0;
        attempt.killed = false;
        if (!set_variables(&attempt)) {
            fprintf(stderr, "tenon run: no random numbers: %s\n", strerror(errno));
            break;
        }
        code = run_attempt(&attempt);
        if (code != LOST || caught != 0 || attempt.number == wishes->restarts)
            break;
        fprintf(stderr, "tenon run: restart %lld of %lld\n", (long long)attempt.number + 1,
                (long long)wishes->restarts);
    }
    remove_folder(folder, wishes);
    free(attempt.ranks);
    return caught != 0 ? 128 + caught : code;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool take_number(const char *name, const char *text, int64_t least, int64_t most,
                        int64_t *out)
{
    if (text != NULL && tn_read_int(text, out) && *out >= least && *out <= most)
        return true;
    fprintf(stderr, "tenon run: %s: wrong number, got %s; expected %lld to %lld\n", name,
            text != NULL ? text : "nothing", (long long)least, (long long)most);
    return false;
}

static bool take_folder(const char *text, const char **out)
{
    struct stat facts;

    *out = text;
    if (text != NULL && *text != '\0' && (mkdir(text, 0777) == 0 || errno == EEXIST) &&
        stat(text, &facts) == 0 && S_ISDIR(facts.st_mode))
        return true;
    fprintf(stderr, "tenon run: --log: cannot be made, got %s; expected a folder\n",
            text != NULL ? text : "nothing");
    return false;
}

/* Returns the value of an option: after "=", or the next argument, or NULL. */
static const char *value_of(int count, char **given, int *at)
{
    char *sign = strncmp(given[*at], "--", 2) == 0 ? strchr(given[*at], '=') : NULL;

    if (sign == NULL)
        return *at + 1 < count ? given[++*at] : NULL;
    *sign = '\0';
    return sign + 1;
}

/* Reads one option. Returns false after a message. */
static bool read_option(int count, char **given, int *at, struct wishes *wishes)
{
    char *name = given[*at];
    const char *value;

    if (!strcmp(name, "--tcp"))
        return wishes->tcp = true;
    value = value_of(count, given, at);
    if (!strcmp(name, "-n"))
        return take_number("-n", value, 1, MOST_RANKS, &wishes->ranks);
    if (!strcmp(name, "--restarts"))
        return take_number(name, value, 0, 1000, &wishes->restarts);
    if (!strcmp(name, "--timeout"))
        return take_number(name, value, 1, 1000000, &wishes->timeout);
    if (!strcmp(name, "--log"))
        return take_folder(value, &wishes->log);
    fprintf(stderr, "tenon run: unknown option %s; `tenon run --help` lists its arguments\n", name);
    return false;
}

static int run(int count, char **given, bool json)
{
    struct wishes wishes = { .ranks = 0 };
    int at = 0;

    if (json) {
        printf("\nOptions, before the command:\n"
               "  -n N                number of processes, 1 to 256\n"
               "  --restarts N        starts all again, at most N times, when one was lost\n"
               "  --log DIR           writes the output of each to DIR/rank-RANK.txt, too\n"
               "  --timeout SECONDS   most seconds that one waits for the others; default: 300\n"
               "  --tcp               TCP on the loopback interface instead of shared memory\n"
               "  --                  the command follows\n"
               "  --help              this text\n");
        return EXIT_OK;
    }
    for (; at < count && given[at][0] == '-'; at++) {
        if (!strcmp(given[at], "--")) {
            at++;
            break;
        }
        if (!read_option(count, given, &at, &wishes))
            return EXIT_USAGE;
    }
    if (wishes.ranks == 0 || at >= count) {
        fprintf(stderr, "tenon run: too few arguments; expected %s\n",
                wishes.ranks == 0 ? "-n N, the number of processes" : "COMMAND");
        return EXIT_USAGE;
    }
    wishes.command = given + at;
    return run_all(&wishes);
}

const command run_command = {
    "run",
    "-n N [OPTION]... COMMAND [ARGUMENT]...",
    "several processes of a program on this host",
    "Starts a program N times. Each process gets a rank, from 0 to N - 1, and "
    "tn_comm_new(NULL, NULL) connects them. Each line that they print has the rank before it. "
    "Their standard input is empty. TENON_NUM_THREADS is the number of cores divided by N, unless "
    "it is set. When a process fails, the others have 3 s to end, then they get SIGTERM and, 5 s "
    "later, SIGKILL. The status is that of the process that failed first; 75 if a signal has ended "
    "it.",
    1,
    INT_MAX,
    run,
    TOOL_OWN_OPTIONS | TOOL_PROGRAM,
    NULL
};
