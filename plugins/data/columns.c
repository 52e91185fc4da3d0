/* SPDX-License-Identifier: MIT
 *
 * The transform Columns: the row of a table as numbers. */
#include "data.h"

#include <math.h>
#include <string.h>

struct columns_options {
    tn_value columns;
};
static const tn_option columns_options[] = {
    TN_OPTION_ROW(struct columns_options, columns, NULL,
                  "what each column becomes: {'age': (31.5, 12.0)}, mean and deviation of numbers; "
                  "{'color': ['blue', 'red']}, a number for each text",
                  TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
    TN_OPTION_END
};

enum { MOST = 1 << 24 };

/* ---- options --------------------------------------------------------------------------------- */

static bool to_number(const tn_value *value, double *number)
{
    if (value->kind != TN_VALUE_FLOAT && value->kind != TN_VALUE_INT)
        return false;
    *number = value->kind == TN_VALUE_FLOAT ? value->as.f : (double)value->as.i;
    return isfinite(*number) != 0;
}

static tn_status check_numbers(const char *name, const tn_value *given)
{
    double mean, deviation;

    if (given->count != 2 || !to_number(&given->as.list[0], &mean) ||
        !to_number(&given->as.list[1], &deviation) || deviation <= 0)
        return tn_fail(TN_ERR_VALUE,
                       "Columns: column %q: wrong numbers; expected (MEAN, DEVIATION), both "
                       "finite, the deviation more than 0",
                       name);
    return TN_OK;
}

static tn_status check_texts(const char *name, const tn_value *given)
{
    for (uint32_t i = 0; i < given->count; i++)
        if (given->as.list[i].kind != TN_VALUE_STRING)
            return tn_fail(TN_ERR_TYPE,
                           "Columns: column %q: text %u: wrong type, got %s; expected "
                           "a string",
                           name, i, tn_value_kind_name(given->as.list[i].kind));
    return TN_OK;
}

static tn_status columns_check(const tn_transform_def *self, const void *options)
{
    const tn_value *dict = &((const struct columns_options *)options)->columns;
    int64_t numbers = 0;
    tn_status status = TN_OK;

    (void)self;
    if (dict->kind != TN_VALUE_DICT || dict->count == 0)
        return tn_fail(
            TN_ERR_TYPE,
            "Columns: columns: wrong value, got %s; expected a dictionary of one or more "
            "columns",
            dict->kind == TN_VALUE_DICT ? "{}" : tn_value_kind_name(dict->kind));
    for (uint32_t i = 0; i + 1 < dict->count && status == TN_OK; i += 2) {
        const tn_value *name = &dict->as.list[i], *given = name + 1;

        if (name->kind != TN_VALUE_STRING)
            status = tn_fail(TN_ERR_TYPE, "Columns: columns: a name is %s; expected strings",
                             tn_value_kind_name(name->kind));
        else if (given->kind == TN_VALUE_TUPLE)
            status = check_numbers(name->as.s, given);
        else if (given->kind == TN_VALUE_LIST)
            status = check_texts(name->as.s, given);
        else
            status = tn_fail(TN_ERR_TYPE,
                             "Columns: column %q: wrong type, got %s; expected a tuple "
                             "of two numbers, or a list of texts",
                             name->as.s, tn_value_kind_name(given->kind));
        numbers += given->kind == TN_VALUE_LIST ? given->count : 1;
    }
    if (status == TN_OK && numbers > MOST)
        status = tn_fail(TN_ERR_VALUE, "Columns: too many numbers, got %lld; expected at most %d",
                         (long long)numbers, MOST);
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Whether the cell is this text; a number is the text that has its value. */
static bool is_text(const tn_value *cell, const char *text)
{
    double one, other;

    if (cell->kind == TN_VALUE_STRING)
        return strcmp(cell->as.s, text) == 0;
    return to_number(cell, &one) && tn_read_float(text, &other) && one == other;
}

/* Sets the numbers of a column; *to is moved behind them. `where` is the row for messages, or NULL.
 * A missing value is the mean of numbers, and none of the texts. So is a text that the list does
 * not have. */
static tn_status put(const char *where, const char *name, const tn_value *cell,
                     const tn_value *given, float **to)
{
    double number = 0, mean = 0, deviation = 1;

    if (given->kind == TN_VALUE_LIST) {
        for (uint32_t i = 0; i < given->count; i++)
            *(*to)++ = cell->kind != TN_VALUE_NONE && is_text(cell, given->as.list[i].as.s);
        return TN_OK;
    }
    (void)to_number(&given->as.list[0], &mean);
    (void)to_number(&given->as.list[1], &deviation);
    if (cell->kind == TN_VALUE_NONE)
        number = mean;
    else if (!to_number(cell, &number) && cell->kind == TN_VALUE_FLOAT)
        return tn_fail(TN_ERR_FORMAT,
                       "Columns: %s%scolumn %q: wrong value, got %g; expected a finite number",
                       where != NULL ? where : "", where != NULL ? ": " : "", name, cell->as.f);
    else if (!to_number(cell, &number))
        return tn_fail(TN_ERR_FORMAT,
                       "Columns: %s%scolumn %q: wrong value, got %q; expected a finite "
                       "number, as in the rows of the training",
                       where != NULL ? where : "", where != NULL ? ": " : "", name,
                       cell->kind == TN_VALUE_STRING ? cell->as.s : tn_value_kind_name(cell->kind));
    *(*to)++ = (float)((number - mean) / deviation);
    return TN_OK;
}

static tn_status columns_apply(tn_transform_args *args)
{
    const tn_value *dict = &((const struct columns_options *)args->options)->columns;
    tn_value row = tn_pack_count(args->in) > 0 ? tn_pack_at(args->in, 0) : tn_value_none();
    int64_t count = 0, entries = tn_pack_count(args->in);
    tn_value last = entries > 1 ? tn_pack_at(args->in, entries - 1) : tn_value_none();
    const char *where = last.kind == TN_VALUE_STRING ? last.as.s : NULL; /* path and row */
    tn_status status = TN_OK;
    tn_tensor *x;
    float *to;

    if (row.kind != TN_VALUE_DICT)
        return tn_fail(TN_ERR_TYPE,
                       "Columns: entry 0 of the sample: wrong kind, got %s; expected the row of a "
                       "table, which the datasets Table and TableRows give",
                       tn_value_kind_name(row.kind));
    for (uint32_t i = 1; i < dict->count; i += 2)
        count += dict->as.list[i].kind == TN_VALUE_LIST ? dict->as.list[i].count : 1;
    x = tn_tensor_empty(TN_SHAPE(count), TN_F32, tn_default_device());
    to = x != NULL ? tn_tensor_data(x) : NULL;
    if (to == NULL && count > 0)
        return tn_error_last_code();
    for (uint32_t i = 0; i + 1 < dict->count && status == TN_OK; i += 2) {
        const char *name = dict->as.list[i].as.s;
        const tn_value *cell = tn_value_get(&row, name);

        status = cell != NULL
                     ? put(where, name, cell, &dict->as.list[i + 1], &to)
                     : tn_fail(TN_ERR_KEY,
                               "Columns: %s%sthe row has no column %q; expected all "
                               "columns that the training had",
                               where != NULL ? where : "", where != NULL ? ": " : "", name);
    }
    return status == TN_OK ? data_image_put(args, x) : status;
}

const tn_transform_def data_columns = {
    TN_HEAD(tn_transform_def),
    .name = "Columns",
    .help = "the row of a table as float32: standardized numbers, and a number for each text",
    .options = columns_options,
    .data_size = sizeof(struct columns_options),
    .check = columns_check,
    .apply = columns_apply,
};
