/* SPDX-License-Identifier: MIT
 *
 * nonzero, the indices of elements that are not zero, in two passes over the same pieces of the
 * tensor: the first counts the results of each piece, the second writes them, after the results of
 * the previous pieces. */
#include <string.h>

#include "base/dtype.h"
#include "base/kernel.h"
#include "base/span.h"

enum { PIECE = 32768 };

struct job {
    struct tn__span span; /* of x, in row-major order */
    tn__load *load;
    enum tn__ct ct;
    const tn_view *x, *y; /* y is NULL in the first pass */
    int64_t *before; /* first the number of results of each piece, then that of all pieces before */
};

struct piece {
    const struct job *job;
    int64_t at, found; /* the next element of x, the next row of y */
};

/* Writes the index of element `at` of x to row `row` of y. */
static void write_place(const struct job *job, int64_t at, int64_t row)
{
    const tn_view *x = job->x, *y = job->y;
    char *to = tn__view_at(y) + row * y->strides[0] * 8;
    for (int32_t d = x->ndim; d-- > 0;) {
        int64_t place = d > 0 ? at % x->shape[d] : at;
        at /= x->shape[d];
        memcpy(to + d * y->strides[1] * 8, &place, sizeof place);
    }
}

#define LOOK(T)                                                                                    \
    {                                                                                              \
        const T *x = (const void *)numbers;                                                        \
        for (int64_t i = 0; i < count; i++) {                                                      \
            here[found] = (int32_t)i;                                                              \
            found += x[i] != 0;                                                                    \
        }                                                                                          \
    }

static void look(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    struct piece *piece = user;
    const struct job *job = piece->job;
    _Alignas(64) char numbers[TN__CHUNK * 8];
    int32_t here[TN__CHUNK + 1];
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK, found = 0;
        job->load(count, at[0] + done * stride[0], stride[0], numbers);
        switch (job->ct) {
        case TN__F32: LOOK(float) break;
        case TN__F64: LOOK(double) break;
        default: LOOK(int64_t) break;
        }
        for (int64_t i = 0; job->y && i < found; i++)
            write_place(job, piece->at + here[i], piece->found + i);
        piece->found += found;
        piece->at += count;
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    for (int64_t p = begin; p < end; p++) {
        int64_t first = p * PIECE, last = first + PIECE;
        struct piece piece = { job, first, job->y ? job->before[p] : 0 };
        tn__span_walk(&job->span, first, last < job->span.count ? last : job->span.count, look,
                      &piece);
        if (!job->y)
            job->before[p] = piece.found;
    }
    return TN_OK;
}

static tn_status run_nonzero(const tn_call *call)
{
    const tn_view *x = call->in[0];
    tn_dtype dtype = tn_view_dtype(x);
    struct job job = { .x = x };
    tn__span_make(&job.span, 1, &x, true);
    job.ct = tn__dtype_ct(dtype);
    job.load = tn__dtype_load(dtype, job.ct);
    int64_t pieces = (job.span.count + PIECE - 1) / PIECE, shape[2] = { 0, x->ndim };
    job.before = tn_malloc((size_t)(pieces > 0 ? pieces : 1) * sizeof *job.before);
    if (!job.before)
        return TN_ERR_MEMORY;
    tn_status status = tn_parallel_for(pieces, 1, part, &job);
    for (int64_t p = 0; p < pieces && status == TN_OK; p++) {
        int64_t here = job.before[p];
        job.before[p] = shape[0];
        shape[0] += here;
    }
    if (status == TN_OK)
        status = call->make_output(call, 0, (tn_ints){ shape, 2 });
    if (status == TN_OK && shape[0] * shape[1] > 0) {
        job.y = call->out[0];
        status = tn_parallel_for(pieces, 1, part, &job);
    }
    tn_free(job.before);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(nonzero, TN__REALS_BOOL),
};
TN__KERNEL_TABLE(index_nonzero);
