/* SPDX-License-Identifier: MIT
 *
 * The walk over the graph. A node runs when all gradients of its outputs have arrived. Of the nodes
 * that are ready, the youngest runs first. The data that a walk keeps about nodes are in a table of
 * the walk, so that several walks can share nodes. */
#include <stdlib.h>

#include "core/base/vector.h"
#include "core/grad/engine.h"
#include "core/tensor/trace.h"

int64_t tn__engine_find(const tn__walk *w, const tn__node *node)
{
    uint32_t hash = tn__hash_address(node);
    int64_t at = -1, place;

    while ((place = tn__index_next(&w->places, hash, &at)) >= 0)
        if (w->tasks[place].node == node)
            break;
    return place;
}

void tn__engine_begin(tn__walk *w)
{
    memset(w, 0, offsetof(tn__walk, few_tasks));
    memset(w->few_places, 0, sizeof w->few_places);
    tn__index_begin(&w->places, w->few_places, tn__countof(w->few_places));
    w->tasks = w->few_tasks;
    w->heap = w->few_heap;
    w->stack = w->few_stack;
    w->gin = w->few_gin;
    w->capacity = w->heap_capacity = w->stack_capacity = w->gin_capacity = TN__WALK_FEW;
}

static tn_status push(int64_t **list, const int64_t *few, int64_t *count, int64_t *capacity,
                      int64_t value)
{
    if (!tn__vector_room_after(list, few, capacity, *count + 1, sizeof **list))
        return TN_ERR_MEMORY;
    (*list)[(*count)++] = value;
    return TN_OK;
}

int64_t tn__engine_meet(tn__walk *w, tn__node *node)
{
    int64_t index = tn__engine_find(w, node);
    tn__task *new;

    if (index >= 0)
        return index;
    if (!tn__vector_room_after(&w->tasks, w->few_tasks, &w->capacity, w->count + 1,
                               sizeof *w->tasks))
        return -1;
    new = &w->tasks[w->count];
    memset(new, 0, sizeof *new);
    new->node = node;
    new->needed = w->wanted == NULL;
    if (node->n_out > 1) {
        new->many = tn_calloc((size_t)node->n_out, sizeof *new->many);
        if (new->many == NULL)
            return -1;
    }
    if (!tn__index_add(&w->places, tn__hash_address(node), w->count)) {
        tn_free(new->many);
        return -1;
    }
    w->count++;
    if (push(&w->stack, w->few_stack, &w->stack_count, &w->stack_capacity, w->count - 1) != TN_OK)
        return -1;
    return w->count - 1;
}

