/* SPDX-License-Identifier: MIT
 *
 * Connectionist temporal classification (CTC): the forward recursion in log space for the whole
 * batch at once. The recursion runs over each target with blanks between, before and after its
 * elements. Gradients come from the operators of the decomposition, plus the term that
 * with_scores() adds. */
#include "loss.h"

#include <math.h>

struct ctc {
    int64_t t, n, c, s; /* T, N, C of log_probs; s: 2 * length of the longest target + 1 */
    int64_t *label;     /* [N, S]: the targets with blanks */
    bool *skip;         /* [N, S]: true if the blank before this element may be left out */
    int64_t *last;      /* [N, 2]: positions of the last target element and of the last blank */
    bool *alone;        /* [N]: true if the target is empty, so that it has no last element */
    int64_t *input, *target;
};

static tn_status ctc_loss_infer(tn_infer *infer)
{
    const tn_ctc_loss_options *o = infer->options;
    const tn_view *x = infer->in[0], *targets = infer->in[1];
    bool batched = x->ndim == 3;
    int64_t n = batched ? x->shape[1] : 1;
    char text[TN__TEXT], text_t[TN__TEXT];

    if ((x->ndim != 2 && !batched) || targets->ndim > 2 || targets->ndim < 1 ||
        (targets->ndim == 2 && targets->shape[0] != n))
        return tn_fail(
            TN_ERR_RUNTIME,
            "log_probs or targets: wrong shape, got %s and %s; expected [T, N, C] with [N, S] or "
            "[sum of lengths], or [T, C] with [S]",
            tn__common_text(text, tn__common_shape(x)),
            tn__common_text(text_t, tn__common_shape(targets)));
    for (int i = 2; i < 4; i++) {
        const tn_view *lengths = infer->in[i];

        if (tn__common_count(tn__common_shape(lengths)) != n || lengths->ndim > 1)
            return tn_fail(TN_ERR_RUNTIME,
                           "%s: wrong shape, got %s; expected [%lld], one for each sequence",
                           i == 2 ? "input_lengths" : "target_lengths",
                           tn__common_text(text, tn__common_shape(lengths)), (long long)n);
    }
    if (o->blank < 0 || o->blank >= x->shape[x->ndim - 1])
        return tn_fail(TN_ERR_RUNTIME, "blank: out of range, got %lld; expected 0 to %lld, a class",
                       (long long)o->blank, (long long)x->shape[x->ndim - 1] - 1);
    if (check_reduction(o->reduction) != TN_OK)
        return tn_error_last_code();
    return tn__common_open(infer);
}

/* Copies integers of any dtype to the host as int64. Returns memory for tn_free(), or NULL and sets
 * the error. */
static int64_t *read(tn_tensor *x)
{
    int64_t count = tn__common_count(tn_tensor_shape(x));
    tn_tensor *wide = tn_cast(x, TN_I64);
    int64_t *to = wide == NULL ? NULL : tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *to);

    if (to != NULL && count > 0 &&
        tn_tensor_copy_out(wide, to, (size_t)count * sizeof *to) != TN_OK) {
        tn_free(to);
        return NULL;
    }
    return to;
}

