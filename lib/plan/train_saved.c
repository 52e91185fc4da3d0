/* SPDX-License-Identifier: MIT
 *
 * What a run of a plan of training keeps for backward: the tensors that the recorded history has
 * saved. */
#include "lib/plan/train.h"

#include "core/base/map.h"
#include "core/grad/internal.h"

/* What tn__plan_train_note_saved needs for each tensor of the history. */
struct note {
    const tn__plan_recorder *recorder;
    tn__map *saved;
};

/* Notes the storage of a saved tensor. If forward has changed a tensor without memory since it was
 * saved, the recording of backward fails. Of changes to a tensor with memory only those by a step
 * of forward are errors, because other threads may train parameters meanwhile. */
static tn_status note_storage(void *user, tn__storage *storage, bool changed)
{
    const struct note *note = user;
    const tn__plan_recorder *r = note->recorder;
    void **number = tn__map_value(&r->roots, storage);

    if (changed && number != NULL && r->b->roots[(intptr_t)*number - 1].written)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "forward changes a tensor in place that a derivative needs; expected a "
                       "change of a copy (tn_copy)");
    return tn__map_add(note->saved, storage) >= 0 ? TN_OK : TN_ERR_MEMORY;
}

tn_status tn__plan_train_note_saved(const tn__plan_train *train, const tn__plan_recorder *recorder,
                                    tn__map *saved)
{
    struct note note = { recorder, saved };

    return tn__history_saved(train->outs, train->n_out, note_storage, &note);
}

static int64_t result_of(const tn__plan_binding *b, int64_t root)
{
    int64_t i = 0;

    while (i < b->n_out && b->results[i].root != root)
        i++;
    return i < b->n_out ? i : -1;
}

/* Returns a tensor over the memory of a root, which is from outside of the module. It has the view
 * of the first operand in that memory, and the caller owns it. TN_NONE: no operand is there. */
static tn_tensor *outside(const tn__plan_binding *b, int32_t root)
{
    const tn__plan_operand *operand = b->operands;
    tn_meta meta = { .flags = TN_META_STRIDED };
    int64_t i = 0;

    while (i < b->n_operands && operand[i].root != root)
        i++;
    if (i == b->n_operands)
        return TN_NONE;
    meta.dtype = tn_view_dtype(&operand[i].view);
    meta.ndim = operand[i].view.ndim;
    meta.offset = (int64_t)((operand[i].within - b->roots[root].storage->offset) /
                            tn_dtype_size(meta.dtype));
    for (int32_t d = 0; d < meta.ndim; d++) {
        meta.shape[d] = operand[i].view.shape[d];
        meta.strides[d] = operand[i].view.strides[d];
    }
    return tn__tensor_over(b->roots[root].storage, &meta);
}

static tn_status list_outside(tn__plan_train *t, const tn__map *memory, const tn__map *saved)
{
    tn__plan_binding *b = t->forward;
    tn__plan_train_saves *s = &t->saves;

    for (int32_t i = 0; i < b->n_roots; i++) {
        const tn__plan_root *root = &b->roots[i];
        tn_tensor *tensor;

        if (root->place != TN__PLAN_HELD || tn__map_value(saved, root->storage) == NULL ||
            tn__map_value(memory, root->storage) != NULL)
            continue;
        tensor = outside(b, i);
        if (tensor == NULL)
            return tn_error_last_code();
        if (tn__tensor_ok(tensor))
            s->tensors[s->n_tensors++] = tensor;
    }
    return TN_OK;
}

/* Outputs are saved as tensors, other blocks as roots, which stay until the end of the run. */
static void list_blocks(tn__plan_train *t, const tn__map *saved)
{
    tn__plan_binding *b = t->forward;
    tn__plan_train_saves *s = &t->saves;

    for (int64_t i = 0; i < b->n_roots; i++) {
        tn__plan_root *root = &b->roots[i];
        int64_t output = result_of(b, i);

        if (root->place != TN__PLAN_BLOCK || tn__map_value(saved, root->storage) == NULL)
            continue;
        root->first = root->first > root->last ? 0 : root->first;
        root->last = (int32_t)b->n_steps;
        if (output >= 0)
            s->outputs[s->n_outputs++] = output;
        else
            t->saved_by[t->n_saved_roots++] = (int32_t)i;
    }
}

tn_status tn__plan_train_list_saved(tn__plan_train *train, const tn__map *memory,
                                    const tn__map *saved)
{
    tn__plan_binding *b = train->forward;
    tn__plan_train_saves *s = &train->saves;

    s->inputs = tn_calloc((size_t)train->n_in + 1, sizeof *s->inputs);
    s->outputs = tn_calloc((size_t)train->n_out + 1, sizeof *s->outputs);
    s->tensors = tn_calloc((size_t)(train->parts.n_tensors + b->n_roots) + 1, sizeof(tn_tensor *));
    train->saved_roots = tn_calloc((size_t)b->n_roots + 1, sizeof *train->saved_roots);
    train->saved_by = tn_calloc((size_t)b->n_roots + 1, sizeof *train->saved_by);
    if (train->saved_by == NULL || s->inputs == NULL || s->outputs == NULL || s->tensors == NULL ||
        train->saved_roots == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < train->n_in; i++)
        if (train->inputs[i].same == i && tn__map_value(saved, b->like[i]->storage) != NULL)
            s->inputs[s->n_inputs++] = i;
    for (int64_t i = 0; i < train->parts.n_tensors; i++) {
        tn_tensor *tensor = train->parts.tensors[i].tensor;

        if (tn__tensor_ok(tensor) && tn__map_value(saved, tensor->storage) != NULL)
            s->tensors[s->n_tensors++] = tn_tensor_keep(tensor);
    }
    list_blocks(train, saved);
    return list_outside(train, memory, saved);
}
