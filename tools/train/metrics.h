/* SPDX-License-Identifier: MIT
 *
 * Counts how often a classification is right. */
#ifndef TN_TOOLS_TRAIN_METRICS_H
#define TN_TOOLS_TRAIN_METRICS_H

#include "work.h"

enum {
    METRICS_CONFUSION_MOST = 4096, /* classes of a confusion matrix */
    METRICS_SCORES_MOST = 1 << 22  /* scores that are kept for the area under the curve */
};

/* Counts over all samples. A target that is no class of the output, such as -100 of
 * CrossEntropyLoss, is ignored. */
typedef struct metrics {
    int64_t k; /* of the top-k accuracy; 0: not wanted */
    bool wants_confusion;
    bool wants_auc;
    int64_t classes; /* 0: nothing counted yet */
    int64_t counted, ignored, correct, in_top;
    int64_t *seen, *predicted, *hit; /* for each class: targets, results, right results */
    int64_t *confusion;              /* [target, result] */
    /* with wants_auc, unless there are too many: the probabilities [counted, classes] and the
     * targets of all positions */
    double *scores;
    int64_t *targets, room;
    bool scores_left_out;
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
/* The mean of metrics_f1() of all classes that targets have; of a class without results it is 0. */
double metrics_mean_f1(const metrics *m);
/* The area under the ROC curve of a class against all others, by its probability, the softmax of
 * the scores: the share of pairs of a sample of the class and another one that are in order; equal
 * ones count half. NaN if it was not wanted, the scores are too many, or there are no pairs. NaN is
 * the largest score. */
tn_status metrics_auc(const metrics *m, int64_t index, double *out);
/* The mean of those of all classes that have one. */
tn_status metrics_mean_auc(const metrics *m, double *out);

#endif
