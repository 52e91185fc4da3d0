/* SPDX-License-Identifier: MIT
 *
 * The level contract of tenon check: tests for the requirements of docs/plugins/backends.md on a
 * device type, apart from its operators. */
#include "device.h"
#include "reference.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

tn_tensor *conform_device_numbers(const tn_device *device, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    tn_tensor *to = tn_tensor_empty(TN_SHAPE(count), TN_F32, device);

    for (int64_t i = 0; values != NULL && i < count; i++)
        values[i] = (float)(i % 1000) * 0.5F;
    if (values == NULL || to == NULL ||
        tn_tensor_copy_in(to, values, (size_t)count * sizeof *values) != TN_OK)
        to = NULL;
    free(values);
    return to;
}

bool conform_device_doubled(tn_tensor *y, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    bool same = values != NULL &&
                tn_tensor_copy_out(y, values, (size_t)count * sizeof *values) == TN_OK;

    for (int64_t i = 0; same && i < count; i++)
        same = values[i] == (float)(i % 1000);
    free(values);
    return same;
}

/* A second description of the device must be the same; only memory_free may change. */
static void says_the_same_again(conform *c, const tn_device_info *before)
{
    tn_device_info now = { TN_HEAD(tn_device_info) };

    c->checks++;
    if (tn_device_describe(c->plugin->device, &now) != TN_OK)
        conform_fail(c, "info: a second call: %s", tn_error_text());
    else if (strcmp(now.name, before->name) != 0 || strcmp(now.driver, before->driver) != 0)
        conform_fail(c, "info: a second call: another name or driver, got %.60s (%.60s)", now.name,
                     now.driver);
    else if (now.memory_total != before->memory_total ||
             now.compute_units != before->compute_units || now.alignment != before->alignment ||
             now.dtypes != before->dtypes || now.memory_kinds != before->memory_kinds)
        conform_fail(c, "info: a second call: another value of memory_total, compute_units, "
                        "alignment, dtypes or memory_kinds");
}

static void describes_itself(conform *c)
{
    tn_device_info info;

    memset(&info, 0x55, sizeof info);
    info.head.size = sizeof info;
    if (tn_device_describe(c->plugin->device, &info) != TN_OK) {
        conform_fail(c, "info: %s", tn_error_text());
        return;
    }
    if (memchr(info.name, '\0', sizeof info.name) == NULL || info.name[0] == '\0')
        conform_fail(c, "info: name: missing");
    if (memchr(info.driver, '\0', sizeof info.driver) == NULL)
        conform_fail(c, "info: driver: not terminated");
    if (info.alignment < 1 || (info.alignment & (info.alignment - 1)) != 0)
        conform_fail(c, "info: alignment: wrong, got %lld; expected a power of two",
                     (long long)info.alignment);
    if ((info.dtypes & TN_BIT(TN_F32)) == 0)
        conform_fail(c, "info: dtypes: float32 is missing; expected at least float32");
    if (info.memory_total < 0 || info.memory_free < -1)
        conform_fail(c,
                     "info: wrong memory, got memory_total %lld, memory_free %lld; expected 0 or "
                     "more, and -1 (unknown) or more",
                     (long long)info.memory_total, (long long)info.memory_free);
    if (info.memory_total > 0 && info.memory_free > info.memory_total)
        conform_fail(c, "info: memory_free: wrong, got %lld; expected at most memory_total, %lld",
                     (long long)info.memory_free, (long long)info.memory_total);
    c->checks += 6;
    says_the_same_again(c, &info);
}

static void keeps_the_order_of_work(conform *c)
{
    const tn_device *device = c->plugin->device;
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = conform_device_numbers(device, 5000);
    char words[400] = "";
    float first = -1;
    bool chain;

    /* a long chain of kernels, then a copy to the host, which must wait for all of them */
    for (int i = 0; x != NULL && i < 60; i++)
        x = tn_add_scalar(x, 1);
    chain = x != NULL || tn_error_code() != TN_ERR_NOT_IMPLEMENTED;
    if (!chain)
        snprintf(words, sizeof words, "%.390s", tn_error_text());
    else if (x == NULL || tn_tensor_copy_out(tn_narrow(x, 0, 0, 1), &first, sizeof first) != TN_OK)
        conform_fail(c, "%s", tn_error_text());
    else if (first != 60)
        conform_fail(c,
                     "60 kernels that add 1 to 0, then copy_out: wrong value, got %g; expected 60",
                     (double)first);
    tn_error_clear();
    c->checks++;
    for (int i = 0; i < 8 && c->verdict == CONFORM_PASS; i++, c->checks++) {
        tn_event *event = tn_event_record(device, NULL, 0);

        if (event == NULL) {
            conform_fail(c, "event_record: %s", tn_error_text());
            break;
        }
        if (tn_event_sync(event) != TN_OK)
            conform_fail(c, "waiting for an event: %s", tn_error_text());
        else if (!tn_event_done(event))
            conform_fail(c, "event: not done after a wait for the event");
        tn_event_drop(event);
    }
    if (!chain)
        conform_skip(c, "events work; the device has no kernel for add: %s", words);
    tn_error_clear();
    tn_scope_end(scope);
}

