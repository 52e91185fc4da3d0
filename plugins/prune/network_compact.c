/* SPDX-License-Identifier: MIT
 *
 * Removes channels from a network: parameters, buffers and options become smaller. A channel can be
 * removed in two cases. First: everything that reads it multiplies it with 0. Second: nothing
 * computes it (its weights and biases are 0), and the modules between it and its readers turn it
 * into 0, so its readers read 0 for every input of the network. All changes are made in new
 * tensors, which are then exchanged with the old ones and, after a failure, exchanged back. */
#include "network.h"

#include <math.h>
#include <string.h>

/* One removal: the network, what is known of its channels, and the changes to make. `alive` and
 * `gone` have the entry of a group at the index of its root (network_root). */
typedef struct plan {
    network n;
    bool strict;
    uint8_t *computed; /* for each element of a result: a parameter there is not 0 */
    uint8_t *read;     /* for each element of an input: a parameter there is not 0 */
    uint8_t *alive;    /* for each group: something computes it */
    uint8_t *gone;     /* for each group: it is removed */
    struct change *changes;
    int64_t n_changes, change_room, n_made;
    struct number *numbers;
    int64_t n_numbers, number_room;
} plan;

/* A tensor of the network, and the one whose contents it gets. */
typedef struct change {
    tn_tensor *old, *fresh, *gradient; /* references; the gradient may be NULL */
} change;

/* An option of a layer. */
typedef struct number {
    int64_t *at, old, fresh;
} number;

static bool is_input(const network_leaf *leaf, int64_t element)
{
    return !leaf->same && element >= leaf->in_at && element < leaf->in_at + leaf->in;
}

/* ---- what can go ----------------------------------------------------------------------------- */

/* Finds the channels of a module's arguments that were 0 in all calls. */
static tn_status find_zeros(network_leaf *leaf)
{
    uint8_t *other = tn_calloc((size_t)leaf->in + 1, 1);
    tn_status status = TN_OK;

    leaf->zero = tn_calloc((size_t)leaf->in + 1, 1);
    if (other == NULL || leaf->zero == NULL) {
        tn_free(other);
        return TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < leaf->calls && status == TN_OK; i++) {
        tn_tensor *x = tn_pack_tensor(leaf->clean[i], 0);
        int64_t axis = x != NULL ? network_axis(x, leaf->channels.in_axis) : -1;

        if (axis < 0 || tn_tensor_size(x, axis) != leaf->in)
            memset(other, 1, (size_t)leaf->in);
        else
            status = network_slices(x, axis, network_is_not_zero, other);
    }
    for (int64_t i = 0; i < leaf->in; i++)
        leaf->zero[i] = !other[i];
    tn_free(other);
    return status;
}

static tn_status study(plan *p)
{
    network *n = &p->n;
    size_t count = (size_t)n->n_elements + 1;
    tn_status status = TN_OK;

    p->computed = tn_calloc(count, 1);
    p->read = tn_calloc(count, 1);
    p->alive = tn_calloc(count, 1);
    p->gone = tn_calloc(count, 1);
    if (p->computed == NULL || p->read == NULL || p->alive == NULL || p->gone == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < n->n_leaves && status == TN_OK; i++) {
        network_leaf *leaf = &n->leaves[i];

        if (!leaf->known || leaf->same)
            continue;
        status = network_used(leaf, p->read + leaf->in_at, p->computed + leaf->out_at);
        if (status == TN_OK)
            status = find_zeros(leaf);
    }
    for (int64_t e = 0; e < n->n_elements; e++)
        if (p->computed[e])
            p->alive[network_root(n, e)] = 1;
    return status;
}

/* Marks the groups that can go. */
static void choose(plan *p)
{
    const network *n = &p->n;

    for (int64_t e = 0; e < n->n_elements; e++)
        if (n->elements[e].parent == e)
            p->gone[e] = n->elements[e].lock == NETWORK_FREE;
    for (int64_t e = 0; e < n->n_elements; e++) {
        const network_leaf *leaf = &n->leaves[n->elements[e].leaf];
        int64_t root = network_root(n, e);

        if (is_input(leaf, e) && p->read[e] && (p->alive[root] || !leaf->zero[e - leaf->in_at]))
            p->gone[root] = 0;
    }
}

