/* SPDX-License-Identifier: MIT
 *
 * Buckets: flat tensors in which gradients are combined. Parameters are placed in the order in
 * which backward computes their gradients: first the reverse order of their registration, and after
 * the first step the order that rank 0 has seen. A bucket is combined when it is full and those
 * before it are combined, so that all ranks have one order. */
#include "ddp.h"

#include <math.h>
#include <string.h>

enum {
    FIRST_BYTES = 1 << 20,
    ALIGNED = 16 /* elements: the parts of parameters begin at a multiple of it */
};

/* ---- division -------------------------------------------------------------------------------- */

/* Adds a parameter to the last bucket, or to a new one. */
static void assign(ddp *d, ddp_parameter *p, bool open)
{
    ddp_bucket *b;

    if (!open) {
        b = &d->buckets[d->n_buckets++];
        b->dtype = tn_tensor_dtype(p->tensor);
        b->device = tn_tensor_device(p->tensor);
    }
    b = &d->buckets[d->n_buckets - 1];
    p->bucket = d->n_buckets - 1;
    p->offset = b->size;
    b->size += (p->numel + ALIGNED - 1) / ALIGNED * ALIGNED;
    b->count++;
}

/* Divides the parameters of one dtype. */
static void divide(ddp *d, tn_dtype dtype, double cap_mb)
{
    bool open = false;

    for (int64_t i = 0; i < d->count; i++) {
        ddp_parameter *p = &d->parameters[d->order[i]];
        double most = d->n_buckets <= 1 ? FIRST_BYTES : cap_mb * (1 << 20);

        if (tn_tensor_dtype(p->tensor) != dtype)
            continue;
        assign(d, p, open);
        most = d->n_buckets == 1 && most > cap_mb * (1 << 20) ? cap_mb * (1 << 20) : most;
        open = (double)d->buckets[d->n_buckets - 1].size * (double)tn_dtype_size(dtype) < most;
    }
}

static tn_status make_flat(ddp *d, int64_t index)
{
    TN_SCOPE;
    ddp_bucket *b = &d->buckets[index];
    int64_t at = 0;

    if (b->paths == NULL)
        b->paths = tn_calloc((size_t)b->count, sizeof *b->paths);
    if (b->paths == NULL)
        return TN_ERR_MEMORY;
    b->flat = tn_tensor_keep(
        tn_tensor_full(TN_SHAPE(b->size), tn_scalar_float(0), b->dtype, b->device));
    if (b->flat == NULL)
        return tn_error_last_code();
    for (int64_t i = 0; i < d->count; i++) {
        ddp_parameter *p = &d->parameters[d->order[i]];
        const tn_view *view = tn_tensor_view(p->tensor);
        tn_tensor *part;

        if (p->bucket != index)
            continue;
        part = tn_narrow(b->flat, 0, p->offset, p->numel);
        p->view = tn_tensor_keep(tn_reshape(part, (tn_ints){ view->shape, view->ndim }));
        if (p->view == NULL)
            return tn_error_last_code();
        b->paths[at++] = p->path;
    }
    return TN_OK;
}

tn_status bucket_divide(ddp *d)
{
    d->buckets = tn_calloc((size_t)d->count + 1, sizeof *d->buckets);
    if (d->buckets == NULL)
        return TN_ERR_MEMORY;
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_COUNT; dtype++)
        divide(d, dtype, d->cap_mb);
    bucket_begin(d);
    return TN_OK;
}

/* Adds the parameters that did not arrive at the end, in their order so far. */
static void complete_arrivals(ddp *d)
{
    for (int64_t i = 0, seen; i < d->count; i++) {
        for (seen = 0; seen < d->n_arrivals && d->arrivals[seen] != d->order[i]; seen++)
            continue;
        if (seen == d->n_arrivals)
            d->arrivals[d->n_arrivals++] = d->order[i];
    }
}

tn_status bucket_reorder(ddp *d)
{
    tn_status status;

    if (d->ordered || ddp_is_alone(d))
        return TN_OK;
    d->ordered = true;
    complete_arrivals(d);
    status = group_integers(d->group, d->arrivals, d->count);
    if (status != TN_OK || memcmp(d->arrivals, d->order, (size_t)d->count * sizeof *d->order) == 0)
        return status;
    memcpy(d->order, d->arrivals, (size_t)d->count * sizeof *d->order);
    bucket_free_all(d);
    for (int64_t i = 0; i < d->count; i++) {
        tn_tensor_drop(d->parameters[i].view); /* gradients may still use it */
        d->parameters[i].view = NULL;
    }
    return bucket_divide(d);
}

tn_status bucket_allocate(ddp *d)
{
    tn_status status = TN_OK;

    tn_grad_begin(false);
    for (int64_t i = 0; i < d->n_buckets && status == TN_OK; i++)
        if (d->buckets[i].flat == NULL)
            status = make_flat(d, i);
    tn_grad_end();
    return status;
}

void bucket_free_all(ddp *d)
{
    for (int64_t i = 0; i < d->n_buckets; i++) {
        tn_tensor_drop(d->buckets[i].flat);
        tn_free(d->buckets[i].paths);
    }
    tn_free(d->buckets);
    d->buckets = NULL;
    d->n_buckets = 0;
}

