/* SPDX-License-Identifier: MIT
 *
 * --standardize: computes from the samples of the training how their values become numbers of mean
 * 0 and deviation 1, and makes a transform of it, which the file of the model keeps. */
#include "report_private.h"
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

/* The transforms and the dataset that this file knows by name. */
static const char rows_transform[] = "Columns", rows_reader[] = "TableRows",
                  float_transform[] = "ToFloat()", standard_transform[] = "Normalize";

enum { TEXTS_MOST = 1000 };

/* ---- statistics ------------------------------------------------------------------------------ */

/* Numbers whose mean and deviation are computed as they come. */
typedef struct moments {
    int64_t count;
    double mean, squares; /* the sum of the squared differences from the mean */
} moments;

static void moments_add(moments *m, double number)
{
    double apart = number - m->mean;

    m->mean += apart / (double)++m->count;
    m->squares += apart * (number - m->mean);
}

/* Of numbers that are all the same the deviation is 1, so they become 0. */
static double deviation_of(const moments *m)
{
    double deviation = m->count > 0 ? sqrt(m->squares / (double)m->count) : 0;

    return deviation > 1e-30 ? deviation : 1;
}

typedef tn_status take_entry(void *user, const tn_value *entry, int64_t sample);

/* Calls `take` with entry 0 of each sample. */
static tn_status each_sample(const run *r, tn_dataset *data, take_entry *take, void *user)
{
    uint64_t seed = (uint64_t)setting_count(r->set, SET_SEED);
    bool skip = setting_on(r->set, SET_SKIP_DAMAGED);
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_dataset_count(data) && status == TN_OK; i++) {
        TN_SCOPE;
        uint64_t mark = tn_error_mark();
        tn_pack *pack = tn_pack_new();
        tn_value entry = tn_value_none();

        status = pack != NULL ? tn_dataset_get(data, i, seed, 0, pack) : TN_ERR_MEMORY;
        if (status == TN_OK) {
            entry = tn_pack_at(pack, 0);
            status = take(user, &entry, i);
        } else if (skip && status != TN_ERR_MEMORY) {
            tn_error_restore(mark);
            status = TN_OK;
        }
        tn_pack_drop(pack);
        if (status == TN_OK && signals_asked() != 0)
            status = tn_fail(TN_ERR_CANCELLED, "stopped by the user");
    }
    return status;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct tensor_fit {
    tn_dtype dtype;
    int64_t channels; /* size of dimension 0, 0: no sample yet */
    moments *at;
} tensor_fit;

