/* SPDX-License-Identifier: MIT
 *
 * Reads the cases of tenon check from text files, whose lines are a word and its values
 * (docs/plugins/check.md describes the format). */
#include "conform.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct reader {
    const char *op; /* the operator whose cases are requested */
    const char *file;
    int64_t line;
    char name[128];
    bool ours, complete;
    conform_case one;
    int64_t taken;
    bool (*take)(void *user, conform_case *one);
    void *user;
    bool stop;
    char *words;
    size_t size;
    void **blocks; /* the memory of kept cases, followed by that of the current case */
    int64_t n_blocks, n_kept, capacity;
} reader;

/* Writes the message of a failure, with file and line, to r->words; returns false. */
static bool wrong(reader *r, const char *format, const char *what)
{
    char own[256];

    snprintf(own, sizeof own, format, what);
    if (r->line > 0)
        snprintf(r->words, r->size, "%s:%lld: %s", r->file, (long long)r->line, own);
    else
        snprintf(r->words, r->size, "%s: %s; name a file or folder with --cases", r->file, own);
    return false;
}

/* Allocates zeroed memory that belongs to the current case. Returns NULL if memory runs out. */
static void *keep(reader *r, size_t bytes)
{
    void *block;

    if (r->n_blocks == r->capacity) {
        int64_t capacity = r->capacity ? 2 * r->capacity : 32;
        void **more = realloc(r->blocks, (size_t)capacity * sizeof *more);

        if (more == NULL)
            return NULL;
        r->blocks = more;
        r->capacity = capacity;
    }
    block = calloc(1, bytes + 1);
    if (block != NULL)
        r->blocks[r->n_blocks++] = block;
    return block;
}

/* Frees the memory of the current case, unless the receiver keeps the case. */
static void clear(reader *r)
{
    if (r->one.keep) {
        r->n_kept = r->n_blocks;
    } else {
        for (int64_t i = r->n_kept; i < r->n_blocks; i++)
            free(r->blocks[i]);
        r->n_blocks = r->n_kept;
    }
    memset(&r->one, 0, sizeof r->one);
}

/* ---- the lines of a case ---- */

static bool read_row(const char *text, int64_t *row, int32_t *count)
{
    *count = 0;
    if (strcmp(text, "-") == 0)
        return true;
    for (char *end; *text != '\0'; text = *end == ',' ? end + 1 : end) {
        if (*count == TN_MAX_DIMS)
            return false;
        row[(*count)++] = strtoll(text, &end, 10);
        if (end == text || (*end != ',' && *end != '\0'))
            return false;
    }
    return true;
}

static bool read_floats(const char *text, double *row, int32_t *count)
{
    *count = 0;
    if (strcmp(text, "-") == 0)
        return true;
    for (char *end; *text != '\0'; text = *end == ',' ? end + 1 : end) {
        if (*count == TN_MAX_DIMS)
            return false;
        row[(*count)++] = strtod(text, &end);
        if (end == text || (*end != ',' && *end != '\0'))
            return false;
    }
    return true;
}

static const char blanks[] = " \t\r\n";

/* Reads numbers until the end of the line. Returns NULL if one is malformed or memory runs out. */
static double *read_values(reader *r, const char *text, int64_t *count)
{
    int64_t words = 0;
    double *values;

    for (const char *p = text + strspn(text, blanks); *p != '\0'; p += strspn(p, blanks)) {
        words++;
        p += strcspn(p, blanks);
    }
    values = keep(r, (size_t)words * sizeof *values);
    for (*count = 0; values != NULL && *count < words; (*count)++) {
        char *end;

        text += strspn(text, blanks);
        values[*count] = strtod(text, &end);
        if (end != text + strcspn(text, blanks)) /* "1.1.1" begins with a number */
            return NULL;
        text = end;
    }
    return values;
}

/* Reads a word as an int64, also if it is written as a float. */
static bool read_whole_word(const char *text, size_t length, double value, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end == text + length)
        return errno == 0;
    if (!(value >= -0x1p63 && value < 0x1p63))
        return false;
    *out = (int64_t)value;
    return true;
}

/* Reads the numbers of a line as int64; `values` are the same numbers. Returns NULL if one is out
 * of range or memory runs out. */
