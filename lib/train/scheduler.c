/* SPDX-License-Identifier: MIT
 *
 * The scheduler object: counts steps, and sets the learning rates that the rule of a plugin
 * computes. */
#include "lib/train/scheduler.h"

#include <math.h>

void tn_scheduler_drop(tn_scheduler *scheduler)
{
    if (scheduler == NULL)
        return;
    for (int64_t i = 0; i < scheduler->n_children; i++)
        tn_scheduler_drop(scheduler->children[i]);
    tn__options_release(scheduler->option_block);
    tn__options_release(scheduler->state_block);
    tn_free(scheduler->children);
    tn_free(scheduler->initial);
    tn_free(scheduler->last);
    tn_free(scheduler->mark.last);
    tn_free(scheduler->mark.state);
    tn_free(scheduler->data);
    tn_free(scheduler->state);
    tn_optimizer_drop(scheduler->optimizer);
    tn_free(scheduler);
}

static bool grow(double **row, int64_t from, int64_t to)
{
    double *more = tn_realloc(*row, (size_t)to * sizeof *more);

    if (more == NULL)
        return false;
    for (int64_t i = from; i < to; i++)
        more[i] = NAN;
    *row = more;
    return true;
}

tn_status tn__scheduler_room(tn_scheduler *scheduler, int64_t count)
{
    int64_t have = scheduler->n_groups;

    if (count <= have)
        return TN_OK;
    if (!grow(&scheduler->initial, have, count) || !grow(&scheduler->last, have, count) ||
        !grow(&scheduler->mark.last, have, count))
        return TN_ERR_MEMORY;
    scheduler->n_groups = count;
    return TN_OK;
}

void tn__scheduler_mark(tn_scheduler *scheduler)
{
    size_t size = (size_t)scheduler->def->state_size;

    if (size > 0)
        memcpy(scheduler->mark.state, scheduler->state, size);
    if (scheduler->n_groups > 0)
        memcpy(scheduler->mark.last, scheduler->last,
               (size_t)scheduler->n_groups * sizeof *scheduler->last);
    scheduler->mark.steps = scheduler->steps;
    for (int64_t i = 0; i < scheduler->n_children; i++)
        tn__scheduler_mark(scheduler->children[i]);
}

void tn__scheduler_reset(tn_scheduler *scheduler)
{
    size_t size = (size_t)scheduler->def->state_size;

    if (size > 0)
        memcpy(scheduler->state, scheduler->mark.state, size);
    if (scheduler->n_groups > 0)
        memcpy(scheduler->last, scheduler->mark.last,
               (size_t)scheduler->n_groups * sizeof *scheduler->last);
    scheduler->steps = scheduler->mark.steps;
    for (int64_t i = 0; i < scheduler->n_children; i++)
        tn__scheduler_reset(scheduler->children[i]);
}

/* Reads the current rates. A group that the scheduler has not seen starts from the rate at which
 * the optimizer's first scheduler found it, or from its current rate. */
static tn_status read_rates(tn_scheduler *scheduler, double *rates, double *initial, bool first)
{
    const tn_optimizer *optimizer = scheduler->optimizer;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < optimizer->n_groups && status == TN_OK; i++) {
        double start = optimizer->groups[i].initial_rate;

        status = tn_optimizer_get(optimizer, i, "lr", &rates[i]);
        initial[i] = scheduler->initial[i];
        if (first || isnan(initial[i]))
            initial[i] = isnan(start) ? rates[i] : start;
    }
    return status;
}

static tn_status call_rule(tn_scheduler *scheduler, tn_schedule_args *args)
{
    const char *id = scheduler->plugin != NULL ? scheduler->plugin->id : "";
    const char *before = tn__error_plugin(id);
    tn__boundary_thread thread;
    tn_status status;

    tn__boundary_enter(&thread);
    status = tn__error_status_of(scheduler->def->step(scheduler, args), scheduler->def->name);
    status = tn__boundary_leave(&thread, id, scheduler->def->name, status);
    tn__error_plugin(before);
    return status;
}

static tn_status write_rates(const tn_scheduler *scheduler, const double *rates)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < scheduler->optimizer->n_groups && status == TN_OK; i++)
        status = tn__optimizer_put_rate(scheduler->optimizer, &scheduler->optimizer->groups[i],
                                        rates[i]);
    return status;
}

