/* SPDX-License-Identifier: MIT
 *
 * Internals of `tenon check`: tests, their outcomes, and the cases for operators. `tenon check`
 * uses only the public headers of Tenon.
 *
 * Tests run in processes (run.c) and report their outcomes through a pipe. */
#ifndef TN_CONFORM_CONFORM_H
#define TN_CONFORM_CONFORM_H

#include <dirent.h>
#include <stdio.h>

#include <tenon/tenon.h>

enum { CONFORM_CONTRACT, CONFORM_OPS, CONFORM_GRAD, CONFORM_LAYERS, CONFORM_ALL, CONFORM_LEVELS };

typedef enum conform_verdict { CONFORM_PASS, CONFORM_FAIL, CONFORM_SKIP } conform_verdict;

/* The options of the command line. */
typedef struct conform_options {
    const char *file; /* the plugin */
    /* The device on which the operators of a plugin without a device run. For layers this may be a
     * list, such as "cpu,opencl". */
    const char *device;
    const char *cases; /* a file with cases, or a folder of such files */
    const char *only;  /* globs of test names, separated by commas; NULL: all tests */
    int level;         /* CONFORM_CONTRACT to CONFORM_ALL: the highest level to test */
    uint64_t seed;
    int jobs;
    int seconds; /* time limit of one test */
    bool list, complete;
    const char *tap, *junit, *json, *capabilities, *report; /* files to write; "-": standard
                                                             * output */
    const char *self; /* path of the tenon command, which runs again for each process of tests */
} conform_options;

/* The plugin under test, in the process that has loaded it. */
typedef struct conform_plugin {
    const conform_options *options;
    const char *id, *version;
    bool backend, ops; /* the plugin provides a device type; it provides operators */
    bool reference;    /* the reference device is registered */
    /* The device on which operators are called: the plugin's own, or that of --device. */
    const tn_device *device;
} conform_plugin;

/* The test that is running. */
typedef struct conform {
    const conform_plugin *plugin;
    const char *name;    /* "ops/add" */
    const char *subject; /* "add" */
    FILE *to;            /* the pipe that receives the outcome */
    conform_verdict verdict;
    int64_t checks;
} conform;

/* Reports a failure of the test; only the first failure of a test is reported, and the test may
 * continue. Returns false, so that a check can end with `return conform_fail(...)`. */
bool conform_fail(conform *c, const char *format, ...) TN_ATTR(format(printf, 2, 3));
/* Reports that the test is skipped, unless it has failed or was skipped before. */
void conform_skip(conform *c, const char *format, ...) TN_ATTR(format(printf, 2, 3));
/* Reports a line of the operator table: the result of an operator in one dtype. `worst` is the
 * largest error found, divided by the tolerance. */
void conform_row(conform *c, const char *op, const char *dtype, const char *route, int64_t cases,
                 int64_t failed, double worst);

/* Opens a regular file for reading. Refuses other files, because opening a FIFO, for example, would
 * block. Returns NULL and stores the reason in `why` on failure. */
FILE *conform_open(const char *path, const char **why);
/* Creates or empties a file for writing. On failure returns NULL, with *why and errno set. A pipe
 * needs a reader that has opened it. */
FILE *conform_create(const char *path, const char **why);
/* A file that is read by lines; the part of it that is in memory has `used` bytes from `at` on. */
typedef struct conform_lines {
    FILE *file;
    char *memory;
    size_t room, at, used;
} conform_lines;

/* Reads the next line, without its end. It stays until the next call. Returns false at the end of
 * the file with *why NULL, or on failure with *why set. */
bool conform_next_line(conform_lines *lines, char **line, const char **why);
/* Closes the file, if there is one, and frees the memory. */
void conform_lines_end(conform_lines *lines);

/* The words with which a line may begin: in a case of an operator, a layer or an optimizer, and
 * (CONFORM_LINES) anywhere in a file of cases. */
#define CONFORM_OP_LINES "opt in cot out grad loose refused try"
#define CONFORM_LAYER_LINES "eval random records train repr state in out cot gin grad after try"
#define CONFORM_OPTIMIZER_LINES "parameter gradient after"
#define CONFORM_LINES                                                                              \
    "case op layer optimizer dataset transform prune " CONFORM_OP_LINES " " CONFORM_LAYER_LINES    \
    " " CONFORM_OPTIMIZER_LINES
/* Returns true if a line begins with one of `words` (separated by spaces) or is blank, a comment or
 * `end`. Otherwise returns false and writes to `why` what is wrong. */
