/* SPDX-License-Identifier: MIT
 *
 * The records of a running profile, which the callbacks in observer.c make. Each thread has
 * a stack of open ranges and a buffer of its own, and writes a record when a range ends; no call
 * takes a lock, except the first of a thread. The number of the profile is part of the tokens, so
 * that ranges that began in an earlier profile are recognized when they end. */
#include "record.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

record_session record_current;

static _Thread_local record_thread *mine;
/* The number of the profile in which the memory limit left nothing for this thread. */
static _Thread_local uint64_t refused;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

int64_t record_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void thread_ended(void *thread)
{
    mine = NULL;
    atomic_store_explicit(&((record_thread *)thread)->ended, true, memory_order_release);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, thread_ended) == 0;
}

static int64_t thread_id(void)
{
#ifdef __linux__
    return syscall(SYS_gettid);
#else
    return (int64_t)(uintptr_t)pthread_self();
#endif
}

/* Takes over the struct of a thread that has ended, if its records are of an earlier profile than
 * `number`. Records of this profile or a later one stay: if this thread is late, another thread may
 * be reading them. */
static record_thread *reuse(uint64_t number)
{
    record_thread *t = atomic_load_explicit(&record_current.threads, memory_order_acquire);

    for (; t != NULL; t = t->next) {
        bool ended = true;
        if (atomic_load_explicit(&t->number, memory_order_acquire) < number &&
            atomic_compare_exchange_strong(&t->ended, &ended, false))
            return t;
    }
    return NULL;
}

static record_thread *thread_new(uint64_t number)
{
    record_thread *t;

    pthread_once(&key_once, make_key);
    t = key_made ? reuse(number) : NULL;
    if (t == NULL && key_made && buffer_reserve(sizeof *t)) {
        t = tn_calloc(1, sizeof *t);
        if (t != NULL) {
            t->next = atomic_load(&record_current.threads);
            while (!atomic_compare_exchange_weak(&record_current.threads, &t->next, t))
                continue;
        }
    }
    if (t == NULL || pthread_setspecific(key, t) != 0)
        return NULL;
    t->id = thread_id();
    return t;
}

/* The first record of a thread in a profile. */
static record_thread *enter(uint64_t number)
{
    record_thread *t = mine != NULL ? mine : thread_new(number);

    if (t == NULL) {
        refused = number;
        record_drop();
        return NULL;
    }
    refused = 0;
    mine = t;
    buffer_clear(&t->records);
    memset(t->texts, 0, sizeof t->texts);
    t->depth = 0;
    t->live = 0;
    atomic_store_explicit(&t->number, number, memory_order_release);
    return t;
}

record_thread *record_here(void)
{
    record_thread *t = mine;
    uint64_t number;

    if (!atomic_load_explicit(&record_current.on, memory_order_acquire))
        return NULL;
    /* A late thread may see here that the next profile has started; enter() then frees the texts of
     * this thread. `acquire` makes sure that the reader of the previous profile has finished with
     * these texts. */
    number = atomic_load_explicit(&record_current.number, memory_order_acquire);
    return t != NULL && atomic_load_explicit(&t->number, memory_order_relaxed) == number
               ? t
               : enter(number);
}

bool record_refused(void)
{
    return refused != 0 &&
           refused == atomic_load_explicit(&record_current.number, memory_order_relaxed);
}

void record_drop(void)
{
    atomic_fetch_add_explicit(&record_current.dropped, 1, memory_order_relaxed);
}

/* Returns the stored copy of these bytes; stores one if there is none yet. Returns NULL if there is
 * no room. */
const record_text *record_text_of(record_thread *t, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    uint32_t hash = 2166136261u;
    record_text *text;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ b[i]) * 16777619u;
    for (text = t->texts[hash % RECORD_BUCKETS]; text != NULL; text = text->next)
        if (text->hash == hash && text->size == size && memcmp(text->bytes, bytes, size) == 0)
            return text;
    text = buffer_add(&t->records, RECORD_TEXT, sizeof *text + size + 1);
    if (text == NULL)
        return NULL;
    text->next = t->texts[hash % RECORD_BUCKETS];
    text->hash = hash;
    text->size = (uint32_t)size;
    memcpy(text->bytes, bytes, size);
    text->bytes[size] = '\0';
    t->texts[hash % RECORD_BUCKETS] = text;
    return text;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

