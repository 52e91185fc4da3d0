/* SPDX-License-Identifier: MIT
 *
 * The command `tenon`: reads the arguments, runs the subcommand that they name, and prints the
 * help. Each subcommand has its own file and a name in TN_COMMANDS of local.mk. */
#include "tool.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int help_run(int count, char **arguments, bool json);
static int version_run(int count, char **arguments, bool json);

static const command help_command = {
    "help",
    "[COMMAND]",
    "prints the help of a command",
    "Prints the help of a command; without a name, lists the commands.",
    0,
    1,
    help_run,
    0,
    NULL
};
static const command version_command = { "version",
                                         "",
                                         "the version of the library",
                                         "Prints the version of libtenon and of "
                                         "the plugin ABI.",
                                         0,
                                         0,
                                         version_run,
                                         0,
                                         NULL };

/* The list TN_COMMANDS of local.mk. */
#define COMMAND(name) extern const command name##_command;
#include "tools/command_list.h"
#undef COMMAND
#define COMMAND(name) &name##_command,
static const command *const commands[] = {
#include "tools/command_list.h"
    &help_command, &version_command
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

/* Says that there is no such command, and which one may be meant. */
static int unknown(const char *name)
{
    int least = 3;
    const char *nearest = NULL;

    for (int i = 0; i < COMMANDS; i++) {
        int apart = tool_distance(name, commands[i]->name);

        if (apart < least && 2 * apart <= (int)strlen(commands[i]->name)) {
            least = apart;
            nearest = commands[i]->name;
        }
    }
    if (nearest != NULL)
        fprintf(stderr, "tenon: unknown command \"%s\"; did you mean \"%s\"?\n", name, nearest);
    else
        fprintf(stderr, "tenon: unknown command \"%s\"; `tenon help` lists them\n", name);
    return EXIT_USAGE;
}

const command *tool_command(int place)
{
    return place < COMMANDS ? commands[place] : NULL;
}

bool tool_is_command(const char *name)
{
    return find(name) != NULL;
}

static void options_help(const tool_option *o)
{
    char left[48];
    for (; o != NULL && o->name != NULL; o++) {
        snprintf(left, sizeof left, "  %s%s%s", o->name, o->value != NULL ? " " : "",
                 o->value != NULL ? o->value : "");
        print_wrapped(left, 25, o->help);
    }
}

void tool_command_help(const command *c)
{
    char usage[200];
    snprintf(usage, sizeof usage, "tenon %s%s%s%s%s%s", c->name, *c->arguments ? " " : "",
             c->arguments, (c->options & TOOL_LIMITED) ? " [--seconds N]" : "",
             c->table != NULL ? " [OPTION]..." : "",
             (c->options & TOOL_PROGRAM) ? "" : " [--json]");
    print_wrapped("usage:", 7, usage);
    putchar('\n');
    print_wrapped("", 0, c->help);
    if (!(c->options & TOOL_OWN_OPTIONS)) {
        printf("\nOptions:\n");
        options_help(c->table);
        printf("%s  --json   JSON instead of text\n  --help   this text\n",
               (c->options & TOOL_LIMITED)
                   ? "  --seconds N   time limit of a step of a plugin; default: 30\n"
                   : "");
    } else {
        c->run(0, NULL, true);
    }
    putchar('\n');
    print_wrapped("", 0, "Exit status: 0 success; 1 not found or not usable; 2 wrong usage");
}

static void list_help(FILE *to)
{
    fprintf(to, "usage: tenon COMMAND [ARGUMENT]... [--json]\n\nInspects the plugins, devices and "
                "operators of Tenon, files of tensors and networks;\n"
                "evaluates, uses and measures models; begins and tests plugins.\n\n");
    for (int i = 0; i < COMMANDS; i++) {
        char left[80];
        int length = snprintf(left, sizeof left, "%s %s", commands[i]->name,
                              commands[i]->arguments);
        /* If name and arguments are long, the summary gets a line of its own. */
        fprintf(to, length > 16 ? "  %s\n%19s%s\n" : "  %-16s%s %s\n", left, "",
                commands[i]->summary);
    }
    fprintf(to, "\n`tenon COMMAND --help` prints more. Exit status: 0 success; 1 not found or not "
                "usable;\n2 wrong usage.\n");
}

static void help_json(const command *only)
{
    json_begin(NULL, '{');
    json_begin("commands", '[');
    for (int i = 0; i < COMMANDS; i++) {
        if (only && commands[i] != only)
            continue;
        json_begin(NULL, '{');
        json_text("name", commands[i]->name);
        json_text("arguments", commands[i]->arguments);
        json_text("summary", commands[i]->summary);
        json_text("help", commands[i]->help);
        json_end('}');
    }
    json_end(']');
    json_end('}');
}

static int help_run(int count, char **arguments, bool json)
{
    const command *c = count ? find(arguments[0]) : NULL;
    if (count && !c)
        return unknown(arguments[0]);
    if (json)
        help_json(c);
    else if (c)
        tool_command_help(c);
    else
        list_help(stdout);
    return EXIT_OK;
}

static int version_run(int count, char **arguments, bool json)
{
    (void)count, (void)arguments;
    if (json) {
        json_begin(NULL, '{');
        json_text("version", tn_version());
        json_int("abi_major", TN_ABI_MAJOR);
        json_int("abi_minor", TN_ABI_MINOR);
        json_end('}');
    } else {
        printf("tenon %s, plugin ABI %d.%d\n", tn_version(), TN_ABI_MAJOR, TN_ABI_MINOR);
    }
    return EXIT_OK;
}

bool tool_json;

int tool_refuse(tn_status code, const char *words)
{
    fprintf(stderr, "tenon: %s\n", words);
    if (tool_json && !json_is_open()) {
        json_begin(NULL, '{');
        json_error(code, words);
        json_end('}');
    }
    return EXIT_NOT_OK;
}

int tool_fail(const char *what)
{
    char words[1200];
    snprintf(words, sizeof words, "%s%s%s", what ? what : "", what ? ": " : "", tn_error_text());
    return tool_refuse(tn_error_code(), words);
}

static int usage(const command *c, const char *words, const char *what)
{
    fprintf(stderr, "tenon %s: %s%s; `tenon %s --help` lists its arguments\n", c->name, words, what,
            c->name);
    return EXIT_USAGE;
}

static int wrong_value(const command *c, const tool_option *option, const char *value)
{
    fprintf(stderr,
            "tenon %s: %s: wrong value, got \"%s\"; expected %s, which `tenon %s --help` "
            "describes\n",
            c->name, option->name, value != NULL ? value : "",
            option->value != NULL ? option->value : "no value", c->name);
    return EXIT_USAGE;
}

/* Reads `--seconds N` or `--seconds=N`. Returns the number of arguments used, 0 if the value is
 * missing or wrong. */
static int take_seconds(int count, char **given)
{
    const char *value = given[0][9] == '=' ? given[0] + 10 : count > 1 ? given[1] : "";
    if (!tn_read_int(value, &tool_seconds) || tool_seconds < 1 || tool_seconds > 86400)
        return 0;
    return given[0][9] == '=' ? 1 : 2;
}

/* Finds the option of a command's table that an argument names, as `--name`, `--name VALUE` or
 * `--name=VALUE`. Sets *value, NULL if there is none, and *used to the number of arguments. Returns
 * NULL if the table has no such option. */
static const tool_option *find_option(const command *c, int count, char **given, const char **value,
                                      int *used)
{
    for (const tool_option *o = c->table; o != NULL && o->name != NULL; o++) {
        size_t length = strlen(o->name);
        bool joined = o->value != NULL && given[0][length] == '=';
        if (strncmp(given[0], o->name, length) != 0 || (given[0][length] != '\0' && !joined))
            continue;
        *used = o->value != NULL && !joined ? 2 : 1;
        *value = joined ? given[0] + length + 1 : *used == 2 && count > 1 ? given[1] : NULL;
        return o;
    }
    return NULL;
}

/* Whether the arguments of a command that parses them itself ask for help. The options of a program
 * that the command runs are not its own. */
static bool wants_help(const command *c, int count, char **given)
{
    for (int i = 0; i < count && strcmp(given[i], "--") != 0; i++) {
        if (!strcmp(given[i], "--help") || !strcmp(given[i], "-h"))
            return true;
        if ((c->options & TOOL_PROGRAM) && given[i][0] != '-')
            return false;
    }
    return false;
}

/* Parses the arguments after the name of the command and runs it. Options may be anywhere before
 * `--`. */
static int start_command(const command *c, int count, char **given)
{
    bool json = false, options = true;
    int kept = 0, used;
    const char *value;
    const tool_option *option;
    if (c->options & TOOL_OWN_OPTIONS)
        return wants_help(c, count, given) ? (tool_command_help(c), EXIT_OK)
                                           : c->run(count, given, false);
    for (int i = 0; i < count; i++) {
        if (!options || given[i][0] != '-' || given[i][1] == '\0')
            given[kept++] = given[i];
        else if (!strcmp(given[i], "--"))
            options = false;
        else if (!strcmp(given[i], "--json"))
            json = tool_json = true;
        else if (!strcmp(given[i], "--help") || !strcmp(given[i], "-h"))
            return tool_command_help(c), EXIT_OK;
        else if ((c->options & TOOL_LIMITED) &&
                 (!strcmp(given[i], "--seconds") ||
                  !strncmp(given[i], "--seconds=", strlen("--seconds=")))) {
            int took = take_seconds(count - i, given + i);
            if (!took)
                return usage(c, "--seconds: expected a number from 1 to 86400, got ",
                             given[i][9] == '=' ? given[i] + 10
                             : i + 1 < count    ? given[i + 1]
                                                : "no value");
            i += took - 1;
        } else if ((option = find_option(c, count - i, given + i, &value, &used)) != NULL) {
            if (option->value != NULL && value == NULL)
                return usage(c, "a value is missing after ", given[i]);
            if (!option->take(value))
                return wrong_value(c, option, value);
            i += used - 1;
        } else
            return usage(c, "unknown option ", given[i]);
    }
    if (kept < c->least)
        return usage(c, "too few arguments; expected ", c->arguments);
    if (kept > c->most)
        return usage(c, "too many arguments: ", given[c->most]);
    return c->run(kept, given, json);
}

/* Opens /dev/null for every standard stream that is closed, so that a file that a command opens
 * does not become standard input or output by accident. The placeholder is opened in the wrong
 * direction, so that using the stream still fails. */
static void fill_closed_streams(void)
{
    for (int stream = 0; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 &&
            open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
            return;
}

int main(int count, char **arguments)
{
    fill_closed_streams();
    signal(SIGXFSZ,
           SIG_IGN); /* a write beyond the file size limit fails; it does not end the process */
    if (count < 2) {
        list_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = arguments[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    else if (!strcmp(name, "--version"))
        name = "version";
    const command *c = find(name);
    if (!c)
        return unknown(name);
    int code = start_command(c, count - 2, arguments + 2);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "tenon: standard output cannot be written\n");
        code = EXIT_NOT_OK;
    }
    child_reported();
    tn_shutdown();
    return code;
}
