/* SPDX-License-Identifier: MIT
 *
 * The scheduler object: counts steps, and sets the learning rates that a plugin's schedule
 * computes. */
#include "core/train/private.h"

#include <math.h>

struct tn_scheduler {
    const tn_scheduler_def *def;
    struct tn__plugin *plugin;
    void *data;
    tn__keep *keep;
    void *state; /* the state of the plugin's rule */
    tn__keep *state_keep;
    tn_optimizer *optimizer; /* the scheduler holds a reference */
    int64_t steps;
};

void tn_scheduler_drop(tn_scheduler *scheduler)
{
    if (scheduler == NULL)
        return;
    tn__options_release(scheduler->keep);
    tn__options_release(scheduler->state_keep);
    tn_free(scheduler->data);
    tn_free(scheduler->state);
    tn_optimizer_drop(scheduler->optimizer);
    tn_free(scheduler);
}

/* Reads the learning rates of all groups, at the start (`initial`) and now. Groups that were added
 * later start with their present rate. */
static tn_status read_rates(const tn_scheduler *scheduler, double *initial, double *rates)
{
    const tn_optimizer *optimizer = scheduler->optimizer;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < optimizer->n_groups && status == TN_OK; i++) {
        double first = optimizer->groups[i].initial_rate;

        status = tn_optimizer_get(optimizer, i, "lr", &rates[i]);
        initial[i] = isnan(first) ? rates[i] : first;
    }
    return status;
}

static tn_status call_rule(tn_scheduler *scheduler, tn_schedule_args *args)
{
    const char *id = scheduler->plugin != NULL ? scheduler->plugin->id : "";
    const char *before = tn__error_plugin(id);
    tn__check_thread thread;
    tn_status status;

    tn__check_enter(&thread);
    status = tn__error_status_of(scheduler->def->step(scheduler, args), scheduler->def->name);
    status = tn__check_leave(&thread, id, scheduler->def->name, status);
    tn__error_plugin(before);
    return status;
}

static tn_status write_rates(const tn_scheduler *scheduler, const double *rates)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < scheduler->optimizer->n_groups && status == TN_OK; i++)
        status = tn_optimizer_set(scheduler->optimizer, i, "lr", rates[i]);
    return status;
}

/* Sets the learning rates for a step. If that fails, rates and state stay as they were; `kept` is
 * memory for a copy of the state. */
static tn_status apply_with(tn_scheduler *scheduler, int64_t step, double metric, double *rates,
                            void *kept)
{
    tn_optimizer *optimizer = scheduler->optimizer;
    size_t groups = (size_t)optimizer->n_groups, size = (size_t)scheduler->def->state_size;
    double *initial = rates + groups, *before = initial + groups;
    tn_schedule_args args = { TN_HEAD(tn_schedule_args),
                              .optimizer = optimizer,
                              .step = step,
                              .groups = optimizer->n_groups,
                              .initial = initial,
                              .rates = rates,
                              .metric = metric };
    tn_status status = read_rates(scheduler, initial, rates);

    if (status != TN_OK)
        return status;
    memcpy(before, rates, groups * sizeof *rates);
    if (size > 0)
        memcpy(kept, scheduler->state, size);
    status = call_rule(scheduler, &args);
    if (status == TN_OK)
        status = write_rates(scheduler, rates);
    if (status != TN_OK) {
        uint64_t mark = tn_error_mark();
        (void)write_rates(scheduler, before);
        tn_error_restore(mark);
        if (size > 0)
            memcpy(scheduler->state, kept, size);
        return status;
    }
    for (int64_t i = 0; i < optimizer->n_groups; i++)
        optimizer->groups[i].initial_rate = initial[i];
    return TN_OK;
}

