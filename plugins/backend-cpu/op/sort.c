/* SPDX-License-Identifier: MIT
 *
 * sort, topk, and elements by their rank (kthvalue, medians), line by line. Each element is
 * converted to an unsigned key, so that the order of keys is the order that is asked for; NaN is
 * largest, and the two zeros are equal. Keys are sorted by a radix sort from the lowest byte, which
 * is stable. For dtypes of up to 32 bits a key is the upper half of a 64-bit number, whose lower
 * half is the index of the element. */
#include <string.h>

#include "base/dtype.h"
#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"

enum {
    GRAIN = 16384,     /* minimum number of elements for one thread */
    BY_INSERTION = 48, /* up to this many keys, insertion sort is faster */
    FEW = 16,          /* topk: up to this many elements are kept in a sorted list */
    BYTES = 256,       /* values of a byte */
    CHUNK = 1024       /* topk: elements of a long line that are read at a time */
};

struct job {
    struct tn__lines lines; /* view 0: x, 1: the values, 2: the indices */
    tn__load *load;
    enum tn__ct ct;
    int64_t item, k; /* k: elements that are kept of each line */
    bool wide;       /* keys of 64 bits */
    uint64_t flip;   /* bits to invert in each key: the sign of integers, all when descending */
};

struct placed {
    uint64_t key, at;
};

/* ---- keys ------------------------------------------------------------------------------------ */

static inline uint32_t order_f32(uint32_t bits)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0xffffffffu;
    if (bits == 0x80000000u)
        return bits;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static inline uint64_t order_f64(uint64_t bits)
{
    const uint64_t sign = (uint64_t)1 << 63;
    if ((bits & ~sign) > (uint64_t)0x7ff << 52)
        return UINT64_MAX;
    if (bits == sign)
        return bits;
    return bits >> 63 ? ~bits : bits | sign;
}

static void keys_narrow(const struct job *job, int64_t n, const void *numbers, uint64_t *keys)
{
    uint32_t flip = (uint32_t)job->flip;
    if (job->ct == TN__F32) {
        const uint32_t *x = numbers;
        for (int64_t i = 0; i < n; i++)
            keys[i] = (uint64_t)(order_f32(x[i]) ^ flip) << 32 | (uint64_t)i;
        return;
    }
    const int64_t *x = numbers;
    for (int64_t i = 0; i < n; i++)
        keys[i] = (uint64_t)((uint32_t)x[i] ^ flip) << 32 | (uint64_t)i;
}

/* Write the keys that are below `limit`, or all, with their indices, to `keys`; return their
 * number. The first number has index `first`. */
static int64_t keys_below_narrow(const struct job *job, int64_t n, const void *numbers,
                                 int64_t first, uint64_t limit, bool all, uint64_t *keys)
{
    uint32_t flip = (uint32_t)job->flip;
    const uint32_t *f = numbers;
    const int64_t *whole = numbers;
    int64_t count = 0;
    for (int64_t i = 0; job->ct == TN__F32 && i < n; i++) {
        uint64_t key = order_f32(f[i]) ^ flip;
        keys[count] = key << 32 | (uint64_t)(first + i);
        count += all | (key < limit);
    }
    for (int64_t i = 0; job->ct != TN__F32 && i < n; i++) {
        uint64_t key = (uint32_t)whole[i] ^ flip;
        keys[count] = key << 32 | (uint64_t)(first + i);
        count += all | (key < limit);
    }
    return count;
}

static int64_t keys_below_wide(const struct job *job, int64_t n, const void *numbers, int64_t first,
                               uint64_t limit, bool all, struct placed *keys)
{
    const uint64_t *x = numbers;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = (job->ct == TN__F64 ? order_f64(x[i]) : x[i]) ^ job->flip;
        keys[count] = (struct placed){ key, (uint64_t)(first + i) };
        count += all | (key < limit);
    }
    return count;
}

static void keys_wide(const struct job *job, int64_t n, const void *numbers, struct placed *keys)
{
    const uint64_t *x = numbers;
    for (int64_t i = 0; i < n; i++) {
        keys[i].key = (job->ct == TN__F64 ? order_f64(x[i]) : x[i]) ^ job->flip;
        keys[i].at = (uint64_t)i;
    }
}

