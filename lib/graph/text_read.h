/* SPDX-License-Identifier: MIT
 *
 * What the files that read the text of a graph share. */
#ifndef TN_LIB_GRAPH_TEXT_READ_H
#define TN_LIB_GRAPH_TEXT_READ_H

#include "lib/graph/private.h"

/* The left side of a statement: a name and, if there is one, a type. */
typedef struct tn__left {
    const char *name;
    bool typed, is_module;
    tn_meta meta;
    tn__expr dims[TN_MAX_DIMS]; /* of the sizes that have a bit in `symbolic` */
    uint32_t symbolic;
} tn__left;

/* The decomposition of an operator that this process lacks. */
typedef struct tn__function {
    const char *key; /* borrowed from the state */
    tn_graph *graph;
    int64_t nodes; /* number of nodes, with those of blocks */
} tn__function;

/* What a text is read with: the revisions of operators, and decompositions. */
typedef struct tn__functions {
    const tn_state *operators; /* NULL: none */
    tn__function *at;
    int64_t count;
    int64_t nodes; /* that the decompositions have made */
} tn__functions;

/* The values of a call of a function with several results. */
typedef struct tn__results {
    const char *name;
    tn_node **at;
    int64_t count;
    struct tn__results *next;
} tn__results;

typedef struct tn__reader {
    const char *at, *line; /* the next byte, and the start of its line */
    int64_t number;        /* of the line */
    tn_graph *graph;
    tn_module *root;
    const tn_state *constants;
    tn__arena *arena; /* names and texts of the whole graph */
    tn_tensor *mark;  /* placeholder of the tensors in packs */
    bool code;
    bool folded; /* passes have used the values of slots */
    int depth;   /* of lists */
    int blocks;  /* nested blocks that are being read */
    /* The nodes of the arguments that were read last. */
    tn_node **nodes;
    int64_t n_nodes, nodes_capacity;
    tn__left *left;
    int64_t n_left, left_capacity;
    tn__functions *functions;   /* NULL: none */
    tn__results *results;       /* of calls whose results have no names yet */
    tn_node *made;              /* the first node that the statement has made by a function */
    bool fixed;                 /* a function that was used is for fixed sizes only */
    int64_t least[TN__SYMBOLS]; /* the least sizes that the functions are for */
} tn__reader;

/* The name of a module that prim::GetAttr has found, for the calls of it. */
struct tn__alias {
    const char *name, *path;
    struct tn__alias *next;
};

/* Where a pack is: the inputs of the graph, its outputs, the arguments of a call, its results. */
typedef enum tn__place {
    TN__PLACE_HEAD,
    TN__PLACE_ENDS,
    TN__PLACE_ARGUMENTS,
    TN__PLACE_RESULTS
} tn__place;

/* Fails with line, column and the text there. */
tn_status tn__graph_read_wrong(tn__reader *r, const char *expected);
/* Like tn__graph_read_wrong, with "at most `most` `what`" as what is expected. */
tn_status tn__graph_read_most(tn__reader *r, int most, const char *what);
/* Puts the line before the message of a failure, and returns its status. */
tn_status tn__graph_read_here(tn__reader *r);
void tn__graph_read_space(tn__reader *r);
/* Skips white space, and `word` if it follows; returns whether it did. */
bool tn__graph_read_take(tn__reader *r, const char *word);
/* Reads a name of letters, digits, `_` and the characters in `more`; NULL and sets the error if
 * there is none. */
const char *tn__graph_read_word(tn__reader *r, const char *more, const char *expected);
/* Returns whether `name =` or `"name" =` comes next, which names an argument. */
bool tn__graph_read_named(const tn__reader *r);
/* Reads up to one of the bytes of `ends` outside of quotes and brackets. */
const char *tn__graph_read_raw(tn__reader *r, const char *ends);
/* Returns whether a value of the graph comes next, and not a number, a text or the like. */
bool tn__graph_read_at_value(const tn__reader *r);
/* Reads the name of a value. tn__graph_read_reference also reads a slot or constant in its place,
 * such as self.weight; tn__graph_read_find finds the node of either. */
