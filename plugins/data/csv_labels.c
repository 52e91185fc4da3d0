/* SPDX-License-Identifier: MIT
 *
 * The labels of a table: numbers, or classes, which get numbers and names here. */
#include "csv.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns --------------------------------------------------------------------------------- */

/* Fails because no column has the name. Lists the first names. */
static tn_status no_column(const struct csv_text *t, const char *option, const char *name,
                           char *const *names)
{
    char list[400] = "";
    int64_t used = 0;

    for (int64_t i = 0; names != NULL && i < t->columns && used < (int64_t)sizeof list - 80; i++)
        used += tn_snprint(list + used, sizeof list - (size_t)used, "%s%.60s", i > 0 ? ", " : "",
                           names[i]);
    return names != NULL
               ? tn_fail(TN_ERR_KEY, "%s: %s: no column %q; expected a column of the file: %s",
                         option, t->path, name, list)
               : tn_fail(TN_ERR_VALUE,
                         "%s: %s: columns have no names, got %q; expected a number, or header=True",
                         option, t->path, name);
}

tn_status csv_column(const struct csv_text *t, const char *option, const tn_value *which,
                     char *const *names, int64_t *out)
{
    int64_t number = which->kind == TN_VALUE_INT ? which->as.i : 0;

    *out = -1;
    if (which->kind == TN_VALUE_NONE)
        return TN_OK;
    if (which->kind == TN_VALUE_STRING) {
        for (int64_t i = 0; names != NULL && i < t->columns && *out < 0; i++)
            if (strcmp(names[i], which->as.s) == 0)
                *out = i;
        return *out >= 0 ? TN_OK : no_column(t, option, which->as.s, names);
    }
    if (which->kind != TN_VALUE_INT)
        return tn_fail(TN_ERR_TYPE, "%s: wrong type, got %s; expected a number or a name", option,
                       tn_value_kind_name(which->kind));
    if (number < -t->columns || number >= t->columns)
        return tn_fail(TN_ERR_VALUE,
                       "%s: out of range, got column %lld; expected %lld to %lld, a column of %s",
                       option, (long long)number, -(long long)t->columns, (long long)t->columns - 1,
                       t->path);
    *out = number < 0 ? number + t->columns : number;
    return TN_OK;
}

/* ---- collecting ------------------------------------------------------------------------------ */

tn_status csv_labels_kind(struct csv_labels *labels, const char *target)
{
    labels->numbers = strcmp(target, "number") == 0;
    if (labels->numbers || strcmp(target, "class") == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "target: unknown, got %q; expected 'class' or 'number'", target);
}

/* Makes room for one more label. */
static tn_status grow(struct csv_labels *l)
{
    int64_t capacity = l->capacity > 0 ? 2 * l->capacity : 1 << 10;
    void *grown;

    if (l->count < l->capacity)
        return TN_OK;
    grown = tn_realloc(l->numbers ? (void *)l->values : (void *)l->texts,
                       (size_t)capacity * (l->numbers ? sizeof *l->values : sizeof *l->texts));
    if (grown == NULL)
        return TN_ERR_MEMORY;
    if (l->numbers)
        l->values = grown;
    else
        l->texts = grown;
    l->capacity = capacity;
    return TN_OK;
}

tn_status csv_labels_add(struct csv_labels *l, const struct csv_text *t, int64_t column)
{
    char *field = t->fields[column];
    double number = 0;
    tn_status status = grow(l);

    if (status != TN_OK)
        return status;
    if (field[0] == '\0' ||
        (l->numbers && (!tn_read_float(field, &number) || !(fabs(number) <= FLT_MAX))))
        return tn_fail(
            TN_ERR_FORMAT, "%s: line %lld, column %lld: label: %s, got %q; expected a %s", t->path,
            (long long)t->line, (long long)column, field[0] == '\0' ? "missing" : "wrong value",
            field, l->numbers ? "number that float32 can hold" : "class");
    if (!l->numbers)
        status = csv_check_utf8(t, field, "label");
    if (status != TN_OK)
        return status;
    if (l->numbers)
        l->values[l->count++] = (float)number;
    else
        l->texts[l->count++] = field;
    return TN_OK;
}

void csv_labels_free(struct csv_labels *labels)
{
    tn_free(labels->values);
    tn_free(labels->texts);
    *labels = (struct csv_labels){ false };
}

