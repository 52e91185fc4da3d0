/* SPDX-License-Identifier: MIT
 *
 * Exchanges between processes: checks the tensors, and calls the plugin that performs the exchange,
 * at once or in the background. */
#include "lib/comm/internal.h"

#include <time.h>

struct tn_work {
    tn_comm *comm;
    tn_tensor *out, *in; /* kept until the work is done */
    void *handle;        /* the plugin's; NULL: the exchange is done */
    tn_exchange exchange;
};

/* ---- checks ---------------------------------------------------------------------------------- */

static tn_status refuse_tensor(const tn_tensor *tensor, const char *who, const char *wrong,
                               const char *expected)
{
    tn__text text = { 0 };
    tn_status status;

    tn__tensor_text(&text, tensor);
    tn__text_put(&text, "", 1);
    status = tn_fail(TN_ERR_VALUE, "%s: %s, got %s; expected %s", who, wrong,
                     text.failed ? "a tensor" : text.at, expected);
    tn__text_free(&text);
    return status;
}

static tn_status check_tensor(const tn_comm *comm, tn_tensor *tensor, bool written, const char *who)
{
    if (!tn__tensor_ok(tensor))
        return tn__tensor_bad(tensor, who);
    if (tensor->device != comm->device)
        return tn_fail(TN_ERR_RUNTIME, "%s: wrong device, got %s; the group is on %s", who,
                       tensor->device->name, comm->device->name);
    if (!tensor->contiguous)
        return refuse_tensor(tensor, who, "not contiguous", "a contiguous tensor");
    if (!written)
        return TN_OK;
    if (tn__grad_on() && tn__requires_grad(tensor))
        return refuse_tensor(tensor, who, "it requires grad",
                             "a tensor that does not, or tn_grad_begin(false) before the call");
    return tn__tensor_writable(tensor);
}

/* Checks that `many` has as many elements as `one` has in all processes together, and the same
 * dtype. */
static tn_status check_pair(const tn_comm *comm, const tn_tensor *many, const tn_tensor *one,
                            const char *who)
{
    int64_t expected;

    if (many->dtype != one->dtype)
        return tn_fail(TN_ERR_TYPE, "%s: dtypes differ, got %s and %s; expected one dtype", who,
                       tn_dtype_name(one->dtype), tn_dtype_name(many->dtype));
    if (tn__mul_overflow(one->numel, (int64_t)comm->size, &expected) || many->numel != expected)
        return tn_fail(TN_ERR_VALUE,
                       "%s: wrong sizes, got %lld elements for all and %lld for each of %d "
                       "processes; expected %lld times %d for all",
                       who, (long long)many->numel, (long long)one->numel, (int)comm->size,
                       (long long)one->numel, (int)comm->size);
    if (tn__tensor_overlap(many, one))
        return tn_fail(TN_ERR_VALUE, "%s: out and in share memory; expected two tensors", who);
    return TN_OK;
}

static tn_status check_reduction(const tn_comm *comm, const tn_tensor *tensor,
                                 tn_reduction reduction, const char *who)
{
    static const char *const names[] = { "SUM", "PRODUCT", "MIN", "MAX", "AVERAGE" };
    uint64_t mask = comm->def->dtypes;
    tn__text text = { 0 };
    tn_status status;

    if (reduction >= TN_REDUCTION_COUNT)
        return tn_fail(TN_ERR_VALUE, "%s: unknown reduction, got %u; expected one of tn_reduction",
                       who, reduction);
    if (reduction == TN_REDUCTION_AVERAGE)
        mask &= TN_MASK_FLOAT | TN_MASK_COMPLEX;
    else if (reduction == TN_REDUCTION_MIN || reduction == TN_REDUCTION_MAX)
        mask &= ~TN_MASK_COMPLEX;
    if (mask & TN_BIT(tensor->dtype))
        return TN_OK;
    tn__text_add(&text, mask != 0 ? "one of" : "another reduction");
    for (int d = 0; d < TN_DTYPE_COUNT; d++)
        if (mask & TN_BIT(d))
            tn__text_add(&text, " %s", tn_dtype_name(d));
    tn__text_put(&text, "", 1);
    status = tn_fail(TN_ERR_TYPE,
                     "%s: communicator %s cannot do TN_REDUCTION_%s for %s; expected %s", who,
                     comm->def->name, names[reduction], tn_dtype_name(tensor->dtype),
                     text.failed ? "another dtype" : text.at);
    tn__text_free(&text);
    return status;
}

