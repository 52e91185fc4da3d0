/* SPDX-License-Identifier: MIT
 *
 * The share of this rank in a step: what the walks give for each parameter.
 *
 * With average=ranks and without shards, backward adds to the gradients of the program, and the
 * last walk of a step places them in the buckets. Otherwise each walk starts without gradients;
 * what it computes is multiplied by its weight and added to sums: with shards in the order of a
 * binary tree, so that the sums of ranks are those of its branches. */
#include "ddp.h"

void share_clear(ddp_parameter *p)
{
    for (int level = 0; level < DDP_LEVELS; level++) {
        tn_tensor_drop(p->sums[level]);
        p->sums[level] = NULL;
    }
    tn_tensor_drop(p->before);
    p->before = NULL;
}

/* Takes over the gradient that the program has kept, to add it after the step. */
static tn_status set_aside(ddp_parameter *p)
{
    TN_SCOPE;
    tn_tensor *gradient = tn_tensor_grad(p->tensor);

    if (gradient == NULL)
        return tn_error_last_code();
    if (gradient == TN_NONE)
        return TN_OK;
    if (p->before != NULL)
        gradient = tn_add(p->before, gradient);
    else if (gradient == p->view) /* its memory will have other values */
        gradient = tn_clone(gradient);
    if (gradient == NULL)
        return tn_error_last_code();
    tn_tensor_keep(gradient);
    tn_tensor_drop(p->before);
    p->before = gradient;
    return tn_tensor_set_grad(p->tensor, TN_NONE);
}

tn_status share_begin(ddp *d)
{
    tn_status status = TN_OK;

    tn_grad_begin(false);
    for (int64_t i = 0; i < d->count && status == TN_OK; i++) {
        d->parameters[i].arrived = false;
        if (ddp_collects(d))
            status = set_aside(&d->parameters[i]);
    }
    tn_grad_end();
    return status;
}

/* Adds the result of a walk to the sums, and takes it over. */
static tn_status add_to_sums(const ddp *d, ddp_parameter *p, tn_tensor *gradient)
{
    int64_t level = 0, at = d->shards > 0 ? d->shard : p->sums[0] != NULL;

    for (; at % 2 == 1; at /= 2, level++) {
        tn_tensor *added = tn_add_(p->sums[level], gradient);

        tn_tensor_drop(gradient);
        if (added == NULL)
            return tn_error_last_code();
        if (d->shards == 0)
            return TN_OK;
        gradient = p->sums[level];
        p->sums[level] = NULL;
    }
    p->sums[level] = gradient;
    return TN_OK;
}

/* Returns the sum of this rank after its last walk. */
static tn_tensor *sum_of(const ddp *d, const ddp_parameter *p)
{
    int level = 0;

    if (d->shards > 0)
        for (int64_t walks = d->shards_here; walks > 1; walks /= 2)
            level++;
    return p->sums[level];
}

/* Adds a gradient of this walk, NULL for zeros, multiplied by the weight of the walk. */
static tn_status collect(const ddp *d, ddp_parameter *p, tn_tensor *gradient)
{
    TN_SCOPE;
    bool weighted = d->average == TN_DDP_AVERAGE_SAMPLES;
    const tn_view *view = tn_tensor_view(p->tensor);

    if (weighted && d->walk_weight == 0)
        gradient = NULL; /* exactly 0, whatever its sign was */
    if (gradient == NULL && d->shards == 0 && p->sums[0] != NULL)
        return TN_OK;
    if (gradient == NULL)
        gradient = tn_tensor_full((tn_ints){ view->shape, view->ndim }, tn_scalar_float(0),
                                  tn_tensor_dtype(p->tensor), tn_tensor_device(p->tensor));
    else if (weighted && d->walk_weight != 1)
        gradient = tn_mul_scalar(gradient, d->walk_weight);
    return gradient != NULL ? add_to_sums(d, p, tn_tensor_keep(gradient)) : tn_error_last_code();
}

static tn_status arrived(ddp *d, ddp_parameter *p, tn_tensor *gradient)
{
    tn_status status = TN_OK;

    p->arrived = p->used = true;
    if (!d->ordered && d->combines && d->n_arrivals < d->count)
        d->arrivals[d->n_arrivals++] = p - d->parameters;
    if (ddp_is_alone(d))
        return TN_OK;
    if (ddp_collects(d)) {
        status = collect(d, p, gradient);
        if (status == TN_OK)
            status = tn_tensor_set_grad(p->tensor, TN_NONE);
        if (status == TN_OK && d->combines)
            status = bucket_place(d, p, sum_of(d, p));
        return status;
    }
    if (!d->combines)
        return TN_OK;
    status = bucket_place(d, p, gradient);
    return status == TN_OK && gradient != p->view ? tn_tensor_set_grad(p->tensor, p->view) : status;
}

tn_status share_arrived(void *parameter, tn_tensor *gradient)
{
    ddp_parameter *p = parameter;
    ddp *d = p->ddp;
    tn_status status;

    if (d->closed || !d->walking || gradient == TN_NONE)
        return TN_OK;
    if (p->placed && d->combines)
        status = tn_fail(TN_ERR_RUNTIME,
                         "DistributedDataParallel: parameter %s: its gradient arrived twice in one "
                         "backward; expected no backward inside of another one",
                         p->path);
    else
        status = arrived(d, p, gradient);
    if (status == TN_OK && d->next_bucket > 0 && d->size > 1)
        status = tn_comm_progress(d->group); /* of the buckets that are being combined */
    return status == TN_OK ? TN_OK : ddp_failed(d);
}

tn_status share_absent(ddp *d, ddp_parameter *p)
{
    tn_tensor *gradient;
    tn_status status = TN_OK;

    if (ddp_is_alone(d))
        return TN_OK;
    if (ddp_collects(d)) {
        status = collect(d, p, NULL);
        return status == TN_OK && d->combines ? bucket_place(d, p, sum_of(d, p)) : status;
    }
    if (!d->combines)
        return TN_OK;
    gradient = tn_tensor_grad(p->tensor);
    if (gradient == NULL)
        return tn_error_last_code();
    return bucket_place(d, p, gradient == TN_NONE ? NULL : gradient);
}