static tn_status check_targets(const struct ctc *k, tn_ints targets, const int64_t *label,
                               int64_t blank)
{
    int64_t all = 0;

    for (int64_t n = 0; n < k->n; n++) {
        int64_t length = k->target[n];

        if (k->input[n] < 0 || k->input[n] > k->t || length < 0 ||
            (targets.count == 2 && length > targets.at[1]))
            return tn_fail(
                TN_ERR_RUNTIME,
                "ctc_loss: sequence %lld: wrong length, got input length %lld (expected 0 to "
                "%lld) and target length %lld (expected 0 or more%s)",
                (long long)n, (long long)k->input[n], (long long)k->t, (long long)length,
                targets.count == 2 ? ", at most the size of a row of targets" : "");
        for (int64_t i = 0; targets.count == 2 && i < length; i++) {
            int64_t value = label[n * targets.at[1] + i];

            if (value < 0 || value >= k->c || value == blank)
                return tn_fail(
                    TN_ERR_RUNTIME,
                    "ctc_loss: target %lld of sequence %lld: out of range, got %lld; expected a "
                    "class from 0 to %lld other than the blank %lld",
                    (long long)i, (long long)n, (long long)value, (long long)k->c - 1,
                    (long long)blank);
        }
        if (length > INT64_MAX / 4 - all)
            return tn_fail(
                TN_ERR_RUNTIME,
                "ctc_loss: target_lengths: the sum overflows; expected the number of targets");
        all += length;
    }
    if (targets.count == 1 && all != targets.at[0])
        return tn_fail(
            TN_ERR_RUNTIME,
            "ctc_loss: target_lengths: wrong sum, got %lld; expected %lld, the number of targets",
            (long long)all, (long long)targets.at[0]);
    for (int64_t i = 0; targets.count == 1 && i < all; i++)
        if (label[i] < 0 || label[i] >= k->c || label[i] == blank)
            return tn_fail(
                TN_ERR_RUNTIME,
                "ctc_loss: target %lld: out of range, got %lld; expected a class from 0 to %lld "
                "other than the blank %lld",
                (long long)i, (long long)label[i], (long long)k->c - 1, (long long)blank);
    return TN_OK;
}

static tn_status insert_blanks(struct ctc *k, tn_ints targets, const int64_t *given, int64_t blank)
{
    int64_t longest = 0, from = 0;

    for (int64_t n = 0; n < k->n; n++)
        longest = k->target[n] > longest ? k->target[n] : longest;
    k->s = 2 * longest + 1;
    k->label = tn_malloc((size_t)(k->n * k->s + 1) * sizeof *k->label);
    k->skip = tn_malloc((size_t)(k->n * k->s + 1) * sizeof *k->skip);
    k->last = tn_malloc((size_t)(2 * k->n + 1) * sizeof *k->last);
    k->alone = tn_malloc((size_t)(k->n + 1) * sizeof *k->alone);
    if (k->label == NULL || k->skip == NULL || k->last == NULL || k->alone == NULL)
        return tn_error_last_code();
    for (int64_t n = 0; n < k->n; n++) {
        const int64_t *own = given + (targets.count == 2 ? n * targets.at[1] : from);
        int64_t *label = k->label + n * k->s, length = k->target[n];

        for (int64_t i = 0; i < k->s; i++) {
            label[i] = i % 2 == 1 && i / 2 < length ? own[i / 2] : blank;
            k->skip[n * k->s + i] = i % 2 == 1 && i >= 3 && label[i] != label[i - 2];
        }
        k->last[2 * n] = length > 0 ? 2 * length - 1 : 0;
        k->last[2 * n + 1] = 2 * length;
        k->alone[n] = length == 0;
        from += length;
    }
    return TN_OK;
}

static tn_tensor *placed(const void *values, tn_ints shape, tn_dtype dtype, tn_tensor *like)
{
    tn_tensor *to = tn_tensor_empty(shape, dtype, tn_tensor_device(like));
    int64_t count = tn__common_count(shape);

    if (to == NULL ||
        (count > 0 && tn_tensor_copy_in(to, values, (size_t)count * tn_dtype_size(dtype)) != TN_OK))
        return NULL;
    return to;
}

/* Shifts x by `by` positions: element s is x[n, s - by], or minus infinity if s < by. */
static tn_tensor *later(tn_tensor *x, int64_t by)
{
    if (x == NULL)
        return NULL;
    if (by >= tn_tensor_size(x, 1))
        return tn_tensor_full(tn_tensor_shape(x), -INFINITY, tn_tensor_dtype(x),
                              tn_tensor_device(x));
    return tn_pad(tn_narrow(x, 1, 0, tn_tensor_size(x, 1) - by), TN_SHAPE(by, 0), "constant",
                  -INFINITY);
}

