/* SPDX-License-Identifier: MIT
 *
 * A foreign program in memory, whatever file it comes from: graphs of calls of functions, and the
 * tree of modules to which the calls belong. A reader of a format makes it, program_finish()
 * prepares it, and module.c makes modules that run it. Nothing changes it afterwards, so any number
 * of modules and threads can use it. */
#ifndef TN_FOREIGN_PROGRAM_H
#define TN_FOREIGN_PROGRAM_H

#include "rules_bound.h"

#include <tenon/foreign.h>

enum {
    PROGRAM_NODES = 1000000, /* at most, of a program with all graphs in it */
    PROGRAM_LEVELS = 64,     /* of graphs in graphs, of lists in lists, of modules in modules */
    PROGRAM_PATH = 1000      /* bytes of the path of a module or a slot */
};

struct graph;
struct segment;

enum arg_kind { ARG_CONSTANT, ARG_VALUE, ARG_LIST, ARG_GRAPH };

/* An argument of a call, or an output of a graph. */
struct arg {
    enum arg_kind kind;
    int64_t count; /* of the list */
    union {
        tn_value constant;
        int64_t value; /* a number of the graph; after program_finish() one of the segment */
        struct arg *list;
        struct graph *graph;
    } as;
};

/* A result of a call: a value, or with `list` several values. */
struct result {
    int64_t value; /* -1: nothing uses it */
    int64_t *list; /* NULL: none */
    int64_t count;
};

/* Control flow: a function whose arguments have graphs (control.c). */
struct control;

/* A call of a function. */
struct node {
    const char *function; /* "aten.add.Tensor" */
    const char *name;     /* for messages */
    int64_t version;      /* of its operator set; 0: none */
    struct arg *args;     /* of a rule: one for each of its arguments, in its order */
    const char **names;   /* of args, until they are in that order; "" without a name */
    int64_t n_args;
    struct result *results;
    int64_t n_results;
    const struct rules_bound *rule; /* NULL: `control` */
    const struct control *control;
    bool in_place;
    bool counts;     /* counts the batches of a norm: only in training mode */
    bool normalizes; /* a norm whose batches nobody counts: it counts them itself */
    int64_t *dies;   /* values that nothing uses after this call */
    int64_t n_dies;
    /* Until program_finish(): the modules of the call from the root on. */
    struct stack_level *stack;
    int64_t n_stack;
};

/* A module in the stack of a call. `call` distinguishes calls of one module. */
struct stack_level {
    int64_t part;
    const char *call;
};

enum value_kind { VALUE_TENSOR, VALUE_NUMBER };

/* What program_finish() needs to know of a value. */
struct value {
    const char *name;
    enum value_kind kind;
    int64_t bound; /* the slot that it is; -1: none */
};

struct graph {
    struct value *values;
    int64_t n_values;
    int64_t *inputs; /* a value each; -1: the input is not used */
    int64_t n_inputs;
    struct arg *outputs;
    int64_t n_outputs;
    struct node *nodes;
    int64_t n_nodes;
    struct segment *whole; /* of a graph in an argument, after program_finish() */
};

/* A step of a segment: a node, or a call of a module. */
struct step {
    struct node *node; /* NULL: `call` */
    struct segment *call;
};

/* A tensor of a slot that a segment uses. */
struct fetch {
    int64_t value;
    const char *path; /* of the module, from the module of the segment on; "" for itself */
    const char *name;
};

/* A value that goes into a segment or comes out of it. */
struct pass {
    int64_t value;   /* of the segment */
    int64_t outside; /* the same value, of the segment around it */
    enum value_kind kind;
    bool slot; /* a tensor of a module outside */
};

/* The nodes of one call of a module. Numbers of values are those of the segment. */
struct segment {
    int64_t part;     /* the module; -1: a graph in an argument */
    int64_t index;    /* which of the calls of this module */
    const char *path; /* from the module of the segment around it on */
    struct step *steps;
    int64_t n_steps, steps_capacity;
    int64_t n_values;
    struct fetch *fetches;
    int64_t n_fetches;
    /* What it needs from outside and what it gives: values of this segment, and of the segment
     * around it. Tensors come first. */
    struct pass *takes, *gives;
    int64_t n_takes, n_tensors, n_gives;
    int64_t *dies, n_dies; /* values around it that nothing uses after the call */
    int64_t first, end;    /* of its nodes, in the main graph */
};

