/* SPDX-License-Identifier: MIT
 *
 * The walk over the graph. Nodes run when all gradients of their outputs have come, of those that
 * are ready the youngest first. What a walk needs to know of a node is kept in a table of its own,
 * so several walks can share nodes. */
#include <stdlib.h>

#include "core/grad/parts.h"

typedef struct task {
    tn__node *node;     /* kept alive by the roots */
    int32_t waits;      /* edges that still lead here */
    bool needed;        /* for the gradients that were asked for */
    bool wanted_output; /* an output of it was asked for */
    tn_tensor *one;     /* gradient of the only output ... */
    tn_tensor **many;   /* ... or of several */
} task;

typedef struct walk {
    task *tasks;
    int64_t count, capacity;
    int64_t *table;     /* open addressing: index + 1, 0 free */
    int64_t table_size; /* a power of two */
    int64_t *heap;      /* ready tasks, youngest first */
    int64_t heap_count, heap_capacity;
    int64_t *stack;
    int64_t stack_count, stack_capacity;
    tn_tensor **gin; /* of the node that runs */
    int64_t gin_capacity;
    tn__edge *wanted; /* tn_grad: which gradients are returned */
    tn_tensor **gradients;
    int64_t n_wanted;
    bool record, retain;
} walk;

static uint64_t hash(const void *p)
{
    return ((uint64_t)(uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u;
}

static int64_t look_up(const walk *w, const tn__node *node)
{
    uint64_t mask = (uint64_t)w->table_size - 1;

    for (uint64_t at = hash(node) >> 20 & mask; w->table_size > 0 && w->table[at] != 0;
         at = (at + 1) & mask)
        if (w->tasks[w->table[at] - 1].node == node)
            return w->table[at] - 1;
    return -1;
}

static tn_status grow(walk *w)
{
    int64_t capacity = w->capacity > 0 ? 2 * w->capacity : 64;
    task *tasks = tn_realloc(w->tasks, (size_t)capacity * sizeof *tasks);
    int64_t *table;
    uint64_t mask = (uint64_t)capacity * 2 - 1;

    if (tasks == NULL)
        return TN_ERR_MEMORY;
    w->tasks = tasks;
    table = tn_calloc((size_t)capacity * 2, sizeof *table);
    if (table == NULL)
        return TN_ERR_MEMORY;
    w->capacity = capacity;
    tn_free(w->table);
    w->table = table;
    w->table_size = capacity * 2;
    for (int64_t i = 0; i < w->count; i++) {
        uint64_t at = hash(tasks[i].node) >> 20 & mask;

        while (table[at] != 0)
            at = (at + 1) & mask;
        table[at] = i + 1;
    }
    return TN_OK;
}

static tn_status push(int64_t **list, int64_t *count, int64_t *capacity, int64_t value)
{
    if (*count == *capacity) {
        int64_t more = *capacity > 0 ? 2 * *capacity : 64;
        int64_t *grown = tn_realloc(*list, (size_t)more * sizeof *grown);

        if (grown == NULL)
            return TN_ERR_MEMORY;
        *list = grown;
        *capacity = more;
    }
    (*list)[(*count)++] = value;
    return TN_OK;
}

/* The task of a node, made and put on the stack when it is seen for the first time; -1 and an
 * error. */
static int64_t meet(walk *w, tn__node *node)
{
    int64_t index = look_up(w, node);
    uint64_t mask, at;
    task *new;

    if (index >= 0)
        return index;
    if (w->count == w->capacity && grow(w) != TN_OK)
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
    mask = (uint64_t)w->table_size - 1;
    for (at = hash(node) >> 20 & mask; w->table[at] != 0; at = (at + 1) & mask)
        ;
    w->table[at] = ++w->count;
    if (push(&w->stack, &w->stack_count, &w->stack_capacity, w->count - 1) != TN_OK)
        return -1;
    return w->count - 1;
}

static tn_status discover(walk *w)
{
    while (w->stack_count > 0) {
        tn__node *node = w->tasks[w->stack[--w->stack_count]].node;

        for (int32_t i = 0; i < node->n_in; i++) {
            int64_t next;

            if (node->edges[i].node == NULL)
                continue;
            next = meet(w, node->edges[i].node);
            if (next < 0)
                return TN_ERR_MEMORY;
            w->tasks[next].waits++;
        }
        if (node->n_in > w->gin_capacity) {
            tn_tensor **more = tn_realloc(w->gin, (size_t)node->n_in * sizeof *more);

            if (more == NULL)
                return TN_ERR_MEMORY;
            w->gin = more;
            w->gin_capacity = node->n_in;
        }
    }
    return TN_OK;
}

static int by_age(const void *a, const void *b)
{
    const task *const *x = a, *const *y = b;

    return (*x)->node->sequence < (*y)->node->sequence
               ? -1
               : (*x)->node->sequence > (*y)->node->sequence;
}

/* Which nodes lie on the way to what was asked for: from the oldest on, each asks those that its
 * edges lead to. */
static tn_status mark_needed(walk *w)
{
    task **sorted = tn_malloc((size_t)(w->count > 0 ? w->count : 1) * sizeof *sorted);

    if (sorted == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < w->n_wanted; i++) {
        int64_t index = look_up(w, w->wanted[i].node);

        if (index >= 0)
            w->tasks[index].wanted_output = true;
    }
    for (int64_t i = 0; i < w->count; i++)
        sorted[i] = &w->tasks[i];
    qsort(sorted, (size_t)w->count, sizeof *sorted, by_age);
    for (int64_t i = 0; i < w->count; i++) {
        const tn__node *node = sorted[i]->node;

        for (int32_t k = 0; k < node->n_in && !sorted[i]->needed; k++) {
            const task *next;

            if (node->edges[k].node == NULL)
                continue;
            next = &w->tasks[look_up(w, node->edges[k].node)];
            sorted[i]->needed = next->needed || next->wanted_output;
        }
    }
    tn_free(sorted);
    return TN_OK;
}

/* ---- the heap of what is ready
 * ----------------------------------------------------------------------------- */

static uint64_t age(const walk *w, int64_t at)
{
    return w->tasks[w->heap[at]].node->sequence;
}

static void exchange(walk *w, int64_t a, int64_t b)
{
    int64_t index = w->heap[a];

    w->heap[a] = w->heap[b];
    w->heap[b] = index;
}

static tn_status ready(walk *w, int64_t index)
{
    int64_t at = w->heap_count;
    tn_status status = push(&w->heap, &w->heap_count, &w->heap_capacity, index);

    if (status != TN_OK)
        return status;
    for (; at > 0 && age(w, (at - 1) / 2) < age(w, at); at = (at - 1) / 2)
        exchange(w, at, (at - 1) / 2);
    return TN_OK;
}

static int64_t take(walk *w)
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

/* ---- gradients on their way
 * ---------------------------------------------------------------------------------- */

static tn_tensor **place(task *t, int32_t index)
{
    return t->many != NULL ? &t->many[index] : &t->one;
}

/* Takes over the reference. */
static tn_status deliver(walk *w, int64_t index, int32_t output, tn_tensor *gradient)
{
    tn_tensor **at = place(&w->tasks[index], output);
    tn_tensor *sum;

    if (*at == NULL) {
        *at = gradient;
        return TN_OK;
    }
    sum = tn__add(*at, gradient, w->record);
    tn_tensor_drop(gradient);
    if (sum == NULL)
        return tn_error_last()->code;
    tn_tensor_drop(*at);
    *at = sum;
    return TN_OK;
}

static tn_status prepare(walk *w, task *t)
{
    tn__node *node = t->node;
    tn_status status = TN_OK;

    if (atomic_load_explicit(&node->hooks, memory_order_acquire) != NULL)
        for (int32_t i = 0; i < node->n_out && status == TN_OK; i++)
            if (*place(t, i) != NULL)
                status = tn__hooks_run(node, i, place(t, i), w->record);
    if (!t->wanted_output)
        return status;
    for (int64_t i = 0; i < w->n_wanted && status == TN_OK; i++)
        if (w->wanted[i].node == node && *place(t, w->wanted[i].index) != NULL &&
            w->gradients[i] == NULL)
            w->gradients[i] = tn_tensor_keep(*place(t, w->wanted[i].index));
    return status;
}

static tn_status run_task(walk *w, task *t, bool *any)
{
    tn__node *node = t->node;
    uint32_t need = 0;
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
        return w->wanted == NULL ? tn__slot_add(node->as.slot, t->one, w->record) : TN_OK;
    if (!t->needed) {
        *any = false;
        return TN_OK;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        const task *next = NULL;

        w->gin[i] = TN_NONE;
        if (node->edges[i].node == NULL)
            continue;
        if (w->wanted != NULL)
            next = &w->tasks[look_up(w, node->edges[i].node)];
        if (next == NULL || next->needed || next->wanted_output)
            need |= (uint32_t)1 << (i < 31 ? i : 31);
    }
    for (int32_t i = 0; i < node->n_out; i++)
        if (*place(t, i) == NULL)
            *place(t, i) = TN_NONE;
    status = tn__node_run(node, t->many != NULL ? t->many : &t->one, need, w->record, w->gin);
    if (status == TN_OK && !w->retain)
        tn__node_release(node);
    return status;
}

static void clear(task *t)
{
    for (int32_t i = 0; i < t->node->n_out; i++) {
        tn_tensor **at = place(t, i);

        if (*at != NULL && !tn__is_none(*at))
            tn_tensor_drop(*at);
        *at = NULL;
    }
}

/* Passes on what the node gave; everything in w->gin is given away or dropped. */
static tn_status pass_on(walk *w, tn__node *node, bool any)
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
        next = look_up(w, node->edges[i].node);
        if (!tn__is_none(gradient))
            status = deliver(w, next, node->edges[i].index, gradient);
        if (status == TN_OK && --w->tasks[next].waits == 0)
            status = ready(w, next);
    }
    return status;
}

