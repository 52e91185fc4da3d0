/* SPDX-License-Identifier: MIT
 *
 * Numbers among the options of operators: what a tensor of a type can take, and arithmetic of
 * them. */
#ifndef TN_OPS_SCALAR_H
#define TN_OPS_SCALAR_H

#include <math.h>
#include <string.h>

#include <tenon/plugin.h>

enum { TN__SCALAR_TEXT = 64 };
/* The number for a message: 9007199254740993, 0.5, 1+2j. `out` has TN__SCALAR_TEXT bytes. */
const char *tn__scalar_text(char *out, tn_scalar scalar);

/* TN_OK for a number of a known kind; an error that names the argument. */
tn_status tn__scalar_check(tn_scalar scalar, const char *name);
/* TN_OK where an element of `dtype` can hold the number, of which it drops a fraction; an error
 * that names the argument where that is out of range, or complex and the type is not. */
tn_status tn__scalar_fits(tn_dtype dtype, tn_scalar scalar, const char *name);
/* The same of a factor of integers: of uint8 a negative one subtracts. Floats take any, but no
 * complex one. */
tn_status tn__scalar_factor(tn_dtype dtype, tn_scalar scalar, const char *name);
/* The type of the result of a tensor and a number, as PyTorch has it; but a whole number of kind
 * FLOAT leaves integers what they are. */
tn_dtype tn__scalar_result(tn_dtype dtype, tn_scalar scalar);

/* A number as a tensor of 0 dimensions, dtype and device as `like` has them. What is too large for
 * a float type becomes infinite. */
tn_tensor *tn__scalar_number(tn_tensor *like, tn_scalar value);
#define tn__scalar_number(like, value) tn__scalar_number(like, TN_SCALAR(value))

/* Whether the number is this integer. */
bool tn__scalar_is(tn_scalar scalar, int64_t number);
/* Whether an int64 (of UINT a uint64) holds it without loss. */
bool tn__scalar_whole(tn_scalar scalar);
/* Whether a bound is given: neither NONE nor NaN. */
bool tn__scalar_given(tn_scalar scalar);
/* Whether it has an imaginary part. */
static inline bool tn__scalar_imaginary(tn_scalar scalar)
{
    return tn_scalar_imag(scalar) != 0;
}

/* -a, a - b, its conjugate. Integers wrap around. */
tn_scalar tn__scalar_neg(tn_scalar a);
tn_scalar tn__scalar_minus(tn_scalar a, tn_scalar b);
tn_scalar tn__scalar_conj(tn_scalar a);

#endif
