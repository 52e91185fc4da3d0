/* SPDX-License-Identifier: MIT
 *
 * Reading ONNX files: messages become a program (program.h), initializers its tensors, local
 * functions the nodes of their bodies. docs/guides/from-onnx.md describes what is read. */
#ifndef TN_FOREIGN_ONNX_ONNX_H
#define TN_FOREIGN_ONNX_ONNX_H

#include "names.h"
#include "program.h"

#include "onnx/wire.h"

enum {
    ONNX_FUNCTIONS = 64,   /* calls of local functions in each other, at most */
    ONNX_HOST_MOST = 1024, /* elements of a constant that is kept as integers of the host */
    ONNX_INT64 = 7,
    ONNX_STRING = 8
};

/* A tensor in the file. */
struct onnx_tensor {
    const char *name;
    int64_t dims[TN_MAX_DIMS];
    int64_t ndim, numel;
    int64_t type; /* of ONNX */
    tn_dtype dtype;
    size_t size;              /* bytes of an element */
    struct wire message, raw; /* raw.at NULL: typed fields of the message */
    const char *location;     /* of data in another file; NULL: none */
    uint64_t offset, length;  /* there; length UINT64_MAX: to its end */
};

/* A function of the model. */
struct onnx_function {
    const char *name; /* with its domain, "com.acme.Swirl" */
    struct wire message;
    int64_t overload; /* 1: has one, which is not supported */
};

/* The version of an operator set that the model or a function imports. */
struct onnx_import {
    const char *domain; /* "" of the default one */
    int64_t version;
};

struct onnx_imports {
    struct onnx_import at[64];
    int64_t count;
};

struct onnx_file {
    const tn_source *source;
    struct program *program;
    tn_tensor *bytes; /* of the file, on the host; owned */
    const unsigned char *start;
    struct onnx_imports imports;
    struct onnx_function *functions;
    int64_t n_functions, functions_capacity;
    struct names function_names; /* numbers in `functions` */
    struct names slots;          /* of the program, by path */
    struct names parts;          /* by path */
    struct names initializers;   /* slots that are initializers of the main graph, by their names */
    int64_t slots_capacity, parts_capacity;
    int64_t clashes;   /* numbers that names of slots had at their ends, and other slots as well */
    int64_t n_nodes;   /* of all graphs, so far */
    uint64_t unpacked; /* bytes of the nodes of functions, which can be called often */
};

/* model.c: reads the model; its graph becomes the program's. */
TN_HIDDEN tn_status onnx_model_read(struct onnx_file *file);
/* Copies a text of the file; NULL: no memory, or it has a NUL or is too long. */
TN_HIDDEN const char *onnx_model_text(struct onnx_file *file, struct wire bytes);

/* Reads an import of an operator set. */
TN_HIDDEN tn_status onnx_model_import(struct onnx_file *file, struct wire message,
                                      struct onnx_imports *imports);

/* scope.c: reads the main graph of the model. */
TN_HIDDEN tn_status onnx_graph_read_main(struct onnx_file *file, struct wire message);

/* tensor.c: reads the description of a tensor; its values as a tensor on the default device, or as
 * integers of the host: false, without an error, if it has not the kind for this. */
TN_HIDDEN tn_status onnx_tensor_read(struct onnx_file *file, struct wire message,
                                     struct onnx_tensor *out);
TN_HIDDEN tn_tensor *onnx_tensor_load(struct onnx_file *file, const struct onnx_tensor *tensor);
TN_HIDDEN bool onnx_tensor_is_host(const struct onnx_tensor *tensor);
TN_HIDDEN tn_status onnx_tensor_host(struct onnx_file *file, const struct onnx_tensor *tensor,
                                     tn_value *out);
/* The dtype for a number of ONNX; fails for those that Tenon does not have. */
TN_HIDDEN tn_status onnx_tensor_dtype(int64_t type, tn_dtype *out);
/* The number of ONNX for a dtype; 0: none. */
TN_HIDDEN uint64_t onnx_tensor_type(tn_dtype dtype);

/* write.c: makes the text of the program, and reads the texts of the model. */
TN_HIDDEN tn_status onnx_write_text(struct onnx_file *file);
/* Writes the program of a module with the tensors that it has now. */
TN_HIDDEN tn_status onnx_write(const tn_format_def *self, const tn_sink *sink, tn_module *module);

/* tree.c: the module with this path, made with all above it; -1 after a failure. */
TN_HIDDEN int64_t onnx_tree_part(struct onnx_file *file, const char *path);
/* Adds a tensor of the tree under a path made of `name`; returns its number, -1 after a failure. */
TN_HIDDEN int64_t onnx_tree_slot(struct onnx_file *file, const char *name, tn_tensor *tensor,
                                 bool parameter, uint32_t flags);
/* Reads the modules to which a node belongs, from its name and its metadata; either can be
 * missing. */
TN_HIDDEN tn_status onnx_tree_stack(struct onnx_file *file, const char *scopes, const char *classes,
                                    struct node *node);
/* Gives parameters with names that exporters made up those of the modules that use them, the
 * modules types, and running statistics the flags of buffers. */
TN_HIDDEN tn_status onnx_tree_finish(struct onnx_file *file);

#endif
