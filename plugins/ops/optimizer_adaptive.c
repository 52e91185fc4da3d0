/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers for many parameters at once: NAdam, RAdam, Adamax, Adagrad, Adadelta,
 * RMSprop, Rprop, ASGD, Lion. sdk/operators/optimizer.ops has the formulas. */
#include "optimizer.h"

/* The inputs: numbers as tensors, then the list of tensors. STEP and LR are those of the operators
 * that have both, and STEP_LIST is their list. */
enum {
    STEP,
    LR,
    STEP_LIST,
    NADAM_MU = 2,
    NADAM_LIST,
    ONLY_LR = 0,
    RATE_LIST,
    ETA = 0,
    MU,
    ASGD_LIST
};

/* Values that all parameters of a call use, and the options of the operator. */
struct step {
    const void *options;
    struct tn__factor shrink; /* 1 - lr * weight_decay */
    struct tn__factor root;   /* 1 / sqrt(1 - beta2^step) */
    struct tn__factor rate;   /* of the step, negative */
    struct tn__factor other;  /* another rate or weight */
    tn_tensor *rectified;     /* RAdam: whether `other` is used; or TN_NONE */
    bool use_other;           /* RAdam: the same, if `rectified` is TN_NONE */
};

/* ---- inference ------------------------------------------------------------------------------- */

static tn_status check_both(tn_infer *infer, int64_t step, double lr)
{
    tn_status status = tn__optimizer_check_step(infer->in[STEP], step);

    return status == TN_OK ? tn__optimizer_check_rate(infer->in[LR], lr) : status;
}

/* Checks numbers that are given only as tensors. */
static tn_status check_tensors(const tn_infer *infer, const char *const *names, int64_t from,
                               int64_t count)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        char text[TN__TEXT];
        const tn_view *view = infer->in[from + i];

        if (view->ndim != 0)
            status = tn_fail(TN_ERR_VALUE, "%s: wrong shape, got %s; expected no dimensions",
                             names[i], tn__common_text(text, tn__common_shape(view)));
    }
    return status;
}

static tn_status nadam_step_infer(tn_infer *infer)
{
    static const char *const names[] = { "mu_product" };
    const tn_nadam_step_options *o = infer->options;
    tn_status status = check_both(infer, o->step, o->lr);

    if (status == TN_OK)
        status = check_tensors(infer, names, NADAM_MU, 1);
    return status == TN_OK
               ? tn__optimizer_check_groups(infer, NADAM_LIST, 4, "parameter, gradient, m, v")
               : status;
}

static tn_status radam_step_infer(tn_infer *infer)
{
    const tn_radam_step_options *o = infer->options;
    tn_status status = check_both(infer, o->step, o->lr);

    return status == TN_OK
               ? tn__optimizer_check_groups(infer, STEP_LIST, 4, "parameter, gradient, m, v")
               : status;
}

static tn_status adamax_step_infer(tn_infer *infer)
{
    const tn_adamax_step_options *o = infer->options;
    tn_status status = check_both(infer, o->step, o->lr);

    return status == TN_OK
               ? tn__optimizer_check_groups(infer, STEP_LIST, 4, "parameter, gradient, m, u")
               : status;
}

static tn_status adagrad_step_infer(tn_infer *infer)
{
    const tn_adagrad_step_options *o = infer->options;
    tn_status status = check_both(infer, o->step, o->lr);

    return status == TN_OK
               ? tn__optimizer_check_groups(infer, STEP_LIST, 3, "parameter, gradient, s")
               : status;
}

static tn_status adadelta_step_infer(tn_infer *infer)
{
    const tn_adadelta_step_options *o = infer->options;
    tn_status status = tn__optimizer_check_rate(infer->in[ONLY_LR], o->lr);

    return status == TN_OK
               ? tn__optimizer_check_groups(infer, RATE_LIST, 4, "parameter, gradient, v, a")
               : status;
}

static int64_t rmsprop_group(const tn_rmsprop_step_options *o)
{
    return 3 + (o->momentum != 0) + o->centered;
}