static int64_t *read_whole(reader *r, const char *text, const double *values, int64_t count)
{
    int64_t *whole = keep(r, (size_t)count * sizeof *whole);

    for (int64_t i = 0; whole != NULL && i < count; i++) {
        size_t length;

        text += strspn(text, blanks);
        length = strcspn(text, blanks);
        if (!read_whole_word(text, length, values[i], &whole[i]))
            return NULL;
        text += length;
    }
    return whole;
}

enum { MOST_ELEMENTS = 1 << 24 };

/* Counts the elements of `t`, and computes where in memory its last one ends. Returns false if
 * either is more than a case may have. */
static bool measure(conform_tensor *t, int64_t *end)
{
    t->count = 1;
    *end = t->offset;
    for (int32_t d = 0; d < t->ndim; d++) {
        int64_t reach;

        if (t->shape[d] < 0 || t->strides[d] < 0 || t->shape[d] > 1 << 20 ||
            t->count * t->shape[d] > MOST_ELEMENTS)
            return false;
        t->count *= t->shape[d];
        if (t->shape[d] > 0 && (__builtin_mul_overflow(t->shape[d] - 1, t->strides[d], &reach) ||
                                __builtin_add_overflow(*end, reach, end)))
            return false;
    }
    return t->offset >= 0 && (*end)++ < MOST_ELEMENTS;
}

/* A file lists the numbers in the order of memory; a case holds the elements in row-major order.
 * Fills the elements of `t` from the `held` numbers of `memory`, by strides and offset. Returns
 * false if there are too few numbers. */
static bool spread(reader *r, conform_tensor *t, const double *memory, const int64_t *whole,
                   int64_t held)
{
    int64_t index[TN_MAX_DIMS] = { 0 }, parts = is_complex(t->dtype) ? 2 : 1, end;

    if (!measure(t, &end) || (t->count > 0 && end * parts > held))
        return false;
    t->values = keep(r, (size_t)(t->count * parts) * sizeof *t->values);
    t->whole = whole != NULL ? keep(r, (size_t)t->count * sizeof *t->whole) : NULL;
    if (whole != NULL && t->whole == NULL)
        return false;
    for (int64_t i = 0; t->values != NULL && i < t->count; i++) {
        int64_t place = t->offset;

        for (int32_t d = 0; d < t->ndim; d++)
            place += index[d] * t->strides[d];
        memcpy(t->values + i * parts, memory + place * parts, (size_t)parts * sizeof *memory);
        if (whole != NULL)
            t->whole[i] = whole[place];
        for (int32_t d = t->ndim - 1; d >= 0 && ++index[d] == t->shape[d]; d--)
            index[d] = 0;
    }
    return t->values != NULL;
}

static bool read_input(reader *r, const char *text)
{
    char dtype[16], shape[256], strides[256], grad;
    long long offset;
    conform_tensor *t;
    double *memory;
    int64_t held, *whole = NULL;
    int32_t steps;
    int used = 0;

    if (r->one.n_in == r->one.capacity) {
        int64_t capacity = r->one.capacity ? 2 * r->one.capacity : 16;
        conform_tensor *more = keep(r, (size_t)capacity * sizeof *more);

        if (more == NULL)
            return wrong(r, "%s", "out of memory");
        if (r->one.n_in > 0)
            memcpy(more, r->one.in, (size_t)r->one.n_in * sizeof *more);
        r->one.in = more;
        r->one.capacity = capacity;
    }
    t = &r->one.in[r->one.n_in];
    memset(t, 0, sizeof *t);
    if (strncmp(text, "none", 4) == 0) {
        r->one.n_in++;
        return true;
    }
    if (sscanf(text, "%15s %255s %255s %lld %c :%n", dtype, shape, strides, &offset, &grad,
               &used) != 5 ||
        used == 0 || tn_dtype_parse(dtype, &t->dtype) != TN_OK ||
        !read_row(shape, t->shape, &t->ndim) || !read_row(strides, t->strides, &steps) ||
        steps != t->ndim)
        return wrong(r, "%s", "expected: in DTYPE SHAPE STRIDES OFFSET g|- : VALUES");
    t->there = true;
    t->grad = grad == 'g';
    t->offset = offset;
    memory = read_values(r, text + used, &held);
    if (memory == NULL)
        return wrong(r, "%s", "the values are not numbers");
    if (t->dtype == TN_I64 && (whole = read_whole(r, text + used, memory, held)) == NULL)
        return wrong(r, "%s", "a value is not an integer of 64 bits");
    if (!spread(r, t, memory, whole, held))
        return wrong(r, "%s", "the values do not fill shape and strides");
    r->one.n_in++;
    return true;
}

