/* SPDX-License-Identifier: MIT
 *
 * The state of a scheduler as text: the number of steps, the rates, the state of the rule, and the
 * states of the schedulers inside it. A text is read completely before anything changes. */
#include "lib/train/scheduler.h"

#include <math.h>

void *tn_scheduler_state(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_state: scheduler") ? scheduler->state : NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void print_row(tn__text *text, const char *name, const double *row, int64_t count)
{
    tn__text_add(text, ", %s=[", name);
    for (int64_t i = 0; i < count; i++) {
        tn_value value = tn_value_float(row[i]);
        tn__text_add(text, "%s", i > 0 ? ", " : "");
        tn__value_print(&value, text);
    }
    tn__text_put(text, "]", 1);
}

static void print_state(const tn_scheduler *scheduler, tn__text *text)
{
    tn__text_add(text, "steps=%lld", (long long)scheduler->steps);
    print_row(text, "initial", scheduler->initial, scheduler->n_groups);
    print_row(text, "last", scheduler->last, scheduler->n_groups);
    if (scheduler->def->state != NULL) {
        tn__text_put(text, ", ", 2);
        tn__options_print(scheduler->def->state, scheduler->state, true, text);
    }
    if (scheduler->n_children == 0)
        return;
    tn__text_add(text, ", children=[");
    for (int64_t i = 0; i < scheduler->n_children; i++) {
        tn__text_add(text, "%s%s(", i > 0 ? ", " : "", scheduler->children[i]->def->name);
        print_state(scheduler->children[i], text);
        tn__text_put(text, ")", 1);
    }
    tn__text_put(text, "]", 1);
}

int64_t tn_scheduler_state_text(const tn_scheduler *scheduler, char *out, size_t size)
{
    tn__text text = { 0 };

    if (scheduler == NULL) {
        tn_error_null("tn_scheduler_state_text: scheduler");
        return -1;
    }
    print_state(scheduler, &text);
    return tn__text_give(&text, out, size);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A state that was read, before it is stored. */
struct found {
    void *state;
    tn__option_block *option_block;
    int64_t steps;
    int64_t n_groups;
    double *initial, *last;
    struct found *children;
    int64_t n_children;
};

static void found_clear(struct found *found)
{
    for (int64_t i = 0; i < found->n_children; i++)
        found_clear(&found->children[i]);
    tn_free(found->children);
    tn_free(found->initial);
    tn_free(found->last);
    tn_free(found->state);
    tn__options_release(found->option_block);
}

/* Removes an argument from the spec. Returns whether it was there. */
static bool take(tn__spec *spec, const char *name, tn_value *value)
{
    for (int64_t i = 0; i < spec->count; i++) {
        if (spec->names[i] == NULL || strcmp(spec->names[i], name) != 0)
            continue;
        *value = spec->values[i];
        spec->count--;
        spec->values[i] = spec->values[spec->count];
        spec->names[i] = spec->names[spec->count];
        spec->columns[i] = spec->columns[spec->count];
        return true;
    }
    return false;
}

static tn_status wrong(const tn_scheduler *scheduler, const tn__spec *spec, const char *expected)
{
    return tn_fail(TN_ERR_FORMAT,
                   "scheduler %s: state: missing or wrong value, got %q; expected %s, as "
                   "tn_scheduler_state_text writes it",
                   scheduler->def->name, spec->text, expected);
}

static bool is_row(const tn_value *value)
{
    bool good = value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE;

    for (uint32_t i = 0; good && i < value->count; i++)
        good = value->as.list[i].kind == TN_VALUE_FLOAT || value->as.list[i].kind == TN_VALUE_INT;
    return good;
}

static tn_status read_row(const tn_value *value, double **row)
{
    *row = tn_malloc((size_t)value->count * sizeof **row + 1);
    if (*row == NULL)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < value->count; i++) {
        const tn_value *number = &value->as.list[i];
        (*row)[i] = number->kind == TN_VALUE_INT ? (double)number->as.i : number->as.f;
    }
    return TN_OK;
}

/* Reads the rates; a text without them leaves those of the scheduler. */
static tn_status read_rates(const tn_scheduler *scheduler, tn__spec *spec, struct found *found)
{
    tn_value initial, last;
    bool has_initial = take(spec, "initial", &initial), has_last = take(spec, "last", &last);

    if (!has_initial && !has_last)
        return TN_OK;
    if (!has_initial || !is_row(&initial))
        return wrong(scheduler, spec, "initial=[NUMBERS]");
    if (!has_last || !is_row(&last) || last.count != initial.count)
        return wrong(scheduler, spec, "last=[NUMBERS] with as many numbers as initial");
    if (initial.count > scheduler->optimizer->n_groups)
        return tn_fail(
            TN_ERR_VALUE,
            "scheduler %s: state: initial: too many, got %lld rates; expected at most one for "
            "each of the %lld groups",
            scheduler->def->name, (long long)initial.count,
            (long long)scheduler->optimizer->n_groups);
    found->n_groups = initial.count;
    tn_status status = read_row(&initial, &found->initial);
    return status == TN_OK ? read_row(&last, &found->last) : status;
}

static tn_status read_state(tn_scheduler *scheduler, tn__spec *spec, struct found *found);

static tn_status read_child(tn_scheduler *child, const tn_value *value, struct found *found)
{
    tn__spec *spec = tn__spec_parse(value->as.s);
    tn_status status = spec != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && strcmp(spec->type, child->def->name) != 0)
        status = tn_fail(TN_ERR_VALUE,
                         "scheduler: state: children: wrong type, got %q; expected %s(...)",
                         spec->type, child->def->name);
    if (status == TN_OK)
        status = read_state(child, spec, found);
    tn__spec_free(spec);
    return status;
}