static tn_status rmsprop_step_infer(tn_infer *infer)
{
    static const char *const words[] = { "parameter, gradient, v", "parameter, gradient, v, b",
                                         "parameter, gradient, v, a",
                                         "parameter, gradient, v, b, a" };
    const tn_rmsprop_step_options *o = infer->options;
    tn_status status = tn__optimizer_check_rate(infer->in[ONLY_LR], o->lr);

    return status == TN_OK ? tn__optimizer_check_groups(infer, RATE_LIST, rmsprop_group(o),
                                                        words[(o->momentum != 0) + 2 * o->centered])
                           : status;
}

static tn_status rprop_step_infer(tn_infer *infer)
{
    return tn__optimizer_check_groups(infer, 0, 4, "parameter, gradient, b, s");
}

static tn_status asgd_step_infer(tn_infer *infer)
{
    static const char *const names[] = { "eta", "mu" };
    tn_status status = check_tensors(infer, names, ETA, 2);

    return status == TN_OK
               ? tn__optimizer_check_groups(infer, ASGD_LIST, 3, "parameter, gradient, a")
               : status;
}

static tn_status lion_step_infer(tn_infer *infer)
{
    const tn_lion_step_options *o = infer->options;
    tn_status status = tn__optimizer_check_rate(infer->in[ONLY_LR], o->lr);

    return status == TN_OK
               ? tn__optimizer_check_groups(infer, RATE_LIST, 3, "parameter, gradient, m")
               : status;
}

/* ---- relatives of Adam ----------------------------------------------------------------------- */

struct both {
    struct tn__factor step, lr;
};

/* Returns the step and the learning rate of an operator that has both. */
static struct both both_of(const tn_decompose *call, int64_t list, int64_t step, double lr)
{
    tn_dtype dtype = tn__optimizer_dtype(call->in[STEP], call->in[LR], call->in[list]);

    return (struct both){ tn__optimizer_given(call->in[STEP], (double)step, dtype),
                          tn__optimizer_given(call->in[LR], lr, dtype) };
}

static struct tn__factor shrink_by(struct tn__factor lr, double decay)
{
    return tn__optimizer_plus(tn__optimizer_scaled(lr, -decay), 1);
}

/* beta1 * (1 - 0.96^(step * decay) / 2) */
static struct tn__factor momentum_at(double beta1, double decay, struct tn__factor step)
{
    struct tn__factor power = tn__optimizer_power_less_one(0.96, tn__optimizer_scaled(step, decay));

    return tn__optimizer_plus(tn__optimizer_scaled(power, -0.5 * beta1), 0.5 * beta1);
}

static tn_tensor *nadam_one(tn_tensor *const *t, const void *shared)
{
    const struct step *s = shared;
    const tn_nadam_step_options *o = s->options;
    tn_tensor *g, *m, *v, *denominator;

    if (o->decoupled && o->weight_decay != 0 && tn__optimizer_scale(t[0], s->shrink) == NULL)
        return NULL;
    g = tn__optimizer_gradient(t[0], t[1], o->decoupled ? 0 : o->weight_decay, o->maximize);
    m = tn__optimizer_follow(t[2], g, 1 - o->beta1);
    v = tn__optimizer_squares(t[3], g, o->beta2);
    denominator = tn_add_scalar_(tn__optimizer_scale(tn_sqrt(v), s->root), o->eps);
    if (tn__optimizer_add_scaled(t[0], divide(g, denominator), s->rate) == NULL)
        return NULL;
    return tn__optimizer_add_scaled(t[0], divide(m, denominator), s->other);
}

static tn_status nadam_step_decompose(const tn_decompose *call)
{
    const tn_nadam_step_options *o = call->options;
    tn_tensor *const *in = call->in;
    struct both n = both_of(call, NADAM_LIST, o->step, o->lr);
    tn_dtype dtype = tn__optimizer_dtype(in[STEP], in[LR], in[NADAM_LIST]);
    struct tn__factor product = tn__optimizer_given(in[NADAM_MU], 0, dtype);
    struct tn__factor mu = momentum_at(o->beta1, o->momentum_decay, n.step);
    struct tn__factor next = momentum_at(o->beta1, o->momentum_decay,
                                         tn__optimizer_plus(n.step, 1));
    struct tn__factor two = tn__optimizer_power_less_one(o->beta2, n.step);
    /* lr and 1 - mu are not negative, and the divisors are not positive */
    const struct step s = {
        .options = o,
        .shrink = shrink_by(n.lr, o->weight_decay),
        .root = tn__optimizer_over(tn__optimizer_value(1),
                                   tn__optimizer_root(tn__optimizer_scaled(two, -1))),
        .rate = tn__optimizer_over(
            tn__optimizer_times(n.lr, tn__optimizer_plus(tn__optimizer_scaled(mu, -1), 1)),
            tn__optimizer_plus(product, -1)),
        .other = tn__optimizer_over(tn__optimizer_times(n.lr, next),
                                    tn__optimizer_plus(tn__optimizer_times(product, next), -1)),
    };

    return tn__optimizer_each(in + NADAM_LIST, call->n_in - NADAM_LIST, 4, nadam_one, &s);
}

