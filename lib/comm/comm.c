/* SPDX-License-Identifier: MIT
 *
 * The communicator object: checks the tensors of an exchange between processes, and calls the
 * plugin that performs it. */
#include "core/op/internal.h"
#include "core/tensor/boundary.h"
#include "core/tensor/thread.h"

#include <tenon/comm.h>

struct tn_comm {
    const tn_comm_def *def;
    tn__plugin *plugin;
    const tn_device *device;
    void *handle; /* the plugin's handle of the group */
    int32_t rank, size;
    _Atomic bool aborted;
};

typedef tn_status (*exchange)(const tn_comm_call *call);

/* ---- life ------------------------------------------------------------------------------------ */

static const char *id_of(const tn__plugin *plugin)
{
    return plugin->id != NULL ? plugin->id : "";
}

/* Checks the arguments that the program gave, and copies them to a struct of the host's size. */
static tn_status copy_args(const tn_comm_args *from, tn_comm_args *to)
{
    const tn_head *head = &from->head;
    size_t size = head->size < sizeof *to ? head->size : sizeof *to;

    if (head->kind != TN_KIND_tn_comm_args)
        return tn_fail(
            TN_ERR_VALUE,
            "tn_comm_new: args: not a tn_comm_args, got a struct of kind %u; initialize it "
            "with TN_HEAD(tn_comm_args)",
            head->kind);
    /* a shorter struct, of an older header, ends where a member does */
    if (head->abi_major != TN_ABI_MAJOR || head->size > sizeof *to || head->size < sizeof *head ||
        head->size % _Alignof(tn_comm_args) != 0)
        return tn_fail(TN_ERR_VERSION,
                       "tn_comm_new: args: unsupported by Tenon %s, got size %u of ABI %u.%u; "
                       "expected at most %zu of %u.%u",
                       tn_version(), head->size, head->abi_major, head->abi_minor, sizeof *to,
                       TN_ABI_MAJOR, TN_ABI_MINOR);
    if (head->flags != 0 || head->target > UINT16_MAX || head->destroy != NULL)
        return tn_fail(
            TN_ERR_VERSION,
            "tn_comm_new: args: flags, target or destroy of its head: wrong, got 0x%x, "
            "%u and %p; expected 0, a minor version and NULL, as TN_HEAD(tn_comm_args) sets them",
            (unsigned)head->flags, (unsigned)head->target, (void *)(uintptr_t)head->destroy);
    memset(to, 0, sizeof *to);
    memcpy(to, from, size);
    to->head = (tn_head){ sizeof *to,   TN_KIND_tn_comm_args, 0,   TN_ABI_MAJOR,
                          TN_ABI_MINOR, TN_ABI_MINOR,         NULL };
    if (to->data != NULL || to->handle != NULL)
        return tn_fail(TN_ERR_VALUE, "tn_comm_new: args: data or handle: set by the program; "
                                     "expected NULL, the core sets both");
    if (to->size < 1 || to->rank < 0 || to->rank >= to->size)
        return tn_fail(TN_ERR_VALUE,
                       "tn_comm_new: args: wrong group, got rank %d of size %d; expected a size "
                       "of 1 or more, and a rank below it",
                       (int)to->rank, (int)to->size);
    if (!(to->timeout >= 0))
        return tn_fail(TN_ERR_VALUE,
                       "tn_comm_new: args: timeout: wrong, got %g; expected 0 or more seconds",
                       to->timeout);
    if (to->device == NULL && (to->device = tn_default_device()) == NULL)
        return tn_error_last_code();
    return tn__device_usable(to->device);
}

static tn_status open_group(tn_comm *comm, const tn_comm_args *args)
{
    const char *before = tn__error_plugin(id_of(comm->plugin));
    tn__boundary_thread thread;
    tn_status status;

    tn__boundary_enter(&thread);
    status = tn__error_status_of(comm->def->open(comm->def, args, &comm->handle), comm->def->name);
    status = tn__boundary_leave(&thread, id_of(comm->plugin), comm->def->name, status);
    tn__error_plugin(before);
    return status == TN_OK ? TN_OK : tn_error_prefix("communicator %s: ", comm->def->name);
}

/* Reads the options and lets the plugin open the group. */
static tn_status join(tn_comm *comm, const tn__spec *spec, tn_comm_args *args)
{
    const tn_comm_def *def = comm->def;
    void *data = tn_calloc(1, def->data_size > 0 ? def->data_size : 1);
    tn__option_block *block = NULL;
    tn_status status = TN_ERR_MEMORY;
    char what[128];

    tn_snprint(what, sizeof what, "communicator %s", def->name);
    if (data != NULL && def->options == NULL)
        status = spec->count == 0
                     ? TN_OK
                     : tn_fail(TN_ERR_VALUE, "%s: options: unknown, got %q; expected none", what,
                               spec->text);
    else if (data != NULL)
        status = tn__options_fill(def->options, data, what, spec->text, spec->values, spec->names,
                                  spec->columns, spec->count, &block);
    args->data = data;
    args->handle = comm->device->handle;
    if (status == TN_OK)
        status = open_group(comm, args);
    tn__options_release(block);
    tn_free(data);
    return status;
}

