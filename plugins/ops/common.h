/* SPDX-License-Identifier: MIT
 *
 * Helpers that several families of operators use: inference of shapes, dims as PyTorch counts them,
 * small steps of derivatives. Error messages of inference do not name the operator, because the
 * core puts its name in front of them. */
#ifndef TN_OPS_COMMON_H
#define TN_OPS_COMMON_H

#include <tenon/plugin.h>

#include <math.h>
#include <string.h>

#include "scalar.h"
#include "schema.h"

/* ---- texts: shapes for error messages, written to a buffer of the caller ---------------- */
enum { TN__TEXT = 200 };
const char *tn__common_text(char *out, tn_ints ints);

static inline tn_ints tn__common_shape(const tn_view *view)
{
    tn_ints row = { view->shape, view->ndim };
    return row;
}

/* ---- inference ------------------------------------------------------------------ */
/* Returns 1 if the view is row-major or has no elements, 2 if it is packed in another order, 0 if
 * it is not packed. */
int tn__common_layout(const tn_view *view);
/* Gives an output the strides of a view. */
void tn__common_take_strides(tn_meta *meta, const tn_view *view);
/* Gives output `index` the shape of input `i` and the given dtype. If input `i` is packed in
 * another order than row-major, the output gets its strides, too. */
void tn__common_like(tn_infer *infer, int32_t index, int64_t i, tn_dtype dtype);
/* Sets dtype and shape of an output that is row-major. The core refuses a shape with too many
 * dimensions; those beyond TN_MAX_DIMS are not stored. */
void tn__common_plain(tn_meta *meta, tn_dtype dtype, tn_ints shape);
/* Fails with an error that names both tensors if a and b have different dtypes. b may be NULL
 * (absent). */
tn_status tn__common_same_dtype(const tn_view *a, const char *a_name, const tn_view *b,
                                const char *b_name);
/* Fails unless an input has this shape, which the error calls the shape of `whose`. view may be
 * NULL (absent). */
tn_status tn__common_same_shape(const tn_view *view, const char *name, tn_ints shape,
                                const char *whose);
/* Complete inference functions for common kinds of operators. */
tn_status tn__common_unary(tn_infer *infer); /* elementwise, one input */
/* Two inputs of the same shape and dtype: a gradient and the tensor that it belongs to. */
tn_status tn__common_pair(tn_infer *infer);
/* Fails unless the inputs promote to one of the dtypes of `mask`, which the error calls `expected`:
 * for operators that accept other dtypes only beside these. */
tn_status tn__common_promoted(const tn_infer *infer, uint64_t mask, const char *expected);
/* broadcast.c: elementwise, two inputs that broadcast; those that promote to a float dtype. */
tn_status tn__broadcast_two(tn_infer *infer);
tn_status tn__broadcast_two_float(tn_infer *infer);
/* Gives output 0 the shape to which all inputs that are given broadcast together. */
tn_status tn__broadcast_all(tn_infer *infer);
/* Like tn__broadcast_all(). If all packed inputs with the shape of the result have the same
 * order of strides, and it is not row-major, the result gets this order. */
tn_status tn__broadcast_in_order(tn_infer *infer);

/* Makes output 0 a view of in[0] with `ndim` dimensions. The caller then sets shape and strides. */
tn_status tn__common_view_of(tn_infer *infer, int32_t ndim);

/* Returns the dtype in which a reduction computes: its option `asked`, or the input's dtype if that
 * option is TN_DTYPE_AUTO. The core casts the input to it first. */
tn_dtype tn__common_asked(tn_infer *infer, tn_dtype asked);
/* Converts `dim`, which counts from the end if negative, to 0 .. ndim - 1. A tensor of 0 dimensions
 * counts as having one. Fails if `dim` is out of range. */
tn_status tn__common_dim(int64_t dim, int32_t ndim, int32_t *out);
/* Sets reduced[d] for each dim in `dims`, or for all if `dims` is empty. Fails if a dim is
 * repeated. */
