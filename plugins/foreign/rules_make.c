/* SPDX-License-Identifier: MIT
 *
 * Rules for new tensors, conversions and random numbers. New tensors are on the default device,
 * which is that of the module while it runs. */
#include "rules.h"

#include <math.h>

/* ---- one value everywhere -------------------------------------------------------------------- */

/* As in PyTorch the kind of the number decides on the dtype if none is given. */
static tn_status full(tn_rule_call *call)
{
    tn_scalar value = rule_scalar(call, "fill_value");
    tn_dtype dtype = rule_dtype(call, "dtype");

    if (dtype == TN_DTYPE_AUTO && value.kind == TN_SCALAR_BOOL)
        dtype = TN_BOOL;
    else if (dtype == TN_DTYPE_AUTO && value.kind == TN_SCALAR_INT)
        dtype = TN_I64;
    else if (dtype == TN_DTYPE_AUTO && value.kind == TN_SCALAR_COMPLEX)
        dtype = tn_default_dtype() == TN_F64 ? TN_C128 : TN_C64;
    return rule_give(call, tn_full(TN_NONE, rule_ints(call, "size"), value, dtype));
}

/* A tensor of the shape of `self`; TN_DTYPE_AUTO: of its dtype, too. */
static tn_tensor *like(tn_rule_call *call, tn_scalar value)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_dtype dtype = rule_dtype(call, "dtype");

    if (call->status != TN_OK)
        return NULL;
    return tn_full(self, tn_tensor_shape(self), value, dtype);
}

static tn_status zeros_like(tn_rule_call *call)
{
    return rule_give(call, like(call, tn_scalar_int(0)));
}

static tn_status ones_like(tn_rule_call *call)
{
    return rule_give(call, like(call, tn_scalar_int(1)));
}

static tn_status full_like(tn_rule_call *call)
{
    return rule_give(call, like(call, rule_scalar(call, "fill_value")));
}

/* A tensor of the shape and dtype of `self` with the values of another, which broadcasts. */
static tn_status copy_of(tn_rule_call *call, const char *name)
{
    tn_tensor *self = rule_tensor(call, "self"), *from = rule_tensor(call, name);

    if (call->status != TN_OK)
        return call->status;
    if (call->into != NULL)
        return rule_give(call, tn_copy_(self, from));
    return rule_give(call,
                     tn_expand(rule_cast(from, tn_tensor_dtype(self)), tn_tensor_shape(self)));
}

static tn_status copy(tn_rule_call *call)
{
    return copy_of(call, "src");
}

static tn_status fill_tensor(tn_rule_call *call)
{
    return copy_of(call, "value");
}

/* ---- conversions ----------------------------------------------------------------------------- */

/* PyTorch's memory formats, by their numbers in files. */
enum { ROW_MAJOR = 1, CHANNELS_LAST, CHANNELS_LAST_3D, PRESERVE };

/* The tensor with its channels, dimension 1, behind the others; back: what that function gave as
 * it was. */
static tn_tensor *channels_moved(tn_tensor *x, bool back)
{
    int64_t dims[TN_MAX_DIMS], ndim = tn_tensor_ndim(x);

    for (int64_t d = 1; d < ndim; d++)
        dims[d] = back ? d - 1 : d + 1;
    dims[0] = 0;
    dims[back ? 1 : ndim - 1] = back ? ndim - 1 : 1;
    return tn_permute(x, (tn_ints){ dims, ndim });
}

/* The tensor with the order of elements that the argument memory_format asks for: itself if it has
 * it and no copy is asked for. */
static tn_tensor *in_format(tn_rule_call *call, tn_tensor *x, bool copy)
{
    int64_t format = rule_has(call, "memory_format") ? rule_int(call, "memory_format") : PRESERVE;
    int64_t ndim = format == CHANNELS_LAST ? 4 : 5;
    tn_tensor *moved;

    if (x == NULL || call->status != TN_OK)
        return NULL;
    if (format == ROW_MAJOR)
        return !copy && tn_tensor_is_contiguous(x) ? x : tn_copy(x);
    if (format != CHANNELS_LAST && format != CHANNELS_LAST_3D)
        return copy ? tn_clone(x) : x;
    if (tn_tensor_ndim(x) != ndim) {
        rule_fail(call, TN_ERR_VALUE,
                  "self: wrong number of dimensions, got %d; expected %lld, because its channels "
                  "come last",
                  (int)tn_tensor_ndim(x), (long long)ndim);
        return NULL;
    }
    moved = channels_moved(x, false);
    if (moved == NULL || (!copy && tn_tensor_is_contiguous(moved)))
        return moved != NULL ? x : NULL;
    moved = tn_copy(moved);
    return moved != NULL ? channels_moved(moved, true) : NULL;
}

