/* SPDX-License-Identifier: MIT
 *
 * Tables of numbers as text, one sample in a line. The option `separator` is the character
 * between fields. */
#include "data.h"

#include <stdlib.h>
#include <string.h>

struct csv_options {
    const char *path;
    int64_t label;
    const char *target;
    bool header;
    const char *separator;
    tn_ints shape;
    double scale;
};
static const tn_option csv_options[] = {
    TN_OPTION_ROW(struct csv_options, path, NULL, "the file, plain or compressed by gzip",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct csv_options, label, "-1",
                  "column of the label, negative: from the last; None: no label",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),
    TN_OPTION_STRING(struct csv_options, target, "'class'",
                     "the label is a 'class' (a number from 0 on, or a text), or a 'number'"),
    TN_OPTION_BOOL(struct csv_options, header, "False", "the first line has names of columns"),
    TN_OPTION_STRING(struct csv_options, separator, "','", "character between fields"),
    TN_OPTION_ROW(struct csv_options, shape, "None", "shape of a sample; None: [columns]",
                  TN_OPTION_KIND_INTS, TN_OPTION_OPTIONAL),
    TN_OPTION_FLOAT(struct csv_options, scale, "1.0", "factor of the values"),
    TN_OPTION_END
};

/* ---- lines and fields ------------------------------------------------------------------------ */

struct table {
    const struct csv_options *options;
    const char *path;
    char *at; /* the rest of the text, which is changed: fields get a NUL at their end */
    int64_t line;
    int64_t columns; /* of a line with the label; 0: not known yet */
    struct data_memory *memory;
    float *numbers; /* labels that are numbers */
    char **texts;   /* labels that are classes; they point into the text */
    int64_t values_capacity, capacity;
};

static tn_status bad(const struct table *t, int64_t column, const char *what, const char *got)
{
    return tn_fail(TN_ERR_FORMAT, "%s: line %lld, column %lld: %s, got %q; expected a number%s",
                   t->path, (long long)t->line, (long long)column, what, got,
                   t->line == 1 && !t->options->header ? ", or header=True if line 1 has names"
                                                       : "");
}

/* Takes a field in quotes, in which "" is a quote. *end gets the character after the field. */
static char *take_quoted(char **at, char *end)
{
    char *from = *at + 1, *in = from, *out = from;

    while (*in != '\0' && !(in[0] == '"' && in[1] != '"')) {
        in += in[0] == '"';
        *out++ = *in++;
    }
    if (*in == '"')
        in++;
    while (*in == ' ')
        in++;
    *end = *in;
    *at = in + (*in != '\0');
    *out = '\0';
    return from;
}

/* Takes the next field of a line; *end gets the separator, '\n' or NUL after it. */
static char *take_field(struct table *t, char *end)
{
    char separator = t->options->separator[0], *from, *last;

    while (*t->at == ' ' && separator != ' ')
        t->at++;
    if (*t->at == '"') {
        from = take_quoted(&t->at, end);
        if (*end == '\r' && *t->at == '\n') {
            t->at++;
            *end = '\n';
        }
        return from;
    }
    from = t->at;
    while (*t->at != separator && *t->at != '\n' && *t->at != '\0')
        t->at++;
    *end = *t->at;
    last = t->at;
    if (*t->at != '\0')
        t->at++;
    while (last > from && (last[-1] == ' ' || last[-1] == '\r'))
        last--;
    *last = '\0';
    return from;
}

static tn_status add_value(struct table *t, int64_t *used, const char *field, int64_t column)
{
    double number;

    if (!tn_read_float(field, &number))
        return bad(t, column, "wrong value", field);
    if (*used == t->values_capacity) {
        int64_t capacity = t->values_capacity > 0 ? 2 * t->values_capacity : 1 << 12;
        void *grown = tn_realloc(t->memory->values, (size_t)capacity * sizeof(float));

        if (grown == NULL)
            return TN_ERR_MEMORY;
        t->memory->values = grown;
        t->values_capacity = capacity;
    }
    ((float *)t->memory->values)[(*used)++] = (float)(number * t->options->scale);
    return TN_OK;
}

