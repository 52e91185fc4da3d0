/* SPDX-License-Identifier: MIT
 *
 * Values of weights and of arguments, read on the host. */
#include "network.h"

#include <math.h>
#include <string.h>

double *network_read(tn_tensor *tensor)
{
    size_t size = (size_t)tn_tensor_numel(tensor) * sizeof(double);
    double *values = tn_malloc(size > 0 ? size : 1);
    uint64_t scope = tn_scope_begin();
    tn_tensor *wide = values != NULL ? tn_cast(tensor, TN_F64) : NULL;

    if (wide == NULL || tn_tensor_copy_out(wide, values, size) != TN_OK) {
        tn_free(values);
        values = NULL;
    }
    tn_scope_end(scope);
    return values;
}

int64_t network_axis(const tn_tensor *tensor, int64_t dim)
{
    int64_t ndim = tn_tensor_ndim(tensor);

    if (dim < 0)
        dim += ndim;
    return dim >= 0 && dim < ndim ? dim : -1;
}

bool network_is_pruned(tn_module *module, const char *slot)
{
    uint64_t mark = tn_error_mark();
    bool pruned = tn_module_slot_kind(module, slot) == TN_SLOT_COMPUTED &&
                  tn_prune_count(module, slot) > 0;

    tn_error_restore(mark); /* other computed slots have no count */
    return pruned;
}

tn_tensor *network_beside(tn_module *module, const char *slot, const char *suffix)
{
    char name[160];

    if (!network_is_pruned(module, slot))
        return NULL;
    tn_snprint(name, sizeof name, "%s%s", slot, suffix);
    return tn_module_get(module, name);
}

tn_tensor *network_plain(tn_module *module, const char *slot)
{
    return network_is_pruned(module, slot) ? network_beside(module, slot, "_orig")
                                           : tn_module_get(module, slot);
}

bool network_is_nan(double value)
{
    return isnan(value);
}

bool network_is_not_zero(double value)
{
    return value != 0; /* NaN too */
}

/* Sets any[i] to whether slice i along a dimension has a value for which test() is true. */
static void find_slices(const double *values, tn_ints shape, int64_t dim,
                        bool (*test)(double value), uint8_t *any)
{
    int64_t outer = 1, inner = 1, size = shape.at[dim];

    for (int64_t i = 0; i < dim; i++)
        outer *= shape.at[i];
    for (int64_t i = dim + 1; i < shape.count; i++)
        inner *= shape.at[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < size; i++, values += inner)
            for (int64_t k = 0; k < inner && !any[i]; k++)
                any[i] = test(values[k]);
}

tn_status network_slices(tn_tensor *tensor, int64_t dim, bool (*test)(double value), uint8_t *any)
{
    double *values = network_read(tensor);

    if (values == NULL)
        return tn_error_last_code();
    find_slices(values, tn_tensor_shape(tensor), dim, test, any);
    tn_free(values);
    return TN_OK;
}

/* Reads the parameter of row `first`, and uses it for all rows of the same slot. */
static tn_status used_of_slot(const network_leaf *leaf, int64_t first, uint8_t *in, uint8_t *out)
{
    const tn_channel_row *rows = leaf->channels.rows;
    tn_tensor *tensor = tn_module_get(leaf->module, rows[first].slot);
    double *values;

    if (tensor == NULL)
        return tn_error_last_code();
    if (tensor == TN_NONE)
        return TN_OK;
    values = network_read(tensor);
    if (values == NULL)
        return tn_error_last_code();
    for (int64_t i = first; i < leaf->channels.n_rows; i++)
        if (rows[i].slot != NULL && strcmp(rows[i].slot, rows[first].slot) == 0 &&
            rows[i].role != TN_CHANNELS_SAME)
            find_slices(values, tn_tensor_shape(tensor), rows[i].dim, network_is_not_zero,
                        rows[i].role == TN_CHANNELS_IN ? in : out);
    tn_free(values);
    return TN_OK;
}

bool network_named_before(const network_leaf *leaf, int64_t row)
{
    for (int64_t i = 0; i < row; i++)
        if (leaf->channels.rows[i].slot != NULL &&
            strcmp(leaf->channels.rows[i].slot, leaf->channels.rows[row].slot) == 0)
            return true;
    return false;
}

tn_status network_used(const network_leaf *leaf, uint8_t *in, uint8_t *out)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < leaf->channels.n_rows && status == TN_OK; i++) {
        const char *slot = leaf->channels.rows[i].slot;
        uint64_t scope = tn_scope_begin();

        if (slot != NULL && !network_named_before(leaf, i) &&
            tn_module_slot_kind(leaf->module, slot) != TN_SLOT_BUFFER)
            status = used_of_slot(leaf, i, in, out);
        tn_scope_end(scope);
    }
    return status;
}