record_frame *record_top(record_thread *t)
{
    return t->depth > 0 && t->depth <= RECORD_FRAMES ? &t->frames[t->depth - 1] : NULL;
}

/* Returns the path of the innermost open module, NULL outside of modules. */
const record_text *record_module(const record_thread *t)
{
    for (int64_t i = t->depth < RECORD_FRAMES ? t->depth : RECORD_FRAMES; i-- > 0;)
        if (t->frames[i].span.kind == KIND_MODULE)
            return t->frames[i].span.name;
    return NULL;
}

uint64_t record_token(const record_thread *t)
{
    uint64_t number = atomic_load_explicit(&t->number, memory_order_relaxed);

    return number << RECORD_DEPTH_BITS | (uint64_t)t->depth;
}

/* Opens a range; the caller fills in the rest of the record. If the range is too deep, returns
 * NULL, but counts the range in the depth. If the memory has reached its limit, the record has no
 * name, and record_close() drops it. */
record_frame *record_open(record_thread *t, uint8_t kind, const char *name)
{
    record_frame *frame, *outer = record_top(t);
    const record_text *text;

    if (t->depth++ >= RECORD_FRAMES)
        return NULL;
    text = record_text_of(t, name, strnlen(name, RECORD_NAME));
    frame = &t->frames[t->depth - 1];
    frame->span = (record_span){ .kind = kind, .name = text, .device = -1 };
    frame->span.depth = (uint16_t)(t->depth - 1);
    frame->span.module = outer == NULL                     ? NULL
                         : outer->span.kind == KIND_MODULE ? outer->span.name
                                                           : outer->span.module;
    frame->span.forward = outer == NULL                       ? 0
                          : outer->span.kind == TN_RANGE_NODE ? outer->span.sequence
                                                              : outer->span.forward;
    for (int64_t i = t->depth - 1; i-- > 0 && !frame->span.inner;)
        frame->span.inner = t->frames[i].span.name == text && t->frames[i].span.kind == kind;
    frame->inside = 0;
    frame->base = frame->high = t->live;
    frame->span.start = record_now();
    return frame;
}

/* Closes the innermost range and writes its record. */
void record_close(record_thread *t)
{
    record_frame *frame = record_top(t), *outer;
    record_span *span, *record;

    t->depth--;
    if (frame == NULL) {
        record_drop();
        return;
    }
    span = &frame->span;
    span->duration = record_now() - span->start;
    span->self = span->duration - frame->inside;
    span->peak = frame->high - frame->base;
    outer = record_top(t);
    if (outer != NULL) {
        outer->inside += span->duration;
        outer->span.allocated += span->allocated;
        outer->span.freed += span->freed;
        outer->high = frame->high > outer->high ? frame->high : outer->high;
    }
    record = span->name != NULL ? buffer_add(&t->records, RECORD_SPAN, sizeof *record) : NULL;
    if (record == NULL) {
        device_drop_events(span);
        record_drop();
        return;
    }
    *record = *span;
    buffer_publish(&t->records);
}

/* Closes the ranges inside of the range of this token that have not ended. Returns the thread,
 * whose innermost range then is this one; NULL if this thread has no such range in this profile. */
record_thread *record_find(uint64_t token)
{
    record_thread *t = mine;
    int64_t depth = (int64_t)(token & ((1 << RECORD_DEPTH_BITS) - 1));

    if (t == NULL || token == 0 ||
        !atomic_load_explicit(&record_current.on, memory_order_acquire) ||
        token >> RECORD_DEPTH_BITS !=
            atomic_load_explicit(&record_current.number, memory_order_relaxed) ||
        token >> RECORD_DEPTH_BITS != atomic_load_explicit(&t->number, memory_order_relaxed) ||
        depth > t->depth)
        return NULL;
    for (; t->depth > depth; record_close(t)) {
        record_frame *frame = record_top(t);
        if (frame != NULL)
            frame->span.unfinished = true;
        atomic_fetch_add_explicit(&record_current.unbalanced, 1, memory_order_relaxed);
    }
    return t;
}

