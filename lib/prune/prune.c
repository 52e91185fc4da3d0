/* SPDX-License-Identifier: MIT
 *
 * Pruning of parameters and tensors: the public functions. */
#include "lib/prune/prune.h"

/* ---- one parameter --------------------------------------------------------------------------- */

/* Computes the mask of a parameter and stores it. */
static tn_status prune_place(const tn__prune_place *place, const tn__prune_steps *steps,
                             tn_tensor *scores)
{
    tn__prune_change change;
    tn_tensor *mask;
    tn_status status = TN_OK;

    if (scores != NULL)
        status = tn__prune_same_shape(scores, place->values, "scores");
    mask = status == TN_OK
               ? tn__prune_mask_of(steps, place->values, scores, place->mask, TN__PRUNE_MASKED)
               : NULL;
    if (mask == NULL)
        return tn_error_last_code();
    status = tn__prune_store(place, mask, steps, &change);
    if (status == TN_OK)
        tn__prune_done(&change);
    return status;
}

/* Prefixes the failure of a function, and returns its status. The messages of tn__prune_find() name
 * the parameter themselves. */
static tn_status failed(const char *who, const tn_module *module, const char *name, bool found)
{
    return found ? tn_error_prefix("%s: %q of %s: ", who, name, module->type)
                 : tn_error_prefix("%s: ", who);
}

static tn_status prune(const char *who, tn_module *module, const char *name, const char *methods,
                       tn_tensor *scores)
{
    tn__prune_steps steps = { 0 };
    tn__prune_place place;
    uint64_t scope = tn_scope_begin();
    tn_status status = tn_grad_begin(false);

    if (status == TN_OK) {
        bool found = tn__prune_find(module, name, &place) == TN_OK;
        if (found)
            status = tn__prune_steps_read(&steps, place.name, methods);
        if (found && status == TN_OK)
            status = prune_place(&place, &steps, scores);
        if (!found || status != TN_OK)
            status = failed(who, module, name, found);
        tn_grad_end();
    }
    tn__prune_steps_free(&steps);
    tn_scope_end(scope);
    return status;
}

tn_status tn_prune(tn_module *module, const char *name, const char *methods)
{
    if (module == NULL || name == NULL || methods == NULL)
        return tn__error_null_of("tn_prune", "module, name, methods", module, name, methods);
    return prune("tn_prune", module, name, methods, NULL);
}

tn_status tn_prune_by(tn_module *module, const char *name, const char *methods, tn_tensor *scores)
{
    if (module == NULL || name == NULL || methods == NULL || scores == NULL)
        return tn__error_null_of("tn_prune_by", "module, name, methods, scores", module, name,
                                 methods, scores);
    return prune("tn_prune_by", module, name, methods, tn__is_none(scores) ? NULL : scores);
}

/* ---- a given mask ---------------------------------------------------------------------------- */

static tn_status store_product(const tn__prune_place *place, tn_tensor *mask,
                               tn__prune_change *change)
{
    tn_dtype dtype = tn_tensor_dtype(place->values);
    tn_status status = tn__prune_same_shape(mask, place->values, "mask");
    tn_tensor *all = NULL;

    if (status == TN_OK) {
        all = place->mask != NULL ? place->mask : tn__prune_ones(place->values);
        mask = all != NULL ? tn__prune_copy(mask, dtype) : NULL;
        all = mask != NULL ? tn__prune_product(all, mask) : NULL;
        all = all != NULL ? tn__prune_copy(all, dtype) : NULL;
    }
    return all != NULL ? tn__prune_store(place, all, NULL, change) : tn_error_last_code();
}

tn_status tn_prune_from_mask(tn_module *module, const char *name, tn_tensor *mask)
{
    tn__prune_change change;
    tn__prune_place place;
    uint64_t scope;
    tn_status status;

    if (module == NULL || name == NULL || mask == NULL)
        return tn__error_null_of("tn_prune_from_mask", "module, name, mask", module, name, mask);
    if (tn__is_none(mask))
        return tn_fail(TN_ERR_TYPE, "tn_prune_from_mask: mask: it is TN_NONE; expected a tensor");
    scope = tn_scope_begin();
    status = tn_grad_begin(false);
    if (status == TN_OK) {
        bool found = tn__prune_find(module, name, &place) == TN_OK;
        if (found)
            status = store_product(&place, mask, &change);
        if (found && status == TN_OK)
            tn__prune_done(&change);
        else
            status = failed("tn_prune_from_mask", module, name, found);
        tn_grad_end();
    }
    tn_scope_end(scope);
    return status;
}

