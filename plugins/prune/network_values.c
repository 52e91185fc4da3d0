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

tn_status network_slices(tn_tensor *tensor, int64_t dim, bool (*test)(double value), uint8_t *any)
{
    double *values = network_read(tensor);
    tn_ints shape = tn_tensor_shape(tensor);
    int64_t inner = 1, size = shape.at[dim];

    if (values == NULL)
        return tn_error_last_code();
    for (int64_t i = dim + 1; i < shape.count; i++)
        inner *= shape.at[i];
    for (int64_t i = 0; i < tn_tensor_numel(tensor); i++)
        if (test(values[i]))
            any[i / inner % size] = 1;
    tn_free(values);
    return TN_OK;
}

tn_status network_used(network_leaf *leaf, uint32_t role, uint8_t *used)
{
    tn_status status = TN_OK;
    uint64_t scope = tn_scope_begin();

    for (int64_t i = 0; i < leaf->channels.n_rows && status == TN_OK; i++) {
        const tn_channel_row *row = &leaf->channels.rows[i];
        tn_tensor *tensor;

        if (row->role != role || row->slot == NULL ||
            tn_module_slot_kind(leaf->module, row->slot) == TN_SLOT_BUFFER)
            continue;
        tensor = tn_module_get(leaf->module, row->slot);
        if (tensor == NULL)
            status = tn_error_last_code();
        else if (tensor != TN_NONE)
            status = network_slices(tensor, row->dim, network_is_not_zero, used);
    }
    tn_scope_end(scope);
    return status;
}
