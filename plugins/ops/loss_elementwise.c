/* SPDX-License-Identifier: MIT
 *
 * Losses that come apart into other operators: of two tensors element by element, of margins. Those
 * of classes with weights: losses_weighted.c. */
#include "loss.h"

#include <math.h>

/* Every loss NAME: `decompose` computes y from in[] and o. Of EACH the elements broadcast together,
 * and devices may have kernels for them, which work while no gradient is wanted or `derive` is there. */
#define LOSS(name, NAME, check_more, expression)                                                   \
    DERIVED(name, NAME, check, check_more, expression, NULL)
#define EACH(name, NAME, check_more, expression, derive_)                                          \
    DERIVED(name, NAME, check_each, check_more, expression, derive_)
#define DERIVED(name, NAME, check, check_more, expression, derive_)                                \
    static tn_status name##_infer(tn_infer *infer)                                                 \
    {                                                                                              \
        const tn_##name##_options *o = infer->options;                                             \
        tn_status status = check(infer, o->reduction);                                             \
        return status == TN_OK ? check_more : status;                                              \
    }                                                                                              \
    static tn_status name##_decompose(tn_tensor *const *in, int64_t n_in, const void *options,     \
                                      tn_tensor **out)                                             \
    {                                                                                              \
        const tn_##name##_options *o = options;                                                    \
        (void)n_in;                                                                                \
        return tn__common_given(out, reduced(expression, o->reduction));                           \
    }                                                                                              \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = name##_infer, \
                                      .derive = derive_, .decompose = name##_decompose };

/* x and target element by element: PyTorch broadcasts with a warning, which is a mistake far more often than a wish. */
static tn_status same_shape(const tn_infer *infer)
{
    const tn_view *x = infer->in[0], *target = infer->in[1];
    char text[TN__TEXT], text_t[TN__TEXT];
    bool same = x->ndim == target->ndim;

    for (int32_t i = 0; same && i < x->ndim; i++)
        same = x->shape[i] == target->shape[i];
    return same ? TN_OK
                : tn_fail(TN_ERR_VALUE, "x %s and target %s have to have the same shape",
                          tn__common_text(text, tn__common_shape(x)),
                          tn__common_text(text_t, tn__common_shape(target)));
}

EACH(mse_loss, MSE_LOSS, TN_OK, tn_square(less(in[0], in[1])), NULL)
EACH(l1_loss, L1_LOSS, TN_OK, tn_abs(less(in[0], in[1])), NULL)

static tn_status positive(double value, const char *name, bool zero)
{
    return value > 0 || (zero && value == 0)
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "%s is %g; it has to be %s", name, value,
                         zero ? "0 or more" : "more than 0");
}

/* d = x - target within its bend. */
static tn_tensor *within(tn_tensor *d, double bend)
{
    tn_clamp_options o = TN_CLAMP_OPTIONS;

    o.min = -bend;
    o.max = bend;
    return tn_clamp(d, &o);
}

/* A square up to the bend, then a line: factor c (d - c / 2), c = d within the bend. */
static tn_tensor *bent(tn_tensor *d, double bend, double factor)
{
    tn_tensor *c = within(d, bend);
    tn_add_options half = TN_ADD_OPTIONS;

    half.alpha = -0.5;
    return times(tn_mul(c, tn_add(d, c, &half)), factor);
}

/* gx = gy factor c, of which each element gets its share of the mean */
static tn_status bent_derive(tn_derive *d, const char *reduction, double bend, double factor)
{
    tn_tensor *apart = less(d->in[0], d->in[1]), *gy = d->gout[0];

    if (apart == NULL)
        return tn_error_last()->code;
    if (is(reduction, "mean"))
        factor /= (double)tn_tensor_numel(apart);
    gy = tn_mul(bend == 0 ? tn_sign(apart) : within(apart, bend), times(gy, factor));
    if (tn__needs(d, 0))
        d->gin[0] = gy;
    if (tn__needs(d, 1))
        d->gin[1] = tn_neg(gy);
    return TN_OK;
}

static tn_status smooth_l1_loss_derive(tn_derive *d)
{
    const tn_smooth_l1_loss_options *o = d->options;

    return bent_derive(d, o->reduction, o->beta, o->beta == 0 ? 1 : 1 / o->beta);
}

