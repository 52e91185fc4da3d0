/* SPDX-License-Identifier: MIT
 *
 * Elements chosen by index. Whatever the threads, sums at one place are taken in order. */
#include <string.h>

#include "cpu.h"

enum { GRAIN = 16384 };

/* A walk over the index: operand 0 is the tensor that it points into, 1 the index, 2 the other. */
struct job {
    const tn_call *call;
    int32_t ndim;
    int64_t dim_size, dim_step;
    int64_t shape[TN_MAX_DIMS];
    int64_t stride[3][TN_MAX_DIMS]; /* of operand 0: 0 along the dimension */
    char *base[3];
    int64_t dim, count, item;
    tn__load *load; /* adding: in float64 or int64 */
    tn__store *store;
    bool gather, add, whole;
};

static tn_status out_of_bounds(const struct job *job, int64_t at)
{
    return tn_fail(TN_ERR_INDEX,
                   "%s: index %lld is out of bounds for dimension %lld with size %lld: 0 to %lld",
                   job->call->op, (long long)at, (long long)job->dim, (long long)job->dim_size,
                   (long long)job->dim_size - 1);
}

static void add_one(const struct job *job, char *to, const char *from)
{
    if (job->whole) {
        int64_t a, b;
        job->load(1, to, 0, &a);
        job->load(1, from, 0, &b);
        a = (int64_t)((uint64_t)a + (uint64_t)b);
        job->store(1, &a, to, 0);
    } else {
        double a, b;
        job->load(1, to, 0, &a);
        job->load(1, from, 0, &b);
        a += b;
        job->store(1, &a, to, 0);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    for (int64_t i = begin; i < end; i++) {
        int64_t rest = i, at;
        char *p[3] = { job->base[0], job->base[1], job->base[2] };
        for (int32_t d = job->ndim; d-- > 0;) {
            int64_t place = rest % job->shape[d];
            rest /= job->shape[d];
            for (int k = 0; k < 3; k++)
                p[k] += place * job->stride[k][d];
        }
        memcpy(&at, p[1], sizeof at);
        if (at < 0 || at >= job->dim_size)
            return out_of_bounds(job, at);
        p[0] += at * job->dim_step;
        if (job->add)
            add_one(job, p[0], p[2]);
        else if (job->gather)
            memcpy(p[2], p[0], (size_t)job->item);
        else
            memcpy(p[0], p[2], (size_t)job->item);
    }
    return TN_OK;
}

static void make(struct job *job, const tn_call *call, const tn_view *x, const tn_view *index,
                 const tn_view *other, int64_t dim)
{
    const tn_view *views[3] = { x, index, other };
    job->call = call;
    job->ndim = index->ndim;
    job->count = tn__view_count(index);
    job->item = tn__view_item(x);
    job->dim = dim < 0 ? dim + (x->ndim > 0 ? x->ndim : 1) : dim;
    job->dim_size = x->ndim > 0 ? x->shape[job->dim] : 1;
    job->dim_step = x->ndim > 0 ? x->strides[job->dim] * job->item : 0;
    for (int k = 0; k < 3; k++) {
        job->base[k] = tn__view_at(views[k]);
        for (int32_t d = 0; d < index->ndim; d++)
            job->stride[k][d] = (k == 0 && d == job->dim) || d >= views[k]->ndim
                                    ? 0
                                    : views[k]->strides[d] * tn__view_item(views[k]);
    }
    for (int32_t d = 0; d < index->ndim; d++)
        job->shape[d] = index->shape[d];
}

tn_status tn__gather(const tn_call *call)
{
    struct job job = { .gather = true };
    make(&job, call, call->in[0], call->in[1], call->out[0],
         ((const tn_gather_options *)call->options)->dim);
    if (job.count <= GRAIN)
        return part(&job, 0, job.count);
    return tn_parallel_for(job.count, GRAIN, part, &job);
}

static tn_status scatter(const tn_call *call, int64_t dim, bool add)
{
    struct job job = { .add = add };
    tn_dtype dtype = tn_view_dtype(call->in[0]);
    tn_status status = tn__copy_views(call->out[0], call->in[0]);
    if (status != TN_OK)
        return status;
    job.whole = (TN_MASK_FLOAT & TN_BIT(dtype)) == 0;
    if (add) {
        job.load = tn__convert_load(dtype, job.whole ? TN__I64 : TN__F64);
        job.store = tn__convert_store(job.whole ? TN__I64 : TN__F64, dtype);
    }
    make(&job, call, call->out[0], call->in[1], call->in[2], dim);
    return part(&job, 0, job.count);
}

tn_status tn__scatter(const tn_call *call)
{
    return scatter(call, ((const tn_scatter_options *)call->options)->dim, false);
}

tn_status tn__scatter_add(const tn_call *call)
{
    return scatter(call, ((const tn_scatter_add_options *)call->options)->dim, true);
}

/* ---- places ---- */

static void put_places(const tn_view *x, const tn_view *y, tn__load *load, bool floating,
                       int64_t *count)
{
    int64_t index[TN_MAX_DIMS] = { 0 }, all = tn__view_count(x), found = 0;
    for (int64_t i = 0; i < all; i++) {
        int64_t offset = 0;
        union {
            double f;
            int64_t i;
        } value;
        for (int32_t d = 0; d < x->ndim; d++)
            offset += index[d] * x->strides[d];
        load(1, tn__view_at(x) + offset * tn__view_item(x), 0, &value);
        if (floating ? value.f != 0 : value.i != 0) {
            for (int32_t d = 0; y && d < x->ndim; d++)
                memcpy(tn__view_at(y) + (found * y->strides[0] + d * y->strides[1]) * 8, &index[d],
                       sizeof index[d]);
            found++;
        }
        for (int32_t d = x->ndim; d-- > 0;) {
            if (++index[d] < x->shape[d])
                break;
            index[d] = 0;
        }
    }
    *count = found;
}

/* Counted first, then written. */
tn_status tn__nonzero(const tn_call *call)
{
    const tn_view *x = call->in[0];
    bool floating = (TN_MASK_FLOAT & TN_BIT(tn_view_dtype(x))) != 0;
    tn__load *load = tn__convert_load(tn_view_dtype(x), floating ? TN__F64 : TN__I64);
    int64_t shape[2] = { 0, x->ndim };
    put_places(x, NULL, load, floating, &shape[0]);
    tn_status status = call->make_output(call, 0, (tn_ints){ shape, 2 });
    if (status == TN_OK && shape[0] * shape[1] > 0)
        put_places(x, call->out[0], load, floating, &shape[0]);
    return status;
}

tn_status tn__arange(const tn_call *call)
{
    const tn_arange_options *o = call->options;
    const tn_view *y = call->out[0];
    bool floating = (TN_MASK_FLOAT & TN_BIT(tn_view_dtype(y))) != 0;
    tn__store *store = tn__convert_store(floating ? TN__F64 : TN__I64, tn_view_dtype(y));
    for (int64_t i = 0; i < y->shape[0]; i++) {
        double f = o->start + (double)i * o->step;
        int64_t whole = floating ? 0 : (int64_t)o->start + i * (int64_t)o->step;
        char *to = tn__view_at(y) + i * y->strides[0] * tn__view_item(y);
        store(1, floating ? (const void *)&f : (const void *)&whole, to, 0);
    }
    return TN_OK;
}
