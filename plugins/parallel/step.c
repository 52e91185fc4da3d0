/* SPDX-License-Identifier: MIT
 *
 * The steps of DistributedDataParallel: what happens before a forward, and after a backward, when
 * the last gradients are combined and unused parameters are found. */
#include "ddp.h"

/* ---- buffers --------------------------------------------------------------------------------- */

tn_status step_buffers(ddp *d)
{
    return d->n_buffers > 0 ? group_copy(d->group, d->buffers, d->n_buffers) : TN_OK;
}

/* Keeps the buffers as the first shard has left them. */
static tn_status keep_snapshot(ddp *d)
{
    for (int64_t i = 0; i < d->n_buffers; i++) {
        TN_SCOPE;
        tn_tensor *copy = tn_tensor_keep(tn_clone(d->buffers[i]));

        if (copy == NULL)
            return tn_error_last_code();
        tn_tensor_drop(d->snapshot[i]);
        d->snapshot[i] = copy;
    }
    return TN_OK;
}

static tn_status use_snapshot(const ddp *d)
{
    for (int64_t i = 0; i < d->n_buffers; i++) {
        TN_SCOPE;
        if (d->snapshot[i] != NULL && tn_copy_(d->buffers[i], d->snapshot[i]) == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* Of the shards only the first one, that of rank 0, changes the buffers. So their number on a rank
 * does not matter. */
static tn_status prepare_buffers(ddp *d)
{
    tn_status status;

    if (!d->copies_buffers || d->n_buffers == 0)
        return TN_OK;
    if (d->shard == 0)
        return d->no_sync == 0 ? step_buffers(d) : TN_OK;
    tn_grad_begin(false);
    status = d->shard == 1 && d->snapshot[0] == NULL ? keep_snapshot(d) : use_snapshot(d);
    tn_grad_end();
    return status;
}

static void drop_snapshot(ddp *d)
{
    for (int64_t i = 0; i < d->n_buffers; i++) {
        tn_tensor_drop(d->snapshot[i]);
        d->snapshot[i] = NULL;
    }
}

/* ---- random numbers -------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Gives each shard numbers of its own, which depend on the state at the start of the step and on
 * the place of the shard, not on the number of ranks. */
static tn_status prepare_random(ddp *d)
{
    uint64_t place = (uint64_t)(d->rank * d->shards_here + d->shard), state[3] = { 0, 0, 0 };
    tn_status status = d->random_kept ? TN_OK : tn_random_get_state(d->random);

    d->random_kept = status == TN_OK;
    state[0] = mixed(mixed(d->random[0]) ^ mixed(d->random[1] ^ mixed(place)));
    return status == TN_OK ? tn_random_set_state(state) : status;
}

/* The state after a step is that of before, one block further. */
static tn_status restore_random(ddp *d)
{
    const uint64_t state[3] = { d->random[0], d->random[1] + 1, 0 };

    if (!d->random_kept)
        return TN_OK;
    d->random_kept = false;
    return tn_random_set_state(state);
}

/* ---- the steps ------------------------------------------------------------------------------- */

tn_status step_forward(ddp *d, bool training)
{
    tn_status status = TN_OK;

    if (d->walking) { /* the last backward has failed */
        d->walking = false;
        if (d->size > 1)
            return tn_fail(
                TN_ERR_RUNTIME,
                "DistributedDataParallel: the last backward of this rank failed, and the "
                "other ranks wait for its gradients; expected the end of the program, "
                "and a new group");
        for (int64_t i = 0; i < d->count; i++)
            share_clear(&d->parameters[i]);
        bucket_begin(d);
        d->shard = 0;
    }
    if (training)
        status = prepare_buffers(d);
    if (status == TN_OK && d->shards > 0 && tn_grad_enabled())
        status = prepare_random(d);
    return status;
}

enum { LISTED = 5 };

/* Fails on all ranks, because all have the same message, if a rank has not used a parameter. */
static tn_status check_used(const ddp *d)
{
    double ranks = d->message[DDP_TAKING_PART];
    char paths[600] = "";
    int64_t count = 0, length = 0;

    for (int64_t i = 0; i < d->count && !d->find_unused; i++) {
        if (d->message[DDP_SLOTS + i] >= ranks)
            continue;
        if (count++ < LISTED && length < (int64_t)sizeof paths)
            length += tn_snprint(paths + length, sizeof paths - (size_t)length,
                                 "%s%s (on %d of %d)", length > 0 ? ", " : "",
                                 d->parameters[i].path, (int)(ranks - d->message[DDP_SLOTS + i]),
                                 (int)ranks);
    }
    if (count == 0)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   /* PyTorch's wording */
                   "Expected to have finished reduction in the prior iteration before starting a "
                   "new one. This error indicates that your module has parameters that were not "
                   "used in producing loss: %s%s; expected find_unused_parameters=True, or a loss "
                   "that depends on all parameters that require gradients",
                   paths, count > LISTED ? ", ..." : "");
}

/* Gives a parameter its combined gradient, if a rank has used it. */
static tn_status give_gradient(const ddp *d, ddp_parameter *p, bool used)
{
    tn_tensor *gradient = used ? p->view : p->before;

    if (!used && p->before == NULL)
        return TN_OK;
    if (used && p->before != NULL && tn_add_(p->view, p->before) == NULL)
        return tn_error_last_code();
    return used && ddp_is_alone(d) ? TN_OK : tn_tensor_set_grad(p->tensor, gradient);
}

static tn_status exchange_message(ddp *d)
{
    d->message[DDP_TAKING_PART] = d->takes_part;
    d->message[DDP_WEIGHT] = d->weights;
    for (int64_t i = 0; i < d->count; i++)
        d->message[DDP_SLOTS + i] = d->parameters[i].used;
    return group_sum(d->group, d->message, DDP_SLOTS + d->count);
}

/* Adds the weight of a walk; with shards in the order of their tree, so that the bits of the sum do
 * not depend on the number of ranks. */
static void add_weight(ddp *d)
{
    double sum = d->walk_weight;
    int level = 0;

    if (d->shards == 0) {
        d->weights += sum;
        return;
    }
    for (int64_t at = d->shard; at % 2 == 1; at /= 2)
        sum = d->branches[level++] + sum;
    d->branches[level] = sum;
    d->weights = sum; /* of all, after the last walk */
}

/* Prepares the next step. */
static void reset(ddp *d)
{
    for (int64_t i = 0; i < d->count; i++) {
        share_clear(&d->parameters[i]);
        d->parameters[i].used = false;
    }
    bucket_begin(d);
    drop_snapshot(d);
    d->weights = 0;
    d->takes_part = false;
    d->shard = 0;
}

static tn_status finish(ddp *d)
{
    tn_status status = bucket_wait(d);

    if (status == TN_OK)
        status = exchange_message(d);
    if (status == TN_OK && !ddp_is_alone(d))
        status = bucket_scale(d);
    tn_grad_begin(false);
    for (int64_t i = 0; i < d->count && status == TN_OK; i++)
        status = give_gradient(d, &d->parameters[i], d->message[DDP_SLOTS + i] > 0);
    if (status == TN_OK && d->shards_here > 1 && d->copies_buffers)
        status = use_snapshot(d);
    tn_grad_end();
    return status == TN_OK ? restore_random(d) : status;
}

tn_status step_end(ddp *d, bool skipped)
{
    tn_status status = TN_OK;

    d->walking = false;
    d->takes_part |= !skipped;
    add_weight(d);
    for (int64_t i = d->count - 1; i >= 0 && status == TN_OK; i--) {
        ddp_parameter *p = &d->parameters[i];

        if (d->combines ? !p->placed : !p->arrived)
            status = share_absent(d, p);
    }
    if (!d->combines) {
        d->shard += d->shards > 0;
        return status == TN_OK ? TN_OK : ddp_failed(d);
    }
    if (status == TN_OK)
        status = finish(d);
    if (status != TN_OK)
        return ddp_failed(d);
    status = check_used(d);
    reset(d);
    return status == TN_OK && bucket_reorder(d) != TN_OK ? ddp_failed(d) : status;
}
