/* SPDX-License-Identifier: MIT
 *
 * What a compiled module consists of: lists of the modules of its tree, with their modes, options
 * and forwards, and of their tensors. Before each run the tree is compared with the list. */
#include "lib/plan/parts.h"

#include "core/base/vector.h"
#include "core/grad/internal.h"
#include "core/module/hooks.h"

void tn__plan_parts_free(tn__plan_parts *p)
{
    for (int64_t i = 0; i < p->n_modules; i++) {
        tn__own_forward_drop(p->modules[i].forward);
        if (i > 0)
            tn_module_drop(p->modules[i].module);
    }
    for (int64_t i = 0; i < p->n_tensors; i++)
        if (!tn__is_none(p->tensors[i].tensor))
            tn_tensor_drop(p->tensors[i].tensor);
    tn_free(p->modules);
    tn_free(p->tensors);
    tn_free(p->data);
    tn_free(p->dims);
}

/* ---- adding ---------------------------------------------------------------------------------- */

static tn_status add_tensor(tn__plan_parts *p, tn_tensor *tensor)
{
    tn__plan_tensor *new = &p->tensors[p->n_tensors];
    int64_t ndim = tn__tensor_ok(tensor) ? tensor->view.ndim : 0;

    *new = (tn__plan_tensor){ .tensor = TN_NONE };
    if (!tn__vector_room(&p->dims, &p->dims_capacity, p->n_dims + 2 * ndim, sizeof *p->dims))
        return TN_ERR_MEMORY;
    p->n_tensors++;
    if (!tn__tensor_ok(tensor))
        return TN_OK;
    new->tensor = tn_tensor_keep(tensor);
    new->storage = tensor->storage;
    new->byte_offset = tensor->view.byte_offset;
    new->dims = p->n_dims;
    new->ndim = tensor->view.ndim;
    new->dtype = tensor->dtype;
    new->requires_grad = tensor->requires_grad;
    new->leaf = tn_tensor_is_leaf(tensor);
    new->version = atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
    for (int64_t d = 0; d < ndim; d++) {
        p->dims[p->n_dims++] = tensor->view.shape[d];
        p->dims[p->n_dims++] = tensor->view.strides[d];
    }
    return TN_OK;
}

static tn_status add_tensors(tn__plan_parts *p, const tn__slots *slots)
{
    tn_status status = TN_OK;

    if (!tn__vector_room(&p->tensors, &p->tensors_capacity, p->n_tensors + slots->count,
                         sizeof *p->tensors))
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < slots->count && status == TN_OK; i++)
        status = add_tensor(p, slots->at[i].tensor);
    return status;
}

static size_t data_size(const tn_module *module)
{
    return module->layer != NULL && module->data != NULL ? module->layer->data_size : 0;
}

static tn_status add_module(tn__plan_parts *p, tn_module *module)
{
    size_t size = data_size(module);
    tn__plan_part *new;

    if (p->n_modules > 0 && (tn__hook_kinds(module) & TN__HOOKS_AROUND) != 0)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: it has hooks, which a plan does not call; expected none below the "
                       "compiled module",
                       module->type);
    if (!tn__vector_room(&p->modules, &p->modules_capacity, p->n_modules + 1, sizeof *p->modules) ||
        !tn__vector_room(&p->data, &p->data_capacity, p->n_data + (int64_t)size, 1))
        return TN_ERR_MEMORY;
    new = &p->modules[p->n_modules];
    *new = (tn__plan_part){ p->n_modules > 0 ? tn_module_keep(module) : module,
                            tn__own_forward_keep(module->own_forward),
                            module->layer,
                            p->n_tensors,
                            (size_t)p->n_data,
                            module->training,
                            atomic_load_explicit(&module->changes, memory_order_relaxed) };
    if (size > 0)
        memcpy(p->data + p->n_data, module->data, size);
    p->n_data += (int64_t)size;
    p->n_modules++;
    return TN_OK;
}

