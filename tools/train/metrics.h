/* SPDX-License-Identifier: MIT
 *
 * Counts how often a classification is right. */
#ifndef TN_TOOLS_TRAIN_METRICS_H
#define TN_TOOLS_TRAIN_METRICS_H

#include "work.h"

enum { METRICS_CONFUSION_MOST = 4096 }; /* classes of a confusion matrix */

/* Counts over all samples. A target that is no class of the output, such as -100 of
 * CrossEntropyLoss, is ignored. */
typedef struct metrics {
    int64_t k; /* of the top-k accuracy; 0: not wanted */
    bool wants_confusion;
    int64_t classes; /* 0: nothing counted yet */
    int64_t counted, ignored, correct, in_top;
    int64_t *seen, *predicted, *hit; /* for each class: targets, results, right results */
    int64_t *confusion;              /* [target, result] */
} metrics;

/* Returns whether the output [N, C, ...] gives scores of classes for the target [N, ...]. */
bool metrics_applies(const tn_tensor *output, const tn_tensor *target);
/* Counts a batch. */
tn_status metrics_add(metrics *m, tn_tensor *output, tn_tensor *target);
void metrics_free(metrics *m);

/* Precision, recall and their harmonic mean for a class; NaN where nothing was counted. */
double metrics_precision(const metrics *m, int64_t index);
double metrics_recall(const metrics *m, int64_t index);
double metrics_f1(const metrics *m, int64_t index);

#endif
