/* SPDX-License-Identifier: MIT
 *
 * metrics.csv: a column for each scalar, a row for each step. Numbers have as many digits as are
 * needed to read the same double again; a value that is missing is an empty field. */
#include "report_private.h"

#include <math.h>
#include <string.h>

void report_rows_put(report_text *t, const char *text)
{
    if (strpbrk(text, ",\"") == NULL) {
        report_text_put(t, text);
        return;
    }
    report_text_put(t, "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"')
            report_text_put(t, "\"");
        report_text_bytes(t, text, 1);
    }
    report_text_put(t, "\"");
}

static void put_header(report_text *t, const report_list *list)
{
    report_text_put(t, "step");
    for (int64_t i = 0; i < list->count; i++) {
        report_text_put(t, ",");
        report_rows_put(t, list->series[i].name);
    }
    report_text_put(t, "\n");
}

/* Writes the whole file again with the header of all series, and the current row. Its old rows get
 * empty fields for the columns that they lack. */
static tn_status widen(report *r, const report_text *current)
{
    report_text old = { .status = TN_OK }, text = { .status = TN_OK };
    char *path = tn_strdup(r->csv.path);
    int64_t more = r->list.count - r->columns, row = 0;
    tn_status status = path != NULL ? report_file_read(path, &old) : tn_error_last_code();

    put_header(&text, &r->list);
    const char *at = old.bytes != NULL ? old.bytes : "";
    const char *end = strchr(at, '\n');
    /* A row at row_offset is the current one, which is written again. */
    const char *stop = at + (r->row_offset < (int64_t)old.size ? (size_t)r->row_offset : old.size);
    if (end != NULL)
        for (at = end + 1; at < stop && (end = strchr(at, '\n')) != NULL; at = end + 1) {
            report_text_bytes(&text, at, (size_t)(end - at));
            for (int64_t i = 0; i < more; i++)
                report_text_put(&text, ",");
            report_text_put(&text, "\n");
        }
    row = (int64_t)text.size;
    report_text_bytes(&text, current->bytes, current->size);
    if (status == TN_OK)
        status = text.status;
    if (status == TN_OK)
        status = report_file_replace(path, text.bytes, text.size);
    if (status == TN_OK) {
        /* The old file is gone from the folder; only its descriptor is left. */
        report_file_close(&r->csv);
        status = report_file_open(&r->csv, path);
        path = NULL;
        r->columns = r->list.count;
        r->row_offset = row;
    }
    tn_free(path);
    report_text_drop(&old);
    report_text_drop(&text);
    return status;
}

tn_status report_rows_write(report *r)
{
    report_text row = { .status = TN_OK };
    tn_status status = r->csv.fd < 0 ? tn_fail(TN_ERR_RUNTIME, "report: metrics.csv is not open, "
                                                               "because an earlier write failed")
                                     : TN_OK;
    report_text_add(&row, "%lld", (long long)r->row_step);
    for (int64_t i = 0; i < r->list.count; i++) {
        report_text_put(&row, ",");
        if (r->list.series[i].in_row)
            report_text_add(&row, "%g", r->list.series[i].row);
    }
    report_text_put(&row, "\n");
    if (status == TN_OK)
        status = row.status;
    if (status == TN_OK)
        status = r->list.count > r->columns
                     ? widen(r, &row)
                     : report_file_end(&r->csv, r->row_offset, row.bytes, row.size);
    report_text_drop(&row);
    return status;
}

tn_status report_rows_epoch(report *r, int64_t epoch, int64_t step)
{
    if (r->epoch_count == r->epoch_room) {
        int64_t room = r->epoch_room > 0 ? 2 * r->epoch_room : 32;
        report_epochs *epochs = tn_realloc(r->epochs, (size_t)room * sizeof *epochs);
        if (epochs == NULL)
            return tn_error_last_code();
        r->epochs = epochs;
        r->epoch_room = room;
    }
    double *values = tn_malloc((size_t)(r->list.count + 1) * sizeof *values);
    if (values == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < r->list.count; i++)
        values[i] = r->list.series[i].in_row ? r->list.series[i].row : NAN;
    r->epochs[r->epoch_count++] = (report_epochs){ epoch, step, values, r->list.count };
    return TN_OK;
}

/* ---- resume ---------------------------------------------------------------------------------- */

bool report_rows_field(const char **at, report_text *out)
{
    const char *c = *at;
    if (c == NULL)
        return false;
    out->size = 0;
    report_text_put(out, "");
    if (*c == '"') {
        for (c++; *c != '\0' && (*c != '"' || c[1] == '"'); c++) {
            c += *c == '"';
            report_text_bytes(out, c, 1);
        }
        c += *c == '"';
    }
    size_t rest = strcspn(c, ",");
    report_text_bytes(out, c, rest);
    *at = c[rest] == ',' ? c + rest + 1 : NULL;
    return out->status == TN_OK;
}

static tn_status bad_line(const report *r, int64_t line, const char *what, const char *got)
{
    return tn_fail(TN_ERR_FORMAT,
                   "report: %q: line %lld: %s, got %.60q; expected a file that this program wrote",
                   r->csv.path, (long long)line, what, got);
}

