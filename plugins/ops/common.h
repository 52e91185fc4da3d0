/* SPDX-License-Identifier: MIT
 *
 * What the families of operators share: inference of shapes, dims as PyTorch reads them, small
 * steps of derivatives. Error texts of inference do not name the operator: the core prefixes its
 * name. */
#ifndef TN_OPS_COMMON_H
#define TN_OPS_COMMON_H

#include <tenon/plugin.h>

#include <math.h>
#include <string.h>

#include "scalar.h"
#include "schema.h"

/* ---- texts: shapes for error messages, in a buffer of the caller ---------------- */
enum { TN__TEXT = 200 };
const char *tn__common_text(char *out, tn_ints ints);

static inline tn_ints tn__common_shape(const tn_view *view)
{
    tn_ints row = { view->shape, view->ndim };
    return row;
}

/* ---- inference ------------------------------------------------------------------ */
/* Output `index` like input `i`: shape, and strides where they are packed in some order. */
void tn__common_like(tn_infer *infer, int32_t index, int64_t i, tn_dtype dtype);
/* Row-major, of a given shape. */
void tn__common_plain(tn_meta *meta, tn_dtype dtype, tn_ints shape);
/* An error that names both where a and b (NULL: absent) have different dtypes. */
tn_status tn__common_same_dtype(const tn_view *a, const char *a_name, const tn_view *b,
                                const char *b_name);
/* Usual inferences of whole operators. */
tn_status tn__common_unary(tn_infer *infer);  /* one input, elementwise */
tn_status tn__common_binary(tn_infer *infer); /* two, broadcast */
/* Two of one shape and dtype: a gradient and what it belongs to. */
tn_status tn__common_pair(tn_infer *infer);
/* All present inputs broadcast together to output 0. */
tn_status tn__common_broadcast(tn_infer *infer);
tn_status tn__common_view_of(tn_infer *infer,
                             int32_t ndim); /* output 0 as a view; shape and strides follow */

/* What the dtype option of a reduction asks for: the input is cast to it first. */
tn_dtype tn__common_asked(tn_infer *infer, tn_dtype asked);
/* A dim of `ndim` (0-d counts as 1), from the end when negative. */
tn_status tn__common_dim(int64_t dim, int32_t ndim, int32_t *out);
/* A set of dims as flags; empty: all. Repeated ones are refused. */
tn_status tn__common_dims(tn_ints dims, int32_t ndim, bool *reduced);
/* The optional state of a generator, [2]: with it the option `seed` must be 0. */
tn_status tn__common_state(const tn_view *state, int64_t seed);
/* The shape after a reduction. */
void tn__common_reduced(const tn_view *in, const bool *reduced, bool keepdim, tn_meta *out);
/* The inference of an extreme: there is none of no elements, however many results are wanted. */
tn_status tn__common_extreme(tn_infer *infer, tn_ints dims, bool keepdim, tn_dtype dtype);
int64_t tn__common_count(tn_ints shape);
/* Whether x is of a type whose sums are computed in float32. */
static inline bool tn__common_narrow(const tn_tensor *x)
{
    tn_dtype dtype = tn_tensor_dtype(x);

    return dtype == TN_F16 || dtype == TN_BF16;
}
/* Strides that give `view` another shape without a copy; false where that cannot be. */
bool tn__common_view_strides(const tn_view *view, tn_ints shape, int64_t *strides);
/* A shape with -1 in it, completed. */
tn_status tn__common_index_into(const tn_view *x, int32_t dim, const tn_view *index);
tn_status tn__common_complete(const tn_view *view, tn_ints wanted, int64_t *shape);

/* ---- decompositions ---- */
/* For operators that are always decomposed: all outputs have in[0]'s dtype, shapes are left
 * open. */
tn_status tn__common_open(tn_infer *infer);
/* Zeros of a shape, dtype and device as `like` has them. */
tn_tensor *tn__common_zeros(tn_tensor *like, tn_ints shape);
/* The same without memory of its own: one zero, expanded. */
tn_tensor *tn__common_nothing(tn_tensor *like, tn_ints shape);
/* The gradient of in[0] where gy goes to `index` along `dim`, added to what other uses gave. */
tn_tensor *tn__common_scattered(const tn_derive *d, tn_tensor *index, tn_tensor *gy, int64_t dim);
/* A row of indices as an index along `dim` for each element of `shape`. */
tn_tensor *tn__common_spread(tn_tensor *index, tn_ints shape, int32_t dim);
/* A row of `count` values of the host, on the device of `like`. */
tn_tensor *tn__common_placed(const void *values, int64_t count, tn_dtype dtype, tn_tensor *like);
/* What a decomposition or a derivative of one result gives back. */
static inline tn_status tn__common_given(tn_tensor **out, tn_tensor *result)
{
    out[0] = result;
    return result != NULL ? TN_OK : tn_error_last_code();
}
/* Whether an option is there. */
static inline bool tn__given_number(double value)
{
    return value == value;
}

/* ---- derivatives ---- */
static inline bool tn__needs(const tn_derive *d, int i)
{
    return d->need >> i & 1;
}
/* Complex tensors compute, but their derivatives (conjugates) are not there. */
tn_status tn__common_real(const tn_derive *d);
static inline bool tn__is_int(tn_dtype dtype)
{
    return (TN_MASK_INT & TN_BIT(dtype)) != 0;
}
/* Whether an int64 holds it without loss. */
static inline bool tn__is_whole(double value)
{
    return value == floor(value) && fabs(value) < 0x1p63;
}
static inline bool tn__is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}
/* The dtype of the parts of complex numbers; of others their own. */
static inline tn_dtype tn__common_part(tn_dtype dtype)
{
    return dtype == TN_C64 ? TN_F32 : dtype == TN_C128 ? TN_F64 : dtype;
}
/* What a derivative of complex numbers multiplies with. */
tn_tensor *tn__common_conj(tn_tensor *x);
/* gy times the slope, as the chain rule has it. */
static inline tn_tensor *tn__common_chain(tn_tensor *gy, tn_tensor *slope)
{
    return tn_mul(gy, tn__common_conj(slope));
}
static inline tn_ints tn__common_in_shape(const tn_derive *d, int i)
{
    tn_ints row = { d->in_meta[i].shape, d->in_meta[i].ndim };
    return row;
}
/* tn_derive.sum of a host that may be older than it. */
static inline tn_tensor *tn__common_sum(const tn_derive *d)
{
    return TN_HAS(d, tn_derive, sum) ? d->sum : NULL;
}
/* A gradient after a reduction, as it was with keepdim. */
tn_tensor *tn__common_unreduced(tn_tensor *gradient, tn_ints shape, tn_ints dims, bool keepdim);

/* ---- definitions ---- */
/* The operator `name` of the schema, and how it is computed: TN__OP(relu, .infer = ..., ...). */
#define TN__OP(name_, ...)                                                                         \
    const tn_op_def tn__op_##name_ = { TN_HEAD(tn_op_def), TN_SCHEMA_##name_, __VA_ARGS__ }
#define TN__DECLARE_OP(name) extern const tn_op_def tn__op_##name;
TN_SCHEMA_OPS(TN__DECLARE_OP)
#undef TN__DECLARE_OP

/* Primitives of complex numbers by their parts (complex_parts.c). */
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
