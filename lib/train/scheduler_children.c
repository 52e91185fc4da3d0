/* SPDX-License-Identifier: MIT
 *
 * Schedulers inside a scheduler: a scheduler creates them from the specs among its options, and
 * steps them. */
#include "lib/train/scheduler.h"

#include "core/base/vector.h"

#include <math.h>

#define DEPTH_MAX 100

static tn_status add_from_spec(tn_scheduler *scheduler, const tn__spec *spec)
{
    int64_t index = scheduler->n_children;
    tn_scheduler *child;

    if (scheduler->depth >= DEPTH_MAX)
        return tn_fail(TN_ERR_VALUE, "scheduler: nested too deep; expected at most %d levels",
                       DEPTH_MAX);
    if (!tn__vector_room(&scheduler->children, &scheduler->children_capacity, index + 1,
                         sizeof(tn_scheduler *)))
        return TN_ERR_MEMORY;
    child = tn__scheduler_new(scheduler->optimizer, spec, scheduler, scheduler->function,
                              scheduler->function_user);
    if (child == NULL)
        return tn_error_last_code();
    if (child->def->flags & TN_SCHEDULER_METRIC) {
        tn_fail(TN_ERR_VALUE,
                "%s does not support `%s` scheduler as it requires additional kwargs to be "
                "specified when calling `step`, but got one at index %lld in the given schedulers "
                "sequence",
                scheduler->def->name, child->def->name, (long long)index);
        tn_scheduler_drop(child);
        return TN_ERR_VALUE;
    }
    scheduler->children[scheduler->n_children++] = child;
    return TN_OK;
}

tn_status tn_scheduler_add_child(tn_scheduler *scheduler, const tn_value *value)
{
    tn__spec *spec;
    tn_status status;

    if (scheduler == NULL || value == NULL)
        return tn__error_null_of("tn_scheduler_add_child", "scheduler, value", scheduler, value);
    if (value->kind != TN_VALUE_SPEC && value->kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_TYPE,
                       "scheduler %s: index %lld: wrong type, got %s; expected a scheduler such as "
                       "Name(options)",
                       scheduler->def->name, (long long)scheduler->n_children,
                       tn__value_kind_name(value->kind));
    spec = tn__spec_parse(value->as.s);
    status = spec != NULL ? add_from_spec(scheduler, spec) : tn_error_last_code();
    tn__spec_free(spec);
    return status;
}

int64_t tn_scheduler_child_count(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_child_count: scheduler") ? scheduler->n_children
                                                                          : -1;
}

tn_scheduler *tn_scheduler_child(const tn_scheduler *scheduler, int64_t index)
{
    if (!tn__not_null(scheduler, "tn_scheduler_child: scheduler"))
        return NULL;
    if (index >= 0 && index < scheduler->n_children)
        return scheduler->children[index];
    tn_fail(TN_ERR_VALUE,
            "scheduler %s: child: out of range, got %lld; expected one of its %lld "
            "children",
            scheduler->def->name, (long long)index, (long long)scheduler->n_children);
    return NULL;
}

tn_status tn_scheduler_restart(tn_scheduler *scheduler, uint32_t flags)
{
    if (scheduler == NULL)
        return tn_error_null("tn_scheduler_restart: scheduler");
    if (scheduler->parent == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "scheduler %s: restart: not inside another scheduler; "
                       "expected a child of a scheduler",
                       scheduler->def->name);
    if (flags != TN_SCHEDULE_INITIAL && flags != TN_SCHEDULE_JUMP)
        return tn_fail(TN_ERR_VALUE,
                       "scheduler %s: flags: unknown, got %lld; expected TN_SCHEDULE_INITIAL or "
                       "TN_SCHEDULE_JUMP",
                       scheduler->def->name, (long long)flags);
    return tn__scheduler_apply(scheduler, 0, NAN, flags | TN_SCHEDULE_RESTART);
}

const char *tn_scheduler_type(const tn_scheduler *scheduler)
{
    return tn__not_null(scheduler, "tn_scheduler_type: scheduler") ? scheduler->def->name : NULL;
}
