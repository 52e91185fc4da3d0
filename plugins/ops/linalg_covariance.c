/* SPDX-License-Identifier: MIT
 *
 * Covariance and correlation of variables. */
#include "linalg.h"

static tn_status few_dims(const tn_view *x)
{
    if (x->ndim <= 2)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "x: too many dimensions, got %d; expected at most 2: [variables, observations]",
                   (int)x->ndim);
}

/* The dtype of the result for x and weights of dtype `weight`, TN_DTYPE_AUTO without weights.
 * Integers become the default dtype. */
static tn_dtype result_dtype(tn_dtype x, tn_dtype weight)
{
    if ((TN_BIT(x) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) == 0)
        x = tn_default_dtype();
    return weight == TN_DTYPE_AUTO ? x : tn_dtype_promote(x, weight);
}

/* Gives output 0 the shape [v, v] for v variables; no dimensions for one variable. */
static void square_of(tn_infer *infer, tn_dtype weight)
{
    const tn_view *x = infer->in[0];
    int64_t v = x->ndim == 2 ? x->shape[0] : 1, shape[2] = { v, v };

    infer->dtype = result_dtype(tn_view_dtype(x), weight);
    tn__common_plain(&infer->out[0], infer->dtype, (tn_ints){ shape, v == 1 ? 0 : 2 });
}

static tn_status cov_infer(tn_infer *infer)
{
    static const char *const names[3] = { "x", "fweights", "aweights" };
    const tn_view *x = infer->in[0];
    int64_t n = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
    tn_status status = few_dims(x);
    char text[TN__TEXT];

    for (int i = 1; i < 3 && i < infer->n_in && status == TN_OK; i++) {
        const tn_view *w = infer->in[i];

        if (w != NULL && (w->ndim > 1 || (w->ndim == 1 ? w->shape[0] : 1) != n))
            status = tn_fail(TN_ERR_RUNTIME,
                             "%s: wrong shape, got %s; expected a vector of %lld numbers, one for "
                             "each observation",
                             names[i], tn__common_text(text, tn__common_shape(w)), (long long)n);
    }
    if (status == TN_OK)
        square_of(infer, infer->n_in > 2 && infer->in[2] != NULL ? tn_view_dtype(infer->in[2])
                                                                 : TN_DTYPE_AUTO);
    return status;
}

/* Fails if a weight is negative. */
static tn_status no_negative(tn_tensor *weights, const char *name)
{
    tn_scalar least;
    tn_tensor *smallest;
    tn_status status;

    if (tn_tensor_numel(weights) == 0)
        return TN_OK;
    smallest = tn_amin(weights);
    status = smallest != NULL ? tn_tensor_scalar(smallest, &least) : tn_error_last_code();
    if (status == TN_OK && tn_scalar_as_float(least) < 0)
        status = tn_fail(TN_ERR_RUNTIME, "cov: %s: a negative weight, got %g; expected 0 or more",
                         name, tn_scalar_as_float(least));
    return status;
}

static tn_tensor *sum_last(tn_tensor *x)
{
    int64_t last = -1;

    return tn_sum(x, TN_INTS(last), true);
}

/* The covariance without weights of x [variables, observations]. */
static tn_tensor *plain_cov(tn_tensor *x, int64_t correction)
{
    int64_t last = -1;
    double divisor;

    if (x == NULL)
        return NULL;
    divisor = (double)tn_tensor_size(x, -1) - (double)correction;
    x = minus(x, tn_mean(x, TN_INTS(last), true));
    return times(tn_matmul(x, adjoint(x)), 1.0 / (divisor > 0 ? divisor : 0));
}

/* Returns the weights of the observations; NULL and sets the error on failure. *total becomes the
 * sum of the weights w; *divisor becomes this sum minus the correction, which is multiplied by
 * sum(w a) / sum(w) if there is `a`, but at least 0. As in PyTorch, the weights have the dtype of
 * `a`. Without `a` they are integers, which are computed in the dtype `wide`, because float16 would
 * round their sums. */
