/* SPDX-License-Identifier: MIT
 *
 * The observer: what the core calls while a profile runs. */
#include "record.h"

#include <string.h>

/* Stores the shapes of the first RECORD_SHAPED inputs of a call: for each input its number of
 * dimensions (-1: absent) and its sizes. */
static const record_text *shapes_of(record_thread *t, const tn_op_event *event)
{
    int64_t numbers[RECORD_SHAPED * (TN_MAX_DIMS + 1)];
    size_t count = 0;

    for (int64_t i = 0; i < event->n_in && i < RECORD_SHAPED; i++) {
        tn_tensor *in = event->in[i];
        if (in == NULL || in == TN_NONE) {
            numbers[count++] = -1;
            continue;
        }
        tn_ints shape = tn_tensor_shape(in);
        numbers[count++] = shape.count;
        for (int64_t d = 0; d < shape.count; d++)
            numbers[count++] = shape.at[d];
    }
    return record_text_of(t, numbers, count * sizeof *numbers);
}

static uint64_t op_begin(void *user, const tn_op_event *event)
{
    record_thread *t = record_here();
    record_frame *frame;
    uint32_t flags;

    (void)user;
    if (t == NULL)
        return 0;
    frame = record_open(t, KIND_OPERATOR, event->op->name);
    if (frame == NULL)
        return record_token(t);
    flags = atomic_load_explicit(&record_current.flags, memory_order_relaxed);
    if ((flags & TN_PROFILE_NO_SHAPES) == 0)
        frame->span.shapes = shapes_of(t, event);
    frame->span.device = device_index(event->device);
    if ((flags & TN_PROFILE_NO_DEVICE) == 0 && frame->span.device >= 0 &&
        device_is_timed(frame->span.device) &&
        atomic_fetch_add_explicit(&record_current.timed, 1, memory_order_relaxed) < RECORD_TIMED)
        frame->span.begin = device_event(event->device);
    return record_token(t);
}

static void op_end(void *user, uint64_t token, const tn_op_event *event)
{
    record_thread *t = record_find(token);
    record_frame *frame = t != NULL ? record_top(t) : NULL;

    (void)user;
    if (frame != NULL) {
        frame->span.failed = event->status != TN_OK;
        frame->span.sequence = event->sequence;
        if (event->kernel != NULL)
            frame->span.flops = flops_of(event);
        if (frame->span.begin != NULL && event->kernel != NULL)
            frame->span.end = device_event(event->device);
        if (frame->span.end == NULL && frame->span.begin != NULL) {
            tn_event_drop(frame->span.begin);
            frame->span.begin = NULL;
        }
    }
    if (t != NULL)
        record_close(t);
}

static uint64_t module_begin(void *user, const tn_module_event *event)
{
    record_thread *t = record_here();
    char name[RECORD_NAME];

    (void)user;
    if (t == NULL)
        return 0;
    if (record_module(t) == NULL || event->path[0] == '\0')
        t->root = tn_module_type(event->module);
    tn_snprint(name, sizeof name, event->path[0] != '\0' ? "%s.%s" : "%s", t->root, event->path);
    record_open(t, KIND_MODULE, name);
    return record_token(t);
}

static void module_end(void *user, uint64_t token, const tn_module_event *event)
{
    (void)user;
    record_end(token, event->status);
}

static void memory(void *user, const tn_memory_event *event)
{
    record_thread *t = record_here();
    int16_t device = t != NULL ? device_index(event->device) : -1;
    record_frame *frame = t != NULL ? record_top(t) : NULL;
    record_memory *record;
    int64_t live;

    (void)user;
    if (device < 0 || (atomic_load_explicit(&record_current.flags, memory_order_relaxed) &
                       TN_PROFILE_NO_MEMORY) != 0)
        return;
    live = device_add_memory(device, event->bytes);
    t->live += event->bytes;
    if (frame != NULL && event->bytes > 0) {
        frame->span.allocated += event->bytes;
        frame->span.self_allocated += event->bytes;
        frame->high = t->live > frame->high ? t->live : frame->high;
    } else if (frame != NULL) {
        frame->span.freed -= event->bytes;
        frame->span.self_freed -= event->bytes;
    }
    record = buffer_add(&t->records, RECORD_MEMORY, sizeof *record);
    if (record == NULL) {
        record_drop();
        return;
    }
    *record = (record_memory){ record_now(), event->bytes, live, device };
    buffer_publish(&t->records);
}

