/* SPDX-License-Identifier: MIT
 *
 * searchsorted: a binary search for each value, in float32, float64, int32 and int64. Calls with
 * other dtypes are decomposed. */
#include <string.h>

#include "base/kernel.h"
#include "base/span.h"
#include "base/vectorize.h"

enum {
    GRAIN = 1024, /* minimum number of values for one thread */
    TOGETHER = 8  /* values at a time */
};

#define SEARCH_PARAMETERS                                                                          \
    int64_t n, const char *row, int64_t sr, int64_t step, int64_t size, const char *sorter,        \
        int64_t ss, int64_t sorter_step, const char *values, int64_t sv, char *y, int64_t sy,      \
        bool right, bool narrow

#define IS_NAN(x) ((x) != (x))
#define TEMPLATE "op/search_template.h"
#include "base/for_floats.h"
#undef IS_NAN
#define IS_NAN(x) false
#define T int32_t
#define NAME(x) x##_i32
#include "op/search_template.h"
#undef T
#undef NAME
#define T int64_t
#define NAME(x) x##_i64
#include "op/search_template.h"
#undef T
#undef NAME
#undef IS_NAN

typedef void search_function(SEARCH_PARAMETERS);

/* A search for all values. Operands of the span: 0 the result, 1 the values, 2 the rows and 3 the
 * sorter; the last two have stride 0 along the last dimension. */
struct job {
    struct tn__span span;
    search_function *search;
    int64_t size, step, sorter_step;
    bool sorter, right, narrow;
};

static void run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    const struct job *job = user;

    job->search(n, at[2], stride[2], job->step, job->size, job->sorter ? at[3] : NULL, stride[3],
                job->sorter_step, at[1], stride[1], at[0], stride[0], job->right, job->narrow);
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;

    tn__span_walk(&job->span, begin, end, run, job);
    return TN_OK;
}

/* The indices of a sorter: the size of a row, and the first index that is out of bounds. */
struct order {
    int64_t size, wrong;
    bool bad;
};

static void check_run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    struct order *order = user;

    for (int64_t i = 0; i < n && !order->bad; i++) {
        memcpy(&order->wrong, at[0] + i * stride[0], sizeof order->wrong);
        order->bad = (uint64_t)order->wrong >= (uint64_t)order->size;
    }
}

static tn_status check_sorter(const tn_view *sorter)
{
    struct order order = { sorter->shape[sorter->ndim - 1], 0, false };
    struct tn__span span;

    tn__span_make(&span, 1, &sorter, true);
    tn__span_walk(&span, 0, span.count, check_run, &order);
    if (order.bad)
        return tn_fail(TN_ERR_INDEX,
                       "searchsorted: sorter: index %lld is out of bounds for rows of size %lld",
                       (long long)order.wrong, (long long)order.size);
    return TN_OK;
}

static search_function *search_for(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F32: return search_f32;
    case TN_F64: return search_f64;
    case TN_I32: return search_i32;
    default: return search_i64;
    }
}

/* A view of the rows with the shape of the values: stride 0 along the last dimension, and along all
 * if there is one row for all values. Returns the distance of elements of a row in bytes. */
static int64_t rows_of(const tn_view *rows, const tn_view *values, tn_view *view, int64_t *strides)
{
    *view = *rows;
    view->ndim = values->ndim;
    view->shape = values->shape;
    view->strides = strides;
    for (int32_t d = 0; d < values->ndim; d++)
        strides[d] = rows->ndim > 1 && d < values->ndim - 1 ? rows->strides[d] : 0;
    return rows->strides[rows->ndim - 1] * tn__view_item(rows);
}

static tn_status run_searchsorted(const tn_call *call)
{
    const tn_searchsorted_options *o = call->options;
    const tn_view *rows = call->in[0], *values = call->in[1], *sorter = call->in[2];
    int64_t row_strides[TN_MAX_DIMS], sorter_strides[TN_MAX_DIMS];
    tn_view row_view, sorter_view;
    const tn_view *views[4] = { call->out[0], values, &row_view, &sorter_view };
    struct job job = { .right = o->right || (o->side != NULL && strcmp(o->side, "right") == 0),
                       .narrow = o->out_int32,
                       .sorter = sorter != NULL };

    if (sorter != NULL && check_sorter(sorter) != TN_OK)
        return TN_ERR_INDEX;
    job.search = search_for(tn_view_dtype(values));
    job.size = rows->shape[rows->ndim - 1];
    job.step = rows_of(rows, values, &row_view, row_strides);
    job.sorter_step = rows_of(sorter != NULL ? sorter : rows, values, &sorter_view, sorter_strides);
    tn__span_make(&job.span, 4, views, false);
    if (job.span.count <= GRAIN)
        return part(&job, 0, job.span.count);
    return tn_parallel_for(job.span.count, GRAIN, part, &job);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(searchsorted, TN__F32_F64 | TN_BIT(TN_I32) | TN_BIT(TN_I64)),
};
TN__KERNEL_TABLE(search);