void record_end(uint64_t token, tn_status status)
{
    record_thread *t = record_find(token);
    record_frame *frame = t != NULL ? record_top(t) : NULL;

    if (frame != NULL)
        frame->span.failed = status != TN_OK;
    if (t != NULL)
        record_close(t);
}

/* ---- start and stop -------------------------------------------------------------------------- */

/* Frees the records of a thread that has ended. */
static void clear_ended(record_thread *t)
{
    bool ended = true;

    if (atomic_compare_exchange_strong(&t->ended, &ended, false)) {
        buffer_clear(&t->records);
        atomic_store_explicit(&t->ended, true, memory_order_release);
    }
}

static tn_status forget_event(void *user, int64_t thread, uint32_t type, const void *record)
{
    (void)user, (void)thread;
    if (type == RECORD_SPAN)
        device_drop_events(record);
    return TN_OK;
}

void record_forget(void)
{
    if (atomic_load(&record_current.timed) > 0)
        record_each(forget_event, NULL);
}

void record_start(uint64_t limit, uint32_t flags)
{
    buffer_limit(limit);
    atomic_store(&record_current.flags, flags);
    atomic_store(&record_current.dropped, 0);
    atomic_store(&record_current.unbalanced, 0);
    atomic_store(&record_current.timed, 0);
    device_reset();
    for (record_thread *t = atomic_load(&record_current.threads); t != NULL; t = t->next)
        clear_ended(t);
    atomic_store(&record_current.started, record_now());
    atomic_fetch_add(&record_current.number, 1);
    atomic_store_explicit(&record_current.on, true, memory_order_release);
}

void record_stop(void)
{
    record_thread *t = mine;

    if (!atomic_load(&record_current.on))
        return;
    for (bool own = t != NULL && atomic_load(&t->number) == atomic_load(&record_current.number);
         own && t->depth > 0; record_close(t)) {
        record_frame *frame = record_top(t);
        if (frame != NULL)
            frame->span.unfinished = true;
        if (frame != NULL && frame->span.kind == TN_RANGE_USER)
            atomic_fetch_add(&record_current.unbalanced, 1);
    }
    atomic_store_explicit(&record_current.on, false, memory_order_release);
}

void record_step_begin(const char *name)
{
    record_thread *t = record_here();

    if (t != NULL)
        record_open(t, KIND_PROFILER_STEP, name);
}

/* Closes the step of this thread, and what is open inside. */
void record_step_end(void)
{
    record_thread *t = record_here();
    int64_t depth = t != NULL ? t->depth : 0;

    while (depth > 0 &&
           (depth > RECORD_FRAMES || t->frames[depth - 1].span.kind != KIND_PROFILER_STEP))
        depth--;
    if (depth > 0)
        record_end(atomic_load(&t->number) << RECORD_DEPTH_BITS | (uint64_t)depth, TN_OK);
}

int64_t record_started(void)
{
    return atomic_load(&record_current.started);
}

int64_t record_dropped(void)
{
    return atomic_load(&record_current.dropped);
}

int64_t record_unbalanced(void)
{
    return atomic_load(&record_current.unbalanced);
}

tn_status record_each(tn_status (*take)(void *user, int64_t thread, uint32_t type,
                                        const void *record),
                      void *user)
{
    uint64_t number = atomic_load(&record_current.number);
    tn_status status = TN_OK;

    for (record_thread *t = atomic_load(&record_current.threads); t != NULL; t = t->next) {
        if (atomic_load_explicit(&t->number, memory_order_acquire) != number)
            continue;
        buffer_reader reader = buffer_read(&t->records);
        uint32_t type;
        const void *record;
        while (status == TN_OK && (record = buffer_next(&reader, &type)) != NULL)
            status = take(user, t->id, type, record);
    }
    return status;
}
