/* SPDX-License-Identifier: MIT
 *
 * Tensor options of losses, such as the weight of each class: a list of numbers or a tensor, kept
 * as a buffer of the same name. */
#include "helpers.h"

/* The numbers of a nested list, collected in row-major order. */
struct numbers {
    int64_t shape[TN_MAX_DIMS];
    int64_t ndim;
    double *at;
    int64_t count;
};

static bool is_row(const tn_value *value)
{
    return value->kind == TN_VALUE_LIST || value->kind == TN_VALUE_TUPLE;
}

/* Sets shape and ndim from the first element of each level. Returns false if there are too many
 * levels. */
static bool measure(const tn_value *value, struct numbers *n)
{
    n->ndim = 0;
    for (; is_row(value); value = value->as.list) {
        if (n->ndim == TN_MAX_DIMS)
            return false;
        n->shape[n->ndim++] = value->count;
        if (value->count == 0)
            break;
    }
    return true;
}

/* Copies the numbers of one level. Returns false if a row has another length than the first one, or
 * if an element is no number. */
static bool collect(const tn_value *value, int64_t level, struct numbers *n)
{
    if (!is_row(value)) {
        if (level != n->ndim || (value->kind != TN_VALUE_INT && value->kind != TN_VALUE_FLOAT))
            return false;
        n->at[n->count++] = value->kind == TN_VALUE_INT ? (double)value->as.i : value->as.f;
        return true;
    }
    if (level >= n->ndim || value->count != n->shape[level])
        return false;
    for (uint32_t i = 0; i < value->count; i++)
        if (!collect(&value->as.list[i], level + 1, n))
            return false;
    return true;
}

/* Returns the numbers as a tensor of the default dtype on the default device. */
static tn_tensor *tensor_of(tn_module *self, const char *name, const tn_value *value)
{
    struct numbers n = { .ndim = 0 };
    int64_t total = 1;
    bool good = measure(value, &n);
    tn_tensor *tensor = NULL;

    for (int64_t d = 0; good && d < n.ndim; d++)
        good = !__builtin_mul_overflow(total, n.shape[d], &total) && total < INT64_MAX / 8;
    if (good) {
        n.at = tn_malloc((size_t)(total > 0 ? total : 1) * sizeof *n.at);
        if (n.at == NULL)
            return NULL;
        good = collect(value, 0, &n);
    }
    if (!good)
        tn_fail(TN_ERR_TYPE,
                "%s: %s: no tensor and no numbers, got %s; expected a tensor, or a list of numbers "
                "with rows of equal length",
                tn_module_type(self), name, tn_value_kind_name(value->kind));
    else if (tn_device_has_memory(tn_default_device()))
        tensor = tn_cast(tn_tensor_from(n.at, TN_F64, (tn_ints){ n.shape, n.ndim }),
                         tn_default_dtype());
    else
        tensor = tn_tensor_empty((tn_ints){ n.shape, n.ndim }, TN_DTYPE_AUTO, NULL);
    tn_free(n.at);
    return tensor;
}

tn_status layers_weight_add(tn_module *self, const char *name, tn_value *value)
{
    tn_tensor *tensor = value->kind == TN_VALUE_NONE     ? TN_NONE
                        : value->kind == TN_VALUE_TENSOR ? value->as.tensor
                                                         : tensor_of(self, name, value);

    *value = tn_value_none(); /* the buffer has the value from now on */
    return tensor == NULL ? tn_error_last_code() : tn_module_add_buffer(self, name, tensor, 0);
}
