/* SPDX-License-Identifier: MIT
 *
 * Joins the recordings of forward and backward to one binding, and adds the updates of parameters.
 * Values that forward saves for backward are values of the slab like all others, and a gradient
 * ends with the update that uses it. */
#include "lib/plan/whole_step.h"

#include "core/base/vector.h"

/* A rule that updates each element on its own is called when gradients of this size are ready: so
 * they need little memory, and few calls of the rule are made. */
#define READY_BYTES ((uint64_t)1 << 20)

struct merge {
    tn__whole *plan;
    tn_optimizer *optimizer;
    tn__plan_binding *to;
    tn__map roots; /* from storages to the number of their root, plus 1 */
    tn__map
        last; /* from storages to the number of the last step of backward that uses them, plus 1 */
    struct update {
        tn_tensor *gradient; /* owned; TN_NONE: none */
        int64_t ready;       /* the step of backward after which the parameter may change */
        bool done;
    } * updates; /* for each parameter of the optimizer */
    int64_t n_updates;
};

/* ---- roots and operands ---------------------------------------------------------------------- */

static int32_t add_root(struct merge *m, const tn__plan_root *from, bool cotangent)
{
    tn__plan_binding *to = m->to;
    void **number = tn__map_value(&m->roots, from->storage);
    tn__plan_root *root;

    if (number != NULL)
        return (int32_t)(intptr_t)*number - 1;
    if (to->n_roots >= INT32_MAX - 1 ||
        !tn__vector_room(&to->roots, &to->roots_capacity, to->n_roots + 1, sizeof *to->roots) ||
        tn__map_add(&m->roots, from->storage) < 0)
        return -1;
    root = &to->roots[to->n_roots];
    *root = *from;
    root->storage = tn__storage_keep(from->storage);
    root->same = (int32_t)to->n_roots;
    root->first = INT32_MAX;
    root->last = -1;
    if (cotangent)
        root->index = (int32_t)m->plan->train->n_in;
    if (root->place == TN__PLAN_BLOCK || root->place == TN__PLAN_SAVED)
        root->place = TN__PLAN_SLAB;
    *tn__map_value(&m->roots, from->storage) = (void *)(intptr_t)(to->n_roots + 1);
    return (int32_t)to->n_roots++;
}

/* The roots of forward come first: those of backward that begin as inputs are among them, except
 * the gradient of the loss. */
static tn_status add_roots(struct merge *m)
{
    const tn__plan_binding *parts[] = { m->plan->train->forward, m->plan->backward };
    const tn__storage *seed = m->plan->backward->like[0]->storage;

    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < parts[k]->n_roots; i++)
            if (add_root(m, &parts[k]->roots[i], parts[k]->roots[i].storage == seed) < 0)
                return TN_ERR_MEMORY;
    return TN_OK;
}