const char *tn__graph_read_name(tn__reader *r);
const char *tn__graph_read_reference(tn__reader *r);
/* Returns the name `of` that was just read. If it is `self` or CONSTANTS in the form of code and
 * ["path"] follows, reads that, too, and returns the name, a dot and the path. */
const char *tn__graph_read_path(tn__reader *r, const char *of);
tn_node *tn__graph_read_find(tn__reader *r, const char *name);
/* Returns the node of a slot or constant; without `name`, an existing one if there is one. */
tn_node *tn__graph_read_leaf(tn__reader *r, tn_node_kind kind, const char *path, const char *name);
/* Adds a node to `nodes`, those of the arguments. */
tn_status tn__graph_read_add(tn__reader *r, tn_node *node);
/* Reads ": float32[2, 3]", ": Tensor" or ": Linear", if there is a colon. */
tn_status tn__graph_read_type(tn__reader *r, tn__left *left);
/* Gives the sizes of output `output` of a node the expressions that its type has. */
tn_status tn__graph_read_symbols(tn_node *node, int32_t output, const tn__left *left);
/* Reads the values of a pack up to the closing parenthesis. *out is NULL if the pack has no form to
 * keep: tensors by position and, in a call, just one. */
tn_status tn__graph_read_pack(tn__reader *r, tn__place place, tn_pack **out);

/* Reads the arguments of an operator up to `)`. Options that are among them are appended to
 * `options`. *out is the node that is written (out=...), or NULL. */
tn_status tn__graph_read_arguments(tn__reader *r, tn__text *options, tn_node **out);
/* Reads the comment that ends a statement: path and type of the module that it comes from. */
tn_status tn__graph_read_comment(tn__reader *r, tn_node *node);
/* Reads a statement. */
tn_status tn__graph_read_statement(tn__reader *r, struct tn__alias **aliases);
/* Reads the results of a graph or block, after `return `. */
tn_status tn__graph_read_outputs(tn__reader *r);
/* Reads an IF or LOOP after its name: arguments and blocks (text_read_block.c). */
tn_status tn__graph_read_control(tn__reader *r, tn_node_kind kind, bool no_grad, tn_node **node);

/* ---- text_read.c ---- */
/* tn_graph_parse, with decompositions; NULL: none. */
tn_graph *tn__graph_read(const char *text, tn_module *root, const tn_state *constants,
                         tn__functions *functions);

/* ---- text_functions.c ---- */
/* Reads the decompositions of operators that this process lacks. tn__graph_functions_free() must be
 * called even after a failure. */
tn_status tn__graph_functions_read(tn__functions *all, const tn_state *operators);
void tn__graph_functions_free(tn__functions *all);
/* Returns the operator, in the revision that the text was written for. NULL and sets the error if
 * there is none. */
const tn_op *tn__graph_functions_op(const tn__functions *functions, const char *name);
/* Whether there are decompositions of the operator `name`; with `_` at its end, also of the
 * operator without the `_`, which is then called in place. */
bool tn__graph_functions_for(const tn__functions *functions, const char *name);
/* Adds the nodes of a decomposition for a call whose arguments have been read. *node is the value;
 * NULL if there are several. */
tn_status tn__graph_functions_call(tn__reader *r, const char *name, const char *options,
                                   tn_node *out, bool no_grad, tn_node **node);
/* Gives the results of such a call the names on the left side. *found: whether `name` is one. */
tn_status tn__graph_functions_unpack(tn__reader *r, const char *name, bool *found);
/* Renames the nodes that decompositions have made under a name of the left side. */
tn_status tn__graph_functions_make_way(tn__reader *r);

/* In messages, in place of the name of the pass, which the text does not have. */
#define TN__GRAPH_OF_TEXT "(of the text)"
/* Moves to the next line that is not empty. Returns false at the end. */
bool tn__graph_read_next_line(tn__reader *r);
/* Reads the first line (text_head.c). */
tn_status tn__graph_read_head(tn__reader *r);

#endif
