/* SPDX-License-Identifier: MIT
 *
 * Counts right results, for each class and in total. The counting is done on the host, so that it
 * is the same for every device: of equal scores the class with the smaller number comes first, and
 * NaN counts as the largest score, as in PyTorch's argmax. */
#include "metrics.h"

#include <math.h>
#include <string.h>

bool metrics_applies(const tn_tensor *output, const tn_tensor *target)
{
    tn_ints scores = tn_tensor_shape(output), wanted = tn_tensor_shape(target);
    if ((TN_BIT(tn_tensor_dtype(target)) & TN_MASK_INT) == 0 ||
        (TN_BIT(tn_tensor_dtype(output)) & TN_MASK_FLOAT) == 0 || wanted.count < 1 ||
        scores.count != wanted.count + 1 || scores.at[0] != wanted.at[0] || scores.at[1] < 2)
        return false;
    for (int64_t i = 1; i < wanted.count; i++)
        if (scores.at[i + 1] != wanted.at[i])
            return false;
    return true;
}

static tn_status begin(metrics *m, int64_t classes)
{
    if (m->classes == classes)
        return TN_OK;
    if (m->classes > 0)
        return tn_fail(TN_ERR_VALUE,
                       "model: wrong number of classes, got %lld; expected %lld, as "
                       "in the batches before",
                       (long long)classes, (long long)m->classes);
    if (m->k > classes)
        return tn_fail(TN_ERR_VALUE,
                       "--topk: too large, got %lld; expected at most %lld, the "
                       "number of classes",
                       (long long)m->k, (long long)classes);
    if (m->wants_confusion && classes > METRICS_CONFUSION_MOST)
        return tn_fail(TN_ERR_VALUE, "--confusion: too many classes, got %lld; expected at most %d",
                       (long long)classes, METRICS_CONFUSION_MOST);
    m->seen = tn_calloc((size_t)classes, sizeof *m->seen);
    m->predicted = tn_calloc((size_t)classes, sizeof *m->predicted);
    m->hit = tn_calloc((size_t)classes, sizeof *m->hit);
    if (m->wants_confusion)
        m->confusion = tn_calloc((size_t)(classes * classes), sizeof *m->confusion);
    if (m->seen == NULL || m->predicted == NULL || m->hit == NULL ||
        (m->wants_confusion && m->confusion == NULL))
        return TN_ERR_MEMORY;
    m->classes = classes;
    return TN_OK;
}

static bool is_larger(double a, double b)
{
    return a > b || (isnan(a) && !isnan(b));
}

/* Counts one position, whose scores are `stride` numbers apart. */
static void count(metrics *m, const double *scores, int64_t stride, double target)
{
    int64_t best = 0, wanted, before = 0;
    if (!(target >= 0 && target < (double)m->classes)) {
        m->ignored++;
        return;
    }
    wanted = (int64_t)target;
    for (int64_t c = 1; c < m->classes; c++)
        if (is_larger(scores[c * stride], scores[best * stride]))
            best = c;
    for (int64_t c = 0; c < m->classes && m->k > 0; c++)
        before += is_larger(scores[c * stride], scores[wanted * stride]) ||
                  (c < wanted && !is_larger(scores[wanted * stride], scores[c * stride]));
    m->counted++;
    m->correct += best == wanted;
    m->in_top += m->k > 0 && before < m->k;
    m->seen[wanted]++;
    m->predicted[best]++;
    m->hit[wanted] += best == wanted;
    if (m->confusion != NULL)
        m->confusion[wanted * m->classes + best]++;
}

tn_status metrics_add(metrics *m, tn_tensor *output, tn_tensor *target)
{
    int64_t classes = tn_tensor_size(output, 1), samples = tn_tensor_size(output, 0),
            places = tn_tensor_numel(target);
    tn_status status = begin(m, classes);
    double *scores = status == TN_OK ? work_numbers(output) : NULL;
    double *targets = scores != NULL ? work_numbers(target) : NULL;

    if (targets == NULL) {
        tn_free(scores);
        return status != TN_OK ? status : tn_error_last_code();
    }
    int64_t inner = samples > 0 ? places / samples : 0;
    for (int64_t i = 0; i < places; i++)
        count(m, scores + i / inner * classes * inner + i % inner, inner, targets[i]);
    tn_free(scores);
    tn_free(targets);
    return TN_OK;
}

void metrics_free(metrics *m)
{
    tn_free(m->seen);
    tn_free(m->predicted);
    tn_free(m->hit);
    tn_free(m->confusion);
}

static double ratio(int64_t part, int64_t of)
{
    return of > 0 ? (double)part / (double)of : NAN;
}

double metrics_precision(const metrics *m, int64_t index)
{
    return ratio(m->hit[index], m->predicted[index]);
}

double metrics_recall(const metrics *m, int64_t index)
{
    return ratio(m->hit[index], m->seen[index]);
}

double metrics_f1(const metrics *m, int64_t index)
{
    return ratio(2 * m->hit[index], m->seen[index] + m->predicted[index]);
}
