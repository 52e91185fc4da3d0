/* SPDX-License-Identifier: MIT
 *
 * One product of matrices on one thread: c = a b (+ bias), or c += a b. It is computed by strips,
 * which are some rows of a times a panel, some columns of b. b is packed into panels, or
 * row-major. */
#include <math.h>
#include <string.h>

#include "matmul/gemm.h"
#include "op/copy.h"
#include "simd/simd.h"

enum {
    GAP = 16,          /* elements between gathered strips; tn__gemm_strip says why */
    MOST_COLUMNS = 64, /* of a panel, with any instruction set */
    WHOLE = 12 * 4,    /* bytes of a strip's column of float32 with the widest vectors */
    NEAR = 1 << 19     /* bytes of the panels that are used together: the second-level cache */
};

static const double nothing[MOST_COLUMNS]; /* zeros, the bias of a product without one */

int64_t tn__gemm_width(enum tn__ct ct, int64_t n)
{
    const struct tn__strips *s = &tn__simd.gemm->strips[ct];
    int64_t vectors = (n + s->vector - 1) / s->vector;

    return (vectors < 1 ? 1 : vectors < 3 ? vectors : s->vectors) * s->vector;
}

bool tn__gemm_crowded(const struct tn__gemm *g)
{
    return g->by_columns && g->n > 4 * tn__simd.gemm->strips[g->ct].vector &&
           g->a_step * (int64_t)tn__dtype_ct_size(g->ct) >= 512;
}

/* GAP prevents strips from beginning a power of two apart: such strips share the same few cache
 * lines, and writing one evicts the others. */
int64_t tn__gemm_strip(enum tn__ct ct, int64_t k)
{
    return k * tn__simd.gemm->strips[ct].mr + GAP;
}

/* Copies a few bytes, without the cost of calling memcpy. */
static inline void copy_short(char *to, const char *from, int64_t bytes)
{
    for (; bytes >= 8; bytes -= 8, to += 8, from += 8)
        memcpy(to, from, 8);
    for (; bytes > 0; bytes--)
        *to++ = *from++;
}

void tn__gemm_gather(const struct tn__gemm *g, int64_t a_strip, int64_t first, int64_t count,
                     void *strips)
{
    const int64_t size = (int64_t)tn__dtype_ct_size(g->ct), mr = tn__simd.gemm->strips[g->ct].mr;
    const int64_t m = g->m - first * mr < count * mr ? g->m - first * mr : count * mr;
    const int64_t wide = mr * size, next = a_strip * size, rest = m % mr * size;

    for (int64_t k = 0; k < g->k; k++) {
        const char *from = (const char *)g->a + (first * mr + k * g->a_step) * size;
        char *to = (char *)strips + k * wide;
        if (wide == WHOLE) /* a constant size: the compiler copies it with three instructions */
            for (int64_t i = 0; i < m / mr; i++, from += WHOLE, to += next)
                memcpy(to, from, WHOLE);
        else
            for (int64_t i = 0; i < m / mr; i++, from += wide, to += next)
                copy_short(to, from, wide);
        copy_short(to, from, rest);
    }
}

const struct tn__limits tn__no_limits = { -INFINITY, INFINITY };

/* One strip of a, with the address of its first row in c. */
struct strip {
    const char *a;
    int64_t step, down; /* a_step of tn__gemm; bytes from one row of a to the next */
    int64_t rows, k0, rounds, kc;
    const struct tn__limits *limits;
    char *c;
};

/* Multiplies the strip by the panel that begins at column j, as many rows at a time as fit in the
 * registers. */
static void multiply(const struct tn__gemm *g, const struct strip *s, int64_t j, const char *bias)
{
    const struct tn__strips *strips = &tn__simd.gemm->strips[g->ct];
    const int64_t size = (int64_t)tn__dtype_ct_size(g->ct);
    const int64_t n = g->n - j < g->width ? g->n - j : g->width;
    const struct tn__strip *strip = &strips->of[(n - 1) / strips->vector];
    const char *b = (const char *)g->b + (j / g->width * g->b_panel + s->k0 * g->b_step) * size;
    tn__strip_run *run = g->by_columns ? strip->columns : strip->rows;

    for (int64_t i = 0; i < s->rows; i += strip->high) {
        const int64_t rows = s->rows - i < strip->high ? s->rows - i : strip->high;
        const char *a = s->a + i * s->down;
        char *c = s->c + (i * g->ldc + j) * size;
        run(rows, s->kc, a, s->step, b, g->b_step, c, g->ldc, bias, s->rounds, g->a_jump, g->b_jump,
            n % strips->vector, s->limits);
    }
}

