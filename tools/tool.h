/* SPDX-License-Identifier: MIT
 *
 * What the subcommands of `tenon` share: their table, text in columns, JSON. Each subcommand has
 * a file of its own. */
#ifndef TENON_TOOL_H
#define TENON_TOOL_H

#include <limits.h>
#include <stdio.h>

#include <tenon/tenon.h>

/* Exit codes, for all of them. */
enum { EXIT_OK = 0, EXIT_NOT_OK = 1, EXIT_USAGE = 2 };

enum { TOOL_WIDTH = 100 };

enum {
    TOOL_OWN_OPTIONS = 1, /* `run` gets all arguments as they are */
    TOOL_LIMITED = 2      /* takes --seconds */
};

typedef struct command {
    const char *name;
    const char *arguments; /* "NAME", "" */
    const char *summary;   /* one line, for the list */
    const char *help;      /* paragraphs, lines of at most TOOL_WIDTH */
    int least, most;       /* arguments */
    int (*run)(int count, char **arguments, bool json);
    int options; /* TOOL_* */
} command;

extern const command plugins_command, why_command, devices_command, ops_command, env_command,
    info_command, inspect_command, convert_command, check_command, summary_command, new_command;

/* Prints the last failure on standard error and returns EXIT_NOT_OK; with --json an object
 * {"error": {"code", "message"}} goes to standard output, too, unless output has begun. */
int tool_fail(const char *what);
/* The same for a failure that the tool itself detected. */
int tool_refuse(tn_status code, const char *words);
/* A folder that was installed with this program: at `relative` from the folder of the program, so
 * that a prefix can be moved; where that cannot be read, `compiled`. Valid until the next call. */
const char *installed_folder(const char *relative, const char *compiled);
/* Whether --json was given. */
extern bool tool_json;

/* ---- work in a child process ---- */

/* How a plugin ended the child, or kept it from ending. */
typedef struct fault {
    char file[PATH_MAX];
    char reason[512];
    char signal[32]; /* "SIGSEGV", "exit", "timeout" */
    int stage;
} fault;

/* Seconds that a step of a plugin may take: --seconds. */
extern int64_t tool_seconds;
/* Runs this program again with these arguments (NULL ends them), prints its output, returns its
 * exit status. If a plugin crashes it, it runs once more without that plugin, whose fault the child
 * can query; with `wanted` and a fault that it accepts for `name`, `show` is called instead. */
int child_run(const char *const *arguments, bool (*wanted)(const fault *, const char *name),
              const char *name, int (*show)(const fault *));
/* Whether this process is such a child. */
bool child_here(void);
/* Whether its last step begins with these words. */
bool child_stepped(const char *words);
/* The child's output is complete. */
void child_reported(void);
/* The outcome of a plugin's file that was skipped. */
bool child_fault(const char *file, fault *out);
/* The name of a file without "lib" and ".so", as TENON_PLUGINS sees it. */
void plugin_stem(const char *path, char *out, size_t size);

/* ---- text in columns ---- */

enum { TABLE_COLUMNS = 12 };

typedef struct table {
    int columns;
    bool wraps; /* the last column may take several lines */
    int64_t count, capacity;
    char **cells; /* count rows of `columns` cells and a note */
} table;

/* Heads in the first row; the strings are copied. */
void table_row(table *t, ...);
/* Text below the row that was added last, indented, wrapped. */
void table_note(table *t, const char *format, ...);
/* Prints and empties. */
void table_print(table *t);
/* Text broken at spaces into lines of TOOL_WIDTH, each with `indent` spaces in front; the first
 * has `lead` instead. */
void print_wrapped(const char *lead, int indent, const char *text);
/* "1.5 GiB" */
const char *bytes_text(int64_t bytes, char *out, size_t size);

/* ---- JSON ---- */

/* Writes to standard output; the functions keep track of commas. A NULL key: inside a list.
 * Invalid bytes of UTF-8 are written as U+FFFD. */
void json_begin(const char *key, char bracket);
void json_end(char bracket);
void json_text(const char *key, const char *text);
void json_int(const char *key, int64_t number);
void json_float(const char *key, double number);
void json_bool(const char *key, bool yes);
void json_null(const char *key);
/* Whether an object or a list is open. */
bool json_is_open(void);

/* ---- what several of them show ---- */

/* The kinds that have a registry, by name: "layer". NULL ends. */
typedef struct kind_name {
    uint32_t kind;
    const char *one;
    const char *many;
} kind_name;
extern const kind_name kind_names[];

/* The option table of a descriptor, NULL if it has none; likewise its help. */
const tn_option *options_of(const tn_head *head);
const char *help_of(const tn_head *head);
void options_print(const tn_option *options);
void options_json(const tn_option *options);
/* Operands, gradient and routes of an operator, as text. */
void op_print(const tn_op_def *def);
/* The report of a plugin: as text, as members of the current JSON object. */
void report_json(const tn_plugin_report *report);
/* What a plugin gives, by kind. */
void gives_json(const char *plugin);
void gives_print(const char *plugin);
/* The last part of a path. */
const char *base_name(const char *path);

#endif
