/* SPDX-License-Identifier: MIT
 *
 * SGD and Adam for many parameters at once, and the norm of all gradients; what the steps of all
 * optimizers use: checks of the tensors, numbers, and decompositions, which handle one parameter
 * after the other. */
#include "optimizer.h"

/* ---- checks of the inputs -------------------------------------------------------------------- */

/* The inputs of each operator: optional numbers (lr, step) as tensors, then the list of tensors. */
enum { SGD_LR, SGD_LIST, ADAM_STEP = 0, ADAM_LR, ADAM_LIST };

static int64_t sgd_group(const tn_sgd_step_options *o)
{
    return o->momentum != 0 ? 3 : 2;
}

static int64_t adam_group(const tn_adam_step_options *o)
{
    return o->amsgrad ? 5 : 4;
}

/* Does not check the value of a tensor, which can change without a new call, for example when a
 * graph is replayed. */
tn_status tn__optimizer_check_number(const tn_view *tensor, bool option, const char *name)
{
    char text[TN__TEXT];

    if (tensor != NULL && option)
        return tn_fail(TN_ERR_VALUE, "%s and %s_tensor: too many, got both; expected one of them",
                       name, name);
    if (tensor == NULL && !option)
        return tn_fail(TN_ERR_VALUE, "%s: missing; expected this option or the input %s_tensor",
                       name, name);
    if (tensor != NULL && tensor->ndim != 0)
        return tn_fail(TN_ERR_VALUE, "%s_tensor: wrong shape, got %s; expected no dimensions", name,
                       tn__common_text(text, tn__common_shape(tensor)));
    return TN_OK;
}

tn_status tn__optimizer_check_step(const tn_view *tensor, int64_t step)
{
    tn_status status = tn__optimizer_check_number(tensor, step != INT64_MIN, "step");

    if (status == TN_OK && tensor == NULL && step < 1)
        return tn_fail(TN_ERR_VALUE, "step: out of range, got %lld; expected 1 or more",
                       (long long)step);
    return status;
}

tn_status tn__optimizer_check_rate(const tn_view *tensor, double lr)
{
    return tn__optimizer_check_number(tensor, tn__given_number(lr), "lr");
}

tn_status tn__optimizer_check_groups(tn_infer *infer, int64_t first_input, int64_t size,
                                     const char *words)
{
    const tn_view *const *list = infer->in + first_input;
    int64_t n = infer->n_in - first_input;

    if (TN_HAS(infer, tn_infer, only_read)) {
        infer->group = size;
        infer->only_read = 1 << 1; /* bit 1: the gradient */
    }
    if (n % size != 0)
        return tn_fail(TN_ERR_VALUE,
                       "inputs: wrong number of tensors, got %lld; expected a multiple of %lld: %s",
                       (long long)n, (long long)size, words);
    for (int64_t i = 0; i < n; i++) {
        const tn_view *first = list[i - i % size], *view = list[i];
        char a[TN__TEXT], b[TN__TEXT];

        if (tn_view_dtype(view) != tn_view_dtype(first))
            return tn_fail(
                TN_ERR_TYPE,
                "tensor %lld: wrong dtype, got %s; expected the dtype of its parameter %lld, %s",
                (long long)i, tn_dtype_name(tn_view_dtype(view)), (long long)(i / size),
                tn_dtype_name(tn_view_dtype(first)));
        if (view->ndim != first->ndim ||
            memcmp(view->shape, first->shape, (size_t)view->ndim * sizeof *view->shape) != 0)
            return tn_fail(
                TN_ERR_VALUE,
                "tensor %lld: wrong shape, got %s; expected the shape of its parameter %lld, %s",
                (long long)i, tn__common_text(a, tn__common_shape(view)), (long long)(i / size),
                tn__common_text(b, tn__common_shape(first)));
    }
    return TN_OK;
}

static tn_status sgd_step_infer(tn_infer *infer)
{
    const tn_sgd_step_options *o = infer->options;
    int64_t size = sgd_group(o);
    tn_status status = tn__optimizer_check_rate(infer->in[SGD_LR], o->lr);

    if (status != TN_OK)
        return status;
    return tn__optimizer_check_groups(
        infer, SGD_LIST, size, size == 3 ? "parameter, gradient, buffer" : "parameter, gradient");
}

