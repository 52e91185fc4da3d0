/* SPDX-License-Identifier: MIT
 *
 * The communicator of `tenon new communicator` (hub.h, which mutants.sh makes from the template)
 * with one error each (mutant_choose.h). */
#include "mutant_choose.h"

#include "hub.h"

static tn_status broken(const tn_comm_call *call)
{
    tn_comm_call changed = *call;
    tn_status status;

    if (is("comm-root") && call->exchange == TN_EXCHANGE_BROADCAST)
        changed.peer = 0;
    if (is("comm-barrier") && call->exchange == TN_EXCHANGE_BARRIER)
        return TN_OK;
    if (is("comm-sum") && call->reduction == TN_REDUCTION_MAX)
        changed.reduction = TN_REDUCTION_SUM;
    status = exchange(&changed);
    if (is("comm-lost") && status == TN_ERR_PEER)
        return TN_OK;
    if (is("comm-patient") && status == TN_ERR_TIMEOUT)
        return TN_OK;
    if (is("comm-bits") && status == TN_OK && call->exchange == TN_EXCHANGE_ALL_REDUCE &&
        size_of(call->out) == 4000 && ((struct group *)call->comm)->rank == 1)
        ((float *)(void *)first(call->out))[3] *= 1.0000001f;
    if (is("comm-order") && status == TN_OK && call->exchange == TN_EXCHANGE_ALL_GATHER &&
        size_of(call->out) > size_of(call->in)) {
        float *out = (float *)(void *)first(call->out), *other = out + size_of(call->in) / 4;
        float element = *out;

        *out = *other;
        *other = element;
    }
    return status;
}

/* Exchanges in the background that are performed by `wait`. */
struct background {
    tn_comm_call call;
    tn_view in, out;
};

static tn_status start(const tn_comm_call *call, void **work)
{
    struct background *background = tn_malloc(sizeof *background);

    if (background == NULL)
        return tn_error_last_code();
    background->call = *call;
    background->in = *call->in;
    background->out = *call->out;
    *work = background;
    return TN_OK;
}

static tn_status progress(void *group, void *work, bool *done)
{
    (void)group, (void)work;
    *done = true; /* too early */
    return TN_OK;
}

static tn_status wait_for(void *group, void *work)
{
    struct background *background = work;
    tn_status status;

    (void)group;
    background->call.in = &background->in;
    background->call.out = &background->out;
    status = broken(&background->call);
    tn_free(background);
    return status;
}

static tn_comm_def def;
static const void *const contributions[] = { &def };
static const tn_plugin plugin = { TN_HEAD(tn_plugin), .id = "org.example.mutant",
                                  .version = "1.0.0", .contributions = contributions,
                                  .n_contributions = 1 };

__attribute__((constructor)) static void fill(void)
{
    def = comm;
    def.all_reduce = def.broadcast = def.all_gather = def.reduce_scatter = def.barrier = broken;
    if (!is("comm-early"))
        return;
    def.start = start;
    def.progress = progress;
    def.wait = wait_for;
}

TN_PLUGIN_EXPORT(plugin);
