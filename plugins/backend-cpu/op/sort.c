/* SPDX-License-Identifier: MIT
 *
 * sort and topk, line by line. Each element becomes an unsigned key in the wanted order (NaN is
 * largest, the two zeros are equal), and keys are sorted by radix from the lowest byte; so equal
 * elements keep their order. For dtypes of up to 32 bits the index of the element is in the lower
 * half of the key. */
#include <string.h>

#include "base/dtype.h"
#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"

enum {
    GRAIN = 16384,
    BY_INSERTION = 48,
    FEW = 16,
    BYTES = 256,
    CHUNK = 1024 /* elements of a long line that are read at a time when only a few are kept */
};

struct job {
    struct tn__lines lines; /* of x, the values, the indices */
    tn__load *load;
    enum tn__ct ct;
    int64_t item, k;
    bool wide; /* numbers of 64 bits */
    uint64_t flip;
};

struct placed {
    uint64_t key, at;
};

/* ---- keys in the wanted order ---------------------------------------------------------------- */

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

/* Writes the keys below `limit` one after another, and returns their number. */
static int64_t keys_below(const struct job *job, int64_t n, const void *numbers, int64_t first,
                          uint64_t limit, uint64_t *keys)
{
    uint32_t flip = (uint32_t)job->flip;
    const uint32_t *f = numbers;
    const int64_t *whole = numbers;
    int64_t count = 0;
    for (int64_t i = 0; job->ct == TN__F32 && i < n; i++) {
        uint64_t key = order_f32(f[i]) ^ flip;
        keys[count] = key << 32 | (uint64_t)(first + i);
        count += key < limit;
    }
    for (int64_t i = 0; job->ct != TN__F32 && i < n; i++) {
        uint64_t key = (uint32_t)whole[i] ^ flip;
        keys[count] = key << 32 | (uint64_t)(first + i);
        count += key < limit;
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

/* The first k of a long line: elements below the k-th so far are collected until the buffer is
 * full, then all but k are dropped. */
static int64_t room_for(int64_t k)
{
    return (k > CHUNK / 2 ? 2 * k : CHUNK) + CHUNK;
}

static void first_of_many(const struct job *job, int64_t line, uint64_t *keys, uint64_t *room,
                          void *numbers)
{
    const char *x = tn__span_lines_at(&job->lines, 0, line);
    int64_t n = job->lines.length, step = job->lines.step[0], k = job->k, have = 0;
    uint64_t limit = (uint64_t)1 << 32;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t count = n - at < CHUNK ? n - at : CHUNK;
        job->load(count, x + at * step, step, numbers);
        have += keys_below(job, count, numbers, at, limit, keys + have);
        if (have <= room_for(k) - CHUNK && (at + CHUNK < n || have <= k))
            continue;
        select_narrow(have, k, keys, room);
        have = k;
        limit = 0;
        for (int64_t i = 0; i < k; i++)
            limit = key_narrow(keys[i]) > limit ? key_narrow(keys[i]) : limit;
    }
}

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
    bool many = !job->wide && n > 4 * CHUNK && k <= n / 8;
    size_t most = (size_t)(many ? room_for(k) : n);
    char *memory = tn__scratch_take(most * (2 * size + tn__dtype_ct_size(job->ct)));
    if (!memory)
        return TN_ERR_MEMORY;
    char *room = memory + most * size, *numbers = room + most * size;
    for (int64_t line = begin; line < end; line++) {
        if (many) {
            uint64_t *keys = (uint64_t *)(void *)memory, *more = (uint64_t *)(void *)room;
            first_of_many(job, line, keys, more, numbers);
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

static tn_status run(const tn_call *call, int64_t dim, int64_t k, bool descending)
{
    const tn_view *x = call->in[0], *views[3] = { x, call->out[0], call->out[1] };
    tn_dtype dtype = tn_view_dtype(x);
    struct job job = { .item = tn__view_item(x) };
    bool floating = (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
    tn__span_lines_make(&job.lines, 3, views, dim);
    job.k = k < 0 ? job.lines.length : k;
    job.wide = job.item == 8 || job.lines.length > (int64_t)UINT32_MAX;
    job.ct = !floating ? TN__I64 : job.wide ? TN__F64 : TN__F32;
    job.load = tn__dtype_load(dtype, job.ct);
    if (!floating) /* flips the sign, so that negative numbers come first */
        job.flip = job.wide ? (uint64_t)1 << 63 : dtype == TN_U32 ? 0 : 0x80000000u;
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

static const tn_kernel_def kernels[] = {
    TN__KERNEL(sort, TN__REALS_BOOL &TN__NOT_U64),
    TN__KERNEL(topk, TN__REALS_BOOL &TN__NOT_U64),
};
TN__KERNEL_TABLE(sort);
