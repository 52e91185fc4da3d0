/* SPDX-License-Identifier: MIT
 *
 * The steps of random programs (test_programs.c): numbers of a seed, views, new tensors, and
 * changes in place. */
#ifndef TN_TESTS_GRAD_PROGRAM_STEPS_H
#define TN_TESTS_GRAD_PROGRAM_STEPS_H

#include "tests/op/suite.h"

enum { MOST_SIZE = 128 }; /* elements of a tensor */

/* ---- numbers ---- */

/* xorshift64*, so that programs are the same everywhere. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1DU;
}

static int64_t below(uint64_t *state, int64_t bound)
{
    return bound > 0 ? (int64_t)((draw(state) >> 33) % (uint64_t)bound) : 0;
}

static double number(uint64_t *state)
{
    return (double)(int64_t)(draw(state) >> 11) * 0x1p-53 * 2.4 - 1.2;
}

/* Random numbers of this shape, in float64 or complex128. */
static tn_tensor *constant(uint64_t *state, tn_ints shape, tn_dtype dtype)
{
    double numbers[2 * MOST_SIZE];
    int64_t count = 1, parts = dtype == TN_C128 ? 2 : 1;
    tn_tensor *out;

    for (int64_t d = 0; d < shape.count; d++)
        count *= shape.at[d];
    ck_assert_int_le(count, MOST_SIZE);
    for (int64_t i = 0; i < parts * count; i++)
        numbers[i] = number(state);
    out = tn_tensor_empty(shape, dtype, NULL);
    ck_assert_msg(out != NULL && tn_tensor_copy_in(out, numbers,
                                                   (size_t)count * tn_dtype_size(dtype)) == TN_OK,
                  "%s", tn_error_text());
    return out;
}

static tn_tensor *constant_like(uint64_t *state, const tn_tensor *x)
{
    return constant(state, tn_tensor_shape(x), tn_tensor_dtype(x));
}

/* ---- views ---- */

static int64_t some_dim(uint64_t *state, const tn_tensor *x)
{
    return below(state, tn_tensor_ndim(x));
}

static tn_tensor *make_view(tn_tensor *x, uint64_t *state)
{
    int64_t n = tn_tensor_numel(x);

    switch (below(state, 3)) {
    case 0: return tn_view_to(x, TN_SHAPE(-1));
    case 1: return n % 2 == 0 ? tn_view_to(x, TN_SHAPE(2, -1)) : tn_view_to(x, TN_SHAPE(-1, 1));
    default: return n % 3 == 0 ? tn_view_to(x, TN_SHAPE(-1, 3)) : tn_view_to(x, TN_SHAPE(1, -1));
    }
}

static tn_tensor *make_reshape(tn_tensor *x, uint64_t *state)
{
    int64_t n = tn_tensor_numel(x);

    return below(state, 2) == 0 && n % 2 == 0 ? tn_reshape(x, TN_SHAPE(-1, 2))
                                              : tn_reshape(x, TN_SHAPE(-1));
}

static tn_tensor *make_flatten(tn_tensor *x, uint64_t *state)
{
    return tn_flatten(x, some_dim(state, x), -1);
}

static tn_tensor *make_permute(tn_tensor *x, uint64_t *state)
{
    int64_t dims[TN_MAX_DIMS], ndim = tn_tensor_ndim(x);

    for (int64_t d = 0; d < ndim; d++) {
        int64_t other = below(state, d + 1);

        dims[d] = d;
        dims[d] = dims[other];
        dims[other] = d;
    }
    return tn_permute(x, (tn_ints){ dims, ndim });
}

static tn_tensor *make_transpose(tn_tensor *x, uint64_t *state)
{
    return tn_transpose(x, some_dim(state, x), some_dim(state, x));
}

static tn_tensor *make_expand(tn_tensor *x, uint64_t *state)
{
    int64_t shape[TN_MAX_DIMS], ndim = tn_tensor_ndim(x);
    bool lead = below(state, 2) == 0 && ndim < 4;

    shape[0] = 2;
    for (int64_t d = 0; d < ndim; d++)
        shape[d + lead] = tn_tensor_size(x, d) == 1 ? 2 + below(state, 2) : -1;
    return tn_expand(x, (tn_ints){ shape, ndim + lead });
}

static tn_tensor *make_unsqueeze(tn_tensor *x, uint64_t *state)
{
    return tn_unsqueeze(x, below(state, tn_tensor_ndim(x) + 1));
}

static tn_tensor *make_squeeze(tn_tensor *x, uint64_t *state)
{
    tn_squeeze_options o = TN_SQUEEZE_OPTIONS;
    int64_t dim = some_dim(state, x);

    if (below(state, 2) == 0 && tn_tensor_ndim(x) > 0)
        o.dims = (tn_ints){ &dim, 1 };
    return tn_squeeze(x, o.dims);
}

static tn_tensor *make_narrow(tn_tensor *x, uint64_t *state)
{
    int64_t dim = some_dim(state, x), size = tn_tensor_ndim(x) > 0 ? tn_tensor_size(x, dim) : 1;
    int64_t length = 1 + below(state, size), start = below(state, size - length + 1);

    return tn_narrow(x, dim, start, length);
}

static tn_tensor *make_select(tn_tensor *x, uint64_t *state)
{
    int64_t dim = some_dim(state, x);

    return tn_select(x, dim, below(state, tn_tensor_ndim(x) > 0 ? tn_tensor_size(x, dim) : 1));
}

static tn_tensor *make_slice(tn_tensor *x, uint64_t *state)
{
    int64_t dim = some_dim(state, x);

    return tn_slice(x, dim, below(state, 2), INT64_MIN, 1 + below(state, 3));
}