static tn_tensor *radam_one(tn_tensor *const *t, const void *shared)
{
    const struct step *s = shared;
    const tn_radam_step_options *o = s->options;
    tn_tensor *g, *m, *v, *plain, *other;

    if (o->decoupled && o->weight_decay != 0 && tn__optimizer_scale(t[0], s->shrink) == NULL)
        return NULL;
    g = tn__optimizer_gradient(t[0], t[1], o->decoupled ? 0 : o->weight_decay, o->maximize);
    m = tn__optimizer_follow(t[2], g, 1 - o->beta1);
    v = tn__optimizer_squares(t[3], g, o->beta2);
    if (m == NULL || v == NULL)
        return NULL;
    if (s->rectified == TN_NONE && !s->use_other)
        return tn__optimizer_add_scaled(t[0], m, s->rate);
    other = divide(m, tn_add_scalar_(tn_sqrt(v), o->eps));
    if (s->rectified == TN_NONE)
        return tn__optimizer_add_scaled(t[0], other, s->other);
    plain = tn__optimizer_scale(tn_copy(m), s->rate);
    other = tn__optimizer_scale(other, s->other);
    return tn_add_(t[0], tn_where(s->rectified, other, plain));
}

static tn_status radam_step_decompose(const tn_decompose *call)
{
    const tn_radam_step_options *o = call->options;
    struct both n = both_of(call, STEP_LIST, o->step, o->lr);
    struct tn__factor two = tn__optimizer_power_less_one(o->beta2, n.step); /* beta2^step - 1 */
    double most = 2 / (1 - o->beta2) - 1;
    struct tn__factor rho = tn__optimizer_plus(
        tn__optimizer_over(
            tn__optimizer_scaled(tn__optimizer_times(n.step, tn__optimizer_plus(two, 1)), 2), two),
        most);
    struct tn__factor square = tn__optimizer_over(
        tn__optimizer_times(tn__optimizer_plus(rho, -4), tn__optimizer_plus(rho, -2)), rho);
    struct step s = {
        .options = o,
        .shrink = shrink_by(n.lr, o->weight_decay),
        .rate = tn__optimizer_over(n.lr, tn__optimizer_power_less_one(o->beta1, n.step)),
        .rectified = TN_NONE,
    };

    square = tn__optimizer_times(tn__optimizer_scaled(square, most / ((most - 4) * (most - 2))),
                                 tn__optimizer_scaled(two, -1));
    s.other = tn__optimizer_times(s.rate, tn__optimizer_root(square));
    s.use_other = rho.value > 5;
    if (rho.tensor != TN_NONE) {
        s.rectified = rho.tensor == NULL ? NULL : is_above(rho.tensor, 5);
        if (s.rectified == NULL)
            return tn_error_last_code();
    }
    return tn__optimizer_each(call->in + STEP_LIST, call->n_in - STEP_LIST, 4, radam_one, &s);
}

static tn_tensor *adamax_one(tn_tensor *const *t, const void *shared)
{
    const struct step *s = shared;
    const tn_adamax_step_options *o = s->options;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], o->weight_decay, o->maximize);
    tn_tensor *m = tn__optimizer_follow(t[2], g, 1 - o->beta1);
    tn_tensor *u = tn_maximum_(tn_mul_scalar_(t[3], o->beta2), add_number(tn_abs(g), o->eps));

    return tn__optimizer_add_scaled(t[0], divide(m, u), s->rate);
}