tn_status tn__common_dims(tn_ints dims, int32_t ndim, bool *reduced);
/* Checks `state`, an optional tensor of shape [3] with the state of a random generator: seed, block
 * and lane. If it is present, the option `seed` must be 0. */
tn_status tn__common_state(const tn_view *state, int64_t seed);
/* Sets the shape of `out` to that of `in` after a reduction over the flagged dims. */
void tn__common_reduced(const tn_view *in, const bool *reduced, bool keepdim, tn_meta *out);
/* Inference of a maximum or minimum over `dims`. Fails if a reduced dimension has size 0, even if
 * the result would have no elements. */
tn_status tn__common_extreme(tn_infer *infer, tn_ints dims, bool keepdim, tn_dtype dtype);
/* Sums and products of numbers from 0 on, INT64_MAX on overflow: sizes of tensors without memory,
 * and options, may be near it. */
static inline int64_t tn__common_plus(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
static inline int64_t tn__common_times(int64_t a, int64_t b)
{
    int64_t product;

    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
/* Returns the number of elements of a shape, INT64_MAX on overflow. */
int64_t tn__common_count(tn_ints shape);
/* Returns whether sums of x's elements are computed in float32 because its dtype is shorter. */
static inline bool tn__common_narrow(const tn_tensor *x)
{
    tn_dtype dtype = tn_tensor_dtype(x);

    return dtype == TN_F16 || dtype == TN_BF16;
}
/* Computes strides with which `view` gets another shape without a copy. Returns false if no such
 * strides exist. */
bool tn__common_view_strides(const tn_view *view, tn_ints shape, int64_t *strides);
/* Fails if `index` has elements but dimension `dim` of x has size 0. */
tn_status tn__common_index_into(const tn_view *x, int32_t dim, const tn_view *index);
/* Writes `wanted` to `shape` with its -1, if there is one, replaced so that the number of elements
 * is that of `view`. Fails if there is no such shape. */
tn_status tn__common_complete(const tn_view *view, tn_ints wanted, int64_t *shape);

/* ---- decompositions ---- */
/* For operators that are always decomposed: the decomposition determines the shapes of the outputs.
 * Their dtype is the promoted one, or that of in[0] if inputs are not promoted. */
tn_status tn__common_open(tn_infer *infer);
/* Returns a tensor of zeros with the given shape and the dtype and device of `like`. */
tn_tensor *tn__common_zeros(tn_tensor *like, tn_ints shape);
/* Like tn__common_zeros(), but not to be written: all elements share the memory of a single
 * zero. */
tn_tensor *tn__common_nothing(tn_tensor *like, tn_ints shape);
/* Returns the gradient of in[0] for an operator that reads elements of in[0] at `index` along
 * `dim`: adds gy at these indices, to zeros or to the sum of the gradients from other uses of
 * in[0]. */
tn_tensor *tn__common_scattered(const tn_derive *d, tn_tensor *index, tn_tensor *gy, int64_t dim);
/* Expands a vector of indices along `dim`, so that each element of `shape` has an index. */
tn_tensor *tn__common_spread(tn_tensor *index, tn_ints shape, int32_t dim);
/* Copies `count` values of the host to a new vector on the device of `like`. */
tn_tensor *tn__common_placed(const void *values, int64_t count, tn_dtype dtype, tn_tensor *like);
/* Stores the only result of a decomposition or derivative, which is NULL after an error, and
 * returns the status. */
static inline tn_status tn__common_given(tn_tensor **out, tn_tensor *result)
{
    out[0] = result;
    return result != NULL ? TN_OK : tn_error_last_code();
}
/* Returns y, or a copy if it has the memory of x: for an operator whose result is no view. */
static inline tn_tensor *tn__common_apart(tn_tensor *y, tn_tensor *x)
{
    return y != NULL && tn_tensor_shares_storage(y, x) ? tn_copy(y) : y;
}
/* Returns whether an optional number was given; NaN stands for None. */
static inline bool tn__given_number(double value)
{
    return value == value;
}

/* ---- derivatives ---- */
static inline bool tn__needs(const tn_derive *d, int i)
{
    return d->need >> i & 1;
}
/* Fails if an input is complex: for operators that support complex numbers, but whose derivative
 * does not. */
tn_status tn__common_real(const tn_derive *d);
static inline bool tn__is_int(tn_dtype dtype)
{
    return (TN_MASK_INT & TN_BIT(dtype)) != 0;
}
/* Returns whether an int64 can hold the value exactly; false also for -2^63. */
static inline bool tn__is_whole(double value)
{
    return value == floor(value) && fabs(value) < 0x1p63;
}
static inline bool tn__is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}
/* Returns the dtype of the real and imaginary part for a complex dtype; other dtypes are returned
 * unchanged. */
static inline tn_dtype tn__common_part(tn_dtype dtype)
{
    return dtype == TN_C64 ? TN_F32 : dtype == TN_C128 ? TN_F64 : dtype;
}
/* Returns the conjugate of a complex tensor and any other tensor unchanged. Derivatives multiply gy
 * by conjugates. */
tn_tensor *tn__common_conj(tn_tensor *x);
/* Returns gy times the slope (chain rule). */
static inline tn_tensor *tn__common_chain(tn_tensor *gy, tn_tensor *slope)
{
    return tn_mul(gy, tn__common_conj(slope));
}
static inline tn_ints tn__common_in_shape(const tn_derive *d, int i)
{
    tn_ints row = { d->in_meta[i].shape, d->in_meta[i].ndim };
    return row;
}
/* Returns tn_derive.sum, or NULL if the host is older than this member. */
static inline tn_tensor *tn__common_sum(const tn_derive *d)
{
    return TN_HAS(d, tn_derive, sum) ? d->sum : NULL;
}
/* Reshapes the gradient of a reduction's result to the shape that it has with keepdim. `shape` is
 * the shape of the reduction's input. */
tn_tensor *tn__common_unreduced(tn_tensor *gradient, tn_ints shape, tn_ints dims, bool keepdim);

/* ---- definitions ---- */
/* Defines the operator `name` of the schema; the arguments set the other members of tn_op_def:
 * TN__OP(relu, .infer = ..., .derive = ...). */
#define TN__OP(name_, ...)                                                                         \
    const tn_op_def tn__op_##name_ = { TN_HEAD(tn_op_def), TN_SCHEMA_##name_, __VA_ARGS__ }
#define TN__DECLARE_OP(name) extern const tn_op_def tn__op_##name;
TN_SCHEMA_OPS(TN__DECLARE_OP)
#undef TN__DECLARE_OP

/* Decompositions of primitives for complex numbers into operators on the real and imaginary parts
 * (complex_parts.c). */
#define TN__PARTS(name) .decompose = tn__complex_parts_##name, .decompose_dtypes = TN_MASK_COMPLEX
#define TN__PARTS_OP(name) tn_status tn__complex_parts_##name(const tn_decompose *call);
/* clang-format off */
#define TN__PARTS_OPS(X) \
    X(add) X(sub) X(mul) X(div) X(eq) X(neg) X(add_scalar) X(mul_scalar) X(abs) \
    X(sqrt) X(pow) X(exp) X(log) X(log2) X(log10) X(log1p) X(expm1) X(sigmoid) \
    X(sin) X(cos) X(sinh) X(cosh) X(tanh) X(tan) X(asin) X(acos) X(atan) \
    X(sum) X(cumsum) X(prod) X(cumprod) X(bmm) X(nonzero) X(where) X(gather) X(scatter) \
    X(scatter_add) X(narrow_grad)
/* clang-format on */
TN__PARTS_OPS(TN__PARTS_OP)
#undef TN__PARTS_OP

#endif
