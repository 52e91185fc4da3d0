/* SPDX-License-Identifier: MIT
 *
 * Visits what a recorded history has saved. A plan of training runs backward through a history
 * that was recorded once, maybe long before. So it needs the tensors with memory that the
 * history has saved, and whether they have changed since. */
#include "core/grad/engine.h"

typedef tn_status teller(void *user, tn__storage *storage, bool changed);

static tn_status look_at(tn__saved *saved, teller *tell, void *user)
{
    uint64_t now;

    if (saved->recompute != NULL) {
        tn__saved *inputs;
        int64_t count = tn__recompute_inputs(saved->recompute, &inputs);
        tn_status status = TN_OK;

        for (int64_t i = 0; i < count && status == TN_OK; i++)
            status = look_at(&inputs[i], tell, user);
        return status;
    }
    if (saved->tensor == NULL)
        return TN_OK;
    now = atomic_load_explicit(&saved->storage->version, memory_order_relaxed);
    if (tell != NULL)
        return tell(user, saved->storage, saved->version != now);
    if ((saved->storage->flags & TN__STORAGE_TRACED) == 0)
        saved->version = now;
    return TN_OK;
}

static tn_status look_in(const tn__node *node, teller *tell, void *user)
{
    tn_status status = TN_OK;

    for (int32_t i = 0; i < node->n_saved && status == TN_OK; i++)
        status = look_at(&node->saved[i], tell, user);
    if (status == TN_OK && node->kind == TN__NODE_SLICE && node->as.slice.inner != NULL)
        status = look_in(node->as.slice.inner, tell, user);
    return status;
}

tn_status tn__history_saved(tn_tensor *const *tensors, int64_t count,
                            tn_status (*tell)(void *user, tn__storage *storage, bool changed),
                            void *user)
{
    tn_status status = TN_OK;
    tn__walk w;

    tn__engine_begin(&w);
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn__edge edge = { NULL, 0 };

        if (tn__tensor_ok(tensors[i]) && tn__requires_grad(tensors[i]))
            status = tn__grad_edge(tensors[i], &edge);
        if (status == TN_OK && edge.node != NULL && tn__engine_meet(&w, edge.node) < 0)
            status = TN_ERR_MEMORY;
    }
    if (status == TN_OK)
        status = tn__engine_discover(&w);
    for (int64_t i = 0; i < w.count && status == TN_OK; i++)
        status = look_in(w.tasks[i].node, tell, user);
    tn__engine_end(&w);
    return status;
}

bool tn__history_has_base(const tn_tensor *tensor)
{
    return tensor->autograd != NULL && tensor->autograd->base != NULL;
}