static tn_status apply(tn_scheduler *scheduler, int64_t step, double metric)
{
    size_t groups = (size_t)scheduler->optimizer->n_groups;
    double *rates = tn_malloc(3 * groups * sizeof *rates + (size_t)scheduler->def->state_size);
    tn_status status = rates != NULL
                           ? apply_with(scheduler, step, metric, rates, rates + 3 * groups)
                           : TN_ERR_MEMORY;

    tn_free(rates);
    return status;
}

static tn_status fill(tn_scheduler *scheduler, const tn__spec *spec)
{
    char what[128];
    tn_snprint(what, sizeof what, "scheduler %s", scheduler->def->name);
    tn_status status = tn__options_fill(scheduler->def->options, scheduler->data, what, spec->text,
                                        spec->values, spec->names, spec->columns, spec->count,
                                        &scheduler->keep);
    if (status == TN_OK && scheduler->def->state != NULL)
        status = tn__options_fill(scheduler->def->state, scheduler->state, what, "", NULL, NULL,
                                  NULL, 0, &scheduler->state_keep);
    if (status == TN_OK && scheduler->def->check != NULL) {
        const char *before = tn__error_plugin(scheduler->plugin != NULL ? scheduler->plugin->id
                                                                        : "");
        status = tn__error_status_of(scheduler->def->check(scheduler), what);
        tn__error_plugin(before);
    }
    return status == TN_OK ? apply(scheduler, 0, NAN) : status;
}

static tn_scheduler *from_spec(tn_optimizer *optimizer, const tn__spec *spec)
{
    if (spec->type[0] == '\0') {
        tn_fail(TN_ERR_FORMAT, "scheduler: wrong form, got %q; expected Name(options)", spec->text);
        return NULL;
    }
    const tn__entry *entry = tn__registry_use(TN_KIND_tn_scheduler_def, spec->type);
    if (entry == NULL)
        return NULL;
    tn_scheduler *scheduler = tn_calloc(1, sizeof *scheduler);
    if (scheduler == NULL)
        return NULL;
    scheduler->def = (const tn_scheduler_def *)entry->contribution;
    scheduler->plugin = entry->plugin;
    scheduler->optimizer = tn__optimizer_keep(optimizer);
    scheduler->data = tn_calloc(1, scheduler->def->data_size > 0 ? scheduler->def->data_size : 1);
    scheduler->state = tn_calloc(1,
                                 scheduler->def->state_size > 0 ? scheduler->def->state_size : 1);
    if (scheduler->data != NULL && scheduler->state != NULL && fill(scheduler, spec) == TN_OK)
        return scheduler;
    tn_scheduler_drop(scheduler);
    return NULL;
}

tn_scheduler *tn_scheduler_newv(tn_optimizer *optimizer, const char *format, va_list args)
{
    if (optimizer == NULL || format == NULL) {
        tn__error_null_input("tn_scheduler_new: argument");
        return NULL;
    }
    char *text = tn__text_from_format(format, args);
    tn__spec *spec = text != NULL ? tn__spec_parse(text) : NULL;
    tn_scheduler *scheduler = spec != NULL ? from_spec(optimizer, spec) : NULL;
    tn__spec_free(spec);
    tn_free(text);
    return scheduler;
}

tn_scheduler *tn_scheduler_new(tn_optimizer *optimizer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_scheduler *scheduler = tn_scheduler_newv(optimizer, format, args);
    va_end(args);
    return scheduler;
}

static tn_status step(tn_scheduler *scheduler, double metric)
{
    tn_status status = apply(scheduler, scheduler->steps + 1, metric);

    if (status == TN_OK)
        scheduler->steps++;
    return status;
}

tn_status tn_scheduler_step(tn_scheduler *scheduler)
{
    if (scheduler == NULL)
        return tn__error_null_input("tn_scheduler_step: argument");
    return step(scheduler, NAN);
}

tn_status tn_scheduler_step_with(tn_scheduler *scheduler, double metric)
{
    if (scheduler == NULL)
        return tn__error_null_input("tn_scheduler_step_with: argument");
    return step(scheduler, metric);
}

