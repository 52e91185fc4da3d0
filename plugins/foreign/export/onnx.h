/* SPDX-License-Identifier: MIT
 *
 * Writing graphs as models of ONNX. A rule makes the nodes of ONNX for a call of an operator, with
 * the functions below. After a failure they do nothing, so that a rule needs no tests: the first
 * failure ends the export. */
#ifndef TN_FOREIGN_EXPORT_ONNX_H
#define TN_FOREIGN_EXPORT_ONNX_H

#include "export/export.h"
#include "export/graph.h"
#include "onnx/buffer.h"

enum {
    ONNX_OPSET = 17,      /* the version of operators that is written */
    ONNX_OPSET_MOST = 23, /* and the newest that a rule may need */
    ONNX_OUTPUTS = 16,
    ONNX_INDICES = 7 /* the type of int64 */
};

/* A value of the model. */
struct onnx_value {
    const char *name;
    bool made; /* by a node; not an input, a tensor or an output of the model */
};

struct onnx_node {
    const char *op, *path; /* of the module that calls it; NULL: not known */
    const struct onnx_value **in;
    int64_t n_in, capacity;
    struct onnx_value *out[ONNX_OUTPUTS];
    int64_t n_out;
    struct buffer attributes; /* fields of the node */
    struct onnx_node *next;
    struct onnx_node *outer; /* was begun before this one, and ends after it */
};

/* A tensor of the model. */
struct onnx_initial {
    const struct onnx_value *value;
    tn_tensor *tensor; /* owned; NULL: `bytes` */
    uint64_t type;
    int64_t dims[TN_MAX_DIMS];
    int64_t ndim;
    const void *bytes;
    size_t n_bytes;
    uint64_t offset; /* in the other file */
    struct onnx_initial *next;
};

struct onnx_model {
    struct export_graph graph;
    struct arena arena;
    struct onnx_node *nodes, *last;
    struct onnx_initial *initials, *last_initial;
    struct names taken;     /* names of values, and how often they were wanted */
    struct names values;    /* of the nodes of the graph, by their names */
    struct names constants; /* by their bytes */
    struct onnx_value **at;
    int64_t n_at, at_capacity;
    const struct onnx_value *symbols[EXPORT_SYMBOLS]; /* int64[1] */
    struct onnx_value **outputs;
    int64_t n_outputs;
    int64_t opset; /* that the nodes need */
    tn_status status;
};

/* The call that a rule writes. */
struct onnx_call {
    struct onnx_model *model;
    const tn_node *node;
    const tn_op_def *def;
    const void *options;
    tn_meta meta;                  /* of output 0 */
    tn_dtype compute;              /* that of the inputs after promotion */
    struct onnx_node *open, *done; /* the node that was begun, and that which ended last */
};

/* How an operator is written: as a text, "Mul(x, Sigmoid(x))", with the names of its inputs and
 * options (onnx_text.c), or by a function. `fits` says whether this call can be; else the operator
 * is decomposed. */
struct onnx_rule {
    const char *op, *text;
    void (*call)(struct onnx_call *call);
    bool (*fits)(const tn_node *node);
    int64_t opset; /* that the text needs; 0: ONNX_OPSET */
};

/* Lists; the last row has no operator. */
TN_HIDDEN extern const struct onnx_rule onnx_write_elements[];
TN_HIDDEN extern const struct onnx_rule onnx_write_shapes[];
TN_HIDDEN extern const struct onnx_rule onnx_write_index[];
TN_HIDDEN extern const struct onnx_rule onnx_write_reduce[];
TN_HIDDEN extern const struct onnx_rule onnx_write_layers[];
TN_HIDDEN extern const struct onnx_rule onnx_write_windows[];
TN_HIDDEN extern const struct onnx_rule onnx_write_products[];

/* onnx_text.c: writes a call by the text of a rule. */
TN_HIDDEN void onnx_text_write(struct onnx_call *call, const struct onnx_rule *rule);

/* ---- inputs and results ---- */

/* The value of an input of the call, cast to call->compute if inputs are promoted; NULL: absent. */
TN_HIDDEN const struct onnx_value *onnx_make_in(struct onnx_call *call, const char *name);
/* Input `index`, without a cast. */
TN_HIDDEN const struct onnx_value *onnx_make_input(struct onnx_call *call, int64_t index);
/* The node of an input; NULL: absent. */
TN_HIDDEN tn_node *onnx_make_source(const struct onnx_call *call, const char *name);
/* dtype and shape of an input, whose shape must be known. */
TN_HIDDEN tn_meta onnx_make_meta(struct onnx_call *call, const char *name);
/* Output `index` of the call is this value. */
TN_HIDDEN void onnx_make_give(struct onnx_call *call, int64_t index,
                              const struct onnx_value *value);
