/* SPDX-License-Identifier: MIT
 *
 * The plugin tenon.profile: an observer that is off until a profile starts, and the functions of
 * <tenon/profile.h>. With TENON_PROFILE the profile starts when the plugin is activated, which the
 * first call of an operator or module does, and ends with the process or in tn_shutdown. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    int64_t limit;
    bool shapes;
};
static struct options options;

static const tn_option option_table[] = {
    TN_OPTION_INT(struct options, limit, "256", "most memory for records, in MiB"),
    TN_OPTION_BOOL(struct options, shapes, "True", "record the shapes of inputs"), TN_OPTION_END
};

/* The process that TENON_PROFILE profiles; children of fork do not write its files. */
static pid_t profiled;

/* ---- the functions of the interface ---------------------------------------------------------- */

static tn_status start(const tn_profile_options *given)
{
    schedule_lock();
    tn_status status = schedule_start(given, false);
    schedule_unlock();
    return status;
}

static tn_status stop(void)
{
    schedule_lock();
    tn_status status = schedule_stop();
    schedule_unlock();
    return status;
}

static tn_status step(void)
{
    schedule_lock();
    tn_status status = schedule_step();
    schedule_unlock();
    return status;
}

static int64_t rows(tn_profile_group group, tn_profile_sort sort, tn_profile_row *out, int64_t room)
{
    schedule_lock();
    int64_t count = group_copy(group, sort, out, room);
    schedule_unlock();
    return count;
}

static int64_t table(tn_profile_group group, tn_profile_sort sort, int64_t most, char *out,
                     size_t size)
{
    schedule_lock();
    int64_t length = table_text(group, sort, most, out, size);
    schedule_unlock();
    return length;
}

static tn_status totals(tn_profile_totals *out)
{
    if (out == NULL)
        return tn_fail(TN_ERR_VALUE, "profile: totals: out: it is NULL");
    schedule_lock();
    const result *r = result_get();
    *out = (tn_profile_totals){ .events = r->count,
                                .dropped = r->dropped,
                                .unbalanced = r->unbalanced,
                                .threads = r->threads,
                                .duration = r->ended - r->started,
                                .steps = r->steps,
                                .before = r->before,
                                .live = r->live,
                                .peak = r->peak,
                                .ceiling = ceiling_known() };
    for (int64_t i = 0; i < r->count; i++) {
        out->self += r->spans[i].s.self;
        out->flops += r->spans[i].s.flops;
    }
    schedule_unlock();
    return TN_OK;
}

static tn_status event(int64_t index, tn_profile_event *out)
{
    tn_status status = TN_OK;

    if (out == NULL)
        return tn_fail(TN_ERR_VALUE, "profile: event: out: it is NULL");
    schedule_lock();
    const result *r = result_get();
    if (index < 0 || index >= r->count) {
        status = tn_fail(TN_ERR_INDEX,
                         "profile: event: out of range, got %lld; expected 0 or more, below %lld",
                         (long long)index, (long long)r->count);
    } else {
        const result_span *span = &r->spans[index];
        const record_span *s = &span->s;
        const tn_device *device = device_at(s->device);
        *out = (tn_profile_event){ .name = span->name,
                                   .category = result_category(span),
                                   .module = span->module,
                                   .shapes = span->shapes,
                                   .device = device != NULL ? tn_device_name(device) : "",
                                   .start = s->start - r->started,
                                   .duration = s->duration,
                                   .self = s->self,
                                   .device_time = span->device_time,
                                   .thread = span->thread,
                                   .depth = s->depth,
                                   .sequence = s->sequence,
                                   .allocated = s->allocated,
                                   .freed = s->freed,
                                   .self_allocated = s->self_allocated,
                                   .self_freed = s->self_freed,
                                   .peak = s->peak,
                                   .copied = s->copied,
                                   .flops = s->flops,
                                   .failed = s->failed,
                                   .unfinished = s->unfinished };
    }
    schedule_unlock();
    return status;
}

static tn_status write_to(const char *path)
{
    schedule_lock();
    tn_status status = write_file(path);
    schedule_unlock();
    return status;
}

static const tn_profile_api api = { start, stop,   step,  schedule_action, rows,
                                    table, totals, event, write_to };

/* ---- TENON_PROFILE --------------------------------------------------------------------------- */

void profile_at_end(void)
{
    uint64_t mark = tn_error_mark();

    if (profiled == 0 || profiled != getpid())
        return;
    profiled = 0;
    schedule_lock();
    if (schedule_stop() != TN_OK)
        tn_log(TN_LOG_WARNING, "TENON_PROFILE: %s", tn_error_last()->message);
    else
        write_list(tn_env_get("TENON_PROFILE"));
    schedule_unlock();
    tn_error_restore(mark);
}

static tn_status activate(const tn_plugin *self)
{
    tn_profile_options all = { .size = sizeof all };
    tn_status status;

    (void)self;
    if (tn_env_get("TENON_PROFILE") == NULL)
        return TN_OK;
    if (options.limit < 1 || options.limit > 1 << 20)
        return tn_fail(TN_ERR_VALUE,
                       "TENON_PROFILE_LIMIT: out of range, got %lld MiB; expected 1 to 1048576",
                       (long long)options.limit);
    all.limit = (uint64_t)options.limit << 20;
    all.flags = options.shapes ? 0 : TN_PROFILE_NO_SHAPES;
    schedule_lock();
    status = schedule_start(&all, true);
    schedule_unlock();
    if (status != TN_OK)
        return status;
    profiled = getpid();
    if (atexit(profile_at_end) != 0)
        tn_log(TN_LOG_WARNING, "TENON_PROFILE: the files are written by tn_shutdown only");
    return TN_OK;
}

static const void *const contributions[] = { &observer_profile };

static const tn_interface_row interfaces[] = {
    { "tenon.profile.api", 0, sizeof api, &api, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "tenon.profile",
    .version = "0.1.0",
    .help = "a profiler: time and memory of operators, modules and ranges",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = 1,
    .options = option_table,
    .options_data = &options,
    .activate = activate,
    .interfaces = interfaces,
};
TN_PLUGIN_EXPORT(plugin);
