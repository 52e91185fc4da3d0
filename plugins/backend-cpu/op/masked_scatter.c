/* SPDX-License-Identifier: MIT
 *
 * masked_scatter of contiguous tensors, in two passes over pieces of the mask: the first counts
 * what is true in each, the second writes. */
#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "simd/simd.h"

enum { PIECE = 32768 };

#define TEMPLATE "op/masked_scatter_template.h"
#include "base/for_sizes.h"

struct masked {
    const uint8_t *mask;
    const char *x, *src;
    char *y;
    int64_t n, size, item; /* elements of the mask and of src, bytes of an element */
    int64_t *before;       /* true elements of each piece, then of all pieces before */
    void (*choose)(int64_t n, const uint8_t *mask, const char *x, const char *src, int64_t size,
                   char *y);
};

static tn_status masked_count(void *user, int64_t begin, int64_t end)
{
    const struct masked *m = user;
    for (int64_t p = begin; p < end; p++) {
        int64_t from = p * PIECE, to = from + PIECE < m->n ? from + PIECE : m->n;
        int32_t found = 0;
        for (int64_t i = from; i < to; i++)
            found += m->mask[i] != 0;
        m->before[p] = found;
    }
    return TN_OK;
}

static tn_status masked_write(void *user, int64_t begin, int64_t end)
{
    const struct masked *m = user;
    for (int64_t p = begin; p < end; p++) {
        int64_t from = p * PIECE, to = from + PIECE < m->n ? from + PIECE : m->n;
        int64_t at = m->before[p] < m->size ? m->before[p] : m->size - 1;
        m->choose(to - from, m->mask + from, m->x + from * m->item, m->src + at * m->item,
                  m->size - at, m->y + from * m->item);
    }
    return TN_OK;
}

static bool supports_masked_scatter(const tn_call *call, char *reason, size_t size)
{
    const tn_view *x = call->in[0], *mask = call->in[1], *src = call->in[2];
    bool same = x->ndim == mask->ndim;
    for (int32_t d = 0; same && d < x->ndim; d++)
        same = x->shape[d] == mask->shape[d];
    if (same && tn__span_result_dense(call) && tn__copy_index(tn__view_item(x)) >= 0 &&
        tn__span_view_dense(x) && tn__span_view_dense(mask) && tn__span_view_dense(src) &&
        tn__span_view_count(src) > 0)
        return true;
    tn_snprint(reason, size,
               "expected contiguous tensors, x and mask of one shape, elements of at most 8 bytes "
               "and some in src");
    return false;
}

static tn_status run_masked_scatter(const tn_call *call)
{
    static void (*const chooses[4])(int64_t, const uint8_t *, const char *, const char *, int64_t,
                                    char *) = { choose_1, choose_2, choose_4, choose_8 };
    const tn_view *x = call->in[0];
    struct masked m = { .mask = (const uint8_t *)tn__view_at(call->in[1]),
                        .x = tn__view_at(x),
                        .src = tn__view_at(call->in[2]),
                        .y = tn__view_at(call->out[0]),
                        .n = tn__span_view_count(x),
                        .size = tn__span_view_count(call->in[2]),
                        .item = tn__view_item(x) };
    int64_t pieces = (m.n + PIECE - 1) / PIECE, all = 0, few[1];
    m.choose = chooses[tn__copy_index(m.item)];
    m.before = pieces <= 1 ? few : tn__scratch_take((size_t)pieces * sizeof *m.before);
    if (!m.before)
        return TN_ERR_MEMORY;
    tn_status status = pieces <= 1 ? masked_count(&m, 0, pieces)
                                   : tn_parallel_for(pieces, 1, masked_count, &m);
    for (int64_t p = 0; p < pieces; p++) {
        int64_t here = m.before[p];
        m.before[p] = all;
        all += here;
    }
    if (status == TN_OK && all > m.size)
        status = tn_fail(TN_ERR_INDEX,
                         "%s: src: too few elements, got %lld; expected at least %lld, one for "
                         "each true element of mask",
                         call->op, (long long)m.size, (long long)all);
    if (status == TN_OK)
        status = pieces <= 1 ? masked_write(&m, 0, pieces)
                             : tn_parallel_for(pieces, 1, masked_write, &m);
    if (pieces > 1)
        tn__scratch_give(m.before);
    return status;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_OVER_SUPPORTS(masked_scatter, TN_MASK_ALL, 1, supports_masked_scatter),
};
TN__KERNEL_TABLE(masked_scatter);
