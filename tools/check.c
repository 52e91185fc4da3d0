/* SPDX-License-Identifier: MIT
 *
 * tenon check: tests whether a binary plugin fulfils its contract. The implementation is in
 * sdk/conform. */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sdk/conform/conform.h"

enum { MOST_JOBS = 64 };

/* An option of the command line; exactly one of `text`, `number` and `yes` receives its value. */
typedef struct word {
    const char *name, *value, *help; /* value NULL: takes no value; help NULL: internal */
    const char **text;
    int64_t *number;
    bool *yes;
} word;

static conform_options chosen;
static const char *level = "all", *run_only;
static int64_t seed = 1, jobs = 1, seconds = 120, fd = STDOUT_FILENO, depth = -1;

static const word words[] = {
    { "--level", "LEVEL", "last level to test: contract, ops, grad, layers or all; default: all",
      &level, NULL, NULL },
    { "--only", "GLOBS", "runs only tests that match, such as 'ops/conv*,grad/conv*'", &chosen.only,
      NULL, NULL },
    { "--device", "NAME", "where operators run if the plugin provides no device; default: cpu",
      &chosen.device, NULL, NULL },
    { "--cases", "PATH", "a file or folder of cases, instead of the installed ones", &chosen.cases,
      NULL, NULL },
    { "--complete", NULL, "an operator that the device cannot run counts as a failure", NULL, NULL,
      &chosen.complete },
    { "--list", NULL, "lists the tests, runs none", NULL, NULL, &chosen.list },
    { "--jobs", "N", "number of processes; default: 1", NULL, &jobs, NULL },
    { "--seconds", "N", "time limit of a test; default: 120", NULL, &seconds, NULL },
    { "--seed", "N", "seed of random numbers; default: 1", NULL, &seed, NULL },
    { "--tap", "FILE", "writes the results as TAP; with -, prints them and nothing else",
      &chosen.tap, NULL, NULL },
    { "--junit", "FILE", "writes the results as JUnit XML", &chosen.junit, NULL, NULL },
    { "--json", "[FILE]", "writes the results as JSON; without FILE, prints them and nothing else",
      &chosen.json, NULL, NULL },
    { "--capabilities", "FILE",
      "writes as JSON which operators ran in which dtypes, for users of the plugin",
      &chosen.capabilities, NULL, NULL },
    { "--report", "FILE", "writes a page (Markdown) that an author can publish with the plugin",
      &chosen.report, NULL, NULL },
    { "--run", "TEST",
      "runs one test in this process, for a debugger, and prints what the test finds as it goes",
      &run_only, NULL, NULL },
    { "--fd", "N", NULL, NULL, &fd, NULL },
    { "--depth", "N", NULL, NULL, &depth, NULL },
};
enum { WORDS = sizeof words / sizeof *words };

static int help(void)
{
    printf("\nOptions:\n");
    for (int i = 0; i < WORDS; i++) {
        char left[40];

        if (words[i].help == NULL)
            continue;
        snprintf(left, sizeof left, "%s %s", words[i].name,
                 words[i].value != NULL ? words[i].value : "");
        printf("  %-22s %s\n", left, words[i].help);
    }
    printf("  %-22s this text\n", "--help");
    return EXIT_OK;
}

static int usage(const char *what, const char *text)
{
    fprintf(stderr, "tenon check: %s%s; `tenon check --help` lists its arguments\n", what, text);
    return EXIT_USAGE;
}

static int out_of_range(const char *option, int64_t got, int64_t most)
{
    char text[96];

    tn_snprint(text, sizeof text, "%s: out of range, got %lld; expected 1 to %lld", option,
               (long long)got, (long long)most);
    return usage(text, "");
}

enum { MISSING = -1, UNWANTED = -2, WRONG = -3 }; /* what is wrong with the value of an option */

/* Reads one option and its value, if it takes one: the text after `=`, or the next argument.
 * Returns the number of arguments used, 0 if the option is unknown, or one of the numbers above. */
