/* SPDX-License-Identifier: MIT
 *
 * Reading PyTorch's `.pt2` files: the archive, its tensors, and the program in it, which is JSON.
 * docs/guides/from-pytorch.md describes what is read. */
#ifndef TN_FOREIGN_PT2_H
#define TN_FOREIGN_PT2_H

#include "names.h"
#include "program.h"

#include "zip.h"

#include <jansson.h>

/* The two layouts of the archive. */
enum pt2_layout {
    PT2_ARCHIVE, /* from PyTorch 2.7 on: NAME/models/model.json, a member for each storage */
    PT2_FLAT     /* to 2.6: serialized_exported_program.json, weights as a file of torch.save */
};

struct pt2_file {
    const tn_source *source;
    struct zip zip;
    enum pt2_layout layout;
    char *folder; /* "NAME/"; "" if there is none */
    char *model;  /* "model" of models/model.json */
    json_t *json; /* the program */
    char *text;   /* the program as it is in the file; NULL after somebody took it */
    size_t text_size;
    struct names slots;  /* of the program, by path */
    struct names parts;  /* by path */
    struct names inputs; /* of the program, by the name of their value */
    bool *unnamed;       /* of the values of the main graph: inputs without a spec so far */
    struct program *program;
};

/* pt2_archive.c: reads the directory and the program's JSON. Afterwards pt2_archive_close() must be
 * called, also after a failure. */
TN_HIDDEN bool pt2_archive_recognize(const tn_source *source);
TN_HIDDEN tn_status pt2_archive_open(const tn_source *source, struct pt2_file *file);
TN_HIDDEN void pt2_archive_close(struct pt2_file *file);
/* Reads a member as JSON. */
TN_HIDDEN json_t *pt2_archive_json(struct pt2_file *file, const struct zip_member *member);
/* Parses JSON; its memory counts as unpacked data of the file. NULL: it is malformed, and *error
 * says how, or it needs too much memory, which is a recorded failure, and error->text is empty. */
TN_HIDDEN json_t *pt2_archive_parse(struct pt2_file *file, const char *text, size_t length,
                                    json_error_t *error);
/* Finds a member below the folder of the archive, by printf formatting; NULL, without an error, if
 * there is none. */
TN_HIDDEN const struct zip_member *pt2_archive_find(struct pt2_file *file, const char *format, ...)
    TN_ATTR(format(printf, 2, 3));

/* Reads the extra files of the archive. */
TN_HIDDEN tn_status pt2_archive_extra(struct pt2_file *file, tn_state *files);

/* pt2_write.c: writes the program of a module as a file that torch.export.load opens, too. */
TN_HIDDEN tn_status pt2_write(const tn_format_def *self, const tn_sink *sink, tn_module *module);

/* pt2_weights.c: adds the slots of the program with their tensors. */
TN_HIDDEN tn_status pt2_weights_read(struct pt2_file *file);
/* The name of a dtype by its number in the file; NULL, without an error, for an unknown one. */
TN_HIDDEN const char *pt2_weights_dtype(json_int_t number);

/* pt2_program.c: reads the program: the signature, the modules and the graphs. */
TN_HIDDEN tn_status pt2_program_read(struct pt2_file *file);
/* Returns the number of the module with this path, and adds it, and those that hold it, if they are
 * new; -1 after a failure. */
TN_HIDDEN int64_t pt2_program_part(struct pt2_file *file, const char *path);

/* pt2_graph.c: reads a graph. `names` becomes the table of its values; the caller frees it. */
TN_HIDDEN tn_status pt2_graph_read(struct pt2_file *file, const json_t *json, struct graph *graph,
                                   struct names *names, int level);
/* Reads an argument of any kind, whose values are in the table. */
TN_HIDDEN tn_status pt2_graph_arg(struct pt2_file *file, const json_t *json,
                                  const struct names *names, int level, struct arg *out);
/* pt2_stack.c: reads the modules to which a call belongs. */
TN_HIDDEN tn_status pt2_stack_read(struct pt2_file *file, const char *text, struct node *node);

/* pt2_spec.c: names of the inputs and outputs, from the description of the call. */
TN_HIDDEN tn_status pt2_spec_read(struct pt2_file *file, const json_t *calls);

/* Fails with "WHAT: missing or wrong; expected EXPECTED". The reader of the program puts the path
 * in front of all messages without it. */
TN_HIDDEN tn_status pt2_wrong(const char *what, const char *expected);
/* A member of an object that must be there and have this type; NULL after a failure. */
TN_HIDDEN const json_t *pt2_member(const json_t *object, const char *name, json_type type);
/* Copies a text to the memory of the program. */
TN_HIDDEN const char *pt2_text(struct pt2_file *file, const char *text);
/* The only member of an object that is not null, as unions are written; *name becomes its key.
 * NULL, without an error, if there is none. */
TN_HIDDEN const json_t *pt2_union(const json_t *object, const char **name);

#endif