tn_status tn__plan_parts_add(tn__plan_parts *p, tn_module *module)
{
    tn_status status = TN_OK;

    if (p->n_modules == 0)
        p->epoch = atomic_load_explicit(&tn__module_epoch, memory_order_relaxed);
    status = add_module(p, module);
    if (status == TN_OK)
        status = add_tensors(p, &module->parameters);
    if (status == TN_OK)
        status = add_tensors(p, &module->buffers);
    for (int64_t i = 0; i < module->children.count && status == TN_OK; i++)
        if (module->children.at[i].child != NULL)
            status = tn__plan_parts_add(p, module->children.at[i].child);
    return status;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* A place in the list while a tree is compared with it. */
struct place {
    int64_t module, tensor;
    bool places; /* whether tensors must be where they were */
};

static bool same_place(const tn__plan_parts *p, const tn__plan_tensor *old, const tn_tensor *tensor)
{
    const int64_t *dims = p->dims + old->dims;
    bool same = tensor->storage == old->storage && tensor->view.byte_offset == old->byte_offset &&
                tensor->view.ndim == old->ndim && tensor->dtype == old->dtype &&
                tensor->requires_grad == old->requires_grad;

    for (int32_t d = 0; d < old->ndim && same; d++)
        same = tensor->view.shape[d] == dims[2 * d] && tensor->view.strides[d] == dims[2 * d + 1];
    return same;
}

static bool same_tensors(const tn__plan_parts *p, struct place *at, const tn__slots *slots)
{
    if (at->tensor + slots->count > p->n_tensors)
        return false;
    for (int64_t i = 0; i < slots->count; i++) {
        const tn_tensor *tensor = slots->at[i].tensor;
        const tn__plan_tensor *old = &p->tensors[at->tensor++];

        if (old->tensor != (tn__tensor_ok(tensor) ? tensor : TN_NONE) ||
            (at->places && tn__tensor_ok(tensor) && !same_place(p, old, tensor)))
            return false;
    }
    return true;
}

static bool same_module(const tn__plan_parts *p, int64_t i, tn_module *module)
{
    const tn__plan_part *old = &p->modules[i];
    size_t size = data_size(module);

    return old->module == module && old->training == module->training &&
           old->changes == atomic_load_explicit(&module->changes, memory_order_relaxed) &&
           old->forward == module->own_forward && old->layer == module->layer &&
           (i == 0 || (tn__hook_kinds(module) & TN__HOOKS_AROUND) == 0) &&
           (size == 0 || memcmp(p->data + old->data, module->data, size) == 0);
}

static bool same_tree(const tn__plan_parts *p, struct place *at, tn_module *module)
{
    int64_t i = at->module++;
    bool same = i < p->n_modules && same_module(p, i, module) &&
                same_tensors(p, at, &module->parameters) && same_tensors(p, at, &module->buffers);

    for (int64_t k = 0; k < module->children.count && same; k++)
        if (module->children.at[k].child != NULL)
            same = same_tree(p, at, module->children.at[k].child);
    return same;
}

bool tn__plan_parts_hold(const tn__plan_parts *p, tn_module *module, bool places)
{
    struct place at = { 0, 0, places };

    return (places || p->epoch == atomic_load_explicit(&tn__module_epoch, memory_order_relaxed)) &&
           same_tree(p, &at, module) && at.module == p->n_modules && at.tensor == p->n_tensors;
}

bool tn__plan_parts_lazy(tn_module *module)
{
    bool lazy = tn__module_waits(module);

    for (int64_t i = 0; i < module->children.count && !lazy; i++)
        lazy = module->children.at[i].child != NULL &&
               tn__plan_parts_lazy(module->children.at[i].child);
    return lazy;
}

/* ---- after a recording ----------------------------------------------------------------------- */

/* Puts back the tensors of slots that the recording has set. */
static bool restore_slots(const tn__plan_parts *p, int64_t *at, tn__slots *slots)
{
    bool changed = false;

    for (int64_t i = 0; i < slots->count && *at < p->n_tensors; i++) {
        tn_tensor *now = slots->at[i].tensor, *before = p->tensors[(*at)++].tensor;

        if (tn__tensor_ok(now) ? now == before : tn__is_none(before))
            continue;
        changed = true;
        slots->at[i].tensor = tn__is_none(before) ? TN_NONE : tn_tensor_keep(before);
        if (tn__tensor_ok(now))
            tn_tensor_drop(now);
    }
    return changed;
}

/* Puts back the history of tensors, which would be that of the recording. */
static bool restore_history(const tn__plan_parts *p)
{
    bool changed = false;

    for (int64_t i = 0; i < p->n_tensors; i++) {
        const tn__plan_tensor *old = &p->tensors[i];

        if (tn__is_none(old->tensor) || (old->tensor->requires_grad == old->requires_grad &&
                                         (!old->leaf || tn_tensor_is_leaf(old->tensor))))
            continue;
        changed = true;
        if (old->leaf)
            tn__grad_cut(old->tensor, old->requires_grad);
    }
    return changed;
}

bool tn__plan_parts_restore(const tn__plan_parts *p)
{
    bool changed = restore_history(p);

    for (int64_t i = 0; i < p->n_modules; i++) {
        tn_module *module = p->modules[i].module;
        int64_t at = p->modules[i].first;
        int64_t end = i + 1 < p->n_modules ? p->modules[i + 1].first : p->n_tensors;

        if (module->parameters.count + module->buffers.count != end - at) {
            changed = true;
            continue;
        }
        changed |= restore_slots(p, &at, &module->parameters);
        changed |= restore_slots(p, &at, &module->buffers);
    }
    return changed;
}

void tn__plan_parts_restore_versions(const tn__plan_parts *p, const tn__plan_recorder *r)
{
    for (int64_t i = 0; i < p->n_tensors; i++) {
        const tn__plan_tensor *old = &p->tensors[i];
        void **number = tn__is_none(old->tensor) ? NULL : tn__map_value(&r->roots, old->storage);

        if (number != NULL && r->b->roots[(intptr_t)*number - 1].written)
            atomic_store_explicit(&old->storage->version, old->version, memory_order_relaxed);
    }
}