static tn__plan_operand *new_operand(struct merge *m, const tn__storage *storage)
{
    tn__plan_binding *to = m->to;
    void **number = storage != NULL ? tn__map_value(&m->roots, storage) : NULL;
    tn__plan_operand *operand;
    tn__plan_root *root;

    if (!tn__vector_room(&to->operands, &to->operands_capacity, to->n_operands + 1,
                         sizeof *to->operands))
        return NULL;
    operand = &to->operands[to->n_operands++];
    *operand = (tn__plan_operand){ .root = -1 };
    if (number == NULL)
        return operand;
    operand->root = (int32_t)(intptr_t)*number - 1;
    root = &to->roots[operand->root];
    root->first = to->n_steps < root->first ? (int32_t)to->n_steps : root->first;
    root->last = (int32_t)to->n_steps;
    return operand;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static tn__plan_step *new_step(struct merge *m)
{
    tn__plan_binding *to = m->to;

    return to->n_steps < INT32_MAX - 1 && tn__vector_room(&to->steps, &to->steps_capacity,
                                                          to->n_steps + 1, sizeof *to->steps)
               ? &to->steps[to->n_steps]
               : NULL;
}

/* Copies a step. Its options, name and shapes stay in the memory of the recording. */
static tn_status copy_step(struct merge *m, const tn__plan_binding *from, int64_t i, int64_t *draw)
{
    tn__plan_binding *to = m->to;
    tn__plan_step *step = new_step(m);

    if (step == NULL)
        return TN_ERR_MEMORY;
    *step = from->steps[i];
    step->first = to->n_operands;
    step->draws = 0;
    for (int64_t k = 0; k < tn__plan_operands_of(step); k++) {
        const tn__plan_operand *old = &from->operands[from->steps[i].first + k];
        tn__plan_operand *operand = new_operand(m, old->root >= 0 ? from->roots[old->root].storage
                                                                  : NULL);

        if (operand == NULL)
            return TN_ERR_MEMORY;
        operand->within = old->within;
        operand->view = old->view;
    }
    for (; *draw < from->n_draws && from->draws[*draw].step == i; ++*draw) {
        if (!tn__vector_room(&to->draws, &to->draws_capacity, to->n_draws + 1, sizeof *to->draws))
            return TN_ERR_MEMORY;
        to->draws[to->n_draws] = from->draws[*draw];
        to->draws[to->n_draws++].step = to->n_steps;
    }
    to->n_steps++;
    return TN_OK;
}

static tn_status add_gradient(struct merge *m, const tn_tensor *gradient)
{
    tn__plan_operand *operand = new_operand(m, gradient->storage);
    int32_t ndim = gradient->view.ndim;
    int64_t *dims = tn__arena_alloc(m->to->arena, (size_t)ndim * 2 * sizeof *dims + 1);

    if (operand == NULL || dims == NULL)
        return TN_ERR_MEMORY;
    operand->view = gradient->view;
    operand->view.shape = dims;
    operand->view.strides = dims + ndim;
    for (int32_t d = 0; d < ndim; d++) {
        dims[d] = gradient->view.shape[d];
        dims[ndim + d] = gradient->view.strides[d];
    }
    operand->within = gradient->view.byte_offset;
    if (m->to->roots[operand->root].place != TN__PLAN_HELD)
        operand->within -= gradient->storage->offset;
    return TN_OK;
}

/* Adds a step that updates the parameters whose gradients are ready after a step of backward. */
static tn_status add_update(struct merge *m, int64_t after)
{
    tn__plan_binding *to = m->to;
    tn__plan_update *update = tn__arena_alloc(to->arena, sizeof *update);
    int64_t *index = tn__arena_alloc(to->arena, (size_t)(m->n_updates + 1) * sizeof *index);
    tn__plan_step *step = new_step(m);
    int64_t count = 0, first = to->n_operands;

    if (update == NULL || index == NULL || step == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < m->n_updates; i++) {
        if (m->updates[i].done || m->updates[i].ready > after)
            continue;
        if (add_gradient(m, m->updates[i].gradient) != TN_OK)
            return TN_ERR_MEMORY;
        m->updates[i].done = true;
        index[count++] = i;
    }
    *update = (tn__plan_update){ m->optimizer, index };
    *step = (tn__plan_step){ .name = "update", .plugin = "", .update = update, .first = first };
    step->call.n_in = count;
    to->n_steps += count > 0;
    return TN_OK;
}

static uint64_t ready_bytes(const struct merge *m, int64_t after)
{
    uint64_t bytes = 0;

    for (int64_t i = 0; i < m->n_updates; i++)
        if (!m->updates[i].done && m->updates[i].ready <= after)
            bytes += (uint64_t)m->updates[i].gradient->numel *
                     tn_dtype_size(m->updates[i].gradient->dtype);
    return bytes;
}

/* Whether two parameters share memory: they are updated in one call then, which refuses those that
 * overlap. */
static bool share_memory(tn_optimizer *optimizer)
{
    int64_t count = tn_optimizer_count(optimizer);

    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < i; k++)
            if (tn_optimizer_parameter(optimizer, i)->storage ==
                tn_optimizer_parameter(optimizer, k)->storage)
                return true;
    return false;
}

static tn_status add_steps(struct merge *m)
{
    const tn__plan_binding *forward = m->plan->train->forward, *backward = m->plan->backward;
    bool early = tn__step_is_elementwise(m->optimizer) && !share_memory(m->optimizer);
    int64_t draw = 0;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < forward->n_steps && status == TN_OK; i++)
        status = copy_step(m, forward, i, &draw);
    draw = 0;
    for (int64_t i = 0; i < backward->n_steps && status == TN_OK; i++) {
        status = copy_step(m, backward, i, &draw);
        if (status == TN_OK && early && ready_bytes(m, i) >= READY_BYTES)
            status = add_update(m, i);
    }
    return status == TN_OK ? add_update(m, INT64_MAX - 1) : status;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* Returns a tensor like the gradient of a source, without memory unless it exists; the caller owns
 * it. */
static tn_tensor *gradient_of(const struct merge *m, int64_t source)
{
    const tn__plan_binding *b = m->plan->backward;
    const tn__plan_result *result = &b->results[source];

    while (result->same >= 0)
        result = &b->results[result->same];
    if (result->tensor != NULL)
        return tn_tensor_keep(result->tensor);
    if (result->input >= 0)
        return tn_tensor_keep(b->like[result->input]);
    return result->root >= 0 ? tn__tensor_over(b->roots[result->root].storage, &result->meta)
                             : TN_NONE;
}