static tn_tensor *weights_of(tn_tensor *f, tn_tensor *a, int64_t correction, tn_dtype wide,
                             tn_tensor **total, tn_tensor **divisor)
{
    tn_tensor *w = f == TN_NONE ? a : tn_cast(f, a == TN_NONE ? wide : tn_tensor_dtype(a)), *less;

    if (f != TN_NONE && a != TN_NONE)
        w = tn_mul(w, a);
    *total = sum_last(w);
    if (a != TN_NONE && correction != 0) {
        less = times(divide(sum_last(tn_mul(w, a)), *total), (double)correction);
        *divisor = at_least(minus(*total, less), 0);
    } else {
        *divisor = at_least(add_number(*total, -(double)correction), 0);
    }
    return w;
}

static tn_tensor *weighted_cov(tn_tensor *x, tn_tensor *f, tn_tensor *a, int64_t correction)
{
    tn_tensor *w, *total, *divisor;
    tn_dtype dtype;

    if (x == NULL)
        return NULL;
    dtype = tn_tensor_dtype(x);
    w = weights_of(f, a, correction, tn__common_part(dtype) == TN_F64 ? TN_F64 : TN_F32, &total,
                   &divisor);
    if (w == NULL || total == NULL || divisor == NULL)
        return NULL;
    w = tn_cast(w, dtype);
    x = minus(x, divide(sum_last(tn_mul(x, w)), tn_cast(total, dtype)));
    return divide(tn_matmul(x, adjoint(tn_mul(x, w))), tn_cast(divisor, dtype));
}

/* x as [variables, observations] of the dtype of the result */
static tn_tensor *as_variables(tn_tensor *x, tn_dtype dtype)
{
    x = tn_cast(x, dtype);
    return x == NULL || tn_tensor_ndim(x) == 2 ? x : tn_reshape(x, TN_SHAPE(1, -1));
}

static tn_status cov_decompose(const tn_decompose *call)
{
    const tn_cov_options *o = call->options;
    tn_tensor *f = call->n_in > 1 ? call->in[1] : TN_NONE,
              *a = call->n_in > 2 ? call->in[2] : TN_NONE, *x, *y;
    tn_dtype dtype = result_dtype(tn_tensor_dtype(call->in[0]),
                                  a != TN_NONE ? tn_tensor_dtype(a) : TN_DTYPE_AUTO);
    tn_status status = f != TN_NONE ? no_negative(f, "fweights") : TN_OK;

    if (status == TN_OK && a != TN_NONE)
        status = no_negative(a, "aweights");
    if (status != TN_OK)
        return status;
    x = as_variables(call->in[0], dtype);
    y = f == TN_NONE && a == TN_NONE ? plain_cov(x, o->correction)
                                     : weighted_cov(x, f, a, o->correction);
    return tn__common_given(call->out, tn_squeeze(y));
}

static tn_status corrcoef_infer(tn_infer *infer)
{
    tn_status status = few_dims(infer->in[0]);

    if (status == TN_OK)
        square_of(infer, TN_DTYPE_AUTO);
    return status;
}

static tn_status corrcoef_decompose(const tn_decompose *call)
{
    tn_dtype dtype = result_dtype(tn_tensor_dtype(call->in[0]), TN_DTYPE_AUTO);
    tn_tensor *y = plain_cov(as_variables(call->in[0], dtype), 1), *size;

    if (y == NULL)
        return tn_error_last_code();
    size = tn_sqrt(tn_real(diagonal_of(y)));
    size = size == NULL ? NULL : tn_cast(size, tn_tensor_dtype(y));
    y = divide(divide(y, tn_unsqueeze(size, -1)), tn_unsqueeze(size, -2));
    if (y != NULL && tn__is_complex(tn_tensor_dtype(y)))
        y = tn_complex(clamped(tn_real(y), -1, 1), clamped(tn_imag(y), -1, 1));
    else
        y = clamped(y, -1, 1);
    return tn__common_given(call->out, tn_squeeze(y));
}

TN__OP(cov, .infer = cov_infer, .decompose = cov_decompose);
TN__OP(corrcoef, .infer = corrcoef_infer, .decompose = corrcoef_decompose);
