/* SPDX-License-Identifier: MIT
 *
 * The trace in the JSON format of chrome://tracing, which Perfetto opens, too. Times are in
 * microseconds since the start of the profile. */
#include "profile.h"

#include <string.h>
#include <unistd.h>

/* The tracks of devices have numbers of their own, above those of threads. */
#define DEVICE_TRACK ((int64_t)1 << 40)

static const char *device_name(int16_t device)
{
    const tn_device *d = device_at(device);

    return d != NULL ? tn_device_name(d) : "";
}

static void put_time(output *t, const char *key, int64_t nanoseconds)
{
    int64_t whole = nanoseconds < 0 ? -nanoseconds : nanoseconds;

    text_add(t, ",\"%s\":%s%lld.%03lld", key, nanoseconds < 0 ? "-" : "", (long long)(whole / 1000),
             (long long)(whole % 1000));
}

static void put_number(output *t, const char *key, int64_t number)
{
    if (number != 0)
        text_add(t, ",\"%s\":%lld", key, (long long)number);
}

static void put_word(output *t, const char *key, const char *value)
{
    if (value[0] == '\0')
        return;
    text_add(t, ",\"%s\":", key);
    text_json(t, value);
}

/* Begins an event of any phase. */
static void begin(output *t, char phase, const char *name, const char *category, int64_t thread)
{
    text_add(t, ",\n{\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld,\"cat\":\"%s\",\"name\":", phase,
             (long long)getpid(), (long long)thread, category);
    text_json(t, name);
}

static void put_span(output *t, const result *r, const result_span *span)
{
    const record_span *s = &span->s;

    begin(t, 'X', span->name, result_category(span), span->thread);
    put_time(t, "ts", s->start - r->started);
    put_time(t, "dur", s->duration);
    text_add(t, ",\"args\":{\"self us\":%lld.%03lld", (long long)(s->self / 1000),
             (long long)(s->self % 1000));
    put_word(t, "module", span->module);
    put_word(t, "shapes", span->shapes);
    put_word(t, "device", device_name(s->device));
    if (s->sequence != 0)
        text_add(t, ",\"sequence\":%llu", (unsigned long long)s->sequence);
    put_number(t, "allocated", s->allocated);
    put_number(t, "freed", s->freed);
    put_number(t, "peak", s->peak);
    put_number(t, "copied", s->copied);
    if (s->flops > 0)
        text_add(t, ",\"flops\":%.0f", s->flops);
    text_put(t, s->failed ? ",\"failed\":true}}" : "}}");
    if (span->device_time < 0)
        return;
    begin(t, 'X', span->name, "device", DEVICE_TRACK + s->device);
    put_time(t, "ts", span->device_start - r->started);
    put_time(t, "dur", span->device_time);
    text_put(t, "}");
}

/* An arrow from the forward call to its derivative. */
static void put_link(output *t, const result *r, int64_t index)
{
    const result_span *to = &r->spans[index], *from = &r->spans[to->link];

    begin(t, 's', "backward", "backward", from->thread);
    text_add(t, ",\"id\":%lld", (long long)index);
    put_time(t, "ts", from->s.start - r->started);
    text_put(t, "}");
    begin(t, 'f', "backward", "backward", to->thread);
    text_add(t, ",\"id\":%lld,\"bp\":\"e\"", (long long)index);
    put_time(t, "ts", to->s.start - r->started);
    text_put(t, "}");
}

static void put_tracks(output *t, const result *r)
{
    int64_t last = -1;

    for (int64_t i = 0; i < r->count; i++) {
        if (r->spans[i].thread == last)
            continue;
        last = r->spans[i].thread;
        bool seen = false;
        for (int64_t k = 0; k < i && !seen && k < 4096; k++)
            seen = r->spans[k].thread == last;
        if (seen)
            continue;
        begin(t, 'M', "thread_name", "", last);
        text_add(t, ",\"args\":{\"name\":\"thread %lld\"}}", (long long)last);
    }
    for (int16_t i = 0; i < RECORD_DEVICES; i++) {
        bool timed = false;
        for (int64_t k = 0; k < r->count && !timed; k++)
            timed = r->spans[k].s.device == i && r->spans[k].device_time >= 0;
        if (!timed)
            continue;
        begin(t, 'M', "thread_name", "", DEVICE_TRACK + i);
        text_put(t, ",\"args\":{\"name\":");
        text_json(t, device_name(i));
        text_put(t, "}}");
    }
}

void trace_add(output *t, const result *r)
{
    text_add(t,
             "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":%lld,"
             "\"unbalanced\":%lld,\"peak\":%lld,\"steps\":%lld},\n\"traceEvents\":[\n"
             "{\"ph\":\"M\",\"pid\":%lld,\"tid\":0,\"name\":\"process_name\","
             "\"args\":{\"name\":\"tenon\"}}",
             (long long)r->dropped, (long long)r->unbalanced, (long long)r->peak,
             (long long)r->steps, (long long)getpid());
    put_tracks(t, r);
    for (int64_t i = 0; i < r->count; i++) {
        put_span(t, r, &r->spans[i]);
        if (r->spans[i].link >= 0)
            put_link(t, r, i);
    }
    for (int64_t i = 0; i < r->memory_count; i++) {
        char name[96];
        tn_snprint(name, sizeof name, "memory of %s", device_name((int16_t)r->memory[i].device));
        begin(t, 'C', name, "memory", 0);
        put_time(t, "ts", r->memory[i].time - r->started);
        text_add(t, ",\"args\":{\"bytes\":%lld}}", (long long)r->memory[i].live);
    }
    text_put(t, "\n]}\n");
}