static tn_status contiguous(tn_rule_call *call)
{
    return rule_give(call, in_format(call, rule_tensor(call, "self"), false));
}

static tn_status clone(tn_rule_call *call)
{
    return rule_give(call, in_format(call, rule_tensor(call, "self"), true));
}

static tn_status ravel(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_flatten(tn_tensor_is_contiguous(self) ? self : tn_copy(self)));
}

/* Whether PyTorch takes the strides for those of a tensor with its channels last: they grow from
 * the channels over the other dimensions, from the last one, to the first dimension. */
static bool channels_last(const tn_tensor *x)
{
    tn_ints shape = tn_tensor_shape(x), strides = tn_tensor_strides(x);
    int64_t least = 0, ndim = shape.count;

    if ((ndim != 4 && ndim != 5) || strides.at[1] == 0)
        return false;
    for (int64_t i = 0; i < ndim; i++) {
        int64_t d = i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;

        if (shape.at[d] == 0 || strides.at[d] < least || (d == 0 && least == strides.at[1]))
            return false;
        least = shape.at[d] > 1 ? strides.at[d] * shape.at[d] : strides.at[d];
    }
    return true;
}

/* Whether `to` gives a tensor itself, as far as memory_format decides it. */
static bool keeps_format(tn_rule_call *call, const tn_tensor *x)
{
    int64_t format = rule_has(call, "memory_format") ? rule_int(call, "memory_format") : PRESERVE;

    return format == PRESERVE || channels_last(x) == (format != ROW_MAJOR);
}

static tn_status converted(tn_rule_call *call, tn_tensor *self, tn_dtype dtype, bool copy)
{
    tn_tensor *y = call->status == TN_OK ? rule_cast(self, dtype) : NULL;

    if (y != NULL && y == self && !copy && keeps_format(call, y))
        return rule_give(call, y);
    return rule_give(call, in_format(call, y, y == self));
}

static tn_status convert_element_type(tn_rule_call *call)
{
    tn_tensor *a = rule_tensor(call, "a");
    tn_dtype dtype = rule_dtype(call, "dtype");
    tn_tensor *y = call->status == TN_OK ? rule_cast(a, dtype) : NULL;

    return rule_give(call, y != NULL && y == a ? tn_clone(a) : y);
}

static tn_status to(tn_rule_call *call)
{
    return converted(call, rule_tensor(call, "self"), rule_dtype(call, "dtype"),
                     rule_bool(call, "copy"));
}

static tn_status to_copy(tn_rule_call *call)
{
    return converted(call, rule_tensor(call, "self"), rule_dtype(call, "dtype"), true);
}

static tn_status to_other(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *other = rule_tensor(call, "other");

    if (call->status != TN_OK)
        return call->status;
    return converted(call, self, tn_tensor_dtype(other), rule_bool(call, "copy"));
}

static tn_status type_as(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *other = rule_tensor(call, "other");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, rule_cast(self, tn_tensor_dtype(other)));
}

/* ---- rows of numbers ------------------------------------------------------------------------- */

static tn_status logspace(tn_rule_call *call)
{
    tn_dtype dtype = rule_dtype(call, "dtype");
    tn_tensor *exponents = tn_linspace(TN_NONE, rule_float(call, "start"), rule_float(call, "end"),
                                       rule_int(call, "steps"), dtype);
    double base = rule_float(call, "base");

    return rule_give(call, tn_pow(tn_full(exponents, TN_SCALAR_SHAPE, base), exponents));
}

/* a - b cos(2 pi i / n) + c cos(4 pi i / n), a window of `window_length` numbers; n is one less if
 * the window is not periodic. */
