/* SPDX-License-Identifier: MIT
 *
 * What is checked when a recording has ended: values that changed meanwhile, and values of the
 * recording that the program still has. */
#include "lib/plan/train.h"

#include "core/grad/internal.h"

/* ---- values that changed --------------------------------------------------------------------- */

/* Returns the read of memory that a step writes; NULL: none. */
static const tn__guard *read_of_written(const tn__plan_binding *b, const tn__plan_root *root)
{
    for (int64_t i = 0; i < b->n_reads && root->written; i++)
        if (b->reads[i].tensor->storage == root->storage)
            return &b->reads[i];
    return NULL;
}

/* Whether the memory is that of a parameter, which a step of an optimizer in another thread may
 * change. Code of the module that changes it is refused when it asks for the values. */
static bool trains(const tn__plan_recorder *r, const tn__plan_root *root)
{
    void **tensor = r->memory != NULL ? tn__map_value(r->memory, root->storage) : NULL;

    return tensor != NULL && *tensor != NULL;
}

tn_status tn__plan_steps_check(const tn__plan_recorder *r)
{
    const tn__plan_binding *b = r->b;

    for (int64_t i = 0; i < b->n_roots; i++) {
        const tn__plan_root *root = &b->roots[i];
        const tn__guard *read;

        if (root->place == TN__PLAN_HELD && !root->written && !r->backward && !trains(r, root) &&
            atomic_load(&root->storage->version) != root->version)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "the values of a tensor changed while the plan was made; expected code "
                           "that writes with operators only");
        read = read_of_written(b, root);
        if (read != NULL)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "module %q: the values of a tensor are read, and a step changes them; "
                           "expected steps that do not depend on values",
                           read->who);
    }
    for (int64_t i = 0; i < r->n_taken; i++)
        if (!r->taken[i].used)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "tn_random_take: no operator uses the numbers; expected operators that "
                           "draw");
    return TN_OK;
}

/* ---- values that the program keeps ----------------------------------------------------------- */

static tn_status count(tn__map *counts, const tn__storage *storage)
{
    if (tn__map_add(counts, storage) < 0)
        return TN_ERR_MEMORY;
    *(intptr_t *)(void *)tn__map_value(counts, storage) += 1;
    return TN_OK;
}

static tn_status count_saved(void *user, tn__storage *storage, bool changed)
{
    (void)changed;
    return count(user, storage);
}

/* Whether result `i` is a tensor that is not among the results before it. */
static bool is_new(const tn__plan_train *t, int64_t i)
{
    for (int64_t k = 0; k < i; k++)
        if (t->outs[k] == t->outs[i])
            return false;
    return tn__tensor_ok(t->outs[i]);
}

/* Counts the references that the plan has to storages: those of its roots, of the results, and of
 * what the history saves. */
static tn_status count_own(const tn__plan_train *t, tn__map *counts)
{
    const tn__plan_binding *b = t->forward;
    tn_status status = TN_OK;

    if (t->n_wants > 0)
        status = tn__history_saved(t->outs, t->n_out, count_saved, counts);
    for (int64_t i = 0; i < b->n_roots && status == TN_OK; i++)
        status = count(counts, b->roots[i].storage);
    for (int64_t i = 0; i < t->n_out && status == TN_OK; i++) {
        if (is_new(t, i))
            status = count(counts, t->outs[i]->storage);
        if (is_new(t, i) && tn__history_has_base(t->outs[i]) && status == TN_OK)
            status = count(counts, t->outs[i]->storage);
    }
    return status;
}

/* Whether code outside of the plan holds result `i`. The plan has one reference for each place
 * among the results, and one for each result that is a view of it. */
static bool is_shared(const tn__plan_train *t, int64_t i)
{
    int32_t own = 0;

    for (int64_t k = 0; k < t->n_out; k++)
        own += t->outs[k] == t->outs[i] ||
               (tn__tensor_ok(t->outs[k]) && tn__history_has_base(t->outs[k]) &&
                t->outs[k]->storage == t->outs[i]->storage);
    return t->outs[i]->refs > own;
}

tn_status tn__plan_escapes(const tn__plan_train *t, bool *escapes)
{
    const tn__plan_binding *b = t->forward;
    tn__map counts = { 0 };
    tn_status status = count_own(t, &counts);

    *escapes = false;
    for (int64_t i = 0; i < b->n_roots && status == TN_OK; i++) {
        tn__storage *storage = b->roots[i].storage;

        if (b->roots[i].place == TN__PLAN_BLOCK)
            *escapes |= storage->refs > (intptr_t)*tn__map_value(&counts, storage);
    }
    for (int64_t i = 0; i < t->n_out && status == TN_OK; i++)
        if (b->results[i].root >= 0)
            *escapes |= is_shared(t, i);
    tn__map_free(&counts);
    return status;
}