bool conform_line_begins(const char *line, const char *words, char *why, size_t size);
/* Returns whether a line begins a case, or is a whole one, of another kind than `kind`
 * ("layer"). */
bool conform_line_of_other(const char *line, const char *kind);

/* ---- tests ---- */

typedef struct conform_test {
    const char *name;
    bool for_backends; /* the test needs a device that the plugin itself provides */
    void (*run)(conform *c);
} conform_test;
/* The tests for every plugin, and the tests for plugins with a device type. An entry with the name
 * NULL ends each list. */
extern const conform_test conform_contract_tests[];
extern const conform_test conform_device_tests[];
/* Stores the signal handlers, locale, working directory, umask and signal mask of the process. Call
 * it before the plugin is loaded; a test of the contract compares the process with these values. */
void conform_remember_process(void);
/* Test the operator named c->subject: its results, and its gradients. */
void conform_op(conform *c);
void conform_gradient(conform *c);
/* Test the layer type, optimizer, format, pass, compiler, communicator, dataset, transform or
 * pruning method named c->subject. */
void conform_layer(conform *c);
void conform_optimizer(conform *c);
void conform_format(conform *c);
void conform_pass(conform *c);
void conform_compiler(conform *c);
void conform_comm(conform *c);
void conform_dataset(conform *c);
void conform_transform(conform *c);
void conform_pruning(conform *c);
/* Calls check(c, spec) for each line "WORD SPEC" of the cases whose spec has the name of the test's
 * subject or, if there is none, for the name alone. `word` ends with a blank. */
void conform_check_specs(conform *c, const char *word, const tn_option *options,
                         bool (*check)(conform *c, const char *spec));
/* The value of an option in a spec, and the value that is tried instead. */
typedef struct conform_other_value {
    char from[32], to[32];
} conform_other_value;
/* Writes to `out` the spec with another value of option `which`: in a list of floats, only element
 * `element` is changed; an integer or a text becomes the default, an integer without default its
 * successor. Returns false if the spec does not contain the option, or contains its default, or if
 * no other value is known. */
bool conform_other_spec(const char *spec, const tn_option *options, int which, int element,
                        conform_other_value *value, char *out, size_t size);
/* Returns true if an operator must be tested with the plugin: the plugin has a device type, defines
 * the operator, or has a kernel for it (conform_runs()). */
bool conform_concerns(const conform_plugin *plugin, const char *op);
/* Returns true if a kernel of the plugin is the first choice for the operator on plugin->device, in
 * at least one dtype. */
bool conform_runs(const conform_plugin *plugin, const char *op);

/* ---- host memory (failing_memory.c) ---- */

/* Installs an allocator for host memory whose allocations fail when a test asks for that. Call it
 * before the first allocation. */
void conform_scarce_memory(void);
/* From now on, `after` allocations succeed and the next one fails; with `all`, every later one
 * fails, too. */
void conform_memory_fails(int64_t after, bool all);
/* Makes allocations succeed again. Returns how many failed since conform_memory_fails(). */
int64_t conform_memory_is_back(void);
/* Return the number of allocations since conform_memory_fails(), and the number of allocated blocks
 * that have not been freed. */
int64_t conform_memory_taken(void);
int64_t conform_memory_blocks(void);

/* ---- cases ---- */

typedef struct conform_tensor {
    bool there, grad; /* not there: an optional input left out; grad: its gradient is required */
    tn_dtype dtype;
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS], offset;
    int64_t count;  /* the number of elements; their values are in row-major order */
    double *values; /* two for each complex element */
    int64_t *whole; /* the values of int64 elements, which may not fit a double; else NULL */
} conform_tensor;

enum { CONFORM_GIVEN = 32 }; /* the largest number of expected results of a case */

typedef struct conform_case {
    char name[128];
    const tn_op *op;
    const tn_op_def *def;
    void *options;
    conform_tensor *in;
    int64_t n_in, capacity;
    bool has_cotangent;
    conform_tensor cotangent;
    int32_t n_given; /* expected results; only their values are set, in row-major order */
    conform_tensor given[CONFORM_GIVEN];
    bool loose;   /* the expected results are approximate */
    bool refused; /* the call must fail */
    bool draws;   /* set by the receiver: the call draws random numbers from the generator */
    bool keep;    /* set by the receiver to keep the case until conform_cases() returns */
} conform_case;

