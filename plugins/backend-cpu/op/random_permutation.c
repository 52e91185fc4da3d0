/* SPDX-License-Identifier: MIT
 *
 * A random permutation: Philox draws a random key for each index, and the indices are sorted by
 * their keys. Keys are uniform, so the highest bits of a key give its approximate position. They
 * select one of many bins, each small enough for the first-level cache, and each bin is sorted by
 * the remaining bits. The numbers that are sorted have the index in their lowest bits, so equal
 * keys keep their order, however the work is divided. */
#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "simd/simd.h"

enum {
    CHUNK = 512,   /* keys drawn at a time */
    PIECE = 32768, /* minimum number of keys of a piece */
    PIECES = 8,    /* maximum number of pieces */
    KEY = 53,      /* bits of a key */
    PLACE = 11,    /* 64 - KEY: bits that are left for the index next to a whole key */
    GRAIN = 16384  /* minimum number of keys to sort for one thread */
};

struct job {
    struct tn__philox philox;
    int64_t n, piece, pieces, bins;
    int place, bin;  /* bits of an index, bits of the number of a bin */
    uint64_t *y;     /* the result; before, memory for keys and then for sorting */
    uint64_t *dealt; /* the bins: keys without the bits of their bin, and their indices */
    int64_t *starts; /* [pieces][bins] number of keys, then the position for the next key */
    int64_t *ends;   /* the end of each bin in `dealt` */
};

/* Draws the keys of pieces [begin, end), and counts how many belong to each bin. */
static tn_status draw(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    for (int64_t p = begin; p < end; p++) {
        int64_t *count = job->starts + p * job->bins, last = (p + 1) * job->piece;
        double u[CHUNK];
        last = last < job->n ? last : job->n;
        for (int64_t b = 0; b < job->bins; b++)
            count[b] = 0;
        for (int64_t at = p * job->piece; at < last; at += CHUNK) {
            int64_t many = last - at < CHUNK ? last - at : CHUNK;
            tn__simd.random->uniform_f64(&job->philox, (uint64_t)at, many, 0, 1, u);
            for (int64_t i = 0; i < many; i++) {
                uint64_t key = (uint64_t)(int64_t)(u[i] * 0x1p53);
                job->y[at + i] = key;
                count[key >> (KEY - job->bin)]++;
            }
        }
    }
    return TN_OK;
}

/* Copies the keys of pieces [begin, end), with their indices, to the bins. */
static tn_status deal(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    const uint64_t rest = ((uint64_t)1 << (KEY - job->bin)) - 1;
    for (int64_t p = begin; p < end; p++) {
        int64_t *next = job->starts + p * job->bins, last = (p + 1) * job->piece;
        last = last < job->n ? last : job->n;
        for (int64_t i = p * job->piece; i < last; i++) {
            uint64_t key = job->y[i];
            job->dealt[next[key >> (KEY - job->bin)]++] = (key & rest) << job->place | (uint64_t)i;
        }
    }
    return TN_OK;
}

static tn_status sort_bins(void *user, int64_t begin, int64_t end)
{
    const struct job *job = user;
    for (int64_t b = begin; b < end; b++) {
        int64_t first = b > 0 ? job->ends[b - 1] : 0, n = job->ends[b] - first;
        uint64_t *x = job->dealt + first, *y = job->y + first;
        tn__simd.random->sort_bin(n, KEY - job->bin + job->place, job->place, x, y);
    }
    return TN_OK;
}

static tn_status run_philox_permutation(const tn_call *call)
{
    const tn_philox_permutation_options *o = call->options;
    struct job job = { .philox = tn__kernel_philox(o->seed, o->block, call->in[1]),
                       .n = tn__span_view_count(call->out[0]),
                       .y = (uint64_t *)(void *)tn__view_at(call->out[0]) };
    if (job.n == 0)
        return TN_OK;
    while ((job.n - 1) >> job.place > 0)
        job.place++;
    job.bin = job.place > PLACE ? job.place - PLACE : 0;
    job.bins = (int64_t)1 << job.bin;
    job.pieces = job.n / PIECE + 1 < PIECES ? job.n / PIECE + 1 : PIECES;
    job.piece = (job.n + job.pieces - 1) / job.pieces;
    size_t tables = (size_t)((job.pieces + 1) * job.bins) * sizeof(int64_t);
    char *memory = tn__scratch_take((size_t)job.n * sizeof(uint64_t) + tables);
    if (!memory)
        return TN_ERR_MEMORY;
    job.dealt = (uint64_t *)(void *)memory;
    job.starts = (int64_t *)(void *)(memory + (size_t)job.n * sizeof(uint64_t));
    job.ends = job.starts + job.pieces * job.bins;
    tn_status status = tn_parallel_for(job.pieces, 1, draw, &job);
    int64_t at = 0;
    for (int64_t b = 0; b < job.bins; b++) {
        for (int64_t p = 0; p < job.pieces; p++) {
            int64_t many = job.starts[p * job.bins + b];
            job.starts[p * job.bins + b] = at;
            at += many;
        }
        job.ends[b] = at;
    }
    if (status == TN_OK)
        status = tn_parallel_for(job.pieces, 1, deal, &job);
    if (status == TN_OK)
        status = tn_parallel_for(job.bins, GRAIN / (job.n / job.bins + 1) + 1, sort_bins, &job);
    tn__scratch_give(memory);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(philox_permutation, TN_BIT(TN_I64)),
};
TN__KERNEL_TABLE(random_permutation);
