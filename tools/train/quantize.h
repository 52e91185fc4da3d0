/* SPDX-License-Identifier: MIT
 *
 * What tenon quantize finds, and how it is shown. */
#ifndef TN_TOOLS_TRAIN_QUANTIZE_H
#define TN_TOOLS_TRAIN_QUANTIZE_H

#include <tenon/quantize.h>

#include "metrics.h"

typedef struct quantize_request {
    const char *model, *scheme, *fuse, *calibrate, *out;
    input_list inputs;
    int64_t batches; /* for calibration */
    double max_loss; /* in points of accuracy; NaN: any */
} quantize_request;

/* A model beside the float one that it was made from. */
typedef struct quantize_outcome {
    tn_quantize_report report;
    tn_module *before, *after;
    tn_dtype dtype;
    metrics right_before, right_after;
    class_names names; /* of the classes of the model */
    class_map map;     /* from the classes of the data */
    bool compared;     /* the two were called with data or --input */
    bool measured;     /* some results were floats: `powers` and `noise` are known */
    bool classifies;   /* the results are scores of classes */
    int64_t batches, skipped;
    double powers[3], noise; /* of the results: before, after, both; of the difference */
    double seconds_before, seconds_after;
    int64_t bytes_before, bytes_after;
} quantize_outcome;

/* Calls both models with data, and adds up the results (quantize_compare.c). */
tn_status quantize_compare(const quantize_request *wanted, quantize_outcome *out);
/* Calls a model with data until `most` batches are read. */
tn_status quantize_calibrate(const quantize_request *wanted, quantize_outcome *out);
/* Stores the inputs of the first batch, or those of --input, in `in` [INPUTS_MOST], which the
 * caller drops, and their number in *count; 0 without data. */
tn_status quantize_example(const quantize_request *wanted, quantize_outcome *out, tn_tensor **in,
                           int64_t *count);
/* Returns how many points of accuracy were lost; NaN if it is not known. */
double quantize_loss(const quantize_outcome *out);

/* Print the results (quantize_answer.c). `written`: the file was written. */
void quantize_answer_text(const quantize_request *wanted, const quantize_outcome *out,
                          bool written);
void quantize_answer_json(const quantize_request *wanted, const quantize_outcome *out,
                          bool written);

#endif
