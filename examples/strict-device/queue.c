/* SPDX-License-Identifier: MIT
 *
 * The queues of the strict device. One thread takes work from the queues of all streams, and does
 * the work of each stream in order. A call is checked and copied when it is queued. A failure while
 * the work runs is kept in the stream until the stream is synchronized. */
#include <string.h>

#include "queue.h"

static uint64_t kernels_run;

/* ---- the thread ------------------------------------------------------------------------------ */

/* Keeps the first failure of a stream. */
static void fail_stream(struct stream *stream, tn_status code, const char *text)
{
    if (stream->code != TN_OK)
        return;
    stream->code = code;
    tn_snprint(stream->text, sizeof stream->text, "%s", text);
}

/* Stores the handles of the memory that an item uses. Returns their number. */
static int32_t item_memory(const struct item *item, uint64_t *out)
{
    int32_t count = 0;
    if (item->kind == KERNEL) {
        for (int32_t i = 0; i < item->work.n_in + item->work.n_out; i++)
            if (item->work.view[i].dtype != TN_DTYPE_AUTO && strict_count(&item->work.view[i]) > 0)
                out[count++] = item->work.view[i].memory;
    } else if (item->kind == COPY_IN || item->kind == COPY_OUT || item->kind == COPY) {
        if (item->kind != COPY_OUT)
            out[count++] = item->memory[0];
        if (item->kind != COPY_IN)
            out[count++] = item->memory[1];
    }
    return count;
}

static tn_status run_copy(struct item *item)
{
    void *to = item->host, *from = item->host;
    if (item->kind != COPY_OUT)
        to = strict_bytes(item->memory[0], item->offset[0], item->bytes);
    if (item->kind != COPY_IN)
        from = strict_bytes(item->memory[1], item->offset[1], item->bytes);
    if (!to || !from)
        return tn_fail(TN_ERR_DEVICE, "strict: copy of %zu bytes: outside of the allocated memory",
                       item->bytes);
    memcpy(to, from, item->bytes);
    return TN_OK;
}

static tn_status run_item(struct item *item)
{
    uint64_t memory[STRICT_MAX_VIEWS];
    int32_t count = item_memory(item, memory);
    tn_status status;
    for (int32_t i = 0; i < count; i++)
        strict_region_open(memory[i]);
    if (item->kind == KERNEL) {
        status = strict_inject_kernel(item->work.op)
                     ? tn_fail(TN_ERR_DEVICE, "strict: %s failed (injected)", item->work.op)
                     : item->body(&item->work);
        if (status == TN_OK)
            status = item->work.status;
        __atomic_fetch_add(&kernels_run, 1, __ATOMIC_RELAXED);
    } else {
        status = run_copy(item);
    }
    for (int32_t i = 0; i < count; i++)
        strict_region_close(memory[i]);
    return status;
}

static void drop_event(struct event *event)
{
    if (event && --event->refs == 0)
        tn_free(event);
}

void strict_drop_item(struct item *item)
{
    uint64_t memory[STRICT_MAX_VIEWS];
    int32_t count = item_memory(item, memory);
    for (int32_t i = 0; i < count; i++)
        strict_region_use(memory[i], -1);
    drop_event(item->event);
    tn_free(item);
}

/* Removes the first item that may run now from the queue of its stream, or returns NULL if there is
 * none. Moves the stream to the end of the list, so that streams take turns. */
static struct item *take(struct device *device, struct stream **out)
{
    for (struct stream **at = &device->streams; *at; at = &(*at)->next) {
        struct stream *stream = *at;
        struct item *item = stream->first;
        if (!item || stream->busy)
            continue;
        if (item->kind == WAIT && item->event->reached < item->number && !device->lost)
            continue;
        stream->first = item->next;
        stream->busy = true;
        *at = stream->next;
        stream->next = NULL;
        struct stream **end = &device->streams;
        while (*end)
            end = &(*end)->next;
        *end = stream;
        *out = stream;
        return item;
    }
    return NULL;
}

