/* SPDX-License-Identifier: MIT
 *
 * Along one dimension, line by line: running sums and products, order; and reductions by product
 * and smallest. Floats are worked on in float64, whole numbers in int64. */
#include <string.h>

#include "cpu.h"

enum { GRAIN = 16384 };

union number {
    double f;
    int64_t i;
};

/* The lines of views of one shape. */
struct lines {
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS]; /* without the dimension */
    int64_t stride[3][TN_MAX_DIMS];
    char *base[3];
    int64_t step[3]; /* along it */
    int64_t length, count;
};

static void make_lines(struct lines *lines, int32_t n, const tn_view *const *views, int64_t dim)
{
    const tn_view *shape = views[0];
    if (dim < 0)
        dim += shape->ndim;
    lines->ndim = 0;
    lines->count = lines->length = 1;
    for (int32_t k = 0; k < n; k++) {
        lines->base[k] = tn__view_at(views[k]);
        lines->step[k] = 0;
    }
    for (int32_t d = 0; d < shape->ndim; d++) {
        if (d == dim) {
            lines->length = shape->shape[d];
            for (int32_t k = 0; k < n; k++)
                lines->step[k] = views[k]->strides[d] * tn__view_item(views[k]);
            continue;
        }
        lines->shape[lines->ndim] = shape->shape[d];
        for (int32_t k = 0; k < n; k++)
            lines->stride[k][lines->ndim] = views[k]->strides[d] * tn__view_item(views[k]);
        lines->ndim++;
        lines->count *= shape->shape[d];
    }
}

static char *line_at(const struct lines *lines, int32_t k, int64_t index)
{
    char *at = lines->base[k];
    for (int32_t d = lines->ndim; d-- > 0;) {
        at += index % lines->shape[d] * lines->stride[k][d];
        index /= lines->shape[d];
    }
    return at;
}

static bool whole(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) == 0;
}

struct job {
    struct lines lines;
    tn__load *load;
    tn__store *store;
    bool whole, product, reverse, descending;
};

static tn_status run_lines(struct job *job,
                           tn_status (*body)(void *user, int64_t begin, int64_t end))
{
    int64_t grain = GRAIN / (job->lines.length > 0 ? job->lines.length : 1);
    if (job->lines.count * job->lines.length <= GRAIN)
        return body(job, 0, job->lines.count);
    return tn_parallel_for(job->lines.count, grain > 0 ? grain : 1, body, job);
}

/* ---- running sums and products ---- */

static void scan(const struct job *job, int64_t n, union number *x)
{
    union number all = { .i = 0 };
    if (job->product && job->whole)
        all.i = 1;
    else if (job->product)
        all.f = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = job->reverse ? n - 1 - k : k;
        if (!job->whole)
            all.f = job->product ? all.f * x[at].f : all.f + x[at].f;
        else if (job->product)
            all.i = (int64_t)((uint64_t)all.i * (uint64_t)x[at].i);
        else
            all.i = (int64_t)((uint64_t)all.i + (uint64_t)x[at].i);
        x[at] = all;
    }
}

static tn_status scan_lines(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    int64_t n = job->lines.length;
    union number *numbers = tn_malloc((size_t)n * sizeof *numbers);
    if (!numbers)
        return TN_ERR_MEMORY;
    for (int64_t line = begin; line < end; line++) {
        job->load(n, line_at(&job->lines, 1, line), job->lines.step[1], numbers);
        scan(job, n, numbers);
        job->store(n, numbers, line_at(&job->lines, 0, line), job->lines.step[0]);
    }
    tn_free(numbers);
    return TN_OK;
}

static tn_status run_scan(const tn_call *call, int64_t dim, bool product, bool reverse)
{
    const tn_view *views[2] = { call->out[0], call->in[0] };
    tn_dtype to = tn_view_dtype(call->out[0]);
    struct job job = { .whole = whole(to), .product = product, .reverse = reverse };
    enum tn__ct ct = job.whole ? TN__I64 : TN__F64;
    job.load = tn__convert_load(tn_view_dtype(call->in[0]), ct);
    job.store = tn__convert_store(ct, to);
    make_lines(&job.lines, 2, views, dim);
    return run_lines(&job, scan_lines);
}