static tn_status list_last(struct merge *m)
{
    const tn__plan_binding *b = m->plan->backward;

    for (int64_t i = 0; i < b->n_steps; i++)
        for (int64_t k = 0; k < tn__plan_operands_of(&b->steps[i]); k++) {
            int32_t root = b->operands[b->steps[i].first + k].root;

            if (root >= 0 && tn__map_add(&m->last, b->roots[root].storage) < 0)
                return TN_ERR_MEMORY;
            if (root >= 0)
                *tn__map_value(&m->last, b->roots[root].storage) = (void *)(intptr_t)(i + 1);
        }
    return TN_OK;
}

static int64_t last_step(const struct merge *m, const tn__storage *storage)
{
    void **number = tn__map_value(&m->last, storage);

    return number != NULL ? (int64_t)(intptr_t)*number - 1 : 0;
}

static tn_status list_updates(struct merge *m)
{
    const tn__plan_train *t = m->plan->train;

    m->n_updates = tn_optimizer_count(m->optimizer);
    m->updates = tn_calloc((size_t)m->n_updates + 1, sizeof *m->updates);
    if (m->updates == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < m->n_updates; i++) {
        tn_tensor *parameter = tn_optimizer_parameter(m->optimizer, i);
        struct update *u = &m->updates[i];
        int64_t source = 0, other;

        u->gradient = TN_NONE;
        u->done = true;
        while (source < t->n_sources && t->sources[source] != parameter)
            source++;
        if (source == t->n_sources)
            continue;
        u->gradient = gradient_of(m, source);
        if (u->gradient == NULL)
            return tn_error_last_code();
        u->done = tn__is_none(u->gradient);
        if (u->done)
            continue;
        u->ready = last_step(m, u->gradient->storage);
        other = last_step(m, parameter->storage);
        u->ready = other > u->ready ? other : u->ready;
    }
    return TN_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

static tn_status add_results(struct merge *m)
{
    tn__plan_binding *to = m->to;
    const tn__plan_binding *forward = m->plan->train->forward;

    to->n_out = m->plan->n_out;
    to->results = tn_calloc((size_t)to->n_out + 1, sizeof *to->results);
    if (to->results == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < to->n_out; i++) {
        tn__plan_result *result = &to->results[i];
        tn__plan_root *root;

        *result = forward->results[i];
        result->blind = false;
        if (result->tensor != NULL)
            tn_tensor_keep(result->tensor);
        if (result->root < 0)
            continue;
        result->root = (int32_t)(intptr_t)*tn__map_value(&m->roots,
                                                         forward->roots[result->root].storage) -
                       1;
        root = &to->roots[result->root];
        if (root->place == TN__PLAN_SLAB) {
            root->place = TN__PLAN_FRESH;
            root->index = (int32_t)to->n_fresh++;
        }
        root->first = root->first > root->last ? 0 : root->first;
        root->last = (int32_t)to->n_steps;
    }
    return TN_OK;
}

static tn_status merge(struct merge *m)
{
    tn_status status = TN_OK;

    m->to->arena = tn__arena_new();
    if (m->to->arena == NULL)
        return TN_ERR_MEMORY;
    status = add_roots(m);
    if (status == TN_OK)
        status = list_last(m);
    if (status == TN_OK)
        status = list_updates(m);
    if (status == TN_OK)
        status = add_steps(m);
    if (status == TN_OK)
        status = add_results(m);
    if (status == TN_OK)
        status = tn__plan_note_steps(m->to);
    return status == TN_OK ? tn__plan_lay_out(m->to) : status;
}

tn_status tn__plan_whole_step_merge(tn__whole *plan, tn_optimizer *optimizer)
{
    struct merge m = { .plan = plan, .optimizer = optimizer };
    tn_status status;

    m.to = plan->steps = tn_calloc(1, sizeof *m.to);
    if (m.to == NULL)
        return TN_ERR_MEMORY;
    atomic_store_explicit(&m.to->refs, 1, memory_order_relaxed);
    m.to->device = plan->train->forward->device;
    atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&m.to->device->handles, 1);
    status = merge(&m);
    for (int64_t i = 0; m.updates != NULL && i < m.n_updates; i++)
        if (m.updates[i].gradient != NULL && !tn__is_none(m.updates[i].gradient))
            tn_tensor_drop(m.updates[i].gradient);
    tn_free(m.updates);
    tn__map_free(&m.roots);
    tn__map_free(&m.last);
    return status;
}