/* `rates` is memory for three numbers per group. */
static tn_status apply_with(tn_scheduler *scheduler, int64_t step, double metric, uint32_t flags,
                            double *rates)
{
    tn_optimizer *optimizer = scheduler->optimizer;
    size_t groups = (size_t)optimizer->n_groups;
    double *initial = rates + groups, *before = initial + groups;
    bool first = (flags & TN_SCHEDULE_INITIAL) != 0 && (flags & TN_SCHEDULE_RESTART) == 0;
    if (first && groups > 0 && isnan(optimizer->groups[0].initial_rate))
        flags |= TN_SCHEDULE_FIRST;
    tn_schedule_args args = { TN_HEAD(tn_schedule_args),
                              .optimizer = optimizer,
                              .step = step,
                              .groups = optimizer->n_groups,
                              .initial = initial,
                              .rates = rates,
                              .metric = metric,
                              .function = scheduler->function,
                              .function_user = scheduler->function_user,
                              .flags = flags };
    tn_status status = read_rates(scheduler, rates, initial, first);

    if (status != TN_OK)
        return status;
    memcpy(before, rates, groups * sizeof *rates);
    if (scheduler->parent == NULL)
        tn__scheduler_mark(scheduler);
    status = call_rule(scheduler, &args);
    if (status == TN_OK)
        status = write_rates(scheduler, rates);
    if (status != TN_OK) {
        uint64_t mark = tn_error_mark();
        (void)write_rates(scheduler, before);
        tn_error_restore(mark);
        if (scheduler->parent == NULL)
            tn__scheduler_reset(scheduler);
        return status;
    }
    for (int64_t i = 0; i < optimizer->n_groups; i++) {
        scheduler->initial[i] = initial[i];
        scheduler->last[i] = rates[i];
        if (first || isnan(optimizer->groups[i].initial_rate))
            optimizer->groups[i].initial_rate = initial[i];
    }
    scheduler->steps = step;
    return TN_OK;
}

/* The outermost scheduler restores itself and those inside it if the step fails. */
tn_status tn__scheduler_apply(tn_scheduler *scheduler, int64_t step, double metric, uint32_t flags)
{
    int64_t groups = scheduler->optimizer->n_groups;
    double *rates = tn_malloc(3 * (size_t)groups * sizeof *rates + 1);
    tn_status status = rates != NULL ? tn__scheduler_room(scheduler, groups) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = apply_with(scheduler, step, metric, flags, rates);
    tn_free(rates);
    return status;
}

static tn_status fill(tn_scheduler *scheduler, const tn__spec *spec)
{
    char what[128];
    tn_snprint(what, sizeof what, "scheduler %s", scheduler->def->name);
    tn_status status = tn__options_fill(scheduler->def->options, scheduler->data, what, spec->text,
                                        spec->values, spec->names, spec->columns, spec->count,
                                        &scheduler->option_block);
    if (status == TN_OK && scheduler->def->state != NULL)
        status = tn__options_fill(scheduler->def->state, scheduler->state, what, "", NULL, NULL,
                                  NULL, 0, &scheduler->state_block);
    if (status == TN_OK && scheduler->def->check != NULL) {
        const char *before = tn__error_plugin(scheduler->plugin != NULL ? scheduler->plugin->id
                                                                        : "");
        status = tn__error_status_of(scheduler->def->check(scheduler), what);
        tn__error_plugin(before);
    }
    return status == TN_OK ? tn__scheduler_apply(scheduler, 0, NAN, TN_SCHEDULE_INITIAL) : status;
}

/* Like fill(), but if it fails, the optimizer has the rates that it had before. */
static tn_status fill_or_undo(tn_scheduler *scheduler, const tn__spec *spec)
{
    tn_optimizer *optimizer = scheduler->optimizer;
    size_t groups = (size_t)optimizer->n_groups;
    double *rates = tn_malloc(2 * groups * sizeof *rates + 1), *initial = rates + groups;
    tn_status status = rates != NULL ? TN_OK : TN_ERR_MEMORY;

    for (size_t i = 0; i < groups && status == TN_OK; i++) {
        initial[i] = optimizer->groups[i].initial_rate;
        status = tn_optimizer_get(optimizer, (int64_t)i, "lr", &rates[i]);
    }
    if (status == TN_OK) {
        status = fill(scheduler, spec);
        if (status != TN_OK) {
            uint64_t mark = tn_error_mark();
            (void)write_rates(scheduler, rates);
            tn_error_restore(mark);
            for (size_t i = 0; i < groups; i++)
                optimizer->groups[i].initial_rate = initial[i];
        }
    }
    tn_free(rates);
    return status;
}