tn_status tn__cumsum(const tn_call *call)
{
    const tn_cumsum_options *o = call->options;
    return run_scan(call, o->dim, false, o->reverse);
}

tn_status tn__cumprod(const tn_call *call)
{
    const tn_cumprod_options *o = call->options;
    return run_scan(call, o->dim, true, false);
}

/* ---- order ---- */

struct placed {
    union number key;
    int64_t at;
};

/* Whether b has to go before a, which stands before it: never where they are equal. */
static bool swapped(const struct job *job, const struct placed *a, const struct placed *b)
{
    if (job->descending) {
        const struct placed *c = a;
        a = b;
        b = c;
    }
    if (job->whole)
        return b->key.i < a->key.i;
    return b->key.f < a->key.f || (a->key.f != a->key.f && b->key.f == b->key.f);
}

/* Runs of twice the length until one is left; gives the room where it is. */
static struct placed *merge_sort(const struct job *job, int64_t n, struct placed *from,
                                 struct placed *to)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t first = 0; first < n; first += 2 * width) {
            int64_t middle = first + width < n ? first + width : n;
            int64_t last = first + 2 * width < n ? first + 2 * width : n;
            int64_t a = first, b = middle;
            for (int64_t k = first; k < last; k++) {
                bool second = a == middle || (b < last && swapped(job, &from[a], &from[b]));
                to[k] = second ? from[b++] : from[a++];
            }
        }
        struct placed *other = from;
        from = to;
        to = other;
    }
    return from;
}

static tn_status sort_lines(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    int64_t n = job->lines.length;
    struct placed *room = tn_malloc((size_t)n * 2 * sizeof *room);
    if (!room)
        return TN_ERR_MEMORY;
    for (int64_t line = begin; line < end; line++) {
        const char *x = line_at(&job->lines, 2, line);
        char *y = line_at(&job->lines, 0, line), *places = line_at(&job->lines, 1, line);
        for (int64_t i = 0; i < n; i++) {
            job->load(1, x + i * job->lines.step[2], 0, &room[i].key);
            room[i].at = i;
        }
        const struct placed *sorted = merge_sort(job, n, room, room + n);
        for (int64_t i = 0; i < n; i++) {
            job->store(1, &sorted[i].key, y + i * job->lines.step[0], 0);
            memcpy(places + i * job->lines.step[1], &sorted[i].at, sizeof sorted[i].at);
        }
    }
    tn_free(room);
    return TN_OK;
}

tn_status tn__sort(const tn_call *call)
{
    const tn_sort_options *o = call->options;
    const tn_view *views[3] = { call->out[0], call->out[1], call->in[0] };
    tn_dtype dtype = tn_view_dtype(call->in[0]);
    struct job job = { .whole = whole(dtype), .descending = o->descending };
    enum tn__ct ct = job.whole ? TN__I64 : TN__F64;
    job.load = tn__convert_load(dtype, ct);
    job.store = tn__convert_store(ct, dtype);
    make_lines(&job.lines, 3, views, o->dim);
    return run_lines(&job, sort_lines);
}

/* ---- the smallest and the product over any dimensions ---- */

enum fold_kind { PRODUCT, SMALLEST, PLACE };

struct folding {
    enum fold_kind what;
    bool whole;
    tn__load *load;
    tn__store *store;
    struct tn__span kept; /* operand 0: y, 1: x */
    struct tn__span gone; /* operand 0: x (base unused) */
};

struct fold {
    const struct folding *job;
    union number best;
    int64_t at, seen;
};

static void take(struct fold *fold, union number x)
{
    const struct folding *job = fold->job;
    int64_t at = fold->seen++;
    if (job->what == PRODUCT) {
        if (job->whole)
            fold->best.i = (int64_t)((uint64_t)fold->best.i * (uint64_t)x.i);
        else
            fold->best.f *= x.f;
        return;
    }
    bool less = job->whole ? x.i < fold->best.i
                           : x.f < fold->best.f || (x.f != x.f && fold->best.f == fold->best.f);
    if (at == 0 || less) {
        fold->best = x;
        fold->at = at;
    }
}

