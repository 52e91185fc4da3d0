/* SPDX-License-Identifier: MIT
 *
 * Optimizer steps for many parameters at once, and the norm of all gradients: checks of the
 * tensors, and decompositions, which handle one parameter after the other. */
#include "common.h"

#include <math.h>

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

/* Checks that a number is given either as an option or as a 0-d tensor. A tensor's value can change
 * without a new call, for example when a graph is replayed. */
static tn_status check_number(const tn_view *tensor, bool option, const char *name)
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

/* Checks the tensors from input `first_input` on. They form groups of `size`, one for each
 * parameter; all tensors of a group must have the same shape and dtype. */
static tn_status check_groups(tn_infer *infer, int64_t first_input, int64_t size, const char *words)
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
    tn_status status = check_number(infer->in[SGD_LR], tn__given_number(o->lr), "lr");

    if (status != TN_OK)
        return status;
    return check_groups(infer, SGD_LIST, size,
                        size == 3 ? "parameter, gradient, buffer" : "parameter, gradient");
}

static tn_status adam_step_infer(tn_infer *infer)
{
    const tn_adam_step_options *o = infer->options;
    tn_status status = check_number(infer->in[ADAM_STEP], o->step != INT64_MIN, "step");

    if (status == TN_OK)
        status = check_number(infer->in[ADAM_LR], tn__given_number(o->lr), "lr");
    if (status != TN_OK)
        return status;
    if (infer->in[ADAM_STEP] == NULL && o->step < 1)
        return tn_fail(TN_ERR_VALUE, "step: out of range, got %lld; expected 1 or more",
                       (long long)o->step);
    return check_groups(infer, ADAM_LIST, adam_group(o),
                        o->amsgrad ? "parameter, gradient, m, v, w" : "parameter, gradient, m, v");
}

/* ---- decompositions -------------------------------------------------------------------------- */

/* A factor: the 0-d `tensor` of float32 or float64, or `value` if `tensor` is NULL. */
struct factor {
    double value;
    tn_tensor *tensor;
};

/* x times a 0-d tensor, computed in x's dtype, but in float32 for float16 and bfloat16. Returns
 * NULL if x is NULL. */
static tn_tensor *times_tensor(tn_tensor *x, tn_tensor *by)
{
    if (x == NULL)
        return NULL;
    x = tn__common_narrow(x) ? tn_cast(x, TN_F32) : x;
    return x == NULL ? NULL : tn_mul(x, tn_cast(by, tn_tensor_dtype(x)));
}

/* x = x * by */
static tn_tensor *scale(tn_tensor *x, struct factor by)
{
    if (by.tensor == NULL)
        return tn_mul_scalar_(x, by.value);
    return x == NULL ? NULL : tn_copy_(x, times_tensor(x, by.tensor));
}

/* x = x + by * y */
static tn_tensor *add_scaled(tn_tensor *x, tn_tensor *y, struct factor by)
{
    tn_add_options o = TN_ADD_OPTIONS;

    if (by.tensor == NULL) {
        o.alpha = TN_SCALAR(by.value);
        return tn_add_(x, y, &o);
    }
    if (x == NULL || !tn__common_narrow(x))
        return tn_add_(x, times_tensor(y, by.tensor), NULL);
    return tn_copy_(x, tn_add(tn_cast(x, TN_F32), times_tensor(y, by.tensor), NULL));
}

static tn_tensor *add_times(tn_tensor *x, tn_tensor *y, double by)
{
    return add_scaled(x, y, (struct factor){ by, NULL });
}

/* The gradient, negated for `maximize`, plus the weight decay. */
static tn_tensor *effective(tn_tensor *p, tn_tensor *gradient, double decay, bool maximize)
{
    tn_add_options o = TN_ADD_OPTIONS;
    if (maximize)
        gradient = tn_neg(gradient);
    o.alpha = TN_SCALAR(decay);
    return decay == 0 ? gradient : tn_add(gradient, p, &o);
}

/* Values that all parameters of a call use. */
struct sgd {
    const tn_sgd_step_options *options;
    struct factor rate; /* -lr */
};

static tn_tensor *sgd_one(tn_tensor *const *t, const void *shared)
{
    const struct sgd *sgd = shared;
    const tn_sgd_step_options *o = sgd->options;
    tn_tensor *g = effective(t[0], t[1], o->weight_decay, o->maximize);
    if (o->momentum != 0 && g != NULL) {
        tn_add_options ahead = TN_ADD_OPTIONS;
        tn_tensor *buffer = o->first
                                ? tn_copy_(t[2], g)
                                : add_times(tn_mul_scalar_(t[2], o->momentum), g, 1 - o->dampening);
        ahead.alpha = TN_SCALAR(o->momentum);
        g = o->nesterov ? tn_add(g, buffer, &ahead) : buffer;
    }
    return add_scaled(t[0], g, sgd->rate);
}

struct adam {
    const tn_adam_step_options *options;
    struct factor shrink; /* 1 - lr * weight_decay */
    struct factor root;   /* 1 / sqrt(1 - beta2^step) */
    struct factor rate;   /* -lr / (1 - beta1^step) */
};

