/* SPDX-License-Identifier: MIT
 *
 * Writing graphs as programs of PyTorch. A rule makes the nodes for a call of an operator with the
 * functions below, which do nothing after a failure. */
#ifndef TN_FOREIGN_EXPORT_ATEN_H
#define TN_FOREIGN_EXPORT_ATEN_H

#include "export/export.h"
#include "export/graph.h"

#include <jansson.h>

enum { ATEN_OUTPUTS = 8 };

/* A tensor of the state of the program, or a constant. */
struct aten_slot {
    const char *path, *name, *member; /* in the state, in the graph, in the archive */
    tn_tensor *tensor;                /* owned */
    bool parameter, persistent, constant;
    struct aten_slot *next;
};

struct aten_model {
    struct export_graph graph;
    struct arena arena;
    struct names taken;  /* names in the program */
    struct names values; /* names of the values of nodes, by their names: places in `at` */
    const char **at;
    int64_t n_at, at_capacity;
    struct aten_slot *slots, *last;
    const char *symbols[EXPORT_SYMBOLS]; /* values that have their sizes */
    json_t *nodes, *tensors, *sizes;     /* of the graph */
    json_t *inputs, *input_specs, *outputs, *output_specs, *names;
    tn_status status;
};

/* The call that a rule writes. */
struct aten_call {
    struct aten_model *model;
    const tn_node *node;
    const tn_op_def *def;
    const void *options;
    tn_meta meta; /* of output 0 */
    const char *target;
    json_t *arguments;
    const char *out[ATEN_OUTPUTS]; /* of the node that ended last */
};

/* "add.Tensor(self=a, other=b, *, alpha=alpha)": the function of ATen and what its arguments are:
 * inputs or options of the operator, or True, False, None and numbers. Arguments after the star are
 * named, and left out where an option is not given. */
struct aten_rule {
    const char *op, *text;
    void (*call)(struct aten_call *call);
    bool (*fits)(const tn_node *node);
};

TN_HIDDEN extern const struct aten_rule aten_write_rules[];
TN_HIDDEN extern const struct aten_rule aten_write_layers[];

/* aten_make.c */
TN_HIDDEN void aten_make_fail(struct aten_call *call, const char *what);
TN_HIDDEN void aten_make_begin(struct aten_call *call, const char *target);
/* Adds an argument and takes over `value`; NULL: there was no memory. */
TN_HIDDEN void aten_make_add(struct aten_call *call, const char *name, json_t *value, bool named);
/* The name of the value of an input; NULL: absent. And as an argument, None where it is absent. */
TN_HIDDEN const char *aten_make_in(struct aten_call *call, const char *input);
TN_HIDDEN json_t *aten_make_tensor(const char *name);
TN_HIDDEN json_t *aten_make_list(const tn_ints *list);
/* An option as an argument; NULL, without an error: it is not given. */
TN_HIDDEN json_t *aten_make_option(struct aten_call *call, const char *option);
/* Ends a node with results like those of the call: output 0 with these sizes, or NULL. */
TN_HIDDEN const char *aten_make_end(struct aten_call *call, int64_t n_out);
/* A node of a function with one tensor, and one list of integers or a number. */
TN_HIDDEN const char *aten_make_view(struct aten_call *call, const char *target, const char *x,
                                     const char *argument, int64_t number);
TN_HIDDEN void aten_make_give(struct aten_call *call, int64_t index, const char *value);
/* The value of a node, and storing it. */
TN_HIDDEN const char *aten_make_of(const struct aten_model *m, const tn_node *node);
TN_HIDDEN void aten_make_set(struct aten_model *m, const tn_node *node, const char *value);
/* A name that nothing has yet, of letters, digits and "_". */
TN_HIDDEN const char *aten_make_name(struct aten_model *m, const char *begin, const char *wanted);
/* Takes the names that a program must not use. */
TN_HIDDEN void aten_make_reserve(struct aten_model *m);
/* Describes a value, whose sizes and dtype are those of a node, or those of a tensor. */
TN_HIDDEN json_t *aten_make_meta(struct aten_model *m, const tn_node *node, const tn_tensor *tensor,
                                 bool grad);
/* An argument that is a size: a number, or a value that is computed. */
TN_HIDDEN json_t *aten_make_size(struct aten_call *call, const struct export_size *size);

/* aten_text.c: writes a call by the text of a rule. */
TN_HIDDEN void aten_text_write(struct aten_call *call, const struct aten_rule *rule);

/* aten_file.c: writes the archive. */
TN_HIDDEN tn_status aten_file_write(struct aten_model *m, const tn_sink *sink);

#endif