static tn_status read_header(report *r, const char *line, report_text *field)
{
    if (!report_rows_field(&line, field) || strcmp(field->bytes, "step") != 0)
        return field->status != TN_OK
                   ? field->status
                   : bad_line(r, 1, "the first column is not step", field->bytes);
    while (report_rows_field(&line, field)) {
        if (report_series_find(&r->list, field->bytes) != NULL)
            return bad_line(r, 1, "a column is there twice", field->bytes);
        if (report_series_make(&r->list, field->bytes) == NULL)
            return tn_error_last_code();
    }
    return field->status;
}

/* Reads a row. Sets *past and does nothing else if its step is after the one to resume at. */
static tn_status read_row(report *r, const char *line, int64_t number, int64_t resume, bool *past,
                          report_text *field)
{
    int64_t step = 0, column = 0;
    if (!report_rows_field(&line, field))
        return field->status;
    if (!tn_read_int(field->bytes, &step) || step <= r->row_step)
        return bad_line(r, number, "it has no step after that of the line before", field->bytes);
    *past = step > resume;
    if (*past)
        return TN_OK;
    r->row_step = step;
    tn_status status = TN_OK;
    for (; status == TN_OK && report_rows_field(&line, field); column++) {
        report_series *s = &r->list.series[column];
        if (column >= r->list.count)
            return bad_line(r, number, "it has more fields than line 1", field->bytes);
        s->in_row = field->bytes[0] != '\0';
        if (s->in_row && !tn_read_float(field->bytes, &s->row))
            return bad_line(r, number, "a field is not a number", field->bytes);
        if (s->in_row)
            status = report_series_add(s, step, s->row);
    }
    if (status == TN_OK && field->status == TN_OK && column != r->list.count)
        return bad_line(r, number, "it has fewer fields than line 1", "");
    const report_series *epoch = report_series_find(&r->list, "epoch");
    if (status == TN_OK && epoch != NULL && epoch->in_row && fabs(epoch->row) < 1e15)
        status = report_rows_epoch(r, (int64_t)epoch->row, step);
    return status != TN_OK ? status : field->status;
}

/* Reads the rows up to the one to resume at; *kept becomes their size in bytes. */
static tn_status read_rows(report *r, report_text *text, int64_t resume, int64_t *kept)
{
    report_text field = { .status = TN_OK };
    tn_status status = TN_OK;
    int64_t number = 1;
    char *end;
    *kept = 0;
    /* A last line without its end was not written completely. */
    for (char *at = text->bytes; status == TN_OK && (end = strchr(at, '\n')) != NULL;
         at = end + 1, number++) {
        bool past = false;
        *end = '\0';
        if (number == 1)
            status = read_header(r, at, &field);
        else
            status = read_row(r, at, number, resume, &past, &field);
        *end = '\n';
        if (past)
            break;
        if (number > 1)
            r->row_offset = *kept;
        *kept = end + 1 - text->bytes;
    }
    report_text_drop(&field);
    return status;
}

tn_status report_rows_load(report *r, const char *folder)
{
    report_text text = { .status = TN_OK };
    int64_t kept = 0;
    tn_status status;

    r->row_step = -1;
    r->csv = (report_file){ .fd = -1, .path = report_file_path(folder, "metrics.csv") };
    if (r->csv.path == NULL)
        return tn_error_last_code();
    status = report_file_read(r->csv.path, &text);
    if (status == TN_OK && text.size == 0)
        status = tn_fail(TN_ERR_IO,
                         "report: %q: it is missing or empty; expected the folder of a run of "
                         "tenon train, or of a trial of tenon sweep",
                         r->csv.path);
    if (status == TN_OK && memchr(text.bytes, '\0', text.size) != NULL)
        status = bad_line(r, 1, "the file has a byte 0", text.bytes);
    if (status == TN_OK)
        status = read_rows(r, &text, INT64_MAX, &kept);
    if (status == TN_OK && kept == 0)
        status = bad_line(r, 1, "it has no end", text.bytes);
    report_text_drop(&text);
    return status;
}

tn_status report_rows_open(report *r, const report_setup *setup)
{
    report_text text = { .status = TN_OK };
    int64_t kept = 0;
    char *path = report_file_path(setup->folder, "metrics.csv");
    if (path == NULL)
        return tn_error_last_code();
    tn_status status = report_file_open(&r->csv, path);
    /* A run that ended before its first row left no more than this. */
    if (status == TN_OK && setup->how == REPORT_NEW && r->csv.size > (int64_t)strlen("step\n"))
        status = tn_fail(TN_ERR_REFUSED,
                         "report: folder: it has the files of a run, got %q; expected another "
                         "folder, or to resume or replace that run",
                         setup->folder);
    if (status == TN_OK && setup->how == REPORT_RESUME)
        status = report_file_read(r->csv.path, &text);
    if (status == TN_OK && setup->how == REPORT_RESUME && text.size > 0)
        status = read_rows(r, &text, setup->resume_step, &kept);
    /* The rows to keep are a beginning of the file, so that cutting it is enough. */
    if (status == TN_OK && kept < r->csv.size)
        status = report_file_cut(&r->csv, kept);
    if (status == TN_OK && kept == 0)
        status = report_file_append(&r->csv, "step\n", 5);
    r->columns = r->list.count;
    if (r->row_step < 0)
        r->row_offset = r->csv.size;
    report_text_drop(&text);
    return status;
}
