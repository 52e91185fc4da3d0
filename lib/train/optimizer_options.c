/* SPDX-License-Identifier: MIT
 *
 * Groups of parameters, and their options: set by a spec, by text or by name. */
#include "core/base/vector.h"
#include "lib/train/private.h"

#include <math.h>

/* ---- making a group's options ---------------------------------------------------------------- */

/* Returns the place of the learning rate in an option struct, NULL if there is none. */
static double *rate_in(const tn_optimizer *optimizer, void *options)
{
    const tn_option *row = optimizer->def->options != NULL
                               ? tn__options_find(optimizer->def->options, "lr")
                               : NULL;

    return row != NULL && row->kind == TN_OPTION_KIND_FLOAT
               ? (double *)(void *)((char *)options + row->offset)
               : NULL;
}

tn_status tn__optimizer_put_rate(tn_optimizer *optimizer, tn__group *group, double rate)
{
    double *place = rate_in(optimizer, group->data);

    if (place == NULL)
        return tn_fail(TN_ERR_KEY, "optimizer %s: no option \"lr\" that is a number",
                       optimizer->def->name);
    *place = group->put_rate = rate;
    return TN_OK;
}

/* Calls the rule's check. As in PyTorch, a rate that a scheduler has put there may be below 0, so
 * it is not checked again when another option changes. */
static tn_status run_check(tn_optimizer *optimizer, void *options)
{
    double *place = rate_in(optimizer, options), rate = place != NULL ? *place : 0;
    bool put = false;

    if (optimizer->def->check == NULL)
        return TN_OK;
    for (int64_t i = 0; rate < 0 && i < optimizer->n_groups; i++)
        put = put || optimizer->groups[i].put_rate == rate;
    if (put)
        *place = 0;
    const char *before = tn__error_plugin(optimizer->plugin != NULL ? optimizer->plugin->id : "");
    tn_status status = tn__error_status_of(optimizer->def->check(optimizer, options),
                                           optimizer->def->name);
    tn__error_plugin(before);
    if (put)
        *place = rate;
    return status;
}

void tn__optimizer_group_clear(tn__group *group)
{
    tn__options_release(group->option_block);
    tn_free(group->data);
    *group = (tn__group){ .initial_rate = NAN };
}

/* Makes a group whose option struct has these arguments, and lets the rule check the struct. */
static tn_status fill(tn_optimizer *optimizer, const char *text, const tn_value *values,
                      const char *const *names, const int32_t *columns, int64_t count,
                      tn__group *group)
{
    char what[128];
    tn_status status;

    *group = (tn__group){ .initial_rate = NAN };
    group->data = tn_calloc(1, optimizer->def->data_size > 0 ? optimizer->def->data_size : 1);
    if (group->data == NULL)
        return TN_ERR_MEMORY;
    tn_snprint(what, sizeof what, "optimizer %s", optimizer->def->name);
    status = tn__options_fill(optimizer->def->options, group->data, what, text, values, names,
                              columns, count, &group->option_block);
    if (status == TN_OK)
        status = run_check(optimizer, group->data);
    if (status != TN_OK)
        tn__optimizer_group_clear(group);
    return status;
}

/* Returns all options with their names as text: "lr=0.001, betas=(0.9, 0.999)". */
static char *print_all(const tn_optimizer *optimizer, const void *data)
{
    tn__text text = { 0 };

    if (optimizer->def->options != NULL)
        tn__options_print(optimizer->def->options, data, true, &text);
    return tn__text_take(&text);
}

/* Parses NAME(options) with the name of the optimizer. */
static tn__spec *parse_options(const tn_optimizer *optimizer, const char *options)
{
    tn__text text = { 0 };
    tn__spec *spec;
    char *whole;

    tn__text_add(&text, "%s(%s)", optimizer->def->name, options);
    whole = tn__text_take(&text);
    spec = whole != NULL ? tn__spec_parse(whole) : NULL;
    tn_free(whole);
    return spec;
}