static tn_status add_label(struct table *t, char *field, int64_t column)
{
    int64_t count = t->memory->count;
    double number = 0;

    if (t->numbers != NULL && !tn_read_float(field, &number))
        return bad(t, column, "label: wrong value", field);
    if (t->numbers != NULL)
        t->numbers[count] = (float)number;
    else
        t->texts[count] = field;
    return TN_OK;
}

/* Makes room for the label of one more sample. */
static tn_status grow_labels(struct table *t)
{
    int64_t capacity = t->capacity > 0 ? 2 * t->capacity : 1 << 10;
    bool numbers = strcmp(t->options->target, "number") == 0;
    void *grown;

    if (t->memory->count < t->capacity)
        return TN_OK;
    grown = tn_realloc(numbers ? (void *)t->numbers : (void *)t->texts,
                       (size_t)capacity * (numbers ? sizeof(float) : sizeof(char *)));
    if (grown == NULL)
        return TN_ERR_MEMORY;
    if (numbers)
        t->numbers = grown;
    else
        t->texts = grown;
    t->capacity = capacity;
    return TN_OK;
}

/* The number of fields in the current line. */
static int64_t count_fields(const struct table *t)
{
    int64_t fields = 1;
    bool quoted = false;

    for (const char *p = t->at; *p != '\0' && (quoted || *p != '\n'); p++) {
        quoted ^= *p == '"';
        fields += !quoted && *p == t->options->separator[0];
    }
    return fields;
}

/* Reads one line into the table. */
static tn_status take_line(struct table *t, int64_t *used)
{
    int64_t fields = count_fields(t), label = t->options->label, column = 0;
    tn_status status = TN_OK;
    char end;

    if (t->columns == 0)
        t->columns = fields;
    if (fields != t->columns)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: line %lld: wrong number of columns, got %lld; expected "
                       "%lld as in the lines before",
                       t->path, (long long)t->line, (long long)fields, (long long)t->columns);
    if (label != INT64_MIN && label < 0)
        label += t->columns;
    if (label != INT64_MIN && (label < 0 || label >= t->columns))
        return tn_fail(
            TN_ERR_VALUE,
            "label: out of range, got column %lld; expected %lld to %lld, a column of %s",
            (long long)t->options->label, -(long long)t->columns, (long long)t->columns - 1,
            t->path);
    if (label != INT64_MIN)
        status = grow_labels(t);
    do {
        char *field = take_field(t, &end);

        if (status == TN_OK)
            status = column == label ? add_label(t, field, column)
                                     : add_value(t, used, field, column);
        column++;
    } while (end != '\n' && end != '\0');
    t->memory->count += status == TN_OK;
    return status;
}

static void skip_line(struct table *t)
{
    char end;

    do
        (void)take_field(t, &end);
    while (end != '\n' && end != '\0');
}

static tn_status take_lines(struct table *t)
{
    tn_status status = TN_OK;
    int64_t used = 0;

    for (t->line = 1; *t->at != '\0' && status == TN_OK; t->line++) {
        if (t->at[0] == '\n' || (t->at[0] == '\r' && t->at[1] == '\n'))
            t->at += 1 + (t->at[0] == '\r');
        else if (t->line == 1 && t->options->header)
            skip_line(t);
        else
            status = take_line(t, &used);
    }
    if (status == TN_OK && t->memory->count == 0)
        status = tn_fail(TN_ERR_FORMAT, "%s: no samples in the file", t->path);
    return status;
}

