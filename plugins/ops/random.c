/* SPDX-License-Identifier: MIT
 *
 * Random numbers, computed by Philox with a given seed or with numbers reserved from the
 * generator. */
#include "common.h"

/* Reserves `words` 32-bit words of the generator for each element of x, twice as many for float64.
 * The number is the same on every device, so that all devices draw the same numbers. */
static tn_status take(tn_tensor *x, uint32_t words, int64_t *seed, int64_t *block)
{
    uint64_t key, first;

    if (tn_tensor_dtype(x) == TN_F64)
        words *= 2;
    tn_status status = tn_random_take((uint64_t)tn_tensor_numel(x), words, &key, &first);
    *seed = (int64_t)key;
    *block = (int64_t)first;
    return status;
}

static tn_status uniform_infer(tn_infer *infer)
{
    const tn_uniform_options *o = infer->options;

    if (!(o->low <= o->high))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "expects to return a [low, high) range, but found low=%g > high=%g", o->low,
                       o->high);
    return tn__common_unary(infer);
}

static tn_status uniform_decompose(const tn_decompose *call)
{
    const tn_uniform_options *o = call->options;
    int64_t seed, block;
    tn_status status = take(call->in[0], 1, &seed, &block);
    if (status != TN_OK)
        return status;
    call->out[0] = tn_philox_uniform(call->in[0], TN_NONE, o->low, o->high, seed, block);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_status normal_infer(tn_infer *infer)
{
    const tn_normal_options *o = infer->options;

    if (!(o->std >= 0))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "expects std >= 0.0, but found std %g", o->std);
    return tn__common_unary(infer);
}

static tn_status normal_decompose(const tn_decompose *call)
{
    const tn_normal_options *o = call->options;
    int64_t seed, block;
    tn_status status = take(call->in[0], 2, &seed, &block);
    if (status != TN_OK)
        return status;
    call->out[0] = tn_philox_normal(call->in[0], TN_NONE, o->mean, o->std, seed, block);
    return call->out[0] != NULL ? TN_OK : tn_error_last_code();
}

static tn_tensor *uniform(tn_tensor *like, double low, double high)
{
    return tn_uniform(like, low, high);
}

/* Returns an uninitialized tensor with x's shape and device and the given dtype. */
static tn_tensor *room(tn_tensor *x, tn_dtype dtype)
{
    return tn_tensor_empty(tn_tensor_shape(x), dtype, tn_tensor_device(x));
}

static tn_status bernoulli_decompose(const tn_decompose *call)
{
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    tn_dtype inner = dtype == TN_F64 ? TN_F64 : TN_F32;
    return tn__common_given(call->out, tn_cast(tn_lt(uniform(room(call->in[0], inner), 0, 1),
                                                     tn_cast(call->in[0], inner)),
                                               dtype));
}

static tn_status randint_infer(tn_infer *infer)
{
    const tn_randint_options *o = infer->options;

    if (o->low >= o->high)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "expects low < high, but got low=%lld >= high=%lld",
                       (long long)o->low, (long long)o->high);
    if ((double)o->high - (double)o->low > 0x1p53)
        return tn_fail(TN_ERR_VALUE,
                       "low and high: range too large, got %lld to %lld; expected at most 2^53 "
                       "numbers",
                       (long long)o->low, (long long)o->high);
    if (TN_MASK_INT & TN_BIT(tn_view_dtype(infer->in[0]))) {
        tn_status status = tn__scalar_fits(tn_view_dtype(infer->in[0]), tn_scalar_int(o->low),
                                           "low");

        if (status == TN_OK)
            status = tn__scalar_fits(tn_view_dtype(infer->in[0]), tn_scalar_int(o->high - 1),
                                     "high - 1");
        if (status != TN_OK)
            return status;
    }
    return tn__common_unary(infer);
}

/* For up to 4096 different numbers draws 24 random bits, for more 53. draw * count is always less
 * than count, even after rounding, because the largest draw is far enough below 1. */
static tn_status randint_decompose(const tn_decompose *call)
{
    const tn_randint_options *o = call->options;
    double count = (double)(o->high - o->low);
    tn_tensor *y = tn_cast(uniform(room(call->in[0], count > 4096 ? TN_F64 : TN_F32), 0, count),
                           TN_I64);
    if (o->low != 0)
        y = tn_add(y, tn_tensor_full((tn_ints){ NULL, 0 }, (double)o->low, TN_I64,
                                     tn_tensor_device(call->in[0])));
    return tn__common_given(call->out, tn_cast(y, tn_tensor_dtype(call->in[0])));
}