/* The thread of the device: runs items until the device is closed. */
static void *work(void *user)
{
    struct device *device = user;
    struct stream *stream = NULL;
    pthread_mutex_lock(&device->lock);
    for (;;) {
        struct item *item = take(device, &stream);
        if (!item) {
            if (device->closing)
                break;
            pthread_cond_wait(&device->wake, &device->lock);
            continue;
        }
        tn_error error = { .code = TN_OK };
        if (item->kind == RECORD) {
            item->event->reached = item->number;
        } else if (item->kind != WAIT && !device->lost) {
            pthread_mutex_unlock(&device->lock);
            bool lost = strict_inject_work();
            if (!lost && run_item(item) != TN_OK)
                tn_error_take(&error);
            pthread_mutex_lock(&device->lock);
            device->lost |= lost;
        }
        if (device->lost && item->kind != RECORD && item->kind != WAIT)
            fail_stream(stream, TN_ERR_LOST,
                        "strict: the device is lost (injected), with all tensors on it");
        else if (error.code != TN_OK)
            fail_stream(stream, error.code, error.message);
        strict_drop_item(item);
        stream->busy = false;
        pthread_cond_broadcast(&device->done);
    }
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

/* ---- the device ------------------------------------------------------------------------------ */

tn_status strict_open(const tn_backend_def *self, int32_t index, void **out)
{
    (void)self;
    (void)index;
    struct device *device = tn_calloc(1, sizeof *device);
    if (!device)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->wake, NULL);
    pthread_cond_init(&device->done, NULL);
    int error = pthread_create(&device->thread, NULL, work, device);
    if (error != 0) {
        pthread_cond_destroy(&device->done);
        pthread_cond_destroy(&device->wake);
        pthread_mutex_destroy(&device->lock);
        tn_free(device);
        return tn_fail_native(TN_ERR_DEVICE, error, "strict: cannot start a thread");
    }
    *out = device;
    return TN_OK;
}

void strict_close(void *handle)
{
    struct device *device = handle;
    pthread_mutex_lock(&device->lock);
    device->closing = true;
    pthread_cond_signal(&device->wake);
    pthread_mutex_unlock(&device->lock);
    pthread_join(device->thread, NULL);
    pthread_cond_destroy(&device->done);
    pthread_cond_destroy(&device->wake);
    pthread_mutex_destroy(&device->lock);
    tn_free(device);
}

bool strict_lost(void *handle)
{
    struct device *device = handle;
    pthread_mutex_lock(&device->lock);
    bool lost = device->lost;
    pthread_mutex_unlock(&device->lock);
    return lost;
}

uint64_t strict_kernels_run(void)
{
    return __atomic_load_n(&kernels_run, __ATOMIC_RELAXED);
}

/* ---- streams --------------------------------------------------------------------------------- */

tn_status strict_stream_new(void *handle, const tn_stream_args *args, void **out)
{
    (void)args;
    struct device *device = handle;
    struct stream *stream = tn_calloc(1, sizeof *stream);
    if (!stream)
        return TN_ERR_MEMORY;
    stream->device = device;
    pthread_mutex_lock(&device->lock);
    stream->next = device->streams;
    device->streams = stream;
    pthread_mutex_unlock(&device->lock);
    *out = stream;
    return TN_OK;
}

/* Waits for the work of a stream. The caller holds the lock. Returns the first failure, with its
 * message in `text`, and clears it. */
static tn_status drain(struct device *device, struct stream *stream, char text[512])
{
    while (stream->first || stream->busy)
        pthread_cond_wait(&device->done, &device->lock);
    tn_status code = stream->code;
    memcpy(text, stream->text, sizeof stream->text);
    stream->code = TN_OK;
    stream->text[0] = 0;
    if (device->lost && code == TN_OK) {
        code = TN_ERR_LOST;
        tn_snprint(text, 512, "strict: the device is lost");
    }
    return code;
}

void strict_stream_drop(void *handle, void *gone)
{
    struct device *device = handle;
    struct stream *stream = gone;
    char text[512];
    pthread_mutex_lock(&device->lock);
    tn_status code = drain(device, stream, text);
    struct stream **at = &device->streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    pthread_mutex_unlock(&device->lock);
    if (code != TN_OK && code != TN_ERR_LOST)
        tn_log(TN_LOG_WARNING, "strict: a stream ends with a failure that was not reported: %s",
               text);
    tn_free(stream);
}

tn_status strict_stream_sync(void *handle, void *stream)
{
    struct device *device = handle;
    char text[512];
    pthread_mutex_lock(&device->lock);
    tn_status code = drain(device, stream, text);
    pthread_mutex_unlock(&device->lock);
    return code == TN_OK ? TN_OK : tn_fail(code, "%s", text);
}

static void append(struct item **first, struct item **last, struct item *item)
{
    item->next = NULL;
    if (*first)
        (*last)->next = item;
    else
        *first = item;
    *last = item;
}