/* ---- several parameters ---------------------------------------------------------------------- */

/* The parameters of tn_prune_global(), with the scores and the masks of all of them in two long
 * vectors. */
struct together {
    const tn_prune_target *targets;
    tn__prune_place *places;
    tn__prune_change *changes;
    int64_t count, size;
    tn_tensor *scores, *mask;
};

static tn_status find_all(struct together *all)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < all->count && status == TN_OK; i++) {
        const tn_prune_target *target = &all->targets[i];

        if (target->module == NULL || target->name == NULL)
            return tn_fail(TN_ERR_VALUE, "targets[%lld]: %s: it is NULL; expected a %s",
                           (long long)i, target->module == NULL ? "module" : "name",
                           target->module == NULL ? "module" : "name of a parameter");
        status = tn__prune_find(target->module, target->name, &all->places[i]);
        if (status == TN_OK && target->scores != NULL && !tn__is_none(target->scores))
            status = tn__prune_same_shape(target->scores, all->places[i].values, "scores");
        if (status != TN_OK)
            return tn_error_prefix("targets[%lld]: ", (long long)i);
        all->size += tn_tensor_numel(all->places[i].values);
    }
    return status;
}

/* Returns the part of a long vector that belongs to a parameter, with the parameter's shape. */
static tn_tensor *part(tn_tensor *whole, int64_t offset, const tn_tensor *like)
{
    tn_ints shape = tn__shape(like);
    int64_t strides[TN_MAX_DIMS], stride = 1;

    for (int64_t i = shape.count - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape.at[i];
    }
    return tn_tensor_as_strided(whole, shape, (tn_ints){ strides, shape.count }, offset);
}

static tn_status put(tn_tensor *whole, int64_t offset, const tn_tensor *like, tn_tensor *from)
{
    tn_tensor *to = from != NULL ? part(whole, offset, like) : NULL;

    return to != NULL ? tn__copy(to, from) : tn_error_last_code();
}

/* Puts the scores and the masks of all parameters into two long vectors. */
static tn_status join_all(struct together *all)
{
    const tn_tensor *first = all->places[0].values;
    tn_status status = TN_OK;

    all->scores = tn_tensor_empty(TN_SHAPE(all->size), tn_tensor_dtype(first),
                                  tn_tensor_device(first));
    all->mask = all->scores != NULL ? tn__prune_ones(all->scores) : NULL;
    if (all->mask == NULL)
        return tn_error_last_code();
    for (int64_t i = 0, at = 0; i < all->count && status == TN_OK; i++) {
        const tn__prune_place *place = &all->places[i];
        tn_tensor *scores = all->targets[i].scores;

        if (scores == NULL || tn__is_none(scores))
            scores = place->mask != NULL ? tn__prune_product(place->values, place->mask)
                                         : place->values;
        status = put(all->scores, at, place->values, scores);
        if (status == TN_OK && place->mask != NULL)
            status = put(all->mask, at, place->values, place->mask);
        at += tn_tensor_numel(place->values);
    }
    return status;
}

/* Stores for each parameter the product of its part of `mask` and the mask that it has. If one
 * fails, all keep the masks that they had. */
static tn_status store_all(struct together *all, tn_tensor *mask)
{
    tn_status status = TN_OK;
    int64_t stored = 0;

    for (int64_t at = 0; stored < all->count && status == TN_OK;) {
        tn__prune_place *place = &all->places[stored];
        tn_tensor *own = part(mask, at, place->values);

        at += tn_tensor_numel(place->values);
        status = own != NULL
                     ? tn__prune_find(all->targets[stored].module, all->targets[stored].name, place)
                     : tn_error_last_code();
        if (status == TN_OK)
            status = store_product(place, own, &all->changes[stored]);
        stored += status == TN_OK;
    }
    while (stored > 0)
        if (status == TN_OK)
            tn__prune_done(&all->changes[--stored]);
        else
            tn__prune_undo(&all->changes[--stored]);
    return status;
}

