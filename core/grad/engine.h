/* SPDX-License-Identifier: MIT
 *
 * A walk over the graph: tn_backward and tn_grad start it (backward.c), and the engine runs it
 * (engine.c). */
#ifndef TN_CORE_GRAD_ENGINE_H
#define TN_CORE_GRAD_ENGINE_H

#include "core/base/index.h"
#include "core/grad/private.h"

typedef struct tn__task {
    tn__node *node;     /* the roots keep it alive */
    int32_t waits;      /* edges to this node from nodes that have not run yet */
    bool needed;        /* the node must run for the gradients that were asked for */
    bool wanted_output; /* the gradient of an output was asked for */
    tn_tensor *one;     /* gradient of the only output */
    tn_tensor **many;   /* gradients of several outputs; then `one` is not used */
} tn__task;

enum { TN__WALK_FEW = 16 }; /* a walk over this many nodes allocates no memory; a power of two */

typedef struct tn__walk {
    tn__task *tasks;
    int64_t count, capacity;
    tn__index places; /* from a node to its index in `tasks` */
    int64_t *heap;    /* tasks that can run, the youngest node first */
    int64_t heap_count, heap_capacity;
    int64_t *stack;
    int64_t stack_count, stack_capacity;
    tn_tensor **gin; /* gradients for the inputs of the node that runs */
    /* True: gin[0] is the gradient that was delivered for input 0 before; the derivative has added
     * its part to it in place. */
    bool summed;
    int64_t gin_capacity;
    tn__edge *wanted; /* of tn_grad: the edges whose gradients are returned */
    tn_tensor **gradients;
    int64_t n_wanted;
    bool record, retain;
    tn__task few_tasks[TN__WALK_FEW];
    tn__index_cell few_places[2 * TN__WALK_FEW];
    int64_t few_heap[TN__WALK_FEW], few_stack[TN__WALK_FEW];
    tn_tensor *few_gin[TN__WALK_FEW];
} tn__walk;

/* Begins an empty walk. *w must not be copied, because it contains pointers into itself. */
void tn__engine_begin(tn__walk *w);

/* Returns the index of the task of a node, -1 if the walk has not reached the node. */
int64_t tn__engine_find(const tn__walk *w, const tn__node *node);
/* Returns the index of the task of a node. When the walk reaches the node for the first time, makes
 * the task and pushes it on the stack. Returns -1 and sets the error on failure. */
int64_t tn__engine_meet(tn__walk *w, tn__node *node);
/* Visits all nodes that can be reached from the nodes on the stack, and counts the edges to
 * each. */
tn_status tn__engine_discover(tn__walk *w);
/* Marks the nodes that must run for the gradients that were asked for. */
tn_status tn__engine_mark(tn__walk *w);
/* Adds to the gradient of output `output` of a task. Takes over the reference to `gradient`. */
tn_status tn__engine_deliver(tn__walk *w, int64_t index, int32_t output, tn_tensor *gradient);
/* Adds a task to the tasks that can run. All gradients of its outputs must have arrived. */
tn_status tn__engine_ready(tn__walk *w, int64_t index);
/* Runs tasks until no task can run. */
tn_status tn__engine_run(tn__walk *w);
/* Frees the memory of the walk and the gradients in it. */
void tn__engine_end(tn__walk *w);

#endif