static tn_status huber_loss_derive(tn_derive *d)
{
    const tn_huber_loss_options *o = d->options;

    return bent_derive(d, o->reduction, o->delta, 1);
}

EACH(smooth_l1_loss, SMOOTH_L1_LOSS, positive(o->beta, "beta", true),
     o->beta == 0 ? tn_abs(less(in[0], in[1])) : bent(less(in[0], in[1]), o->beta, 1 / o->beta),
     smooth_l1_loss_derive)
EACH(huber_loss, HUBER_LOSS, positive(o->delta, "delta", false),
     bent(less(in[0], in[1]), o->delta, 1), huber_loss_derive)

/* ---- two classes ---- */

static tn_status binary_cross_entropy_each_infer(tn_infer *infer)
{
    tn_status status = same_shape(infer);

    if (status == TN_OK)
        tn__common_like(infer, 0, 0, infer->dtype);
    return status;
}

static tn_status binary_cross_entropy_each_decompose(tn_tensor *const *in, int64_t n_in,
                                                     const void *options, tn_tensor **out)
{
    tn_tensor *yes = at_least(tn_ln(in[0]), -100), *no = at_least(tn_log1p(tn_neg(in[0])), -100);

    (void)n_in;
    (void)options;
    return tn__common_given(out, tn_neg(plus(tn_mul(in[1], yes), tn_mul(one_less(in[1]), no))));
}

static tn_status binary_cross_entropy_each_derive(tn_derive *d)
{
    tn_tensor *x = d->in[0], *gy = d->gout[0];

    if (tn__needs(d, 0))
        d->gin[0] = tn_mul(gy, over(less(x, d->in[1]), at_least(tn_mul(x, one_less(x)), 1e-12)));
    if (tn__needs(d, 1))
        d->gin[1] = tn_mul(gy, less(at_least(tn_log1p(tn_neg(x)), -100), at_least(tn_ln(x), -100)));
    return TN_OK;
}

const tn_op_def tn__op_binary_cross_entropy_each = {
    TN_HEAD(tn_op_def), TN_SCHEMA_BINARY_CROSS_ENTROPY_EACH,
    .infer = binary_cross_entropy_each_infer, .derive = binary_cross_entropy_each_derive,
    .decompose = binary_cross_entropy_each_decompose
};

LOSS(binary_cross_entropy, BINARY_CROSS_ENTROPY, same_shape(infer),
     weighted(tn_binary_cross_entropy_each(in[0], in[1]), in[2]))

static tn_tensor *with_logits(tn_tensor *x, tn_tensor *target, tn_tensor *pos)
{
    tn_tensor *log = tn_logsigmoid(x);

    if (pos != TN_NONE)
        log = tn_mul(log, more(tn_mul(more(pos, -1), target), 1));
    return less(tn_mul(one_less(target), x), log);
}

LOSS(binary_cross_entropy_with_logits, BINARY_CROSS_ENTROPY_WITH_LOGITS, same_shape(infer),
     weighted(with_logits(in[0], in[1], in[3]), in[2]))

static tn_tensor *both_soft(tn_tensor *x, tn_tensor *target)
{
    return tn_neg(
        plus(tn_mul(target, tn_logsigmoid(x)), tn_mul(one_less(target), tn_logsigmoid(tn_neg(x)))));
}

static tn_tensor *mean_of_classes(tn_tensor *y)
{
    int64_t last = -1;
    tn_mean_options o = TN_MEAN_OPTIONS;

    o.dims = (tn_ints){ &last, 1 };
    return tn_mean(y, &o);
}

LOSS(multilabel_soft_margin_loss, MULTILABEL_SOFT_MARGIN_LOSS, same_shape(infer),
     mean_of_classes(weighted(both_soft(in[0], in[1]), in[2])))
EACH(soft_margin_loss, SOFT_MARGIN_LOSS, TN_OK, tn_log1p(tn_exp(tn_neg(tn_mul(in[1], in[0])))),
     NULL)

/* ---- distributions ---- */

/* x log x, 0 at 0 */
static tn_tensor *x_log_x(tn_tensor *x)
{
    tn_tensor *none = tn_eq(x, number(x, 0));

    return tn_where(none, number(x, 0), tn_mul(x, tn_ln(tn_masked_fill(x, none, 1.0))));
}

