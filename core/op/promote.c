/* SPDX-License-Identifier: MIT
 *
 * Type promotion between the inputs of a call, and whether a dtype may be written into another:
 * PyTorch's rules. */
#include "core/op/private.h"

static bool is_float(tn_dtype dtype)
{
    return (TN_MASK_FLOAT & TN_BIT(dtype)) != 0;
}

static bool is_complex(tn_dtype dtype)
{
    return (TN_MASK_COMPLEX & TN_BIT(dtype)) != 0;
}

/* Combines `wide`, the dtype of the tensors that have dimensions, and `scalar`, the dtype of those
 * that have none. The result has the higher of both categories (bool, integer, real, complex). If
 * both have the same category, it is `wide`, even if `scalar` has more bits. */
static tn_dtype combine(tn_dtype wide, tn_dtype scalar)
{
    if (wide == TN_DTYPE_AUTO)
        return scalar;
    if (scalar == TN_DTYPE_AUTO || is_complex(wide))
        return wide;
    if (is_float(wide)) {
        if (is_complex(scalar))
            return wide == TN_F64 ? TN_C128 : TN_C64;
        return wide;
    }
    if (wide == TN_BOOL || is_float(scalar) || is_complex(scalar))
        return tn_dtype_promote(wide, scalar);
    return wide;
}

tn_status tn__promote(const tn_op *op, tn_tensor *const *in, int64_t n_in, tn_dtype *out)
{
    tn_dtype wide = TN_DTYPE_AUTO, scalar = TN_DTYPE_AUTO, result;

    for (int64_t i = 0; i < n_in; i++) {
        tn_dtype *side;

        if (tn__is_none(in[i]) || (tn__operand(op, i)->flags & TN_OPERAND_NO_PROMOTE))
            continue;
        side = in[i]->view.ndim > 0 ? &wide : &scalar;
        if (*side == TN_DTYPE_AUTO)
            *side = (tn_dtype)in[i]->dtype;
        else if (*side != (tn_dtype)in[i]->dtype)
            *side = tn_dtype_promote(*side, (tn_dtype)in[i]->dtype);
        if (*side == TN_DTYPE_AUTO)
            return tn_error_prefix("%s: ", op->def.name);
    }
    result = combine(wide, scalar);
    if (result != TN_DTYPE_AUTO && (op->flags & TN_OP_PROMOTE_FLOAT) && !is_float(result) &&
        !is_complex(result))
        result = tn_default_dtype();
    *out = result;
    return TN_OK;
}

bool tn__promote_can_cast(tn_dtype from, tn_dtype to)
{
    if (from == to)
        return true;
    if (is_complex(from) && !is_complex(to))
        return false;
    if (is_float(from) && !is_float(to) && !is_complex(to))
        return false;
    return from == TN_BOOL || to != TN_BOOL;
}
