/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by the subcommands of `tenon`: their description, text in columns, JSON. Each
 * subcommand has its own file. */
#ifndef TN_TOOLS_TOOL_H
#define TN_TOOLS_TOOL_H

#include <limits.h>
#include <stdio.h>

#include <tenon/tenon.h>

/* The exit statuses of all subcommands. */
enum { EXIT_OK = 0, EXIT_NOT_OK = 1, EXIT_USAGE = 2 };

enum { TOOL_WIDTH = 100, TOOL_WIDTH_LEAST = 40 };

enum {
    TOOL_OWN_OPTIONS = 1, /* `run` parses all arguments itself */
    TOOL_LIMITED = 2,     /* the command has the option --seconds */
    TOOL_PROGRAM = 4      /* runs another command, whose options follow, and has no --json */
};

/* An option of a command that leaves parsing to tenon.c. `take` receives the value (NULL for an
 * option without one) and returns false if the value is wrong. */
typedef struct tool_option {
    const char *name;  /* such as "--dtype" */
    const char *value; /* what the help calls the value, such as "DTYPE"; NULL: none */
    const char *help;
    bool (*take)(const char *value);
} tool_option;

typedef struct command {
    const char *name;
    const char *arguments; /* such as "NAME"; "" if there are none */
    const char *summary;   /* one line, for the list of commands */
    const char *help;      /* paragraphs, which print_wrapped() prints */
    int least, most;       /* number of arguments */
    int (*run)(int count, char **arguments, bool json);
    int options;              /* TOOL_OWN_OPTIONS, TOOL_LIMITED, TOOL_PROGRAM */
    const tool_option *table; /* further options, ended by one without a name; NULL: none */
} command;

/* Prints the last failure on standard error and returns EXIT_NOT_OK; with --json an object
 * {"error": {"code", "message"}} goes to standard output, too, unless output has begun. */
int tool_fail(const char *what);
/* Like tool_fail(), for a failure that the tool itself detected, with its code and message. */
int tool_refuse(tn_status code, const char *words);
/* Returns the path of a folder that was installed with this program: `relative` to the folder of
 * the program, so that the installation can be moved to another prefix, or `compiled` if that
 * cannot be read. The text is valid until the next call. */
const char *installed_folder(const char *relative, const char *compiled);
/* Writes the member "error" with a code and a message. */
void json_error(tn_status code, const char *words);
/* Returns whether `tenon` has a command of this name. */
bool tool_is_command(const char *name);
/* Returns a command by its place, from 0 on; NULL after the last. */
const command *tool_command(int place);
/* Prints the help of a command. */
void tool_command_help(const command *c);
/* True if --json was given. */
extern bool tool_json;

/* ---- work in a child process ---- */

/* How a plugin made a child process fail: by a crash, a call of exit, or a step that does not
 * return. */
typedef struct fault {
    char file[PATH_MAX];
    char reason[512];
    char signal[32]; /* "SIGSEGV", "exit", "timeout" */
    int stage;       /* TN_STAGE_* */
} fault;

/* The time limit of a step of a plugin in seconds (--seconds). */
extern int64_t tool_seconds;
/* Runs this program in a child process with these arguments (the last is NULL), prints the output
 * of the child and returns its exit status. If a plugin crashes the child, runs another child
 * without that plugin; child_fault() tells the new child what happened. If `wanted` is given,
 * and it accepts the fault for `name` or the plugin crashed in its activation or later, calls
 * `show` with the fault instead and returns the result. */
int child_run(const char *const *arguments, bool (*wanted)(const fault *, const char *name),
              const char *name, int (*show)(const fault *));
/* Returns true in a child process that child_run() started. */
bool child_here(void);
/* Returns true if the last step of this child begins with these words. */
bool child_stepped(const char *words);
/* Tells the parent that the output of this child is complete. */
void child_reported(void);
/* Returns true, in a child, if the plugin `file` is left out because it crashed an earlier child,
 * and stores its fault in `out`. */
bool child_fault(const char *file, fault *out);
/* Writes the name of a plugin file without folder, "lib" and ".so". TENON_PLUGINS is matched
 * against this name. */
void plugin_stem(const char *path, char *out, size_t size);

/* ---- text in columns ---- */