static tn_status adamax_step_decompose(const tn_decompose *call)
{
    const tn_adamax_step_options *o = call->options;
    struct both n = both_of(call, STEP_LIST, o->step, o->lr);
    const struct step s = {
        .options = o,
        .rate = tn__optimizer_over(n.lr, tn__optimizer_power_less_one(o->beta1, n.step)),
    };

    return tn__optimizer_each(call->in + STEP_LIST, call->n_in - STEP_LIST, 4, adamax_one, &s);
}

/* ---- squares of gradients -------------------------------------------------------------------- */

static tn_tensor *adagrad_one(tn_tensor *const *t, const void *shared)
{
    const struct step *s = shared;
    const tn_adagrad_step_options *o = s->options;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], o->weight_decay, o->maximize);
    tn_tensor *sum = tn_add_(t[2], tn_mul(g, g));

    return tn__optimizer_add_scaled(t[0], divide(g, tn_add_scalar_(tn_sqrt(sum), o->eps)), s->rate);
}

static tn_status adagrad_step_decompose(const tn_decompose *call)
{
    const tn_adagrad_step_options *o = call->options;
    struct both n = both_of(call, STEP_LIST, o->step, o->lr);
    struct tn__factor by = tn__optimizer_plus(
        tn__optimizer_scaled(tn__optimizer_plus(n.step, -1), o->lr_decay), 1);
    const struct step s = { .options = o,
                            .rate = tn__optimizer_over(tn__optimizer_scaled(n.lr, -1), by) };

    return tn__optimizer_each(call->in + STEP_LIST, call->n_in - STEP_LIST, 3, adagrad_one, &s);
}

/* Returns -lr of an operator that has no step. */
static struct tn__factor minus_lr(const tn_decompose *call, double lr)
{
    tn_tensor *tensor = call->in[ONLY_LR];
    tn_dtype dtype = tn__optimizer_dtype(tensor, TN_NONE, call->in[RATE_LIST]);

    return tn__optimizer_scaled(tn__optimizer_given(tensor, lr, dtype), -1);
}

static tn_tensor *adadelta_one(tn_tensor *const *t, const void *shared)
{
    const struct step *s = shared;
    const tn_adadelta_step_options *o = s->options;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], o->weight_decay, o->maximize);
    tn_tensor *v = tn__optimizer_squares(t[2], g, o->rho);
    tn_tensor *low = tn_sqrt(add_number(v, o->eps)), *high = tn_sqrt(add_number(t[3], o->eps));
    tn_tensor *delta = tn_mul(divide(high, low), g);

    if (tn__optimizer_squares(t[3], delta, o->rho) == NULL)
        return NULL;
    return tn__optimizer_add_scaled(t[0], delta, s->rate);
}

static tn_status adadelta_step_decompose(const tn_decompose *call)
{
    const tn_adadelta_step_options *o = call->options;
    const struct step s = { .options = o, .rate = minus_lr(call, o->lr) };

    return tn__optimizer_each(call->in + RATE_LIST, call->n_in - RATE_LIST, 4, adadelta_one, &s);
}

static tn_tensor *rmsprop_one(tn_tensor *const *t, const void *shared)
{
    const struct step *s = shared;
    const tn_rmsprop_step_options *o = s->options;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], o->weight_decay, o->maximize);
    tn_tensor *v = tn__optimizer_squares(t[2], g, o->alpha), *step;

    if (o->centered) {
        tn_tensor *average = tn__optimizer_follow(t[o->momentum != 0 ? 4 : 3], g, 1 - o->alpha);

        v = minus(v, tn_mul(average, average));
    }
    step = divide(g, tn_add_scalar_(tn_sqrt(v), o->eps));
    if (o->momentum != 0)
        step = tn_add_(tn_mul_scalar_(t[3], o->momentum), step);
    return tn__optimizer_add_scaled(t[0], step, s->rate);
}

static tn_status rmsprop_step_decompose(const tn_decompose *call)
{
    const tn_rmsprop_step_options *o = call->options;
    const struct step s = { .options = o, .rate = minus_lr(call, o->lr) };

    return tn__optimizer_each(call->in + RATE_LIST, call->n_in - RATE_LIST, rmsprop_group(o),
                              rmsprop_one, &s);
}

/* ---- signs, averages ------------------------------------------------------------------------- */