/* The loops, from the outermost to the innermost: parts of the depth; groups of panels of b that
 * fit into the second-level cache together; strips of a; panels of the group. So a strip is read
 * from the first-level cache for all panels but the first. */
void tn__gemm_run(const struct tn__gemm *g)
{
    const int64_t size = (int64_t)tn__dtype_ct_size(g->ct), mr = tn__simd.gemm->strips[g->ct].mr;
    const int64_t down = g->by_columns ? 1 : g->a_step, deep = g->by_columns ? g->a_step : 1;
    const int64_t a_strip = g->a_strip ? g->a_strip : mr * down;
    const int64_t rounds = g->rounds > 1 ? g->rounds : 1;
    const int64_t depth = rounds > 1 && g->k > 0 ? g->k : TN__GEMM_DEPTH;

    /* If k is 0, one iteration runs and stores the bias. */
    for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += depth) {
        const int64_t kc = g->k - k0 < depth ? g->k - k0 : depth;
        const bool last = k0 + depth >= g->k, add = k0 > 0 || g->add;
        int64_t panels = NEAR / (size * g->width * (kc > 0 ? kc : 1));
        const int64_t wide = (panels > 0 ? panels : 1) * g->width;
        struct strip s = { .step = g->a_step,
                           .down = down * size,
                           .k0 = k0,
                           .rounds = rounds,
                           .kc = kc / rounds,
                           .limits = last && g->limits ? g->limits : &tn__no_limits };
        for (int64_t j0 = 0; j0 < g->n; j0 += wide) {
            const int64_t end = j0 + wide < g->n ? j0 + wide : g->n;
            for (int64_t i = 0; i < g->m; i += mr) {
                s.rows = g->m - i < mr ? g->m - i : mr;
                s.a = (const char *)g->a + (i / mr * a_strip + k0 * deep) * size;
                s.c = (char *)g->c + i * g->ldc * size;
                for (int64_t j = j0; j < end; j += g->width)
                    multiply(g, &s, j,
                             add       ? NULL
                             : g->bias ? (const char *)g->bias + j * size
                                       : (const char *)nothing);
                if (last && g->done)
                    g->done(g->user, i, s.rows, j0, end - j0);
            }
        }
    }
}

void tn__gemm_pack(enum tn__ct ct, int64_t k, int64_t n, int64_t width, const void *from,
                   int64_t deep, int64_t across, void *to)
{
    int64_t size = (int64_t)tn__dtype_ct_size(ct);
    char *at = to;

    for (int64_t j = 0; j < n; j += width, at += k * width * size) {
        int64_t here = n - j < width ? n - j : width;
        const char *x = (const char *)from + j * across * size;
        if (here < width)
            memset(at, 0, (size_t)(k * width * size));
        if (across == 1)
            for (int64_t i = 0; i < k; i++)
                memcpy(at + i * width * size, x + i * deep * size, (size_t)(here * size));
        else if (deep == 1 && size == 4)
            tn__copy_transpose_4(k, here, at, width * 4, x, across * 4);
        else if (deep == 1)
            tn__copy_transpose_8(k, here, at, width * 8, x, across * 8);
        else
            for (int64_t i = 0; i < k; i++)
                for (int64_t c = 0; c < here; c++)
                    memcpy(at + (i * width + c) * size, x + (i * deep + c * across) * size,
                           (size_t)size);
    }
}

void tn__gemm_add_row(enum tn__ct ct, int64_t n, const void *from, void *to)
{
    if (ct == TN__F32)
        tn__simd.gemm->axpy_f32(n, 1, from, to);
    else
        tn__simd.gemm->axpy_f64(n, 1, from, to);
}