tn_status tn__engine_discover(tn__walk *w)
{
    while (w->stack_count > 0) {
        tn__node *node = w->tasks[w->stack[--w->stack_count]].node;

        for (int32_t i = 0; i < node->n_in; i++) {
            int64_t next;

            if (node->edges[i].node == NULL)
                continue;
            next = tn__engine_meet(w, node->edges[i].node);
            if (next < 0)
                return TN_ERR_MEMORY;
            w->tasks[next].waits++;
        }
        if (!tn__vector_room_after(&w->gin, w->few_gin, &w->gin_capacity, node->n_in,
                                   sizeof(tn_tensor *)))
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

static int by_age(const void *a, const void *b)
{
    const tn__task *const *x = a, *const *y = b;

    return (*x)->node->sequence < (*y)->node->sequence
               ? -1
               : (*x)->node->sequence > (*y)->node->sequence;
}

/* Visits the nodes, the oldest first, so that the nodes to which the edges of a node lead are
 * marked before the node itself. */
tn_status tn__engine_mark(tn__walk *w)
{
    tn__task **sorted = tn_malloc((size_t)(w->count > 0 ? w->count : 1) * sizeof *sorted);

    if (sorted == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < w->n_wanted; i++) {
        int64_t index = tn__engine_find(w, w->wanted[i].node);

        if (index >= 0)
            w->tasks[index].wanted_output = true;
    }
    for (int64_t i = 0; i < w->count; i++)
        sorted[i] = &w->tasks[i];
    qsort(sorted, (size_t)w->count, sizeof *sorted, by_age);
    for (int64_t i = 0; i < w->count; i++) {
        const tn__node *node = sorted[i]->node;

        for (int32_t k = 0; k < node->n_in && !sorted[i]->needed; k++) {
            const tn__task *next;

            if (node->edges[k].node == NULL)
                continue;
            next = &w->tasks[tn__engine_find(w, node->edges[k].node)];
            sorted[i]->needed = next->needed || next->wanted_output;
        }
    }
    tn_free(sorted);
    return TN_OK;
}

/* ---- the heap of ready tasks ---------------------------------------------------- */

static uint64_t age(const tn__walk *w, int64_t at)
{
    return w->tasks[w->heap[at]].node->sequence;
}

static void exchange(tn__walk *w, int64_t a, int64_t b)
{
    int64_t index = w->heap[a];

    w->heap[a] = w->heap[b];
    w->heap[b] = index;
}

tn_status tn__engine_ready(tn__walk *w, int64_t index)
{
    int64_t at = w->heap_count;
    tn_status status = push(&w->heap, w->few_heap, &w->heap_count, &w->heap_capacity, index);

    if (status != TN_OK)
        return status;
    for (; at > 0 && age(w, (at - 1) / 2) < age(w, at); at = (at - 1) / 2)
        exchange(w, at, (at - 1) / 2);
    return TN_OK;
}

static int64_t take(tn__walk *w)
{
    int64_t top = w->heap[0];

    w->heap[0] = w->heap[--w->heap_count];
    for (int64_t at = 0;;) {
        int64_t largest = at;

        for (int64_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < w->heap_count && age(w, child) > age(w, largest))
                largest = child;
        if (largest == at)
            return top;
        exchange(w, at, largest);
        at = largest;
    }
}

/* ---- delivering gradients ------------------------------------------------------- */

static tn_tensor **place(tn__task *t, int32_t index)
{
    return t->many != NULL ? &t->many[index] : &t->one;
}

/* Takes over the reference to `gradient`, even on failure. */
tn_status tn__engine_deliver(tn__walk *w, int64_t index, int32_t output, tn_tensor *gradient)
{
    tn_tensor **at = place(&w->tasks[index], output);
    tn_tensor *sum;

    if (*at == NULL) {
        *at = gradient;
        return TN_OK;
    }
    sum = tn__grad_add(*at, gradient, w->record);
    tn_tensor_drop(gradient);
    if (sum == NULL)
        return tn_error_last_code();
    tn_tensor_drop(*at);
    *at = sum;
    return TN_OK;
}

/* Returns the tensor to which the derivative of a node may add the gradient of its first input: the
 * sum of the gradients that have arrived there so far. Returns NULL if this sum is recorded in a
 * graph or used elsewhere. This way, the gradients of n slices of one tensor cost n slices;
 * otherwise they would cost n tensors. */
static tn_tensor *sum_of_first(const tn__walk *w, const tn__node *node)
{
    const tn__seen *seen = node->seen;
    tn_tensor *sum;

    if (w->record || node->kind != TN__NODE_OP || node->n_in == 0 || node->edges[0].node == NULL)
        return NULL;
    sum = *place(&w->tasks[tn__engine_find(w, node->edges[0].node)], node->edges[0].index);
    if (sum == NULL || sum->dtype != seen->dtype || sum->view.ndim != seen->ndim ||
        memcmp(sum->view.shape, seen->shape, (size_t)seen->ndim * sizeof *seen->shape) != 0 ||
        !tn__grad_exclusive(sum))
        return NULL;
    return sum;
}

static tn_status prepare(tn__walk *w, tn__task *t)
{
    tn__node *node = t->node;
    tn_status status = TN_OK;

    /* While a plan records backward, hooks of leaves do not run: they run when a run of the plan
     * adds its gradients to the leaves. */
    if (tn__hooks_kinds(&node->hooks) != 0 &&
        !(node->kind == TN__NODE_LEAF && tn__tracer_here != NULL && tn__tracer_here->derives))
        for (int32_t i = 0; i < node->n_out && status == TN_OK; i++)
            if (*place(t, i) != NULL)
                status = tn__grad_hooks_run(node, i, place(t, i), w->record);
    if (!t->wanted_output)
        return status;
    for (int64_t i = 0; i < w->n_wanted && status == TN_OK; i++)
        if (w->wanted[i].node == node && *place(t, w->wanted[i].index) != NULL &&
            w->gradients[i] == NULL)
            w->gradients[i] = tn_tensor_keep(*place(t, w->wanted[i].index));
    return status;
}

/* Accumulates *gradient in the slot of a leaf, drops it, and runs the hooks that follow. */
static tn_status run_leaf(tn__walk *w, tn__node *leaf, tn_tensor **gradient)
{
    tn_status status = TN_OK;

    if (!atomic_load_explicit(&leaf->as.slot->closed, memory_order_relaxed))
        status = tn__grad_slot_add(leaf->as.slot, *gradient, w->record);
    tn_tensor_drop(*gradient);
    *gradient = NULL;
    if (status == TN_OK && tn__hooks_kinds(&leaf->hooks) != 0)
        status = tn__grad_hooks_added(leaf);
    return status;
}

static tn_status run_task(tn__walk *w, tn__task *t, bool *any)
{
    tn__node *node = t->node;
    uint32_t need = 0;
    tn_tensor *sum;
    tn_status status;

    *any = false;
    for (int32_t i = 0; i < node->n_out; i++)
        *any |= *place(t, i) != NULL;
    if (!*any)
        return TN_OK;
    status = prepare(w, t);
    if (status != TN_OK)
        return status;
    if (node->kind == TN__NODE_LEAF)
        return w->wanted != NULL ? TN_OK : run_leaf(w, node, &t->one);
    if (!t->needed) {
        *any = false;
        return TN_OK;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        const tn__task *next = NULL;

        w->gin[i] = TN_NONE;
        if (node->edges[i].node == NULL)
            continue;
        if (w->wanted != NULL)
            next = &w->tasks[tn__engine_find(w, node->edges[i].node)];
        if (next == NULL || next->needed || next->wanted_output)
            need |= (uint32_t)1 << (i < 31 ? i : 31);
    }
    for (int32_t i = 0; i < node->n_out; i++)
        if (*place(t, i) == NULL)
            *place(t, i) = TN_NONE;
    sum = need & 1 ? sum_of_first(w, node) : NULL;
    status = tn__node_run(node, t->many != NULL ? t->many : &t->one, need, w->record, w->gin, sum);
    w->summed = sum != NULL && w->gin[0] == sum;
    if (tn__unlikely(tn__anomaly_on()) && status == TN_OK) {
        status = tn__anomaly_look(node, need, w->gin);
        for (int32_t i = 0; i < node->n_in && status != TN_OK; i++)
            if (w->gin[i] != NULL && !tn__is_none(w->gin[i]))
                tn_tensor_drop(w->gin[i]);
    }
    if (status == TN_OK && !w->retain)
        tn__node_release(node);
    return status;
}

static void clear(tn__task *t)
{
    for (int32_t i = 0; i < t->node->n_out; i++) {
        tn_tensor **at = place(t, i);

        if (*at != NULL && !tn__is_none(*at))
            tn_tensor_drop(*at);
        *at = NULL;
    }
}

/* Delivers the gradients that the node returned. Every gradient in w->gin is passed on or
 * dropped. */
static tn_status pass_on(tn__walk *w, tn__node *node, bool any)
{
    tn_status status = TN_OK;

    for (int32_t i = 0; i < node->n_in; i++) {
        tn_tensor *gradient = any ? w->gin[i] : TN_NONE;
        int64_t next;

        if (node->edges[i].node == NULL || status != TN_OK) {
            if (!tn__is_none(gradient))
                tn_tensor_drop(gradient);
            continue;
        }
        next = tn__engine_find(w, node->edges[i].node);
        if (i == 0 && any && w->summed) /* the derivative has added it already */
            tn_tensor_drop(gradient);
        else if (!tn__is_none(gradient))
            status = tn__engine_deliver(w, next, node->edges[i].index, gradient);
        if (status == TN_OK && --w->tasks[next].waits == 0)
            status = tn__engine_ready(w, next);
    }
    return status;
}

tn_status tn__engine_run(tn__walk *w)
{
    while (w->heap_count > 0) {
        int64_t index = take(w);
        tn__node *node = w->tasks[index].node;
        bool any;
        tn_status status = run_task(w, &w->tasks[index], &any);

        clear(&w->tasks[index]); /* gradients are freed as early as possible */
        if (status != TN_OK)
            return status;
        status = pass_on(w, node, any);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

void tn__engine_end(tn__walk *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        clear(&w->tasks[i]);
        tn_free(w->tasks[i].many);
    }
    if (w->tasks != w->few_tasks)
        tn_free(w->tasks);
    tn__index_free(&w->places);
    if (w->heap != w->few_heap)
        tn_free(w->heap);
    if (w->stack != w->few_stack)
        tn_free(w->stack);
    if (w->gin != w->few_gin)
        tn_free(w->gin);
    tn_free(w->wanted);
}
