/* SPDX-License-Identifier: MIT
 *
 * Tables of numbers as text, one sample in a line. The option `separator` is the character
 * between fields. */
#include "csv.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct csv_options {
    const char *path;
    tn_value label;
    const char *target;
    tn_value classes;
    tn_value header;
    const char *separator;
    double missing; /* NaN: none may be missing */
    tn_ints shape;
    double scale;
};
#define T struct csv_options
static const tn_option csv_options[] = {
#define LABEL "-1"
#include "csv_label_options_template.h"
#include "csv_number_options_template.h"
    TN_OPTION_END
};
#undef T

/* ---- records --------------------------------------------------------------------------------- */

struct table {
    const struct csv_options *options;
    struct csv_text text;
    int64_t label; /* its column, -1: none */
    struct csv_labels labels;
    struct data_memory *memory;
    int64_t used, values_capacity;
};

static tn_status bad_value(const struct table *t, int64_t column, const char *field)
{
    bool missing = csv_is_missing(field);
    double number;
    const char *hint = missing ? ", or the option missing, such as missing=0"
                       : tn_read_float(field, &number) ? ", finite as float32"
                       : strchr(field, ';') != NULL    ? ", or separator=';'"
                       : strchr(field, '\t') != NULL   ? ", or separator='\\t'"
                       : t->text.line == 1 && t->options->header.kind == TN_VALUE_NONE
                           ? ", or header=True if line 1 has names"
                           : "; the dataset Table reads texts, too";

    return tn_fail(TN_ERR_FORMAT, "%s: line %lld, column %lld: %s, got %q; expected a number%s",
                   t->text.path, (long long)t->text.line, (long long)column,
                   missing ? "missing value" : "wrong value", field, hint);
}

static tn_status add_value(struct table *t, int64_t column)
{
    const char *field = t->text.fields[column];
    double number = t->options->missing;
    bool given = isnan(number) || !csv_is_missing(field);

    if (given && (!tn_read_float(field, &number) || csv_is_missing(field) ||
                  !(fabs(number * t->options->scale) <= FLT_MAX)))
        return bad_value(t, column, field);
    if (t->used == t->values_capacity) {
        int64_t capacity = t->values_capacity > 0 ? 2 * t->values_capacity : 1 << 12;
        void *grown = tn_realloc(t->memory->values, (size_t)capacity * sizeof(float));

        if (grown == NULL)
            return TN_ERR_MEMORY;
        t->memory->values = grown;
        t->values_capacity = capacity;
    }
    ((float *)t->memory->values)[t->used++] = (float)(number * t->options->scale);
    return TN_OK;
}

static tn_status add_record(struct table *t)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < t->text.count && status == TN_OK; i++)
        status = i == t->label ? csv_labels_add(&t->labels, &t->text, i) : add_value(t, i);
    t->memory->count += status == TN_OK;
    return status;
}

/* Returns whether the first record has names: none of its fields but the label is a number. */
static bool looks_like_names(const struct csv_text *text, int64_t label)
{
    bool found = false;

    for (int64_t i = 0; i < text->count; i++) {
        double number;

        if (i != label && tn_read_float(text->fields[i], &number))
            return false;
        found = found || (i != label && !csv_is_missing(text->fields[i]));
    }
    return found;
}

/* Finds the column of the label in the first record, and whether that has names. */
static tn_status read_header(struct table *t, bool *names)
{
    const tn_value *header = &t->options->header, *label = &t->options->label;
    bool named = label->kind == TN_VALUE_STRING;
    tn_status status;

    if (csv_check_header(header) != TN_OK)
        return tn_error_last_code();
    *names = header->kind == TN_VALUE_BOOL ? header->as.i != 0 : named;
    status = csv_column(&t->text, "label", label, *names ? t->text.fields : NULL, &t->label);
    if (status == TN_OK && header->kind == TN_VALUE_NONE && !named)
        *names = looks_like_names(&t->text, t->label);
    return status;
}

static tn_status take_records(struct table *t)
{
    bool more = false, names = false;
    tn_status status = csv_next(&t->text, &more);

    if (status == TN_OK && more)
        status = read_header(t, &names);
    if (status == TN_OK && names)
        status = csv_next(&t->text, &more);
    while (status == TN_OK && more) {
        status = add_record(t);
        if (status == TN_OK)
            status = csv_next(&t->text, &more);
    }
    if (status == TN_OK && t->memory->count == 0)
        status = tn_fail(TN_ERR_FORMAT, "%s: no samples in the file", t->text.path);
    return status;
}

/* ---- the dataset ----------------------------------------------------------------------------- */

/* A table, and the labels if they are numbers. */
struct csv {
    struct data_memory *memory;
    float *numbers;
};

static void csv_close(void *handle)
{
    struct csv *csv = handle;

    if (csv == NULL)
        return;
    data_memory_free(csv->memory);
    tn_free(csv->numbers);
    tn_free(csv);
}

static tn_status csv_get(const tn_sample_args *args)
{
    const struct csv *csv = args->handle;
    tn_sample_args inner = *args;
    tn_status status;

    inner.handle = csv->memory;
    status = data_memory_get(&inner);
    if (status == TN_OK && csv->numbers != NULL)
        status = data_add_tensor(args->out, &csv->numbers[args->index], TN_F32, TN_SCALAR_SHAPE);
    return status;
}