static void fold_run(void *user, int64_t n, char *const *at, const int64_t *stride)
{
    struct fold *fold = user;
    union number numbers[TN__CHUNK];
    for (int64_t done = 0; done < n; done += TN__CHUNK) {
        int64_t count = n - done < TN__CHUNK ? n - done : TN__CHUNK;
        fold->job->load(count, at[0] + done * stride[0], stride[0], numbers);
        for (int64_t i = 0; i < count; i++)
            take(fold, numbers[i]);
    }
}

static tn_status fold_part(void *user, int64_t begin, int64_t end)
{
    const struct folding *job = user;
    struct tn__span gone = job->gone;
    for (int64_t k = begin; k < end; k++) {
        char *y = job->kept.base[0], *x = job->kept.base[1];
        int64_t index = k;
        for (int32_t d = job->kept.ndim; d-- > 0;) {
            y += index % job->kept.shape[d] * job->kept.stride[0][d];
            x += index % job->kept.shape[d] * job->kept.stride[1][d];
            index /= job->kept.shape[d];
        }
        struct fold fold = { .job = job };
        if (job->what == PRODUCT && job->whole)
            fold.best.i = 1;
        else if (job->what == PRODUCT)
            fold.best.f = 1;
        gone.base[0] = x;
        tn__span_walk(&gone, 0, gone.count, fold_run, &fold);
        if (job->what == PLACE)
            memcpy(y, &fold.at, sizeof fold.at);
        else
            job->store(1, &fold.best, y, 0);
    }
    return TN_OK;
}

static tn_status run_fold(const tn_call *call, enum fold_kind what, tn_ints dims)
{
    const tn_view *x = call->in[0], *y = call->out[0];
    int64_t kept_shape[TN_MAX_DIMS], kept_x[TN_MAX_DIMS], kept_y[TN_MAX_DIMS],
        gone_shape[TN_MAX_DIMS], gone_x[TN_MAX_DIMS];
    tn_view kx = *x, ky = *y, gx = *x;
    struct folding job = { .what = what };
    bool keepdim = y->ndim == x->ndim;
    job.whole = whole(tn_view_dtype(x));
    job.load = tn__convert_load(tn_view_dtype(x), job.whole ? TN__I64 : TN__F64);
    job.store = tn__convert_store(job.whole ? TN__I64 : TN__F64, tn_view_dtype(y));
    kx.ndim = gx.ndim = 0;
    for (int32_t d = 0, at = 0; d < x->ndim; d++) {
        bool goes = dims.count <= 0;
        for (int64_t k = 0; k < dims.count; k++)
            goes |= (dims.at[k] < 0 ? dims.at[k] + x->ndim : dims.at[k]) == d;
        if (goes) {
            gone_shape[gx.ndim] = x->shape[d];
            gone_x[gx.ndim++] = x->strides[d];
            at += keepdim;
        } else {
            kept_shape[kx.ndim] = x->shape[d];
            kept_x[kx.ndim] = x->strides[d];
            kept_y[kx.ndim++] = y->strides[at++];
        }
    }
    ky.ndim = kx.ndim;
    kx.shape = ky.shape = kept_shape;
    kx.strides = kept_x;
    ky.strides = kept_y;
    gx.shape = gone_shape;
    gx.strides = gone_x;
    tn__span_make(&job.kept, 2, (const tn_view *[]){ &ky, &kx }, true);
    tn__span_make(&job.gone, 1, (const tn_view *[]){ &gx }, true);
    int64_t grain = GRAIN / (job.gone.count > 0 ? job.gone.count : 1);
    if (job.kept.count * job.gone.count <= GRAIN)
        return fold_part(&job, 0, job.kept.count);
    return tn_parallel_for(job.kept.count, grain > 0 ? grain : 1, fold_part, &job);
}

tn_status tn__prod(const tn_call *call)
{
    return run_fold(call, PRODUCT, ((const tn_prod_options *)call->options)->dims);
}

tn_status tn__amin(const tn_call *call)
{
    return run_fold(call, SMALLEST, ((const tn_amin_options *)call->options)->dims);
}

tn_status tn__argmin(const tn_call *call)
{
    int64_t dim = ((const tn_argmin_options *)call->options)->dim;
    return run_fold(call, PLACE, dim == INT64_MIN ? tn_no_ints() : (tn_ints){ &dim, 1 });
}