enum { TABLE_COLUMNS = 12 };

typedef struct table {
    int columns;
    bool wraps; /* the last column may take several lines */
    int64_t count, capacity;
    char **cells; /* `count` rows of `columns` cells and one note each */
} table;

/* Returns the columns of a line on standard output: those of the terminal, from TOOL_WIDTH_LEAST to
 * TOOL_WIDTH; elsewhere TOOL_WIDTH. */
int tool_width(void);
/* Adds a row of `columns` strings, which are copied. The first row holds the headings. */
void table_row(table *t, ...);
/* Adds a text that is printed below the last row, indented and wrapped. */
void table_note(table *t, const char *format, ...);
/* Prints the table and removes its rows. */
void table_print(table *t);
/* Prints a text, broken at spaces into lines of at most tool_width() columns. The first line begins
 * with `lead`, padded to `indent` columns; the other lines begin with `indent` spaces. */
void print_wrapped(const char *lead, int indent, const char *text);
/* Writes a number of bytes with a unit, such as "1.5 GiB", to `out`; returns `out`. */
const char *bytes_text(int64_t bytes, char *out, size_t size);

/* ---- names ---- */

/* Returns the number of changes of single characters that make one name of the other. Only the
 * first TOOL_NAME characters count. */
enum { TOOL_NAME = 32 };
int tool_distance(const char *a, const char *b);

/* ---- JSON ---- */

/* These functions write JSON to standard output and add commas where needed. `key` is NULL inside a
 * list. Bytes that are not valid UTF-8 are written as U+FFFD. */
void json_begin(const char *key, char bracket);
void json_end(char bracket);
void json_text(const char *key, const char *text);
/* env.c: writes an environment variable as an object. */
void tool_env_json(const tn_env_row *row);
void json_int(const char *key, int64_t number);
void json_float(const char *key, double number);
void json_bool(const char *key, bool yes);
void json_null(const char *key);
/* Returns true if an object or a list has begun and has not ended. */
bool json_is_open(void);

/* ---- output that several subcommands share ---- */

/* The kinds of contributions that have names: returns the one after `kind`, the first for 0, and 0
 * after the last. */
uint32_t kind_after(uint32_t kind);
/* Returns the plural of the name of a kind, until the next call. */
const char *kind_many(uint32_t kind);

void options_print(const tn_option *options);
void options_json(const tn_option *options);
/* Prints as text, for an operator: the formula, operands, gradient, what selects the kernel, and
 * how each device type runs it in float32. */
void op_print(const tn_op_def *def);
/* Writes the load report of a plugin as members of the current JSON object. */
void report_json(const tn_plugin_report *report);
/* Write the contributions of a plugin by kind, as JSON or as text. */
void gives_json(const char *plugin);
void gives_print(const char *plugin);
/* Returns the bytes of a regular file, with a 0 after them; the caller frees them with tn_free().
 * Returns NULL and sets the error on failure, and for a file of more than `most` bytes. `option`
 * begins the message. */
char *read_file(const char *option, const char *path, size_t most, size_t *size);

/* ---- inputs of networks (input.c) ---- */

/* The options --input and --dtype of a command. */
enum { INPUTS_MOST = 8 };
typedef struct input_list {
    const char *at[INPUTS_MOST];
    int count;
    tn_dtype dtype; /* of inputs given without one */
} input_list;

/* Takes a value of --input. Returns false if there are too many. */
bool inputs_take(input_list *to, const char *value);
/* Adds a tensor of zeros for each input to a pack. */
tn_status inputs_add(const input_list *from, tn_pack *pack);
/* Reads an input of a network, such as "1,3,224,224" or "8x20:int64": at most TN_MAX_DIMS sizes
 * and, if there is one, the dtype. Returns false and sets the error on failure. */
bool input_read(const char *text, tn_dtype *dtype, int64_t *sizes, int64_t *count);
/* Returns an example of such an input: normal random numbers for a floating dtype, zeros for
 * others. */
tn_tensor *input_example(const char *text);
/* Calls a module if it has lazy layers, which get their shapes from a call. */
tn_status input_prepare(tn_module *module, const tn_pack *input);
/* Returns the part of a path after the last '/'. */
const char *base_name(const char *path);

#endif