static tn_status set_shape(struct table *t)
{
    struct data_memory *m = t->memory;
    tn_ints shape = t->options->shape;
    int64_t columns = t->text.columns - (t->label >= 0);
    char text[DATA_NUMBERS];

    if (columns == 0)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: no columns besides the label; expected numbers in some, or another "
                       "separator",
                       t->text.path);
    m->dtype = TN_F32;
    m->ndim = 1;
    m->shape[0] = columns;
    if (shape.count < 0)
        return TN_OK;
    if (shape.count > TN_MAX_DIMS || data_elements(shape.at, (int32_t)shape.count) != columns)
        return tn_fail(
            TN_ERR_VALUE,
            "shape: wrong number of elements or dimensions, got %s; expected at most %d dimensions "
            "with %lld elements, the number of columns without the label",
            data_numbers_ints(text, shape), TN_MAX_DIMS, (long long)columns);
    m->ndim = (int32_t)shape.count;
    memcpy(m->shape, shape.at, (size_t)shape.count * sizeof *shape.at);
    return TN_OK;
}

/* Reads the text, which is changed, into a new dataset. */
static tn_status open_text(tn_dataset_open *args, const struct csv_options *options,
                           const char *path, char *text)
{
    struct csv *csv = tn_calloc(1, sizeof *csv);
    struct table t = { .options = options };
    tn_status status;

    if (csv == NULL)
        return TN_ERR_MEMORY;
    csv_begin(&t.text, path, options->separator[0], text);
    csv->memory = t.memory = tn_calloc(1, sizeof *csv->memory);
    status = csv->memory != NULL ? csv_labels_kind(&t.labels, options->target) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = take_records(&t);
    if (status == TN_OK)
        status = set_shape(&t);
    if (status == TN_OK && t.label >= 0 && !t.labels.numbers)
        status = csv_labels_number(&t.labels, &options->classes, csv->memory);
    csv->numbers = t.labels.values;
    t.labels.values = NULL;
    csv_labels_free(&t.labels);
    csv_end(&t.text);
    if (status != TN_OK) {
        csv_close(csv);
        return status;
    }
    data_memory_give(csv->memory, args);
    args->handle = csv;
    return TN_OK;
}

static tn_status csv_open(tn_dataset_open *args)
{
    const struct csv_options *o = args->options;
    tn_status status = csv_check_separator(o->separator);
    char *text = status == TN_OK ? csv_load(o->path) : NULL;

    if (text == NULL)
        return tn_error_last_code();
    status = open_text(args, o, o->path, text);
    tn_free(text);
    return status;
}

/* ---- Digits(split) --------------------------------------------------------------------------- */

/* The bundled file examples/data/digits.csv.gz as text: 64 pixels from 0 to 16 and a class. */
extern const unsigned char tn_embed_digits[];
extern const size_t tn_embed_digits_size;

struct digits_options {
    const char *split;
};
static const tn_option digits_options[] = {
    TN_OPTION_STRING(struct digits_options, split, "'all'",
                     "'train': four of five samples; 'test': every fifth; 'all'"),
    TN_OPTION_END
};

/* Keeps the samples of the split. Those whose index modulo 5 is 4 are the test. */
static void keep_split(struct data_memory *m, bool test)
{
    size_t size = 64 * sizeof(float);
    int64_t kept = 0;

    for (int64_t i = 0; i < m->count; i++) {
        if ((i % 5 == 4) != test)
            continue;
        memmove((char *)m->values + (size_t)kept * size, (char *)m->values + (size_t)i * size,
                size);
        m->labels[kept++] = m->labels[i];
    }
    m->count = kept;
}

static tn_status digits_open(tn_dataset_open *args)
{
    static const int64_t shape[3] = { 1, 8, 8 };
    const struct csv_options table = { .label = tn_value_int(-1),
                                       .target = "class",
                                       .classes = tn_value_none(),
                                       .header = tn_value_bool(false),
                                       .separator = ",",
                                       .missing = (double)NAN,
                                       .shape = { shape, 3 },
                                       .scale = 1.0 / 16 };
    const char *split = ((const struct digits_options *)args->options)->split;
    bool all = strcmp(split, "all") == 0, test = strcmp(split, "test") == 0;
    char *text;
    tn_status status;

    if (!all && !test && strcmp(split, "train") != 0)
        return tn_fail(TN_ERR_VALUE, "split: unknown, got %q; expected 'train', 'test' or 'all'",
                       split);
    text = tn_malloc(tn_embed_digits_size + 1);
    if (text == NULL)
        return TN_ERR_MEMORY;
    memcpy(text, tn_embed_digits, tn_embed_digits_size);
    text[tn_embed_digits_size] = '\0';
    status = open_text(args, &table, "digits.csv", text);
    tn_free(text);
    if (status == TN_OK && !all) {
        struct csv *csv = args->handle;

        keep_split(csv->memory, test);
        args->count = csv->memory->count;
    }
    return status;
}

const tn_dataset_def data_csv = {
    TN_HEAD(tn_dataset_def),
    .name = "CSV",
    .help = "a table of numbers as text: (float32 [columns], class or float32 [])",
    .options = csv_options,
    .data_size = sizeof(struct csv_options),
    .open = csv_open,
    .get = csv_get,
    .close = csv_close,
};
const tn_dataset_def data_digits = {
    TN_HEAD(tn_dataset_def),
    .name = "Digits",
    .help = "1,797 handwritten digits, which come with this plugin: (float32 [1, 8, 8], class)",
    .options = digits_options,
    .data_size = sizeof(struct digits_options),
    .open = digits_open,
    .get = csv_get,
    .close = csv_close,
};
