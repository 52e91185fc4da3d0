/* SPDX-License-Identifier: MIT
 *
 * The devices of the tests. */
#include "tests/tensor/fixture.h"

room_state room;

/* ---- devices ---- */

static tn_status one(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

static tn_status two(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 2;
    return TN_OK;
}

static tn_status open_it(const tn_backend_def *self, int32_t index, void **dev)
{
    (void)self;
    *dev = (void *)(uintptr_t)(index + 100);
    atomic_fetch_add(&room.opened, 1);
    return TN_OK;
}

static void close_it(void *dev)
{
    (void)dev;
    atomic_fetch_add(&room.closed, 1);
}

static tn_status vault_info(void *dev, tn_device_info *out)
{
    (void)dev;
    tn_snprint(out->name, sizeof out->name, "Vault of the tests");
    out->alignment = 256;
    out->memory_total = 1 << 30;
    out->memory_kinds |= TN_MEMORY_BIT(TN_MEMORY_PINNED) | TN_MEMORY_BIT(TN_MEMORY_MANAGED) |
                         TN_MEMORY_BIT(TN_MEMORY_SHARED);
    out->priority_highest = -2;
    return TN_OK;
}

static tn_status lost(void)
{
    return atomic_load(&room.lost) ? TN_ERR_LOST : TN_OK;
}

/* ---- streams: they do their work when the test allows it ---- */

typedef struct vault_stream {
    _Atomic uint64_t asked, done;
    _Atomic int32_t held;
    bool own;                  /* made by stream_new */
    struct vault_stream *next; /* of those that were dropped: events may still name them */
    struct held_copy *copies;
    struct record *record; /* where it records its work; NULL: it does its work */
} vault_stream;

typedef struct vault_event {
    vault_stream *stream;
    uint64_t at;
    bool timing;
    struct vault_event *external; /* the program's event, if this one was made from it */
} vault_event;

/* A copy that a held stream has yet to do. */
struct held_copy {
    tn_copy_args args;
    struct held_copy *next;
};

/* Copies and fills that a stream recorded. */
struct record {
    struct recorded {
        bool fills;
        tn_copy_args copy;
        tn_fill_args fill;
    } at[32];
    int32_t count;
};

static _Atomic int32_t streams_alive, events_alive, records_alive;

/* Returns the address of an end of a copy. Checks that the bytes are inside of their allocation,
 * unless they are in host memory. */
static char *place(const tn_copy_end *end, size_t bytes, bool opaque)
{
    return end->device != NULL && opaque ? room_bytes(end->memory, end->offset, bytes)
                                         : (char *)end->memory + end->offset;
}

static void copy_now(const tn_copy_args *args, bool opaque)
{
    size_t bytes = (size_t)args->bytes;

    atomic_fetch_add(args->from.device == NULL              ? &room.copies_in
                     : args->to.device == NULL              ? &room.copies_out
                     : args->to.device == args->from.device ? &room.copies
                                                            : &room.peers,
                     1);
    memcpy(place(&args->to, bytes, opaque), place(&args->from, bytes, opaque), bytes);
}

static tn_status host_copy(void *dev, const tn_copy_args *args)
{
    (void)dev;
    ck_assert_uint_ge(args->bytes, 1);
    copy_now(args, false);
    return TN_OK;
}

static tn_status lump_copy(void *dev, const tn_copy_args *args)
{
    (void)dev;
    ck_assert_uint_ge(args->bytes, 1);
    ck_assert_uint_eq(args->flags, 0);
    copy_now(args, true);
    return lost();
}

/* An event outlives its stream: streams are freed at the end. */
static pthread_mutex_t dropped_lock = PTHREAD_MUTEX_INITIALIZER;
static vault_stream *dropped;

static tn_status vault_stream_new(void *dev, const tn_stream_args *args, void **stream)
{
    (void)dev;
    ck_assert_int_eq(args->head.kind, TN_KIND_tn_stream_args);
    room.priority = args->priority;
    if (args->external != NULL) {
        *stream = args->external;
    } else {
        *stream = calloc(1, sizeof(vault_stream));
        ((vault_stream *)*stream)->own = true;
    }
    atomic_fetch_add(&streams_alive, 1);
    return TN_OK;
}

static void vault_stream_drop(void *dev, void *stream)
{
    (void)dev;
    vault_stream *s = stream;

    atomic_fetch_sub(&streams_alive, 1);
    ck_assert_ptr_null(s->copies);
    if (!s->own)
        return;
    pthread_mutex_lock(&dropped_lock);
    s->next = dropped;
    dropped = s;
    pthread_mutex_unlock(&dropped_lock);
}

static void finish(vault_stream *s)
{
    struct held_copy *copy;

    while ((copy = s->copies) != NULL) {
        s->copies = copy->next;
        copy_now(&copy->args, true);
        free(copy);
    }
    atomic_store(&s->done, atomic_load(&s->asked));
}

static tn_status vault_copy(void *dev, const tn_copy_args *args)
{
    vault_stream *stream = args->stream;
    struct held_copy *copy, **last = &stream->copies;

    (void)dev;
    ck_assert_uint_ge(args->bytes, 1);
    if (stream->record != NULL) {
        ck_assert(args->to.device != NULL && args->from.device != NULL);
        ck_assert_int_lt(stream->record->count, 32);
        stream->record->at[stream->record->count++] = (struct recorded){ .copy = *args };
        return lost();
    }
    if ((args->flags & TN_COPY_ASYNC) == 0 || !atomic_load(&stream->held)) {
        copy_now(args, true);
        return lost();
    }
    copy = malloc(sizeof *copy);
    *copy = (struct held_copy){ *args, NULL };
    while (*last != NULL)
        last = &(*last)->next;
    *last = copy;
    return lost();
}

static void fill_now(const tn_fill_args *args)
{
    char *at = room_bytes(args->memory, args->offset, (size_t)args->bytes);

    atomic_fetch_add(&room.fills, 1);
    for (uint64_t i = 0; i < args->bytes; i += args->pattern_bytes)
        memcpy(at + i, args->pattern, args->pattern_bytes);
}

static tn_status vault_fill(void *dev, const tn_fill_args *args)
{
    struct record *record = ((vault_stream *)args->stream)->record;

    (void)dev;
    ck_assert_uint_eq(args->bytes % args->pattern_bytes, 0);
    if (record == NULL) {
        fill_now(args);
        return lost();
    }
    ck_assert_int_lt(record->count, 32);
    record->at[record->count++] = (struct recorded){ .fills = true, .fill = *args };
    return lost();
}

static tn_status vault_capture_begin(void *dev, const tn_capture_args *args)
{
    vault_stream *stream = args->stream;

    (void)dev;
    ck_assert_int_eq(args->head.kind, TN_KIND_tn_capture_args);
    ck_assert_ptr_null(stream->record);
    ck_assert_ptr_null(stream->copies);
    if (atomic_exchange(&room.capture_failure, 0))
        return tn_fail(TN_ERR_DEVICE, "nothing to record on");
    stream->record = calloc(1, sizeof *stream->record);
    atomic_fetch_add(&records_alive, 1);
    return lost();
}

static tn_status vault_capture_end(void *dev, tn_capture_args *args)
{
    vault_stream *stream = args->stream;

    (void)dev;
    ck_assert_ptr_nonnull(stream->record);
    args->graph = stream->record;
    stream->record = NULL;
    return lost();
}

static tn_status vault_capture_launch(void *dev, const tn_capture_args *args)
{
    const struct record *record = args->graph;

    (void)dev;
    ck_assert_ptr_null(((vault_stream *)args->stream)->record);
    for (int32_t i = 0; i < record->count; i++)
        if (record->at[i].fills)
            fill_now(&record->at[i].fill);
        else
            copy_now(&record->at[i].copy, true);
    return lost();
}

static void vault_capture_drop(void *dev, const tn_capture_args *args)
{
    (void)dev;
    atomic_fetch_sub(&records_alive, 1);
    free(args->graph);
}

static tn_status vault_stream_sync(void *dev, void *stream)
{
    (void)dev;
    ck_assert_ptr_null(((vault_stream *)stream)->record);
    atomic_fetch_add(&room.syncs, 1);
    atomic_store(&((vault_stream *)stream)->held, 0);
    finish(stream);
    if (atomic_exchange(&room.stream_failure, 0))
        return tn_fail(TN_ERR_DEVICE, "a kernel wrote out of bounds");
    return lost();
}

static tn_status vault_event_new(void *dev, const tn_event_args *args, void **event)
{
    (void)dev;
    *event = calloc(1, sizeof(vault_event));
    ((vault_event *)*event)->timing = (args->flags & TN_EVENT_TIMING) != 0;
    ((vault_event *)*event)->external = args->external;
    atomic_fetch_add(&events_alive, 1);
    return TN_OK;
}

static void vault_event_drop(void *dev, void *event)
{
    (void)dev;
    atomic_fetch_sub(&events_alive, 1);
    free(event);
}

/* The event itself, or the program's event that it was made from. */
static vault_event *real_event(void *event)
{
    vault_event *e = event;

    return e->external != NULL ? e->external : e;
}

static void *vault_native_event(void *dev, void *event)
{
    (void)dev;
    return real_event(event);
}

static tn_status vault_event_record(void *dev, void *event, void *stream)
{
    vault_event *e = event;

    (void)dev;
    ck_assert_ptr_null(e->external);
    e->stream = stream;
    e->at = atomic_fetch_add(&e->stream->asked, 1) + 1;
    if (!atomic_load(&e->stream->held))
        finish(stream);
    return lost();
}

/* Each event is half a millisecond after the one before. */
static tn_status vault_event_elapsed(void *dev, void *from, void *to, double *milliseconds)
{
    const vault_event *a = real_event(from), *b = real_event(to);

    (void)dev;
    ck_assert(a->timing && b->timing);
    ck_assert_uint_ge(atomic_load(&b->stream->done), b->at);
    *milliseconds = ((double)b->at - (double)a->at) * 0.5;
    return lost();
}

static tn_status vault_reaches(void *dev, void *other, bool *direct)
{
    *direct = (uintptr_t)dev < (uintptr_t)other; /* in one direction */
    return lost();
}

static tn_status vault_properties(void *dev, tn_pack *out)
{
    return tn_pack_add(out, "pci", tn_value_string((uintptr_t)dev == 100 ? "0000:01:00.0" : "?"));
}

static tn_status vault_event_wait(void *dev, void *event, void *stream)
{
    (void)dev;
    atomic_fetch_add(&room.waits, 1);
    room.waited_for = real_event(event);
    (void)stream;
    return lost();
}

static tn_status vault_event_sync(void *dev, void *event)
{
    vault_event *e = real_event(event);

    (void)dev;
    if (atomic_load(&e->stream->done) < e->at)
        vault_stream_sync(dev, e->stream);
    return lost();
}

static tn_status vault_event_query(void *dev, void *event, bool *done)
{
    const vault_event *e = real_event(event);

    (void)dev;
    *done = atomic_load(&e->stream->done) >= e->at;
    return lost();
}

static void *vault_native_stream(void *dev, void *stream)
{
    (void)dev;
    return stream;
}

static const void *vault_native(void *dev, const char *id)
{
    (void)dev;
    return strcmp(id, "tests.vault.key/1") == 0 ? "key" : NULL;
}

void stream_hold(const tn_stream *stream)
{
    atomic_store(&((vault_stream *)stream->handle)->held, 1);
}

void stream_release(const tn_stream *stream)
{
    atomic_store(&((vault_stream *)stream->handle)->held, 0);
    finish(stream->handle);
}

void *event_external(const tn_stream *stream)
{
    static vault_event event;

    event.stream = stream->handle;
    event.timing = true;
    event.at = atomic_fetch_add(&event.stream->asked, 1) + 1;
    return &event;
}

void *stream_external(void)
{
    static vault_stream stream;

    return &stream;
}

/* ---- the table ---- */

static const tn_backend_def backends[] = {
    { TN_HEAD(tn_backend_def), .type = "cpu", .help = "host memory",
      .flags = TN_BACKEND_HOST_MEMORY | TN_BACKEND_AFTER_FORK, .dlpack_type = 1, .enumerate = one,
      .open = open_it, .close = close_it, .alloc = host_alloc, .free = host_free,
      .copy = host_copy },
    { TN_HEAD(tn_backend_def),
      .type = "vault",
      .help = "opaque memory",
      .flags = TN_BACKEND_ASYNC | TN_BACKEND_PEER,
      .dlpack_type = 4,
      .enumerate = two,
      .open = open_it,
      .close = close_it,
      .info = vault_info,
      .alloc = vault_alloc,
      .free = lump_free,
      .copy = vault_copy,
      .stream_new = vault_stream_new,
      .stream_drop = vault_stream_drop,
      .stream_sync = vault_stream_sync,
      .event_new = vault_event_new,
      .event_drop = vault_event_drop,
      .event_record = vault_event_record,
      .event_wait = vault_event_wait,
      .event_sync = vault_event_sync,
      .event_query = vault_event_query,
      .event_elapsed = vault_event_elapsed,
      .fill = vault_fill,
      .peer = vault_reaches,
      .properties = vault_properties,
      .native = vault_native,
      .native_stream = vault_native_stream,
      .capture_begin = vault_capture_begin,
      .capture_end = vault_capture_end,
      .capture_launch = vault_capture_launch,
      .capture_drop = vault_capture_drop,
      .memory_share = vault_share,
      .memory_open = vault_open_shared,
      .native_event = vault_native_event },
    { TN_HEAD(tn_backend_def), .type = "brick", .help = "opaque memory and nothing else",
      .enumerate = one, .open = open_it, .close = close_it, .alloc = lump_alloc, .free = lump_free,
      .copy = lump_copy },
    { TN_HEAD(tn_backend_def), .type = "ghost", .help = "no memory", .flags = TN_BACKEND_NO_MEMORY,
      .enumerate = one, .open = open_it, .close = close_it },
};

void room_open(void)
{
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        ok(tn__device_add_backend(&backends[i], NULL));
    room_add_kernels();
}

void room_close(void)
{
    tn_shutdown();
    for (vault_stream *s = dropped, *next; s != NULL; s = next) {
        next = s->next;
        free(s);
    }
    dropped = NULL;
    ck_assert_int_eq(room.bytes, 0);
    ck_assert_int_eq(room.allocs, room.frees);
    ck_assert_int_eq(room.opened, room.closed);
    ck_assert_int_eq(streams_alive, 0);
    ck_assert_int_eq(events_alive, 0);
    ck_assert_int_eq(records_alive, 0);
    ck_assert_int_eq(room.shared_open, 0);
}

const tn_device *device(const char *name)
{
    const tn_device *d = tn_device_find(name);

    ck_assert_msg(d != NULL, "%s", tn_error_last()->message);
    return d;
}

int run_tests(const char *name, const TTest *const *tests, int count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner;
    int failed;

    /* These devices and no others, whatever else is built. */
    setenv("TENON_PLUGIN_PATH", "/nonexistent", 1);
    tcase_set_timeout(cases, 120);
    for (int i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