static tn_status window(tn_rule_call *call, double a, double b, double c)
{
    int64_t length = rule_int(call, "window_length");
    double n = (double)length - (rule_bool(call, "periodic") ? 0 : 1);
    tn_dtype dtype = rule_dtype(call, "dtype");
    tn_tensor *angle, *y;

    if (call->status != TN_OK)
        return call->status;
    if (dtype == TN_DTYPE_AUTO)
        dtype = tn_default_dtype();
    if (length == 1)
        return rule_give(call, tn_full(TN_NONE, TN_INTS(1), 1, dtype));
    angle = tn_arange(TN_NONE, tn_scalar_int(0), tn_scalar_int(length), tn_scalar_int(1), TN_F64);
    angle = tn_mul_scalar(angle, 2 * 3.14159265358979323846 / n);
    y = tn_add_scalar(tn_mul_scalar(tn_cos(angle), -b), a);
    if (c != 0)
        y = tn_add(y, tn_cos(tn_mul_scalar(angle, 2.0)), tn_scalar_float(c));
    return rule_give(call, tn_cast(y, dtype));
}

static tn_status hann_window(tn_rule_call *call)
{
    return window(call, 0.5, 0.5, 0);
}

static tn_status hamming_window(tn_rule_call *call)
{
    double alpha = rule_float(call, "alpha"), beta = rule_float(call, "beta");

    return window(call, alpha, beta, 0);
}

static tn_status blackman_window(tn_rule_call *call)
{
    return window(call, 0.42, 0.5, 0.08);
}

#define MOST (INT64_C(1) << 40) /* elements of a triangle */

/* The rows and columns of the elements of a triangle of a matrix: those up to the diagonal at
 * `offset`, or those from it on. */
static tn_status triangle(tn_rule_call *call, bool upper)
{
    int64_t rows = rule_int(call, "row"), columns = rule_int(call, "col");
    int64_t offset = rule_int(call, "offset"), first = 0, n = 0, *at, shape[2] = { 2, 0 };

    if (call->status == TN_OK && (rows < 0 || columns < 0 || rows > INT32_MAX ||
                                  columns > INT32_MAX || offset < -INT32_MAX || offset > INT32_MAX))
        return rule_fail(call, TN_ERR_VALUE,
                         "row: out of range, got a matrix of %lld x %lld; expected 0 to %lld",
                         (long long)rows, (long long)columns, (long long)INT32_MAX);
    /* The rows that have elements. */
    if (!upper && offset < 0)
        first = -offset;
    if (upper && rows > columns - offset)
        rows = columns - offset;
    if (columns == 0)
        rows = 0;
    for (int pass = 0; pass < 2 && call->status == TN_OK; pass++) {
        at = pass > 0 ? rule_memory(call, 2 * n, sizeof *at) : NULL;
        shape[1] = n;
        n = 0;
        for (int64_t i = first; i < rows && call->status == TN_OK; i++) {
            int64_t edge = i + offset, from = upper && edge > 0 ? edge : 0;
            int64_t end = !upper && edge + 1 < columns ? edge + 1 : columns;

            for (int64_t j = from; j < end && at != NULL; j++) {
                at[n + j - from] = i;
                at[shape[1] + n + j - from] = j;
            }
            n += end > from ? end - from : 0;
            if (n > MOST)
                rule_fail(call, TN_ERR_VALUE,
                          "row, col: too large, got a matrix of %lld x %lld; expected at most %lld "
                          "elements in the triangle",
                          (long long)rows, (long long)columns, (long long)MOST);
        }
        if (at != NULL)
            return rule_give(call, rule_cast(tn_tensor_from(at, TN_I64, (tn_ints){ shape, 2 }),
                                             rule_dtype(call, "dtype")));
    }
    return call->status;
}

static tn_status tril_indices(tn_rule_call *call)
{
    return triangle(call, false);
}

static tn_status triu_indices(tn_rule_call *call)
{
    return triangle(call, true);
}

