/* SPDX-License-Identifier: MIT
 *
 * The C form of `tenon graph --format c`. */
#ifndef TN_TOOLS_GRAPH_C_H
#define TN_TOOLS_GRAPH_C_H

#include "tool.h"

/* Writes a C program's source of the module: a function that makes it, and the graph as its
 * forward. `model` is what the user called the module. Writes nothing if it fails. */
tn_status graph_c_write(const char *model, tn_module *module, const tn_graph *graph);

enum { NAME = 256 };

typedef struct writer {
    FILE *to; /* in memory */
    const tn_graph *graph;
    tn_module *module;
    const char *model, *type;
    char name[NAME];                            /* of the functions of the file */
    bool train, eval, fixed, folded, inference; /* words of the first line of the graph's text */
    bool pack;                                  /* several inputs or outputs */
    bool no_grad;                               /* while nodes are written: recording is off */
    bool failed;                                /* there was no memory for a line */
    const tn_node **blocks;                     /* nodes with blocks, in the order of the text */
    int64_t *most;                              /* the most steps of each; -1: no limit */
    int n_blocks;
} writer;

/* A piece of text in memory. */
typedef struct piece {
    FILE *to;
    char *text;
    size_t length;
} piece;

/* Returns the type of a module; for a part of a script, that of its original. */
const char *graph_c_type(tn_module *module);

/* graph_c_forward.c */

bool piece_begin(piece *p);
/* Writes a piece as a statement, in lines that break after commas, and frees it. */
tn_status piece_end(piece *p, FILE *to, int indent);
/* Records a failure. */
tn_status graph_c_out_of_memory(void);
/* Writes the forward. */
tn_status graph_c_forward(writer *w);

/* Returns the variable of a node: its name or, if that is reserved, `v`, one or more `_`, and the
 * name. */
const char *graph_c_variable(const writer *w, const tn_node *node, char out[NAME]);
/* Writes the inputs [first, end) of a node as an array NODE_SUFFIX. */
void graph_c_list(writer *w, const tn_node *node, const char *suffix, int64_t first, int64_t end);
/* Writes what a node computes. *inputs: the number of inputs of the graph so far. */
tn_status graph_c_node(writer *w, const tn_node *node, int64_t *inputs);

/* graph_c_blocks.c */

/* Writes the functions of all nodes with blocks, inner ones first. */
tn_status graph_c_blocks(writer *w);
/* Writes the call of tn_cond or tn_loop for a node. */
tn_status graph_c_control(writer *w, const tn_node *node);

/* graph_c_module.c */

/* Writes the tables of modules and tensors, and the function that makes the module of them. */
tn_status graph_c_module(writer *w);

/* graph_c_values.c */

/* Writes a text as a string literal. */
void graph_c_string(FILE *to, const char *text);
/* Writes the name of a dtype in C, such as TN_F32. */
void graph_c_dtype(FILE *to, tn_dtype dtype);
/* Writes the value of an option as an expression. */
void graph_c_option(FILE *to, const tn_option *option, const void *options);
/* Returns whether an option has its default value. */
bool graph_c_is_default(const tn_option *option, const void *options, const void *defaults);
/* Writes an array called `name` with the values of a tensor of the host. */
tn_status graph_c_data(FILE *to, const char *name, tn_tensor *tensor);

#endif