/* The value of a node of the graph, and storing it. */
TN_HIDDEN const struct onnx_value *onnx_make_of(struct onnx_model *m, const tn_node *node);
TN_HIDDEN void onnx_make_set(struct onnx_model *m, const tn_node *node,
                             const struct onnx_value *value);
TN_HIDDEN void onnx_make_fail(struct onnx_call *call, const char *what);

/* ---- nodes ---- */

/* Begins a node; then come its inputs and attributes, then onnx_make_end(), which gives output 0.
 */
TN_HIDDEN void onnx_make_begin(struct onnx_call *call, const char *op, int64_t n_out);
TN_HIDDEN void onnx_make_add(struct onnx_call *call, const struct onnx_value *value);
TN_HIDDEN void onnx_make_int(struct onnx_call *call, const char *name, int64_t number);
TN_HIDDEN void onnx_make_float(struct onnx_call *call, const char *name, double number);
TN_HIDDEN void onnx_make_word(struct onnx_call *call, const char *name, const char *text);
TN_HIDDEN void onnx_make_words(struct onnx_call *call, const char *name, const char *const *at,
                               int64_t count);
TN_HIDDEN void onnx_make_ints(struct onnx_call *call, const char *name, const int64_t *at,
                              int64_t count);
TN_HIDDEN const struct onnx_value *onnx_make_end(struct onnx_call *call);
/* Output `index` of the node that ended last. */
TN_HIDDEN const struct onnx_value *onnx_make_output(struct onnx_call *call, int64_t index);
/* A node with these inputs and no attributes. */
TN_HIDDEN const struct onnx_value *onnx_make_node(struct onnx_call *call, const char *op,
                                                  const struct onnx_value *a,
                                                  const struct onnx_value *b,
                                                  const struct onnx_value *c);
static inline const struct onnx_value *onnx_make_1(struct onnx_call *call, const char *op,
                                                   const struct onnx_value *a)
{
    return onnx_make_node(call, op, a, NULL, NULL);
}
static inline const struct onnx_value *onnx_make_2(struct onnx_call *call, const char *op,
                                                   const struct onnx_value *a,
                                                   const struct onnx_value *b)
{
    return onnx_make_node(call, op, a, b, NULL);
}
TN_HIDDEN const struct onnx_value *onnx_make_cast(struct onnx_call *call,
                                                  const struct onnx_value *value, tn_dtype dtype);
/* Equal parts along a dimension: gives the first; onnx_make_output() has the others. */
TN_HIDDEN const struct onnx_value *onnx_make_split(struct onnx_call *call,
                                                   const struct onnx_value *x, int64_t dim,
                                                   int64_t parts);
/* The model needs this version of operators. */
TN_HIDDEN void onnx_make_opset(struct onnx_call *call, int64_t opset);

/* ---- constants and sizes (onnx_constants.c) ---- */

TN_HIDDEN const struct onnx_value *onnx_make_constant(struct onnx_call *call, uint64_t type,
                                                      const int64_t *dims, int64_t ndim,
                                                      const void *bytes, size_t n_bytes);
/* A list of integers, and a single one without dimensions. */
TN_HIDDEN const struct onnx_value *onnx_make_list(struct onnx_call *call, const int64_t *at,
                                                  int64_t count);
TN_HIDDEN const struct onnx_value *onnx_make_index(struct onnx_call *call, int64_t number);
/* A number of a dtype, without dimensions. */
TN_HIDDEN const struct onnx_value *onnx_make_number(struct onnx_call *call, double number,
                                                    tn_dtype dtype);
TN_HIDDEN const struct onnx_value *onnx_make_scalar(struct onnx_call *call, tn_scalar scalar,
                                                    tn_dtype dtype);
/* A vector of float32, or of `dtype`, all equal. */
TN_HIDDEN const struct onnx_value *onnx_make_filled(struct onnx_call *call, double number,
                                                    tn_dtype dtype, int64_t count);
/* Sizes as a list of int64, computed from the inputs of the model where they vary. */
TN_HIDDEN const struct onnx_value *onnx_make_sizes(struct onnx_call *call,
                                                   const struct export_size *at, int64_t count);
/* The sizes of the result of the call; of one of its inputs. */
TN_HIDDEN const struct onnx_value *onnx_make_shape(struct onnx_call *call);
TN_HIDDEN int64_t onnx_make_shape_of(struct onnx_call *call, const char *input,
                                     struct export_size *out);
/* A tensor of float64 numbers, in row-major order, as one of `dtype`. */
TN_HIDDEN const struct onnx_value *onnx_make_table(struct onnx_call *call, const double *at,
                                                   const int64_t *dims, int64_t ndim,
                                                   tn_dtype dtype);

/* onnx_file.c: writes the model. */
TN_HIDDEN tn_status onnx_file_write(struct onnx_model *m, const tn_sink *sink);

#endif
