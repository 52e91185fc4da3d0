/* SPDX-License-Identifier: MIT
 *
 * Tables whose columns have numbers or texts, and may lack values: a sample has the row as a
 * dictionary, of which the transform Columns makes numbers. */
#include "csv.h"

#include <stdlib.h>
#include <string.h>

/* ---- options --------------------------------------------------------------------------------- */

struct table_options {
    const char *path;
    tn_value label;
    const char *target;
    tn_value classes, columns, without, texts;
    bool header;
    const char *separator;
};
#define T struct table_options
static const tn_option table_options[] = {
#define LABEL "None"
#include "csv_label_options_template.h"
    TN_OPTION_ROW(struct table_options, columns, "None",
                  "list of the columns that are read; None: all but the label",
                  TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_ROW(struct table_options, without, "None", "list of columns that are left out",
                  TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_ROW(struct table_options, texts, "None",
                  "list of columns whose numbers are names, such as postal codes",
                  TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_BOOL(struct table_options, header, "True",
                   "the first line has names of columns; else their numbers are the names"),
    TN_OPTION_STRING(struct table_options, separator, "','", "character between fields"),
    TN_OPTION_END
};
#undef T

/* ---- the table ------------------------------------------------------------------------------- */

struct table {
    char *text; /* of the file; names and cells point into it */
    char **names;
    char (*numbers)[24]; /* names of columns without a header */
    char *used, *texts;  /* for each column: whether it is read, whether it has texts */
    char **cells;        /* of all columns, row by row */
    int64_t columns, capacity;
    float *values; /* labels that are numbers */
    struct data_memory *labels;
};

static void table_close(void *handle)
{
    struct table *t = handle;

    if (t == NULL)
        return;
    data_memory_free(t->labels);
    tn_free(t->values);
    tn_free(t->cells);
    tn_free(t->texts);
    tn_free(t->used);
    tn_free(t->numbers);
    tn_free(t->names);
    tn_free(t->text);
    tn_free(t);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static tn_status check_names(const struct table *t, const struct csv_text *text)
{
    size_t count = (size_t)t->columns;
    char **sorted = tn_malloc((count + 1) * sizeof *sorted);
    tn_status status = sorted != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK) {
        memcpy(sorted, t->names, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_text);
    }
    for (size_t i = 1; i < count && status == TN_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = tn_fail(TN_ERR_FORMAT,
                             "%s: two columns have the name %q; expected different names, or "
                             "header=False if line 1 has no names",
                             text->path, sorted[i]);
    tn_free(sorted);
    return status;
}

/* Takes the names of the columns from the first record, or makes them. */
static tn_status take_names(struct table *t, const struct csv_text *text, bool header)
{
    t->columns = text->columns;
    t->names = tn_calloc((size_t)t->columns + 1, sizeof *t->names);
    t->used = tn_calloc((size_t)t->columns + 1, 1);
    t->texts = tn_calloc((size_t)t->columns + 1, 1);
    t->numbers = header ? NULL : tn_calloc((size_t)t->columns + 1, sizeof *t->numbers);
    if (t->names == NULL || t->used == NULL || t->texts == NULL || (!header && t->numbers == NULL))
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < t->columns; i++) {
        if (!header)
            tn_snprint(t->numbers[i], sizeof t->numbers[i], "%lld", (long long)i);
        t->names[i] = header ? text->fields[i] : t->numbers[i];
        if (csv_check_utf8(text, t->names[i], "name of a column") != TN_OK)
            return tn_error_last_code();
    }
    return check_names(t, text);
}

/* Sets flags[i] to `flag` for each column of a list. */
static tn_status mark(const struct table *t, const struct csv_text *text, const char *option,
                      const tn_value *list, char *flags, char flag)
{
    tn_status status = TN_OK;

    if (list->kind == TN_VALUE_NONE)
        return TN_OK;
    if (list->kind != TN_VALUE_LIST && list->kind != TN_VALUE_TUPLE)
        return tn_fail(TN_ERR_TYPE, "%s: wrong type, got %s; expected a list of columns", option,
                       tn_value_kind_name(list->kind));
    for (uint32_t i = 0; i < list->count && status == TN_OK; i++) {
        int64_t column;

        status = csv_column(text, option, &list->as.list[i], t->names, &column);
        if (status == TN_OK && column >= 0)
            flags[column] = flag;
    }
    return status;
}

/* Decides which columns are read. */
static tn_status choose(struct table *t, const struct csv_text *text, const struct table_options *o,
                        int64_t *label)
{
    tn_status status = csv_column(text, "label", &o->label, t->names, label);
    bool any = false;

    if (o->columns.kind == TN_VALUE_NONE)
        memset(t->used, 1, (size_t)t->columns);
    if (status == TN_OK)
        status = mark(t, text, "columns", &o->columns, t->used, 1);
    if (status == TN_OK)
        status = mark(t, text, "without", &o->without, t->used, 0);
    if (status == TN_OK)
        status = mark(t, text, "texts", &o->texts, t->texts, 1);
    if (status == TN_OK && *label >= 0)
        t->used[*label] = 0;
    for (int64_t i = 0; i < t->columns; i++)
        any = any || t->used[i];
    if (status == TN_OK && !any)
        status = tn_fail(
            TN_ERR_VALUE,
            "%s: no columns are left of %lld; expected one or more besides the label%s", text->path,
            (long long)t->columns,
            t->columns == 1 ? ", or the option separator, such as separator=';'" : "");
    return status;
}

static tn_status add_cells(struct table *t, const struct csv_text *text)
{
    int64_t count = t->labels->count, used;

    if (count == t->capacity) {
        int64_t capacity = count > 0 ? 2 * count : 64, cells;
        char **grown = NULL;

        if (__builtin_mul_overflow(capacity, t->columns, &cells) ||
            (size_t)cells > SIZE_MAX / sizeof *grown)
            return tn_fail(TN_ERR_MEMORY, "%s: too many cells", text->path);
        grown = tn_realloc(t->cells, (size_t)cells * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        t->cells = grown;
        t->capacity = capacity;
    }
    used = count * t->columns;
    for (int64_t i = 0; i < t->columns; i++) {
        t->cells[used + i] = text->fields[i];
        if (t->used[i] && csv_check_utf8(text, text->fields[i], t->names[i]) != TN_OK)
            return tn_error_last_code();
    }
    t->labels->count++;
    return TN_OK;
}

static tn_status take_records(struct table *t, struct csv_text *text, const struct table_options *o,
                              struct csv_labels *labels)
{
    bool more = false;
    int64_t label = -1;
    tn_status status = csv_next(text, &more);

    if (status == TN_OK && more)
        status = take_names(t, text, o->header);
    if (status == TN_OK && more)
        status = choose(t, text, o, &label);
    if (status == TN_OK && o->header && more)
        status = csv_next(text, &more);
    while (status == TN_OK && more) {
        status = add_cells(t, text);
        if (status == TN_OK && label >= 0)
            status = csv_labels_add(labels, text, label);
        if (status == TN_OK)
            status = csv_next(text, &more);
    }
    if (status == TN_OK && t->labels->count == 0)
        status = tn_fail(TN_ERR_FORMAT, "%s: no samples in the file", text->path);
    if (status == TN_OK && label >= 0 && !labels->numbers)
        status = csv_labels_number(labels, &o->classes, t->labels);
    t->values = labels->values;
    labels->values = NULL;
    return status;
}

/* A missing value is None, a number a float, and another cell a text. */
static tn_value value_of(const struct table *t, int64_t column, const char *cell)
{
    double number;

    if (csv_is_missing(cell))
        return tn_value_none();
    if (!t->texts[column] && tn_read_float(cell, &number))
        return tn_value_float(number);
    return tn_value_string(cell);
}

/* Warns of columns with more numbers than texts: a single odd cell makes names of all numbers. */
static void warn_mixed(const struct table *t, const char *path)
{
    for (int64_t i = 0; i < t->columns; i++) {
        int64_t numbers = 0, texts = 0;
        const char *odd = "";

        for (int64_t row = 0; t->used[i] && !t->texts[i] && row < t->labels->count; row++) {
            tn_value value = value_of(t, i, t->cells[row * t->columns + i]);

            numbers += value.kind == TN_VALUE_FLOAT;
            texts += value.kind == TN_VALUE_STRING;
            if (value.kind == TN_VALUE_STRING && texts == 1)
                odd = value.as.s;
        }
        if (texts > 0 && numbers > texts)
            tn_log(
                TN_LOG_WARNING,
                "%s: column %q: %lld cell%s no number, such as %q, so its %lld numbers are names, "
                "too; expected an empty field for a missing value, or texts=[%q]",
                path, t->names[i], (long long)texts, texts == 1 ? " is" : "s are", odd,
                (long long)numbers, t->names[i]);
    }
}

static tn_status table_open(tn_dataset_open *args)
{
    const struct table_options *o = args->options;
    struct csv_labels labels = { .numbers = false };
    struct csv_text text;
    struct table *t = tn_calloc(1, sizeof *t);
    tn_status status = t != NULL ? csv_check_separator(o->separator) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = csv_labels_kind(&labels, o->target);
    if (status == TN_OK) {
        t->labels = tn_calloc(1, sizeof *t->labels);
        t->text = csv_load(o->path);
        status = t->labels != NULL && t->text != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK) {
        csv_begin(&text, o->path, o->separator[0], t->text);
        status = take_records(t, &text, o, &labels);
        csv_end(&text);
    }
    if (status == TN_OK && o->label.kind != TN_VALUE_NONE) /* rows that are predicted have none */
        warn_mixed(t, o->path);
    csv_labels_free(&labels);
    if (status != TN_OK) {
        table_close(t);
        return status;
    }
    data_memory_give(t->labels, args);
    args->handle = t;
    return TN_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

static tn_status table_get(const tn_sample_args *args)
{
    const struct table *t = args->handle;
    char *const *cells = t->cells + args->index * t->columns;
    tn_value *pairs = tn_calloc(2 * (size_t)t->columns + 1, sizeof *pairs);
    uint32_t count = 0;
    tn_status status;

    if (pairs == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < t->columns; i++) {
        if (!t->used[i])
            continue;
        pairs[count++] = tn_value_string(t->names[i]);
        pairs[count++] = value_of(t, i, cells[i]);
    }
    status = tn_pack_add(args->out, NULL, tn_value_dict(pairs, count));
    tn_free(pairs);
    if (status == TN_OK && t->values != NULL)
        status = data_add_tensor(args->out, &t->values[args->index], TN_F32, TN_SCALAR_SHAPE);
    if (status == TN_OK && t->labels->labels != NULL)
        status = tn_pack_add(args->out, NULL, tn_value_int(t->labels->labels[args->index]));
    return status;
}

const tn_dataset_def data_table = {
    TN_HEAD(tn_dataset_def),
    .name = "Table",
    .help = "a table with numbers, texts and missing values: (row, class or float32 [])",
    .options = table_options,
    .data_size = sizeof(struct table_options),
    .open = table_open,
    .get = table_get,
    .close = table_close,
};

/* ---- TableRows ------------------------------------------------------------------------------- */

struct rows_options {
    tn_value paths;
    bool header;
    const char *separator;
};
static const tn_option rows_options[] = {
    TN_OPTION_ROW(struct rows_options, paths, NULL,
                  "a table as text, plain or compressed by gzip, or a list of files",
                  TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
    TN_OPTION_BOOL(struct rows_options, header, "True",
                   "the first line has names of columns; else their numbers are the names"),
    TN_OPTION_STRING(struct rows_options, separator, "','", "character between fields"),
    TN_OPTION_END
};

static tn_dataset *make_table(const void *given, const char *path)
{
    const struct rows_options *o = given;

    return tn_dataset_new("Table(%q, header=%b, separator=%q)", path, (int)o->header, o->separator);
}

static tn_status open_rows(tn_dataset_open *args)
{
    return csv_rows_open(args, &((const struct rows_options *)args->options)->paths, make_table);
}

const tn_dataset_def data_table_rows = {
    TN_HEAD(tn_dataset_def),
    .name = "TableRows",
    .help = "the rows of tables without labels: (row, path and row)",
    .options = rows_options,
    .data_size = sizeof(struct rows_options),
    .open = open_rows,
    .get = csv_rows_get,
    .close = csv_rows_close,
};
