/* SPDX-License-Identifier: MIT
 *
 * Counts right results, for each class and in total. The counting is done on the host, so that it
 * is the same for every device: of equal scores the class with the smaller number comes first, and
 * NaN counts as the largest score, as in PyTorch's argmax. */
#include "metrics.h"

#include <math.h>
#include <stdlib.h>
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

/* ---- probabilities --------------------------------------------------------------------------- */

static void forget_scores(metrics *m)
{
    tn_free(m->scores);
    tn_free(m->targets);
    m->scores = NULL;
    m->targets = NULL;
}

/* Makes room for `more` positions. */
static tn_status grow_scores(metrics *m, int64_t more)
{
    int64_t most = METRICS_SCORES_MOST / m->classes, room = m->room > 0 ? m->room : 1024;
    double *scores;
    int64_t *targets;

    if (!m->wants_auc || m->scores_left_out)
        return TN_OK;
    if (m->counted + more > most) {
        m->scores_left_out = true;
        forget_scores(m);
        return TN_OK;
    }
    while (room < m->counted + more)
        room *= 2;
    room = room < most ? room : most;
    if (room <= m->room)
        return TN_OK;
    scores = tn_realloc(m->scores, (size_t)(room * m->classes) * sizeof *scores);
    if (scores == NULL)
        return TN_ERR_MEMORY;
    m->scores = scores;
    targets = tn_realloc(m->targets, (size_t)room * sizeof *targets);
    if (targets == NULL)
        return TN_ERR_MEMORY;
    m->targets = targets;
    m->room = room;
    return TN_OK;
}

/* Keeps the softmax of the scores of a position. */
static void keep_scores(metrics *m, const double *scores, int64_t stride, int64_t target,
                        int64_t best)
{
    double *to, sum = 0;

    if (m->scores == NULL)
        return;
    to = m->scores + m->counted * m->classes;
    for (int64_t c = 0; c < m->classes; c++)
        sum += exp(scores[c * stride] - scores[best * stride]);
    for (int64_t c = 0; c < m->classes; c++)
        to[c] = exp(scores[c * stride] - scores[best * stride]) / sum;
    m->targets[m->counted] = target;
}

/* ---- counting -------------------------------------------------------------------------------- */

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
        if (work_is_larger(scores[c * stride], scores[best * stride]))
            best = c;
    for (int64_t c = 0; c < m->classes && m->k > 0; c++)
        before += work_is_larger(scores[c * stride], scores[wanted * stride]) ||
                  (c < wanted && !work_is_larger(scores[wanted * stride], scores[c * stride]));
    keep_scores(m, scores, stride, wanted, best);
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
    if (status == TN_OK)
        status = grow_scores(m, places);
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
    forget_scores(m);
}

/* ---- results --------------------------------------------------------------------------------- */

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

double metrics_mean_f1(const metrics *m)
{
    double sum = 0;
    int64_t classes = 0;

    for (int64_t i = 0; i < m->classes; i++)
        if (m->seen[i] > 0) {
            sum += metrics_f1(m, i);
            classes++;
        }
    return classes > 0 ? sum / (double)classes : NAN;
}

/* A position: its probability of a class, and whether that is its class. */
typedef struct ranked {
    double score;
    bool is_class;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *one = a, *two = b;

    return work_is_larger(one->score, two->score) - work_is_larger(two->score, one->score);
}

/* Counts the pairs in order, class by class: of equal scores half of the pairs are. */
static double area(const ranked *list, int64_t count)
{
    double pairs = 0, below = 0, of_class = 0;

    for (int64_t i = 0, end; i < count; i = end) {
        double here = 0, others = 0;

        for (end = i; end < count && by_score(&list[i], &list[end]) == 0; end++) {
            here += list[end].is_class;
            others += !list[end].is_class;
        }
        pairs += here * (below + others / 2);
        below += others;
        of_class += here;
    }
    return of_class > 0 && below > 0 ? pairs / (of_class * below) : NAN;
}

tn_status metrics_auc(const metrics *m, int64_t index, double *out)
{
    ranked *list;

    *out = NAN;
    if (m->scores == NULL || m->seen[index] == 0 || m->seen[index] == m->counted)
        return TN_OK;
    list = tn_malloc((size_t)m->counted * sizeof *list);
    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < m->counted; i++)
        list[i] = (ranked){ m->scores[i * m->classes + index], m->targets[i] == index };
    qsort(list, (size_t)m->counted, sizeof *list, by_score);
    *out = area(list, m->counted);
    tn_free(list);
    return TN_OK;
}

tn_status metrics_mean_auc(const metrics *m, double *out)
{
    double sum = 0, one;
    int64_t classes = 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < m->classes && status == TN_OK; i++) {
        status = metrics_auc(m, i, &one);
        if (status == TN_OK && !isnan(one)) {
            sum += one;
            classes++;
        }
    }
    *out = classes > 0 ? sum / (double)classes : NAN;
    return status;
}
