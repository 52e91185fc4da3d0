/* SPDX-License-Identifier: MIT
 *
 * The hooks that watch the calls of a network's modules. In the first, clean call they keep the
 * arguments. In a probe they make results of one module NaN, and note which modules read NaN. */
#include "network_hooks.h"

#include <math.h>

/* ---- arguments ------------------------------------------------------------------------------- */

static tn_status keep_clean(network_leaf *leaf, const tn_pack *input)
{
    tn_pack *copy = tn_pack_new();
    tn_status status = copy != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; status == TN_OK && i < tn_pack_count(input); i++)
        status = tn_pack_add(copy, NULL, tn_pack_at(input, i));
    if (status == TN_OK && leaf->calls == leaf->room) {
        int64_t room = leaf->room * 2 + 1;
        tn_pack **larger = tn_realloc(leaf->clean, (size_t)room * sizeof *larger);

        if (larger != NULL) {
            leaf->clean = larger;
            leaf->room = room;
        } else {
            status = TN_ERR_MEMORY;
        }
    }
    if (status == TN_OK)
        leaf->clean[leaf->calls++] = copy;
    else
        tn_pack_drop(copy);
    return status;
}

static bool is_floating(const tn_tensor *tensor)
{
    return (TN_BIT(tn_tensor_dtype(tensor)) & TN_MASK_FLOAT) != 0;
}

/* Returns whether any element is NaN; -1 on failure. The elements need not be tested if their sum
 * is not NaN; a sum of infinities may be NaN without a NaN among the elements. */
static int any_nan(tn_tensor *tensor)
{
    tn_tensor *sum;
    double *values;
    int found = 0;

    if (!is_floating(tensor))
        return 0;
    sum = tn_sum(tensor);
    values = sum != NULL ? network_read(sum) : NULL;
    if (values == NULL)
        return -1;
    found = isnan(values[0]);
    tn_free(values);
    if (!found)
        return 0;
    found = 0;
    values = network_read(tensor);
    if (values == NULL)
        return -1;
    for (int64_t i = 0; i < tn_tensor_numel(tensor) && !found; i++)
        found = isnan(values[i]);
    tn_free(values);
    return found;
}

/* Records what a module reads. */
static tn_status look(const network *n, const network_leaf *leaf, int64_t index,
                      const tn_pack *input, bool *read)
{
    const network_probe *probe = n->probe;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < tn_pack_count(input) && status == TN_OK; i++) {
        tn_value value = tn_pack_at(input, i);
        int64_t axis;
        int any;

        if (value.kind != TN_VALUE_TENSOR)
            continue;
        any = any_nan(value.as.tensor);
        if (any < 0)
            return tn_error_last_code();
        if (!any)
            continue;
        *read = true;
        probe->read[index] = probe->read[index] == 2 ? 2 : 1;
        axis = leaf->known && i == 0 ? network_axis(value.as.tensor, leaf->channels.in_axis) : -1;
        if (axis < 0 || tn_tensor_size(value.as.tensor, axis) != leaf->in)
            probe->read[index] = 2; /* in a place that is not a channel */
        else
            status = network_slices(value.as.tensor, axis, network_is_nan,
                                    probe->hit + leaf->in_at);
    }
    return status;
}

tn_status network_before(void *user, tn_module *module, const tn_pack *input, tn_pack *replacement,
                         tn_hook_outcome *outcome)
{
    const network_at *at = user;
    network_leaf *leaf = &at->n->leaves[at->leaf];
    bool read = false;
    tn_status status;

    if (at->n->probe == NULL)
        return keep_clean(leaf, input);
    if (leaf->turn >= leaf->calls)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: it is called more often than with the example alone; expected calls "
                       "that do not depend on values",
                       tn_module_type(module));
    status = look(at->n, leaf, at->leaf, input, &read);
    /* A module that passes each channel on also passes NaN on. */
    if (status == TN_OK && read && !leaf->same) {
        const tn_pack *clean = leaf->clean[leaf->turn];

        for (int64_t i = 0; i < tn_pack_count(clean) && status == TN_OK; i++)
            status = tn_pack_add(replacement, NULL, tn_pack_at(clean, i));
        *outcome = TN_OUTCOME_REPLACED;
    }
    leaf->turn++;
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Returns the tensor with NaN in the chosen channels. */
static tn_tensor *spoil(const network_leaf *leaf, const uint8_t *chosen, tn_tensor *tensor)
{
    int64_t shape[TN_MAX_DIMS], count = 1, ndim = tn_tensor_ndim(tensor), axis = -1;
    double *values;
    tn_tensor *added;

    if (chosen != NULL) {
        axis = network_axis(tensor, leaf->channels.out_axis);
        if (axis < 0 || tn_tensor_size(tensor, axis) != leaf->out) {
            tn_fail(TN_ERR_NOT_IMPLEMENTED,
                    "\"%s\" (%s): its result does not have the channels that its layer describes, "
                    "got %lld; expected %lld",
                    leaf->path, tn_module_type(leaf->module),
                    (long long)(axis < 0 ? 0 : tn_tensor_size(tensor, axis)), (long long)leaf->out);
            return NULL;
        }
        count = leaf->out;
    }
    for (int64_t i = 0; i < ndim; i++)
        shape[i] = i == axis ? count : 1;
    values = tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *values);
    if (values == NULL)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        values[i] = chosen == NULL || chosen[i] ? NAN : 0;
    added = tn_tensor_empty((tn_ints){ shape, ndim }, TN_F64, tn_tensor_device(tensor));
    if (added != NULL && tn_tensor_copy_in(added, values, (size_t)count * sizeof *values) != TN_OK)
        added = NULL;
    tn_free(values);
    added = added != NULL ? tn_cast(added, tn_tensor_dtype(tensor)) : NULL;
    return added != NULL ? tn_add(tensor, added) : NULL;
}

tn_status network_after(void *user, tn_module *module, const tn_pack *input, const tn_pack *output,
                        tn_pack *replacement, tn_hook_outcome *outcome)
{
    const network_at *at = user;
    const network_probe *probe = at->n->probe;
    network_leaf *leaf = &at->n->leaves[at->leaf];
    const uint8_t *chosen = NULL;
    tn_status status = TN_OK;

    (void)module, (void)input;
    if (probe == NULL || probe->from[at->leaf] == NETWORK_CLEAN)
        return TN_OK;
    if (probe->from[at->leaf] == NETWORK_CHOSEN)
        chosen = probe->chosen + leaf->out_at;
    for (int64_t i = 0; i < tn_pack_count(output) && status == TN_OK; i++) {
        tn_value value = tn_pack_at(output, i);

        if (value.kind == TN_VALUE_TENSOR && is_floating(value.as.tensor)) {
            value.as.tensor = spoil(leaf, chosen, value.as.tensor);
            status = value.as.tensor != NULL ? TN_OK : tn_error_last_code();
        }
        if (status == TN_OK)
            status = tn_pack_add(replacement, tn_pack_name(output, i), value);
    }
    *outcome = TN_OUTCOME_REPLACED;
    return status;
}
