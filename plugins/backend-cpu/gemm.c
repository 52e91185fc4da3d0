/* SPDX-License-Identifier: MIT
 *
 * One product of matrices on one thread, by strips: c = a b (+ bias), or c += a b. b lies in panels, or row by row. */
#include <string.h>

#include "kernels.h"

enum {
    DEPTH = 512,
    GAP = 16,
    MOST_COLUMNS = 64,
    MOST_ROWS = 12,
    WHOLE = 12 * 4,
    DONE_AT_ONCE = 128
};

static const double nothing[MOST_COLUMNS];

int64_t tn__gemm_width(enum tn__ct ct, int64_t n)
{
    int64_t nr = tn__products->strips[ct].nr;

    return n <= nr / 2 ? nr / 2 : nr;
}

/* The last panel is not full: its sums go through a place beside c. */
static void edge(const struct tn__gemm *g, tn__strip_run *run, int64_t rows, int64_t columns,
                 int64_t kc, const char *a, int64_t step, const char *b, char *c, const char *bias)
{
    char beside[MOST_ROWS * MOST_COLUMNS * 8] __attribute__((aligned(64)));
    int64_t size = (int64_t)tn__ct_size(g->ct);

    if (!bias)
        for (int64_t i = 0; i < rows; i++)
            memcpy(beside + i * g->width * size, c + i * g->ldc * size, (size_t)(columns * size));
    run(rows, kc, a, step, b, g->b_step, beside, g->width, bias);
    for (int64_t i = 0; i < rows; i++)
        memcpy(c + i * g->ldc * size, beside + i * g->width * size, (size_t)(columns * size));
}

size_t tn__gemm_space(const struct tn__gemm *g)
{
    int64_t mr = tn__products->strips[g->ct].mr, deep = g->k < DEPTH ? g->k : DEPTH;

    return (size_t)((g->m + mr - 1) / mr * mr * (deep + GAP)) * tn__ct_size(g->ct);
}

/* Whether rows of a are so far apart that the lines of a strip push one another out of the cache. */
static bool crowded(const struct tn__gemm *g)
{
    int64_t bytes = g->a_step * (int64_t)tn__ct_size(g->ct);

    return g->space && g->n > 2 * g->width &&
           (g->by_columns ? bytes >= 512 : g->k >= 64 && bytes % 1024 == 0);
}

/* From one gathered strip to the next: GAP apart, or strips of a depth of 2^n would write into the same lines of the
 * cache, each pushing the one before out. */
static int64_t strip_step(int64_t kc, int64_t mr)
{
    return kc * mr + GAP;
}

/* Without a call. */
static inline void copy_short(char *to, const char *from, int64_t bytes)
{
    for (; bytes >= 8; bytes -= 8, to += 8, from += 8)
        memcpy(to, from, 8);
    for (; bytes > 0; bytes--)
        *to++ = *from++;
}

/* kc columns of a from k0 on, as [strip][kc][mr] (+ GAP). */
static void gather_columns(const struct tn__gemm *g, int64_t k0, int64_t kc, int64_t mr)
{
    const int64_t size = (int64_t)tn__ct_size(g->ct), strips = g->m / mr, wide = mr * size;
    const int64_t next = strip_step(kc, mr) * size, rest = (g->m - strips * mr) * size;

    for (int64_t k = 0; k < kc; k++) {
        const char *from = (const char *)g->a + (k0 + k) * g->a_step * size;
        char *to = (char *)g->space + k * wide;
        if (wide == WHOLE) /* of float32 with the widest vectors: three moves */
            for (int64_t i = 0; i < strips; i++, from += WHOLE, to += next)
                memcpy(to, from, WHOLE);
        else
            for (int64_t i = 0; i < strips; i++, from += wide, to += next)
                copy_short(to, from, wide);
        copy_short(to, from, rest);
    }
}

/* The same of rows, as [m][kc + GAP]. */
static void gather_rows(const struct tn__gemm *g, int64_t k0, int64_t kc)
{
    const int64_t size = (int64_t)tn__ct_size(g->ct);

    for (int64_t i = 0; i < g->m; i++)
        memcpy((char *)g->space + i * (kc + GAP) * size,
               (const char *)g->a + (i * g->a_step + k0) * size, (size_t)(kc * size));
}

void tn__gemm_run(const struct tn__gemm *g)
{
    const struct tn__strips *strips = &tn__products->strips[g->ct];
    int64_t size = (int64_t)tn__ct_size(g->ct), wide = g->width == strips->nr;
    tn__strip_run *run = g->by_columns ? strips->columns[wide] : strips->rows[wide];
    int64_t deep = g->by_columns ? g->a_step : 1, down = g->by_columns ? 1 : g->a_step;
    int64_t step = g->a_step, between = 0; /* bytes from one gathered strip to the next */
    bool apart = crowded(g);

    /* Without depth there is one round, which leaves the bias. */
    for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += DEPTH) {
        int64_t kc = g->k - k0 < DEPTH ? g->k - k0 : DEPTH;
        if (apart) {
            if (g->by_columns)
                gather_columns(g, k0, kc, strips->mr);
            else
                gather_rows(g, k0, kc);
            step = g->by_columns ? strips->mr : kc + GAP;
            between = (g->by_columns ? strip_step(kc, strips->mr) : strips->mr * step) * size;
        }
        const bool last = k0 + DEPTH >= g->k;
        for (int64_t j = 0, whole = 0; j < g->n; j += g->width) {
            const char *b = (const char *)g->b +
                            (j / g->width * g->b_panel + k0 * g->b_step) * size,
                       *bias = g->bias ? (const char *)g->bias + j * size : (const char *)nothing;
            if (k0 > 0 || g->add)
                bias = NULL;
            const char *gathered = g->space;
            for (int64_t i = 0; i < g->m; i += strips->mr, gathered += between) {
                int64_t rows = g->m - i < strips->mr ? g->m - i : strips->mr;
                const char *a = apart ? gathered
                                      : (const char *)g->a + (i * down + k0 * deep) * size;
                char *c = (char *)g->c + (i * g->ldc + j) * size;
                if (g->n - j >= g->width)
                    run(rows, kc, a, step, b, g->b_step, c, g->ldc, bias);
                else
                    edge(g, run, rows, g->n - j, kc, a, step, b, c, bias);
            }
            int64_t end = j + g->width < g->n ? j + g->width : g->n;
            if (last && g->done && (end == g->n || end - whole >= DONE_AT_ONCE)) {
                g->done(g->user, g, whole, end - whole);
                whole = end;
            }
        }
    }
}

void tn__gemm_pack(enum tn__ct ct, int64_t k, int64_t n, int64_t width, const void *from,
                   int64_t deep, int64_t across, void *to)
{
    int64_t size = (int64_t)tn__ct_size(ct);
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
            tn__transpose_4(k, here, at, width * 4, x, across * 4);
        else if (deep == 1)
            tn__transpose_8(k, here, at, width * 8, x, across * 8);
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
        tn__products->axpy_f32(n, 1, from, to);
    else
        tn__products->axpy_f64(n, 1, from, to);
}
