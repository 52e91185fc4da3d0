/* SPDX-License-Identifier: MIT
 *
 * The plugin with the communicator `local`: the processes of one host, which exchange tensors
 * through shared memory, or through TCP on the loopback interface. */
#include "exchange.h"
#include "reduce.h"
#include "world.h"

/* Performs an exchange and waits for it. */
static tn_status run(const tn_comm_call *call)
{
    struct group *group = call->comm;
    struct work work;
    tn_status status = group_enter(group);

    if (status != TN_OK)
        return status;
    status = exchange_start(&work, call);
    if (status == TN_OK)
        status = exchange_wait(&work);
    return group_leave(group, status);
}

static tn_status start(const tn_comm_call *call, void **handle)
{
    struct group *group = call->comm;
    struct work *work = tn_malloc(sizeof *work);
    tn_status status = work != NULL ? group_enter(group) : tn_error_last_code();

    if (status == TN_OK)
        status = group_leave(group, exchange_start(work, call));
    if (status == TN_OK)
        *handle = work;
    else
        tn_free(work);
    return status;
}

static tn_status progress(void *comm, void *handle, bool *done)
{
    const struct work *work = handle;
    tn_status status = TN_OK;

    if (work == NULL || !work->done) {
        status = group_enter(comm);
        if (status == TN_OK)
            status = group_leave(comm, exchange_progress(comm));
    }
    *done = work == NULL || work->done;
    return status;
}

static tn_status wait_for(void *comm, void *handle)
{
    const struct group *group = comm;
    struct work *work = handle;
    const bool done = work->done;
    const uint64_t mark = tn_error_mark();
    tn_status status = TN_OK;

    if (!done || !group->shared) { /* without shared memory, others may need what is not sent */
        status = group_enter(comm);
        if (status == TN_OK)
            status = group_leave(comm, exchange_wait(work));
        else if (done) {
            tn_error_restore(mark);
            status = TN_OK;
        }
    }
    tn_free(work);
    return status;
}

static const tn_option options[] = {
    TN_OPTION_STRING(struct group_options, token, "''",
                     "secret of the job that all ranks have: 32 hexadecimal digits"),
    TN_OPTION_END
};

static const tn_comm_def local = {
    TN_HEAD(tn_comm_def),
    .name = "local",
    .help = "processes of one host, through shared memory or TCP on the loopback interface",
    .options = options,
    .data_size = sizeof(struct group_options),
    .dtypes = REDUCE_DTYPES,
    .open = group_open,
    .close = group_close,
    .abort = group_abort,
    .all_reduce = run,
    .broadcast = run,
    .all_gather = run,
    .reduce_scatter = run,
    .send = run,
    .recv = run,
    .barrier = run,
    .world = world_find,
    .start = start,
    .progress = progress,
    .wait = wait_for,
};

static const void *const contributions[] = { &local };

static const tn_plugin comm_local = {
    TN_HEAD(tn_plugin),
    .id = "tenon.comm",
    .version = "0.1.0",
    .help = "groups of processes of one host",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = 1,
    .options = world_options,
    .options_data = &world_given,
};

TN_PLUGIN_EXPORT(comm_local);
