/* SPDX-License-Identifier: MIT
 *
 * The plugin with the communicator `local`: the processes of one host, which exchange tensors
 * through shared memory, or through TCP on the loopback interface. */
#include "exchange.h"
#include "reduce.h"

/* Performs an exchange and waits for it. */
static tn_status run(const tn_comm_call *call, enum exchange_kind kind)
{
    struct group *group = call->comm;
    struct work work;
    tn_status status = group_enter(group);

    if (status != TN_OK)
        return status;
    status = exchange_start(&work, call, kind);
    if (status == TN_OK)
        status = exchange_wait(&work);
    return group_leave(group, status);
}

static tn_status all_reduce(const tn_comm_call *call)
{
    return run(call, EXCHANGE_ALL_REDUCE);
}

static tn_status broadcast(const tn_comm_call *call)
{
    return run(call, EXCHANGE_BROADCAST);
}

static tn_status all_gather(const tn_comm_call *call)
{
    return run(call, EXCHANGE_ALL_GATHER);
}

static tn_status reduce_scatter(const tn_comm_call *call)
{
    return run(call, EXCHANGE_REDUCE_SCATTER);
}

static tn_status send_tensor(const tn_comm_call *call)
{
    return run(call, EXCHANGE_SEND);
}

static tn_status receive_tensor(const tn_comm_call *call)
{
    return run(call, EXCHANGE_RECV);
}

static tn_status barrier(const tn_comm_call *call)
{
    return run(call, EXCHANGE_BARRIER);
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
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .send = send_tensor,
    .recv = receive_tensor,
    .barrier = barrier,
};

static const void *const contributions[] = { &local };

static const tn_plugin comm_local = {
    TN_HEAD(tn_plugin),   .id = "tenon.comm",
    .version = "0.1.0",   .help = "groups of processes of one host",
    .license = "MIT",     .contributions = contributions,
    .n_contributions = 1,
};

TN_PLUGIN_EXPORT(comm_local);