/* ---- classes --------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of texts that are whole numbers. */
static int by_number(const void *a, const void *b)
{
    int64_t one = 0, other = 0;

    (void)tn_read_int(*(const char *const *)a, &one);
    (void)tn_read_int(*(const char *const *)b, &other);
    return (one > other) - (one < other);
}

/* Returns whether all labels are whole numbers from 0 on, and sets *least to the smallest. */
static bool are_numbers(const struct csv_labels *l, int64_t *least)
{
    *least = INT32_MAX;
    for (int64_t i = 0; i < l->count; i++) {
        int64_t number;

        if (!tn_read_int(l->texts[i], &number) || number < 0 || number > INT32_MAX)
            return false;
        *least = number < *least ? number : *least;
    }
    return true;
}

/* Labels that are the numbers of the classes. */
static void take_numbers(const struct csv_labels *l, struct data_memory *m)
{
    for (int64_t i = 0; i < l->count; i++) {
        (void)tn_read_int(l->texts[i], &m->labels[i]);
        m->classes = m->labels[i] >= m->classes ? m->labels[i] + 1 : m->classes;
    }
}

/* Numbers the classes in the order that `compare` says; their names are the texts. */
static tn_status number_texts(const struct csv_labels *l, struct data_memory *m,
                              int (*compare)(const void *, const void *))
{
    const char **sorted = tn_malloc((size_t)(l->count + 1) * sizeof *sorted);
    int64_t count = 0;
    tn_status status;

    if (sorted == NULL)
        return TN_ERR_MEMORY;
    memcpy(sorted, l->texts, (size_t)l->count * sizeof *sorted);
    qsort(sorted, (size_t)l->count, sizeof *sorted, compare);
    for (int64_t i = 0; i < l->count; i++)
        if (count == 0 || compare(&sorted[count - 1], &sorted[i]) != 0)
            sorted[count++] = sorted[i];
    for (int64_t i = 0; i < l->count; i++)
        m->labels[i] = (const char **)bsearch(&l->texts[i], sorted, (size_t)count, sizeof *sorted,
                                              compare) -
                       sorted;
    status = data_memory_names(m, sorted, count);
    tn_free(sorted);
    return status;
}

/* Numbers the classes as the option `classes` lists them. */
static tn_status number_listed(const struct csv_labels *l, const tn_value *names,
                               struct data_memory *m)
{
    const char **list = tn_calloc((size_t)names->count + 1, sizeof *list);
    tn_status status = list != NULL ? TN_OK : TN_ERR_MEMORY;

    for (uint32_t i = 0; i < names->count && status == TN_OK; i++) {
        if (names->as.list[i].kind != TN_VALUE_STRING)
            status = tn_fail(TN_ERR_TYPE,
                             "classes: entry %u: wrong type, got %s; expected a string", i,
                             tn_value_kind_name(names->as.list[i].kind));
        else
            list[i] = names->as.list[i].as.s;
    }
    for (int64_t i = 0; i < l->count && status == TN_OK; i++) {
        m->labels[i] = -1;
        for (uint32_t k = 0; k < names->count && m->labels[i] < 0; k++)
            m->labels[i] = strcmp(list[k], l->texts[i]) == 0 ? (int64_t)k : -1;
        if (m->labels[i] < 0)
            status = tn_fail(TN_ERR_FORMAT, "sample %lld: label: %q is none of the option classes",
                             (long long)i, l->texts[i]);
    }
    if (status == TN_OK)
        status = data_memory_names(m, list, names->count);
    tn_free(list);
    return status;
}

tn_status csv_labels_number(const struct csv_labels *l, const tn_value *names,
                            struct data_memory *m)
{
    bool listed = names->kind == TN_VALUE_LIST || names->kind == TN_VALUE_TUPLE;
    int64_t least;

    if (names->kind != TN_VALUE_NONE && !listed)
        return tn_fail(TN_ERR_TYPE, "classes: wrong type, got %s; expected a list of names",
                       tn_value_kind_name(names->kind));
    m->labels = tn_malloc((size_t)(l->count + 1) * sizeof *m->labels);
    if (m->labels == NULL)
        return TN_ERR_MEMORY;
    if (listed)
        return number_listed(l, names, m);
    if (!are_numbers(l, &least))
        return number_texts(l, m, by_text);
    /* Labels from 1 on are no numbers of classes: class 0 would have no samples. */
    if (least > 0)
        return number_texts(l, m, by_number);
    take_numbers(l, m);
    return TN_OK;
}
