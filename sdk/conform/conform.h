/* SPDX-License-Identifier: MIT
 *
 * Internals of `tenon check`: tests, their outcomes, and the cases for operators. It is a program
 * like any other: it uses the public headers only.
 *
 * Every test runs in a process of its own (run.c); it reports the outcome through a pipe. */
#ifndef TENON_CONFORM_CONFORM_H
#define TENON_CONFORM_CONFORM_H

#include <dirent.h>
#include <stdio.h>

#include <tenon/tenon.h>

enum { CONFORM_CONTRACT, CONFORM_OPS, CONFORM_GRAD, CONFORM_LAYERS, CONFORM_ALL, CONFORM_LEVELS };

typedef enum conform_verdict { CONFORM_PASS, CONFORM_FAIL, CONFORM_SKIP } conform_verdict;

/* What the command line asked for. */
typedef struct conform_options {
    const char *file;   /* the plugin */
    const char *device; /* for plugins without a device: where their operators run; layers are
                           checked on several: cpu,opencl */
    const char *cases;  /* a file, or a folder of them */
    const char *only;   /* globs of test names, with commas between; NULL: all */
    int level;          /* tests up to this one */
    uint64_t seed;
    int jobs;
    int seconds; /* that a test may take */
    bool list, complete;
    const char *tap, *junit, *json, *capabilities; /* files to write; "-" is standard output */
    const char *self;                              /* this program, to be run again */
} conform_options;

/* The plugin under test, in the process that has loaded it. */
typedef struct conform_plugin {
    const conform_options *options;
    const char *id;
    bool backend, ops; /* what it brings */
    const tn_device
        *device; /* where operators are called: the plugin's own, or the one asked for */
} conform_plugin;

/* One test under way. */
typedef struct conform {
    const conform_plugin *plugin;
    const char *name;    /* "ops/add" */
    const char *subject; /* "add" */
    FILE *to;            /* where the outcome goes */
    conform_verdict verdict;
    int64_t checks;
} conform;

/* The first failure counts; the test may continue. Returns false, for `return conform_fail(...)`.
 */
bool conform_fail(conform *c, const char *format, ...) TN_ATTR(format(printf, 2, 3));
void conform_skip(conform *c, const char *format, ...) TN_ATTR(format(printf, 2, 3));
/* A line of the operator table: the result for one dtype. `worst` is the largest share of the
 * tolerance that was used. */
void conform_row(conform *c, const char *op, const char *dtype, const char *route, int64_t cases,
                 int64_t failed, double worst);

/* Opens a regular file for reading. NULL and the reason otherwise: opening a FIFO, for example,
 * would block. */
FILE *conform_open(const char *path, const char **why);

/* The words that lines of case files begin with: of all files, and of each kind of case. */
#define CONFORM_OP_LINES "opt in cot out grad loose refused try"
#define CONFORM_LAYER_LINES "eval random train repr state in out cot gin grad after try"
#define CONFORM_OPTIMIZER_LINES "parameter gradient after"
#define CONFORM_LINES                                                                              \
    "case op layer optimizer " CONFORM_OP_LINES " " CONFORM_LAYER_LINES " " CONFORM_OPTIMIZER_LINES
/* Whether a line begins with one of the words, or is blank, a comment or `end`; if not, what is
 * wrong. */
bool conform_line_begins(const char *line, const char *words, char *why, size_t size);

/* ---- tests ---- */

typedef struct conform_test {
    const char *name;
    bool for_backends; /* needs a device type of the plugin's own */
    void (*run)(conform *c);
} conform_test;
/* Of every plugin, and of those with a device type; a NULL name ends them. */
extern const conform_test conform_contract_tests[];
extern const conform_test conform_device_tests[];
/* How signals are handled before the plugin is loaded. */
void conform_remember_process(void);
/* Of one operator, by c->subject. */
void conform_op(conform *c);
void conform_gradient(conform *c);
/* Of one layer type, optimizer, format, pass, compiler, communicator. */
void conform_layer(conform *c);
void conform_optimizer(conform *c);
void conform_format(conform *c);
void conform_pass(conform *c);
void conform_compiler(conform *c);
void conform_comm(conform *c);
/* Whether an operator concerns the plugin: it defines it, runs it, or runs a kernel for it. */
bool conform_concerns(const conform_plugin *plugin, const char *op);
/* Whether a kernel of the plugin is the first choice for it, in a dtype, on the device. */
bool conform_runs(const conform_plugin *plugin, const char *op);

