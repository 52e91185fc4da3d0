/* SPDX-License-Identifier: MIT
 *
 * Numbers among the options of operators (tn_scalar): which numbers fit a dtype, and arithmetic. */
#ifndef TN_OPS_SCALAR_H
#define TN_OPS_SCALAR_H

#include <math.h>
#include <string.h>

#include <tenon/plugin.h>

enum { TN__SCALAR_TEXT = 64 };
/* Writes the number for a message, such as 9007199254740993, 0.5 or 1+2j, to `out`, which must have
 * TN__SCALAR_TEXT bytes, and returns `out`. */
const char *tn__scalar_text(char *out, tn_scalar scalar);

/* Returns TN_OK if the number is of a known kind; if not, fails with an error that names the
 * argument. */
tn_status tn__scalar_check(tn_scalar scalar, const char *name);
/* Returns TN_OK if an element of `dtype` can hold the number; integers may drop its fraction.
 * Fails, naming the argument, if the number is out of range, or is complex and `dtype` is not. bool
 * can hold any number. */
tn_status tn__scalar_fits(tn_dtype dtype, tn_scalar scalar, const char *name);
/* Like tn__scalar_fits(), for a factor. Any real factor fits a float dtype or bool. A negative
 * factor fits uint8 if its absolute value does, because arithmetic wraps around. */
tn_status tn__scalar_factor(tn_dtype dtype, tn_scalar scalar, const char *name);
/* Returns the dtype of the result of a tensor and a number, as in PyTorch: it depends on the kind
 * of the number, never on its value. Integers become the default float dtype with 2.0 as with 2.5.
 */
tn_dtype tn__scalar_result(tn_dtype dtype, tn_scalar scalar);
/* Returns a factor for tensors of this dtype, which stay of this dtype: of 2.0 for integers 2. */
tn_scalar tn__scalar_in(tn_dtype dtype, tn_scalar scalar);

/* Returns a 0-d tensor of this number, with the dtype and device of `like`. A number too large for
 * a float dtype becomes infinite. */
tn_tensor *tn__scalar_number(tn_tensor *like, tn_scalar value);
#define tn__scalar_number(like, value) tn__scalar_number(like, TN_SCALAR(value))

/* Returns whether the number equals `number`. */
bool tn__scalar_is(tn_scalar scalar, int64_t number);
/* Returns whether an int64 can hold the number exactly (a uint64 if it is of kind UINT). */
bool tn__scalar_whole(tn_scalar scalar);
/* Returns whether an optional bound is given: it is neither NONE nor NaN. */
bool tn__scalar_given(tn_scalar scalar);
/* Returns whether the imaginary part is not zero. */
static inline bool tn__scalar_imaginary(tn_scalar scalar)
{
    return tn_scalar_imag(scalar) != 0;
}

/* -a, a - b and the conjugate of a. Integers wrap around. */
tn_scalar tn__scalar_neg(tn_scalar a);
tn_scalar tn__scalar_minus(tn_scalar a, tn_scalar b);
tn_scalar tn__scalar_conj(tn_scalar a);

#endif