static tn_status prune_together(struct together *all, const tn__prune_steps *steps)
{
    const tn_prune_def *def = tn__prune_def(&steps->at[0]);
    tn_tensor *mask = NULL;
    tn_status status;

    if (steps->count != 1 || def->type != TN_PRUNE_UNSTRUCTURED)
        return tn_fail(TN_ERR_TYPE,
                       "method: only one method of the type \"unstructured\" is supported, got %s "
                       "%s; expected one that ranks entries",
                       steps->count != 1 ? "several, the first" : "another type:", def->name);
    status = find_all(all);
    if (status == TN_OK && all->count > 0) {
        status = join_all(all);
        mask = status == TN_OK ? tn__prune_mask_of(steps, all->scores, all->scores, all->mask, 0)
                               : NULL;
        status = mask != NULL ? store_all(all, mask) : tn_error_last_code();
    }
    return status;
}

tn_status tn_prune_global(const tn_prune_target *targets, int64_t count, const char *method)
{
    struct together all = { .targets = targets, .count = count };
    tn__prune_steps steps = { 0 };
    uint64_t scope;
    tn_status status;

    if ((targets == NULL && count != 0) || method == NULL)
        return tn__error_null_of("tn_prune_global", "method, targets", method, targets);
    if (count < 0 || count > INT32_MAX)
        return tn_fail(TN_ERR_VALUE,
                       "tn_prune_global: count: out of range, got %lld; expected 0 to %d",
                       (long long)count, INT32_MAX);
    scope = tn_scope_begin();
    status = tn_grad_begin(false);
    if (status == TN_OK) {
        all.places = tn_calloc((size_t)count + 1, sizeof *all.places);
        all.changes = tn_calloc((size_t)count + 1, sizeof *all.changes);
        status = all.places != NULL && all.changes != NULL
                     ? tn__prune_steps_read(&steps, NULL, method)
                     : TN_ERR_MEMORY;
        if (status == TN_OK)
            status = prune_together(&all, &steps);
        if (status != TN_OK)
            tn_error_prefix("tn_prune_global: ");
        tn_grad_end();
    }
    tn_free(all.places);
    tn_free(all.changes);
    tn__prune_steps_free(&steps);
    tn_scope_end(scope);
    return status;
}

/* ---- the end of pruning, and questions ------------------------------------------------------- */

tn_status tn_prune_remove(tn_module *module, const char *name)
{
    tn__prune_place place;
    uint64_t scope;
    tn_status status;

    if (module == NULL || name == NULL)
        return tn__error_null_of("tn_prune_remove", "module, name", module, name);
    scope = tn_scope_begin();
    status = tn_grad_begin(false);
    if (status == TN_OK) {
        /* PyTorch has the same message for a name that is not a parameter and for a parameter that
         * is not pruned. */
        uint64_t mark = tn_error_mark();
        bool found = tn__prune_find(module, name, &place) == TN_OK;
        bool broken = !found && (place.module == NULL || place.pruned != NULL);
        if (!found && !broken)
            tn_error_restore(mark);
        if (found && place.pruned != NULL)
            status = tn__prune_make_permanent(&place);
        else
            status = broken ? tn_error_prefix("tn_prune_remove: ")
                            : tn_fail(TN_ERR_VALUE,
                                      "Parameter '%s' of module %s has to be pruned before pruning "
                                      "can be removed",
                                      place.name, place.module->type);
        tn_grad_end();
    }
    tn_scope_end(scope);
    return status;
}

bool tn_is_pruned(tn_module *module)
{
    tn__walk walk = { NULL, 0, 0 };
    bool pruned = false;

    if (!tn__not_null(module, "tn_is_pruned: module"))
        return false;
    if (tn__walk_collect(module, TN_SLOT_CHILD, false, &walk) == TN_OK)
        for (int64_t i = 0; i < walk.count && !pruned; i++)
            pruned = tn__prune_has(walk.at[i].module);
    tn__walk_free(&walk);
    return pruned;
}