/* Reads a scalar of the kind that the text shows: True and False, 2, 2.0, or None (no number). */
static bool read_scalar(const char *text, tn_scalar *out)
{
    int64_t whole;
    double number = 0;

    if (strcmp(text, "None") == 0)
        *out = tn_scalar_none();
    else if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        *out = tn_scalar_bool(text[0] == 'T');
    else if (tn_read_int(text, &whole))
        *out = tn_scalar_int(whole);
    else if (tn_read_float(text, &number))
        *out = tn_scalar_float(number);
    else
        return false;
    return true;
}

/* Reports that an option of a case has a wrong value; returns false. */
static bool wrong_value(reader *r, const char *option, const char *value, const char *expected)
{
    char own[200];

    snprintf(own, sizeof own, "option %.40s: wrong value, got \"%.60s\"; expected %s", option,
             value, expected);
    return wrong(r, "%s", own);
}

static bool set_option(reader *r, char *text)
{
    char *value = strchr(text, ' ');
    const tn_option *row = r->one.def->options;
    uint8_t *options = r->one.options;
    int64_t *ints;
    int32_t count;

    if (value == NULL)
        return wrong(r, "%s", "expected: opt NAME VALUE");
    *value++ = '\0';
    while (row != NULL && row->kind != TN_OPTION_KIND_END && strcmp(row->name, text) != 0)
        row++;
    if (row == NULL || row->kind == TN_OPTION_KIND_END)
        return wrong(r, "the operator has no option %s", text);
    if (options == NULL) {
        options = r->one.options = keep(r, r->one.def->options_size);
        if (options == NULL)
            return wrong(r, "%s", "out of memory");
        memcpy(options, r->one.def->defaults, r->one.def->options_size);
    }
    options += row->offset;
    switch (row->kind) {
    case TN_OPTION_KIND_BOOL:
        *(bool *)options = strcmp(value, "True") == 0;
        return *(bool *)options || strcmp(value, "False") == 0 ||
               wrong_value(r, text, value, "True or False");
    case TN_OPTION_KIND_INT:
        /* None: the option keeps its default. */
        return strcmp(value, "None") == 0 || tn_read_int(value, (int64_t *)(void *)options) ||
               wrong_value(r, text, value, "an integer, or None for the default");
    case TN_OPTION_KIND_FLOAT:
        return strcmp(value, "None") == 0 || tn_read_float(value, (double *)(void *)options) ||
               wrong_value(r, text, value, "a number, or None for the default");
    case TN_OPTION_KIND_SCALAR:
        return read_scalar(value, (tn_scalar *)(void *)options) ||
               wrong_value(r, text, value, "a number, True, False or None");
    case TN_OPTION_KIND_STRING: {
        char *copy = keep(r, strlen(value));

        if (copy == NULL)
            return wrong(r, "%s", "out of memory");
        *(const char **)(void *)options = strcpy(copy, value);
        return true;
    }
    case TN_OPTION_KIND_INTS:
        ints = keep(r, TN_MAX_DIMS * sizeof *ints);
        if (ints == NULL)
            return wrong(r, "%s", "out of memory");
        if (!read_row(value, ints, &count))
            return wrong_value(r, text, value, "integers with commas between, or - for none");
        *(tn_ints *)(void *)options = (tn_ints){ ints, count };
        return true;
    case TN_OPTION_KIND_FLOATS: {
        double *floats = keep(r, TN_MAX_DIMS * sizeof *floats);

        if (floats == NULL)
            return wrong(r, "%s", "out of memory");
        if (!read_floats(value, floats, &count))
            return wrong_value(r, text, value, "numbers with commas between, or - for none");
        *(tn_floats *)(void *)options = (tn_floats){ floats, count };
        return true;
    }
    case TN_OPTION_KIND_DTYPE:
        return tn_dtype_parse(value, (tn_dtype *)(void *)options) == TN_OK ||
               wrong_value(r, text, value, "the name of a dtype");
    default: return wrong(r, "option %s has a kind that cases cannot set", text);
    }
}

static bool read_cotangent(reader *r, const char *text)
{
    text = strchr(text, ':');
    if (text == NULL)
        return wrong(r, "%s", "expected: cot : VALUES");
    r->one.has_cotangent = true;
    r->one.cotangent.there = true;
    r->one.cotangent.values = read_values(r, text + 1, &r->one.cotangent.count);
    return r->one.cotangent.values != NULL || wrong(r, "%s", "the values are not numbers");
}

