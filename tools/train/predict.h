/* SPDX-License-Identifier: MIT
 *
 * Internals of tenon predict: inputs, and the output of results. */
#ifndef TN_TOOLS_TRAIN_PREDICT_H
#define TN_TOOLS_TRAIN_PREDICT_H

#include "work.h"

/* ---- inputs (predict_inputs.c) --------------------------------------------------------------- */

/* Inputs that follow each other and that one dataset reads. */
typedef struct predict_group {
    tn_dataset *dataset;
    char *reader;    /* name of the dataset; NULL: tensors of a file */
    char **paths;    /* of the inputs; NULL for --data */
    int64_t count;   /* number of paths */
    size_t length;   /* of all paths */
    int64_t tensors; /* of a file of tensors, all of them inputs */
    int64_t inputs;  /* entries of a sample that are inputs of the model; 0: all that are tensors */
    bool has_names;  /* a string in the sample names it */
    const char *name; /* name for samples that have none of their own; an index follows it */
} predict_group;

typedef struct predict_inputs {
    predict_group *at;
    int64_t count;
    int64_t skipped;        /* inputs that --skip-damaged left out */
    FILE *standard;         /* a copy of standard input */
    char standard_path[64]; /* of that copy; "" without it */
} predict_inputs;

/* Opens files, folders and "-" (standard input). A path that a dataset with an option `paths`
 * accepts is read by this dataset, which adds the name to each sample. Other files are read as
 * tensors: each row along dimension 0 is a sample, or with `single` each file is one sample. With
 * --skip-damaged those that cannot be read are left out. */
tn_status predict_inputs_open(char **paths, int count, bool single, predict_inputs *out);
/* Opens the dataset `spec`; the first `inputs` entries of a sample are inputs of the model. */
tn_status predict_inputs_data(const char *spec, int64_t inputs, predict_inputs *out);
void predict_inputs_free(predict_inputs *inputs);

/* ---- output (predict_output.c) --------------------------------------------------------------- */

enum { PREDICT_TABLE, PREDICT_JSON, PREDICT_CSV, PREDICT_PNG, PREDICT_ARRAYS };

typedef struct predict_output {
    int format;
    const char *path; /* --output; NULL: standard output */
    int64_t top;      /* 0: not given */
    bool raw;         /* results as they are, not as probabilities */
    class_names names;
    bool learned; /* the names are those of the training: a model may have more outputs */
    const char *device;
    /* private */
    table table;
    tn_state *files;    /* names of the pictures that were written */
    tn_tensor **arrays; /* results that are collected */
    int64_t array_count, array_capacity;
    bool begun, redirected;
    int64_t results;
} predict_output;

/* Finds out what --format means; NULL: what the extension of --output says. */
tn_status predict_output_choose(const char *format, predict_output *to);
tn_status predict_output_begin(predict_output *to);
/* Writes the results of a batch: `result` is [N, ...], names has N names. */
tn_status predict_output_add(predict_output *to, tn_tensor *result, char *const *names);
tn_status predict_output_end(predict_output *to, int64_t skipped);
/* After a failure, ends JSON that has begun with the member "error"; returns whether it did. */
bool predict_output_close(predict_output *to);
/* Frees everything; with `failed`, removes the file that was begun. */
void predict_output_free(predict_output *to, bool failed);

/* ---- pictures (png.c) ------------------------------------------------------------------------ */

/* Writes a PNG file of 8 bits: pixels row by row, with 1 or 3 bytes each. On failure no file
 * remains. */
tn_status png_write(const char *path, unsigned char *pixels, int64_t width, int64_t height,
                    int channels);

#endif
