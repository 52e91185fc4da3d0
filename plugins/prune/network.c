/* SPDX-License-Identifier: MIT
 *
 * The modules of a network that have parameters, and calls of the network. Hooks on these modules
 * see their arguments and change their results (network_flow.c). */
#include "network.h"
#include "network_hooks.h"

#include <string.h>

/* ---- collecting ------------------------------------------------------------------------------ */

static bool grow(void *array, int64_t *room, int64_t count, size_t size)
{
    int64_t more = *room * 2 + 8;
    void *block;

    if (count < *room)
        return true;
    memcpy(&block, array, sizeof block);
    block = tn_realloc(block, (size_t)more * size);
    if (block == NULL)
        return false;
    memcpy(array, &block, sizeof block);
    *room = more;
    return true;
}

static tn_status note_mode(network *n, tn_module *module)
{
    int64_t room = n->module_room;

    if (!grow(&n->modules, &n->module_room, n->n_modules, sizeof *n->modules) ||
        !grow(&n->training, &room, n->n_modules, sizeof *n->training))
        return TN_ERR_MEMORY;
    n->training[n->n_modules] = tn_module_is_training(module);
    n->modules[n->n_modules++] = tn_module_keep(module);
    return TN_OK;
}

/* Sets *has to whether the module itself has a parameter or a buffer. */
static tn_status has_tensors(tn_module *module, bool *has)
{
    tn_walk_options direct = { .size = sizeof direct, .flags = TN_WALK_DIRECT };
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, &direct);

    if (walk == NULL)
        return tn_error_last_code();
    *has = tn_walk_next(walk) != NULL;
    tn_walk_end(walk);
    return TN_OK;
}

/* Returns the number of slices of a row: the size of its tensor, or of its option. */
static int64_t row_size(tn_module *module, const tn_channel_row *row)
{
    tn_tensor *tensor = row->slot != NULL ? tn_module_get(module, row->slot) : NULL;

    if (tensor == NULL || tensor == TN_NONE)
        return -1;
    return tn_tensor_size(tensor, row->dim);
}

/* Sets the number of channels of a leaf. Fails if rows of one role differ in size. */
static tn_status measure(network_leaf *leaf)
{
    int64_t in = -1, out = -1;

    for (int64_t i = 0; i < leaf->channels.n_rows; i++) {
        const tn_channel_row *row = &leaf->channels.rows[i];
        int64_t size = row_size(leaf->module, row), *own = row->role == TN_CHANNELS_IN ? &in : &out;

        leaf->same |= row->role == TN_CHANNELS_SAME;
        if (size >= 0 && *own >= 0 && *own != size)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "%s: the sizes of its parameters differ, got %lld and %lld slices for "
                           "the same channels; expected one number",
                           tn_module_type(leaf->module), (long long)*own, (long long)size);
        if (size >= 0)
            *own = size;
    }
    leaf->out = out >= 0 ? out : 0;
    leaf->in = leaf->same ? leaf->out : in >= 0 ? in : 0;
    return TN_OK;
}

/* The child of a parametrized module whose modules compute its tensors. */
#define PARTS "parametrizations"

/* Fails if a tensor of the module is computed, and not by pruning: it is no parameter that could
 * become smaller. */
static tn_status check_plain(tn_module *module, const tn_channels *channels)
{
    tn_module *parts = tn_is_parametrized(module, NULL) ? tn_module_child(module, PARTS) : NULL;

    if (parts != NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "its %s is parametrized; expected a plain tensor (tn_parametrize_remove)",
                       tn_module_child_name(parts, 0));
    for (int64_t i = 0; i < channels->n_rows; i++) {
        const char *slot = channels->rows[i].slot;

        if (slot != NULL && tn_module_slot_kind(module, slot) == TN_SLOT_COMPUTED &&
            !network_is_pruned(module, slot))
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "its %s is computed, and not by pruning; expected a plain tensor", slot);
    }
    return TN_OK;
}

static tn_status add_leaf(network *n, tn_module *module, const char *path)
{
    network_leaf *leaf;
    uint64_t mark;

    if (!grow(&n->leaves, &n->leaf_room, n->n_leaves, sizeof *n->leaves))
        return TN_ERR_MEMORY;
    leaf = &n->leaves[n->n_leaves++];
    *leaf = (network_leaf){ .module = tn_module_keep(module), .path = tn_strdup(path) };
    if (leaf->path == NULL)
        return TN_ERR_MEMORY;
    mark = tn_error_mark();
    leaf->known = tn_module_channels(module, &leaf->channels) == TN_OK &&
                  check_plain(module, &leaf->channels) == TN_OK && measure(leaf) == TN_OK;
    if (!leaf->known) {
        if (tn_error_last_code() == TN_ERR_MEMORY)
            return TN_ERR_MEMORY;
        tn_snprint(leaf->why, sizeof leaf->why, "%s", tn_error_text());
        tn_error_restore(mark);
        leaf->in = leaf->out = 0;
        leaf->same = false;
    }
    return TN_OK;
}