/* ---- sorting --------------------------------------------------------------------------------- */

static inline uint64_t key_narrow(uint64_t x)
{
    return x >> 32;
}

static inline uint64_t key_wide(struct placed x)
{
    return x.key;
}

/* Returns the size of the buffer for first_of_many(). */
static int64_t room_for(int64_t k)
{
    return (k > CHUNK / 2 ? 2 * k : CHUNK) + CHUNK;
}

enum { PASSES_narrow = 4, PASSES_wide = 8 }; /* bytes of a key */
#define BYTE(x, p) ((x) >> (8 * (p)) & (BYTES - 1))
#define T uint64_t
#define NAME(x) x##_narrow
#include "op/sort_template.h"
#undef T
#undef NAME
#define T struct placed
#define NAME(x) x##_wide
#include "op/sort_template.h"
#undef T
#undef NAME

/* ---- lines ----------------------------------------------------------------------------------- */

static void write_line(const struct job *job, int64_t line, const uint64_t *narrow,
                       const struct placed *wide)
{
    const struct tn__lines *lines = &job->lines;
    const char *x = tn__span_lines_at(lines, 0, line);
    char *y = tn__span_lines_at(lines, 1, line), *places = tn__span_lines_at(lines, 2, line);
    for (int64_t i = 0; i < job->k; i++) {
        int64_t at = narrow ? (int64_t)(narrow[i] & 0xffffffffu) : (int64_t)wide[i].at;
        const char *from = x + at * lines->step[0];
        char *to = y + i * lines->step[1];
        switch (job->item) {
        case 1: memcpy(to, from, 1); break;
        case 2: memcpy(to, from, 2); break;
        case 4: memcpy(to, from, 4); break;
        default: memcpy(to, from, 8); break;
        }
        memcpy(places + i * lines->step[2], &at, sizeof at);
    }
}