static tn_status randperm_infer(tn_infer *infer)
{
    int64_t n = ((const tn_randperm_options *)infer->options)->n;

    if (n < 0)
        return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */ "n must be non-negative, not %lld",
                       (long long)n);
    tn__common_plain(&infer->out[0], TN_I64, (tn_ints){ &n, 1 });
    return TN_OK;
}

static tn_status philox_uniform_infer(tn_infer *infer)
{
    const tn_philox_uniform_options *o = infer->options;
    tn_status status = tn__common_state(infer->in[1], o->seed);

    return status == TN_OK ? tn__common_unary(infer) : status;
}

static tn_status philox_normal_infer(tn_infer *infer)
{
    const tn_philox_normal_options *o = infer->options;
    tn_status status = tn__common_state(infer->in[1], o->seed);

    return status == TN_OK ? tn__common_unary(infer) : status;
}

static tn_status philox_permutation_infer(tn_infer *infer)
{
    const tn_philox_permutation_options *o = infer->options;
    tn_status status = tn__common_state(infer->in[1], o->seed);

    if (status != TN_OK)
        return status;
    if (infer->in[0]->ndim != 1)
        return tn_fail(TN_ERR_RUNTIME, "x: wrong number of dimensions, got %d; expected one",
                       (int)infer->in[0]->ndim);
    tn__common_plain(&infer->out[0], TN_I64, tn__common_shape(infer->in[0]));
    return TN_OK;
}

static tn_status philox_permutation_decompose(const tn_decompose *call)
{
    const tn_philox_permutation_options *o = call->options;
    tn_tensor *keys = room(call->in[0], TN_F64);
    if (keys == NULL)
        return tn_error_last_code();
    return tn_sort(tn_philox_uniform(keys, call->in[1], 0, 1, o->seed, o->block), &keys,
                   &call->out[0]);
}

static tn_status randperm_decompose(const tn_decompose *call)
{
    int64_t n = ((const tn_randperm_options *)call->options)->n;
    const tn_device *device = call->in[0] != TN_NONE ? tn_tensor_device(call->in[0])
                                                     : tn_default_device();
    tn_tensor *like = tn_tensor_empty((tn_ints){ &n, 1 }, TN_I64, device);
    uint64_t seed, block;
    if (like == NULL)
        return tn_error_last_code();
    tn_status status = tn_random_take((uint64_t)n, 2, &seed,
                                      &block); /* two words per element, as for float64 */
    if (status != TN_OK)
        return status;
    return tn__common_given(call->out,
                            tn_philox_permutation(like, TN_NONE, (int64_t)seed, (int64_t)block));
}

static tn_status truncated_normal_infer(tn_infer *infer)
{
    const tn_truncated_normal_options *o = infer->options;

    if (!(o->std > 0) || !(o->low <= o->high))
        return tn_fail(TN_ERR_RUNTIME,
                       "std, low or high: out of range, got %g, %g and %g; "
                       "expected std > 0 and low <= high",
                       o->std, o->low, o->high);
    return tn__common_unary(infer);
}

/* Applies the inverse of the distribution function to numbers drawn uniformly between its values at
 * the bounds. */
static tn_status truncated_normal_decompose(const tn_decompose *call)
{
    const tn_truncated_normal_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    double low = erf((o->low - o->mean) / o->std / sqrt(2));
    double high = erf((o->high - o->mean) / o->std / sqrt(2));
    tn_tensor *y = tn_erfinv(
        uniform(room(call->in[0], dtype == TN_F64 ? TN_F64 : TN_F32), low, high));
    y = tn_add_scalar(tn_mul_scalar(y, o->std * sqrt(2)), o->mean);
    return tn__common_given(call->out, tn_cast(tn_clamp(y, o->low, o->high), dtype));
}

TN__OP(philox_uniform, .infer = philox_uniform_infer);
TN__OP(philox_normal, .infer = philox_normal_infer);
TN__OP(uniform, .infer = uniform_infer, .decompose = uniform_decompose);
TN__OP(normal, .infer = normal_infer, .decompose = normal_decompose);
TN__OP(bernoulli, .infer = tn__common_unary, .decompose = bernoulli_decompose);
TN__OP(randint, .infer = randint_infer, .decompose = randint_decompose);
TN__OP(philox_permutation, .infer = philox_permutation_infer,
       .decompose = philox_permutation_decompose);
TN__OP(randperm, .infer = randperm_infer, .decompose = randperm_decompose);
TN__OP(truncated_normal, .infer = truncated_normal_infer, .decompose = truncated_normal_decompose);
