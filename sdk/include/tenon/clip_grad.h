/* SPDX-License-Identifier: MIT
 *
 * Clipping of gradients by their norm or by value, and the norm of all gradients.
 *
 * These functions are compiled into the program that uses them and call operators, because the
 * library itself computes nothing. They run on the device of the tensors, are not recorded for
 * gradients, and may be called from any thread. */
#ifndef TENON_CLIP_GRAD_H
#define TENON_CLIP_GRAD_H

#include <math.h>

#include <tenon/parameters.h>

TN_BEGIN_DECLS

/* Returns the norm of order `p` (INFINITY: the largest absolute value) of all gradients, taken as
 * one vector. The result is a tensor without dimensions on the device of the first gradient, owned
 * by the scope. Parameters without a gradient are left out; if no parameter has one, the norm is
 * 0. */
TN_ATTR(unused)
static inline tn_tensor *tn_grad_norm(tn_tensor *const *parameters, int64_t count, double p)
{
    tn_tensor **list = (tn_tensor **)tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *list);
    tn_tensor *total = NULL;
    int64_t found = 0;
    bool good = list != NULL;

    tn_grad_begin(false);
    for (int64_t i = 0; i < count && good; i++) {
        tn_tensor *gradient = tn_tensor_grad(parameters[i]);
        if (gradient == TN_NONE)
            continue;
        if (gradient != NULL && (TN_MASK_COMPLEX & TN_BIT(tn_tensor_dtype(gradient))) != 0)
            gradient = tn_abs(gradient);
        if (gradient != NULL && found > 0 &&
            tn_tensor_device(gradient) != tn_tensor_device(list[0])) {
            /* Copy only the norm of a gradient on another device. */
            gradient = tn_total_norm(&gradient, 1, p);
            if (gradient != NULL)
                gradient = tn_tensor_full(TN_SCALAR_SHAPE, tn_tensor_item(gradient),
                                          tn_tensor_dtype(list[0]), tn_tensor_device(list[0]));
        } else if (gradient != NULL && found > 0) {
            gradient = tn_cast(gradient, tn_tensor_dtype(list[0]));
        }
        list[found++] = gradient;
        good = gradient != NULL;
    }
    if (good && found == 0)
        total = tn_tensor_full(TN_SCALAR_SHAPE, 0.0, TN_DTYPE_AUTO, NULL);
    else if (good)
        total = tn_total_norm(list, found, p);
    tn_grad_end();
    tn_free(list);
    return total;
}

/* Clipping of the gradients of a list of parameters, such as those that are trained;
 * tn_module_clip_grad_norm and tn_module_clip_grad_value clip those of a whole module.
 *
 * Multiplies all gradients in place by max_norm / (norm + 1e-6), but by 1 at most. Stores the norm
 * before scaling in *norm (may be NULL). With `error_if_nonfinite`, a norm that is NaN or infinite
 * makes the function fail with TN_ERR_RUNTIME, and the gradients are unchanged. */
TN_ATTR(unused)
static inline tn_status tn_clip_grad_norm(tn_tensor *const *parameters, int64_t count,
                                          double max_norm, double p, bool error_if_nonfinite,
                                          double *norm)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *total = tn_grad_norm(parameters, count, p), *scale = NULL;
    tn_status status = total != NULL ? TN_OK : tn_error_last_code();
    double before = status == TN_OK && (norm != NULL || error_if_nonfinite) ? tn_tensor_item(total)
                                                                            : 0.0;

    if (status == TN_OK && error_if_nonfinite && !isfinite(before))
        status = tn_fail(
            TN_ERR_RUNTIME,
            "The total norm of order %g for gradients from `parameters` is non-finite, so it "
            "cannot be clipped; with error_if_nonfinite = false the gradients are scaled anyway",
            p);
    tn_grad_begin(false);
    if (status == TN_OK) {
        scale = tn_clamp(tn_mul_scalar(tn_reciprocal(tn_add_scalar(total, 1e-6)), max_norm),
                         tn_scalar_none(), 1.0);
    }
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn_tensor *gradient = tn_tensor_grad(parameters[i]), *scaled = NULL;
        if (gradient == TN_NONE)
            continue;
        if (scale != NULL && gradient != NULL)
            scaled = tn_tensor_device(gradient) == tn_tensor_device(scale)
                         ? tn_mul_(gradient, tn_cast(scale, tn_tensor_dtype(gradient)))
                         : tn_mul_scalar_(gradient, tn_tensor_item(scale));
        if (scaled == NULL)
            status = tn_error_last_code();
    }
    tn_grad_end();
    tn_scope_end(scope);
    if (status == TN_OK && norm != NULL)
        *norm = before;
    return status;
}

/* Limits every element of every gradient to [-value, value], in place. */
TN_ATTR(unused)
static inline tn_status tn_clip_grad_value(tn_tensor *const *parameters, int64_t count,
                                           double value)
{
    tn_status status = TN_OK;

    tn_grad_begin(false);
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn_tensor *gradient = tn_tensor_grad(parameters[i]);
        if (gradient != TN_NONE && tn_clamp_(gradient, -value, value) == NULL)
            status = tn_error_last_code();
    }
    tn_grad_end();
    return status;
}

/* Like tn_clip_grad_norm, for all parameters of a module: their norm is one number. */
TN_ATTR(unused)
static inline tn_status tn_module_clip_grad_norm(tn_module *module, double max_norm, double p,
                                                 bool error_if_nonfinite, double *norm)
{
    int64_t count = 0;
    tn_tensor **parameters = tn_module_parameter_array(module, &count);
    tn_status status = parameters != NULL ? tn_clip_grad_norm(parameters, count, max_norm, p,
                                                              error_if_nonfinite, norm)
                                          : tn_error_last_code();

    tn_free(parameters);
    return status;
}

/* Like tn_clip_grad_value, for all parameters of a module. */
TN_ATTR(unused)
static inline tn_status tn_module_clip_grad_value(tn_module *module, double value)
{
    int64_t count = 0;
    tn_tensor **parameters = tn_module_parameter_array(module, &count);
    tn_status status = parameters != NULL ? tn_clip_grad_value(parameters, count, value)
                                          : tn_error_last_code();

    tn_free(parameters);
    return status;
}

TN_END_DECLS
#endif
