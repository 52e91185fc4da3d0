/* SPDX-License-Identifier: MIT
 *
 * The scheduler object: counts steps and sets the learning rate that a plugin's schedule gives. */
#include "core/train/private.h"

#include <math.h>

struct tn_scheduler {
    const tn_scheduler_def *def;
    struct tn__plugin *plugin;
    void *data;
    tn__keep *keep;
    tn_optimizer *optimizer; /* a reference of the scheduler's own */
    int64_t steps;
    double initial;
};

void tn_scheduler_drop(tn_scheduler *scheduler)
{
    if (scheduler == NULL)
        return;
    tn__options_release(scheduler->keep);
    tn_free(scheduler->data);
    tn_optimizer_drop(scheduler->optimizer);
    tn_free(scheduler);
}

/* Sets the learning rate of step `step`. */
static tn_status apply(tn_scheduler *scheduler, int64_t step)
{
    double rate = scheduler->initial;
    const char *before = tn__error_plugin(scheduler->plugin != NULL ? scheduler->plugin->id : "");
    tn__check_thread thread;
    tn__check_enter(&thread);
    tn_status status = tn__error_status_of(
        scheduler->def->rate(scheduler, step, scheduler->initial, &rate), scheduler->def->name);
    status = tn__check_leave(&thread, scheduler->plugin != NULL ? scheduler->plugin->id : "",
                             scheduler->def->name, status);
    tn__error_plugin(before);
    return status == TN_OK ? tn_optimizer_set(scheduler->optimizer, "lr", rate) : status;
}

static tn_status fill(tn_scheduler *scheduler, const tn__spec *spec)
{
    char what[128];
    tn_snprint(what, sizeof what, "scheduler %s", scheduler->def->name);
    tn_status status = tn__options_fill(scheduler->def->options, scheduler->data, what, spec->text,
                                        spec->values, spec->names, spec->columns, spec->count,
                                        &scheduler->keep);
    if (status == TN_OK && scheduler->def->check != NULL) {
        const char *before = tn__error_plugin(scheduler->plugin != NULL ? scheduler->plugin->id
                                                                        : "");
        status = tn__error_status_of(scheduler->def->check(scheduler), what);
        tn__error_plugin(before);
    }
    tn_optimizer *optimizer = scheduler->optimizer;
    double rate = 0;
    if (status == TN_OK)
        status = tn_optimizer_get(optimizer, "lr", &rate);
    if (status != TN_OK)
        return status;
    /* Every schedule of an optimizer starts from the rate that the first one found. */
    scheduler->initial = isnan(optimizer->initial_rate) ? rate : optimizer->initial_rate;
    status = apply(scheduler, 0);
    if (status == TN_OK)
        optimizer->initial_rate = scheduler->initial;
    return status;
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
    if (scheduler->data != NULL && fill(scheduler, spec) == TN_OK)
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

tn_status tn_scheduler_step(tn_scheduler *scheduler)
{
    if (scheduler == NULL)
        return tn__error_null_input("tn_scheduler_step: argument");
    tn_status status = apply(scheduler, scheduler->steps + 1);
    if (status == TN_OK)
        scheduler->steps++;
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