static tn_status adam_step_infer(tn_infer *infer)
{
    const tn_adam_step_options *o = infer->options;
    tn_status status = tn__optimizer_check_step(infer->in[ADAM_STEP], o->step);

    if (status == TN_OK)
        status = tn__optimizer_check_rate(infer->in[ADAM_LR], o->lr);
    if (status != TN_OK)
        return status;
    return tn__optimizer_check_groups(infer, ADAM_LIST, adam_group(o),
                                      o->amsgrad ? "parameter, gradient, m, v, w"
                                                 : "parameter, gradient, m, v");
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Returns float64 if step, lr or the parameter has this dtype, which shows that the device supports
 * it; else float32. */
tn_dtype tn__optimizer_dtype(tn_tensor *a, tn_tensor *b, tn_tensor *parameter)
{
    tn_tensor *const all[] = { a, b, parameter };

    for (int i = 0; i < 3; i++)
        if (all[i] != TN_NONE && tn_tensor_dtype(all[i]) == TN_F64)
            return TN_F64;
    return TN_F32;
}

static struct tn__factor of_tensor(tn_tensor *tensor)
{
    return (struct tn__factor){ 0, tensor };
}

struct tn__factor tn__optimizer_given(tn_tensor *tensor, double value, tn_dtype dtype)
{
    return tensor == TN_NONE ? tn__optimizer_value(value) : of_tensor(tn_cast(tensor, dtype));
}

struct tn__factor tn__optimizer_scaled(struct tn__factor a, double by)
{
    return a.tensor == TN_NONE ? tn__optimizer_value(a.value * by)
                               : of_tensor(tn_mul_scalar(a.tensor, by));
}

struct tn__factor tn__optimizer_times(struct tn__factor a, struct tn__factor b)
{
    if (a.tensor == TN_NONE)
        return tn__optimizer_scaled(b, a.value);
    if (b.tensor == TN_NONE)
        return tn__optimizer_scaled(a, b.value);
    return of_tensor(tn_mul(a.tensor, b.tensor));
}

struct tn__factor tn__optimizer_plus(struct tn__factor a, double b)
{
    return a.tensor == TN_NONE ? tn__optimizer_value(a.value + b)
                               : of_tensor(tn_add_scalar(a.tensor, b));
}

struct tn__factor tn__optimizer_over(struct tn__factor a, struct tn__factor b)
{
    if (b.tensor != TN_NONE)
        return a.tensor == TN_NONE ? of_tensor(tn_mul_scalar(tn_reciprocal(b.tensor), a.value))
                                   : of_tensor(tn_div(a.tensor, b.tensor));
    if (a.tensor != TN_NONE)
        return of_tensor(tn_mul_scalar(a.tensor, 1 / b.value));
    return tn__optimizer_value(a.value / b.value);
}

struct tn__factor tn__optimizer_root(struct tn__factor a)
{
    return a.tensor == TN_NONE ? tn__optimizer_value(sqrt(a.value)) : of_tensor(tn_sqrt(a.tensor));
}

struct tn__factor tn__optimizer_power_less_one(double base, struct tn__factor exponent)
{
    tn_tensor *e = exponent.tensor;

    if (e == TN_NONE)
        return tn__optimizer_value(pow(base, exponent.value) - 1);
    if (base > 0)
        return of_tensor(tn_expm1(tn_mul_scalar(e, log(base))));
    return of_tensor(e == NULL ? NULL : tn_add_scalar(tn_pow(number(e, base), e), -1));
}

/* ---- formulas -------------------------------------------------------------------------------- */

/* x times a 0-d tensor, computed in x's dtype, but in float32 for float16 and bfloat16. Returns
 * NULL if x is NULL. */
static tn_tensor *times_tensor(tn_tensor *x, tn_tensor *by)
{
    if (x == NULL)
        return NULL;
    x = tn__common_narrow(x) ? tn_cast(x, TN_F32) : x;
    return x == NULL ? NULL : tn_mul(x, tn_cast(by, tn_tensor_dtype(x)));
}

tn_tensor *tn__optimizer_scale(tn_tensor *x, struct tn__factor by)
{
    if (by.tensor == TN_NONE)
        return tn_mul_scalar_(x, by.value);
    return x == NULL || by.tensor == NULL ? NULL : tn_copy_(x, times_tensor(x, by.tensor));
}

tn_tensor *tn__optimizer_add_scaled(tn_tensor *x, tn_tensor *y, struct tn__factor by)
{
    tn_add_options o = TN_ADD_OPTIONS;

    if (by.tensor == TN_NONE) {
        o.alpha = TN_SCALAR(by.value);
        return tn_add_(x, y, o.alpha);
    }
    if (by.tensor == NULL)
        return NULL;
    if (x == NULL || !tn__common_narrow(x))
        return tn_add_(x, times_tensor(y, by.tensor));
    return tn_copy_(x, tn_add(tn_cast(x, TN_F32), times_tensor(y, by.tensor)));
}

tn_tensor *tn__optimizer_follow(tn_tensor *x, tn_tensor *y, double by)
{
    return tn__optimizer_add_scaled(x, minus(y, x), tn__optimizer_value(by));
}

tn_tensor *tn__optimizer_squares(tn_tensor *v, tn_tensor *g, double keep)
{
    return tn__optimizer_add_scaled(tn_mul_scalar_(v, keep), tn_mul(g, g),
                                    tn__optimizer_value(1 - keep));
}

tn_tensor *tn__optimizer_gradient(tn_tensor *p, tn_tensor *gradient, double decay, bool maximize)
{
    if (maximize)
        gradient = tn_neg(gradient);
    return decay == 0 ? gradient : plus_times(gradient, decay, p);
}

tn_status tn__optimizer_each(tn_tensor *const *in, int64_t n_in, int64_t size,
                             tn_tensor *(*one)(tn_tensor *const *, const void *),
                             const void *shared)
{
    for (int64_t i = 0; i < n_in; i += size) {
        uint64_t scope = tn_scope_begin();
        bool good = one(in + i, shared) != NULL;

        tn_scope_end(scope);
        if (!good)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* ---- SGD and Adam ---------------------------------------------------------------------------- */

/* Values that all parameters of a call use. */
struct sgd {
    const tn_sgd_step_options *options;
    struct tn__factor rate; /* -lr */
};

static tn_tensor *sgd_one(tn_tensor *const *t, const void *shared)
{
    const struct sgd *sgd = shared;
    const tn_sgd_step_options *o = sgd->options;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], o->weight_decay, o->maximize);
    if (o->momentum != 0 && g != NULL) {
        tn_tensor *buffer = o->first
                                ? tn_copy_(t[2], g)
                                : tn__optimizer_add_scaled(tn_mul_scalar_(t[2], o->momentum), g,
                                                           tn__optimizer_value(1 - o->dampening));
        g = o->nesterov ? plus_times(g, o->momentum, buffer) : buffer;
    }
    return tn__optimizer_add_scaled(t[0], g, sgd->rate);
}

static tn_status sgd_step_decompose(const tn_decompose *call)
{
    const tn_sgd_step_options *o = call->options;
    struct sgd sgd = { o, { -o->lr, TN_NONE } };
    tn_tensor *lr = call->in[SGD_LR];

    if (lr != TN_NONE) {
        sgd.rate.tensor = tn_neg(lr);
        if (sgd.rate.tensor == NULL)
            return tn_error_last_code();
    }
    return tn__optimizer_each(call->in + SGD_LIST, call->n_in - SGD_LIST, sgd_group(o), sgd_one,
                              &sgd);
}

struct adam {
    const tn_adam_step_options *options;
    struct tn__factor shrink; /* 1 - lr * weight_decay */
    struct tn__factor root;   /* 1 / sqrt(1 - beta2^step) */
    struct tn__factor rate;   /* -lr / (1 - beta1^step) */
};

static tn_tensor *adam_one(tn_tensor *const *t, const void *shared)
{
    const struct adam *adam = shared;
    const tn_adam_step_options *o = adam->options;
    if (o->decoupled && o->weight_decay != 0 && tn__optimizer_scale(t[0], adam->shrink) == NULL)
        return NULL;
    tn_tensor *g = tn__optimizer_gradient(t[0], t[1], o->decoupled ? 0 : o->weight_decay,
                                          o->maximize);
    tn_tensor *m = tn__optimizer_follow(t[2], g, 1 - o->beta1);
    tn_tensor *v = tn__optimizer_squares(t[3], g, o->beta2);
    if (o->amsgrad && v != NULL)
        v = tn_maximum_(t[4], v);
    tn_tensor *root = tn__optimizer_scale(tn_sqrt(v), adam->root);
    return tn__optimizer_add_scaled(t[0], divide(m, tn_add_scalar_(root, o->eps)), adam->rate);
}

static tn_status adam_step_decompose(const tn_decompose *call)
{
    const tn_adam_step_options *o = call->options;
    tn_tensor *const *in = call->in;
    tn_dtype dtype = tn__optimizer_dtype(in[ADAM_STEP], in[ADAM_LR], in[ADAM_LIST]);
    struct tn__factor step = tn__optimizer_given(in[ADAM_STEP], (double)o->step, dtype);
    struct tn__factor lr = tn__optimizer_given(in[ADAM_LR], o->lr, dtype);
    struct tn__factor two = tn__optimizer_power_less_one(o->beta2, step);
    const struct adam adam = {
        .options = o,
        .shrink = tn__optimizer_plus(tn__optimizer_scaled(lr, -o->weight_decay), 1),
        .root = tn__optimizer_over(tn__optimizer_value(1),
                                   tn__optimizer_root(tn__optimizer_scaled(two, -1))),
        /* the divisor is negative, lr is not */
        .rate = tn__optimizer_over(lr, tn__optimizer_power_less_one(o->beta1, step)),
    };

    return tn__optimizer_each(in + ADAM_LIST, call->n_in - ADAM_LIST, adam_group(o), adam_one,
                              &adam);
}

/* ---- the norm of all gradients --------------------------------------------------------------- */

static tn_status total_norm_infer(tn_infer *infer)
{
    infer->out[0].dtype = infer->dtype;
    infer->out[0].ndim = 0;
    return TN_OK;
}

static tn_status total_norm_decompose(const tn_decompose *call)
{
    tn_norm_options o = TN_NORM_OPTIONS;
    tn_tensor **norms = tn_malloc((size_t)call->n_in * sizeof(tn_tensor *));
    tn_status status = TN_OK;

    if (norms == NULL)
        return TN_ERR_MEMORY;
    o.p = ((const tn_total_norm_options *)call->options)->p;
    for (int64_t i = 0; i < call->n_in && status == TN_OK; i++) {
        norms[i] = tn_norm(call->in[i], o.p);
        status = norms[i] != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn__common_given(call->out, tn_norm(tn_stack(norms, call->n_in, 0), o.p));
    tn_free(norms);
    return status;
}

/* ---- unscaling of gradients ------------------------------------------------------------------ */

enum { UNSCALE_FOUND, UNSCALE_LIST };

static tn_status unscale_infer(tn_infer *infer)
{
    const tn_view *const *list = infer->in + UNSCALE_LIST;
    char text[TN__TEXT];

    if (infer->in[UNSCALE_FOUND]->ndim != 0)
        return tn_fail(TN_ERR_VALUE, "unscale: found: wrong shape, got %s; expected no dimensions",
                       tn__common_text(text, tn__common_shape(infer->in[UNSCALE_FOUND])));
    for (int64_t i = 1; i < infer->n_in - UNSCALE_LIST; i++)
        if (tn_view_dtype(list[i]) != tn_view_dtype(list[0]))
            return tn_fail(TN_ERR_TYPE,
                           "unscale: tensor %lld: wrong dtype, got %s; expected that of tensor 0, "
                           "%s",
                           (long long)i, tn_dtype_name(tn_view_dtype(list[i])),
                           tn_dtype_name(tn_view_dtype(list[0])));
    return TN_OK;
}

static tn_status unscale_decompose(const tn_decompose *call)
{
    double factor = ((const tn_unscale_options *)call->options)->factor;
    tn_tensor *found = call->in[UNSCALE_FOUND], *good = NULL;

    for (int64_t i = UNSCALE_LIST; i < call->n_in; i++) {
        tn_tensor *finite = tn_all(tn_isfinite(call->in[i]));

        good = i == UNSCALE_LIST ? finite : tn_logical_and(good, finite);
        if (good == NULL || tn_mul_scalar_(call->in[i], TN_SCALAR(factor)) == NULL)
            return tn_error_last_code();
    }
    good = tn_cast(good, tn_tensor_dtype(found));
    /* `found` becomes 1 if an element was not finite; otherwise it does not change */
    found = tn_copy_(found, tn_maximum(found, tn_add_scalar(tn_neg(good), 1)));
    return found != NULL ? TN_OK : tn_error_last_code();
}

TN__OP(unscale, .infer = unscale_infer, .decompose = unscale_decompose);
TN__OP(total_norm, .infer = total_norm_infer, .decompose = total_norm_decompose);
TN__OP(sgd_step, .infer = sgd_step_infer, .decompose = sgd_step_decompose);
TN__OP(adam_step, .infer = adam_step_infer, .decompose = adam_step_decompose);