/* ---- state ----------------------------------------------------------------------------------- */

void *tn_scheduler_state(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_state: scheduler") ? scheduler->state : NULL;
}

int64_t tn_scheduler_state_text(const tn_scheduler *scheduler, char *out, size_t size)
{
    tn__text text = { 0 };

    if (scheduler == NULL) {
        tn__error_null_input("tn_scheduler_state_text: argument");
        return -1;
    }
    tn__text_add(&text, "steps=%lld", (long long)scheduler->steps);
    if (scheduler->def->state != NULL) {
        tn__text_put(&text, ", ", 2);
        tn__options_print(scheduler->def->state, scheduler->state, true, &text);
    }
    return tn__text_give(&text, out, size);
}

/* Removes the argument `steps` from the spec; the remaining arguments are the state of the rule. */
static tn_status take_steps(const tn_scheduler *scheduler, tn__spec *spec, int64_t *steps)
{
    for (int64_t i = 0; i < spec->count; i++) {
        if (spec->names[i] == NULL || strcmp(spec->names[i], "steps") != 0)
            continue;
        if (spec->values[i].kind != TN_VALUE_INT || spec->values[i].as.i < 0)
            break;
        *steps = spec->values[i].as.i;
        spec->count--;
        spec->values[i] = spec->values[spec->count];
        spec->names[i] = spec->names[spec->count];
        spec->columns[i] = spec->columns[spec->count];
        return TN_OK;
    }
    return tn_fail(TN_ERR_FORMAT,
                   "scheduler %s: state: no steps=N in %q; expected the text of "
                   "tn_scheduler_state_text",
                   scheduler->def->name, spec->text);
}

static tn_status set_state(tn_scheduler *scheduler, tn__spec *spec)
{
    size_t size = (size_t)scheduler->def->state_size;
    void *state = tn_calloc(1, size > 0 ? size : 1);
    tn__keep *keep = NULL;
    int64_t steps = 0;
    tn_status status = state != NULL ? take_steps(scheduler, spec, &steps) : TN_ERR_MEMORY;
    char what[128];

    tn_snprint(what, sizeof what, "state of scheduler %s", scheduler->def->name);
    if (status == TN_OK)
        status = tn__options_fill(scheduler->def->state, state, what, spec->text, spec->values,
                                  spec->names, spec->columns, spec->count, &keep);
    if (status == TN_OK) {
        memcpy(scheduler->state, state, size);
        tn__options_release(scheduler->state_keep);
        scheduler->state_keep = keep;
        scheduler->steps = steps;
    }
    tn_free(state);
    return status;
}

tn_status tn_scheduler_set_state(tn_scheduler *scheduler, const char *state)
{
    tn__text text = { 0 };
    tn__spec *spec;
    char *whole;
    tn_status status;

    if (scheduler == NULL || state == NULL)
        return tn__error_null_input("tn_scheduler_set_state: argument");
    tn__text_add(&text, "state(%s)", state);
    whole = tn__text_take(&text);
    spec = whole != NULL ? tn__spec_parse(whole) : NULL;
    status = spec != NULL ? set_state(scheduler, spec) : tn_error_last_code();
    tn__spec_free(spec);
    tn_free(whole);
    return status;
}

int64_t tn_scheduler_steps(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_steps: scheduler") ? scheduler->steps : -1;
}

void *tn_scheduler_data(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_data: scheduler") ? scheduler->data : NULL;
}

void *tn_scheduler_user(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_user: scheduler") ? scheduler->def->user : NULL;
}

tn_scheduler *tn_scheduler_parse(tn_optimizer *optimizer, const char *text)
{
    if (optimizer == NULL || text == NULL) {
        tn__error_null_input("tn_scheduler_parse: argument");
        return NULL;
    }
    return tn_scheduler_new(optimizer, "%s", text);
}