/* ---- host memory (failing_memory.c) ---- */

/* Makes host memory of this process fail when a test requests it; call it before the first
 * allocation. */
void conform_scarce_memory(void);
/* From now on `after` allocations succeed, then one fails, and with `all` every later one. */
void conform_memory_fails(int64_t after, bool all);
/* Allocations succeed again; returns how many failed. */
int64_t conform_memory_is_back(void);
/* Allocations since failures were last enabled, and blocks in use. */
int64_t conform_memory_taken(void);
int64_t conform_memory_blocks(void);

/* ---- cases ---- */

typedef struct conform_tensor {
    bool there, grad;
    tn_dtype dtype;
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS], offset;
    int64_t count;  /* elements, in row-major order */
    double *values; /* two for each complex element */
    int64_t *whole; /* the same of int64, where doubles do not have all numbers; else NULL */
} conform_tensor;

enum { CONFORM_GIVEN = 4 };

typedef struct conform_case {
    char name[128];
    const tn_op *op;
    const tn_op_def *def;
    void *options;
    conform_tensor *in;
    int64_t n_in, capacity;
    bool has_cotangent;
    conform_tensor cotangent;
    int32_t n_given; /* expected results; their values in row-major order alone */
    conform_tensor given[CONFORM_GIVEN];
    bool loose;   /* they are not exact */
    bool refused; /* the call has to fail */
    bool draws;   /* set by the receiver: the call draws from the generator */
    bool keep;    /* set by the receiver to keep the case until all cases are delivered */
} conform_case;

static inline bool is_float(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}

static inline bool is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}

/* For scandir: whether the name of a file ends in .txt. */
int conform_is_text(const struct dirent *entry);

/* Reads the cases of an operator and passes them to `take` one by one; `take` returns false to
 * stop. Returns the number of cases, or -1 with an error text in `words` for malformed files. */
int64_t conform_cases(const char *path, const char *op, bool (*take)(void *user, conform_case *one),
                      void *user, char *words, size_t size);

/* The layout of a tensor in memory. */
typedef enum conform_layout {
    CONFORM_AS_GIVEN,
    CONFORM_APART,    /* every second element, from the fourth on, with a pattern in between */
    CONFORM_BACKWARD, /* the first dimension is the innermost */
    CONFORM_LAYOUTS,
    CONFORM_PLAIN /* row-major; the cases as given are row-major or more general */
} conform_layout;
/* A tensor of another dtype on a device; floats are rounded to it. `whole` receives all of its
 * memory. */
tn_tensor *conform_tensor_make(const conform_tensor *from, tn_dtype dtype, const tn_device *device,
                               conform_layout layout, tn_tensor **whole);
/* The elements of a tensor on any device as doubles (complex: two each); NULL and an error on
 * failure. */
double *conform_values(tn_tensor *tensor, int64_t *count);
/* The bytes of all elements in row-major order. */
void *conform_bytes(tn_tensor *tensor, size_t *size);

/* Whether two values are of one kind and equal; of tensors, dtype, shape and the bits of the
 * elements. */
bool conform_same_value(tn_value a, tn_value b);

/* The allowed distance of one element from the reference. */
double conform_tolerance(tn_dtype dtype);

/* ---- running ---- */

/* The whole run: plans, starts a process for every test, reports. The exit status of the command.
 */
int conform_run(const conform_options *options);
/* The process of one test: loads the plugin, runs, reports through `fd`. */
int conform_child(const conform_options *options, const char *test, int fd);

/* What came of a test, in the run. */
typedef struct conform_outcome {
    char *name, *words;
    conform_verdict verdict;
    double seconds;
    int64_t checks;
} conform_outcome;
typedef struct conform_line {
    char op[64], dtype[16], route[96];
    int64_t cases, failed;
    double worst;
} conform_line;
typedef struct conform_report {
    const conform_options *options;
    char id[128], device[64];
    bool host; /* the devices use host memory: guard zones are cheap */
    conform_outcome *outcome;
    int64_t n_outcomes;
    conform_line *line;
    int64_t n_lines;
} conform_report;
/* Write the requested report files; false after a message on standard error. */
bool conform_write_reports(const conform_report *report);

/* ---- json.c ---- */

/* Length in bytes of the UTF-8 character at `at`, 0 when it is not well formed. */
int conform_utf8(const unsigned char *at);
/* A string of JSON with its quotes; "" for NULL. What is not UTF-8 is replaced by U+FFFD. */
void conform_json_string(FILE *to, const char *text);

#endif
