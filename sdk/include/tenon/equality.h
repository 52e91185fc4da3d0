/* SPDX-License-Identifier: MIT
 *
 * Whether two tensors are equal or close, as an int. The operators tn_eq and tn_isclose compare
 * element by element instead.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_EQUALITY_H
#define TENON_EQUALITY_H

#include <tenon/ops.h>

TN_BEGIN_DECLS

/* Returns 1 if all elements of `mask`, a tensor of bool, are true; 0 if not; -1 and records a
 * failure on error. [null-through] */
TN_ATTR(unused) static inline int tn_equality_of(tn_tensor *mask)
{
    tn_tensor *all = mask != NULL ? tn_all(mask) : NULL;
    double value = all != NULL ? tn_tensor_item(all) : -1.0;

    return value == 1.0 ? 1 : value == 0.0 ? 0 : -1;
}

/* Returns 1 if `a` and `b` have the same shape and equal elements; 0 if not; -1 and records a
 * failure on error. NaN is not equal to NaN. Different dtypes are converted as tn_eq converts them.
 * [null-through] */
TN_ATTR(unused) static inline int tn_equal(tn_tensor *a, tn_tensor *b)
{
    uint64_t scope;
    int equal;

    if (a == NULL || b == NULL)
        return -1;
    if (tn_tensor_ndim(a) != tn_tensor_ndim(b))
        return 0;
    for (int64_t i = 0; i < tn_tensor_ndim(a); i++)
        if (tn_tensor_size(a, i) != tn_tensor_size(b, i))
            return 0;
    scope = tn_scope_begin();
    equal = tn_equality_of(tn_eq(a, b));
    tn_scope_end(scope);
    return equal;
}

/* Returns 1 if |a - b| <= atol + rtol |b| for all elements, broadcast together; 0 if not; -1 and
 * records a failure on error. PyTorch's tolerances are 1e-5 and 1e-8. NaN is not close to NaN;
 * tn_isclose has an option for it. Both tensors must have the same dtype. [null-through] */
TN_ATTR(unused)
static inline int tn_allclose(tn_tensor *a, tn_tensor *b, double rtol, double atol)
{
    uint64_t scope;
    int close;

    if (a == NULL || b == NULL)
        return -1;
    scope = tn_scope_begin();
    close = tn_equality_of(tn_isclose(a, b, rtol, atol));
    tn_scope_end(scope);
    return close;
}

TN_END_DECLS
#endif