/* The names of ranges. */
static const char *const formats[KINDS] = {
    [TN_RANGE_USER] = "%s",
    [TN_RANGE_STEP] = "Optimizer.step#%s.step",
    [TN_RANGE_ZERO_GRAD] = "Optimizer.zero_grad#%s.zero_grad",
    [TN_RANGE_BACKWARD] = "%s",
    [TN_RANGE_NODE] = "backward of %s",
    [TN_RANGE_COPY] = "%s",
};

static uint64_t range_begin(void *user, const tn_range_event *event)
{
    record_thread *t = record_here();
    record_frame *frame;
    char name[RECORD_NAME];

    (void)user;
    if (t == NULL || event->kind > TN_RANGE_COPY)
        return 0;
    tn_snprint(name, sizeof name, formats[event->kind], event->name != NULL ? event->name : "");
    frame = record_open(t, (uint8_t)event->kind, name);
    if (frame != NULL) {
        frame->span.sequence = event->sequence;
        frame->span.copied = event->bytes;
        frame->span.device = device_index(event->device);
    }
    return record_token(t);
}

/* The end of a range of the user has no token: it closes the innermost range if the user began
 * it. */
static void range_end(void *user, uint64_t token, const tn_range_event *event)
{
    record_thread *t;
    record_frame *frame;

    (void)user;
    if (event->kind != TN_RANGE_USER) {
        record_end(token, event->status);
        return;
    }
    t = record_refused() ? NULL : record_here();
    frame = t != NULL ? record_top(t) : NULL;
    if (t != NULL &&
        (t->depth > RECORD_FRAMES || (frame != NULL && frame->span.kind == TN_RANGE_USER)))
        record_close(t);
    else if (t != NULL)
        atomic_fetch_add_explicit(&record_current.unbalanced, 1, memory_order_relaxed);
}

static void finish(void *user)
{
    (void)user;
    profile_at_end();
    /* a profile that the program did not stop: its events belong to devices that close now */
    schedule_lock();
    if (schedule_end())
        record_forget();
    schedule_unlock();
}

void observer_shapes_text(const record_text *shapes, char *out, size_t size)
{
    int64_t count = (int64_t)(shapes->size / sizeof(int64_t)),
            numbers[RECORD_SHAPED * (TN_MAX_DIMS + 1)];
    size_t used = 0;

    memcpy(numbers, shapes->bytes, shapes->size);
    out[0] = '\0';
    for (int64_t i = 0; i < count && used < size;) {
        int64_t dims = numbers[i++];
        used += (size_t)tn_snprint(out + used, size - used, i > 1 ? ", %s" : "%s",
                                   dims < 0 ? "-" : "[");
        for (int64_t d = 0; d < dims && used < size; d++)
            used += (size_t)tn_snprint(out + used, size - used, d > 0 ? ", %lld" : "%lld",
                                       (long long)numbers[i + d]);
        if (dims >= 0 && used < size)
            used += (size_t)tn_snprint(out + used, size - used, "]");
        i += dims > 0 ? dims : 0;
    }
}

const tn_observer_def observer_profile = {
    TN_HEAD(tn_observer_def),
    .name = "tenon.profile",
    .op_begin = op_begin,
    .op_end = op_end,
    .module_begin = module_begin,
    .module_end = module_end,
    .memory = memory,
    .flags = TN_OBSERVER_PROFILER,
    .range_begin = range_begin,
    .range_end = range_end,
    .finish = finish,
};