static tn_status read_children(tn_scheduler *scheduler, tn__spec *spec, struct found *found)
{
    tn_value row;
    tn_status status = TN_OK;

    if (scheduler->n_children == 0)
        return TN_OK;
    if (!take(spec, "children", &row) ||
        (row.kind != TN_VALUE_LIST && row.kind != TN_VALUE_TUPLE) ||
        row.count != scheduler->n_children)
        return wrong(scheduler, spec,
                     "children=[STATES] with a state for each scheduler inside it");
    found->children = tn_calloc((size_t)row.count, sizeof *found->children);
    if (found->children == NULL)
        return TN_ERR_MEMORY;
    found->n_children = row.count;
    for (int64_t i = 0; i < scheduler->n_children && status == TN_OK; i++)
        status = row.as.list[i].kind == TN_VALUE_SPEC
                     ? read_child(scheduler->children[i], &row.as.list[i], &found->children[i])
                     : wrong(scheduler, spec, "states Name(...) in children");
    return status;
}

/* Reads the text and allocates the memory that storing needs, so that storing cannot fail. */
static tn_status read_state(tn_scheduler *scheduler, tn__spec *spec, struct found *found)
{
    size_t size = (size_t)scheduler->def->state_size;
    tn_value steps;
    char what[128];
    tn_status status;

    found->state = tn_calloc(1, size > 0 ? size : 1);
    if (found->state == NULL)
        return TN_ERR_MEMORY;
    if (!take(spec, "steps", &steps) || steps.kind != TN_VALUE_INT || steps.as.i < 0 ||
        steps.as.i > INT64_MAX / 2)
        return wrong(scheduler, spec, "steps=N with N from 0 to 2^62 - 1");
    found->steps = steps.as.i;
    status = read_rates(scheduler, spec, found);
    if (status == TN_OK)
        status = read_children(scheduler, spec, found);
    tn_snprint(what, sizeof what, "state of scheduler %s", scheduler->def->name);
    if (status == TN_OK)
        status = tn__options_fill(scheduler->def->state, found->state, what, spec->text,
                                  spec->values, spec->names, spec->columns, spec->count,
                                  &found->option_block);
    return status == TN_OK ? tn__scheduler_room(scheduler, found->n_groups) : status;
}

static void store(tn_scheduler *scheduler, struct found *found)
{
    memcpy(scheduler->state, found->state, (size_t)scheduler->def->state_size);
    tn__options_release(scheduler->state_block);
    scheduler->state_block = found->option_block;
    found->option_block = NULL;
    scheduler->steps = found->steps;
    for (int64_t i = 0; i < found->n_groups; i++) {
        scheduler->initial[i] = found->initial[i];
        scheduler->last[i] = found->last[i];
    }
    for (int64_t i = 0; i < found->n_children; i++)
        store(scheduler->children[i], &found->children[i]);
}

tn_status tn_scheduler_set_state(tn_scheduler *scheduler, const char *state)
{
    tn__text text = { 0 };
    struct found found = { .state = NULL };
    tn__spec *spec;
    char *whole;
    tn_status status;

    if (scheduler == NULL || state == NULL)
        return tn__error_null_of("tn_scheduler_set_state", "scheduler, state", scheduler, state);
    tn__text_add(&text, "state(%s)", state);
    whole = tn__text_take(&text);
    spec = whole != NULL ? tn__spec_parse(whole) : NULL;
    status = spec != NULL ? read_state(scheduler, spec, &found) : tn_error_last_code();
    if (status == TN_OK)
        store(scheduler, &found);
    found_clear(&found);
    tn__spec_free(spec);
    tn_free(whole);
    return status;
}