tn_scheduler *tn__scheduler_new(tn_optimizer *optimizer, const tn__spec *spec, tn_scheduler *parent,
                                tn_schedule_function function, void *user)
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
    scheduler->function = function;
    scheduler->function_user = user;
    scheduler->parent = parent;
    scheduler->depth = parent != NULL ? parent->depth + 1 : 0;
    size_t state_size = scheduler->def->state_size > 0 ? scheduler->def->state_size : 1;
    scheduler->data = tn_calloc(1, scheduler->def->data_size > 0 ? scheduler->def->data_size : 1);
    scheduler->state = tn_calloc(1, state_size);
    scheduler->mark.state = tn_calloc(1, state_size);
    if (scheduler->data != NULL && scheduler->state != NULL && scheduler->mark.state != NULL &&
        fill_or_undo(scheduler, spec) == TN_OK)
        return scheduler;
    tn_scheduler_drop(scheduler);
    return NULL;
}

static tn_scheduler *from_text(tn_optimizer *optimizer, const char *text,
                               tn_schedule_function function, void *user)
{
    tn__spec *spec = tn__spec_parse(text);
    tn_scheduler *scheduler = spec != NULL
                                  ? tn__scheduler_new(optimizer, spec, NULL, function, user)
                                  : NULL;

    tn__spec_free(spec);
    return scheduler;
}

tn_scheduler *tn_scheduler_newv(tn_optimizer *optimizer, const char *format, va_list args)
{
    if (optimizer == NULL || format == NULL) {
        tn__error_null_of("tn_scheduler_new", "optimizer, format", optimizer, format);
        return NULL;
    }
    char *text = tn__text_from_format(format, args);
    tn_scheduler *scheduler = text != NULL ? from_text(optimizer, text, NULL, NULL) : NULL;
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

tn_scheduler *tn_scheduler_parse(tn_optimizer *optimizer, const char *text)
{
    if (optimizer == NULL || text == NULL) {
        tn__error_null_of("tn_scheduler_parse", "optimizer, text", optimizer, text);
        return NULL;
    }
    return from_text(optimizer, text, NULL, NULL);
}

tn_scheduler *tn_scheduler_lambda(tn_optimizer *optimizer, const char *text,
                                  tn_schedule_function function, void *user)
{
    if (optimizer == NULL || text == NULL || function == NULL) {
        tn__error_null_of("tn_scheduler_lambda", "optimizer, text, function", optimizer, text,
                          function);
        return NULL;
    }
    return from_text(optimizer, text, function, user);
}

/* Warns if the first step that this scheduler takes comes before any step of the optimizer, so that
 * a rate is never used. One that continues from a state counts as new, as its optimizer does. */
static void check_order(tn_scheduler *scheduler)
{
    const tn_optimizer *optimizer = scheduler->optimizer;

    if (scheduler->warned || scheduler->parent != NULL)
        return;
    scheduler->warned = true;
    for (int64_t i = 0; i < optimizer->count; i++)
        if (optimizer->params[i].steps > 0)
            return;
    tn__log(TN_LOG_WARNING,
            "scheduler %s: tn_scheduler_step was called before tn_optimizer_step, so the rate of "
            "step 0 is never used; expected the opposite order",
            scheduler->def->name);
}

tn_status tn_scheduler_step(tn_scheduler *scheduler)
{
    if (scheduler == NULL)
        return tn_error_null("tn_scheduler_step: scheduler");
    if (scheduler->def->flags & TN_SCHEDULER_METRIC)
        return tn_fail(TN_ERR_VALUE,
                       "scheduler %s: step: no metric; expected a call of tn_scheduler_step_with",
                       scheduler->def->name);
    check_order(scheduler);
    return tn__scheduler_apply(scheduler, scheduler->steps + 1, NAN, 0);
}

tn_status tn_scheduler_step_with(tn_scheduler *scheduler, double metric)
{
    if (scheduler == NULL)
        return tn_error_null("tn_scheduler_step_with: scheduler");
    return tn__scheduler_apply(scheduler, scheduler->steps + 1, metric, 0);
}

int64_t tn_scheduler_steps(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_steps: scheduler") ? scheduler->steps : -1;
}

tn_status tn_scheduler_last_rate(const tn_scheduler *scheduler, int64_t group, double *rate)
{
    if (scheduler == NULL || rate == NULL)
        return tn__error_null_of("tn_scheduler_last_rate", "scheduler, rate", scheduler, rate);
    if (group < 0 || group >= scheduler->n_groups)
        return tn_fail(TN_ERR_VALUE,
                       "scheduler %s: group: out of range, got %lld; expected 0 to %lld",
                       scheduler->def->name, (long long)group, (long long)scheduler->n_groups - 1);
    *rate = scheduler->last[group];
    return TN_OK;
}

void *tn_scheduler_data(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_data: scheduler") ? scheduler->data : NULL;
}

void *tn_scheduler_user(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_user: scheduler") ? scheduler->def->user : NULL;
}