tn_status strict_push(struct stream *stream, struct item *item)
{
    struct device *device = stream->device;
    uint64_t memory[STRICT_MAX_VIEWS];
    int32_t count = item_memory(item, memory);
    for (int32_t i = 0; i < count; i++)
        strict_region_use(memory[i], 1);
    pthread_mutex_lock(&device->lock);
    bool lost = device->lost, wrong = stream->record && item->kind != KERNEL && item->kind != COPY;
    if (lost || wrong) {
        strict_drop_item(item);
    } else if (stream->record) {
        append(&stream->record->first, &stream->record->last, item);
    } else {
        append(&stream->first, &stream->last, item);
        pthread_cond_signal(&device->wake);
    }
    pthread_mutex_unlock(&device->lock);
    if (wrong)
        return tn_fail(TN_ERR_DEVICE,
                       "strict: a stream that records accepts only kernels and copies within "
                       "the device; got an event, or a copy from or to the host");
    return lost ? tn_fail(TN_ERR_LOST, "strict: the device is lost") : TN_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

tn_status strict_event_new(void *device, const tn_event_args *args, void **out)
{
    struct event *event = tn_calloc(1, sizeof *event);
    (void)device, (void)args;
    if (!event)
        return TN_ERR_MEMORY;
    event->refs = 1;
    *out = event;
    return TN_OK;
}

void strict_event_drop(void *handle, void *event)
{
    struct device *device = handle;
    pthread_mutex_lock(&device->lock);
    drop_event(event);
    pthread_mutex_unlock(&device->lock);
}

static tn_status push_event(struct device *device, struct event *event, struct stream *stream,
                            enum item_kind kind)
{
    struct item *item = tn_calloc(1, sizeof *item);
    if (!item)
        return TN_ERR_MEMORY;
    pthread_mutex_lock(&device->lock);
    item->kind = kind;
    item->event = event;
    event->refs++;
    item->number = kind == RECORD ? ++event->asked : event->asked;
    pthread_mutex_unlock(&device->lock);
    return strict_push(stream, item);
}

tn_status strict_event_record(void *device, void *event, void *stream)
{
    return push_event(device, event, stream, RECORD);
}

tn_status strict_event_wait(void *device, void *event, void *stream)
{
    return push_event(device, event, stream, WAIT);
}

tn_status strict_event_sync(void *handle, void *which)
{
    struct device *device = handle;
    struct event *event = which;
    pthread_mutex_lock(&device->lock);
    uint64_t number = event->asked;
    while (event->reached < number && !device->lost)
        pthread_cond_wait(&device->done, &device->lock);
    bool lost = device->lost;
    pthread_mutex_unlock(&device->lock);
    return lost ? tn_fail(TN_ERR_LOST, "strict: the device is lost") : TN_OK;
}

tn_status strict_event_query(void *handle, void *which, bool *done)
{
    struct device *device = handle;
    struct event *event = which;
    pthread_mutex_lock(&device->lock);
    *done = event->reached >= event->asked || device->lost;
    pthread_mutex_unlock(&device->lock);
    return TN_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static tn_status check_range(const tn_copy_end *end, uint64_t bytes)
{
    uint64_t size = 0, offset = end->offset;
    if (!strict_region((uint64_t)(uintptr_t)end->memory, &size))
        return tn_fail(TN_ERR_DEVICE,
                       "strict: memory: wrong address, got %p; expected memory of this device",
                       end->memory);
    if (offset > size || bytes > size - offset)
        return tn_fail(
            TN_ERR_DEVICE,
            "strict: copy: out of range, got bytes %llu to %llu; expected within memory of %llu",
            (unsigned long long)offset, (unsigned long long)(offset + bytes),
            (unsigned long long)size);
    return TN_OK;
}

/* Queues a copy from the host. The bytes are copied into the item first, unless TN_COPY_ASYNC
 * promises that they do not change before the work is done. */
static tn_status copy_in(const tn_copy_args *args)
{
    bool later = (args->flags & TN_COPY_ASYNC) != 0;
    char *from = (char *)args->from.memory + args->from.offset;
    struct item *item = tn_malloc(sizeof *item + (later ? 0 : (size_t)args->bytes));
    if (!item)
        return TN_ERR_MEMORY;
    memset(item, 0, sizeof *item);
    item->kind = COPY_IN;
    item->memory[0] = (uint64_t)(uintptr_t)args->to.memory;
    item->offset[0] = args->to.offset;
    item->bytes = (size_t)args->bytes;
    item->host = later ? (void *)from : item + 1;
    if (!later)
        memcpy(item->host, from, item->bytes);
    return strict_push(args->stream, item);
}

static tn_status copy_out(void *device, const tn_copy_args *args)
{
    struct item *item = tn_calloc(1, sizeof *item);
    if (!item)
        return TN_ERR_MEMORY;
    item->kind = COPY_OUT;
    item->memory[1] = (uint64_t)(uintptr_t)args->from.memory;
    item->offset[1] = args->from.offset;
    item->bytes = (size_t)args->bytes;
    item->host = (char *)args->to.memory + args->to.offset;
    tn_status status = strict_push(args->stream, item);
    return status == TN_OK && !(args->flags & TN_COPY_ASYNC)
               ? strict_stream_sync(device, args->stream)
               : status;
}

static tn_status copy_inside(const tn_copy_args *args)
{
    struct item *item = tn_calloc(1, sizeof *item);
    if (!item)
        return TN_ERR_MEMORY;
    item->kind = COPY;
    item->memory[0] = (uint64_t)(uintptr_t)args->to.memory;
    item->memory[1] = (uint64_t)(uintptr_t)args->from.memory;
    item->offset[0] = args->to.offset;
    item->offset[1] = args->from.offset;
    item->bytes = (size_t)args->bytes;
    return strict_push(args->stream, item);
}

tn_status strict_copy(void *device, const tn_copy_args *args)
{
    tn_status status = args->to.device ? check_range(&args->to, args->bytes) : TN_OK;
    if (status == TN_OK && args->from.device)
        status = check_range(&args->from, args->bytes);
    if (status != TN_OK)
        return status;
    if (!args->from.device)
        return copy_in(args);
    return args->to.device ? copy_inside(args) : copy_out(device, args);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Copies a view to `out`. Fails unless all elements are inside allocated memory of the device. */
static tn_status check_view(const tn_call *call, const char *what, int64_t index,
                            const tn_view *view, struct strict_view *out)
{
    int64_t last = 0, count = 1;
    uint64_t size = 0;
    if (!view) {
        out->dtype = TN_DTYPE_AUTO;
        return TN_OK;
    }
    out->memory = (uint64_t)(uintptr_t)view->data;
    out->offset = view->byte_offset;
    out->dtype = tn_view_dtype(view);
    out->ndim = view->ndim;
    for (int32_t i = 0; i < view->ndim; i++) {
        out->shape[i] = view->shape[i];
        out->strides[i] = view->strides[i];
        count *= view->shape[i];
        last += (view->shape[i] - 1) * view->strides[i];
        if (view->shape[i] < 0 || view->strides[i] < 0)
            return tn_fail(TN_ERR_DEVICE,
                           "strict: %s: %s %lld: negative size or stride; expected 0 or more",
                           call->op, what, (long long)index);
    }
    if (count == 0)
        return TN_OK;
    if (!strict_region(out->memory, &size))
        return tn_fail(TN_ERR_DEVICE,
                       "strict: %s: %s %lld: wrong address, got %p; expected memory of this device",
                       call->op, what, (long long)index, view->data);
    uint64_t item = tn_dtype_size(out->dtype);
    if (out->offset > size || ((uint64_t)last + 1) * item > size - out->offset)
        return tn_fail(
            TN_ERR_DEVICE,
            "strict: %s: %s %lld: exceeds its memory, got %llu bytes from byte %llu; expected "
            "within %llu",
            call->op, what, (long long)index, (unsigned long long)(((uint64_t)last + 1) * item),
            (unsigned long long)out->offset, (unsigned long long)size);
    return TN_OK;
}

tn_status strict_enqueue(const tn_call *call, strict_body *body,
                         tn_status (*fill)(const tn_call *, struct strict_work *))
{
    if (call->n_in + call->n_out > STRICT_MAX_VIEWS)
        return tn_fail(TN_ERR_DEVICE,
                       "strict: %s: too many operands, got %lld; expected at most %d", call->op,
                       (long long)(call->n_in + call->n_out), STRICT_MAX_VIEWS);
    struct item *item = tn_calloc(1, sizeof *item);
    if (!item)
        return TN_ERR_MEMORY;
    struct strict_work *copy = &item->work;
    item->kind = KERNEL;
    item->body = body;
    copy->op = call->kernel->op; /* call->op may not stay valid until the work runs */
    copy->device = call->device;
    copy->n_in = (int32_t)call->n_in;
    copy->n_out = call->n_out;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < call->n_out && status == TN_OK; i++)
        status = check_view(call, "output", i, call->out[i], &copy->view[i]);
    for (int32_t i = 0; i < call->n_in && status == TN_OK; i++)
        status = check_view(call, "input", i, call->in[i], &copy->view[call->n_out + i]);
    if (status == TN_OK && fill)
        status = fill(call, copy);
    if (status != TN_OK) {
        tn_free(item);
        return status;
    }
    return strict_push(call->stream, item);
}
