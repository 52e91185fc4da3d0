/* SPDX-License-Identifier: MIT
 *
 * tenon complete WORD...: what the last word can be, for the completion of shells. The commands are
 * those of the tool, the options those that the help of a command lists, so neither can differ. */
#include "tool.h"

#include <string.h>
#include <unistd.h>

enum { LINE = 512, TEXT = 4096 };

static bool wants_help; /* --describe */

static bool take_describe(const char *value)
{
    (void)value;
    return wants_help = true;
}

/* Writes a candidate; with --describe as zsh wants it, the text after a colon. */
static void put(const char *name, const char *text)
{
    for (; *name != '\0'; name++) {
        if (*name == ':' && wants_help)
            putchar('\\');
        putchar(*name);
    }
    if (wants_help && *text != '\0')
        printf(":%s", text);
    putchar('\n');
}

static void put_commands(const char *start)
{
    const command *c;

    for (int i = 0; (c = tool_command(i)) != NULL; i++)
        if (strncmp(c->name, start, strlen(start)) == 0)
            put(c->name, c->summary);
}

/* ---- options --------------------------------------------------------------------------------- */

/* Runs the help of a command with its output in a file, which the caller closes. */
static FILE *help_of_command(const command *c)
{
    FILE *file = tmpfile();
    int kept;

    fflush(stdout);
    kept = file != NULL ? dup(STDOUT_FILENO) : -1;
    if (kept < 0 || dup2(fileno(file), STDOUT_FILENO) < 0) {
        if (file != NULL)
            fclose(file);
        if (kept >= 0)
            close(kept);
        return NULL;
    }
    tool_command_help(c);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(file);
    return file;
}

/* Divides a line such as "  --name VALUE   text" of a help; returns false if it is none. *value is
 * "" if the option takes none. */
static bool is_option(char *line, char **name, char **value, char **text)
{
    size_t length;

    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "  --", 4) != 0 || line[4] == '\0' || line[4] == ' ')
        return false;
    *name = line + 2;
    length = strcspn(*name, " ");
    *value = *name + length;
    if ((*name)[length] == ' ' && (*name)[length + 1] != ' ' && (*name)[length + 1] != '\0')
        *value = *name + length + 1;
    *text = strstr(*value, "  ");
    if (*text == NULL)
        *text = *value + strlen(*value);
    else
        *(*text)++ = '\0';
    (*name)[length] = '\0';
    while (**text == ' ')
        (*text)++;
    return true;
}

/* Returns the text of a line that continues that of an option, NULL if the line is another one. */
static const char *continued(const char *line)
{
    size_t indent = strspn(line, " ");

    return indent >= 8 && line[indent] != '\0' ? line + indent : NULL;
}

/* Lists the options that begin with `start`. With `before`, returns whether that is an option with
 * a value, and lists nothing. */
static bool look_at_options(const command *c, const char *start, const char *before)
{
    FILE *help = help_of_command(c);
    char line[LINE], option[LINE] = "", whole[TEXT] = "", *name, *value, *text;
    const char *more;
    bool found = false;

    while (help != NULL && fgets(line, sizeof line, help) != NULL) {
        bool is_one = is_option(line, &name, &value, &text);

        more = is_one ? NULL : continued(line);
        if (more != NULL) {
            size_t used = strlen(whole);

            tn_snprint(whole + used, sizeof whole - used, " %s", more);
            continue;
        }
        if (option[0] != '\0')
            put(option, whole);
        option[0] = '\0';
        if (is_one && before != NULL) {
            found = found || (strcmp(name, before) == 0 && *value != '\0');
        } else if (is_one && strncmp(name, start, strlen(start)) == 0) {
            tn_snprint(option, sizeof option, "%s", name);
            tn_snprint(whole, sizeof whole, "%s", text);
        }
    }
    if (option[0] != '\0')
        put(option, whole);
    if (help != NULL)
        fclose(help);
    return found;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const command *command_of(const char *name)
{
    const command *c;

    for (int i = 0; (c = tool_command(i)) != NULL; i++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int run_complete(int count, char **words, bool json)
{
    const char *last = count > 0 ? words[count - 1] : "";
    const command *c = count > 1 ? command_of(words[0]) : NULL;

    (void)json;
    if (count <= 1 || (c != NULL && strcmp(c->name, "help") == 0))
        put_commands(last);
    else if (c != NULL && last[0] == '-' &&
             (count == 2 || !look_at_options(c, "", words[count - 2])))
        look_at_options(c, last, NULL);
    return EXIT_OK;
}

static const tool_option options[] = {
    { "--describe", NULL, "also prints the help of each, after a colon", take_describe },
    { NULL, NULL, NULL, NULL }
};

const command complete_command = {
    "complete",
    "[-- WORD...]",
    "what a word of a command line can be, for shells",
    "Prints what the last of the words after `tenon` can be, one in a line: commands, or options "
    "of a command. Nothing means the name of a file. The completions for bash and zsh that are "
    "installed call it.",
    0,
    INT_MAX,
    run_complete,
    0,
    options
};
