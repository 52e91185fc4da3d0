/* SPDX-License-Identifier: MIT
 *
 * tenon profile: runs a command in a child process with TENON_PROFILE, which makes the library
 * there write its profile, and prints the tables. */
#include "tool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct wishes {
    const char *page;  /* the page; "-": none */
    const char *trace; /* NULL: none */
    bool program;      /* the command is a program, even if it has the name of a command of tenon */
};

static bool take_value(int count, char **given, int *at, const char *name, const char **value)
{
    size_t length = strlen(name);

    if (!strncmp(given[*at], name, length) && given[*at][length] == '=') {
        *value = given[*at] + length + 1;
        return true;
    }
    if (strcmp(given[*at], name) != 0 || *at + 1 >= count)
        return false;
    *value = given[++*at];
    return true;
}

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), size = strlen(end);

    return length > size && !strcmp(path + length - size, end) && !strchr(path, ':');
}

/* Reads the options before the command. Returns the index of the command, -1 on wrong usage. */
static int read_options(int count, char **given, struct wishes *wishes)
{
    int at = 0;

    for (; at < count && given[at][0] == '-'; at++) {
        if (!strcmp(given[at], "--"))
            return wishes->program = true, at + 1;
        if (!strcmp(given[at], "--no-page"))
            wishes->page = "-";
        else if (!take_value(count, given, &at, "--page", &wishes->page) &&
                 !take_value(count, given, &at, "--trace", &wishes->trace)) {
            bool known = !strcmp(given[at], "--page") || !strcmp(given[at], "--trace");

            fprintf(stderr, "tenon profile: %s %s; `tenon profile --help` lists its arguments\n",
                    known ? "a value is missing after" : "unknown option", given[at]);
            return -1;
        }
    }
    return at;
}

static bool check_names(const struct wishes *wishes)
{
    if (strcmp(wishes->page, "-") != 0 && !ends_in(wishes->page, ".html"))
        fprintf(
            stderr,
            "tenon profile: --page: wrong name, got %s; expected a name without ':' that ends in "
            ".html\n",
            wishes->page);
    else if (wishes->trace != NULL && !ends_in(wishes->trace, ".json"))
        fprintf(
            stderr,
            "tenon profile: --trace: wrong name, got %s; expected a name without ':' that ends in "
            ".json\n",
            wishes->trace);
    else
        return true;
    return false;
}

/* Sets TENON_PROFILE for the child: the tables, then the files that the user wants. */
static bool set_files(const struct wishes *wishes, const char *tables)
{
    const char *page = strcmp(wishes->page, "-") != 0 ? wishes->page : "";
    const char *trace = wishes->trace != NULL ? wishes->trace : "";
    size_t size = strlen(tables) + strlen(page) + strlen(trace) + 3;
    char *list = malloc(size);

    if (list == NULL)
        return false;
    snprintf(list, size, "%s:%s:%s", tables, page, trace);
    bool set = setenv("TENON_PROFILE", list, 1) == 0;
    free(list);
    return set;
}

/* Runs in the child process; returns only on failure. `tenon profile eval ...` runs this program
 * again. */
static void start(int count, char **given, bool program)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char **arguments = calloc((size_t)count + 2, sizeof *arguments);

    if (arguments == NULL)
        return;
    if (!program && tool_is_command(given[0]) && length > 0) {
        self[length] = '\0';
        arguments[0] = self;
        memcpy(arguments + 1, given, (size_t)count * sizeof *given);
        execv(self, arguments);
    } else {
        memcpy(arguments, given, (size_t)count * sizeof *given);
        execvp(arguments[0], arguments);
    }
    fprintf(stderr, "tenon profile: %s: cannot be started: %s\n", given[0], strerror(errno));
    free(arguments);
}

/* Prints the file with the tables. Returns false if there is none. */
static bool print_tables(const char *path)
{
    char bytes[4096];
    size_t size;
    FILE *in = fopen(path, "re");

    if (in == NULL)
        return false;
    printf("\n");
    while ((size = fread(bytes, 1, sizeof bytes, in)) > 0)
        fwrite(bytes, 1, size, stdout);
    fclose(in);
    return true;
}

/* Waits for the child. Signals of the keyboard go to it, too, and do not end this process. */
static int wait_for(pid_t child)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, interrupt, quit;
    int status = 0;

    sigaction(SIGINT, &ignore, &interrupt);
    sigaction(SIGQUIT, &ignore, &quit);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int profile(int count, char **given, const struct wishes *wishes)
{
    const char *root = getenv("TMPDIR");
    char folder[PATH_MAX], tables[PATH_MAX + 16];

    snprintf(folder, sizeof folder, "%s/tenon-profile-XXXXXX",
             root != NULL && *root && !strchr(root, ':') ? root : "/tmp");
    if (mkdtemp(folder) == NULL) {
        fprintf(stderr, "tenon profile: %s: cannot be made: %s\n", folder, strerror(errno));
        return EXIT_NOT_OK;
    }
    snprintf(tables, sizeof tables, "%s/tables.txt", folder);
    fflush(stdout);
    pid_t child = set_files(wishes, tables) ? fork() : -1;
    if (child == 0) {
        start(count, given, wishes->program);
        _exit(127);
    }
    int code = child > 0 ? wait_for(child) : EXIT_NOT_OK;
    bool printed = child > 0 && print_tables(tables);
    if (child < 0)
        fprintf(stderr, "tenon profile: %s: cannot be started: %s\n", given[0], strerror(errno));
    else if (!printed)
        fprintf(stderr,
                "tenon profile: nothing was recorded: %s ended with status %d; it called no "
                "operator or module of Tenon, or a signal or _exit ended it\n",
                given[0], code);
    if (printed && strcmp(wishes->page, "-") != 0)
        printf("\npage: %s\n", wishes->page);
    if (printed && wishes->trace != NULL)
        printf("trace: %s\n", wishes->trace);
    unlink(tables);
    rmdir(folder);
    return code;
}

static int run(int count, char **given, bool json)
{
    struct wishes wishes = { .page = "profile.html" };

    if (json) {
        printf("\nOptions, before the command:\n"
               "  --page FILE.html    where the page is written; default: profile.html\n"
               "  --no-page           writes no page\n"
               "  --trace FILE.json   writes a trace for Perfetto, too\n"
               "  --                  the command is a program, not a command of tenon\n"
               "  --help              this text\n");
        return EXIT_OK;
    }
    int at = read_options(count, given, &wishes);
    if (at < 0 || !check_names(&wishes))
        return EXIT_USAGE;
    if (at >= count) {
        fprintf(stderr, "tenon profile: too few arguments; expected COMMAND\n");
        return EXIT_USAGE;
    }
    return profile(count - at, given + at, &wishes);
}

const command profile_command = {
    "profile",
    "[OPTION]... COMMAND [ARGUMENT]...",
    "time and memory of a command by operator and module",
    "Runs a command of tenon, such as `eval MODEL --data SPEC`, or a program that uses the "
    "library, and prints what its operators and modules cost: time without (self) and with (total) "
    "what is inside, calls, memory, FLOP/s of products and their share of the machine's ceiling. "
    "Writes a page with a flame graph and the memory over time. The status is that of the command.",
    1,
    INT_MAX,
    run,
    TOOL_OWN_OPTIONS | TOOL_PROGRAM,
    NULL
};