static tn_tensor *divergence(tn_tensor *x, tn_tensor *target, bool logarithms)
{
    if (logarithms)
        return tn_mul(tn_exp(target), less(target, x));
    return less(x_log_x(target), tn_mul(target, x));
}

static tn_status kl_div_infer(tn_infer *infer)
{
    const tn_kl_div_options *o = infer->options;

    return check(infer, is(o->reduction, "batchmean") ? "sum" : o->reduction);
}

static tn_status kl_div_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                  tn_tensor **out)
{
    const tn_kl_div_options *o = options;
    tn_tensor *y = divergence(in[0], in[1], o->log_target);

    (void)n_in;
    if (!is(o->reduction, "batchmean"))
        return tn__common_given(out, reduced(y, o->reduction));
    y = tn_sum(y, NULL);
    return tn__common_given(
        out, tn_tensor_ndim(in[0]) == 0 ? y : over(y, number(y, (double)tn_tensor_size(in[0], 0))));
}

const tn_op_def tn__op_kl_div = { TN_HEAD(tn_op_def), TN_SCHEMA_KL_DIV, .infer = kl_div_infer,
                                  .decompose = kl_div_decompose };

static tn_tensor *stirling(tn_tensor *t)
{
    tn_tensor *low = tn_le(t, number(t, 1)), *safe = tn_masked_fill(t, low, 1.0);

    return tn_masked_fill(
        plus(less(tn_mul(safe, tn_ln(safe)), safe), times(tn_ln(times(safe, 2 * M_PI)), 0.5)), low,
        0.0);
}

static tn_tensor *poisson(tn_tensor *x, tn_tensor *target, const tn_poisson_nll_loss_options *o)
{
    tn_tensor *y = o->log_input ? less(tn_exp(x), tn_mul(target, x))
                                : less(x, tn_mul(target, tn_ln(more(x, o->eps))));

    return o->full ? plus(y, stirling(target)) : y;
}

EACH(poisson_nll_loss, POISSON_NLL_LOSS, TN_OK, poisson(in[0], in[1], o), NULL)

/* PyTorch's rule: var has x's shape, or that with one dimension of size 1, or lacks the last one. */
static tn_status gaussian_check(const tn_infer *infer, double eps)
{
    const tn_view *x = infer->in[0], *var = infer->in[2];
    char text[TN__TEXT], text_v[TN__TEXT];
    int64_t others = 0;
    bool fits = var->ndim == x->ndim || var->ndim == x->ndim - 1;

    for (int32_t d = 0; fits && d < var->ndim; d++)
        if (var->shape[d] != x->shape[d]) {
            fits = var->ndim == x->ndim && var->shape[d] == 1;
            others++;
        }
    if (!fits || others > 1)
        return tn_fail(TN_ERR_VALUE,
                       "var: is of incorrect size, got %s for x %s; expected x's shape, the same "
                       "with one dimension of size 1, or without the last dimension",
                       tn__common_text(text_v, tn__common_shape(var)),
                       tn__common_text(text, tn__common_shape(x)));
    return positive(eps, "eps", true);
}

/* The variance is kept from zero, its gradient goes on as if it were not. */
static tn_tensor *gaussian(tn_tensor *const *in, const tn_gaussian_nll_loss_options *o)
{
    tn_tensor *var = in[2], *still, *y;

    if (tn_tensor_ndim(var) < tn_tensor_ndim(in[0]))
        var = tn_unsqueeze(var, -1);
    if (var == NULL)
        return NULL;
    still = tn_detach(var);
    var = plus(var, less(at_least(still, o->eps), still));
    y = times(plus(tn_ln(var), over(tn_square(less(in[0], in[1])), var)), 0.5);
    return o->full ? more(y, 0.5 * log(2 * M_PI)) : y;
}

LOSS(gaussian_nll_loss, GAUSSIAN_NLL_LOSS, gaussian_check(infer, o->eps), gaussian(in, o))

/* ---- margins ---- */

static tn_tensor *hinge(tn_tensor *x, tn_tensor *target, double margin)
{
    tn_tensor *far = at_least(more(tn_neg(x), margin), 0), *zero = number(x, 0);

    return plus(tn_where(tn_ne(target, number(target, 1)), far, zero),
                tn_where(tn_ne(target, number(target, -1)), x, zero));
}

