/* SPDX-License-Identifier: MIT
 *
 * Functions over all parameters of a module: lists of them, and conversion to and from a single
 * vector. clip_grad.h has clipping.
 *
 * These functions are compiled into the program that uses them and call operators, because the
 * library itself computes nothing. They run on the device of the tensors, are not recorded for
 * gradients unless stated, and may be called from any thread. */
#ifndef TENON_PARAMETERS_H
#define TENON_PARAMETERS_H

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
