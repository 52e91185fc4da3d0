/* SPDX-License-Identifier: MIT
 *
 * One walk over the graph, as the engine runs it and backward and grad start it. */
#ifndef TN_CORE_GRAD_ENGINE_H
#define TN_CORE_GRAD_ENGINE_H

#include "core/base/index.h"
#include "core/grad/private.h"

typedef struct tn__task {
    tn__node *node;     /* kept alive by the roots */
    int32_t waits;      /* edges that still lead here */
    bool needed;        /* for the gradients that were asked for */
    bool wanted_output; /* an output of it was asked for */
    tn_tensor *one;     /* gradient of the only output ... */
    tn_tensor **many;   /* ... or of several */
} tn__task;

enum { TN__WALK_FEW = 16 }; /* nodes of a walk that needs no memory of its own; a power of two */

typedef struct tn__walk {
    tn__task *tasks;
    int64_t count, capacity;
    tn__index places; /* of nodes in `tasks` */
    int64_t *heap;    /* ready tasks, youngest first */
    int64_t heap_count, heap_capacity;
    int64_t *stack;
    int64_t stack_count, stack_capacity;
    tn_tensor **gin; /* of the node that runs */
    bool summed;     /* its first gradient is what came before, with its part added in place */
    int64_t gin_capacity;
    tn__edge *wanted; /* tn_grad: which gradients are returned */
    tn_tensor **gradients;
    int64_t n_wanted;
    bool record, retain;
    tn__task few_tasks[TN__WALK_FEW];
    tn__index_cell few_places[2 * TN__WALK_FEW];
    int64_t few_heap[TN__WALK_FEW], few_stack[TN__WALK_FEW];
    tn_tensor *few_gin[TN__WALK_FEW];
} tn__walk;

/* A walk that has met nothing. It stays where it is: it points into itself. */
void tn__engine_begin(tn__walk *w);

/* The task of a node, -1 when the walk does not meet it. */
int64_t tn__engine_find(const tn__walk *w, const tn__node *node);
/* The same, made and put on the stack when it is met for the first time; -1 and an error. */
int64_t tn__engine_meet(tn__walk *w, tn__node *node);
/* Meets everything behind the nodes on the stack. */
tn_status tn__engine_discover(tn__walk *w);
/* Marks the nodes on the way to the gradients that were asked for. */
tn_status tn__engine_mark(tn__walk *w);
/* Adds a gradient to output `output` of a task; takes over the reference. */
tn_status tn__engine_deliver(tn__walk *w, int64_t index, int32_t output, tn_tensor *gradient);
/* Puts a task that waits for nothing among those that can run. */
tn_status tn__engine_ready(tn__walk *w, int64_t index);
/* Runs until nothing is ready. */
tn_status tn__engine_run(tn__walk *w);
/* Frees all that the walk holds. */
void tn__engine_end(tn__walk *w);

#endif
