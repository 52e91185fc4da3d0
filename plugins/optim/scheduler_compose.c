/* SPDX-License-Identifier: MIT
 *
 * Schedulers made of other schedulers. The core owns the inner schedulers. */
#include "scheduler.h"

#include <string.h>

/* Creates the schedulers of a list. */
static tn_status add_all(tn_scheduler *self, const tn_value *list, const char *expected)
{
    const char *name = tn_scheduler_type(self);
    tn_status status = TN_OK;

    if (list->kind != TN_VALUE_LIST && list->kind != TN_VALUE_TUPLE)
        return tn_fail(TN_ERR_TYPE,
                       "%s: schedulers: wrong type, got %s; expected a list such as "
                       "[StepLR(10), ExponentialLR(0.9)]",
                       name, tn_value_kind_name(list->kind));
    if (list->count == 0)
        return tn_fail(TN_ERR_VALUE, "%s expects at least one scheduler%s, but got no scheduler.",
                       name, expected);
    for (uint32_t i = 0; i < list->count && status == TN_OK; i++)
        status = tn_scheduler_add_child(self, &list->as.list[i]);
    return status;
}

/* The schedulers inside have set the rates; the core then sets them again. */
static tn_status read_rates(tn_schedule_args *args)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < args->groups && status == TN_OK; i++)
        status = tn_optimizer_get(args->optimizer, i, "lr", &args->rates[i]);
    return status;
}

static tn_status reset_rates(tn_schedule_args *args)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < args->groups && status == TN_OK; i++)
        status = tn_optimizer_set(args->optimizer, i, "lr", args->initial[i]);
    return status;
}

/* ---- SequentialLR: one after another --------------------------------------------------------- */

struct sequential_lr {
    tn_value schedulers;
    tn_ints milestones;
};

static const tn_option sequential_options[] = {
    TN_OPTION_ROW(struct sequential_lr, schedulers, NULL, "the schedulers, in order",
                  TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct sequential_lr, milestones, NULL,
                  "steps at which the second scheduler starts, the third, and so on",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static tn_status sequential_check(tn_scheduler *self)
{
    const struct sequential_lr *s = tn_scheduler_data(self);
    const tn_ints *at = &s->milestones;

    for (int64_t i = 0; i < at->count; i++)
        if (at->at[i] < (i > 0 ? at->at[i - 1] : 0))
            return tn_fail(TN_ERR_VALUE,
                           "SequentialLR: milestones: not increasing, got %lld at index %lld; "
                           "expected %lld or more",
                           (long long)at->at[i], (long long)i,
                           (long long)(i > 0 ? at->at[i - 1] : 0));
    if (s->schedulers.kind == TN_VALUE_LIST || s->schedulers.kind == TN_VALUE_TUPLE)
        if (s->schedulers.count > 0 && at->count != (int64_t)s->schedulers.count - 1)
            return tn_fail(TN_ERR_VALUE,
                           "Sequential Schedulers expects number of schedulers provided to be one "
                           "more than the number of milestone points, but got number of schedulers "
                           "%lld and the number of milestones to be equal to %lld",
                           (long long)s->schedulers.count, (long long)at->count);
    return add_all(self, &s->schedulers, "");
}

/* Each scheduler has taken step 0 when it was created. Here they start again: the first one from
 * the initial rates, and each other one at its milestone. */
static tn_status sequential_step(tn_scheduler *self, tn_schedule_args *args)
{
    const struct sequential_lr *s = tn_scheduler_data(self);
    int64_t index = 0;
    tn_status status = TN_OK;

    while (index < s->milestones.count && s->milestones.at[index] <= args->step)
        index++;
    tn_scheduler *child = tn_scheduler_child(self, index);
    if (child == NULL)
        return tn_error_last_code();
    if (args->step == 0) {
        status = reset_rates(args);
        if (status == TN_OK)
            status = tn_scheduler_restart(child, TN_SCHEDULE_INITIAL);
    } else if (index > 0 && s->milestones.at[index - 1] == args->step) {
        status = tn_scheduler_restart(child, TN_SCHEDULE_JUMP);
    } else {
        status = tn_scheduler_step(child);
    }
    return status == TN_OK ? read_rates(args) : status;
}

const tn_scheduler_def scheduler_sequential = {
    TN_HEAD(tn_scheduler_def),
    .name = "SequentialLR",
    .help = "follows several schedulers one after another",
    .options = sequential_options,
    .data_size = sizeof(struct sequential_lr),
    .check = sequential_check,
    .step = sequential_step,
};

/* ---- ChainedScheduler: all at once ----------------------------------------------------------- */

struct chained_lr {
    tn_value schedulers;
};

static const tn_option chained_options[] = { TN_OPTION_ROW(struct chained_lr, schedulers, NULL,
                                                           "the schedulers", TN_OPTION_KIND_VALUE,
                                                           TN_OPTION_REQUIRED),
                                             TN_OPTION_END };

static tn_status chained_check(tn_scheduler *self)
{
    const struct chained_lr *s = tn_scheduler_data(self);
    return add_all(self, &s->schedulers, " to be chained");
}

static tn_status chained_step(tn_scheduler *self, tn_schedule_args *args)
{
    int64_t count = tn_scheduler_child_count(self);
    bool restart = (args->flags & TN_SCHEDULE_RESTART) != 0;
    tn_status status = args->flags & TN_SCHEDULE_JUMP ? reset_rates(args) : TN_OK;

    if (args->flags == TN_SCHEDULE_INITIAL) /* the schedulers inside have just taken step 0 */
        return TN_OK;
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn_scheduler *child = tn_scheduler_child(self, i);
        status = restart ? tn_scheduler_restart(child, TN_SCHEDULE_INITIAL)
                         : tn_scheduler_step(child);
    }
    return status == TN_OK ? read_rates(args) : status;
}

const tn_scheduler_def scheduler_chained = {
    TN_HEAD(tn_scheduler_def),
    .name = "ChainedScheduler",
    .help = "steps several schedulers together, each with the rates of the one before",
    .options = chained_options,
    .data_size = sizeof(struct chained_lr),
    .check = chained_check,
    .step = chained_step,
};