static tn_comm *from_spec(const tn__spec *spec, tn_comm_args *args)
{
    const tn__entry *entry;
    tn_comm *comm;

    if (spec->type[0] == '\0') {
        tn_fail(TN_ERR_FORMAT, "tn_comm_new: wrong form, got %q; expected name(options)",
                spec->text);
        return NULL;
    }
    entry = tn__registry_use(TN_KIND_tn_comm_def, spec->type);
    comm = entry != NULL ? tn_calloc(1, sizeof *comm) : NULL;
    if (comm == NULL)
        return NULL;
    comm->def = (const tn_comm_def *)entry->contribution;
    comm->plugin = entry->plugin;
    comm->device = args->device;
    comm->rank = args->rank;
    comm->size = args->size;
    if (join(comm, spec, args) == TN_OK)
        return comm;
    tn_free(comm);
    return NULL;
}

tn_comm *tn_comm_new(const char *spec, const tn_comm_args *args)
{
    tn_comm_args own;
    tn__spec *parsed;
    tn_comm *comm = NULL;

    if (!tn__given(spec != NULL, "tn_comm_new: spec") ||
        !tn__given(args != NULL, "tn_comm_new: args") || copy_args(args, &own) != TN_OK)
        return NULL;
    parsed = tn__spec_parse(spec);
    if (parsed != NULL)
        comm = from_spec(parsed, &own);
    tn__spec_free(parsed);
    return comm;
}

void tn_comm_drop(tn_comm *comm)
{
    const char *before;

    if (comm == NULL)
        return;
    before = tn__error_plugin(id_of(comm->plugin));
    comm->def->close(comm->handle);
    tn__error_plugin(before);
    tn_free(comm);
}

tn_status tn_comm_abort(tn_comm *comm)
{
    const char *before;
    tn_status status = TN_OK;

    if (!tn__not_null(comm, "tn_comm_abort: comm"))
        return tn_error_last_code();
    atomic_store_explicit(&comm->aborted, true, memory_order_release);
    if (comm->def->abort == NULL)
        return TN_OK;
    before = tn__error_plugin(id_of(comm->plugin));
    status = tn__error_status_of(comm->def->abort(comm->handle), comm->def->name);
    tn__error_plugin(before);
    return status;
}

int32_t tn_comm_rank(const tn_comm *comm)
{
    return tn__not_null(comm, "tn_comm_rank: comm") ? comm->rank : -1;
}

int32_t tn_comm_size(const tn_comm *comm)
{
    return tn__not_null(comm, "tn_comm_size: comm") ? comm->size : -1;
}

const char *tn_comm_name(const tn_comm *comm)
{
    return tn__not_null(comm, "tn_comm_name: comm") ? comm->def->name : NULL;
}

const tn_device *tn_comm_device(const tn_comm *comm)
{
    return tn__not_null(comm, "tn_comm_device: comm") ? comm->device : NULL;
}

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

static tn_status call_plugin(tn_comm *comm, exchange run, tn_comm_call *call, tn_stream *stream,
                             const char *who)
{
    const char *before = tn__error_plugin(id_of(comm->plugin));
    tn__boundary_thread thread;
    tn_status status;

    tn__boundary_enter(&thread);
    tn__stream_lock(stream);
    status = run(call);
    tn__stream_unlock(stream);
    status = tn__device_result(comm->device, status, comm->def->name);
    status = tn__boundary_leave(&thread, id_of(comm->plugin), comm->def->name, status);
    tn__error_plugin(before);
    if (status == TN_OK && tn__boundary_on() && comm->device->allocator != NULL &&
        tn__allocator_check(comm->device->allocator) != TN_OK)
        status = tn_error_prefix("checked boundary: plugin %q wrote outside its outputs: ",
                                 id_of(comm->plugin));
    return status == TN_OK ? TN_OK : tn_error_prefix("%s: ", who);
}

/* Performs an exchange. Both tensors may be NULL. If they are empty, they are empty in every
 * process, and nothing is exchanged. */
static tn_status exchange_tensors(tn_comm *comm, exchange run, tn_tensor *in, tn_tensor *out,
                                  tn_comm_call *call, const char *who)
{
    tn_stream *stream;
    tn_status status = TN_OK;

    if (run == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: communicator %s does not implement this exchange; expected another "
                       "communicator",
                       who, comm->def->name);
    if (atomic_load_explicit(&comm->aborted, memory_order_acquire))
        return tn_fail(TN_ERR_PEER, "%s: the group was aborted; make a new group with tn_comm_new",
                       who);
    if ((in != NULL && in->numel == 0) || (out != NULL && out->numel == 0))
        return TN_OK;
    status = tn__plugin_use(comm->plugin);
    if (status != TN_OK)
        return status;
    stream = tn_stream_current(comm->device);
    if (stream == NULL)
        return tn_error_last_code();
    if (in != NULL && stream->lock != NULL)
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
    status = call_plugin(comm, run, call, stream, who);
    if (out != NULL) /* even after a failure, because a part may have been written */
        tn__tensor_written(out);
    return status;
}