static tn_status frequencies(tn_rule_call *call, bool half)
{
    int64_t n = rule_int(call, "n");
    double d = rule_float(call, "d");
    tn_dtype dtype = rule_dtype(call, "dtype");

    return rule_give(call, half ? tn_fft_rfftfreq(TN_NONE, n, d, dtype)
                                : tn_fft_fftfreq(TN_NONE, n, d, dtype));
}

static tn_status fftfreq(tn_rule_call *call)
{
    return frequencies(call, false);
}

static tn_status rfftfreq(tn_rule_call *call)
{
    return frequencies(call, true);
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* A new tensor of `size`, to be filled. */
static tn_tensor *space(tn_rule_call *call)
{
    return tn_full(TN_NONE, rule_ints(call, "size"), 0, rule_dtype(call, "dtype"));
}

static tn_status normal_of_size(tn_rule_call *call)
{
    return rule_give(call,
                     tn_normal(space(call), rule_float(call, "mean"), rule_float(call, "std")));
}

static tn_status randn(tn_rule_call *call)
{
    return rule_give(call, tn_normal(space(call)));
}

static tn_status rand_(tn_rule_call *call)
{
    return rule_give(call, tn_uniform(space(call)));
}

static tn_status randn_like(tn_rule_call *call)
{
    return rule_give(call, tn_normal(like(call, tn_scalar_int(0))));
}

static tn_status rand_like(tn_rule_call *call)
{
    return rule_give(call, tn_uniform(like(call, tn_scalar_int(0))));
}

static tn_status randint(tn_rule_call *call)
{
    return rule_give(call, tn_randint(space(call), rule_int(call, "low"), rule_int(call, "high")));
}

static tn_status randint_like(tn_rule_call *call)
{
    return rule_give(call, tn_randint(like(call, tn_scalar_int(0)), rule_int(call, "low"),
                                      rule_int(call, "high")));
}

static tn_status randperm(tn_rule_call *call)
{
    return rule_give(
        call, rule_cast(tn_randperm(TN_NONE, rule_int(call, "n")), rule_dtype(call, "dtype")));
}

/* 1 with one probability for all elements. */
static tn_status bernoulli_p(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    double p = rule_float(call, "p");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_bernoulli(tn_full(self, tn_tensor_shape(self), p)));
}

#define NUMBERS "dtype=None, generator=None)"
#define WINDOW "(window_length, periodic=True, alpha=0.54, beta=0.46, dtype=None)"