/* Keeps a channel of each module, because layers without channels do not exist. */
static void keep_one(plan *p, int64_t first, int64_t count)
{
    int64_t left = 0;

    for (int64_t i = 0; i < count; i++)
        left += !p->gone[network_root(&p->n, first + i)];
    if (left == 0 && count > 0)
        p->gone[network_root(&p->n, first)] = 0;
}

/* Fails if a channel that nothing computes must stay because of a module whose channels are not
 * known. */
static tn_status refuse_unknown(const plan *p)
{
    const network *n = &p->n;

    for (int64_t e = 0; p->strict && e < n->n_elements; e++) {
        int64_t root = network_root(n, e);
        const network_leaf *leaf = &n->leaves[n->elements[e].leaf];

        if (!leaf->same && !is_input(leaf, e) && !p->alive[root] &&
            n->elements[root].lock == NETWORK_UNKNOWN)
            return network_not_known(n, e, "removed");
    }
    return TN_OK;
}

static void count_channels(const plan *p, tn_prune_report *report)
{
    const network *n = &p->n;

    for (int64_t e = 0; e < n->n_elements; e++) {
        const network_leaf *leaf = &n->leaves[n->elements[e].leaf];
        int64_t root = network_root(n, e);

        if (leaf->same || is_input(leaf, e))
            continue;
        report->channels_before++;
        report->channels_removed += p->gone[root];
        report->channels_kept += !p->gone[root] && !p->alive[root];
    }
}

/* ---- the smaller tensors --------------------------------------------------------------------- */

static bool room_for(void *array, int64_t *room, int64_t count, size_t size)
{
    void *block;

    if (count < *room)
        return true;
    memcpy(&block, array, sizeof block);
    block = tn_realloc(block, (size_t)(*room * 2 + 16) * size);
    if (block == NULL)
        return false;
    memcpy(array, &block, sizeof block);
    *room = *room * 2 + 16;
    return true;
}

/* Returns the indices of the slices of a row that stay, a tensor of the scope; TN_NONE if all of
 * them stay or `device` is NULL. Sets *left to their number. */
static tn_tensor *stay(const plan *p, const network_leaf *leaf, const tn_channel_row *row,
                       const tn_device *device, int64_t *left)
{
    int64_t count = row->role == TN_CHANNELS_IN ? leaf->in : leaf->out;
    int64_t *index = tn_malloc((size_t)(count > 0 ? count : 1) * sizeof *index);
    tn_tensor *indices = TN_NONE;

    if (index == NULL)
        return NULL;
    *left = 0;
    for (int64_t i = 0; i < count; i++)
        if (!p->gone[network_root(&p->n, network_slice(leaf, row, i))])
            index[(*left)++] = i;
    if (*left < count && device != NULL) {
        indices = tn_tensor_empty(TN_SHAPE(*left), TN_I64, device);
        if (indices != NULL &&
            tn_tensor_copy_in(indices, index, (size_t)*left * sizeof *index) != TN_OK)
            indices = NULL;
    }
    tn_free(index);
    return indices;
}

/* Adds the change of one tensor, for all rows of its slot. */
static tn_status shrink(plan *p, const network_leaf *leaf, const char *slot, tn_tensor *tensor)
{
    tn_tensor *fresh = tn_tensor_detach(tensor);
    int64_t left;

    for (int64_t i = 0; i < leaf->channels.n_rows && fresh != NULL; i++) {
        const tn_channel_row *row = &leaf->channels.rows[i];
        tn_tensor *index;

        if (row->slot == NULL || strcmp(row->slot, slot) != 0)
            continue;
        index = stay(p, leaf, row, tn_tensor_device(tensor), &left);
        if (index != TN_NONE)
            fresh = index != NULL ? tn_index_select(fresh, index, row->dim) : NULL;
    }
    if (fresh == NULL)
        return tn_error_last_code();
    if (tn_tensor_numel(fresh) == tn_tensor_numel(tensor))
        return TN_OK;
    if (!room_for(&p->changes, &p->change_room, p->n_changes, sizeof *p->changes))
        return TN_ERR_MEMORY;
    p->changes[p->n_changes++] = (change){ tn_tensor_keep(tensor), tn_tensor_keep(fresh), NULL };
    return TN_OK;
}

