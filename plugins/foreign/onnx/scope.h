/* SPDX-License-Identifier: MIT
 *
 * The names of values while graphs are read. A scope has the names of a graph, or those of the body
 * of a local function; the values of a function belong to the graph that calls it. */
#ifndef TN_FOREIGN_ONNX_SCOPE_H
#define TN_FOREIGN_ONNX_SCOPE_H

#include "onnx/onnx.h"

/* A graph that is being read. */
struct frame {
    struct graph *graph;
    struct frame *around; /* NULL: the main graph */
    int64_t values_capacity, nodes_capacity;
    struct arg *taken; /* values of `around` that it uses */
    int64_t *inside;   /* the same values in this graph */
    int64_t n_taken;
    int16_t *places; /* a hash table: numbers in `taken` and 1, by the values around; NULL: none */
};

/* An attribute of a node. */
struct attribute {
    const char *name;
    struct wire message;
};

/* The attributes of a call of a function, to which its nodes can refer. */
struct attributes {
    struct attribute *at;
    int64_t count;
    struct wire defaults; /* the function, with the defaults of its attributes */
};

struct scope {
    struct onnx_file *file;
    struct scope *outer; /* of the graph around; NULL in a function */
    struct frame *frame;
    struct onnx_imports *imports;
    const struct attributes *attributes; /* of the function; NULL: none */
    int level;
    struct names names; /* numbers in `args` */
    struct arg *args;
    int64_t count, capacity;
};

/* scope.c: finds the value with this name. */
TN_HIDDEN tn_status scope_find(struct scope *s, const char *name, struct arg *out);
/* Adds a value that a node makes; -1 for an empty name. */
TN_HIDDEN tn_status scope_define(struct scope *s, const char *name, int64_t *out);
/* Gives an argument a name. */
TN_HIDDEN tn_status scope_bind(struct scope *s, const char *name, struct arg arg);
/* A constant: integers of the host, or a slot of the program. */
TN_HIDDEN tn_status scope_tensor(struct scope *s, const struct onnx_tensor *tensor, bool parameter,
                                 struct arg *out);
/* Makes a constant of floats, one or a list, a tensor of float32. */
TN_HIDDEN tn_status scope_floats(struct scope *s, const char *name, struct arg *arg);
/* Reads a graph of an attribute, and the list of values that it takes from outside. */
TN_HIDDEN tn_status scope_graph(struct scope *around, struct wire message, struct arg *graph_arg,
                                struct arg *taken);
/* Reads the nodes of a function with these arguments; its outputs get these names. */
TN_HIDDEN tn_status scope_function(struct scope *around, const struct onnx_function *function,
                                   const struct attributes *given, const struct arg *args,
                                   int64_t n_args, const struct wire *outputs, int64_t n_outputs);

/* nodes.c: reads a node, and adds it to the graph of the scope. */
TN_HIDDEN tn_status nodes_read(struct scope *s, struct wire message);

#endif