/* Sets *is to whether the path leads through the parts of a parametrized module. */
static tn_status is_part(tn_module *net, const char *path, bool *is)
{
    const size_t length = strlen(PARTS);
    char *owner = tn_strdup(path);

    *is = false;
    if (owner == NULL)
        return TN_ERR_MEMORY;
    for (char *at = owner; !*is && (at = strstr(at, PARTS)) != NULL; at += length) {
        tn_module *module = net;

        if ((at > owner && at[-1] != '.') || (at[length] != '.' && at[length] != '\0'))
            continue;
        if (at > owner) {
            at[-1] = '\0';
            module = tn_module_find(net, owner);
            at[-1] = '.';
        }
        *is = module != NULL && tn_is_parametrized(module, NULL);
    }
    tn_free(owner);
    return TN_OK;
}

/* The parts of a parametrized module belong to it: they read and compute no channels. */
static tn_status collect(void *user, const tn_visit *what)
{
    network *n = user;
    bool part = false, has = tn_is_parametrized(what->module, NULL);
    tn_status status = note_mode(n, what->module);

    if (status == TN_OK)
        status = is_part(n->net, what->path, &part);
    if (status == TN_OK && !part && !has)
        status = has_tensors(what->module, &has);
    return status == TN_OK && has && !part ? add_leaf(n, what->module, what->path) : status;
}

/* Makes the channels of a leaf unknown, because another module has its tensor `slot` too. */
static void unknown_shared(network_leaf *leaf, const char *slot, const network_leaf *other)
{
    leaf->known = leaf->same = false;
    leaf->in = leaf->out = 0;
    tn_snprint(leaf->why, sizeof leaf->why, "its %s is also that of \"%s\"", slot, other->path);
}

/* A tensor that a leaf describes. */
struct owned {
    const tn_tensor *tensor;
    network_leaf *leaf;
    const char *slot;
};

/* Writes the tensors that the leaves describe to `all`, and returns their number. Without `all`,
 * returns how many there are at most. */
static int64_t collect_owned(network *n, struct owned *all)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n->n_leaves; i++) {
        network_leaf *leaf = &n->leaves[i];

        for (int64_t r = 0; leaf->known && r < leaf->channels.n_rows; r++) {
            const char *slot = leaf->channels.rows[r].slot;
            const tn_tensor *tensor = slot != NULL && all != NULL
                                          ? network_plain(leaf->module, slot)
                                          : NULL;

            if (all != NULL && (tensor == NULL || tensor == TN_NONE))
                continue;
            if (all != NULL)
                all[count] = (struct owned){ tensor, leaf, slot };
            count++;
        }
    }
    return count;
}

/* Channels of modules that share a tensor are not known: each needs its own. */
static tn_status find_shared(network *n)
{
    struct owned *all = tn_calloc((size_t)collect_owned(n, NULL) + 1, sizeof *all);
    int64_t count = all != NULL ? collect_owned(n, all) : 0;

    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < i; k++)
            if (all[i].tensor == all[k].tensor && all[i].leaf != all[k].leaf) {
                unknown_shared(all[i].leaf, all[i].slot, all[k].leaf);
                unknown_shared(all[k].leaf, all[k].slot, all[i].leaf);
            }
    tn_free(all);
    return all != NULL ? TN_OK : TN_ERR_MEMORY;
}

struct sharing {
    network *n;
    const network_leaf *owner; /* of the parts */
};

/* Makes the channels of modules that have this part of a parametrized module unknown. */
static tn_status find_part(void *user, const char *path, tn_tensor *tensor)
{
    const struct sharing *s = user;

    (void)path;
    for (int64_t i = 0; i < s->n->n_leaves; i++) {
        network_leaf *leaf = &s->n->leaves[i];

        for (int64_t r = 0; leaf->known && r < leaf->channels.n_rows; r++) {
            const char *slot = leaf->channels.rows[r].slot;

            if (slot != NULL && network_plain(leaf->module, slot) == tensor)
                unknown_shared(leaf, slot, s->owner);
        }
    }
    return TN_OK;
}

static tn_status find_shared_parts(network *n)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < n->n_leaves && status == TN_OK; i++) {
        struct sharing s = { n, &n->leaves[i] };

        if (tn_is_parametrized(s.owner->module, NULL))
            status = tn_module_each_tensor(tn_module_child(s.owner->module, PARTS),
                                           TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false, find_part,
                                           &s);
    }
    return status;
}

static tn_status make_elements(network *n)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n->n_leaves; i++) {
        network_leaf *leaf = &n->leaves[i];

        leaf->out_at = count;
        count += leaf->out;
        leaf->in_at = leaf->same ? leaf->out_at : count;
        count += leaf->same ? 0 : leaf->in;
    }
    n->n_elements = count;
    n->elements = tn_calloc((size_t)count + 1, sizeof *n->elements);
    if (n->elements == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < n->n_leaves; i++) {
        const network_leaf *leaf = &n->leaves[i];
        int64_t own = leaf->out + (leaf->same ? 0 : leaf->in);

        for (int64_t k = 0; k < own; k++)
            n->elements[leaf->out_at + k] = (network_element){ leaf->out_at + k, i, 0, 0 };
    }
    return TN_OK;
}