/* Returns whether one of the names is `name`. */
static bool names_option(const char *const *names, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++)
        if (names[i] != NULL && strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Makes a group with the given options, and those options of `base` that are not among them. `text`
 * and `columns` say where the options were written; both may be NULL. */
static tn_status fill_merged(tn_optimizer *optimizer, const tn__spec *base, const char *text,
                             const tn_value *values, const char *const *names,
                             const int32_t *columns, int64_t count, tn__group *group)
{
    size_t most = (size_t)(base->count + count + 1);
    tn_value *all = tn_calloc(most, sizeof *all + sizeof(char *) + sizeof(int32_t));
    const char **all_names = (const char **)(void *)(all + most);
    int32_t *all_columns = (int32_t *)(void *)(all_names + most);
    int64_t total = 0;
    tn_status status;

    if (all == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++, total++) {
        all[total] = values[i];
        all_names[total] = names[i];
        all_columns[total] = columns != NULL ? columns[i] : 1;
    }
    for (int64_t i = 0; i < base->count; i++)
        if (!names_option(names, count, base->names[i])) {
            all[total] = base->values[i];
            all_names[total] = base->names[i];
            all_columns[total++] = 1;
        }
    status = fill(optimizer, text, all, all_names, text != NULL ? all_columns : NULL, total, group);
    tn_free(all);
    return status;
}

/* Like fill_merged(), but parses the options: `text` changes those in `base`. */
static tn_status fill_from_text(tn_optimizer *optimizer, const char *base, const char *text,
                                tn__group *group)
{
    tn__spec *before = parse_options(optimizer, base), *changes = NULL;
    tn_status status = TN_OK;

    if (before != NULL)
        changes = parse_options(optimizer, text);
    if (changes == NULL)
        status = tn_error_last_code();
    for (int64_t i = 0; changes != NULL && i < changes->count && status == TN_OK; i++)
        if (changes->names[i] == NULL)
            status = tn_fail(TN_ERR_FORMAT,
                             "optimizer %s: option %lld of %q: it has no name; expected name=value",
                             optimizer->def->name, (long long)i + 1, text);
    if (status == TN_OK)
        status = fill_merged(optimizer, before, changes->text, changes->values, changes->names,
                             changes->columns, changes->count, group);
    tn__spec_free(before);
    tn__spec_free(changes);
    return status;
}

tn_status tn__optimizer_group_from(tn_optimizer *optimizer, int64_t group, const tn_value *values,
                                   const char *const *names, int64_t count, tn__group *out)
{
    char *now = print_all(optimizer, optimizer->groups[group].data);
    tn__spec *base = now != NULL ? parse_options(optimizer, now) : NULL;
    tn_status status = TN_ERR_MEMORY;

    if (base != NULL)
        status = fill_merged(optimizer, base, NULL, values, names, NULL, count, out);
    else if (now != NULL)
        status = tn_error_last_code();
    tn__spec_free(base);
    tn_free(now);
    return status;
}

/* The address of the struct must not change, because rules and callers may hold it. */
void tn__optimizer_group_take(tn_optimizer *optimizer, int64_t group, tn__group *with)
{
    tn__group *at = &optimizer->groups[group];

    memcpy(at->data, with->data, optimizer->def->data_size);
    tn__options_release(at->option_block);
    at->option_block = with->option_block;
    if (!isnan(with->initial_rate))
        at->initial_rate = with->initial_rate;
    at->put_rate = with->put_rate != 0 ? with->put_rate : at->put_rate;
    with->option_block = NULL;
    tn__optimizer_group_clear(with);
}

tn_status tn__optimizer_group_new(tn_optimizer *optimizer, const tn__spec *spec, const char *text)
{
    tn__group group;
    tn_status status;

    if (!tn__vector_room(&optimizer->groups, &optimizer->groups_capacity, optimizer->n_groups + 1,
                         sizeof *optimizer->groups))
        return TN_ERR_MEMORY;
    status = spec != NULL
                 ? fill(optimizer, spec->text, spec->values, spec->names, spec->columns,
                        spec->count, &group)
                 : fill_from_text(optimizer, optimizer->defaults, text != NULL ? text : "", &group);
    if (status != TN_OK)
        return status;
    if (optimizer->defaults == NULL &&
        (optimizer->defaults = print_all(optimizer, group.data)) == NULL) {
        tn__optimizer_group_clear(&group);
        return TN_ERR_MEMORY;
    }
    optimizer->groups[optimizer->n_groups++] = group;
    return TN_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

int64_t tn_optimizer_group_count(const tn_optimizer *optimizer)
{
    return tn__not_null(optimizer, "tn_optimizer_group_count: optimizer") ? optimizer->n_groups : 0;
}

int64_t tn_optimizer_group_of(const tn_optimizer *optimizer, int64_t index)
{
    const tn__param *param = tn__optimizer_param(optimizer, index);

    return param != NULL ? param->group : -1;
}

static tn__group *group_at(const tn_optimizer *optimizer, int64_t group, const char *what)
{
    if (optimizer == NULL) {
        tn_error_null(what);
        return NULL;
    }
    if (group >= 0 && group < optimizer->n_groups)
        return &optimizer->groups[group];
    tn__error_index(group, optimizer->n_groups, "%s: group: ", what);
    return NULL;
}

void *tn_optimizer_data(const tn_optimizer *optimizer, int64_t group)
{
    const tn__group *at = group_at(optimizer, group, "tn_optimizer_data");

    return at != NULL ? at->data : NULL;
}

/* ---- options by text ------------------------------------------------------------------------- */

/* Changes options of a group. If `dry`, only checks whether the change is possible. */
static tn_status group_set_options(tn_optimizer *optimizer, tn__group *group, const char *text,
                                   bool dry)
{
    char *now = print_all(optimizer, group->data);
    tn__group changed;
    tn_status status = now != NULL ? fill_from_text(optimizer, now, text, &changed) : TN_ERR_MEMORY;

    tn_free(now);
    if (status != TN_OK)
        return status;
    if (dry) {
        tn__optimizer_group_clear(&changed);
        return TN_OK;
    }
    tn__optimizer_group_take(optimizer, group - optimizer->groups, &changed);
    return TN_OK;
}

typedef tn_status change_function(tn_optimizer *optimizer, tn__group *group, const void *with,
                                  bool dry);

/* Calls `change` for one group, or for all groups (`group` is -1): then either all groups change or
 * none. */
static tn_status each_group(tn_optimizer *optimizer, int64_t group, const char *what,
                            change_function *change, const void *with)
{
    tn__group *at;
    tn_status status = TN_OK;

    if (group != -1) {
        at = group_at(optimizer, group, what);
        return at != NULL ? change(optimizer, at, with, false) : tn_error_last_code();
    }
    for (int dry = optimizer->n_groups > 1; dry >= 0; dry--)
        for (int64_t i = 0; i < optimizer->n_groups && status == TN_OK; i++)
            status = change(optimizer, &optimizer->groups[i], with, dry != 0);
    return status;
}

static tn_status change_text(tn_optimizer *optimizer, tn__group *group, const void *with, bool dry)
{
    return group_set_options(optimizer, group, with, dry);
}

tn_status tn_optimizer_set_options(tn_optimizer *optimizer, int64_t group, const char *options)
{
    if (optimizer == NULL || options == NULL)
        return tn__error_null_of("tn_optimizer_set_options", "optimizer, options", optimizer,
                                 options);
    return each_group(optimizer, group, "tn_optimizer_set_options", change_text, options);
}

int64_t tn_optimizer_options(const tn_optimizer *optimizer, int64_t group, char *out, size_t size)
{
    const tn__group *at = group_at(optimizer, group, "tn_optimizer_options");
    tn__text text = { 0 };

    if (at == NULL)
        return -1;
    if (optimizer->def->options != NULL)
        tn__options_print(optimizer->def->options, at->data, true, &text);
    return tn__text_give(&text, out, size);
}

int64_t tn_optimizer_spec(const tn_optimizer *optimizer, char *out, size_t size)
{
    tn__text text = { 0 };

    if (optimizer == NULL) {
        tn_error_null("tn_optimizer_spec: optimizer");
        return -1;
    }
    tn__text_add(&text, "%s(", optimizer->def->name);
    if (optimizer->def->options != NULL)
        tn__options_print(optimizer->def->options, optimizer->groups[0].data, true, &text);
    tn__text_put(&text, ")", 1);
    return tn__text_give(&text, out, size);
}

/* ---- numbers by name ------------------------------------------------------------------------- */

static bool is_numeric(const tn_option *option)
{
    return option->kind == TN_OPTION_KIND_FLOAT || option->kind == TN_OPTION_KIND_INT ||
           option->kind == TN_OPTION_KIND_BOOL || option->kind == TN_OPTION_KIND_FLOATS;
}

/* A numeric option: "lr", or an element of a list, "betas[1]". */
struct number {
    const tn_option *option;
    int64_t at; /* index in a list (TN_OPTION_KIND_FLOATS) */
    const char *name;
};

static tn_status no_number(const tn_optimizer *optimizer, const char *name)
{
    tn__text known = { 0 };
    tn_status status;

    for (const tn_option *row = optimizer->def->options;
         row != NULL && row->kind != TN_OPTION_KIND_END; row++)
        if (is_numeric(row))
            tn__text_add(&known, "%s%s%s", known.length > 0 ? ", " : "", row->name,
                         row->kind == TN_OPTION_KIND_FLOATS ? "[i]" : "");
    status = tn_fail(TN_ERR_KEY, "optimizer %s: no option %q; its numeric options: %s",
                     optimizer->def->name, name, known.at != NULL ? known.at : "none");
    tn__text_free(&known);
    return status;
}

static tn_status number_find(const tn_optimizer *optimizer, const char *name, struct number *out)
{
    const char *bracket = strchr(name, '[');
    size_t length = bracket != NULL ? (size_t)(bracket - name) : strlen(name), digits = 0;
    char base[64], place[24];

    *out = (struct number){ .name = name };
    tn_snprint(base, sizeof base, "%.*s", (int)(length < 63 ? length : 63), name);
    out->option = tn__options_find(optimizer->def->options, base);
    if (bracket != NULL) {
        digits = strlen(bracket + 1);
        tn_snprint(place, sizeof place, "%.*s", (int)(digits < 20 ? digits - (digits > 0) : 20),
                   bracket + 1);
        if (digits < 2 || bracket[digits] != ']' || !tn_read_int(place, &out->at) || out->at < 0)
            out->option = NULL;
    }
    if (out->option == NULL)
        return no_number(optimizer, name);
    if (!is_numeric(out->option))
        return tn_fail(TN_ERR_TYPE,
                       "option %q of optimizer %s: not a number; expected a numeric option "
                       "(tn_optimizer_set_options sets options of any kind)",
                       name, optimizer->def->name);
    if (out->option->kind == TN_OPTION_KIND_FLOATS && bracket == NULL)
        return tn_fail(TN_ERR_TYPE,
                       "option %q of optimizer %s: a list, not a number; expected one of its "
                       "elements, as in %s[0]",
                       name, optimizer->def->name, base);
    if (out->option->kind != TN_OPTION_KIND_FLOATS && bracket != NULL)
        return tn_fail(TN_ERR_TYPE,
                       "option %q of optimizer %s: %s is one number, not a list; expected %q", name,
                       optimizer->def->name, base, base);
    return TN_OK;
}

static const tn_floats *floats_of(const struct number *number, const void *data)
{
    return (const tn_floats *)(const void *)((const char *)data + number->option->offset);
}

static tn_status number_read(const tn_optimizer *optimizer, const struct number *number,
                             const void *data, double *value)
{
    const char *at = (const char *)data + number->option->offset;

    switch (number->option->kind) {
    case TN_OPTION_KIND_FLOAT: *value = *(const double *)(const void *)at; break;
    case TN_OPTION_KIND_INT: *value = (double)*(const int64_t *)(const void *)at; break;
    case TN_OPTION_KIND_BOOL: *value = *(const bool *)(const void *)at ? 1.0 : 0.0; break;
    default:
        if (number->at >= floats_of(number, data)->count)
            return tn__error_index(number->at, floats_of(number, data)->count,
                                   "option %q of optimizer %s: index: ", number->name,
                                   optimizer->def->name);
        *value = floats_of(number, data)->at[number->at];
    }
    return TN_OK;
}

static void number_write(const struct number *number, void *data, double value)
{
    char *at = (char *)data + number->option->offset;

    if (number->option->kind == TN_OPTION_KIND_FLOAT)
        *(double *)(void *)at = value;
    else if (number->option->kind == TN_OPTION_KIND_INT)
        *(int64_t *)(void *)at = (int64_t)value;
    else
        *(bool *)(void *)at = value != 0.0;
}

tn_status tn_optimizer_get(const tn_optimizer *optimizer, int64_t group, const char *option,
                           double *value)
{
    const tn__group *at;
    struct number number;
    tn_status status;

    if (optimizer == NULL || option == NULL || value == NULL)
        return tn__error_null_of("tn_optimizer_get", "optimizer, option, value", optimizer, option,
                                 value);
    at = group_at(optimizer, group, "tn_optimizer_get");
    if (at == NULL)
        return tn_error_last_code();
    status = number_find(optimizer, option, &number);
    return status == TN_OK ? number_read(optimizer, &number, at->data, value) : status;
}

/* Sets one element of a list. The array may be shared with other structs, so the whole list is
 * replaced. */
static tn_status set_element(tn_optimizer *optimizer, tn__group *group, const struct number *number,
                             double value, bool dry)
{
    const tn_floats *list = floats_of(number, group->data);
    tn__text text = { 0 };
    char *whole;
    double before;
    tn_status status = number_read(optimizer, number, group->data, &before);

    if (status != TN_OK)
        return status;
    tn__text_add(&text, "%s=(", number->option->name);
    for (int64_t i = 0; i < list->count; i++)
        tn__text_add(&text, "%g,", i == number->at ? value : list->at[i]);
    tn__text_put(&text, ")", 1);
    whole = tn__text_take(&text);
    status = whole != NULL ? group_set_options(optimizer, group, whole, dry) : TN_ERR_MEMORY;
    tn_free(whole);
    return status;
}

struct assignment {
    const struct number *number;
    double value;
};

static tn_status change_number(tn_optimizer *optimizer, tn__group *group, const void *with,
                               bool dry)
{
    const struct assignment *assignment = with;
    const struct number *number = assignment->number;
    double before = 0;
    tn_status status;

    if (number->option->kind == TN_OPTION_KIND_FLOATS)
        return set_element(optimizer, group, number, assignment->value, dry);
    status = number_read(optimizer, number, group->data, &before);
    if (status != TN_OK)
        return status;
    number_write(number, group->data, assignment->value);
    status = run_check(optimizer, group->data);
    if (status != TN_OK || dry)
        number_write(number, group->data, before);
    return status;
}

tn_status tn_optimizer_set(tn_optimizer *optimizer, int64_t group, const char *option, double value)
{
    struct number number;
    struct assignment assignment = { &number, value };
    tn_status status;

    if (optimizer == NULL || option == NULL)
        return tn__error_null_of("tn_optimizer_set", "optimizer, option", optimizer, option);
    status = number_find(optimizer, option, &number);
    if (status != TN_OK)
        return status;
    if (number.option->kind == TN_OPTION_KIND_INT && !(fabs(value) < 9e15 && value == floor(value)))
        return tn_fail(TN_ERR_VALUE,
                       "option %q of optimizer %s: wrong value, got %g; expected an integer "
                       "between -9e15 and 9e15",
                       option, optimizer->def->name, value);
    if (number.option->kind == TN_OPTION_KIND_BOOL && value != 0.0 && value != 1.0)
        return tn_fail(TN_ERR_VALUE,
                       "option %q of optimizer %s: wrong value, got %g; expected 0 or 1", option,
                       optimizer->def->name, value);
    return each_group(optimizer, group, "tn_optimizer_set", change_number, &assignment);
}
