/* SPDX-License-Identifier: MIT
 *
 * How often a class was predicted for samples of a class. Only pairs that occurred take memory, so
 * that networks of many classes have a confusion matrix, too. */
#include "report_private.h"

#include <string.h>

static uint64_t hash(int64_t truth, int64_t predicted)
{
    uint64_t mixed = (uint64_t)truth * 0x9e3779b97f4a7c15u + (uint64_t)predicted;
    mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
    return mixed ^ mixed >> 32;
}

/* Returns the place of a pair, or the free one where it belongs. */
static report_count *place_of(const report_counts *all, int64_t truth, int64_t predicted)
{
    uint64_t mask = (uint64_t)all->size - 1, at = hash(truth, predicted) & mask;
    while (all->places[at].count != 0 &&
           (all->places[at].truth != truth || all->places[at].predicted != predicted))
        at = (at + 1) & mask;
    return &all->places[at];
}

static tn_status grow(report_counts *all)
{
    report_counts larger = { .size = all->size > 0 ? 2 * all->size : 256, .epoch = all->epoch };
    larger.places = tn_calloc((size_t)larger.size, sizeof *larger.places);
    if (larger.places == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < all->size; i++)
        if (all->places[i].count != 0)
            *place_of(&larger, all->places[i].truth, all->places[i].predicted) = all->places[i];
    larger.used = all->used;
    tn_free(all->places);
    *all = larger;
    return TN_OK;
}

tn_status report_counts_add(report_counts *all, int64_t truth, int64_t predicted, int64_t count)
{
    if (count == 0)
        return TN_OK;
    if (2 * all->used >= all->size) {
        tn_status status = grow(all);
        if (status != TN_OK)
            return status;
    }
    report_count *place = place_of(all, truth, predicted);
    if (place->count == 0) {
        all->used++;
        *place = (report_count){ truth, predicted, 0 };
    }
    place->count = count > INT64_MAX - place->count ? INT64_MAX : place->count + count;
    return TN_OK;
}

int64_t report_counts_get(const report_counts *all, int64_t truth, int64_t predicted)
{
    return all->size > 0 ? place_of(all, truth, predicted)->count : 0;
}

void report_counts_drop(report_counts *all)
{
    tn_free(all->places);
    *all = (report_counts){ .used = 0 };
}

static tn_status check_class(const report *r, const char *what, int64_t class)
{
    if (class < 0 || class >= r->class_count)
        return tn_fail(TN_ERR_INDEX, "report: %s: got class %lld; expected one of %lld classes",
                       what, (long long)class, (long long)r->class_count);
    return TN_OK;
}

tn_status report_predictions(report *r, const int64_t *truth, const int64_t *predicted,
                             int64_t count)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        status = check_class(r, "truth", truth[i]);
        if (status == TN_OK)
            status = check_class(r, "predicted", predicted[i]);
    }
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = report_counts_add(&r->counting, truth[i], predicted[i], 1);
    return status;
}

tn_status report_confusion(report *r, const int64_t *counts)
{
    tn_status status = TN_OK;
    int64_t n = r->class_count;
    for (int64_t i = 0; i < n * n; i++)
        if (counts[i] < 0)
            return tn_fail(TN_ERR_VALUE,
                           "report: counts: element [%lld, %lld]: out of range, got %lld; expected "
                           "0 or more",
                           (long long)(i / n), (long long)(i % n), (long long)counts[i]);
    for (int64_t i = 0; i < n * n && status == TN_OK; i++)
        status = report_counts_add(&r->counting, i / n, i % n, counts[i]);
    return status;
}