/* A module of the tree. */
struct part {
    const char *path; /* "layer1.0"; "" for the root */
    const char *type; /* "Conv2d" */
    struct program *program;
    struct segment **segments; /* one for each call */
    int64_t n_segments, segments_capacity;
    bool counts; /* has a count of batches that the program does not increment */
    int mode;    /* 1 training, 0 evaluation, -1 not known */
};

/* A tensor of the tree. */
struct slot {
    const char *path; /* "layer1.0.weight" */
    int64_t part;
    const char *name;
    tn_tensor *tensor; /* owned, until the tree is made */
    uint32_t flags;    /* TN_SLOT_* of a buffer */
    bool parameter, grad;
    const char *source; /* the name in the file, where a writer needs it; else NULL */
};

enum input_kind { INPUT_VALUE, INPUT_CONSTANT };

/* An input of the program. */
struct program_input {
    const char *name; /* of the argument; NULL: not known */
    bool constant;    /* must have this value */
    bool optional;    /* None if it is not given */
    tn_value value;
    int64_t to; /* the value of the main graph */
};

enum output_kind { OUTPUT_USER, OUTPUT_SLOT, OUTPUT_INPUT };

/* An output of the main graph: of the program, or written to a slot or an input. */
struct program_output {
    enum output_kind kind;
    int64_t index;    /* of the slot or of the input */
    const char *name; /* of the result; NULL: none */
};

struct program {
    struct arena arena;
    enum rules_of rules_of;
    _Atomic int64_t references;
    const char *path; /* of the file, for messages */
    struct graph main;
    struct part *parts; /* the root is the first, and each comes after the module that holds it */
    int64_t n_parts;
    struct slot *slots;
    int64_t n_slots;
    struct program_input *inputs;
    int64_t n_inputs;
    struct program_output *outputs; /* one for each output of `main` */
    int64_t n_outputs;
    int64_t n_nodes;            /* of all graphs */
    struct rules_bound **rules; /* those that the program uses */
    int64_t n_rules, rules_capacity;
    struct segment *root;
    bool beside; /* constants have their data in other files, to which `text` refers */
    char *text;  /* of the program in the file, NUL-terminated; owned */
    size_t text_size;
    tn_state *files;      /* the extra files, for tn_program_files(); owned */
    struct program *next; /* programs.c */
    bool listed;
};

/* Returns an empty program; the caller drops it. */
TN_HIDDEN struct program *program_new(const char *path);
TN_HIDDEN void program_keep(struct program *program);
TN_HIDDEN void program_drop(struct program *program);

/* program.c: calls `each` with the graphs among arguments, at any depth of lists, until it fails.
 */
typedef tn_status program_graph_fn(void *user, struct graph *graph);
TN_HIDDEN tn_status program_graphs(const struct arg *args, int64_t count, program_graph_fn *each,
                                   void *user);
/* program.c: gives all calls their rules, after the reader has read everything. Fails with one
 * message that names all functions without a rule and all arguments that no rule takes. */
TN_HIDDEN tn_status program_bind(struct program *program);
/* host.c: finds the values that are integers of the host whatever the arguments, so that modules
 * pass them as such. */
TN_HIDDEN void host_find(struct program *program);
/* segments.c: divides the program into the calls of modules. */
TN_HIDDEN tn_status segments_divide(struct program *program);

/* modes.c: finds the modes of the modules; the numbers of values are still those of the main
 * graph. */
TN_HIDDEN tn_status modes_find(struct program *program);
/* The name of a buffer that counts the batches of a norm in training mode. */
#define PROGRAM_COUNTER "num_batches_tracked"

/* programs.c: lists a program that modules run; it is removed before it is freed. */
TN_HIDDEN void programs_add(struct program *program);
TN_HIDDEN void programs_remove(struct program *program);
/* The part that a module is, NULL without an error for a module of another origin; and the program
 * of a module that is the root of one, NULL after a failure. */
TN_HIDDEN struct part *programs_part(tn_module *module);
TN_HIDDEN struct program *programs_of(tn_module *module);
TN_HIDDEN extern const tn_program_api programs_api;

/* module.c: makes the tree of modules. The caller drops it. */
TN_HIDDEN tn_module *module_make(struct program *program);

/* control.c: finds a function of control flow; NULL, without an error, if there is none. */
TN_HIDDEN const struct control *control_find(enum rules_of of, const char *function);

#endif