/* ---- combining ------------------------------------------------------------------------------- */

/* The mean of ranks needs no pass over the buckets after the exchange. */
static bool averages(const ddp *d)
{
    return d->size > 1 && d->hook == NULL && d->packed == TN_DTYPE_AUTO && d->shards == 0 &&
           d->average == TN_DDP_AVERAGE_RANKS;
}

/* Begins to combine the gradients while backward goes on. */
static tn_status start(const ddp *d, ddp_bucket *b)
{
    tn_tensor *sent = b->flat;

    if (d->packed != TN_DTYPE_AUTO && b->dtype != d->packed && (TN_MASK_FLOAT & TN_BIT(b->dtype))) {
        /* divided first, so that the sum fits */
        tn_tensor *part = tn_mul_scalar_(b->flat, 1.0 / d->size);

        sent = b->packed = tn_tensor_keep(tn_cast(part, d->packed));
        if (sent == NULL)
            return tn_error_last_code();
    }
    b->work = tn_comm_all_reduce_start(d->group, sent,
                                       averages(d) ? TN_REDUCTION_AVERAGE : TN_REDUCTION_SUM);
    return b->work != NULL ? TN_OK : tn_error_last_code();
}

static tn_status name_bucket(const ddp *d, int64_t index)
{
    const ddp_bucket *b = &d->buckets[index];

    return tn_error_prefix("bucket %lld (%s .. %s): ", (long long)index, b->paths[0],
                           b->paths[b->count - 1]);
}

static tn_status combine(ddp *d, int64_t index)
{
    TN_SCOPE;
    ddp_bucket *b = &d->buckets[index];
    const tn_ddp_bucket seen = { b->flat, index, d->n_buckets, b->count, b->paths };
    tn_status status = TN_OK;

    tn_grad_begin(false);
    if (d->hook != NULL)
        status = d->hook(d->hook_user, d->group, &seen);
    else if (d->size > 1)
        status = start(d, b);
    tn_grad_end();
    return status == TN_OK ? TN_OK : name_bucket(d, index);
}

/* Waits for a bucket, and takes the sum out of what was sent. */
static tn_status finish(const ddp *d, ddp_bucket *b)
{
    TN_SCOPE;
    tn_status status = tn_work_wait(b->work);

    b->work = NULL;
    if (status == TN_OK && b->packed != NULL &&
        tn_mul_scalar_(tn_copy_(b->flat, b->packed), (double)d->size) == NULL)
        status = tn_error_last_code();
    tn_tensor_drop(b->packed);
    b->packed = NULL;
    return status;
}

tn_status bucket_wait(ddp *d)
{
    tn_status status = TN_OK;

    tn_grad_begin(false);
    for (int64_t i = 0; i < d->n_buckets && status == TN_OK; i++)
        if (d->buckets[i].work != NULL && finish(d, &d->buckets[i]) != TN_OK)
            status = name_bucket(d, i);
    tn_grad_end();
    return status;
}

void bucket_abandon(ddp *d)
{
    uint64_t mark = tn_error_mark();

    for (int64_t i = 0; i < d->n_buckets; i++)
        if (d->buckets[i].work != NULL)
            finish(d, &d->buckets[i]);
    tn_error_restore(mark);
}

void bucket_begin(ddp *d)
{
    d->next_bucket = 0;
    for (int64_t i = 0; i < d->n_buckets; i++)
        d->buckets[i].waiting = d->buckets[i].count;
    for (int64_t i = 0; i < d->count; i++)
        d->parameters[i].placed = false;
}

tn_status bucket_place(ddp *d, ddp_parameter *p, tn_tensor *gradient)
{
    tn_status status = TN_OK;

    tn_grad_begin(false);
    if (gradient == NULL && tn_fill_(p->view, tn_scalar_float(0)) == NULL)
        status = tn_error_last_code();
    else if (gradient != NULL && gradient != p->view && tn_copy_(p->view, gradient) == NULL)
        status = tn_error_last_code();
    tn_grad_end();
    if (status == TN_OK && !p->placed)
        d->buckets[p->bucket].waiting--;
    p->placed = true;
    while (status == TN_OK && d->next_bucket < d->n_buckets &&
           d->buckets[d->next_bucket].waiting == 0)
        status = combine(d, d->next_bucket++);
    return status;
}

static double factor_of(const ddp *d)
{
    double weights = d->message[DDP_WEIGHT];

    if (d->average == TN_DDP_AVERAGE_NONE || averages(d))
        return 1;
    if (d->average == TN_DDP_AVERAGE_SAMPLES)
        return weights > 0 ? 1 / weights : 0;
    return 1.0 / (double)(d->shards > 0 ? d->shards : d->size);
}

tn_status bucket_scale(ddp *d)
{
    double factor = factor_of(d);
    tn_status status = TN_OK;

    if (factor == 1)
        return TN_OK;
    tn_grad_begin(false);
    for (int64_t i = 0; i < d->n_buckets && status == TN_OK; i++) {
        TN_SCOPE;
        if (tn_mul_scalar_(d->buckets[i].flat, factor) == NULL)
            status = tn_error_last_code();
    }
    tn_grad_end();
    return status;
}