/* Returns the logarithm of the sum of exponentials. If all parts are minus infinity (impossible),
 * the result is, too, and it has no gradient. */
static tn_tensor *either(tn_tensor *const *parts, int64_t count)
{
    int64_t first = 0;
    tn_tensor *all = tn_stack(parts, count, 0), *none;

    none = tn_amax(tn_detach(all), TN_INTS(first));
    if (none == NULL)
        return NULL;
    none = tn_eq(none, tn__scalar_number(none, -INFINITY));
    return tn_masked_fill(tn_logsumexp(tn_masked_fill(all, none, 0), ((tn_ints){ &first, 1 })),
                          none, -INFINITY);
}

/* Returns the logarithm of the probability of each target, [N]. */
static tn_tensor *recursion(const struct ctc *k, tn_tensor *x)
{
    tn_tensor *label = placed(k->label, TN_SHAPE(k->n, k->s), TN_I64, x);
    tn_tensor *barred = tn_logical_not(placed(k->skip, TN_SHAPE(k->n, k->s), TN_BOOL, x));
    tn_tensor *last = placed(k->last, TN_SHAPE(k->n, 2), TN_I64, x);
    tn_tensor *alone = placed(k->alone, TN_SHAPE(k->n), TN_BOOL, x);
    tn_tensor *length = placed(k->input, TN_SHAPE(k->n, 1), TN_I64, x);
    tn_tensor *step, *alpha, *ends, *parts[3];

    if (label == NULL || barred == NULL || last == NULL || alone == NULL || length == NULL)
        return NULL;
    step = tn_gather(x, tn_expand(label, TN_SHAPE(k->t, k->n, k->s)), 2);
    /* the recursion starts with only the first blank or the first element possible */
    alpha = tn_tensor_full(TN_SHAPE(k->n, k->s), -INFINITY, tn_tensor_dtype(x),
                           tn_tensor_device(x));
    if (alpha == NULL || step == NULL)
        return NULL;
    for (int64_t t = 0; t < k->t; t++) {
        tn_tensor *next, *now = tn_select(step, 0, t);

        if (t == 0) {
            int64_t begin = k->s < 2 ? k->s : 2;

            next = begin == k->s
                       ? now
                       : tn_cat((tn_tensor *[]){ tn_narrow(now, 1, 0, begin),
                                                 tn_narrow(alpha, 1, begin, k->s - begin) },
                                2, 1);
        } else {
            parts[0] = alpha;
            parts[1] = later(alpha, 1);
            parts[2] = tn_masked_fill(later(alpha, 2), barred, -INFINITY);
            if (parts[1] == NULL || parts[2] == NULL)
                return NULL;
            next = tn_add(either(parts, 3), now);
        }
        alpha = tn_where(tn_gt(length, tn__scalar_number(length, (double)t)), next, alpha);
        if (alpha == NULL)
            return NULL;
    }
    ends = tn_gather(alpha, last, 1);
    parts[0] = tn_masked_fill(tn_select(ends, 1, 0), alone, -INFINITY);
    parts[1] = tn_select(ends, 1, 1);
    if (parts[0] == NULL || parts[1] == NULL)
        return NULL;
    /* for an input of length 0 alpha stays minus infinity (impossible); loss_of() then sets the
     * loss of an empty target to 0 */
    return either(parts, 2);
}

/* Adds the term by which PyTorch's gradient of log_probs differs from the true gradient: PyTorch
 * includes the step from log-probabilities to scores even if no log_softmax computed them. The term
 * is the sum of the probabilities minus the same sum detached, so its value is 0 and only its
 * gradient counts. If the target is impossible (y is infinite) and `zeros` is false, the gradient
 * must be NaN as in PyTorch: y * one / one then adds infinity minus infinity to the gradient; for
 * other y it changes nothing. */
