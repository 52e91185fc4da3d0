/* SPDX-License-Identifier: MIT
 *
 * Products of groups of different sizes. A factor with three dimensions has a matrix for each
 * group. A factor with two has the groups one after the other, and `offs` says where each ends. */
#include "matmul.h"

enum { A, B, OFFS };

typedef struct grouped {
    int64_t groups, m, k, n;
    bool a_flat, b_flat; /* the factor has two dimensions */
} grouped;

static tn_status plan(const tn_view *a, const tn_view *b, const tn_view *offs, grouped *g)
{
    const char *rule = "[M, K] or [G, M, K], and [K, N] or [G, K, N]";
    tn_status status = tn__matmul_same_dtype(a, b);

    if (status != TN_OK)
        return status;
    if (a->ndim < 2 || a->ndim > 3 || b->ndim < 2 || b->ndim > 3)
        return tn__matmul_shapes(a, b, rule);
    g->a_flat = a->ndim == 2;
    g->b_flat = b->ndim == 2;
    g->m = a->shape[a->ndim - 2];
    g->k = a->shape[a->ndim - 1];
    g->n = b->shape[b->ndim - 1];
    if (b->shape[b->ndim - 2] != g->k || (!g->a_flat && !g->b_flat && a->shape[0] != b->shape[0]))
        return tn__matmul_shapes(a, b, rule);
    if ((offs != NULL) != (g->a_flat || g->b_flat))
        return tn_fail(TN_ERR_RUNTIME,
                       "offs: %s; expected offsets if and only if a factor has 2 dimensions",
                       offs != NULL ? "got a tensor" : "it is absent");
    if (offs != NULL && offs->ndim != 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "offs: wrong number of dimensions, got %d; expected 1, the ends of the "
                       "groups",
                       (int)offs->ndim);
    g->groups = !g->a_flat ? a->shape[0] : !g->b_flat ? b->shape[0] : offs->shape[0];
    if (offs != NULL && offs->shape[0] != g->groups)
        return tn_fail(TN_ERR_RUNTIME,
                       "offs: wrong size, got %lld; expected %lld, one end for each group",
                       (long long)offs->shape[0], (long long)g->groups);
    return TN_OK;
}

static tn_ints result_shape(const grouped *g, int64_t shape[3])
{
    shape[0] = g->groups;
    shape[1] = g->m;
    shape[2] = g->n;
    return g->a_flat != g->b_flat ? (tn_ints){ shape + 1, 2 } : (tn_ints){ shape, 3 };
}

static tn_status grouped_mm_infer(tn_infer *infer)
{
    int64_t shape[3];
    grouped g;
    tn_status status = plan(infer->in[A], infer->in[B], infer->in[OFFS], &g);

    if (status == TN_OK)
        tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[A]), result_shape(&g, shape));
    return status;
}

/* Returns the dimension along which a flat factor has the groups. */
static int64_t dim_of(const grouped *g, bool of_a)
{
    return g->a_flat && g->b_flat ? of_a : !of_a;
}

/* Returns the part of a factor that belongs to a group. */
static tn_tensor *part(const grouped *g, tn_tensor *factor, bool of_a, int64_t group, int64_t begin,
                       int64_t size)
{
    return (of_a ? g->a_flat : g->b_flat) ? tn_narrow(factor, dim_of(g, of_a), begin, size)
                                          : tn_select(factor, 0, group);
}

static tn_status wrong_offset(int64_t group, int64_t got, int64_t length)
{
    return tn_fail(TN_ERR_VALUE,
                   "offs[%lld]: out of range, got %lld; expected ends that never decrease and are "
                   "from 0 to %lld",
                   (long long)group, (long long)got, (long long)length);
}

/* Writes the product of each group to `parts`, and 0 for what comes after the last group. Returns
 * the number of parts, -1 on failure. */
static int64_t multiply(const grouped *g, tn_tensor *a, tn_tensor *b, const int64_t *ends,
                        tn_tensor **parts)
{
    int64_t length = g->a_flat && g->b_flat ? g->k : g->a_flat ? g->m : g->n, begin = 0;

    for (int64_t i = 0; i < g->groups; i++) {
        int64_t size;

        if (ends[i] < begin || ends[i] > length) {
            wrong_offset(i, ends[i], length);
            return -1;
        }
        size = ends[i] - begin;
        parts[i] = tn_matmul(part(g, a, true, i, begin, size), part(g, b, false, i, begin, size));
        if (parts[i] == NULL)
            return -1;
        begin = ends[i];
    }
    if (g->a_flat == g->b_flat || (begin == length && g->groups > 0))
        return g->groups;
    parts[g->groups] = tn__common_zeros(a, g->a_flat ? TN_SHAPE(length - begin, g->n)
                                                     : TN_SHAPE(g->m, length - begin));
    return parts[g->groups] != NULL ? g->groups + 1 : -1;
}

static tn_tensor *join(const grouped *g, tn_tensor *a, tn_tensor *const *parts, int64_t count)
{
    int64_t shape[3];

    if (count == 0)
        return tn__common_zeros(a, result_shape(g, shape));
    return g->a_flat == g->b_flat ? tn_stack(parts, count, 0)
                                  : tn_cat(parts, count, g->a_flat ? 0 : 1);
}

static tn_status grouped_mm_decompose(const tn_decompose *call)
{
    tn_tensor *a = call->in[A], *b = call->in[B], *offs = call->in[OFFS], **parts, *y = NULL;
    int64_t *ends, count = -1, shape[3];
    grouped g;
    tn_status status = plan(tn_tensor_view(a), tn_tensor_view(b),
                            offs != TN_NONE ? tn_tensor_view(offs) : NULL, &g);

    if (status != TN_OK)
        return status;
    if (offs == TN_NONE)
        return tn__common_given(call->out, tn_bmm(a, b));
    if (!tn_device_has_memory(tn_tensor_device(offs))) /* no values, only a shape */
        return tn__common_given(call->out, tn__common_zeros(a, result_shape(&g, shape)));
    parts = tn_malloc((size_t)(g.groups + 1) * sizeof(tn_tensor *));
    ends = tn_malloc((size_t)(g.groups + 1) * sizeof *ends);
    if (parts != NULL && ends != NULL &&
        (g.groups == 0 || tn_tensor_copy_out(offs, ends, (size_t)g.groups * sizeof *ends) == TN_OK))
        count = multiply(&g, a, b, ends, parts);
    if (count >= 0)
        y = join(&g, a, parts, count);
    tn_free(parts);
    tn_free(ends);
    return tn__common_given(call->out, y);
}

/* The gradient of each factor is the product of the same groups again: along the groups of y if y
 * is flat there, else along those of the other factor. */
static tn_status grouped_mm_derive(tn_derive *d)
{
    tn_tensor *offs = d->in_meta[OFFS].ndim < 0 ? TN_NONE : d->in[OFFS];

    if (tn__needs(d, A))
        d->gin[A] = tn_grouped_mm(d->gout[0], tn_transpose(tn__common_conj(d->in[B]), -2, -1),
                                  offs);
    if (tn__needs(d, B))
        d->gin[B] = tn_grouped_mm(tn_transpose(tn__common_conj(d->in[A]), -2, -1), d->gout[0],
                                  offs);
    return TN_OK;
}

TN__OP(grouped_mm, .infer = grouped_mm_infer, .derive = grouped_mm_derive,
       .decompose = grouped_mm_decompose);
