/* SPDX-License-Identifier: MIT
 *
 * The values of scalars in memory. A series has at most REPORT_POINTS points: when it is full, it
 * keeps the least and the largest of every four. */
#include "report_private.h"

#include <math.h>
#include <string.h>

report_series *report_series_find(const report_list *list, const char *name)
{
    /* Callers record the same names in the same order again and again. */
    for (int64_t i = 0; i < list->count; i++) {
        report_series *s = &list->series[(list->next + i) % list->count];
        if (strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

report_series *report_series_make(report_list *list, const char *name)
{
    report_series *found = report_series_find(list, name);
    if (found != NULL) {
        list->next = found - list->series + 1;
        return found;
    }
    if (list->count == list->room) {
        int64_t room = list->room > 0 ? 2 * list->room : 16;
        report_series *series = tn_realloc(list->series, (size_t)room * sizeof *series);
        if (series == NULL)
            return NULL;
        list->series = series;
        list->room = room;
    }
    char *copy = tn_strdup(name);
    if (copy == NULL)
        return NULL;
    report_series *s = &list->series[list->count++];
    *s = (report_series){ .name = copy, .stride = 1 };
    return s;
}

/* Copies of each part of `from` the point with the least and the one with the largest value. The
 * parts have equal ranges of steps, or, with `by_count`, equally many points. */
static int64_t extremes(const report_point *from, int64_t count, report_point *to, int64_t parts,
                        bool by_count)
{
    int64_t kept = 0, at = 0;
    double first = (double)from[0].step, span = (double)from[count - 1].step - first;
    for (int64_t part = 0; part < parts && at < count; part++) {
        double limit = first + span * (double)(part + 1) / (double)parts;
        int64_t end = at, low = at, high = at;
        for (; end < count; end++) {
            if (by_count ? end >= (part + 1) * count / parts
                         : (double)from[end].step > limit && part < parts - 1)
                break;
            low = from[end].value < from[low].value ? end : low;
            high = from[end].value > from[high].value ? end : high;
        }
        if (end == at)
            continue;
        to[kept++] = from[low < high ? low : high];
        if (low != high)
            to[kept++] = from[low < high ? high : low];
        at = end;
    }
    return kept;
}

int64_t report_series_thin(const report_point *from, int64_t count, report_point *to, int64_t most)
{
    if (count <= most) {
        if (count > 0)
            memcpy(to, from, (size_t)count * sizeof *to);
        return count;
    }
    /* The first and the last point stay, whatever their values are. */
    to[0] = from[0];
    int64_t kept = 1 + extremes(from + 1, count - 2, to + 1, (most - 2) / 2, false);
    to[kept++] = from[count - 1];
    return kept;
}

static tn_status make_room(report_series *s)
{
    if (s->count < s->room)
        return TN_OK;
    if (s->room == REPORT_POINTS) {
        /* This can be done in place, because each part gets no more points than were read from it.
         * The first point stays. */
        s->count = 1 + extremes(s->points + 1, s->count - 1, s->points + 1, REPORT_POINTS / 4 - 1,
                                true);
        s->stride = s->stride == 1 ? 4 : 2 * s->stride;
        s->part = s->count;
        s->in_part = 0;
        return TN_OK;
    }
    int64_t room = s->room > 0 ? 2 * s->room : 64;
    report_point *points = tn_realloc(s->points, (size_t)room * sizeof *points);
    if (points == NULL)
        return tn_error_last_code();
    s->points = points;
    s->room = room;
    return TN_OK;
}

/* Appends a point. Once the series has been thinned out, only the extremes of every `stride` values
 * stay; of the values that are being collected also the last one. */
static void append(report_series *s, report_point point)
{
    if (s->in_part == s->stride || s->stride == 1) {
        if (s->count - s->part > 2)
            s->count = s->part + extremes(s->points + s->part, s->count - s->part,
                                          s->points + s->part, 1, true);
        s->part = s->count;
        s->in_part = 0;
    } else if (s->count - s->part > 3) {
        report_point last = s->points[s->count - 1];
        s->count = s->part +
                   extremes(s->points + s->part, s->count - s->part, s->points + s->part, 1, true);
        if (s->points[s->count - 1].step != last.step)
            s->points[s->count++] = last;
    }
    s->in_part++;
    s->points[s->count++] = point;
}

tn_status report_series_add(report_series *s, int64_t step, double value)
{
    tn_status status = make_room(s);
    if (status != TN_OK)
        return status;
    if (s->count > 0 && s->points[s->count - 1].step == step) {
        if (isfinite(value))
            s->points[s->count - 1].value = value;
        return TN_OK;
    }
    s->total++;
    if (!isfinite(value)) {
        if (s->bad++ == 0)
            s->bad_step = step;
        return TN_OK;
    }
    /* The average is over about the last thirtieth of the values. Halves: a difference of two
     * values can overflow. */
    int64_t window = ++s->smoothed / 30 > 8 ? s->smoothed / 30 : 8;
    double weight = 1.0 / (double)(s->smoothed < window ? s->smoothed : window);
    s->smooth += 2 * ((value / 2 - s->smooth / 2) * weight);
    s->moved += s->count > 0 ? fabs(value - s->points[s->count - 1].value) : 0;
    s->least = s->count == 0 || value < s->least ? value : s->least;
    s->most = s->count == 0 || value > s->most ? value : s->most;
    append(s, (report_point){ step, value, s->smooth });
    return TN_OK;
}

void report_series_drop(report_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        tn_free(list->series[i].name);
        tn_free(list->series[i].points);
    }
    tn_free(list->series);
    *list = (report_list){ .count = 0 };
}
