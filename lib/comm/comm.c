/* SPDX-License-Identifier: MIT
 *
 * The life of a communicator: joins a group, leaves it. */
#include "lib/comm/internal.h"

/* ---- life ------------------------------------------------------------------------------------ */

static tn_status check_rank(const tn_comm_args *args)
{
    return args->size >= 1 && args->rank >= 0 && args->rank < args->size
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         "tn_comm_new: args: wrong group, got rank %d of size %d; expected a size "
                         "of 1 or more, and a rank below it",
                         (int)args->rank, (int)args->size);
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
    if (!(to->timeout >= 0))
        return tn_fail(TN_ERR_VALUE,
                       "tn_comm_new: args: timeout: wrong, got %g; expected 0 or more seconds",
                       to->timeout);
    if (check_rank(to) != TN_OK ||
        (to->device == NULL && (to->device = tn_default_device()) == NULL))
        return tn_error_last_code();
    return tn__device_usable(to->device);
}

static tn_status open_group(tn_comm *comm, const tn_comm_args *args)
{
    const char *before = tn__error_plugin(tn__comm_plugin_id(comm));
    tn__boundary_thread thread;
    tn_status status;

    tn__boundary_enter(&thread);
    status = tn__error_status_of(comm->def->open(comm->def, args, &comm->handle), comm->def->name);
    status = tn__boundary_leave(&thread, tn__comm_plugin_id(comm), comm->def->name, status);
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

/* Asks a communicator for the group of the processes that were started together. Without an answer,
 * this process is alone. */
static tn_status ask_world(const tn_comm_def *def, tn_comm_args *args)
{
    tn_status status = def->world != NULL ? tn__error_status_of(def->world(def, args), def->name)
                                          : TN_OK;

    if (status != TN_OK)
        return tn_error_prefix("communicator %s: ", def->name);
    if (args->size == 0)
        args->size = 1;
    return check_rank(args);
}

/* Returns the name of the communicator that serves the processes that were started together. */
static const char *first_for_world(void)
{
    const int64_t count = tn_registry_count(TN_KIND_tn_comm_def);

    for (int64_t i = 0; i < count; i++) {
        const char *name = tn_registry_name(TN_KIND_tn_comm_def, i);
        const tn_head *def = tn_registry_find(TN_KIND_tn_comm_def, name);

        if (def != NULL && ((const tn_comm_def *)def)->world != NULL)
            return name;
    }
    tn_fail(TN_ERR_NOT_IMPLEMENTED, "tn_comm_new: spec: no communicator knows launchers; expected "
                                    "a plugin with one on the plugin path, or a name");
    return NULL;
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
    if (entry == NULL ||
        (args->size == 0 && ask_world((const tn_comm_def *)entry->contribution, args) != TN_OK))
        return NULL;
    comm = tn_calloc(1, sizeof *comm);
    if (comm == NULL)
        return NULL;
    comm->def = (const tn_comm_def *)entry->contribution;
    comm->plugin = entry->plugin;
    comm->device = args->device;
    comm->rank = args->rank;
    comm->size = args->size;
    comm->users = 1;
    if (join(comm, spec, args) == TN_OK)
        return comm;
    tn_free(comm);
    return NULL;
}

tn_comm *tn_comm_new(const char *spec, const tn_comm_args *args)
{
    tn_comm_args own = { TN_HEAD(tn_comm_args), .size = 0 };
    tn__spec *parsed;
    tn_comm *comm = NULL;

    if (args != NULL ? copy_args(args, &own) != TN_OK : (own.device = tn_default_device()) == NULL)
        return NULL;
    if (spec == NULL)
        spec = first_for_world();
    parsed = spec != NULL ? tn__spec_parse(spec) : NULL;
    if (parsed != NULL)
        comm = from_spec(parsed, &own);
    tn__spec_free(parsed);
    return comm;
}

void tn_comm_drop(tn_comm *comm)
{
    const char *before;

    if (comm == NULL || --comm->users > 0)
        return;
    before = tn__error_plugin(tn__comm_plugin_id(comm));
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
    before = tn__error_plugin(tn__comm_plugin_id(comm));
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