LOSS(hinge_embedding_loss, HINGE_EMBEDDING_LOSS, TN_OK, hinge(in[0], in[1], o->margin))
EACH(margin_ranking_loss, MARGIN_RANKING_LOSS, TN_OK,
     at_least(more(tn_neg(tn_mul(in[2], less(in[0], in[1]))), o->margin), 0), NULL)

static tn_tensor *distance(tn_tensor *a, tn_tensor *b, const tn_triplet_margin_loss_options *o)
{
    tn_pairwise_distance_options d = TN_PAIRWISE_DISTANCE_OPTIONS;

    d.p = o->p;
    d.eps = o->eps;
    return tn_pairwise_distance(a, b, &d);
}

static tn_tensor *triplet(tn_tensor *const *in, const tn_triplet_margin_loss_options *o)
{
    tn_tensor *near = distance(in[0], in[1], o), *far = distance(in[0], in[2], o);

    if (o->swap)
        far = tn_minimum(far, distance(in[1], in[2], o));
    return at_least(more(less(near, far), o->margin), 0);
}

static tn_status triplet_check(const tn_infer *infer, double margin)
{
    const tn_view *a = infer->in[0];
    char text[TN__TEXT], text_a[TN__TEXT];

    if (!(margin > 0))
        return tn_fail(TN_ERR_VALUE, "margin is %g; it has to be greater than 0", margin);
    for (int32_t i = 1; i < 3; i++) {
        const tn_view *b = infer->in[i];
        bool fits = a->ndim == b->ndim;

        for (int32_t d = 0; fits && d < a->ndim; d++)
            fits = a->shape[d] == b->shape[d] || a->shape[d] == 1 || b->shape[d] == 1;
        if (!fits)
            return tn_fail(TN_ERR_RUNTIME, "anchor %s and %s %s do not broadcast together",
                           tn__common_text(text_a, tn__common_shape(a)),
                           i == 1 ? "positive" : "negative",
                           tn__common_text(text, tn__common_shape(b)));
    }
    return TN_OK;
}

LOSS(triplet_margin_loss, TRIPLET_MARGIN_LOSS, triplet_check(infer, o->margin), triplet(in, o))

static tn_tensor *cosines(tn_tensor *const *in, double margin)
{
    int64_t dim = tn_tensor_ndim(in[0]) > 1 || tn_tensor_ndim(in[1]) > 1 ? 1 : 0;
    tn_tensor *a = more(sum_of(tn_square(in[0]), dim), 1e-12),
              *b = more(sum_of(tn_square(in[1]), dim), 1e-12);
    tn_tensor *cos = over(sum_of(tn_mul(in[0], in[1]), dim), tn_sqrt(tn_mul(a, b))),
              *zero = number(cos, 0);

    return plus(tn_where(tn_eq(in[2], number(in[2], 1)), one_less(cos), zero),
                tn_where(tn_eq(in[2], number(in[2], -1)), at_least(more(cos, -margin), 0), zero));
}

LOSS(cosine_embedding_loss, COSINE_EMBEDDING_LOSS, TN_OK, cosines(in, o->margin))

static tn_status class_shapes(const tn_infer *infer, bool each)
{
    const tn_view *x = infer->in[0], *target = infer->in[1];
    const tn_view *weight = infer->n_in > 2 ? infer->in[2] : NULL;
    int64_t classes = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
    char text[TN__TEXT], text_t[TN__TEXT];
    bool fits = x->ndim <= 2;

    if (x->ndim == 2)
        fits = target->ndim == (each ? 2 : 1) && target->shape[0] == x->shape[0] &&
               (!each || target->shape[1] == classes);
    else if (fits) /* one row: a number stands for a row of one */
        fits = target->ndim == 0 ? !each || classes == 1
                                 : target->ndim == 1 && target->shape[0] == (each ? classes : 1);
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME, "x %s and target %s: %s",
                       tn__common_text(text, tn__common_shape(x)),
                       tn__common_text(text_t, tn__common_shape(target)),
                       each ? "both have to be [N, C] or [C]"
                            : "they have to be [N, C] and [N], or [C] and [] or [1]");
    if (classes < 1)
        return tn_fail(TN_ERR_RUNTIME, "x %s has no classes: only N may be 0",
                       tn__common_text(text, tn__common_shape(x)));
    if (weight != NULL && (weight->ndim != 1 || weight->shape[0] != classes))
        return tn_fail(TN_ERR_RUNTIME, "weight %s has to be [%lld], one for each class",
                       tn__common_text(text, tn__common_shape(weight)), (long long)classes);
    return TN_OK;
}

