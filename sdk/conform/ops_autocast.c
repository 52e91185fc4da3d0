/* SPDX-License-Identifier: MIT
 *
 * Checks by calls that the flags TN_OP_AUTOCAST_LOW and TN_OP_AUTOCAST_HOST_LOW of an operator are
 * right: with inputs that were rounded to the dtype of a region, a call that works with float32
 * must also work, and its results must be close to those with float32. The other flags for autocast
 * need no check, because they cast to nothing but float32. The calls run on the reference. */
#include "ops.h"

#include <math.h>

enum { SMALL = 16 }; /* products of up to 200 such numbers are in the range of float16 */

/* Returns the largest absolute value, 0 if there are no elements, NaN on failure. */
static double largest(tn_tensor *x)
{
    double value = NAN;

    if (tn_tensor_numel(x) == 0)
        return 0;
    x = tn_amax(tn_abs(tn_cast(tn_detach(x), TN_F64)));
    return x != NULL && tn_tensor_copy_out(x, &value, sizeof value) == TN_OK ? value : NAN;
}

static bool is_floating(tn_tensor *x)
{
    return x != NULL && x != TN_NONE && (TN_BIT(tn_tensor_dtype(x)) & TN_MASK_FLOAT) != 0;
}

/* Whether all floating inputs are finite and small. */
static bool has_small_inputs(const conform_case *one, const attempt *a)
{
    for (int64_t i = 0; i < one->n_in; i++)
        if (is_floating(a->in[i]) && !(largest(a->in[i]) <= SMALL))
            return false;
    return true;
}

/* Compares a result in a region with the one outside. */
static bool close_enough(subject *s, const conform_case *one, tn_dtype low, tn_tensor *plain,
                         tn_tensor *cast)
{
    double size = largest(plain), gap, most = low == TN_BF16 ? 1.0 / 16 : 1.0 / 64;

    if (!is_floating(plain) || !is_floating(cast) || !isfinite(size))
        return true;
    gap = largest(tn_sub(tn_cast(tn_detach(plain), TN_F64), tn_cast(tn_detach(cast), TN_F64)));
    if (gap <= most * (1 + size))
        return true;
    return conform_fail(s->c,
                        "case %s: TN_OP_AUTOCAST_LOW: with inputs in %s the results differ by %g "
                        "from those of float32, whose largest is %g; expected TN_OP_AUTOCAST_F32",
                        one->name, tn_dtype_name(low), gap, size);
}

static bool check_region(subject *s, const conform_case *one, tn_dtype from, tn_dtype low)
{
    const tn_device *reference = tn_device_find("reference");
    attempt a, b;
    bool well = true;

    if (conform_inputs(one, from, TN_F32, false, reference, CONFORM_AS_GIVEN, false, &a) != TN_OK ||
        conform_call(one, reference, 7, &a) != TN_OK) {
        tn_error_clear();
        return true; /* not with float32 */
    }
    s->c->checks++;
    if (conform_inputs(one, from, low, false, reference, CONFORM_AS_GIVEN, false, &b) != TN_OK ||
        conform_call(one, reference, 7, &b) != TN_OK)
        return conform_fail(s->c,
                            "case %s: TN_OP_AUTOCAST_LOW: it works with float32, but not with the "
                            "inputs in %s that autocast gives it: %s; expected this dtype in the "
                            "masks of its inputs, or no such flag",
                            one->name, tn_dtype_name(low), tn_error_text());
    for (int32_t k = 0; k < one->def->n_outputs && well; k++)
        if (has_small_inputs(one, &a) && !conform_jumps(one))
            well = close_enough(s, one, low, a.out[k], b.out[k]);
    return well;
}

bool conform_autocast_case(subject *s, const conform_case *one, tn_dtype from)
{
    bool casts = (one->def->flags & (TN_OP_AUTOCAST_LOW | TN_OP_AUTOCAST_HOST_LOW)) != 0;
    static const tn_dtype regions[] = { TN_BF16, TN_F16 };
    bool well = true;

    for (int i = 0; i < 2 && well && casts && (from == TN_F32 || from == TN_F64); i++) {
        uint64_t scope = tn_scope_begin();

        well = check_region(s, one, from, regions[i]);
        tn_error_clear();
        tn_scope_end(scope);
    }
    return well;
}
