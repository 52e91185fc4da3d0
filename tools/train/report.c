/* SPDX-License-Identifier: MIT
 *
 * The report of a training run: opens it, collects its values, ends it. */
#include "report_private.h"

#include "examples/chart.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { PICTURES = 8 }; /* of the worst samples in the event file */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- opening --------------------------------------------------------------------------------- */

static tn_status check_setup(const report_setup *setup)
{
    if (setup == NULL || setup->folder == NULL || setup->folder[0] == '\0')
        return tn_fail(TN_ERR_VALUE, "report: folder: it is missing; expected a path");
    if (setup->how < REPORT_NEW || setup->how > REPORT_RESUME)
        return tn_fail(TN_ERR_VALUE,
                       "report: how: unknown, got %d; expected REPORT_NEW, REPORT_REPLACE or "
                       "REPORT_RESUME",
                       setup->how);
    if (setup->class_count < 0 || setup->setting_count < 0 || setup->environment_count < 0)
        return tn_fail(TN_ERR_VALUE, "report: a count is negative; expected 0 or more");
    return TN_OK;
}

static tn_status copy_texts(report *r, const report_setup *setup)
{
    const char *name = strrchr(setup->folder, '/');
    name = name != NULL && name[1] != '\0' ? name + 1 : setup->folder;
    r->folder = tn_strdup(setup->folder);
    r->title = tn_strdup(setup->title != NULL ? setup->title : name);
    r->page_path = report_file_path(setup->folder, "report.html");
    if (r->folder == NULL || r->title == NULL || r->page_path == NULL)
        return tn_error_last_code();
    if (setup->class_count > 0) {
        r->classes = tn_calloc((size_t)setup->class_count, sizeof *r->classes);
        if (r->classes == NULL)
            return tn_error_last_code();
        r->class_count = setup->class_count;
    }
    for (int64_t i = 0; i < setup->class_count; i++) {
        char number[24];
        tn_snprint(number, sizeof number, "%lld", (long long)i);
        const char *class = setup->classes != NULL ? setup->classes[i] : NULL;
        r->classes[i] = tn_strdup(class != NULL ? class : number);
        if (r->classes[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status drop(report *r)
{
    tn_status status = report_file_close(&r->csv), more = report_file_close(&r->events);
    for (int64_t i = 0; i < r->class_count; i++)
        tn_free(r->classes[i]);
    for (int64_t i = 0; i < r->epoch_count; i++)
        tn_free(r->epochs[i].values);
    tn_free(r->classes);
    tn_free(r->epochs);
    report_text_drop(&r->settings);
    report_text_drop(&r->environment);
    report_text_drop(&r->values);
    report_series_drop(&r->list);
    report_histogram_drop(&r->spreads);
    report_counts_drop(&r->counting);
    report_counts_drop(&r->counts);
    report_samples_drop(&r->shooting);
    report_samples_drop(&r->shots);
    tn_free(r->folder);
    tn_free(r->title);
    tn_free(r->page_path);
    tn_free(r);
    return status != TN_OK ? status : more;
}

tn_status report_open(report **out, const report_setup *setup)
{
    *out = NULL;
    tn_status status = check_setup(setup);
    if (status != TN_OK)
        return status;
    report *r = tn_calloc(1, sizeof *r);
    if (r == NULL)
        return tn_error_last_code();
    r->csv.fd = r->events.fd = -1;
    r->row_step = -1;
    r->planned = setup->epochs;
    r->began = r->epoch_began = now();
    status = copy_texts(r, setup);
    if (status == TN_OK)
        status = report_file_folder(setup->folder);
    if (status == TN_OK)
        status = report_rows_open(r, setup);
    if (status == TN_OK)
        status = report_events_open(r, setup);
    if (status == TN_OK)
        status = report_page_rows(r, setup);
    if (status != TN_OK) {
        drop(r);
        return status;
    }
    *out = r;
    return TN_OK;
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* Writes the values of the current row that are not in the files yet. */
static tn_status write_row(report *r)
{
    tn_status status = TN_OK, written = TN_OK;
    for (int64_t i = 0; i < r->list.count && status == TN_OK; i++) {
        report_series *s = &r->list.series[i];
        if (s->fresh)
            status = report_event_scalar(r, s->name, s->row);
        s->fresh = false;
    }
    if (r->row_dirty)
        written = report_rows_write(r);
    r->row_dirty = false;
    status = status != TN_OK ? status : written;
    written = report_events_write(r);
    return status != TN_OK ? status : written;
}

static tn_status begin_row(report *r, int64_t step)
{
    tn_status status = write_row(r);
    for (int64_t i = 0; i < r->list.count; i++)
        r->list.series[i].in_row = r->list.series[i].fresh = false;
    r->row_step = step;
    r->row_offset = r->csv.size;
    return status;
}

tn_status report_check_name(const char *name)
{
    if (name == NULL || name[0] == '\0' || strlen(name) >= REPORT_NAME)
        return tn_fail(TN_ERR_VALUE,
                       "report: name: wrong length, got %.40q; expected 1 to %d bytes", name,
                       REPORT_NAME - 1);
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return tn_fail(TN_ERR_VALUE,
                           "report: name: it has a control character, got %q; "
                           "expected text",
                           name);
    return TN_OK;
}

tn_status report_at(report *r, int64_t step)
{
    if (step < 0 || step < r->row_step)
        return tn_fail(TN_ERR_VALUE, "report: step: it goes back, got %lld; expected %lld or more",
                       (long long)step, (long long)(r->row_step < 0 ? 0 : r->row_step));
    return step > r->row_step ? begin_row(r, step) : TN_OK;
}

tn_status report_scalar(report *r, const char *name, int64_t step, double value)
{
    tn_status status = report_check_name(name);
    if (status == TN_OK && strcmp(name, "step") == 0)
        status = tn_fail(TN_ERR_VALUE, "report: name: \"step\" is a column of its own; expected "
                                       "another name");
    if (status == TN_OK)
        status = report_at(r, step);
    if (r->row_step != step)
        return status;
    /* If the row before could not be written, this value is recorded all the same. */
    report_series *s = report_series_make(&r->list, name);
    tn_status added = s != NULL ? report_series_add(s, step, value) : tn_error_last_code();
    if (added == TN_OK) {
        s->row = value;
        s->in_row = s->fresh = true;
        r->row_dirty = true;
    }
    return status != TN_OK ? status : added;
}

/* Makes the predictions and samples since the last epoch those that the page shows. */
static void take_epoch(report *r, int64_t epoch)
{
    if (r->counting.used > 0) {
        report_counts_drop(&r->counts);
        r->counts = r->counting;
        r->counts.epoch = epoch;
        r->counting = (report_counts){ .used = 0 };
    }
    if (r->shooting.count > 0) {
        report_samples_drop(&r->shots);
        r->shots = r->shooting;
        r->shots.epoch = epoch;
        r->shooting = (report_shots){ .count = 0 };
    }
}

/* Adds the worst samples to the events: worst/1 is the worst. */
static tn_status add_pictures(report *r)
{
    tn_status status = TN_OK;
    for (int i = 0; i < r->shots.count && i < PICTURES && status == TN_OK; i++) {
        const report_picture *picture = &r->shots.shots[i].picture;
        report_text png = { .status = TN_OK };
        char tag[32];
        if (picture->pixels == NULL || r->shots.epoch != r->epochs[r->epoch_count - 1].epoch)
            continue;
        tn_snprint(tag, sizeof tag, "worst/%d", i + 1);
        status = report_png(&png, picture);
        if (status == TN_OK)
            status = report_event_picture(r, tag, picture, &png);
        report_text_drop(&png);
    }
    return status;
}

tn_status report_epoch(report *r, int64_t epoch, int64_t step, double seconds)
{
    double time = now();
    if (epoch < 0)
        return tn_fail(TN_ERR_VALUE, "report: epoch: out of range, got %lld; expected 0 or more",
                       (long long)epoch);
    tn_status status = report_scalar(r, "epoch", step, (double)epoch);
    if (status == TN_OK)
        status = report_scalar(r, "epoch_seconds", step,
                               seconds >= 0 ? seconds : time - r->epoch_began);
    r->epoch_began = time;
    if (status == TN_OK)
        status = report_rows_epoch(r, epoch, step);
    take_epoch(r, epoch);
    if (status == TN_OK)
        status = add_pictures(r);
    tn_status written = write_row(r);
    status = status != TN_OK ? status : written;
    if (status == TN_OK)
        r->epoch_step = step;
    /* Writing the page takes at most about a twentieth of the time. */
    if (now() - r->page_ended < 20 * r->page_took)
        return status;
    time = now();
    written = report_page(r);
    r->page_ended = now();
    r->page_took = r->page_ended - time;
    return status != TN_OK ? status : written;
}

int64_t report_epoch_step(const report *r)
{
    return r->epoch_step;
}

/* ---- ending ---------------------------------------------------------------------------------- */

tn_status report_flush(report *r)
{
    tn_status status = write_row(r);
    if (status == TN_OK)
        status = report_file_sync(&r->csv);
    return status != TN_OK ? status : report_file_sync(&r->events);
}

tn_status report_close(report *r, const char *outcome)
{
    if (r == NULL)
        return TN_OK;
    r->outcome = outcome != NULL ? outcome : "finished";
    tn_status status = report_flush(r), page = report_page(r), closed = drop(r);
    return status != TN_OK ? status : page != TN_OK ? page : closed;
}

int64_t report_values(const report *r, const char *name, int64_t *steps, double *values,
                      int64_t capacity)
{
    const report_series *s = report_series_find(&r->list, name);
    for (int64_t i = 0; s != NULL && i < s->count && i < capacity; i++) {
        steps[i] = s->points[i].step;
        values[i] = s->points[i].value;
    }
    return s != NULL ? s->count : 0;
}

/* Returns the average of a series over the steps after `from` up to `to`; NaN if it has none. */
static double average(const report_series *s, int64_t from, int64_t to)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (s->points[i].step > from && s->points[i].step <= to) {
            sum += s->points[i].value;
            count++;
        }
    return count > 0 ? sum / (double)count : NAN;
}

tn_status report_chart(const report *r, const char *name, int room)
{
    const report_series *s = report_series_find(&r->list, name);
    bool roomy = room < 0 || room >= CHART_HEIGHT + CHART_FRAME;
    int height = roomy                                      ? CHART_HEIGHT
                 : room - CHART_FRAME_SMALL >= CHART_HEIGHT ? CHART_HEIGHT - 1
                                                            : room - CHART_FRAME_SMALL;
    if (s == NULL || s->count == 0 || r->epoch_count < 2 || height < CHART_LEAST)
        return TN_OK;
    int64_t count = r->epoch_count < INT32_MAX / 64 ? r->epoch_count : INT32_MAX / 64;
    double *loss = tn_malloc((size_t)count * sizeof *loss);
    if (loss == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < count; i++)
        loss[i] = average(s, i > 0 ? r->epochs[i - 1].step : -1, r->epochs[i].step);
    struct curve curve = { .epochs = (int)count, .loss = loss };
    size_t size = 0;
    for (; r->title[size] != '\0' && size < sizeof curve.name - 1; size++) {
        unsigned char c = (unsigned char)r->title[size];
        curve.name[size] = (char)(c < 0x20 || c > 0x7e ? '?' : c);
    }
    chart_text(&curve, height);
    tn_free(loss);
    return TN_OK;
}
