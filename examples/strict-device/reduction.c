/* SPDX-License-Identifier: MIT
 *
 * The reductions of the strict device. Floats are accumulated in float64. whole[0] has a bit for
 * each dimension that is reduced. */
#include <math.h>
#include <string.h>

#include "strict.h"

/* Checks the dimensions to reduce and stores them as bits in whole[0]; no dimensions mean all. */
static tn_status choose(struct strict_work *work, const tn_call *call, tn_ints dims)
{
    int32_t ndim = call->in[0]->ndim;
    work->whole[0] = dims.count > 0 ? 0 : (1 << ndim) - 1;
    for (int64_t i = 0; i < dims.count; i++) {
        /* a tensor without dimensions accepts 0 and -1 */
        int64_t most = ndim > 0 ? ndim : 1, dim = dims.at[i] < 0 ? dims.at[i] + most : dims.at[i];
        if (dim < 0 || dim >= most)
            return tn_fail(TN_ERR_INDEX, "%s: dim: out of range, got %lld; expected %lld to %lld",
                           call->op, (long long)dims.at[i], -(long long)most, (long long)most - 1);
        work->whole[0] |= 1 << dim;
    }
    return TN_OK;
}

/* Returns the offset in y of the result to which element `index` of x contributes. `gone` has a bit
 * for each reduced dimension. */
static int64_t result_place(const struct strict_view *y, const struct strict_view *x,
                            const int64_t *index, int64_t gone)
{
    bool keepdim = y->ndim == x->ndim;
    int64_t at = 0;
    for (int32_t i = 0, k = 0; i < x->ndim; i++) {
        if (gone >> i & 1)
            k += keepdim;
        else
            at += index[i] * y->strides[k++];
    }
    return at;
}

/* Called for each element that contributes to a result. `order` counts the elements in row-major
 * order. */
typedef void visit(struct strict_work *work, const struct strict_view *x, int64_t at, int64_t order,
                   void *state);

/* Calls `see` for all elements that contribute to the result at index `kept`. */
static void reduce_one(struct strict_work *work, const int64_t *kept, int64_t gone, visit *see,
                       void *state)
{
    const struct strict_view *x = &work->view[1];
    int64_t index[TN_MAX_DIMS] = { 0 }, order = 0;
    struct strict_view inner = *x;
    for (int32_t i = 0; i < x->ndim; i++)
        if (!(gone >> i & 1))
            inner.shape[i] = 1;
    int64_t base = 0;
    for (int32_t i = 0; i < x->ndim; i++)
        if (!(gone >> i & 1))
            base += kept[i] * x->strides[i];
    if (strict_count(&inner) == 0)
        return;
    do {
        int64_t at = base;
        for (int32_t i = 0; i < x->ndim; i++)
            at += index[i] * x->strides[i];
        see(work, x, at, order++, state);
    } while (strict_step(index, &inner));
}

struct result {
    double f;
    int64_t i, at;
};

static void see_sum(struct strict_work *work, const struct strict_view *x, int64_t at,
                    int64_t order, void *state)
{
    struct result *result = state;
    (void)order;
    if (strict_is_float(x->dtype))
        result->f += strict_get(work, x, at);
    else
        result->i = (int64_t)((uint64_t)result->i + (uint64_t)strict_get_int(work, x, at));
}

static void see_max(struct strict_work *work, const struct strict_view *x, int64_t at,
                    int64_t order, void *state)
{
    struct result *result = state;
    bool larger;
    if (strict_is_float(x->dtype)) {
        double value = strict_get(work, x, at);
        larger = result->at < 0 || value > result->f || (value != value && result->f == result->f);
        result->f = larger ? value : result->f;
    } else {
        int64_t value = strict_get_int(work, x, at);
        larger = result->at < 0 || value > result->i;
        result->i = larger ? value : result->i;
    }
    if (larger)
        result->at = order;
}

