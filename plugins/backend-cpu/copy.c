/* SPDX-License-Identifier: MIT
 *
 * Copies between layouts and types, filling, and the derivative of narrow. */
#include <string.h>

#include "cpu.h"

enum { GRAIN = 65536 };

struct job {
    struct tn__span span; /* operands: to, from */
    int64_t item;
    tn__load *load; /* both NULL: same type, bytes move */
    tn__store *store;
    bool whole; /* the loaded numbers are the result */
    _Alignas(16) char value[16];
};

/* ---- same type ------------------------------------------------------------------------------- */

#define MOVE(T)                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                              \
        T x;                                                                                       \
        memcpy(&x, at[1] + i * stride[1], sizeof x);                                               \
        memcpy(at[0] + i * stride[0], &x, sizeof x);                                               \
    }

static void move(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    if (stride[0] == job->item && stride[1] == job->item) {
        memcpy(at[0], at[1], (size_t)(n * job->item));
        return;
    }
    struct wide {
        uint64_t low, high;
    };
    switch (job->item) {
    case 1: MOVE(uint8_t) break;
    case 2: MOVE(uint16_t) break;
    case 4: MOVE(uint32_t) break;
    case 8: MOVE(uint64_t) break;
    default: MOVE(struct wide) break;
    }
}

/* ---- from one type to another ---------------------------------------------------------------- */

static void convert(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    if (job->whole && stride[0] == job->item) {
        job->load(n, at[1], stride[1], at[0]);
        return;
    }
    _Alignas(64) char numbers[TN__CHUNK * TN__CT_MAX_SIZE];
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        job->load(count, at[1] + done * stride[1], stride[1], numbers);
        job->store(count, numbers, at[0] + done * stride[0], stride[0]);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, job->load ? convert : move, job);
    return TN_OK;
}

tn_status tn__copy_views(const tn_view *to, const tn_view *from)
{
    tn_dtype a = tn_view_dtype(from), b = tn_view_dtype(to);
    struct job job = { .item = tn__view_item(to) };
    tn__span_make(&job.span, 2, (const tn_view *[]){ to, from }, false);
    if (a != b) {
        enum tn__ct ct = tn__ct_between(a, b);
        job.load = tn__convert_load(a, ct);
        job.store = tn__convert_store(ct, b);
        job.whole = tn__ct_dtype(ct) == b;
    }
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
}

tn_status tn__copy(const tn_call *call)
{
    return tn__copy_views(call->out[0], call->in[0]);
}

/* ---- one value everywhere -------------------------------------------------------------------- */

#define SET(T)                                                                                     \
    {                                                                                              \
        T x;                                                                                       \
        memcpy(&x, job->value, sizeof x);                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            memcpy(at[0] + i * stride[0], &x, sizeof x);                                           \
    }

static void set(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;
    struct wide {
        uint64_t low, high;
    };
    if (stride[0] == job->item) {
        bool same = true;
        for (int64_t i = 1; i < job->item; i++)
            same &= job->value[i] == job->value[0];
        if (same) {
            memset(at[0], job->value[0], (size_t)(n * job->item));
            return;
        }
    }
    switch (job->item) {
    case 1: SET(uint8_t) break;
    case 2: SET(uint16_t) break;
    case 4: SET(uint32_t) break;
    case 8: SET(uint64_t) break;
    default: SET(struct wide) break;
    }
}

static tn_status set_part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    tn__span_walk(&job->span, begin, end, set, job);
    return TN_OK;
}

static tn_status fill_view(const tn_view *to, double value)
{
    struct job job = { .item = tn__view_item(to) };
    tn__convert_store(TN__F64, tn_view_dtype(to))(1, &value, job.value, 0);
    tn__span_make(&job.span, 1, &to, false);
    if (job.span.count <= GRAIN)
        return set_part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, set_part, &job);
}

tn_status tn__copy_zero(const tn_view *to)
{
    return fill_view(to, 0);
}

tn_status tn__fill(const tn_call *call)
{
    return fill_view(call->out[0], ((const tn_fill_options *)call->options)->value);
}

/* ---- gx = 0, gx[..., start : start + length, ...] = gy --------------------------------------- */

tn_status tn__narrow_grad(const tn_call *call)
{
    const tn_narrow_grad_options *options = call->options;
    const tn_view *gx = call->out[0], *gy = call->in[0];
    int64_t dim = options->dim < 0 ? options->dim + gx->ndim : options->dim;
    if (dim < 0 || dim >= gx->ndim || gy->ndim != gx->ndim)
        return tn_fail(TN_ERR_INDEX, "%s: dimension %lld is out of range for %d dimensions",
                       call->op, (long long)options->dim, (int)gx->ndim);
    int64_t start = options->start < 0 ? options->start + gx->shape[dim] : options->start;
    if (start < 0 || start > gx->shape[dim] - gy->shape[dim])
        return tn_fail(TN_ERR_INDEX, "%s: start %lld and length %lld do not fit into size %lld",
                       call->op, (long long)options->start, (long long)gy->shape[dim],
                       (long long)gx->shape[dim]);
    tn_status status = tn__copy_zero(gx);
    if (status != TN_OK)
        return status;
    int64_t shape[TN_MAX_DIMS];
    tn_view slice = *gx;
    memcpy(shape, gx->shape, (size_t)gx->ndim * sizeof *shape);
    shape[dim] = gy->shape[dim];
    slice.shape = shape;
    slice.byte_offset += (uint64_t)(start * gx->strides[dim] * tn__view_item(gx));
    return tn__copy_views(&slice, gy);
}
