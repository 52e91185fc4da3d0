/* SPDX-License-Identifier: MIT
 *
 * The graph of a script as it is written to files of other frameworks: without writes in place, and
 * of operators that the writer knows. Sizes that may vary are expressions of symbols. */
#ifndef TN_FOREIGN_EXPORT_GRAPH_H
#define TN_FOREIGN_EXPORT_GRAPH_H

#include "arena.h"
#include "names.h"

enum { EXPORT_SYMBOLS = 16 };

/* A size that varies between calls. */
struct export_symbol {
    const char *name;
    int64_t number, least; /* in the graph, and the least that it is for */
};

/* times * a * b + plus; without symbols: `number`. */
struct export_size {
    int64_t number;      /* for the sizes that the graph has */
    int64_t times, plus; /* of symbols */
    int32_t a, b;        /* symbols; -1: none */
};

struct export_graph {
    const char *path; /* of the file that is written, for messages */
    tn_module *script;
    tn_graph *graph; /* owned */
    struct arena arena;
    struct export_symbol symbols[EXPORT_SYMBOLS];
    int32_t n_symbols;
    char *text;           /* of the graph; NULL without symbols */
    struct names types;   /* where the type of a value begins in `text` */
    struct names options; /* where the options of a call begin */
};

/* Whether a writer has a rule for a call of an operator. */
typedef bool export_known_fn(const tn_node *node);

/* graph.c: prepares the graph of a script in a mode. Fails with one message that has all operators
 * without a rule and a decomposition. */
TN_HIDDEN tn_status export_graph_open(struct export_graph *g, tn_module *script, bool training,
                                      const char *path, export_known_fn *known);
TN_HIDDEN void export_graph_close(struct export_graph *g);

/* plain.c: replaces the calls that write into values by calls that return new ones. */
TN_HIDDEN tn_status export_plain(struct export_graph *g);

/* sizes.c: reads the symbols of the graph and their places. */
TN_HIDDEN tn_status export_sizes_read(struct export_graph *g);
/* The sizes of a value; `out` has room for TN_MAX_DIMS. Returns their number, -1: unknown. */
TN_HIDDEN int32_t export_sizes_of(const struct export_graph *g, const tn_node *value,
                                  struct export_size *out);
/* Element `index` of an option that has integers; `number` is its value in the graph. */
TN_HIDDEN struct export_size export_sizes_option(const struct export_graph *g, const tn_node *node,
                                                 const char *option, int64_t index, int64_t number);
static inline struct export_size export_sizes_number(int64_t number)
{
    return (struct export_size){ number, 0, 0, -1, -1 };
}
/* Writes a size as a text: "2*N*H+1". */
TN_HIDDEN void export_sizes_text(const struct export_graph *g, const struct export_size *size,
                                 char *out, size_t bytes);

/* graph.c: the definition of the operator of a node, and an option by its name; NULL: none. */
TN_HIDDEN const tn_op_def *export_def(const tn_node *node);
TN_HIDDEN const void *export_option(const tn_node *node, const char *name);

#endif