static int take(int count, char **given)
{
    for (int i = 0; i < WORDS; i++) {
        const word *w = &words[i];
        size_t length = strlen(w->name);
        const char *value = NULL;
        int used = 1;

        if (strncmp(given[0], w->name, length) != 0)
            continue;
        if (given[0][length] == '=')
            value = given[0] + length + 1;
        else if (given[0][length] != '\0')
            continue;
        if (w->value == NULL) {
            if (value != NULL)
                return UNWANTED;
            *w->yes = true;
            return 1;
        }
        /* --json alone prints, as for the other commands */
        if (value == NULL && w->text == &chosen.json &&
            (count < 2 || (given[1][0] == '-' && given[1][1] != '\0')))
            value = "-";
        if (value == NULL) {
            if (count < 2)
                return MISSING;
            value = given[1];
            used = 2;
        }
        if (w->text != NULL)
            *w->text = value;
        else if (!tn_read_int(value, w->number))
            return WRONG;
        return used;
    }
    return 0;
}

static int run(int count, char **given, bool only_help)
{
    static const char *const levels[] = { "contract", "ops", "grad", "layers", "all" };
    static char self[4096];
    ssize_t length;

    if (only_help)
        return help();
    for (int i = 0; i < count;) {
        int used;

        if (given[i][0] != '-') {
            if (chosen.file != NULL)
                return usage("expected one plugin; also got ", given[i]);
            chosen.file = given[i++];
            continue;
        }
        used = take(count - i, given + i);
        if (used == 0)
            return usage("unknown option ", given[i]);
        if (used < 0)
            return usage(used == MISSING    ? "a value is missing after "
                         : used == UNWANTED ? "an option takes no value, got "
                                            : "expected a whole number as the value of ",
                         given[i]);
        i += used;
    }
    if (chosen.file == NULL)
        return usage("expected the file of a plugin", "");
    while (chosen.level < CONFORM_LEVELS && strcmp(levels[chosen.level], level) != 0)
        chosen.level++;
    if (depth >= 0 && depth < CONFORM_LEVELS)
        chosen.level = (int)depth;
    if (chosen.level == CONFORM_LEVELS)
        return usage("--level: expected contract, ops, grad, layers or all, got ", level);
    if (jobs < 1 || jobs > MOST_JOBS)
        return out_of_range("--jobs", jobs, MOST_JOBS);
    if (seconds < 1 || seconds > 86400)
        return out_of_range("--seconds", seconds, 86400);
    if (access(chosen.file, R_OK) != 0) {
        fprintf(stderr, "tenon check: %s cannot be read: %s\n", chosen.file, strerror(errno));
        return EXIT_USAGE;
    }
    if (chosen.cases == NULL)
        chosen.cases = installed_folder(TN_CONFORM_BESIDE, TN_CONFORM_DIR);
    chosen.seed = (uint64_t)seed;
    chosen.jobs = (int)jobs;
    chosen.seconds = (int)seconds;
    if (run_only != NULL)
        return conform_child(&chosen, run_only, (int)fd);
    length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) {
        fprintf(stderr, "tenon check: /proc/self/exe does not name this program\n");
        return EXIT_NOT_OK;
    }
    chosen.self = self;
    return conform_run(&chosen) == 0 ? EXIT_OK : EXIT_NOT_OK;
}

const command check_command = {
    .name = "check",
    .arguments = "FILE [OPTION]...",
    .summary = "tests a plugin against the contract",
    .help =
        "Loads a plugin's file and tests it: the contract for every plugin and device, then every "
        "operator forward and backward against a reference in float64, in all dtypes and several "
        "layouts of memory, then every layer, optimizer and format. Tests run in other processes, "
        "so a crash fails one test only. The last line counts passed, failed and skipped tests.",
    .run = run,
    .options = TOOL_OWN_OPTIONS,
};
