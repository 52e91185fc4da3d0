/* SPDX-License-Identifier: MIT
 *
 * The records of all threads after a profile: sorted, with the texts of shapes, the times of
 * devices, and the forward call of each derivative. */
#include "profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static result last;
static int64_t span_room, memory_room;

const result *result_get(void)
{
    return &last;
}

void result_clear(void)
{
    for (int64_t i = 0; i < last.text_count; i++)
        tn_free(last.texts[i]);
    tn_free(last.texts);
    tn_free(last.spans);
    tn_free(last.memory);
    last = (result){ .spans = NULL };
    span_room = memory_room = 0;
}

const char *result_category(const result_span *span)
{
    static const char *const names[KINDS] = {
        [TN_RANGE_USER] = "user",           [TN_RANGE_STEP] = "optimizer",
        [TN_RANGE_ZERO_GRAD] = "optimizer", [TN_RANGE_BACKWARD] = "backward",
        [TN_RANGE_NODE] = "backward",       [TN_RANGE_COPY] = "copy",
        [KIND_OPERATOR] = "operator",       [KIND_MODULE] = "module",
        [KIND_PROFILER_STEP] = "step",
    };

    return names[span->s.kind];
}

/* Returns the list with memory for one more element; NULL and an error if memory runs out. */
static void *grown(void *list, int64_t count, int64_t *room, size_t size)
{
    int64_t wanted = *room > 0 ? 2 * *room : 256;
    void *fresh = count < *room ? list : tn_realloc(list, (size_t)wanted * size);

    if (fresh != NULL && count >= *room)
        *room = wanted;
    return fresh;
}

/* ---- collecting ------------------------------------------------------------------------------ */

static tn_status add_span(int64_t thread, const record_span *span)
{
    result_span *spans = grown(last.spans, last.count, &span_room, sizeof *spans);

    if (spans == NULL)
        return TN_ERR_MEMORY;
    last.spans = spans;
    spans[last.count++] = (result_span){ .s = *span,
                                         .thread = thread,
                                         .device_start = -1,
                                         .device_time = -1,
                                         .name = span->name->bytes,
                                         .module = span->module != NULL ? span->module->bytes : "",
                                         .shapes = "",
                                         .link = -1 };
    return TN_OK;
}

static tn_status add_memory(const record_memory *memory)
{
    record_memory *list = grown(last.memory, last.memory_count, &memory_room, sizeof *list);

    if (list == NULL)
        return TN_ERR_MEMORY;
    last.memory = list;
    list[last.memory_count++] = *memory;
    return TN_OK;
}

struct collecting {
    int64_t thread;
};

static tn_status take(void *user, int64_t thread, uint32_t type, const void *record)
{
    struct collecting *c = user;

    if (thread != c->thread)
        last.threads++;
    c->thread = thread;
    if (type == RECORD_SPAN)
        return add_span(thread, record);
    return type == RECORD_MEMORY ? add_memory(record) : TN_OK;
}

static int by_start(const void *a, const void *b)
{
    const result_span *x = a, *y = b;

    if (x->s.start != y->s.start)
        return x->s.start < y->s.start ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->s.depth > y->s.depth) - (x->s.depth < y->s.depth);
}

static int by_time(const void *a, const void *b)
{
    const record_memory *x = a, *y = b;

    return (x->time > y->time) - (x->time < y->time);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

struct shaped {
    const record_text *shapes;
    result_span *span;
};

static int by_shapes(const void *a, const void *b)
{
    const struct shaped *x = a, *y = b;

    return (x->shapes > y->shapes) - (x->shapes < y->shapes);
}

static tn_status add_text(const char *text)
{
    char **texts = grown(last.texts, last.text_count, &last.text_room, sizeof *texts);
    char *copy = texts != NULL ? tn_strdup(text) : NULL;

    if (texts != NULL)
        last.texts = texts;
    if (copy == NULL)
        return TN_ERR_MEMORY;
    texts[last.text_count++] = copy;
    return TN_OK;
}

/* Writes each list of shapes once as text. */
static tn_status write_shapes(void)
{
    struct shaped *list = tn_malloc((size_t)(last.count > 0 ? last.count : 1) * sizeof *list);
    int64_t count = 0;
    tn_status status = list != NULL ? TN_OK : TN_ERR_MEMORY;
    char text[2048];

    for (int64_t i = 0; i < last.count && list != NULL; i++)
        if (last.spans[i].s.shapes != NULL)
            list[count++] = (struct shaped){ last.spans[i].s.shapes, &last.spans[i] };
    if (count > 0)
        qsort(list, (size_t)count, sizeof *list, by_shapes);
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        if (i == 0 || list[i].shapes != list[i - 1].shapes) {
            observer_shapes_text(list[i].shapes, text, sizeof text);
            status = add_text(text);
        }
        if (status == TN_OK)
            list[i].span->shapes = last.texts[last.text_count - 1];
    }
    tn_free(list);
    return status;
}