int64_t tn_prune_count(tn_module *module, const char *name)
{
    tn__prune_place place;

    if (module == NULL || name == NULL) {
        tn__error_null_of("tn_prune_count", "module, name", module, name);
        return -1;
    }
    if (tn__prune_find(module, name, &place) != TN_OK) {
        tn_error_prefix("tn_prune_count: ");
        return -1;
    }
    return place.pruned != NULL ? place.pruned->count : 0;
}

int64_t tn_prune_method(tn_module *module, const char *name, int64_t index, char *out, size_t size)
{
    tn__prune_place place;
    int64_t count;

    if (module == NULL || name == NULL) {
        tn__error_null_of("tn_prune_method", "module, name", module, name);
        return -1;
    }
    if (tn__prune_find(module, name, &place) != TN_OK) {
        tn_error_prefix("tn_prune_method: ");
        return -1;
    }
    count = place.pruned != NULL ? place.pruned->count : 0;
    if (index < 0 || index >= count) {
        tn_fail(TN_ERR_INDEX,
                "tn_prune_method: index: out of range, got %lld; expected that of one of the %lld "
                "methods of %q",
                (long long)index, (long long)count, name);
        return -1;
    }
    return tn_snprint(out, size, "%s", place.pruned->methods[index]);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static tn_tensor *mask_of(tn_tensor *tensor, tn_tensor *mask, tn_tensor *scores,
                          const char *methods, uint32_t flags, bool times)
{
    tn__prune_steps steps = { 0 };
    tn_tensor *made = NULL;
    uint64_t scope = tn_scope_begin();
    tn_status status;

    mask = tn__is_none(mask) ? NULL : mask;
    scores = tn__is_none(scores) ? NULL : scores;
    status = mask != NULL ? tn__prune_same_shape(mask, tensor, "mask") : TN_OK;
    if (status == TN_OK && scores != NULL)
        status = tn__prune_same_shape(scores, tensor, "scores");
    if (status != TN_OK)
        tn_error_prefix("%s: ", times ? "tn_prune_tensor" : "tn_prune_mask");
    if (status == TN_OK)
        status = tn__prune_steps_read(&steps, NULL, methods);
    if (status == TN_OK)
        status = tn_grad_begin(false);
    if (status == TN_OK) {
        made = tn__prune_mask_of(&steps, tensor, scores, mask, flags);
        tn_grad_end();
    }
    if (made != NULL && times)
        made = tn__prune_product(tensor, made);
    tn__prune_steps_free(&steps);
    tn_scope_end_with(scope, &made, made != NULL ? 1 : 0);
    return made;
}

tn_tensor *tn_prune_mask(tn_tensor *tensor, tn_tensor *mask, tn_tensor *scores, const char *methods)
{
    if (tensor == NULL || mask == NULL || scores == NULL || methods == NULL) {
        tn__error_null_of("tn_prune_mask", "tensor, mask, scores, methods", tensor, mask, scores,
                          methods);
        return NULL;
    }
    if (tn__is_none(tensor)) {
        tn_fail(TN_ERR_RUNTIME, "tn_prune_mask: tensor: it is TN_NONE; expected a tensor");
        return NULL;
    }
    return mask_of(tensor, mask, scores, methods, 0, false);
}

tn_tensor *tn_prune_tensor(tn_tensor *tensor, tn_tensor *mask, tn_tensor *scores,
                           const char *methods)
{
    if (tensor == NULL || mask == NULL || scores == NULL || methods == NULL) {
        tn__error_null_of("tn_prune_tensor", "tensor, mask, scores, methods", tensor, mask, scores,
                          methods);
        return NULL;
    }
    if (tn__is_none(tensor)) {
        tn_fail(TN_ERR_RUNTIME, "tn_prune_tensor: tensor: it is TN_NONE; expected a tensor");
        return NULL;
    }
    return mask_of(tensor, mask, scores, methods, TN__PRUNE_WHOLE, true);
}
