/* SPDX-License-Identifier: MIT
 *
 * What tenon eval finds, and how it is shown. */
#ifndef TN_TOOLS_TRAIN_EVAL_H
#define TN_TOOLS_TRAIN_EVAL_H

#include "metrics.h"
#include "progress.h"

/* A sample with a large loss. */
typedef struct bad_sample {
    int64_t index; /* in the dataset; -1: unknown */
    int64_t truth, result;
    double loss;
} bad_sample;

/* An evaluation. */
typedef struct evaluation {
    tn_module *module, *loss;
    char loss_text[512];
    tn_dtype dtype;
    metrics counts;
    bool classifies;
    int64_t samples, batches, skipped;
    double loss_sum, seconds, waiting;
    const char *device;
    class_names names;           /* of the model, else of the data */
    class_map map;               /* from the classes of the data */
    tn_dataset *files;           /* the names of the files of the samples; NULL: none */
    bad_sample *worst;           /* the worst first */
    int64_t n_worst, most_worst; /* their number, and how many are wanted */
    double *areas;               /* under the curve of each class */
    double mean_area;
} evaluation;

/* Print the results (eval_answer.c). */
void eval_answer_text(const evaluation *e);
void eval_answer_json(const evaluation *e);

#endif