static tn_tensor *at_least_a_row(tn_tensor *x)
{
    return tn_tensor_ndim(x) == 0 ? tn_unsqueeze(x, 0) : x;
}

static tn_tensor *multi_margin(tn_tensor *const *in, const tn_multi_margin_loss_options *o)
{
    tn_tensor *x = at_least_a_row(in[0]), *target = tn_unsqueeze(in[1], -1), *own, *y;
    int64_t last, classes;
    tn_arange_options whole = TN_ARANGE_OPTIONS;

    if (x != NULL && tn_tensor_ndim(x) == 1 && tn_tensor_ndim(in[1]) == 1)
        x = tn_unsqueeze(x, 0);
    if (x == NULL)
        return NULL;
    last = tn_tensor_ndim(x) - 1;
    classes = tn_tensor_size(x, last);
    own = tn_gather(x, target, last);
    whole.dtype = TN_I64;
    y = at_least(more(less(x, own), o->margin), 0);
    if (o->p == 2)
        y = tn_square(y);
    if (in[2] != TN_NONE)
        y = tn_mul(y, tn_reshape(tn_index_select(in[2], tn_reshape(in[1], TN_SHAPE(-1)), 0),
                                 target == NULL ? (tn_ints){ NULL, 0 } : tn_tensor_shape(target)));
    y = tn_masked_fill(y, tn_eq(tn_arange(x, 0, (double)classes, &whole), target), 0.0);
    return times(sum_of(y, last), 1.0 / (double)classes);
}

static tn_status multi_margin_check(const tn_infer *infer, int64_t p)
{
    return p == 1 || p == 2 ? class_shapes(infer, false)
                            : tn_fail(TN_ERR_VALUE, "p is %lld: 1 and 2 are there", (long long)p);
}

LOSS(multi_margin_loss, MULTI_MARGIN_LOSS, multi_margin_check(infer, o->p), multi_margin(in, o))

/* A place counts until the first negative one; a class that is among the targets is no other class. */
static tn_tensor *multilabel(tn_tensor *x, tn_tensor *target)
{
    int64_t last, classes, second = -1, both[2];
    tn_tensor *ended, *counts, *safe, *own, *among, *y;
    tn_sum_options sum = TN_SUM_OPTIONS;

    if (x == NULL || target == NULL)
        return NULL;
    last = tn_tensor_ndim(x) - 1;
    classes = tn_tensor_size(x, last);
    ended = tn_cumsum(tn_cast(tn_lt(target, number(target, 0)), TN_I64), last, NULL);
    counts = tn_eq(ended, number(ended, 0));
    safe = tn_where(counts, target, number(target, 0));
    own = tn_gather(x, safe, last);
    if (counts == NULL || own == NULL)
        return NULL;
    /* among[n, c]: how often c is a target */
    among = tn_scatter_add(tn__common_zeros(x, tn_tensor_shape(x)), safe,
                           tn_cast(counts, tn_tensor_dtype(x)), last);
    /* y[n, t, c] */
    y = at_least(more(less(tn_unsqueeze(x, -2), tn_unsqueeze(own, -1)), 1), 0);
    y = tn_mul(y, tn_cast(tn_unsqueeze(counts, -1), tn_tensor_dtype(x)));
    y = tn_masked_fill(y, tn_unsqueeze(tn_gt(among, number(among, 0)), -2), 0.0);
    both[0] = second;
    both[1] = -2;
    sum.dims = (tn_ints){ both, 2 };
    return times(tn_sum(y, &sum), 1.0 / (double)classes);
}

LOSS(multilabel_margin_loss, MULTILABEL_MARGIN_LOSS, class_shapes(infer, true),
     multilabel(at_least_a_row(in[0]), at_least_a_row(in[1])))