static tn_tensor *adam_one(tn_tensor *const *t, const void *shared)
{
    const struct adam *adam = shared;
    const tn_adam_step_options *o = adam->options;
    if (o->decoupled && o->weight_decay != 0 && scale(t[0], adam->shrink) == NULL)
        return NULL;
    tn_tensor *g = effective(t[0], t[1], o->decoupled ? 0 : o->weight_decay, o->maximize);
    tn_tensor *m = add_times(t[2], tn_sub(g, t[2], NULL), 1 - o->beta1);
    tn_tensor *v = add_times(tn_mul_scalar_(t[3], o->beta2), tn_mul(g, g), 1 - o->beta2);
    if (o->amsgrad && v != NULL)
        v = tn_maximum_(t[4], v);
    tn_tensor *root = scale(tn_sqrt(v), adam->root);
    return add_scaled(t[0], tn_div(m, tn_add_scalar_(root, o->eps), NULL), adam->rate);
}

/* Returns the dtype in which step and lr are combined if one of them is a tensor. It is float64
 * only if step, lr or the parameter has this dtype, because that shows that the device supports it.
 */
static tn_dtype number_type(tn_tensor *a, tn_tensor *b, tn_tensor *parameter)
{
    tn_tensor *const all[] = { a, b, parameter };

    for (int i = 0; i < 3; i++)
        if (all[i] != TN_NONE && tn_tensor_dtype(all[i]) == TN_F64)
            return TN_F64;
    return TN_F32;
}

/* beta^step - 1. Uses expm1, which does not lose digits to cancellation in float32. */
static tn_tensor *power_less_one(double beta, tn_tensor *step)
{
    if (beta > 0)
        return tn_expm1(tn_mul_scalar(step, log(beta)));
    return tn_add_scalar(tn_pow(tn__scalar_number(step, beta), step), -1);
}

/* Computes the factors of a step as tensors, if step or lr is a tensor. */
static tn_status adam_numbers(struct adam *adam, tn_tensor *step, tn_tensor *lr,
                              tn_tensor *parameter)
{
    const tn_adam_step_options *o = adam->options;
    tn_dtype dtype = number_type(step, lr, parameter);
    const tn_device *device = tn_tensor_device(parameter);
    tn_tensor *one, *two;

    step = step == TN_NONE ? tn_tensor_full(TN_SCALAR_SHAPE, (double)o->step, dtype, device)
                           : tn_cast(step, dtype);
    lr = lr == TN_NONE ? tn_tensor_full(TN_SCALAR_SHAPE, o->lr, dtype, device) : tn_cast(lr, dtype);
    if (step == NULL || lr == NULL)
        return tn_error_last_code();
    one = power_less_one(o->beta1, step);
    two = tn_neg(power_less_one(o->beta2, step));
    adam->shrink.tensor = tn_add_scalar(tn_mul_scalar(lr, -o->weight_decay), 1);
    adam->root.tensor = tn_reciprocal(tn_sqrt(two));
    adam->rate.tensor = tn_div(lr, one, NULL); /* `one` is negative, lr is not */
    return adam->shrink.tensor != NULL && adam->root.tensor != NULL && adam->rate.tensor != NULL
               ? TN_OK
               : tn_error_last_code();
}

/* Calls `one` for each group of `size` tensors and frees its temporary tensors afterwards. */
static tn_status each_group(tn_tensor *const *in, int64_t n_in, int64_t size,
                            tn_tensor *(*one)(tn_tensor *const *, const void *), const void *shared)
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

static tn_status sgd_step_decompose(const tn_decompose *call)
{
    const tn_sgd_step_options *o = call->options;
    struct sgd sgd = { o, { -o->lr, NULL } };
    tn_tensor *lr = call->in[SGD_LR];

    if (lr != TN_NONE) {
        sgd.rate.tensor = tn_neg(lr);
        if (sgd.rate.tensor == NULL)
            return tn_error_last_code();
    }
    return each_group(call->in + SGD_LIST, call->n_in - SGD_LIST, sgd_group(o), sgd_one, &sgd);
}

static tn_status adam_step_decompose(const tn_decompose *call)
{
    const tn_adam_step_options *o = call->options;
    tn_tensor *step = call->in[ADAM_STEP], *lr = call->in[ADAM_LR];
    struct adam adam = { .options = o };

    if (step != TN_NONE || lr != TN_NONE) {
        tn_status status = adam_numbers(&adam, step, lr, call->in[ADAM_LIST]);

        if (status != TN_OK)
            return status;
    } else {
        adam.shrink.value = 1 - o->lr * o->weight_decay;
        adam.root.value = 1 / sqrt(1 - pow(o->beta2, (double)o->step));
        adam.rate.value = -o->lr / (1 - pow(o->beta1, (double)o->step));
    }
    return each_group(call->in + ADAM_LIST, call->n_in - ADAM_LIST, adam_group(o), adam_one, &adam);
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
        norms[i] = tn_norm(call->in[i], &o);
        status = norms[i] != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn__common_given(call->out, tn_norm(tn_stack(norms, call->n_in, 0), &o));
    tn_free(norms);
    return status;
}

TN__OP(total_norm, .infer = total_norm_infer, .decompose = total_norm_decompose);
TN__OP(sgd_step, .infer = sgd_step_infer, .decompose = sgd_step_decompose);
TN__OP(adam_step, .infer = adam_step_infer, .decompose = adam_step_decompose);