static tn_status walk_all(walk *w)
{
    while (w->heap_count > 0) {
        int64_t index = take(w);
        tn__node *node = w->tasks[index].node;
        bool any;
        tn_status status = run_task(w, &w->tasks[index], &any);

        clear(&w->tasks[index]); /* gradients die as soon as they are used */
        if (status != TN_OK)
            return status;
        status = pass_on(w, node, any);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static void end(walk *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        clear(&w->tasks[i]);
        tn_free(w->tasks[i].many);
    }
    tn_free(w->tasks);
    tn_free(w->table);
    tn_free(w->heap);
    tn_free(w->stack);
    tn_free(w->gin);
    tn_free(w->wanted);
}

/* ---- the start
 * ------------------------------------------------------------------------------------------------
 * */

static tn_tensor *ones_like(const tn_tensor *tensor)
{
    const tn_op *fill = tn__needed(TN__NEED_fill);
    tn_fill_options options = TN_FILL_OPTIONS;
    tn_tensor *out, *in;
    tn_meta meta;

    if (fill == NULL)
        return NULL;
    tn__tensor_meta(tensor, &meta);
    meta.flags = 0;
    meta.offset = 0;
    out = in = tn__tensor_make(&meta, tensor->device);
    options.value = 1.0;
    if (out != NULL && tn__op_run(fill, &in, 1, &options, NULL, 0, out) != TN_OK) {
        tn_tensor_drop(out);
        return NULL;
    }
    return out;
}

/* The cotangent of root i, owned. */
static tn_tensor *seed(tn_tensor *root, tn_tensor *cotangent, int64_t i)
{
    bool same;

    if (cotangent == NULL || tn__is_none(cotangent)) {
        if (root->numel != 1) {
            tn_fail(TN_ERR_RUNTIME, "grad can be implicitly created only for scalar outputs");
            return NULL;
        }
        return ones_like(root);
    }
    same = cotangent->view.ndim == root->view.ndim;
    for (int32_t d = 0; same && d < root->view.ndim; d++)
        same = cotangent->view.shape[d] == root->view.shape[d];
    if (!same || cotangent->dtype != root->dtype || cotangent->device != root->device) {
        tn__text text = { 0 };

        tn__text_add(&text, "Mismatch in shape, dtype or device: grad_output[%lld] is ",
                     (long long)i);
        tn__text_tensor(&text, cotangent);
        tn__text_add(&text, " and output[%lld] is ", (long long)i);
        tn__text_tensor(&text, root);
        tn__text_put(&text, "", 1);
        tn_fail(TN_ERR_RUNTIME, "%s", text.failed ? "Mismatch of a cotangent" : text.at);
        tn__text_free(&text);
        return NULL;
    }
    return tn_tensor_keep(cotangent);
}

static tn_status start(walk *w, tn_tensor *const *roots, tn_tensor *const *cotangents,
                       int64_t n_roots)
{
    for (int64_t i = 0; i < n_roots; i++) {
        tn__edge edge;
        tn_status status;

        if (!tn__tensor_ok(roots[i]))
            return tn__tensor_bad(roots[i], "backward");
        if (cotangents != NULL && cotangents[i] == NULL)
            return tn__null_input("backward");
        if (!tn__requires_grad(roots[i]))
            return tn_fail(
                TN_ERR_RUNTIME,
                "element %lld of tensors does not require grad and does not have a grad_fn",
                (long long)i);
        status = tn__grad_edge(roots[i], &edge);
        if (status != TN_OK)
            return status;
        if (meet(w, edge.node) < 0)
            return TN_ERR_MEMORY;
    }
    return discover(w);
}

static tn_status want(walk *w, tn_tensor *const *inputs, tn_tensor **gradients, int64_t n_inputs)
{
    w->wanted = tn_calloc((size_t)(n_inputs > 0 ? n_inputs : 1), sizeof *w->wanted);
    if (w->wanted == NULL)
        return TN_ERR_MEMORY;
    w->gradients = gradients;
    w->n_wanted = n_inputs;
    for (int64_t i = 0; i < n_inputs; i++) {
        tn_status status;

        if (!tn__tensor_ok(inputs[i]))
            return tn__tensor_bad(inputs[i], "tn_grad");
        if (!tn__requires_grad(inputs[i]))
            return tn_fail(TN_ERR_RUNTIME,
                           "One of the differentiated Tensors does not require grad (input %lld)",
                           (long long)i);
        status = tn__grad_edge(inputs[i], &w->wanted[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status seed_all(walk *w, tn_tensor *const *roots, tn_tensor *const *cotangents,
                          int64_t n_roots)
{
    for (int64_t i = 0; i < n_roots; i++) {
        tn_tensor *gradient = seed(roots[i], cotangents != NULL ? cotangents[i] : NULL, i);
        tn__edge edge;
        tn_status status;

        if (gradient == NULL)
            return tn_error_last()->code;
        status = tn__grad_edge(roots[i], &edge);
        if (status != TN_OK) {
            tn_tensor_drop(gradient);
            return status;
        }
        status = deliver(w, look_up(w, edge.node), edge.index, gradient);
        if (status != TN_OK)
            return status;
    }
    for (int64_t i = 0; i < w->count; i++)
        if (w->tasks[i].waits == 0 && ready(w, i) != TN_OK)
            return TN_ERR_MEMORY;
    return TN_OK;
}

static bool option(const tn_backward_options *options, size_t end_of, uint8_t value)
{
    return options != NULL && options->size >= end_of && value != 0;
}

#define OPTION(member)                                                                             \
    option(options, offsetof(tn_backward_options, member) + 1,                                     \
           options != NULL ? options->member : 0)

static tn_status run(tn_tensor *const *roots, tn_tensor *const *cotangents, int64_t n_roots,
                     tn_tensor *const *inputs, tn_tensor **gradients, int64_t n_inputs,
                     const tn_backward_options *options)
{
    walk w = { 0 };
    tn__node **held = NULL;
    tn_status status = TN_OK;

    if (n_roots < 0 || (n_roots > 0 && roots == NULL))
        return tn_fail(TN_ERR_VALUE, "backward from %lld tensors", (long long)n_roots);
    w.record = OPTION(create_graph);
    w.retain = w.record || OPTION(retain_graph);
    tn_grad_begin(w.record);
    if (inputs != NULL)
        status = want(&w, inputs, gradients, n_inputs);
    if (status == TN_OK)
        status = start(&w, roots, cotangents, n_roots);
    if (status == TN_OK) { /* a hook may drop the tensors that hold the graph */
        held = tn_calloc((size_t)(n_roots > 0 ? n_roots : 1), sizeof *held);
        status = held != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < n_roots && status == TN_OK; i++) {
        tn__edge edge;

        status = tn__grad_edge(roots[i], &edge);
        if (status == TN_OK)
            held[i] = tn__node_keep(edge.node);
    }
    if (status == TN_OK && inputs != NULL)
        status = mark_needed(&w);
    if (status == TN_OK)
        status = seed_all(&w, roots, cotangents, n_roots);
    if (status == TN_OK)
        status = walk_all(&w);
    end(&w);
    for (int64_t i = 0; i < n_roots && held != NULL; i++)
        tn__node_drop(held[i]);
    tn_free(held);
    tn_grad_end();
    return status;
}

tn_status tn_backward(tn_tensor *tensor)
{
    return run(&tensor, NULL, 1, NULL, NULL, 0, NULL);
}

tn_status tn_backward_from(tn_tensor *const *tensors, tn_tensor *const *cotangents, int64_t count,
                           const tn_backward_options *options)
{
    return run(tensors, cotangents, count, NULL, NULL, 0, options);
}

tn_status tn_grad(tn_tensor *const *outputs, tn_tensor *const *cotangents, int64_t n_outputs,
                  tn_tensor *const *inputs, tn_tensor **gradients, int64_t n_inputs,
                  const tn_backward_options *options)
{
    static tn_tensor *const none[1];
    tn_status status;

    for (int64_t i = 0; i < n_inputs; i++)
        gradients[i] = NULL;
    status = run(outputs, cotangents, n_outputs, inputs != NULL ? inputs : none, gradients,
                 n_inputs, options);
    for (int64_t i = 0; i < n_inputs && status == TN_OK; i++) {
        if (gradients[i] != NULL)
            continue;
        if (OPTION(allow_unused))
            gradients[i] = TN_NONE;
        else
            status = tn_fail(
                TN_ERR_RUNTIME,
                "One of the differentiated Tensors appears to not have been used in the graph "
                "(input %lld). "
                "Set allow_unused=True if this is the desired behavior.",
                (long long)i);
    }
    for (int64_t i = 0; i < n_inputs; i++) {
        if (gradients[i] == NULL || tn__is_none(gradients[i]))
            continue;
        if (status == TN_OK) {
            gradients[i] = tn__scope_push(gradients[i]);
            if (gradients[i] == NULL)
                status = tn_error_last()->code;
        } else {
            tn_tensor_drop(gradients[i]);
            gradients[i] = NULL;
        }
    }
    if (status != TN_OK) /* what is in the scope goes with it */
        for (int64_t i = 0; i < n_inputs; i++)
            gradients[i] = NULL;
    return status;
}