static tn_status shrink_slot(plan *p, const network_leaf *leaf, const char *slot)
{
    tn_tensor *mask = network_beside(leaf->module, slot, "_mask");
    tn_tensor *tensor = network_plain(leaf->module, slot);
    tn_status status = TN_OK;

    if (tensor == NULL)
        return tn_error_last_code();
    if (tensor == TN_NONE)
        return TN_OK;
    status = shrink(p, leaf, slot, tensor);
    return status == TN_OK && mask != NULL ? shrink(p, leaf, slot, mask) : status;
}

/* Adds the change of the option that a row names. */
static tn_status shrink_option(plan *p, const network_leaf *leaf, const tn_channel_row *row)
{
    const tn_layer_def *layer = (const tn_layer_def *)tn_registry_find(
        TN_KIND_tn_layer_def, tn_module_type(leaf->module));
    const tn_option *option = layer != NULL ? layer->options : NULL;
    int64_t left, *at;

    if (layer == NULL || stay(p, leaf, row, NULL, &left) == NULL)
        return tn_error_last_code();
    while (option != NULL && option->kind != TN_OPTION_KIND_END &&
           strcmp(option->name, row->option) != 0)
        option++;
    if (option == NULL || option->kind != TN_OPTION_KIND_INT)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: its channels name the option %q; expected an option of kind int",
                       layer->name, row->option);
    at = (int64_t *)(void *)((char *)tn_module_data(leaf->module) + option->offset);
    if (*at == left)
        return TN_OK;
    if (!room_for(&p->numbers, &p->number_room, p->n_numbers, sizeof *p->numbers))
        return TN_ERR_MEMORY;
    p->numbers[p->n_numbers++] = (number){ at, *at, left };
    return TN_OK;
}

static tn_status shrink_leaf(plan *p, const network_leaf *leaf)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < leaf->channels.n_rows && status == TN_OK; i++) {
        const tn_channel_row *row = &leaf->channels.rows[i];

        if (row->slot != NULL && !network_named_before(leaf, i))
            status = shrink_slot(p, leaf, row->slot);
        if (status == TN_OK && row->option != NULL)
            status = shrink_option(p, leaf, row);
    }
    return status;
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static tn_status swap_back(plan *p)
{
    for (int64_t i = 0; i < p->n_numbers; i++)
        *p->numbers[i].at = p->numbers[i].old;
    while (p->n_made > 0) {
        change *c = &p->changes[--p->n_made];

        (void)tn_tensor_swap(c->old, c->fresh);
        if (c->gradient != NULL)
            (void)tn_tensor_set_grad(c->old, c->gradient);
    }
    return tn_error_last_code();
}

static tn_status swap_all(plan *p)
{
    tn_status status = TN_OK;

    while (p->n_made < p->n_changes && status == TN_OK) {
        change *c = &p->changes[p->n_made];
        tn_tensor *gradient = tn_tensor_grad(c->old);

        if (gradient != NULL && gradient != TN_NONE) {
            c->gradient = tn_tensor_keep(gradient);
            status = tn_tensor_set_grad(c->old, TN_NONE);
        }
        if (status == TN_OK)
            status = tn_tensor_swap(c->old, c->fresh);
        p->n_made += status == TN_OK;
    }
    for (int64_t i = 0; i < p->n_numbers && status == TN_OK; i++)
        *p->numbers[i].at = p->numbers[i].fresh;
    return status == TN_OK ? TN_OK : swap_back(p);
}

/* Returns how far two results may be apart, as a part of their largest value. */
static double tolerance(tn_dtype dtype)
{
    return dtype == TN_F64 ? 1e-10 : dtype == TN_F32 ? 1e-4 : 3e-2;
}

static tn_status compare(tn_tensor *before, tn_tensor *after)
{
    double *a = network_read(before), *b = network_read(after), most = 0, apart = 0;
    int64_t count = tn_tensor_numel(before);
    tn_status status = a != NULL && b != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && count != tn_tensor_numel(after))
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED, "the shapes of the results change");
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        if (isfinite(a[i]) && fabs(a[i]) > most)
            most = fabs(a[i]);
        if (isfinite(a[i]) ? !(fabs(a[i] - b[i]) <= apart) : isnan(a[i]) != isnan(b[i]))
            apart = isfinite(a[i]) && isfinite(b[i]) ? fabs(a[i] - b[i]) : INFINITY;
    }
    if (status == TN_OK && apart > tolerance(tn_tensor_dtype(before)) * most)
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                         "the results change by %g; the largest absolute value is %g", apart, most);
    tn_free(a);
    tn_free(b);
    return status;
}

