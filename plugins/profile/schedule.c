/* SPDX-License-Identifier: MIT
 *
 * When a profile records: between start and stop, or in the steps that a schedule chooses. */
#include "profile.h"

#include <pthread.h>

/* A sum of three numbers of a schedule does not overflow. */
#define NUMBER_MOST (INT64_MAX / 4)

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct {
    bool running, switched;
    tn_profile_options options;
    int64_t step;             /* the number of the current step */
    int64_t steps;            /* steps that have ended in the current window */
    tn_profile_action action; /* of the current step */
} current;

/* The lock is recursive, because on_trace_ready reads the profile. */
static void make_lock(void)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void schedule_lock(void)
{
    pthread_once(&once, make_lock);
    pthread_mutex_lock(&lock);
}

void schedule_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static tn_status check(const tn_profile_options *options)
{
    static const struct {
        const char *name;
        size_t offset;
    } numbers[] = {
        { "skip_first", offsetof(tn_profile_options, skip_first) },
        { "wait", offsetof(tn_profile_options, wait) },
        { "warmup", offsetof(tn_profile_options, warmup) },
        { "active", offsetof(tn_profile_options, active) },
        { "repeat", offsetof(tn_profile_options, repeat) },
    };

    if (options->size != sizeof *options)
        return tn_fail(TN_ERR_VALUE,
                       "profile: options: size: wrong size, got %llu bytes; expected %llu",
                       (unsigned long long)options->size, (unsigned long long)sizeof *options);
    if (options->reserved != 0 || (options->flags & ~7u) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "profile: options: flags or reserved: unknown, got %u and %u; expected "
                       "TN_PROFILE_NO_*, and 0",
                       options->flags, options->reserved);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int64_t number = *(const int64_t *)(const void *)((const char *)options +
                                                          numbers[i].offset);
        if (number < 0 || number > NUMBER_MOST)
            return tn_fail(TN_ERR_VALUE,
                           "profile: options: %s: Invalid profiler schedule arguments, got %lld; "
                           "expected 0 to %lld",
                           numbers[i].name, (long long)number, (long long)NUMBER_MOST);
    }
    if (options->active == 0 &&
        (options->skip_first | options->wait | options->warmup | options->repeat) != 0)
        return tn_fail(TN_ERR_VALUE,
                       "profile: options: active: Invalid profiler schedule arguments, got 0; "
                       "expected 1 or more in a schedule");
    return TN_OK;
}

static tn_profile_action action_of(const tn_profile_options *o, int64_t step)
{
    int64_t cycle = o->wait + o->warmup + o->active, place;

    if (o->active == 0)
        return TN_PROFILE_ACTION_RECORD;
    if (step < o->skip_first)
        return TN_PROFILE_ACTION_NONE;
    step -= o->skip_first;
    place = step % cycle;
    if ((o->repeat > 0 && step / cycle >= o->repeat) || place < o->wait)
        return TN_PROFILE_ACTION_NONE;
    if (place < o->wait + o->warmup)
        return TN_PROFILE_ACTION_WARMUP;
    return place < cycle - 1 ? TN_PROFILE_ACTION_RECORD : TN_PROFILE_ACTION_RECORD_AND_SAVE;
}

tn_status schedule_action(const tn_profile_options *options, int64_t step, tn_profile_action *out)
{
    tn_status status = options == NULL || out == NULL
                           ? tn_fail(TN_ERR_VALUE, "profile: %s: it is NULL; expected a pointer",
                                     options == NULL ? "options" : "out")
                           : check(options);

    if (status == TN_OK && step < 0)
        status = tn_fail(TN_ERR_VALUE, "profile: step: out of range, got %lld; expected 0 or more",
                         (long long)step);
    if (status == TN_OK)
        *out = action_of(options, step);
    return status;
}

static bool records(tn_profile_action action)
{
    return action == TN_PROFILE_ACTION_RECORD || action == TN_PROFILE_ACTION_RECORD_AND_SAVE;
}

static tn_status begin_step(void)
{
    char name[64];

    if (current.options.active == 0 || current.action == TN_PROFILE_ACTION_NONE)
        return TN_OK;
    tn_snprint(name, sizeof name, "ProfilerStep#%lld", (long long)current.step);
    record_step_begin(name);
    return TN_OK;
}