/* Flags for the arguments of an exchange. */
enum { IN = 1, OUT = 2, PEER = 4, REDUCTION = 8, GATHERS = 16, SCATTERS = 32 };

static tn_status check_exchange(const tn_comm *comm, unsigned takes, tn_tensor *in, tn_tensor *out,
                                const tn_comm_call *call, const char *who)
{
    tn_status status;

    if (!tn__not_null(comm, who))
        return tn_error_last_code();
    status = takes & OUT ? check_tensor(comm, out, true, who) : TN_OK;
    if (status == TN_OK && (takes & IN))
        status = check_tensor(comm, in, false, who);
    if (status == TN_OK && (takes & GATHERS))
        status = check_pair(comm, out, in, who);
    if (status == TN_OK && (takes & SCATTERS))
        status = check_pair(comm, in, out, who);
    if (status == TN_OK && (takes & REDUCTION))
        status = check_reduction(comm, takes & IN ? in : out, call->reduction, who);
    if (status == TN_OK && (takes & PEER))
        status = check_peer(comm, call->peer, who);
    return status;
}

tn_status tn_comm_all_reduce(tn_comm *comm, tn_tensor *tensor, tn_reduction reduction)
{
    static const char who[] = "tn_comm_all_reduce";
    tn_comm_call call = { TN_HEAD(tn_comm_call), .reduction = reduction };
    tn_status status = check_exchange(comm, OUT | REDUCTION, tensor, tensor, &call, who);

    return status == TN_OK
               ? exchange_tensors(comm, comm->def->all_reduce, tensor, tensor, &call, who)
               : status;
}

tn_status tn_comm_broadcast(tn_comm *comm, tn_tensor *tensor, int32_t root)
{
    static const char who[] = "tn_comm_broadcast";
    tn_comm_call call = { TN_HEAD(tn_comm_call), .peer = root };
    tn_status status = check_exchange(comm, OUT | PEER, tensor, tensor, &call, who);

    return status == TN_OK
               ? exchange_tensors(comm, comm->def->broadcast, tensor, tensor, &call, who)
               : status;
}

tn_status tn_comm_all_gather(tn_comm *comm, tn_tensor *out, tn_tensor *in)
{
    static const char who[] = "tn_comm_all_gather";
    tn_comm_call call = { TN_HEAD(tn_comm_call), .peer = 0 };
    tn_status status = check_exchange(comm, IN | OUT | GATHERS, in, out, &call, who);

    return status == TN_OK ? exchange_tensors(comm, comm->def->all_gather, in, out, &call, who)
                           : status;
}

tn_status tn_comm_reduce_scatter(tn_comm *comm, tn_tensor *out, tn_tensor *in,
                                 tn_reduction reduction)
{
    static const char who[] = "tn_comm_reduce_scatter";
    tn_comm_call call = { TN_HEAD(tn_comm_call), .reduction = reduction };
    tn_status status = check_exchange(comm, IN | OUT | SCATTERS | REDUCTION, in, out, &call, who);

    return status == TN_OK ? exchange_tensors(comm, comm->def->reduce_scatter, in, out, &call, who)
                           : status;
}

tn_status tn_comm_send(tn_comm *comm, tn_tensor *tensor, int32_t to, int32_t tag)
{
    static const char who[] = "tn_comm_send";
    tn_comm_call call = { TN_HEAD(tn_comm_call), .peer = to, .tag = tag };
    tn_status status = check_exchange(comm, IN | PEER, tensor, NULL, &call, who);

    return status == TN_OK ? exchange_tensors(comm, comm->def->send, tensor, NULL, &call, who)
                           : status;
}

tn_status tn_comm_recv(tn_comm *comm, tn_tensor *tensor, int32_t from, int32_t tag)
{
    static const char who[] = "tn_comm_recv";
    tn_comm_call call = { TN_HEAD(tn_comm_call), .peer = from, .tag = tag };
    tn_status status = check_exchange(comm, OUT | PEER, NULL, tensor, &call, who);

    return status == TN_OK ? exchange_tensors(comm, comm->def->recv, NULL, tensor, &call, who)
                           : status;
}

tn_status tn_comm_barrier(tn_comm *comm)
{
    static const char who[] = "tn_comm_barrier";
    tn_comm_call call = { TN_HEAD(tn_comm_call), .peer = 0 };
    tn_status status = check_exchange(comm, 0, NULL, NULL, &call, who);

    return status == TN_OK ? exchange_tensors(comm, comm->def->barrier, NULL, NULL, &call, who)
                           : status;
}