/* Calls the smaller network, and compares its results. */
static tn_status verify(plan *p)
{
    network *n = &p->n;
    tn_tensor **outputs;
    int64_t count;
    tn_status status;

    for (int64_t i = 0; i < n->n_leaves; i++) {
        tn_hook_remove(n->leaves[i].pre);
        tn_hook_remove(n->leaves[i].post);
    }
    status = network_call(n, n->inputs, &outputs, &count);
    if (status == TN_OK && count != n->n_outputs)
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED, "the number of results changes");
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = compare(n->outputs[i], outputs[i]);
    tn_free(outputs);
    if (status != TN_OK)
        tn_error_prefix("the network without these channels: ");
    return status;
}

/* Removes the pruning of parameters whose masks are all ones now, so that no products are computed.
 * If memory runs out, the masks stay, which changes no result. */
static void drop_masks(const plan *p)
{
    for (int64_t i = 0; i < p->n.n_leaves; i++) {
        const network_leaf *leaf = &p->n.leaves[i];

        for (int64_t r = 0; leaf->known && r < leaf->channels.n_rows; r++) {
            const char *slot = leaf->channels.rows[r].slot;
            tn_tensor *mask = slot != NULL ? network_beside(leaf->module, slot, "_mask") : NULL;
            double *values = mask != NULL ? network_read(mask) : NULL;
            bool ones = values != NULL;
            uint64_t mark = tn_error_mark();

            for (int64_t k = 0; ones && k < tn_tensor_numel(mask); k++)
                ones = values[k] == 1;
            tn_free(values);
            if (ones && tn_prune_remove(leaf->module, slot) != TN_OK) {
                tn_log(TN_LOG_WARNING, "the mask of \"%s\" stays: %s", leaf->path, tn_error_text());
                tn_error_restore(mark);
            }
        }
    }
}

static void free_plan(plan *p)
{
    for (int64_t i = 0; i < p->n_changes; i++) {
        tn_tensor_drop(p->changes[i].old);
        tn_tensor_drop(p->changes[i].fresh);
        tn_tensor_drop(p->changes[i].gradient);
    }
    tn_free(p->changes);
    tn_free(p->numbers);
    tn_free(p->computed);
    tn_free(p->read);
    tn_free(p->alive);
    tn_free(p->gone);
    network_close(&p->n);
}

static tn_status remove_channels(plan *p, tn_prune_report *report)
{
    network *n = &p->n;
    tn_status status = study(p);

    if (status == TN_OK)
        status = refuse_unknown(p);
    if (status != TN_OK)
        return status;
    choose(p);
    for (int64_t i = 0; i < n->n_leaves; i++) {
        keep_one(p, n->leaves[i].out_at, n->leaves[i].out);
        keep_one(p, n->leaves[i].in_at, n->leaves[i].in);
    }
    count_channels(p, report);
    for (int64_t i = 0; i < n->n_leaves && status == TN_OK; i++)
        if (n->leaves[i].known)
            status = shrink_leaf(p, &n->leaves[i]);
    if (status == TN_OK)
        status = swap_all(p);
    if (status == TN_OK && p->n_changes > 0) {
        status = verify(p);
        if (status != TN_OK)
            return swap_back(p);
        drop_masks(p);
    }
    return status;
}

tn_status network_compact(const tn_prune_net *args)
{
    const struct network_options *options = args->options;
    plan p = { .strict = options->strict };
    int64_t before = tn_module_parameter_count(args->net);
    tn_status status = network_open(&p.n, args->net, args->inputs, args->n_inputs);

    if (status == TN_OK)
        status = network_flow(&p.n);
    if (status == TN_OK)
        status = remove_channels(&p, args->report);
    free_plan(&p);
    args->report->parameters_before = before;
    args->report->parameters_after = tn_module_parameter_count(args->net);
    return status;
}

static const tn_option options[] = {
    TN_OPTION_BOOL(struct network_options, strict, "True",
                   "fails if a masked channel cannot be removed because a module is not known; "
                   "False: such channels stay"),
    TN_OPTION_END
};

const tn_prune_def prune_channel_groups = {
    TN_HEAD(tn_prune_def),
    .name = "ChannelGroups",
    .help = "finds the channels that belong together in a network, masks them, and removes them",
    .options = options,
    .data_size = sizeof(struct network_options),
    .type = TN_PRUNE_NETWORK,
    .channels = network_channels,
    .compact = network_compact,
};