static void see_min(struct strict_work *work, const struct strict_view *x, int64_t at,
                    int64_t order, void *state)
{
    struct result *result = state;
    bool smaller;
    if (strict_is_float(x->dtype)) {
        double value = strict_get(work, x, at);
        smaller = result->at < 0 || value < result->f || (value != value && result->f == result->f);
        result->f = smaller ? value : result->f;
    } else {
        int64_t value = strict_get_int(work, x, at);
        smaller = result->at < 0 || value < result->i;
        result->i = smaller ? value : result->i;
    }
    if (smaller)
        result->at = order;
}

static void see_product(struct strict_work *work, const struct strict_view *x, int64_t at,
                        int64_t order, void *state)
{
    struct result *result = state;
    (void)order;
    if (strict_is_float(x->dtype))
        result->f *= strict_get(work, x, at);
    else
        result->i = (int64_t)((uint64_t)result->i * (uint64_t)strict_get_int(work, x, at));
}

static tn_status reduce(struct strict_work *work, visit *see, bool place)
{
    const struct strict_view *y = &work->view[0], *x = &work->view[1];
    struct strict_view outer = *x;
    int64_t index[TN_MAX_DIMS] = { 0 }, gone = work->whole[0];
    for (int32_t i = 0; i < x->ndim; i++)
        if (gone >> i & 1)
            outer.shape[i] = 1;
    if (strict_count(&outer) == 0)
        return TN_OK;
    do {
        struct result result = { see == see_product, see == see_product, -1 };
        reduce_one(work, index, gone, see, &result);
        int64_t at = result_place(y, x, index, gone);
        if (place)
            strict_set_int(work, y, at, result.at);
        else if (strict_is_float(y->dtype))
            strict_set(work, y, at, result.f);
        else
            strict_set_int(work, y, at, result.i);
    } while (strict_step(index, &outer));
    return TN_OK;
}

static tn_status sum_body(struct strict_work *work)
{
    return reduce(work, see_sum, false);
}
static tn_status amax_body(struct strict_work *work)
{
    return reduce(work, see_max, false);
}
static tn_status argmax_body(struct strict_work *work)
{
    return reduce(work, see_max, true);
}

static tn_status amin_body(struct strict_work *work)
{
    return reduce(work, see_min, false);
}
static tn_status argmin_body(struct strict_work *work)
{
    return reduce(work, see_min, true);
}
static tn_status prod_body(struct strict_work *work)
{
    return reduce(work, see_product, false);
}

static tn_status fill_amin(const tn_call *call, struct strict_work *work)
{
    return choose(work, call, ((const tn_amin_options *)call->options)->dims);
}
static tn_status fill_prod(const tn_call *call, struct strict_work *work)
{
    return choose(work, call, ((const tn_prod_options *)call->options)->dims);
}
static tn_status fill_argmin(const tn_call *call, struct strict_work *work)
{
    int64_t dim = ((const tn_argmin_options *)call->options)->dim;
    return choose(work, call, dim == INT64_MIN ? tn_no_ints() : (tn_ints){ &dim, 1 });
}

STRICT_KERNEL(amin)
{
    return strict_enqueue(call, amin_body, fill_amin);
}
STRICT_KERNEL(prod)
{
    return strict_enqueue(call, prod_body, fill_prod);
}
STRICT_KERNEL(argmin)
{
    return strict_enqueue(call, argmin_body, fill_argmin);
}

static tn_status fill_sum(const tn_call *call, struct strict_work *work)
{
    return choose(work, call, ((const tn_sum_options *)call->options)->dims);
}
static tn_status fill_amax(const tn_call *call, struct strict_work *work)
{
    return choose(work, call, ((const tn_amax_options *)call->options)->dims);
}
static tn_status fill_argmax(const tn_call *call, struct strict_work *work)
{
    int64_t dim = ((const tn_argmax_options *)call->options)->dim;
    return choose(work, call, dim == INT64_MIN ? tn_no_ints() : (tn_ints){ &dim, 1 });
}

STRICT_KERNEL(sum)
{
    return strict_enqueue(call, sum_body, fill_sum);
}
STRICT_KERNEL(amax)
{
    return strict_enqueue(call, amax_body, fill_amax);
}
STRICT_KERNEL(argmax)
{
    return strict_enqueue(call, argmax_body, fill_argmax);
}