/* ---- forward and backward -------------------------------------------------------------------- */

struct numbered {
    uint64_t sequence;
    int64_t index; /* of the span */
};

static int by_sequence(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;

    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Returns the recorded call with this number: the innermost of the calls with it, preferably of
 * this thread, since each thread has numbers of its own. -1: none. */
static int64_t forward_of(const struct numbered *list, int64_t count, uint64_t sequence,
                          const result_span *derivative)
{
    int64_t low = 0, high = count, best = -1;
    bool best_own = false;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (list[middle].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && list[low].sequence == sequence; low++) {
        const result_span *span = &last.spans[list[low].index];
        bool own = span->thread == derivative->thread;
        if (span->s.start > derivative->s.start)
            break;
        if (own || !best_own)
            best = list[low].index;
        best_own = best_own || own;
    }
    return best;
}

static tn_status link_derivatives(void)
{
    struct numbered *list = tn_malloc((size_t)(last.count > 0 ? last.count : 1) * sizeof *list);
    int64_t count = 0;

    if (list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < last.count; i++)
        if (last.spans[i].s.kind == KIND_OPERATOR && last.spans[i].s.sequence != 0)
            list[count++] = (struct numbered){ last.spans[i].s.sequence, i };
    if (count > 0)
        qsort(list, (size_t)count, sizeof *list, by_sequence);
    for (int64_t i = 0; i < last.count; i++) {
        result_span *span = &last.spans[i];
        uint64_t sequence = span->s.kind == TN_RANGE_NODE ? span->s.sequence : span->s.forward;
        if (sequence == 0)
            continue;
        int64_t link = forward_of(list, count, sequence, span);
        if (link >= 0 && span->module[0] == '\0')
            span->module = last.spans[link].module;
        if (span->s.kind == TN_RANGE_NODE)
            span->link = link;
    }
    tn_free(list);
    return TN_OK;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Reads the events. The first event of a device counts as the time at which the host recorded it,
 * so the times of different devices are only nearly on one clock. Drops all events. */
static void read_events(void)
{
    tn_event *first[RECORD_DEVICES] = { NULL };
    int64_t start[RECORD_DEVICES];
    uint64_t mark = tn_error_mark();

    for (int64_t i = 0; i < last.count; i++) {
        result_span *span = &last.spans[i];
        int16_t device = span->s.device;
        if (span->s.begin == NULL || device < 0)
            continue;
        if (first[device] == NULL) {
            first[device] = span->s.begin;
            start[device] = span->s.start;
        }
        double took = tn_event_elapsed(span->s.begin, span->s.end);
        double since = tn_event_elapsed(first[device], span->s.begin);
        if (isfinite(took) && isfinite(since)) {
            span->device_time = (int64_t)(took * 1e6);
            span->device_start = start[device] + (int64_t)(since * 1e6);
        }
    }
    for (int64_t i = 0; i < last.count; i++) {
        tn_event_drop(last.spans[i].s.begin);
        tn_event_drop(last.spans[i].s.end);
        last.spans[i].s.begin = last.spans[i].s.end = NULL;
    }
    tn_error_restore(mark);
}

/* Adds the bytes that were live at the start to the live bytes of each device. */
static void add_start(void)
{
    int64_t before[RECORD_DEVICES] = { 0 };
    uint64_t mark = tn_error_mark();

    for (int64_t i = 0; i < RECORD_DEVICES && device_at(i) != NULL; i++) {
        tn_memory_stats stats = { 0 };
        if (tn_device_memory(device_at(i), &stats) == TN_OK)
            before[i] = stats.live + stats.prepared - device_live(i);
        last.before += before[i];
        last.live += device_live(i);
        last.peak += before[i] + device_peak(i);
    }
    for (int64_t i = 0; i < last.memory_count; i++)
        last.memory[i].live += before[last.memory[i].device];
    tn_error_restore(mark);
}

tn_status result_collect(int64_t steps)
{
    struct collecting collecting = { INT64_MIN };
    tn_status status;

    result_clear();
    last.started = record_started();
    last.ended = record_now();
    last.steps = steps;
    last.dropped = record_dropped();
    last.unbalanced = record_unbalanced();
    status = record_each(take, &collecting);
    add_start();
    if (last.count > 0)
        qsort(last.spans, (size_t)last.count, sizeof *last.spans, by_start);
    if (last.memory_count > 0)
        qsort(last.memory, (size_t)last.memory_count, sizeof *last.memory, by_time);
    read_events();
    if (status == TN_OK)
        status = write_shapes();
    if (status == TN_OK)
        status = link_derivatives();
    if (status != TN_OK)
        result_clear();
    return status;
}