const tn_rule_def rules_make[] = {
    { "aten.full(size, fill_value, dtype=None)", .call = full },
    { "aten.zeros(size, dtype=None)", .text = "full(shape=size, value=0, dtype=dtype)" },
    { "aten.ones(size, dtype=None)", .text = "full(shape=size, value=1, dtype=dtype)" },
    /* What is empty is overwritten; zeros make the result of a wrong program repeatable. */
    { "aten.empty(size, dtype=None)", .text = "full(shape=size, value=0, dtype=dtype)" },
    { "aten.empty_strided(size, stride=*, dtype=None)",
      .text = "full(shape=size, value=0, dtype=dtype)" },
    { "aten.empty_permuted(size, physical_layout=*, dtype=None)",
      .text = "full(shape=size, value=0, dtype=dtype)" },
    { "aten.scalar_tensor(s, dtype=None)", .text = "full(shape=[], value=s, dtype=dtype)" },
    { "aten.new_full(self, size, fill_value, dtype=None)",
      .text = "full(self, shape=size, value=fill_value, dtype=dtype)" },
    { "aten.new_zeros(self, size, dtype=None)",
      .text = "full(self, shape=size, value=0, dtype=dtype)" },
    { "aten.new_ones(self, size, dtype=None)",
      .text = "full(self, shape=size, value=1, dtype=dtype)" },
    { "aten.new_empty(self, size, dtype=None)",
      .text = "full(self, shape=size, value=0, dtype=dtype)" },
    { "aten.new_empty_strided(self, size, stride=*, dtype=None)",
      .text = "full(self, shape=size, value=0, dtype=dtype)" },
    { "aten.zeros_like(self, dtype=None)", .call = zeros_like },
    { "aten.empty_like(self, dtype=None)", .call = zeros_like },
    { "aten.ones_like(self, dtype=None)", .call = ones_like },
    { "aten.full_like(self, fill_value, dtype=None)", .call = full_like },
    { "aten.copy(self, src)", .call = copy, .copies = true },
    { "aten.fill.Tensor(self, value)", .call = fill_tensor, .copies = true },
    { "aten.clone(self, memory_format=None)", .call = clone },
    { "aten.contiguous(self, memory_format=1)", .call = contiguous },
    { "aten.ravel(self)", .call = ravel },
    { "aten.to(self, dtype=None, copy=False, memory_format=None)", .call = to },
    { "aten.to.other(self, other, copy=False, memory_format=None)", .call = to_other },
    { "aten._to_copy(self, dtype=None, memory_format=None)", .call = to_copy },
    { "aten.type_as(self, other)", .call = type_as },
    { "aten._cast_Float(self)", .text = "cast(self, dtype='float32')" },
    { "aten._cast_Double(self)", .text = "cast(self, dtype='float64')" },
    { "aten._cast_Half(self)", .text = "cast(self, dtype='float16')" },
    { "aten._cast_Long(self)", .text = "cast(self, dtype='int64')" },
    { "aten._cast_Int(self)", .text = "cast(self, dtype='int32')" },
    { "prims.convert_element_type(a, dtype)", .call = convert_element_type },
    { "aten.arange.default(end, dtype=None)", .text = "arange(start=0, end=end, dtype=dtype)" },
    { "aten.arange.start(start, end, dtype=None)",
      .text = "arange(start=start, end=end, dtype=dtype)" },
    { "aten.arange.start_step(start, end, step=1, dtype=None)",
      .text = "arange(start=start, end=end, step=step, dtype=dtype)" },
    { "aten.linspace(start, end, steps, dtype=None)",
      .text = "linspace(start=start, end=end, steps=steps, dtype=dtype)" },
    { "aten.logspace(start, end, steps, base=10.0, dtype=None)", .call = logspace },
    { "aten.eye(n, m=None, dtype=None)", .text = "eye(n=n, m=m, dtype=dtype)" },
    { "aten.hann_window" WINDOW, .call = hann_window },
    { "aten.hamming_window" WINDOW, .call = hamming_window },
    { "aten.blackman_window" WINDOW, .call = blackman_window },
    { "aten.tril_indices(row, col, offset=0, dtype='int64')", .call = tril_indices },
    { "aten.triu_indices(row, col, offset=0, dtype='int64')", .call = triu_indices },
    { "aten.fft_fftfreq(n, d=1.0, dtype=None)", .call = fftfreq },
    { "aten.fft_rfftfreq(n, d=1.0, dtype=None)", .call = rfftfreq },
    { "aten.randn(size, " NUMBERS, .call = randn },
    { "aten.rand(size, " NUMBERS, .call = rand_ },
    { "aten.randn_like(self, " NUMBERS, .call = randn_like },
    { "aten.rand_like(self, " NUMBERS, .call = rand_like },
    { "aten.randint(high, size, low=0, dtype='int64', generator=None)", .call = randint },
    { "aten.randint_like(self, high, low=0, " NUMBERS, .call = randint_like },
    { "aten.randperm(n, dtype='int64', generator=None)", .call = randperm },
    { "aten.bernoulli.default(self, generator=None)", .text = "bernoulli(self)" },
    { "aten.bernoulli.p(self, p, generator=None)", .call = bernoulli_p },
    { "aten.normal.float_float(mean, std, size, " NUMBERS, .call = normal_of_size },
    { "aten.normal_functional(self, mean=0.0, std=1.0, generator=None)",
      .text = "normal(self, mean=mean, std=std)" },
    { "aten.normal(self, mean=0.0, std=1.0, generator=None)",
      .text = "normal(self, mean=mean, std=std)" },
    { "aten.uniform(self, from=0.0, to=1.0, generator=None)",
      .text = "uniform(self, low=from, high=to)" },
    { "aten.exponential(self, lambd=1.0, generator=None)",
      .text = "exponential(self, lambd=lambd)" },
    { "aten.multinomial(self, num_samples, replacement=False, generator=None)",
      .text = "multinomial(self, num_samples=num_samples, replacement=replacement)" },
    { .function = NULL },
};