typedef struct worker {
    const tn_device *device;
    int which;
    bool lacks; /* the device has no kernel for add */
    char words[200];
} worker;

static void *works(void *user)
{
    worker *w = user;

    for (int i = 0; i < 40 && w->words[0] == '\0'; i++) {
        uint64_t scope = tn_scope_begin();
        int64_t count = 100 + (w->which * 37 + i * 11) % 900;
        tn_tensor *x = conform_device_numbers(w->device, count),
                  *y = x != NULL ? tn_add(x, x) : NULL;

        if (y == NULL) {
            w->lacks = x != NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED;
            snprintf(w->words, sizeof w->words, "%.199s", tn_error_text());
        }
        if (y != NULL && !conform_device_doubled(y, count))
            snprintf(w->words, sizeof w->words, "iteration %d of thread %d: wrong sums %.100s", i,
                     w->which, tn_error_text());
        tn_error_clear();
        tn_scope_end(scope);
    }
    return NULL;
}

static void serves_several_threads(conform *c)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    worker workers[THREADS];
    int started = 0;

    for (; started < THREADS; started++) {
        workers[started] = (worker){ c->plugin->device, started, false, "" };
        if (pthread_create(&thread[started], NULL, works, &workers[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        if (workers[i].lacks)
            conform_skip(c, "the device has no kernel for add: %s", workers[i].words);
        else if (workers[i].words[0] != '\0')
            conform_fail(c, "%s", workers[i].words);
        c->checks++;
    }
}

static void survives_wrong_indices(conform *c)
{
    static const int64_t wrong[] = { 7, -1, INT64_MAX, INT64_MIN };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++, c->checks++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *x = conform_device_numbers(c->plugin->device, 6);
        tn_tensor *index = tn_tensor_empty(TN_SHAPE(1), TN_I64, c->plugin->device), *y;
        tn_status status = TN_OK;

        if (x == NULL || index == NULL ||
            tn_tensor_copy_in(index, &wrong[i], sizeof wrong[i]) != TN_OK) {
            conform_fail(c, "%s", tn_error_text());
        } else {
            y = tn_gather(x, index, 0);
            status = y == NULL ? tn_error_code() : tn_device_sync(c->plugin->device);
            if (status == TN_ERR_NOT_IMPLEMENTED)
                conform_skip(c, "%s", tn_error_text());
            else if (status == TN_OK)
                conform_fail(c, "gather: index %lld of 6 elements: accepted; expected a failure",
                             (long long)wrong[i]);
            else if (tn_error_text()[0] == '\0' || conform_device_is_blamed())
                conform_fail(c, "gather: index %lld of 6 elements: wrong failure: %s",
                             (long long)wrong[i], tn_error_last()->message);
            tn_error_clear();
            if (c->verdict == CONFORM_PASS) {
                y = tn_add(x, x);
                if (y == NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED)
                    conform_skip(c, "the device has no kernel for add: %s", tn_error_text());
                else if (y == NULL || !conform_device_doubled(y, 6))
                    conform_fail(c, "after a wrong index: the device no longer works: %s",
                                 tn_error_text());
            }
        }
        tn_error_clear();
        tn_scope_end(scope);
    }
}

static void opens_again_and_again(conform *c)
{
    const tn_backend_def *backend = (const void *)tn_registry_find(
        TN_KIND_tn_backend_def, tn_device_type(c->plugin->device));
    int32_t first = 0, second = 0;

    if (backend == NULL) {
        conform_fail(c, "%s", tn_error_text());
        return;
    }
    if (backend->enumerate(backend, &first) != TN_OK ||
        backend->enumerate(backend, &second) != TN_OK)
        conform_fail(c, "enumerate, called twice: %s", tn_error_text());
    else if (first != second || first < 1)
        conform_fail(
            c,
            "enumerate: different numbers, got %d devices, then %d; expected the same, at least 1",
            (int)first, (int)second);
    c->checks++;
    tn_error_clear();
}

/* ---- what a backend may leave out ---- */

/* Creates a stream, copies in it, and drops it. Returns false after reporting a failure. */
static bool use_a_stream(conform *c)
{
    uint64_t scope = tn_scope_begin();
    tn_stream *stream = tn_stream_new(c->plugin->device, NULL);
    bool well = stream != NULL && tn_stream_begin(stream) == TN_OK;

    if (well) {
        well = conform_device_numbers(c->plugin->device, 100) != NULL &&
               tn_stream_sync(stream) == TN_OK;
        tn_stream_end();
    }
    tn_scope_end(scope);
    tn_stream_drop(stream);
    return well || conform_fail(c, "a stream: %s", tn_error_text());
}

/* Dropped streams leave no threads: not one for each, after a pause in which threads may end. */
static void ends_the_threads_of_streams(conform *c)
{
    enum { STREAMS = 12, PAUSES = 40 };
    const struct timespec pause = { .tv_nsec = 25 * 1000 * 1000 };
    int before, now = 0;

    if (!use_a_stream(c))
        return;
    before = conform_threads();
    for (int i = 0; i < STREAMS; i++)
        if (!use_a_stream(c))
            return;
    for (int i = 0; i < PAUSES && (now = conform_threads()) >= before + STREAMS; i++)
        nanosleep(&pause, NULL);
    c->checks++;
    if (before > 0 && now >= before + STREAMS)
        conform_fail(c,
                     "stream_drop: threads are left, got %d after %d streams were dropped; "
                     "expected %d, as before",
                     now, STREAMS, before);
}

static void has_streams_of_every_priority(conform *c)
{
    const tn_device *device = c->plugin->device;
    tn_device_info info = { TN_HEAD(tn_device_info) };

    if (tn_device_describe(device, &info) != TN_OK) {
        conform_fail(c, "info: %s", tn_error_text());
        return;
    }
    for (int32_t p = info.priority_highest; p <= info.priority_lowest; p++, c->checks++) {
        tn_stream_args args = { TN_HEAD(tn_stream_args), .priority = p };
        uint64_t scope = tn_scope_begin();
        tn_stream *stream = tn_stream_new(device, &args);
        tn_tensor *x = NULL;

        if (stream != NULL && tn_stream_begin(stream) == TN_OK) {
            x = conform_device_numbers(device, 100);
            if (x == NULL || tn_stream_sync(stream) != TN_OK)
                conform_fail(c, "stream of priority %d: %s", (int)p, tn_error_text());
            tn_stream_end();
        } else {
            conform_fail(c, "stream_new: priority %d: %s", (int)p, tn_error_text());
        }
        tn_scope_end(scope);
        tn_stream_drop(stream);
        tn_error_clear();
    }
    if (c->verdict == CONFORM_PASS)
        ends_the_threads_of_streams(c);
    tn_error_clear();
}

static void times_its_events(conform *c)
{
    const tn_device *device = c->plugin->device;
    uint64_t scope = tn_scope_begin();
    tn_event *from = tn_event_record(device, NULL, TN_EVENT_TIMING), *to;
    double time;

    if (from == NULL && tn_error_code() == TN_ERR_NOT_IMPLEMENTED) {
        conform_skip(c, "%s", tn_error_text());
    } else {
        conform_device_numbers(device, 100000);
        to = tn_event_record(device, NULL, TN_EVENT_TIMING);
        time = from != NULL && to != NULL ? tn_event_elapsed(from, to) : -1;
        if (tn_failed())
            conform_fail(c, "event_elapsed: %s", tn_error_text());
        else if (!(time >= 0 && time < 60000))
            conform_fail(c, "event_elapsed: wrong time of one copy, got %g ms; expected 0 to 60000",
                         time);
        tn_event_drop(to);
    }
    c->checks++;
    tn_event_drop(from);
    tn_error_clear();
    tn_scope_end(scope);
}

static void has_properties(conform *c)
{
    tn_pack *pack = tn_pack_new();
    int64_t count;

    if (pack == NULL || tn_device_properties(c->plugin->device, pack) != TN_OK) {
        conform_fail(c, "properties: the device's list cannot be read: %s", tn_error_text());
        tn_pack_drop(pack);
        return;
    }
    count = tn_pack_count(pack);
    for (int64_t i = 0; i < count; i++, c->checks++) {
        const char *name = tn_pack_name(pack, i);

        if (name == NULL || name[0] == '\0')
            conform_fail(c, "properties: value %lld: has no name", (long long)i);
        else if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
            conform_fail(c, "properties: name: wrong, got %.60s; expected a to z, 0 to 9 and _",
                         name);
        else if (tn_pack_find(pack, name) != i)
            conform_fail(c, "properties: %s: occurs twice; expected once", name);
    }
    tn_pack_drop(pack);
    tn_error_clear();
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Returns the dtypes in which a kernel is looked for: those that a basic operator needs; for other
 * operators float32, or int64 if the operator does not take float32. */
static uint64_t kernel_dtypes(const tn_op_def *def, uint64_t flag)
{
    uint64_t dtypes = def->n_inputs > 0 ? def->inputs[0].dtypes : 0;

    if (flag == TN_OP_BASIC)
        return conform_basic_dtypes(def->name);
    return dtypes == 0 || dtypes & TN_BIT(TN_F32) ? TN_BIT(TN_F32) : TN_BIT(TN_I64);
}

/* Returns true if the device has a kernel in each of the dtypes; if not, stores the first dtype
 * without a kernel in `missing`. */
static bool has_kernel(const tn_op *op, const char *type, uint64_t dtypes, tn_dtype *missing)
{
    char route[200];

    for (uint32_t dtype = 0; dtype < 64; dtype++) {
        if ((dtypes >> dtype & 1) == 0)
            continue;
        *missing = (tn_dtype)dtype;
        if (tn_op_route(op, type, (tn_dtype)dtype, route, sizeof route) < 0 ||
            strncmp(route, "kernel", 6) != 0)
            return false;
    }
    return true;
}

/* Looks for kernels of all operators with the flag. If the device lacks some, the test is skipped
 * with a message that names them; it does not fail, because a device may lack kernels. */
static void counts_kernels(conform *c, uint64_t flag, const char *use)
{
    const char *type = tn_device_type(c->plugin->device);
    char missing[900] = "";
    size_t used = 0;
    int64_t all = 0, there = 0;

    for (int64_t i = 0; i < tn_op_count(); i++) {
        const tn_op *op = tn_op_find(tn_op_name_at(i), 0);
        const tn_op_def *def = tn_op_definition(op);
        tn_dtype dtype;

        if ((def->flags & flag) == 0)
            continue;
        all++;
        if (has_kernel(op, type, kernel_dtypes(def, flag), &dtype))
            there++;
        else if (used < sizeof missing)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s (%s)",
                                     used > 0 ? ", " : "", tn_op_name_at(i), tn_dtype_name(dtype));
    }
    tn_error_clear();
    c->checks += there;
    if (all == 0)
        conform_skip(c, "no loaded plugin provides such operators");
    else if (there < all)
        conform_skip(c, "the device has %lld of %lld kernels; %s; missing: %s", (long long)there,
                     (long long)all, use, missing);
}

/* Returns whether an operator has a kernel for the dtype that is not for copies alone. */
static bool computes_in(const char *type, tn_dtype dtype)
{
    static const char *const copies[] = { "copy", "fill", "cast", NULL };
    bool found = false;

    for (int64_t i = 0; i < tn_op_count() && !found; i++) {
        const char *name = tn_op_name_at(i);
        tn_dtype missing;
        int k = 0;

        while (copies[k] != NULL && strcmp(copies[k], name) != 0)
            k++;
        found = copies[k] == NULL && has_kernel(tn_op_find(name, 0), type, TN_BIT(dtype), &missing);
    }
    tn_error_clear();
    return found;
}

/* A device with kernels must have one in each dtype that info names. */
static void computes_in_its_dtypes(conform *c)
{
    const char *type = tn_device_type(c->plugin->device);
    tn_device_info info = { TN_HEAD(tn_device_info) };

    if (tn_device_describe(c->plugin->device, &info) != TN_OK || !computes_in(type, TN_F32))
        return;
    for (int dtype = 0; dtype <= TN_C128; dtype++, c->checks++)
        if ((info.dtypes & TN_BIT(dtype)) != 0 && !computes_in(type, (tn_dtype)dtype))
            conform_fail(c, "info: dtypes: %s is there, but no kernel computes in it",
                         tn_dtype_name((tn_dtype)dtype));
}

static void has_basic_kernels(conform *c)
{
    computes_in_its_dtypes(c);
    counts_kernels(c, TN_OP_BASIC, "with all, a convolutional network trains with Adam");
}

static void has_primitive_kernels(conform *c)
{
    counts_kernels(c, TN_OP_PRIMITIVE, "with all, every operator runs");
}

const conform_test conform_device_tests[] = {
    { "describes-itself", true, describes_itself },
    { "enumerates", true, opens_again_and_again },
    { "own-memory", true, conform_device_own_memory },
    { "keeps-bytes", true, conform_device_keeps_bytes },
    { "copies-inside", true, conform_device_copies },
    { "fills", true, conform_device_fills },
    { "too-large", true, conform_device_too_large },
    { "gives-memory-back", true, conform_device_gives_back },
    { "order-of-work", true, keeps_the_order_of_work },
    { "threads", true, serves_several_threads },
    { "wrong-indices", true, survives_wrong_indices },
    { "pinned-memory", true, conform_device_pinned },
    { "managed-memory", true, conform_device_managed },
    { "shared-memory", true, conform_device_shared },
    { "stream-priorities", true, has_streams_of_every_priority },
    { "event-times", true, times_its_events },
    { "captures", true, conform_device_captures },
    { "properties", true, has_properties },
    { "basic-kernels", true, has_basic_kernels },
    { "primitive-kernels", true, has_primitive_kernels },
    { NULL, false, NULL },
};