static tn_status part(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    int64_t n = job->lines.length, k = job->k;
    size_t size = job->wide ? sizeof(struct placed) : sizeof(uint64_t);
    bool many = n > 4 * CHUNK && k <= n / 8;
    size_t most = (size_t)(many ? room_for(k) : n);
    char *memory = tn__scratch_take(most * (2 * size + tn__dtype_ct_size(job->ct)));
    if (!memory)
        return TN_ERR_MEMORY;
    char *room = memory + most * size, *numbers = room + most * size;
    for (int64_t line = begin; line < end; line++) {
        if (many && job->wide) {
            struct placed *keys = (struct placed *)(void *)memory,
                          *more = (struct placed *)(void *)room;
            first_of_many_wide(job, line, keys, more, numbers);
            write_line(job, line, NULL, sort_wide(k, keys, more));
            continue;
        }
        if (many) {
            uint64_t *keys = (uint64_t *)(void *)memory, *more = (uint64_t *)(void *)room;
            first_of_many_narrow(job, line, keys, more, numbers);
            write_line(job, line, sort_narrow(k, keys, more), NULL);
            continue;
        }
        job->load(n, tn__span_lines_at(&job->lines, 0, line), job->lines.step[0], numbers);
        if (job->wide) {
            struct placed *keys = (struct placed *)(void *)memory,
                          *more = (struct placed *)(void *)room;
            keys_wide(job, n, numbers, keys);
            if (k < n && k <= FEW)
                few_wide(n, k, keys);
            else if (k < n)
                select_wide(n, k, keys, more);
            write_line(job, line, NULL, k <= FEW && k < n ? keys : sort_wide(k, keys, more));
        } else {
            uint64_t *keys = (uint64_t *)(void *)memory, *more = (uint64_t *)(void *)room;
            keys_narrow(job, n, numbers, keys);
            if (k < n && k <= FEW)
                few_narrow(n, k, keys);
            else if (k < n)
                select_narrow(n, k, keys, more);
            write_line(job, line, k <= FEW && k < n ? keys : sort_narrow(k, keys, more), NULL);
        }
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* Sets up ascending keys for the lines of x, views[0], and of its results. */
static void make_job(struct job *job, const tn_view *const *views, int64_t dim)
{
    tn_dtype dtype = tn_view_dtype(views[0]);
    bool floating = (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
    job->item = tn__view_item(views[0]);
    tn__span_lines_make(&job->lines, 3, views, dim);
    job->wide = job->item == 8 || job->lines.length > (int64_t)UINT32_MAX;
    job->ct = !floating ? TN__I64 : job->wide ? TN__F64 : TN__F32;
    job->load = tn__dtype_load(dtype, job->ct);
    if (!floating) /* inverts the sign bit, so that negative numbers come first */
        job->flip = job->wide ? (uint64_t)1 << 63 : dtype == TN_U32 ? 0 : 0x80000000u;
}

static tn_status run(const tn_call *call, int64_t dim, int64_t k, bool descending)
{
    const tn_view *views[3] = { call->in[0], call->out[0], call->out[1] };
    struct job job = { .flip = 0 };
    make_job(&job, views, dim);
    job.k = k < 0 ? job.lines.length : k;
    if (descending)
        job.flip = ~job.flip;
    if (job.lines.count == 0 || job.lines.length == 0 || job.k == 0)
        return TN_OK;
    int64_t grain = GRAIN / job.lines.length;
    if (job.lines.count <= grain)
        return part(&job, 0, job.lines.count);
    return tn_parallel_for(job.lines.count, grain > 0 ? grain : 1, part, &job);
}

static tn_status run_sort(const tn_call *call)
{
    const tn_sort_options *o = call->options;
    return run(call, o->dim, -1, o->descending);
}

static tn_status run_topk(const tn_call *call)
{
    const tn_topk_options *o = call->options;
    return run(call, o->dim, call->in[0]->ndim > 0 ? o->k : 1, o->largest);
}

/* ---- one element of each line, by its rank --------------------------------------------------- */

enum rank { KTH, MIDDLE, MIDDLE_OF_NUMBERS };

struct rank_job {
    struct job sort; /* its k is 1: one result for each line */
    enum rank rank;
    int64_t k; /* rank of KTH, from 0 */
};

/* Returns the rank, from 0, of the element to find in a line of n numbers. If the median is NaN,
 * sets *first to the index of the first NaN, and the rank is not needed; otherwise sets it to -1.
 */
static int64_t rank_of(const struct rank_job *job, int64_t n, const void *numbers, int64_t *first)
{
    int64_t nans = 0;
    *first = -1;
    if (job->rank == KTH)
        return job->k;
    for (int64_t i = n; i-- > 0 && job->sort.ct != TN__I64;) {
        bool nan;
        if (job->sort.ct == TN__F32) {
            float x = ((const float *)numbers)[i];
            nan = x != x;
        } else {
            double x = ((const double *)numbers)[i];
            nan = x != x;
        }
        nans += nan;
        *first = nan ? i : *first;
    }
    if (job->rank == MIDDLE_OF_NUMBERS && nans < n)
        *first = -1;
    return (n - (job->rank == MIDDLE_OF_NUMBERS ? nans : 0) - 1) / 2;
}

/* Returns the place of the element of rank k among n keys, as a stable sort ranks equal keys. */
static uint64_t place_narrow(int64_t n, int64_t k, uint64_t *keys, uint64_t *room)
{
    uint64_t last = 0;
    if (k < FEW && k + 1 < n) {
        few_narrow(n, k + 1, keys);
        return keys[k] & 0xffffffffu;
    }
    select_narrow(n, k + 1, keys, room);
    for (int64_t i = 0; i <= k; i++) /* a key contains the index, so that none are equal */
        last = keys[i] > last ? keys[i] : last;
    return last & 0xffffffffu;
}

static uint64_t place_wide(int64_t n, int64_t k, struct placed *keys, struct placed *room)
{
    struct placed last = { 0, 0 };
    if (k < FEW && k + 1 < n) {
        few_wide(n, k + 1, keys);
        return keys[k].at;
    }
    select_wide(n, k + 1, keys, room);
    for (int64_t i = 0; i <= k; i++)
        if (keys[i].key > last.key || (keys[i].key == last.key && keys[i].at > last.at))
            last = keys[i];
    return last.at;
}

static tn_status rank_part(void *user, int64_t begin, int64_t end)
{
    const struct rank_job *rank = user;
    const struct job *job = &rank->sort;
    int64_t n = job->lines.length, first;
    size_t size = job->wide ? sizeof(struct placed) : sizeof(uint64_t);
    char *memory = tn__scratch_take((size_t)n * (2 * size + tn__dtype_ct_size(job->ct)));
    if (!memory)
        return TN_ERR_MEMORY;
    void *keys = memory, *room = memory + (size_t)n * size,
         *numbers = (char *)room + (size_t)n * size;
    for (int64_t line = begin; line < end; line++) {
        struct placed one = { 0, 0 };
        job->load(n, tn__span_lines_at(&job->lines, 0, line), job->lines.step[0], numbers);
        int64_t k = rank_of(rank, n, numbers, &first);
        if (first >= 0) {
            one.at = (uint64_t)first;
        } else if (job->wide) {
            keys_wide(job, n, numbers, keys);
            one.at = place_wide(n, k, keys, room);
        } else {
            keys_narrow(job, n, numbers, keys);
            one.at = place_narrow(n, k, keys, room);
        }
        write_line(job, line, NULL, &one);
    }
    tn__scratch_give(memory);
    return TN_OK;
}

/* Makes `kept`, with `shape` and `strides` as memory, a view of the result with dimension `dim`,
 * which the reduction of x may have removed. */
static void keep_dim(const tn_view *x, const tn_view *result, int64_t dim, tn_view *kept,
                     int64_t *shape, int64_t *strides)
{
    int32_t from = 0;
    *kept = *result;
    kept->ndim = x->ndim;
    kept->shape = shape;
    kept->strides = strides;
    for (int32_t d = 0; d < x->ndim; d++) {
        bool removed = d == dim && result->ndim < x->ndim;
        shape[d] = removed ? 1 : result->shape[from];
        strides[d] = removed ? 0 : result->strides[from];
        from += !removed;
    }
}

static tn_status run_rank(const tn_call *call, int64_t dim, enum rank rank, int64_t k)
{
    const tn_view *x = call->in[0];
    int64_t shapes[2][TN_MAX_DIMS], strides[2][TN_MAX_DIMS];
    tn_view kept[2];
    struct rank_job job = { .rank = rank, .k = k };
    if (dim < 0)
        dim += x->ndim;
    for (int i = 0; i < 2; i++)
        keep_dim(x, call->out[i], dim, &kept[i], shapes[i], strides[i]);
    const tn_view *views[3] = { x, &kept[0], &kept[1] };
    make_job(&job.sort, views, dim);
    job.sort.k = 1;
    const struct tn__lines *lines = &job.sort.lines;
    if (lines->count == 0 || lines->length == 0)
        return TN_OK;
    int64_t grain = GRAIN / lines->length;
    if (lines->count <= grain)
        return rank_part(&job, 0, lines->count);
    return tn_parallel_for(lines->count, grain > 0 ? grain : 1, rank_part, &job);
}

static tn_status run_kthvalue(const tn_call *call)
{
    const tn_kthvalue_options *o = call->options;
    return run_rank(call, o->dim, KTH, o->k - 1);
}

static tn_status run_median_dim(const tn_call *call)
{
    return run_rank(call, ((const tn_median_dim_options *)call->options)->dim, MIDDLE, 0);
}

static tn_status run_nanmedian_dim(const tn_call *call)
{
    return run_rank(call, ((const tn_nanmedian_dim_options *)call->options)->dim, MIDDLE_OF_NUMBERS,
                    0);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(kthvalue, TN__REALS &TN__NOT_U64),
    TN__KERNEL(median_dim, TN__REALS &TN__NOT_U64),
    TN__KERNEL(nanmedian_dim, TN__REALS &TN__NOT_U64),
    TN__KERNEL(sort, TN__REALS_BOOL &TN__NOT_U64),
    TN__KERNEL(topk, TN__REALS_BOOL &TN__NOT_U64),
};
TN__KERNEL_TABLE(sort);
