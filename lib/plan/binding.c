/* SPDX-License-Identifier: MIT
 *
 * The parts of a binding of a plan besides its steps: data that kernels prepare, and freeing the
 * binding. */
#include "lib/plan/plan.h"

/* ---- prepared data --------------------------------------------------------------------------- */

/* Takes the data that the core keeps for the weight of the step, which other calls of the weight
 * share. Returns false if it keeps none. */
static bool share(tn__plan_binding *b, tn__plan_step *step, const tn_call *call)
{
    const tn_kernel_def *kernel = step->call.kernel;
    int64_t weight = kernel->weights != 0 ? __builtin_ctzll(kernel->weights) : call->n_in;
    int32_t root = weight < call->n_in ? b->operands[step->first + weight].root : -1;

    if (kernel->prepare_key == NULL || root < 0 || b->roots[root].place != TN__PLAN_HELD)
        return false;
    step->prepared = tn__weight_cache_share(step->entry, b->device, call, weight,
                                            b->roots[root].storage);
    if (step->prepared == NULL)
        return false;
    b->roots[root].guarded = true;
    step->call.constant = kernel->weights;
    return true;
}

/* Calls `prepare` of a kernel with the tensors that exist as constants. */
static bool prepare_own(tn__plan_binding *b, tn__plan_step *step, const tn_call *call)
{
    tn_call own = *call;

    for (int64_t i = 0; i < call->n_in; i++) {
        int32_t root = b->operands[step->first + i].root;

        if (root < 0 || b->roots[root].place != TN__PLAN_HELD)
            continue;
        own.constant |= UINT64_C(1) << (i < 63 ? i : 63);
        b->roots[root].guarded = true;
    }
    own.flags |= TN_CALL_REPEATED;
    step->prepared = tn__prepared_data_new(step->entry, b->device, &own);
    step->call.constant = own.constant;
    step->call.flags = own.flags;
    return step->prepared != NULL;
}

/* Prepares the data of a step, from views that have memory only if the tensors exist. */
static tn_status prepare_step(tn__plan_binding *b, tn__plan_step *step)
{
    int64_t count = tn__plan_operands_of(step);
    tn_view *views = tn_malloc((size_t)(count + 1) * sizeof *views);
    const tn_view **places = tn_malloc((size_t)(count + 1) * sizeof(const tn_view *));
    tn_status status = views != NULL && places != NULL ? TN_OK : TN_ERR_MEMORY;
    tn_call call = step->call;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        const tn__plan_operand *operand = &b->operands[step->first + i];

        places[i] = operand->root >= 0 ? &views[i] : NULL;
        views[i] = operand->view;
        if (operand->root < 0 || b->roots[operand->root].place != TN__PLAN_HELD)
            views[i].data = NULL;
    }
    if (status == TN_OK) {
        call.in = places;
        call.out = places + call.n_in;
        if (share(b, step, &call) || prepare_own(b, step, &call))
            step->call.prepared = tn__prepared_data_of(step->prepared, &b->bytes_prepared);
        else
            status = tn_error_last_code();
    }
    tn_free(views);
    tn_free(places);
    return status;
}

tn_status tn__plan_binding_prepare(tn__plan_binding *b)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < b->n_steps && status == TN_OK; i++) {
        tn__plan_step *step = &b->steps[i];

        if (step->call.kernel == NULL || step->call.kernel->prepare == NULL)
            continue;
        status = prepare_step(b, step);
        if (status != TN_OK)
            tn__graph_node_failed(step->name, step->path);
    }
    b->guarded = tn__arena_alloc(b->arena, (size_t)(b->n_roots + 1) * sizeof *b->guarded);
    if (b->guarded == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < b->n_roots; i++)
        if (b->roots[i].guarded)
            b->guarded[b->n_guarded++] = (int32_t)i;
    return status;
}

/* ---- the end --------------------------------------------------------------------------------- */

void tn__plan_binding_drop(tn__plan_binding *b)
{
    if (b == NULL || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    while (b->states != NULL) {
        tn__plan_state *state = b->states;

        b->states = state->next;
        tn__plan_state_drop(b, state);
    }
    for (int64_t i = 0; i < b->n_steps; i++)
        tn__prepared_data_drop(b->steps[i].prepared);
    for (int64_t i = 0; i < b->n_roots; i++)
        tn__storage_drop(b->roots[i].storage);
    for (int64_t i = 0; b->like != NULL && i < b->n_in; i++)
        if (tn__tensor_ok(b->like[i]))
            tn_tensor_drop(b->like[i]);
    for (int64_t i = 0; b->results != NULL && i < b->n_out; i++)
        tn_tensor_drop(b->results[i].tensor);
    for (int64_t i = 0; i < b->n_slots; i++)
        tn_tensor_drop(b->slots[i].tensor);
    for (int64_t i = 0; i < b->n_reads; i++)
        tn__graph_guard_drop(&b->reads[i]);
    for (int64_t i = 0; i < b->n_modules; i++)
        tn_module_drop(b->modules[i]);
    if (b->device != NULL)
        atomic_fetch_sub((_Atomic int32_t *)(uintptr_t)&b->device->handles, 1);
    tn__arena_free(b->arena);
    tn_free(b->like);
    tn_free(b->roots);
    tn_free(b->operands);
    tn_free(b->steps);
    tn_free(b->results);
    tn_free(b->slots);
    tn_free(b->reads);
    tn_free(b->modules);
    tn_free(b->training);
    tn_free(b->draws);
    tn_free(b);
}