/* Returns true if an option has no default, so that the name alone is not a valid spec. */
static inline bool conform_needs_options(const tn_option *options)
{
    for (; options != NULL && options->kind != TN_OPTION_KIND_END; options++)
        if (options->flags & TN_OPTION_REQUIRED)
            return true;
    return false;
}

static inline bool is_float(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}

static inline bool is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}

/* A filter for scandir: returns 1 if the name of a file ends in .txt, 0 if not. */
int conform_is_text(const struct dirent *entry);

/* Reads the cases of operator `op` from a file or folder and passes them to `take` one by one;
 * `take` returns false to stop. Returns the number of cases passed; -1, with the reason in `words`,
 * if a file cannot be read or is malformed. */
int64_t conform_cases(const char *path, const char *op, bool (*take)(void *user, conform_case *one),
                      void *user, char *words, size_t size);

/* The layout of a tensor in memory. */
typedef enum conform_layout {
    CONFORM_AS_GIVEN,
    CONFORM_APART,    /* elements at offsets 3, 5, 7, ...; the memory between holds a pattern */
    CONFORM_BACKWARD, /* the first dimension is the innermost */
    CONFORM_LAYOUTS,  /* the number of layouts with which every case is called */
    CONFORM_PLAIN     /* row-major */
} conform_layout;
/* Creates a tensor on `device` from the values of a case, converted to `dtype` (floats are
 * rounded). Unless `whole` is NULL, stores there a tensor of all its memory, gaps included. Returns
 * NULL on failure. */
tn_tensor *conform_tensor_make(const conform_tensor *from, tn_dtype dtype, const tn_device *device,
                               conform_layout layout, tn_tensor **whole);
/* Returns the elements of a tensor on any device as doubles (two for each complex element), in
 * row-major order; the caller frees them. Returns NULL on failure. */
double *conform_values(tn_tensor *tensor, int64_t *count);
/* Writes a shape such as "[2, 3]", cut off if there is no room. */
void conform_shape_text(const int64_t *sizes, int64_t count, char *out, size_t size);
/* Returns the bytes of all elements in row-major order; the caller frees them. Returns NULL on
 * failure. */
void *conform_bytes(tn_tensor *tensor, size_t *size);

/* Returns true if two values have the same kind and are equal. Tensors are equal if their dtypes,
 * shapes and the bits of their elements are. */
bool conform_same_value(tn_value a, tn_value b);
/* Returns true if two states have equal entries in the same order. */
bool conform_same_state(const tn_state *a, const tn_state *b);

/* Returns the allowed error of an element, before it is multiplied by 1 + the largest absolute
 * value of the expected result. */
double conform_tolerance(tn_dtype dtype);

/* ---- running ---- */

/* Runs the whole check: lists the tests, runs them in processes, and reports. Returns the exit
 * status of the command. */
int conform_run(const conform_options *options);
/* Runs in the process of tests: loads the plugin, runs the tests, whose names are separated by
 * commas, and reports through `fd`. Returns the exit status of the process. */
int conform_child(const conform_options *options, const char *tests, int fd);

/* The outcome of a test, in the process that started the others. */
typedef struct conform_outcome {
    char *name, *words;
    conform_verdict verdict;
    bool again; /* the test has not run alone yet, and must */
    double seconds;
    int64_t checks;
} conform_outcome;
/* A line of the operator table; see conform_row(). */
typedef struct conform_line {
    char op[64], dtype[16], route[96];
    int64_t cases, failed;
    double worst;
    int64_t test; /* index of its outcome */
} conform_line;
typedef struct conform_report {
    const conform_options *options;
    char id[128], version[64], device[64];
    bool host; /* all tested devices use host memory, where TENON_CHECK=1 costs little */
    conform_outcome *outcome;
    int64_t n_outcomes;
    conform_line *line;
    int64_t n_lines;
} conform_report;
/* Writes the requested report files. Returns false, after a message on standard error, if one
 * cannot be written. */
bool conform_write_reports(const conform_report *report);

/* Writes the page of --report, in Markdown (report_page.c). */
void conform_report_page(FILE *to, const conform_report *report);

/* ---- json.c ---- */

/* Returns the length in bytes of the UTF-8 character at `at`, 0 if it is malformed. */
int conform_utf8(const unsigned char *at);
/* Writes `text` as a JSON string with its quotes; NULL is written as "". A byte that is not part of
 * valid UTF-8 is replaced by U+FFFD. */
void conform_json_string(FILE *to, const char *text);

#endif
