/* SPDX-License-Identifier: MIT
 *
 * Functions over all parameters of a module: the norm of their gradients, clipping, and conversion
 * to and from a single vector.
 *
 * These functions are compiled into the program that uses them and call operators, because the
 * library itself computes nothing. They run on the device of the tensors, are not recorded for
 * gradients unless stated, and may be called from any thread. */
#ifndef TENON_PARAMETERS_H
#define TENON_PARAMETERS_H

#include <math.h>

#include <tenon/module.h>
#include <tenon/ops.h>

TN_BEGIN_DECLS

typedef struct tn_parameter_row {
    tn_tensor **at;
    int64_t count, room;
} tn_parameter_row;

TN_ATTR(unused)
static inline tn_status tn_parameter_row_add(void *user, const char *path, tn_tensor *tensor)
{
    tn_parameter_row *row = (tn_parameter_row *)user;
    (void)path;
    if (row->count < row->room)
        row->at[row->count] = tensor;
    row->count++;
    return TN_OK;
}

/* Stores the parameters of a module and of all modules below it in `out`, each once and at most
 * `room` of them. The module still owns them. Returns the number of parameters, which may be larger
 * than `room`; -1 on failure. */
TN_ATTR(unused)
static inline int64_t tn_module_parameters(tn_module *module, tn_tensor **out, int64_t room)
{
    tn_parameter_row row = { out, 0, room };
    return tn_module_each_tensor(module, TN_SLOT_PARAMETER, false, tn_parameter_row_add, &row) ==
                   TN_OK
               ? row.count
               : -1;
}

/* Returns an array with the parameters of a module and of all modules below it, each once, and
 * their number in *count. The module still owns them; the caller frees the array with tn_free.
 * Returns NULL on failure. */
TN_ATTR(unused)
static inline tn_tensor **tn_module_parameter_array(tn_module *module, int64_t *count)
{
    int64_t room = tn_module_parameters(module, NULL, 0);
    tn_tensor **array;

    if (room < 0)
        return NULL;
    array = (tn_tensor **)tn_malloc((size_t)(room + 1) * sizeof *array);
    *count = array != NULL ? tn_module_parameters(module, array, room) : 0;
    return array;
}

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

/* Fails if the parameters are not all on `device`. */
TN_ATTR(unused)
static inline tn_status tn_parameters_on(tn_tensor *const *parameters, int64_t count,
                                         const tn_device *device)
{
    for (int64_t i = 0; i < count; i++) {
        const tn_device *other = tn_tensor_device(parameters[i]);
        if (other == NULL)
            return tn_error_last_code();
        if (other != device)
            return tn_fail(TN_ERR_TYPE,
                           "Found two parameters on different devices, %s and %s: expected one "
                           "device",
                           tn_device_name(device), tn_device_name(other));
    }
    return TN_OK;
}

/* Returns all elements of the parameters, in order, as one vector owned by the scope. The call is
 * recorded for gradients. */
TN_ATTR(unused)
static inline tn_tensor *tn_parameters_to_vector(tn_tensor *const *parameters, int64_t count)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor **flat = (tn_tensor **)tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *flat);
    tn_tensor *vector = NULL;

    if (count < 1) {
        tn_fail(TN_ERR_VALUE, "tn_parameters_to_vector: no parameters; expected at least one");
    } else if (flat != NULL &&
               tn_parameters_on(parameters, count, tn_tensor_device(parameters[0])) == TN_OK) {
        for (int64_t i = 0; i < count; i++)
            flat[i] = tn_reshape(parameters[i], TN_SHAPE(-1));
        vector = tn_cat(flat, count, 0);
    }
    tn_free(flat);
    tn_scope_end_with(scope, &vector, 1);
    return vector;
}

/* Makes every parameter a view of its part of the vector, so that a write to one is seen in the
 * other. The vector must have the dtype and device of the parameters and exactly as many
 * elements. */
TN_ATTR(unused)
static inline tn_status tn_vector_to_parameters(tn_tensor *vector, tn_tensor *const *parameters,
                                                int64_t count)
{
    tn_status status =
        vector == NULL || vector == TN_NONE || tn_tensor_ndim(vector) != 1
            ? tn_fail(
                  TN_ERR_TYPE,
                  "tn_vector_to_parameters: vector: not a vector; expected a tensor of 1 dimension")
            : tn_parameters_on(parameters, count, tn_tensor_device(vector));
    int64_t needed = 0, at = 0;
    uint64_t scope;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        needed += tn_tensor_numel(parameters[i]);
        if (tn_tensor_dtype(parameters[i]) != tn_tensor_dtype(vector))
            status = tn_fail(
                TN_ERR_TYPE,
                "tn_vector_to_parameters: vector: wrong dtype, got %s; expected %s, that of "
                "parameter %lld",
                tn_dtype_name(tn_tensor_dtype(vector)),
                tn_dtype_name(tn_tensor_dtype(parameters[i])), (long long)i);
    }
    if (status == TN_OK && needed != tn_tensor_numel(vector))
        status = tn_fail(
            TN_ERR_VALUE,
            "tn_vector_to_parameters: vector: wrong size, got %lld elements; expected %lld",
            (long long)tn_tensor_numel(vector), (long long)needed);
    scope = tn_scope_begin();
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        int64_t strides[TN_MAX_DIMS], step = tn_tensor_strides(vector).at[0];
        tn_ints shape = tn_tensor_shape(parameters[i]), laid;
        tn_tensor *part;
        for (int64_t d = shape.count; d-- > 0;) {
            strides[d] = step;
            step *= shape.at[d];
        }
        laid.at = strides;
        laid.count = shape.count;
        part = tn_tensor_as_strided(
            vector, shape, laid, tn_tensor_offset(vector) + at * tn_tensor_strides(vector).at[0]);
        status = part != NULL ? tn_tensor_swap(parameters[i], part) : tn_error_last_code();
        at += tn_tensor_numel(parameters[i]);
    }
    tn_scope_end(scope);
    return status;
}

TN_END_DECLS
#endif
