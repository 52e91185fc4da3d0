/* SPDX-License-Identifier: MIT
 *
 * The rows of tables without labels, from one file or several. */
#include "csv.h"

#include <string.h>
#include <sys/stat.h>

/* ---- several files as one dataset ------------------------------------------------------------ */

/* One file. */
struct table {
    tn_dataset *rows;
    char *path;
    int64_t end; /* number of rows up to and with this file */
};

struct csv_rows {
    struct table *at;
    uint32_t count;
};

void csv_rows_close(void *handle)
{
    struct csv_rows *tables = handle;

    if (tables == NULL)
        return;
    for (uint32_t i = 0; i < tables->count; i++) {
        tn_dataset_drop(tables->at[i].rows);
        tn_free(tables->at[i].path);
    }
    tn_free(tables->at);
    tn_free(tables);
}

/* Fails with TN_ERR_FORMAT if the path is a folder, or if the first bytes are not those of a text,
 * so that a large file of another kind is not read. */
static tn_status check_file(const char *path)
{
    char start[256];
    struct stat found;
    struct data_file *file;
    int64_t size;

    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return tn_fail(TN_ERR_FORMAT, "%s: a folder; expected a file with a table", path);
    file = data_file_open(path);
    size = file != NULL ? data_file_some(file, start, sizeof start) : -1;
    data_file_close(file);
    if (size >= 2 && csv_is_wide(start))
        return csv_wide(path);
    for (int64_t i = 0; i < size; i++)
        if ((unsigned char)start[i] < '\t')
            return tn_fail(TN_ERR_FORMAT,
                           "%s: not a text file: byte %lld is %d; expected text in UTF-8", path,
                           (long long)i, (unsigned char)start[i]);
    return size >= 0 ? TN_OK : tn_error_last_code();
}

static tn_status add_table(struct csv_rows *tables, const tn_value *path, const void *options,
                           tn_dataset *(*make)(const void *options, const char *path))
{
    struct table *t = &tables->at[tables->count];
    int64_t before = tables->count > 0 ? t[-1].end : 0;
    tn_status status;

    if (path->kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_TYPE,
                       "paths: wrong type, got %s; expected a string, or a list of strings",
                       tn_value_kind_name(path->kind));
    status = check_file(path->as.s);
    if (status != TN_OK)
        return status;
    t->path = tn_strdup(path->as.s);
    if (t->path == NULL)
        return TN_ERR_MEMORY;
    tables->count++;
    t->rows = make(options, path->as.s);
    if (t->rows == NULL)
        return tn_error_last_code();
    t->end = before + tn_dataset_count(t->rows);
    return TN_OK;
}

tn_status csv_rows_open(tn_dataset_open *args, const tn_value *paths,
                        tn_dataset *(*make)(const void *options, const char *path))
{
    bool many = paths->kind == TN_VALUE_LIST || paths->kind == TN_VALUE_TUPLE;
    struct csv_rows *tables = tn_calloc(1, sizeof *tables);
    tn_status status = tables != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK) {
        tables->at = tn_calloc(many ? (size_t)paths->count + 1 : 1, sizeof *tables->at);
        status = tables->at != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    if (status == TN_OK && !many)
        status = add_table(tables, paths, args->options, make);
    for (uint32_t i = 0; many && i < paths->count && status == TN_OK; i++)
        status = add_table(tables, &paths->as.list[i], args->options, make);
    if (status != TN_OK) {
        csv_rows_close(tables);
        return status;
    }
    args->handle = tables;
    args->count = tables->count > 0 ? tables->at[tables->count - 1].end : 0;
    return TN_OK;
}

tn_status csv_rows_get(const tn_sample_args *args)
{
    const struct csv_rows *tables = args->handle;
    const struct table *t = tables->at;
    int64_t row = args->index;
    char name[4096];
    tn_status status;

    while (args->index >= t->end)
        t++;
    row -= t > tables->at ? t[-1].end : 0;
    status = tn_dataset_get(t->rows, row, args->seed, args->epoch, args->out);
    if (status != TN_OK)
        return status;
    tn_snprint(name, sizeof name, "%s[%lld]", t->path, (long long)row);
    return tn_pack_add(args->out, NULL, tn_value_string(name));
}

/* ---- CSVRows --------------------------------------------------------------------------------- */

struct options {
    tn_value paths;
    tn_value header;
    const char *separator;
    double missing;
    tn_ints shape;
    double scale;
};
#define T struct options
static const tn_option options[] = {
    TN_OPTION_ROW(T, paths, NULL,
                  "a file with numbers as text, plain or compressed by gzip, or a list of files",
                  TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
#include "csv_number_options_template.h"
    TN_OPTION_END
};
#undef T

/* Writes ", shape=[2, 3]" if there is a shape. Returns TN_ERR_VALUE if it is too long. */
static tn_status shape_text(tn_ints shape, char *out, size_t size)
{
    int64_t used = 0;

    out[0] = '\0';
    if (shape.count < 0)
        return TN_OK;
    if (shape.count > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE, "shape: too long, got %lld sizes; expected at most %d",
                       (long long)shape.count, TN_MAX_DIMS);
    used += tn_snprint(out, size, ", shape=[");
    for (int64_t i = 0; i < shape.count; i++)
        used += tn_snprint(out + used, size - (size_t)used, "%s%lld", i > 0 ? ", " : "",
                           (long long)shape.at[i]);
    tn_snprint(out + used, size - (size_t)used, "]");
    return TN_OK;
}

static tn_dataset *make_csv(const void *given, const char *path)
{
    const struct options *o = given;
    char shape[TN_MAX_DIMS * 22 + 16], missing[48] = "None";

    if (csv_check_header(&o->header) != TN_OK || shape_text(o->shape, shape, sizeof shape) != TN_OK)
        return NULL;
    if (o->missing == o->missing)
        tn_snprint(missing, sizeof missing, "%g", o->missing);
    return tn_dataset_new("CSV(%q, label=None, header=%s, separator=%q, missing=%s, scale=%g%s)",
                          path,
                          o->header.kind == TN_VALUE_NONE ? "None"
                          : o->header.as.i != 0           ? "True"
                                                          : "False",
                          o->separator, missing, o->scale, shape);
}

static tn_status open_rows(tn_dataset_open *args)
{
    return csv_rows_open(args, &((const struct options *)args->options)->paths, make_csv);
}

const tn_dataset_def data_csv_rows = {
    TN_HEAD(tn_dataset_def),
    .name = "CSVRows",
    .help = "the rows of tables without labels: (float32 [columns], path and row)",
    .options = options,
    .data_size = sizeof(struct options),
    .open = open_rows,
    .get = csv_rows_get,
    .close = csv_rows_close,
};