static tn_tensor *make_diagonal(tn_tensor *x, uint64_t *state)
{
    return tn_diagonal(x, below(state, 3) - 1, some_dim(state, x), some_dim(state, x));
}

static tn_tensor *make_unfold(tn_tensor *x, uint64_t *state)
{
    return tn_unfold(x, some_dim(state, x), 2 + below(state, 2), 1 + below(state, 2));
}

static tn_tensor *make_real(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_real(x);
}

static tn_tensor *make_imag(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_imag(x);
}

static tn_tensor *make_view_as_real(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_view_as_real(x);
}

static tn_tensor *make_view_as_complex(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_view_as_complex(tn_tensor_dtype(x) == TN_C128 ? tn_view_as_real(x) : x);
}

typedef struct row {
    const char *name;
    tn_tensor *(*make)(tn_tensor *x, uint64_t *state);
} row;

static const row views[] = { { "view", make_view },
                             { "reshape", make_reshape },
                             { "flatten", make_flatten },
                             { "permute", make_permute },
                             { "transpose", make_transpose },
                             { "expand", make_expand },
                             { "unsqueeze", make_unsqueeze },
                             { "squeeze", make_squeeze },
                             { "narrow", make_narrow },
                             { "select", make_select },
                             { "slice", make_slice },
                             { "diagonal", make_diagonal },
                             { "unfold", make_unfold },
                             { "unfold", make_unfold },
                             { "real", make_real },
                             { "imag", make_imag },
                             { "view_as_real", make_view_as_real },
                             { "view_as_complex", make_view_as_complex } };

/* ---- new tensors ---- */

static tn_tensor *make_sin(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_sin(tn_copy(x)); /* sin keeps its input, which must not change, but x may change */
}

static tn_tensor *make_scaled(tn_tensor *x, uint64_t *state)
{
    return tn_mul_scalar(x, number(state));
}

static tn_tensor *make_square(tn_tensor *x, uint64_t *state)
{
    (void)state;
    x = tn_copy(x);
    return tn_mul(x, x);
}

static tn_tensor *make_complex(tn_tensor *x, uint64_t *state)
{
    return tn_complex(x, tn_mul(x, constant_like(state, x)));
}

static const row fresh[] = { { "sin", make_sin },
                             { "mul_scalar", make_scaled },
                             { "mul", make_square },
                             { "complex", make_complex },
                             { "complex", make_complex } };

/* ---- changes ---- */

static tn_tensor *change_sin(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_sin_(x);
}

static tn_tensor *change_tanh(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_tanh_(x);
}

static tn_tensor *change_neg(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_neg_(x);
}

static tn_tensor *change_mul_scalar(tn_tensor *x, uint64_t *state)
{
    return tn_mul_scalar_(x, number(state));
}

static tn_tensor *change_add_scalar(tn_tensor *x, uint64_t *state)
{
    return tn_add_scalar_(x, number(state));
}

static tn_tensor *change_mul(tn_tensor *x, uint64_t *state)
{
    return tn_mul_(x, constant_like(state, x));
}

/* Multiplies a tensor by its own sine, a factor that has a history. */
static tn_tensor *change_by_sine(tn_tensor *x, uint64_t *state)
{
    return tn_mul_(x, tn_sin(tn_mul_scalar(x, number(state))));
}

static tn_tensor *change_add_sine(tn_tensor *x, uint64_t *state)
{
    return tn_add_(x, tn_sin(tn_copy(x)), TN_SCALAR(number(state)));
}

static tn_tensor *change_copy(tn_tensor *x, uint64_t *state)
{
    tn_tensor *from = constant_like(state, x);

    return tn_copy_(x, below(state, 2) == 0 ? from : tn_mul(from, tn_tanh(x)));
}

static tn_tensor *change_fill(tn_tensor *x, uint64_t *state)
{
    return tn_fill_(x, number(state));
}

static tn_tensor *change_masked_fill(tn_tensor *x, uint64_t *state)
{
    tn_tensor *mask = constant(state, tn_tensor_shape(x), TN_F64);

    return tn_masked_fill_(x, tn_gt(mask, tn_tensor_full(TN_SCALAR_SHAPE, 0.3, TN_F64, NULL)),
                           number(state));
}

static tn_tensor *change_square(tn_tensor *x, uint64_t *state)
{
    (void)state;
    return tn_square_(x);
}

static tn_tensor *change_lerp(tn_tensor *x, uint64_t *state)
{
    return tn_lerp_scalar_(x, constant_like(state, x), number(state));
}

static tn_tensor *change_cumsum(tn_tensor *x, uint64_t *state)
{
    return tn_cumsum_(x, some_dim(state, x));
}

static tn_tensor *change_index_add(tn_tensor *x, uint64_t *state)
{
    int64_t dim = some_dim(state, x), zeros[2] = { 0, 0 }, shape[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(x);

    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == dim ? 2 : tn_tensor_size(x, d);
    return tn_index_add_(x, tn_tensor_from(zeros, TN_I64, TN_SHAPE(2)),
                         constant(state, (tn_ints){ shape, ndim }, tn_tensor_dtype(x)), dim);
}

static const row changes[] = {
    { "sin", change_sin },
    { "sin", change_sin },
    { "tanh", change_tanh },
    { "neg", change_neg },
    { "mul_scalar", change_mul_scalar },
    { "mul_scalar", change_mul_scalar },
    { "add_scalar", change_add_scalar },
    { "mul", change_mul },
    { "mul", change_by_sine },
    { "add", change_add_sine },
    { "copy", change_copy },
    { "copy", change_copy },
    { "fill", change_fill },
    { "masked_fill", change_masked_fill },
    { "square", change_square },
    { "lerp_scalar", change_lerp },
    { "cumsum", change_cumsum },
    { "index_add", change_index_add },
};

#endif
