/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers for many parameters at once, and the norm of all their gradients: checks of
 * the tensors, and decompositions, one parameter after the other. */
#include "common.h"

#include <math.h>

/* ---- what is given --------------------------------------------------------------------------- */

static int64_t sgd_group(const tn_sgd_step_options *o)
{
    return o->momentum != 0 ? 3 : 2;
}

static int64_t adam_group(const tn_adam_step_options *o)
{
    return o->amsgrad ? 5 : 4;
}

/* Tensors in groups of `size`, all of a group with one shape and dtype. */
static tn_status check_groups(tn_infer *infer, int64_t size, const char *words)
{
    if (TN_HAS(infer, tn_infer, only_read)) {
        infer->group = size;
        infer->only_read = 1 << 1; /* the gradient */
    }
    if (infer->n_in % size != 0)
        return tn_fail(TN_ERR_VALUE,
                       "inputs: wrong number of tensors, got %lld; expected a multiple of %lld: %s",
                       (long long)infer->n_in, (long long)size, words);
    for (int64_t i = 0; i < infer->n_in; i++) {
        const tn_view *first = infer->in[i - i % size], *view = infer->in[i];
        char a[TN__TEXT], b[TN__TEXT];

        if (tn_view_dtype(view) != tn_view_dtype(first))
            return tn_fail(
                TN_ERR_TYPE,
                "tensor %lld: wrong dtype, got %s; expected that of its parameter %lld, %s",
                (long long)i, tn_dtype_name(tn_view_dtype(view)), (long long)(i / size),
                tn_dtype_name(tn_view_dtype(first)));
        if (view->ndim != first->ndim ||
            memcmp(view->shape, first->shape, (size_t)view->ndim * sizeof *view->shape) != 0)
            return tn_fail(
                TN_ERR_VALUE,
                "tensor %lld: wrong shape, got %s; expected that of its parameter %lld, %s",
                (long long)i, tn__common_text(a, tn__common_shape(view)), (long long)(i / size),
                tn__common_text(b, tn__common_shape(first)));
    }
    return TN_OK;
}

static tn_status sgd_step_infer(tn_infer *infer)
{
    int64_t size = sgd_group(infer->options);
    return check_groups(infer, size, size == 3 ? "itself, gradient, buffer" : "itself, gradient");
}

static tn_status adam_step_infer(tn_infer *infer)
{
    const tn_adam_step_options *o = infer->options;
    if (o->step < 1)
        return tn_fail(TN_ERR_VALUE, "step: out of range, got %lld; expected 1 or more",
                       (long long)o->step);
    return check_groups(infer, adam_group(o),
                        o->amsgrad ? "itself, gradient, m, v, w" : "itself, gradient, m, v");
}

/* ---- decompositions --------------------------------------------------------------------- */

/* x = x + alpha * y; NULL passes through. */
static tn_tensor *add_scaled(tn_tensor *x, tn_tensor *y, double alpha)
{
    tn_add_options o = TN_ADD_OPTIONS;
    o.alpha = alpha;
    return tn_add_(x, y, &o);
}

/* The gradient with its sign and the decay in it. */
static tn_tensor *effective(tn_tensor *p, tn_tensor *gradient, double decay, bool maximize)
{
    tn_add_options o = TN_ADD_OPTIONS;
    if (maximize)
        gradient = tn_neg(gradient);
    o.alpha = decay;
    return decay == 0 ? gradient : tn_add(gradient, p, &o);
}

static tn_tensor *sgd_one(tn_tensor *const *t, const void *options)
{
    const tn_sgd_step_options *o = options;
    tn_tensor *g = effective(t[0], t[1], o->weight_decay, o->maximize);
    if (o->momentum != 0 && g != NULL) {
        tn_add_options ahead = TN_ADD_OPTIONS;
        tn_tensor *buffer = o->first ? tn_copy_(t[2], g)
                                     : add_scaled(tn_mul_scalar_(t[2], o->momentum), g,
                                                  1 - o->dampening);
        ahead.alpha = o->momentum;
        g = o->nesterov ? tn_add(g, buffer, &ahead) : buffer;
    }
    return add_scaled(t[0], g, -o->lr);
}

static tn_tensor *adam_one(tn_tensor *const *t, const void *options)
{
    const tn_adam_step_options *o = options;
    double one = 1 - pow(o->beta1, (double)o->step), two = 1 - pow(o->beta2, (double)o->step);
    if (o->decoupled && o->weight_decay != 0 &&
        tn_mul_scalar_(t[0], 1 - o->lr * o->weight_decay) == NULL)
        return NULL;
    tn_tensor *g = effective(t[0], t[1], o->decoupled ? 0 : o->weight_decay, o->maximize);
    tn_tensor *m = add_scaled(t[2], tn_sub(g, t[2], NULL), 1 - o->beta1);
    tn_tensor *v = add_scaled(tn_mul_scalar_(t[3], o->beta2), tn_mul(g, g), 1 - o->beta2);
    if (o->amsgrad && v != NULL)
        v = tn_maximum_(t[4], v);
    tn_tensor *root = tn_mul_scalar_(tn_sqrt(v), 1 / sqrt(two));
    return add_scaled(t[0], tn_div(m, tn_add_scalar_(root, o->eps), NULL), -o->lr / one);
}

/* `one` for each group of `size` tensors, whose temporaries end with it. */
static tn_status each_group(tn_tensor *const *in, int64_t n_in, int64_t size,
                            tn_tensor *(*one)(tn_tensor *const *, const void *),
                            const void *options)
{
    for (int64_t i = 0; i < n_in; i += size) {
        uint64_t scope = tn_scope_begin();
        bool good = one(in + i, options) != NULL;

        tn_scope_end(scope);
        if (!good)
            return tn_error_last_code();
    }
    return TN_OK;
}

static tn_status sgd_step_decompose(const tn_decompose *call)
{
    (void)call->out;
    return each_group(call->in, call->n_in, sgd_group(call->options), sgd_one, call->options);
}

static tn_status adam_step_decompose(const tn_decompose *call)
{
    (void)call->out;
    return each_group(call->in, call->n_in, adam_group(call->options), adam_one, call->options);
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