static tn_status first_tensor(tensor_fit *fit, const tn_tensor *x)
{
    fit->dtype = tn_tensor_dtype(x);
    fit->channels = tn_tensor_ndim(x) > 0 ? tn_tensor_size(x, 0) : 1;
    fit->at = tn_calloc((size_t)fit->channels + 1, sizeof *fit->at);
    return fit->at != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status add_tensor(void *user, const tn_value *entry, int64_t sample)
{
    tensor_fit *fit = user;
    tn_tensor *x = entry->kind == TN_VALUE_TENSOR ? entry->as.tensor : NULL;
    int64_t channels = x == NULL ? -1 : tn_tensor_ndim(x) > 0 ? tn_tensor_size(x, 0) : 1, part;
    double scale = 1, *values;
    tn_status status = TN_OK;

    if (x == NULL)
        return tn_fail(TN_ERR_TYPE,
                       "sample %lld: entry 0 is %s; expected a tensor, or the row of a table",
                       (long long)sample, tn_value_kind_name(entry->kind));
    if (fit->at == NULL)
        status = first_tensor(fit, x);
    if (status == TN_OK && channels != fit->channels)
        return tn_fail(TN_ERR_VALUE,
                       "sample %lld: dimension 0 has %lld channels; expected %lld, as in the first "
                       "sample",
                       (long long)sample, (long long)channels, (long long)fit->channels);
    values = status == TN_OK ? work_numbers(x) : NULL;
    if (values == NULL)
        return status != TN_OK ? status : tn_error_last_code();
    if (tn_tensor_dtype(x) == TN_U8)
        scale = 1.0 / 255; /* as float_transform does */
    part = channels > 0 ? tn_tensor_numel(x) / channels : 0;
    for (int64_t i = 0; i < channels * part && status == TN_OK; i++) {
        if (!isfinite(values[i]))
            status = tn_fail(TN_ERR_VALUE,
                             "sample %lld: channel %lld has a value that is not finite",
                             (long long)sample, (long long)(i / part));
        else
            moments_add(&fit->at[i / part], values[i] * scale);
    }
    tn_free(values);
    return status;
}

static void write_list(report_text *text, const tensor_fit *fit, bool deviations)
{
    for (int64_t i = 0; i < fit->channels; i++)
        report_text_add(text, "%s%.9g", i > 0 ? ", " : "[",
                        deviations ? deviation_of(&fit->at[i]) : fit->at[i].mean);
    report_text_put(text, fit->channels > 0 ? "]" : "[]");
}

/* Adds the transform that standardizes what the transforms of the text give. */
static tn_status fit_tensors(run *r, tn_dataset *data, report_text *text)
{
    const char *before = setting_text(r->set, SET_TRANSFORM);
    tn_dataset *made = before != NULL ? tn_dataset_transform(data, before) : tn_dataset_keep(data);
    tensor_fit fit = { .at = NULL };
    tn_status status = made != NULL ? each_sample(r, made, add_tensor, &fit)
                                    : tn_error_prefix("--transform: ");

    if (made != NULL && status != TN_OK && status != TN_ERR_CANCELLED)
        tn_error_prefix("--standardize: ");
    else if (status == TN_OK && fit.at == NULL)
        status = tn_fail(TN_ERR_VALUE, "--standardize: no sample could be read");
    if (status == TN_OK) {
        if (fit.dtype != TN_F32)
            report_text_add(text, "%s, ", float_transform);
        report_text_add(text, "%s(mean=", standard_transform);
        write_list(text, &fit, false);
        report_text_put(text, ", std=");
        write_list(text, &fit, true);
        report_text_put(text, ")");
        progress_say(r->progress, "standardized: %lld channel%s of the samples",
                     (long long)fit.channels, fit.channels == 1 ? "" : "s");
    }
    tn_free(fit.at);
    tn_dataset_drop(made);
    return status;
}

/* ---- rows of a table ------------------------------------------------------------------------- */

typedef struct column {
    char *name;
    bool has_texts;
    moments numbers;
    char **texts; /* sorted */
    int64_t count;
} column;

typedef struct row_fit {
    column *at;
    int64_t count;
    bool collecting; /* the texts of columns that have texts */
} row_fit;

static void row_fit_free(row_fit *fit)
{
    for (int64_t i = 0; i < fit->count; i++) {
        for (int64_t k = 0; k < fit->at[i].count; k++)
            tn_free(fit->at[i].texts[k]);
        tn_free(fit->at[i].texts);
        tn_free(fit->at[i].name);
    }
    tn_free(fit->at);
}

static tn_status first_row(row_fit *fit, const tn_value *row)
{
    fit->at = tn_calloc((size_t)row->count / 2 + 1, sizeof *fit->at);
    if (fit->at == NULL)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i + 1 < row->count; i += 2) {
        fit->at[fit->count].name = tn_strdup(row->as.list[i].as.s);
        if (fit->at[fit->count++].name == NULL)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

/* Adds a text to the sorted list of a column, unless it is there. */
static tn_status add_text(column *c, const char *text)
{
    int64_t low = 0, high = c->count;
    char **grown;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (strcmp(c->texts[middle], text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < c->count && strcmp(c->texts[low], text) == 0)
        return TN_OK;
    if (c->count == TEXTS_MOST)
        return tn_fail(TN_ERR_VALUE,
                       "column %q: more than %d different texts; expected a column of few, or the "
                       "option without=[%q] of the dataset",
                       c->name, TEXTS_MOST, c->name);
    grown = tn_realloc(c->texts, (size_t)(c->count + 1) * sizeof *grown);
    if (grown == NULL)
        return TN_ERR_MEMORY;
    c->texts = grown;
    memmove(grown + low + 1, grown + low, (size_t)(c->count - low) * sizeof *grown);
    grown[low] = tn_strdup(text);
    c->count += grown[low] != NULL;
    return grown[low] != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status add_cell(const row_fit *fit, column *c, const tn_value *cell)
{
    char text[64];

    if (cell->kind == TN_VALUE_NONE)
        return TN_OK;
    if (cell->kind != TN_VALUE_STRING && cell->kind != TN_VALUE_FLOAT)
        return tn_fail(TN_ERR_TYPE, "column %q: %s; expected numbers and texts", c->name,
                       tn_value_kind_name(cell->kind));
    if (!fit->collecting) {
        c->has_texts = c->has_texts || cell->kind == TN_VALUE_STRING;
        if (cell->kind == TN_VALUE_FLOAT && isfinite(cell->as.f))
            moments_add(&c->numbers, cell->as.f);
        return TN_OK;
    }
    if (!c->has_texts)
        return TN_OK;
    if (cell->kind == TN_VALUE_STRING)
        return add_text(c, cell->as.s);
    tn_snprint(text, sizeof text, "%g", cell->as.f);
    return add_text(c, text);
}

static tn_status add_row(void *user, const tn_value *row, int64_t sample)
{
    row_fit *fit = user;
    tn_status status = fit->at == NULL && row->kind == TN_VALUE_DICT ? first_row(fit, row) : TN_OK;

    for (int64_t i = 0; i < fit->count && status == TN_OK; i++) {
        const tn_value *cell = tn_value_get(row, fit->at[i].name);

        status = cell != NULL ? add_cell(fit, &fit->at[i], cell)
                              : tn_fail(TN_ERR_KEY,
                                        "sample %lld: no column %q; expected all columns "
                                        "of the first sample",
                                        (long long)sample, fit->at[i].name);
    }
    return status;
}

static tn_status write_columns(report_text *text, const row_fit *fit, int64_t *numbers)
{
    report_text_add(text, "%s({", rows_transform);
    for (int64_t i = 0; i < fit->count; i++) {
        const column *c = &fit->at[i];

        if (!c->has_texts && c->numbers.count == 0)
            return tn_fail(TN_ERR_VALUE,
                           "column %q: all its values are missing; expected the option "
                           "without=[%q] of the dataset",
                           c->name, c->name);
        report_text_add(text, "%s%q: ", i > 0 ? ", " : "", c->name);
        if (!c->has_texts)
            report_text_add(text, "(%.9g, %.9g)", c->numbers.mean, deviation_of(&c->numbers));
        for (int64_t k = 0; k < c->count; k++)
            report_text_add(text, "%s%q", k > 0 ? ", " : "[", c->texts[k]);
        report_text_put(text, c->has_texts ? "]" : "");
        *numbers += c->has_texts ? c->count : 1;
    }
    report_text_put(text, "})");
    return text->status;
}

enum { TEXTS_MANY = 20 };

/* Names columns whose texts hardly repeat: dates, keys, and numbers that are written in another way
 * would become as many numbers as there are samples. */
static void tell_texts(run *r, const row_fit *fit, int64_t samples)
{
    for (int64_t i = 0; i < fit->count; i++) {
        const column *c = &fit->at[i];

        if (c->count > TEXTS_MANY && c->count > samples / 2)
            progress_say(
                r->progress,
                "column \"%s\" has %lld different texts, such as \"%s\", and becomes as many "
                "numbers; without=['%s'] leaves it out, and numbers need a decimal point",
                c->name, (long long)c->count, c->texts[0], c->name);
    }
}

/* Adds the transform that makes numbers of rows. */
static tn_status fit_rows(run *r, tn_dataset *data, report_text *text)
{
    row_fit fit = { .at = NULL };
    int64_t numbers = 0;
    tn_status status = each_sample(r, data, add_row, &fit);

    fit.collecting = true;
    if (status == TN_OK)
        status = each_sample(r, data, add_row, &fit);
    if (status == TN_OK)
        status = write_columns(text, &fit, &numbers);
    if (status == TN_OK)
        tell_texts(r, &fit, tn_dataset_count(data));
    if (status == TN_OK)
        progress_say(r->progress,
                     "standardized: %lld column%s of the table, which become %lld "
                     "number%s",
                     (long long)fit.count, fit.count == 1 ? "" : "s", (long long)numbers,
                     numbers == 1 ? "" : "s");
    else if (status != TN_ERR_CANCELLED)
        tn_error_prefix("--standardize: ");
    row_fit_free(&fit);
    return status;
}

/* ---- the transform --------------------------------------------------------------------------- */

/* Adds the transforms of a text, which may be a list. */
static void add_given(report_text *text, const char *given)
{
    size_t length;

    given += strspn(given, " \t\n");
    length = strlen(given);
    while (length > 0 && strchr(" \t\n", given[length - 1]) != NULL)
        length--;
    if (length > 1 && given[0] == '[' && given[length - 1] == ']') {
        given++;
        length -= 2;
        while (length > 0 && strchr(" \t\n,", given[length - 1]) != NULL)
            length--;
    }
    report_text_bytes(text, given, length);
}

static bool sample_is_row(tn_dataset *data)
{
    uint64_t mark = tn_error_mark();
    tn_pack *pack = tn_pack_new();
    bool row = pack != NULL && tn_dataset_get(data, 0, 0, 0, pack) == TN_OK &&
               tn_pack_at(pack, 0).kind == TN_VALUE_DICT;

    tn_pack_drop(pack);
    tn_error_restore(mark);
    return row;
}

/* Rows become numbers before the transform that is given, other samples are standardized after it.
 */
static tn_status fit_now(run *r)
{
    const char *given = setting_text(r->set, SET_TRANSFORM);
    report_text text = { .status = TN_OK };
    bool rows = sample_is_row(r->data);
    size_t before;
    tn_status status = TN_OK;

    if (rows && given != NULL && strstr(given, rows_transform) != NULL)
        return tn_fail(TN_ERR_VALUE,
                       "--standardize: the transform has %s already, which makes numbers of the "
                       "rows; expected one of them (that of the model's file needs neither)",
                       rows_transform);
    report_text_put(&text, "[");
    if (rows)
        status = fit_rows(r, r->data, &text);
    before = text.size;
    if (status == TN_OK && rows && given != NULL)
        report_text_put(&text, ", ");
    if (status == TN_OK && given != NULL)
        add_given(&text, given);
    if (!rows && text.size > before)
        report_text_put(&text, ", ");
    if (status == TN_OK && !rows)
        status = fit_tensors(r, r->data, &text);
    report_text_put(&text, "]");
    if (status == TN_OK)
        status = text.status;
    if (status == TN_OK) {
        r->fitted = tn_strdup(text.bytes);
        status = r->fitted != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    report_text_drop(&text);
    return status;
}

tn_status fit_transform(run *r)
{
    int64_t at = r->resumed != NULL ? tn_state_find(r->resumed, "value.transform") : -1;
    tn_value kept = at >= 0 ? tn_state_value(r->resumed, at) : tn_value_none();

    if (!setting_on(r->set, SET_STANDARDIZE) && fit_text(r) == NULL && sample_is_row(r->data))
        return tn_fail(TN_ERR_VALUE, "--data: samples are rows of a table; expected --standardize, "
                                     "which makes numbers of them");
    if (!setting_on(r->set, SET_STANDARDIZE))
        return TN_OK;
    if (kept.kind != TN_VALUE_STRING)
        return fit_now(r);
    r->fitted = tn_strdup(kept.as.s);
    return r->fitted != NULL ? TN_OK : TN_ERR_MEMORY;
}

const char *fit_text(const run *r)
{
    return r->fitted != NULL ? r->fitted : setting_text(r->set, SET_TRANSFORM);
}

bool work_reads(const char *dataset, const char *transform)
{
    size_t length = sizeof rows_transform - 1;
    bool takes_rows;

    if (transform != NULL)
        transform += strspn(transform, "[ \t\n");
    takes_rows = transform != NULL && strncmp(transform, rows_transform, length) == 0 &&
                 transform[length] == '(';
    return takes_rows == (strcmp(dataset, rows_reader) == 0);
}