static void window_begin(void)
{
    result_clear();
    current.steps = 0;
    record_start(current.options.limit, current.options.flags);
}

/* Calls the function of the program. A failure has a message, even if the function recorded none.
 */
static tn_status trace_ready(void)
{
    uint64_t failures = tn_error_mark();
    tn_status status;

    if (current.options.on_trace_ready == NULL)
        return TN_OK;
    status = current.options.on_trace_ready(current.options.user);
    if (status != TN_OK && (tn_error_mark() == failures || !tn_failed()))
        tn_fail(status, "profile: on_trace_ready: failed with %s and recorded no message",
                tn_status_name(status));
    return status;
}

/* Moves from the action of one step to that of the next. */
static tn_status change_action(tn_profile_action next)
{
    tn_profile_action last = current.action;
    tn_status status = TN_OK;

    current.action = next;
    if (last == TN_PROFILE_ACTION_RECORD_AND_SAVE) {
        record_stop();
        status = result_collect(current.steps);
        if (status == TN_OK)
            status = trace_ready();
        /* The callback may have stopped the profile. */
        if (!current.running)
            return status;
    } else if (last == TN_PROFILE_ACTION_WARMUP && next != TN_PROFILE_ACTION_WARMUP) {
        record_stop();
        record_forget();
    }
    bool goes_on = last == next || (last == TN_PROFILE_ACTION_RECORD && records(next));
    if (next == TN_PROFILE_ACTION_NONE && last != TN_PROFILE_ACTION_NONE) {
        tn_status off = tn_observer_set_on(observer_profile.name, false);
        return status != TN_OK ? status : off;
    }
    if (next == TN_PROFILE_ACTION_NONE || (goes_on && last != TN_PROFILE_ACTION_RECORD_AND_SAVE))
        return status;
    window_begin();
    if (last == TN_PROFILE_ACTION_NONE && !current.switched) {
        tn_status on = tn_observer_set_on(observer_profile.name, true);
        return status != TN_OK ? status : on;
    }
    return status;
}

tn_status schedule_start(const tn_profile_options *options, bool switched)
{
    static const tn_profile_options plain = { .size = sizeof plain };
    tn_status status = check(options != NULL ? options : &plain);

    if (status == TN_OK && current.running)
        status = tn_fail(TN_ERR_RUNTIME,
                         "profile: a profile is already running; expected tn_profile_stop first");
    if (status != TN_OK)
        return status;
    current.options = options != NULL ? *options : plain;
    if (current.options.limit == 0)
        current.options.limit = (uint64_t)256 << 20;
    current.running = true;
    current.switched = switched;
    current.step = 0;
    current.action = TN_PROFILE_ACTION_NONE;
    result_clear();
    status = change_action(action_of(&current.options, 0));
    if (status == TN_OK)
        status = begin_step();
    if (status != TN_OK) {
        current.running = false;
        record_stop();
    }
    return status;
}

tn_status schedule_step(void)
{
    tn_status status;

    if (!current.running)
        return tn_fail(TN_ERR_RUNTIME,
                       "profile: no profile is running; expected tn_profile_start first");
    if (current.options.active > 0 && current.action != TN_PROFILE_ACTION_NONE)
        record_step_end();
    current.steps++;
    current.step++;
    status = change_action(action_of(&current.options, current.step));
    return status == TN_OK && current.running ? begin_step() : status;
}

bool schedule_end(void)
{
    uint64_t mark = tn_error_mark();
    bool ran = current.running;

    if (!ran)
        return false;
    current.running = false;
    record_stop();
    if (tn_observer_set_on(observer_profile.name, false) != TN_OK)
        tn_error_restore(mark); /* nothing is recorded all the same */
    return true;
}

tn_status schedule_stop(void)
{
    bool window = records(current.action);
    tn_status status;

    if (!schedule_end())
        return tn_fail(TN_ERR_RUNTIME,
                       "profile: no profile is running; expected tn_profile_start first");
    if (!window) {
        if (current.action == TN_PROFILE_ACTION_WARMUP)
            record_forget();
        return TN_OK;
    }
    status = result_collect(current.steps);
    return status == TN_OK ? trace_ready() : status;
}