static tn_status check_peer(const tn_comm *comm, int32_t peer, const char *who)
{
    if (peer >= 0 && peer < comm->size)
        return TN_OK;
    return tn_fail(TN_ERR_INDEX, "%s: rank out of range, got %d; expected 0 to %d", who, (int)peer,
                   (int)comm->size - 1);
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* What an exchange takes. SAME: `in` is `out`. */
enum { IN = 1, OUT = 2, PEER = 4, REDUCTION = 8, GATHERS = 16, SCATTERS = 32, SAME = 64 };

typedef tn_status (*function)(const tn_comm_call *call);

static const struct row {
    const char *who;
    unsigned takes;
    size_t function; /* its place in tn_comm_def */
} rows[TN_EXCHANGE_COUNT + 1] = {
    { "tn_comm_all_reduce", OUT | SAME | REDUCTION, offsetof(tn_comm_def, all_reduce) },
    { "tn_comm_broadcast", OUT | SAME | PEER, offsetof(tn_comm_def, broadcast) },
    { "tn_comm_all_gather", IN | OUT | GATHERS, offsetof(tn_comm_def, all_gather) },
    { "tn_comm_reduce_scatter", IN | OUT | SCATTERS | REDUCTION,
      offsetof(tn_comm_def, reduce_scatter) },
    { "tn_comm_send", IN | PEER, offsetof(tn_comm_def, send) },
    { "tn_comm_recv", OUT | PEER, offsetof(tn_comm_def, recv) },
    { "tn_comm_barrier", 0, offsetof(tn_comm_def, barrier) },
    { "tn_comm_progress", 0, 0 },
};

static function function_of(const tn_comm *comm, tn_exchange exchange)
{
    return *(const function *)((const char *)comm->def + rows[exchange].function);
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One call of a function of the plugin, and what must be put back after it. */
struct entered {
    const char *before;
    double since;
    tn__boundary_thread thread;
};

static void enter(const tn_comm *comm, struct entered *entered)
{
    entered->before = tn__error_plugin(tn__comm_plugin_id(comm));
    entered->since = seconds_now();
    tn__boundary_enter(&entered->thread);
}

static tn_status leave(tn_comm *comm, struct entered *entered, tn_exchange exchange,
                       tn_status status)
{
    status = tn__device_result(comm->device, status, comm->def->name);
    status = tn__boundary_leave(&entered->thread, tn__comm_plugin_id(comm), comm->def->name,
                                status);
    comm->stats[exchange].seconds += seconds_now() - entered->since;
    tn__error_plugin(entered->before);
    if (status == TN_OK && tn__boundary_on() && comm->device->allocator != NULL &&
        tn__allocator_check(comm->device->allocator) != TN_OK)
        status = tn_error_prefix("checked boundary: plugin %q wrote outside its outputs: ",
                                 tn__comm_plugin_id(comm));
    return status == TN_OK ? TN_OK : tn_error_prefix("%s: ", rows[exchange].who);
}

static tn_status check_exchange(const tn_comm *comm, const tn_comm_call *call, tn_tensor *out,
                                tn_tensor *in)
{
    const struct row *row = &rows[call->exchange];
    const unsigned takes = row->takes;
    tn_status status = takes & OUT ? check_tensor(comm, out, true, row->who) : TN_OK;

    if (status == TN_OK && (takes & IN))
        status = check_tensor(comm, in, false, row->who);
    if (status == TN_OK && (takes & GATHERS))
        status = check_pair(comm, out, in, row->who);
    if (status == TN_OK && (takes & SCATTERS))
        status = check_pair(comm, in, out, row->who);
    if (status == TN_OK && (takes & REDUCTION))
        status = check_reduction(comm, takes & IN ? in : out, call->reduction, row->who);
    if (status == TN_OK && (takes & PEER))
        status = check_peer(comm, call->peer, row->who);
    if (status == TN_OK && function_of(comm, call->exchange) == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: communicator %s does not implement this exchange; expected another "
                       "communicator",
                       row->who, comm->def->name);
    if (status == TN_OK && atomic_load_explicit(&comm->aborted, memory_order_acquire))
        return tn_fail(TN_ERR_PEER, "%s: the group was aborted; make a new group with tn_comm_new",
                       row->who);
    return status;
}

static void count(tn_comm *comm, tn_exchange exchange, const tn_tensor *out, const tn_tensor *in)
{
    const tn_tensor *large = out == NULL || (in != NULL && in->numel > out->numel) ? in : out;

    comm->stats[exchange].calls++;
    if (large != NULL)
        comm->stats[exchange].bytes += large->numel * (int64_t)tn_dtype_size(large->dtype);
}

/* Calls the plugin: `start` if there is a work for its handle, else the function that waits. */
static tn_status call_plugin(tn_comm *comm, tn_comm_call *call, tn_tensor *out, tn_tensor *in,
                             tn_work *work)
{
    tn_stream *stream = tn_stream_current(comm->device);
    struct entered entered;
    tn_status status = stream != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && in != NULL && stream->lock != NULL)
        status = tn__storage_use(in->storage, stream);
    if (status == TN_OK && out != NULL && stream->lock != NULL)
        status = tn__storage_use(out->storage, stream);
    if (status != TN_OK)
        return status;
    call->def = comm->def;
    call->comm = comm->handle;
    call->in = in != NULL ? &in->view : NULL;
    call->out = out != NULL ? &out->view : NULL;
    call->device = comm->device->handle;
    call->stream = stream->handle;
    count(comm, call->exchange, out, in);
    enter(comm, &entered);
    tn__stream_lock(stream);
    status = work != NULL ? comm->def->start(call, &work->handle)
                          : function_of(comm, call->exchange)(call);
    tn__stream_unlock(stream);
    status = leave(comm, &entered, call->exchange, status);
    if (out != NULL) /* even after a failure, because a part may have been written */
        tn__tensor_written(out);
    return status;
}

/* Checks the arguments of an exchange and performs it, or starts it for a work. If tensors are
 * empty, they are empty in every process, and nothing is exchanged. */
static tn_status exchange_tensors(tn_comm *comm, tn_exchange exchange, tn_tensor *out,
                                  tn_tensor *in, int32_t with, int32_t tag, tn_work *work)
{
    tn_comm_call call = { TN_HEAD(tn_comm_call), .exchange = exchange, .tag = tag };
    tn_status status;

    if (!tn__not_null(comm, rows[exchange].who))
        return tn_error_last_code();
    if (rows[exchange].takes & REDUCTION)
        call.reduction = (tn_reduction)with;
    else
        call.peer = with;
    out = rows[exchange].takes & OUT ? out : NULL; /* tn_comm_start may get others */
    in = rows[exchange].takes & IN ? in : NULL;
    status = check_exchange(comm, &call, out, in);
    if (status != TN_OK || (out != NULL && out->numel == 0) || (in != NULL && in->numel == 0))
        return status;
    if (rows[exchange].takes & SAME)
        in = out;
    status = tn__plugin_use(comm->plugin);
    return status == TN_OK ? call_plugin(comm, &call, out, in, work) : status;
}

tn_status tn_comm_all_reduce(tn_comm *comm, tn_tensor *tensor, tn_reduction reduction)
{
    return exchange_tensors(comm, TN_EXCHANGE_ALL_REDUCE, tensor, NULL, (int32_t)reduction, 0,
                            NULL);
}

tn_status tn_comm_broadcast(tn_comm *comm, tn_tensor *tensor, int32_t root)
{
    return exchange_tensors(comm, TN_EXCHANGE_BROADCAST, tensor, NULL, root, 0, NULL);
}

tn_status tn_comm_all_gather(tn_comm *comm, tn_tensor *out, tn_tensor *in)
{
    return exchange_tensors(comm, TN_EXCHANGE_ALL_GATHER, out, in, 0, 0, NULL);
}

tn_status tn_comm_reduce_scatter(tn_comm *comm, tn_tensor *out, tn_tensor *in,
                                 tn_reduction reduction)
{
    return exchange_tensors(comm, TN_EXCHANGE_REDUCE_SCATTER, out, in, (int32_t)reduction, 0, NULL);
}

tn_status tn_comm_send(tn_comm *comm, tn_tensor *tensor, int32_t to, int32_t tag)
{
    return exchange_tensors(comm, TN_EXCHANGE_SEND, NULL, tensor, to, tag, NULL);
}

tn_status tn_comm_recv(tn_comm *comm, tn_tensor *tensor, int32_t from, int32_t tag)
{
    return exchange_tensors(comm, TN_EXCHANGE_RECV, tensor, NULL, from, tag, NULL);
}

tn_status tn_comm_barrier(tn_comm *comm)
{
    return exchange_tensors(comm, TN_EXCHANGE_BARRIER, NULL, NULL, 0, 0, NULL);
}

tn_status tn_comm_stats_of(const tn_comm *comm, tn_exchange exchange, tn_comm_stats *out)
{
    if (!tn__not_null(comm, "tn_comm_stats_of: comm") ||
        !tn__given(out != NULL, "tn_comm_stats_of: out"))
        return tn_error_last_code();
    if (exchange >= TN_EXCHANGE_COUNT)
        return tn_fail(TN_ERR_VALUE,
                       "tn_comm_stats_of: exchange: unknown, got %u; expected one of tn_exchange",
                       exchange);
    *out = comm->stats[exchange];
    return TN_OK;
}

/* ---- works ----------------------------------------------------------------------------------- */

/* Returns whether the exchanges of a group can run in the background. */
static bool in_background(const tn_comm_def *def)
{
    return def->start != NULL && def->progress != NULL && def->wait != NULL;
}

static void work_free(tn_work *work)
{
    tn_tensor_drop(work->out);
    tn_tensor_drop(work->in);
    tn_comm_drop(work->comm);
    tn_free(work);
}

tn_work *tn_comm_start(tn_comm *comm, tn_exchange exchange, tn_tensor *out, tn_tensor *in,
                       int32_t with, int32_t tag)
{
    tn_work *work;

    if (!tn__not_null(comm, "tn_comm_start: comm"))
        return NULL;
    if (exchange >= TN_EXCHANGE_COUNT) {
        tn_fail(TN_ERR_VALUE,
                "tn_comm_start: exchange: unknown, got %u; expected one of "
                "tn_exchange",
                exchange);
        return NULL;
    }
    work = tn_calloc(1, sizeof *work);
    if (work == NULL)
        return NULL;
    work->exchange = exchange;
    if (exchange_tensors(comm, exchange, out, in, with, tag,
                         in_background(comm->def) ? work : NULL) != TN_OK) {
        tn_free(work);
        return NULL;
    }
    work->comm = comm;
    comm->users++;
    work->out = rows[exchange].takes & OUT ? tn_tensor_keep(out) : NULL;
    work->in = rows[exchange].takes & IN ? tn_tensor_keep(in) : NULL;
    return work;
}

/* Calls `wait` of the plugin, or `progress` if there is a `done`. */
static tn_status attend(tn_comm *comm, tn_work *work, bool *done)
{
    const tn_exchange exchange = work != NULL ? work->exchange : TN_EXCHANGE_COUNT;
    void *handle = work != NULL ? work->handle : NULL;
    struct entered entered;
    tn_status status;

    enter(comm, &entered);
    status = done != NULL ? comm->def->progress(comm->handle, handle, done)
                          : comm->def->wait(comm->handle, handle);
    return leave(comm, &entered, exchange, status);
}

tn_status tn_work_wait(tn_work *work)
{
    tn_status status = TN_OK;

    if (!tn__not_null(work, "tn_work_wait: work"))
        return tn_error_last_code();
    if (work->handle != NULL) {
        status = attend(work->comm, work, NULL);
        if (work->out != NULL) /* again: what was saved since the start is not valid */
            tn__tensor_written(work->out);
    }
    work_free(work);
    return status;
}

tn_status tn_work_done(tn_work *work, bool *done)
{
    if (!tn__not_null(work, "tn_work_done: work") || !tn__given(done != NULL, "tn_work_done: done"))
        return tn_error_last_code();
    *done = work->handle == NULL;
    return *done ? TN_OK : attend(work->comm, work, done);
}

tn_status tn_comm_progress(tn_comm *comm)
{
    bool done = false;

    if (!tn__not_null(comm, "tn_comm_progress: comm"))
        return tn_error_last_code();
    return in_background(comm->def) ? attend(comm, NULL, &done) : TN_OK;
}