/* ---- classes --------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns true if all labels are whole numbers from 0 on, which then are the classes. */
static bool labels_are_numbers(struct table *t)
{
    struct data_memory *m = t->memory;

    for (int64_t i = 0; i < m->count; i++) {
        int64_t number;

        if (!tn_read_int(t->texts[i], &number) || number < 0 || number > INT32_MAX)
            return false;
        m->labels[i] = number;
        m->classes = number >= m->classes ? number + 1 : m->classes;
    }
    return true;
}

/* Numbers the classes, whose names are texts, in the order of the texts. */
static tn_status number_texts(struct table *t)
{
    struct data_memory *m = t->memory;
    const char **sorted = tn_malloc((size_t)m->count * sizeof *sorted);
    int64_t count = 0;
    tn_status status;

    if (sorted == NULL)
        return TN_ERR_MEMORY;
    memcpy(sorted, t->texts, (size_t)m->count * sizeof *sorted);
    qsort(sorted, (size_t)m->count, sizeof *sorted, by_text);
    for (int64_t i = 0; i < m->count; i++)
        if (count == 0 || strcmp(sorted[count - 1], sorted[i]) != 0)
            sorted[count++] = sorted[i];
    for (int64_t i = 0; i < m->count; i++) {
        const char *text = t->texts[i];
        const char **found = bsearch(&text, sorted, (size_t)count, sizeof *sorted, by_text);

        m->labels[i] = found - sorted;
    }
    status = data_memory_names(m, sorted, count);
    tn_free(sorted);
    return status;
}

static tn_status number_classes(struct table *t)
{
    struct data_memory *m = t->memory;

    m->labels = tn_malloc((size_t)m->count * sizeof *m->labels);
    if (m->labels == NULL)
        return TN_ERR_MEMORY;
    if (labels_are_numbers(t))
        return TN_OK;
    m->classes = 0;
    return number_texts(t);
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
    int64_t columns = t->columns - (t->options->label != INT64_MIN);
    char text[DATA_NUMBERS];

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
    struct table t = { .options = options, .path = path, .at = text };
    tn_status status;

    if (csv == NULL)
        return TN_ERR_MEMORY;
    csv->memory = t.memory = tn_calloc(1, sizeof *csv->memory);
    status = csv->memory != NULL ? take_lines(&t) : TN_ERR_MEMORY;
    csv->numbers = t.numbers;
    if (status == TN_OK)
        status = set_shape(&t);
    if (status == TN_OK && t.texts != NULL)
        status = number_classes(&t);
    tn_free(t.texts);
    if (status != TN_OK) {
        csv_close(csv);
        return status;
    }
    data_memory_give(csv->memory, args);
    args->handle = csv;
    return TN_OK;
}

static tn_status check_options(const struct csv_options *o)
{
    if (strcmp(o->target, "class") != 0 && strcmp(o->target, "number") != 0)
        return tn_fail(TN_ERR_VALUE, "target: unknown, got %q; expected 'class' or 'number'",
                       o->target);
    if (strlen(o->separator) != 1 || strchr("\"\r\n", o->separator[0]) != NULL)
        return tn_fail(
            TN_ERR_VALUE,
            "separator: wrong, got %q; expected one character that is no quote and no end of "
            "line",
            o->separator);
    return TN_OK;
}

static tn_status csv_open(tn_dataset_open *args)
{
    const struct csv_options *o = args->options;
    tn_status status = check_options(o);
    struct data_file *file = status == TN_OK ? data_file_open(o->path) : NULL;
    uint64_t size = 0;
    char *text = file != NULL ? data_file_rest(file, &size) : NULL;

    data_file_close(file);
    if (text == NULL)
        return tn_error_last_code();
    if (strlen(text) != size)
        status = tn_fail(TN_ERR_FORMAT, "%s: not a text file: byte %zu is 0", o->path,
                         strlen(text));
    if (status == TN_OK)
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
    static const struct csv_options table = {
        .label = -1, .target = "class", .separator = ",", .shape = { shape, 3 }, .scale = 1.0 / 16
    };
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