/* Reads a line `out DTYPE SHAPE : VALUES`, the expected values of the next result. */
static bool read_given(reader *r, const char *text)
{
    conform_tensor *t = &r->one.given[r->one.n_given];

    if (r->one.n_given == CONFORM_GIVEN) {
        char most[16];

        snprintf(most, sizeof most, "%d", CONFORM_GIVEN);
        return wrong(r, "too many lines `out`; expected at most %s", most);
    }
    text = strchr(text, ':');
    if (text == NULL)
        return wrong(r, "%s", "expected: out DTYPE SHAPE : VALUES");
    t->values = read_values(r, text + 1, &t->count);
    if (t->values == NULL)
        return wrong(r, "%s", "the values are not numbers");
    t->there = true;
    r->one.n_given++;
    return true;
}

/* Passes the current case to the receiver. Called when the next case begins. */
static void hand_out(reader *r)
{
    if (r->ours && r->one.n_in > 0 && !r->stop) {
        snprintf(r->one.name, sizeof r->one.name, "%s", r->name);
        r->taken++;
        r->stop = !r->take(r->user, &r->one);
    }
    clear(r);
    r->ours = false;
}

static bool read_line(reader *r, char *line)
{
    char *text, why[256];

    text = strchr(line, ' ');
    text = text != NULL ? text + 1 : line + strlen(line);
    if (strncmp(line, "case ", 5) == 0) {
        hand_out(r);
        snprintf(r->name, sizeof r->name, "%.127s", text);
        return true;
    }
    if (strncmp(line, "op ", 3) == 0) {
        r->ours = strcmp(text, r->op) == 0;
        if (!r->ours)
            return true;
        r->one.op = tn_op_find(text, 0);
        if (r->one.op == NULL)
            return wrong(r, "%s", tn_error_text());
        r->one.def = tn_op_definition(r->one.op);
        return true;
    }
    if (conform_line_of_other(line, "case op")) {
        hand_out(r);
        return true;
    }
    if (!conform_line_begins(line, r->ours ? CONFORM_OP_LINES : CONFORM_LINES, why, sizeof why))
        return wrong(r, "%s", why);
    if (!r->ours)
        return true;
    if (strncmp(line, "opt ", 4) == 0)
        return set_option(r, text);
    if (strncmp(line, "in ", 3) == 0)
        return read_input(r, text);
    if (strncmp(line, "cot ", 4) == 0)
        return read_cotangent(r, text - 1);
    if (strncmp(line, "out ", 4) == 0)
        return read_given(r, text);
    if (strncmp(line, "loose", 5) == 0)
        r->one.loose = true;
    if (strcmp(line, "refused") == 0)
        r->one.refused = true;
    return true;
}

static bool read_file(reader *r, const char *path)
{
    const char *why = NULL;
    conform_lines lines = { .file = conform_open(path, &why) };
    char *line;
    bool well = true;

    r->file = path;
    r->line = 0;
    if (lines.file == NULL)
        return wrong(r, "%s", why);
    while (well && !r->stop && conform_next_line(&lines, &line, &why)) {
        r->line++;
        well = read_line(r, line);
    }
    if (well && why != NULL)
        well = wrong(r, "%s", why);
    if (well)
        hand_out(r);
    conform_lines_end(&lines);
    return well;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int conform_is_text(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0;
}

int64_t conform_cases(const char *path, const char *op, bool (*take)(void *user, conform_case *one),
                      void *user, char *words, size_t size)
{
    reader r = { .op = op, .take = take, .user = user, .words = words, .size = size, .file = path };
    struct dirent **entries = NULL;
    struct stat about;
    bool well = true;
    int count = 0;

    words[0] = '\0';
    if (stat(path, &about) != 0)
        well = wrong(&r, "%s", strerror(errno));
    else if (!S_ISDIR(about.st_mode))
        well = read_file(&r, path);
    else
        count = scandir(path, &entries, conform_is_text, by_name);
    for (int i = 0; i < count; i++) {
        char full[4096];

        snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name);
        if (well && !r.stop)
            well = read_file(&r, full);
        free(entries[i]);
    }
    if (well && S_ISDIR(about.st_mode) && count < 1)
        well = wrong(&r, "%s", "the folder has no file *.txt");
    free(entries);
    r.one.keep = false;
    r.n_kept = 0;
    clear(&r);
    free(r.blocks);
    return well ? r.taken : -1;
}