static tn_tensor *with_scores(const struct ctc *k, tn_tensor *x, tn_tensor *y, bool zeros)
{
    int64_t dims[] = { 0, 2 };
    bool *inside;
    tn_tensor *sum, *off, *one;

    if (y == NULL || !tn_tensor_requires_grad(x) || k->t * k->n == 0)
        return y;
    inside = tn_malloc((size_t)(k->t * k->n) * sizeof *inside);
    if (inside == NULL)
        return NULL;
    for (int64_t t = 0; t < k->t; t++)
        for (int64_t n = 0; n < k->n; n++)
            inside[t * k->n + n] = t < k->input[n];
    off = placed(inside, TN_SHAPE(k->t, k->n, 1), TN_BOOL, x);
    tn_free(inside);
    sum = tn_sum(tn_masked_fill(tn_exp(x), tn_logical_not(off), 0), ((tn_ints){ dims, 2 }));
    off = tn_sub(sum, tn_detach(sum));
    off = tn_masked_fill(off, tn_isnan(off), 0);
    one = tn_add_scalar(off, 1);
    if (!zeros)
        y = tn_div(tn_mul(y, one), one);
    return tn_add(y, off);
}

static tn_tensor *loss_of(const struct ctc *k, const tn_ctc_loss_options *o, tn_tensor *x,
                          bool batched)
{
    tn_tensor *y = with_scores(k, x, tn_neg(recursion(k, x)), o->zero_infinity), *share;
    double *per;

    for (int64_t n = 0; n < k->n && y != NULL; n++)
        if (k->input[n] == 0 && k->target[n] == 0)
            y = tn_masked_fill(y, tn_eq(tn_arange(y, 0, k->n), tn__scalar_number(y, n)), 0);
    if (o->zero_infinity)
        y = tn_masked_fill(y, tn_isinf(y), 0);
    if (y == NULL || is(o->reduction, "sum"))
        return tn_sum(y);
    if (is(o->reduction, "none"))
        return batched ? y : tn_select(y, 0, 0);
    per = tn_malloc((size_t)(k->n + 1) * sizeof *per);
    if (per == NULL)
        return NULL;
    for (int64_t n = 0; n < k->n; n++)
        per[n] = k->target[n] > 1 ? (double)k->target[n] : 1;
    share = tn_tensor_dtype(y) == TN_F64 ? placed(per, TN_SHAPE(k->n), TN_F64, y) : NULL;
    if (tn_tensor_dtype(y) != TN_F64) {
        for (int64_t n = 0; n < k->n; n++)
            ((float *)(void *)per)[n] = (float)(k->target[n] > 1 ? k->target[n] : 1);
        share = tn_cast(placed(per, TN_SHAPE(k->n), TN_F32, y), tn_tensor_dtype(y));
    }
    tn_free(per);
    return tn_mean(tn_div(y, share));
}

static tn_status ctc_loss_decompose(const tn_decompose *call)
{
    const tn_ctc_loss_options *o = call->options;
    bool batched = tn_tensor_ndim(call->in[0]) == 3;
    tn_tensor *x = batched ? call->in[0] : tn_unsqueeze(call->in[0], 1), *y = NULL;
    tn_ints targets = tn_tensor_shape(call->in[1]);
    struct ctc k = { 0 };
    int64_t *given;
    if (x == NULL)
        return tn_error_last_code();
    k.t = tn_tensor_size(x, 0);
    k.n = tn_tensor_size(x, 1);
    k.c = tn_tensor_size(x, 2);
    given = read(call->in[1]);
    k.input = given == NULL ? NULL : read(call->in[2]);
    k.target = k.input == NULL ? NULL : read(call->in[3]);
    if (k.target != NULL && check_targets(&k, targets, given, o->blank) == TN_OK &&
        insert_blanks(&k, targets, given, o->blank) == TN_OK)
        y = loss_of(&k, o, x, batched);
    tn_free(given);
    tn_free(k.input);
    tn_free(k.target);
    tn_free(k.label);
    tn_free(k.skip);
    tn_free(k.last);
    tn_free(k.alone);
    return tn__common_given(call->out, y);
}

TN__OP(ctc_loss, .infer = ctc_loss_infer, .decompose = ctc_loss_decompose);