/* ---- calling --------------------------------------------------------------------------------- */

static tn_status add_tensors(const tn_value *value, tn_tensor ***at, int64_t *count, int64_t *room)
{
    tn_status status = TN_OK;

    if (value->kind == TN_VALUE_TENSOR) {
        if (!grow(at, room, *count, sizeof **at))
            return TN_ERR_MEMORY;
        (*at)[(*count)++] = tn_tensor_to_scope(tn_tensor_keep(value->as.tensor));
        return TN_OK;
    }
    if (value->kind != TN_VALUE_LIST && value->kind != TN_VALUE_TUPLE &&
        value->kind != TN_VALUE_DICT)
        return TN_OK;
    for (uint32_t i = 0; i < tn_value_size(value) && status == TN_OK; i++)
        status = add_tensors(tn_value_item(value, i), at, count, room);
    return status;
}

tn_status network_call(network *n, tn_tensor *const *inputs, tn_tensor ***outputs,
                       int64_t *n_outputs)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_status status = in != NULL && out != NULL ? TN_OK : TN_ERR_MEMORY;
    int64_t room = 0;

    *outputs = NULL;
    *n_outputs = 0;
    n->failed = TN_OK;
    for (int64_t i = 0; i < n->n_leaves; i++)
        n->leaves[i].turn = 0;
    for (int64_t i = 0; i < n->n_inputs && status == TN_OK; i++)
        status = tn_pack_add(in, NULL,
                             inputs[i] == TN_NONE ? tn_value_none() : tn_value_tensor(inputs[i]));
    if (status == TN_OK)
        status = tn_module_call_pack(n->net, in, out);
    for (int64_t i = 0; status == TN_OK && i < tn_pack_count(out); i++) {
        tn_value value = tn_pack_at(out, i);

        status = add_tensors(&value, outputs, n_outputs, &room);
    }
    tn_pack_drop(in);
    tn_pack_drop(out);
    if (status != TN_OK) {
        tn_free(*outputs);
        *outputs = NULL;
        *n_outputs = 0;
    }
    return status;
}

static tn_status register_hooks(network *n)
{
    for (int64_t i = 0; i < n->n_leaves; i++) {
        network_leaf *leaf = &n->leaves[i];
        network_at *at = tn_malloc(sizeof *at), *after = tn_malloc(sizeof *after);

        if (at != NULL)
            *at = (network_at){ n, i };
        if (after != NULL)
            *after = (network_at){ n, i };
        /* The last hook before the layer's forward sees the arguments of the layer, the first hook
         * after it the results of the layer. */
        leaf->pre = at != NULL && after != NULL
                        ? tn_module_hook_forward_pre(leaf->module, network_before, 0, at, tn_free)
                        : 0;
        if (leaf->pre == 0) {
            tn_free(at);
            tn_free(after);
            return tn_error_last_code();
        }
        leaf->post = tn_module_hook_forward(leaf->module, network_after, TN_HOOK_PREPEND, after,
                                            tn_free);
        if (leaf->post == 0) {
            tn_free(after);
            return tn_error_last_code();
        }
    }
    return TN_OK;
}

tn_status network_open(network *n, tn_module *net, tn_tensor *const *inputs, int64_t n_inputs)
{
    tn_walk_options options = { .size = sizeof options };
    tn_status status;

    *n = (network){ .net = net, .inputs = inputs, .n_inputs = n_inputs };
    status = tn_module_walk(net, TN_SLOT_CHILD, &options, collect, n);
    if (status == TN_OK)
        status = find_shared(n);
    if (status == TN_OK)
        status = find_shared_parts(n);
    if (status == TN_OK)
        status = make_elements(n);
    if (status == TN_OK)
        status = tn_module_eval(net);
    if (status == TN_OK)
        status = register_hooks(n);
    if (status == TN_OK) {
        status = network_call(n, inputs, &n->outputs, &n->n_outputs);
        if (status != TN_OK)
            tn_error_prefix("calling the network with the example: ");
    }
    return status;
}

void network_close(network *n)
{
    for (int64_t i = 0; i < n->n_leaves; i++) {
        network_leaf *leaf = &n->leaves[i];

        tn_hook_remove(leaf->pre);
        tn_hook_remove(leaf->post);
        for (int64_t k = 0; k < leaf->calls; k++)
            tn_pack_drop(leaf->clean[k]);
        tn_free(leaf->clean);
        tn_free(leaf->zero);
        tn_free(leaf->path);
        tn_module_drop(leaf->module);
    }
    for (int64_t i = 0; i < n->n_modules; i++) {
        if (tn_module_is_training(n->modules[i]) != n->training[i])
            (void)tn_module_train(n->modules[i], n->training[i]);
        tn_module_drop(n->modules[i]);
    }
    tn_free(n->modules);
    tn_free(n->training);
    tn_free(n->leaves);
    tn_free(n->elements);
    tn_free(n->outputs);
    *n = (network){ 0 };
}