static tn_tensor *rprop_one(tn_tensor *const *t, const void *options)
{
    const tn_rprop_step_options *o = options;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], 0, o->maximize), *product = tn_mul(g, t[2]);
    tn_tensor *turned, *by, *size;

    if (product == NULL)
        return NULL;
    turned = tn_lt(product, number(product, 0));
    by = tn_where(is_above(product, 0), number(product, o->eta_plus),
                  tn_where(turned, number(product, o->eta_minus), number(product, 1)));
    size = tn_copy_(t[3], clamped(tn_mul(t[3], by), o->step_min, o->step_max));
    g = tn_copy_(t[2], zero_where(turned, g));
    return tn__optimizer_add_scaled(t[0], tn_mul(tn_sign(g), size), tn__optimizer_value(-1));
}

static tn_status rprop_step_decompose(const tn_decompose *call)
{
    return tn__optimizer_each(call->in, call->n_in, 4, rprop_one, call->options);
}

static tn_tensor *asgd_one(tn_tensor *const *t, const void *shared)
{
    const struct step *s = shared;
    const tn_asgd_step_options *o = s->options;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], o->weight_decay, o->maximize);

    if (tn__optimizer_scale(t[0], s->shrink) == NULL ||
        tn__optimizer_add_scaled(t[0], g, s->rate) == NULL)
        return NULL;
    return tn__optimizer_add_scaled(t[2], minus(t[0], t[2]), s->other);
}

static tn_status asgd_step_decompose(const tn_decompose *call)
{
    const tn_asgd_step_options *o = call->options;
    tn_tensor *const *in = call->in;
    tn_dtype dtype = tn__optimizer_dtype(in[ETA], in[MU], in[ASGD_LIST]);
    const struct tn__factor eta = tn__optimizer_given(in[ETA], 0, dtype);
    const struct step s = { .options = o,
                            .shrink = shrink_by(eta, o->lambd),
                            .rate = tn__optimizer_scaled(eta, -1),
                            .other = tn__optimizer_given(in[MU], 0, dtype) };

    return tn__optimizer_each(in + ASGD_LIST, call->n_in - ASGD_LIST, 3, asgd_one, &s);
}

static tn_tensor *lion_one(tn_tensor *const *t, const void *shared)
{
    const struct step *s = shared;
    const tn_lion_step_options *o = s->options;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], 0, o->maximize);
    tn_tensor *sign = tn_sign(plus_times(times(t[2], o->beta1), 1 - o->beta1, g));

    if (o->weight_decay != 0 && tn__optimizer_scale(t[0], s->shrink) == NULL)
        return NULL;
    if (tn__optimizer_follow(t[2], g, 1 - o->beta2) == NULL)
        return NULL;
    return tn__optimizer_add_scaled(t[0], sign, s->rate);
}

static tn_status lion_step_decompose(const tn_decompose *call)
{
    const tn_lion_step_options *o = call->options;
    struct tn__factor rate = minus_lr(call, o->lr);
    const struct step s = { .options = o,
                            .shrink = tn__optimizer_plus(
                                tn__optimizer_scaled(rate, o->weight_decay), 1),
                            .rate = rate };

    return tn__optimizer_each(call->in + RATE_LIST, call->n_in - RATE_LIST, 3, lion_one, &s);
}

TN__OP(nadam_step, .infer = nadam_step_infer, .decompose = nadam_step_decompose);
TN__OP(radam_step, .infer = radam_step_infer, .decompose = radam_step_decompose);
TN__OP(adamax_step, .infer = adamax_step_infer, .decompose = adamax_step_decompose);
TN__OP(adagrad_step, .infer = adagrad_step_infer, .decompose = adagrad_step_decompose);
TN__OP(adadelta_step, .infer = adadelta_step_infer, .decompose = adadelta_step_decompose);
TN__OP(rmsprop_step, .infer = rmsprop_step_infer, .decompose = rmsprop_step_decompose);
TN__OP(rprop_step, .infer = rprop_step_infer, .decompose = rprop_step_decompose);
TN__OP(asgd_step, .infer = asgd_step_infer, .decompose = asgd_step_decompose);
TN__OP(lion_step, .infer = lion_step_infer, .decompose = lion_step_decompose);
