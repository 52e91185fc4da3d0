/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: functions whose intermediate tensors are not kept for backward but computed again.
 * While such a function runs, its nodes save only numbers of slots. The first node of them that
 * backward reaches runs the function once more, and what the nodes of this second run save, in the
 * same order, fills the slots. */
#include "core/base/vector.h"
#include "core/grad/private.h"
#include "core/tensor/autocast.h"
#include "core/tensor/random_state.h"

/* What one call of tn__node_save() saves. */
struct slot {
    tn_tensor *value; /* owned; NULL: to be computed, or taken already */
    bool wanted;      /* a node still refers to the slot */
    uint8_t dtype;
    int16_t ndim;
    int64_t numel;
    const tn_device *device;
};

struct tn__checkpoint {
    _Atomic int32_t refs;
    pthread_mutex_t lock;
    tn_checkpoint_function call;
    void *user;
    void (*release)(void *user);
    int64_t n_in, n_out;
    uint32_t flags;
    tn__random_record random; /* what the first run drew */
    tn__autocast_modes autocast;
    _Atomic(const void *) runner; /* self() of the thread that runs the function, or NULL */
    struct slot *slots;
    int64_t n_slots, capacity;
    tn__edge *edges; /* n_in: the histories of the inputs */
    tn__saved in[];  /* n_in */
};

struct tn__checkpoint_run {
    tn__checkpoint *checkpoint;
    bool again; /* the second run */
    int64_t next;
    tn_status status;
};

_Thread_local struct tn__checkpoint_run *tn__checkpoint_here TN__TLS_NEAR;

/* Returns an address that only this thread has. */
static const void *self(void)
{
    return &tn__checkpoint_here;
}

static bool runs_here(tn__checkpoint *checkpoint)
{
    return atomic_load(&checkpoint->runner) == self();
}

tn__checkpoint *tn__checkpoint_keep(tn__checkpoint *checkpoint)
{
    if (checkpoint != NULL)
        atomic_fetch_add_explicit(&checkpoint->refs, 1, memory_order_relaxed);
    return checkpoint;
}

void tn__checkpoint_drop(tn__checkpoint *checkpoint)
{
    if (atomic_fetch_sub_explicit(&checkpoint->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int64_t i = 0; i < checkpoint->n_in; i++) {
        tn__node_saved_drop(&checkpoint->in[i]);
        if (checkpoint->edges[i].node != NULL)
            tn__node_drop(checkpoint->edges[i].node);
    }
    for (int64_t i = 0; i < checkpoint->n_slots; i++)
        if (checkpoint->slots[i].value != NULL)
            tn_tensor_drop(checkpoint->slots[i].value);
    if (checkpoint->release != NULL)
        checkpoint->release(checkpoint->user);
    pthread_mutex_destroy(&checkpoint->lock);
    tn_free(checkpoint->random.taken);
    tn_free(checkpoint->slots);
    tn_free(checkpoint);
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* In the second run: fills the next slot. */
static tn_status fill(struct tn__checkpoint_run *run, tn_tensor *tensor)
{
    tn__checkpoint *checkpoint = run->checkpoint;
    struct slot *slot = run->next < checkpoint->n_slots ? &checkpoint->slots[run->next] : NULL;

    run->next++;
    if (slot == NULL || run->status != TN_OK)
        return run->status;
    if (slot->dtype != tensor->dtype || slot->ndim != tensor->view.ndim ||
        slot->numel != tensor->numel || slot->device != tensor->device) {
        tn__text text = { 0 };

        tn__tensor_text(&text, tensor);
        tn__text_put(&text, "", 1);
        /* PyTorch's words */
        run->status = tn_fail(TN_ERR_RUNTIME,
                              "checkpoint: Recomputed values for the following tensors have "
                              "different metadata than during the forward pass: tensor %lld, got "
                              "%s; expected %s with %d dimensions and %lld elements",
                              (long long)(run->next - 1), text.failed ? "another" : text.at,
                              tn_dtype_name((tn_dtype)slot->dtype), (int)slot->ndim,
                              (long long)slot->numel);
        tn__text_free(&text);
        return run->status;
    }
    if (!slot->wanted || slot->value != NULL)
        return TN_OK;
    slot->value = tn__tensor_alias(tensor);
    return slot->value != NULL ? TN_OK : tn_error_last_code();
}

tn_status tn__checkpoint_save(tn__saved *saved, tn_tensor *tensor, bool keeps)
{
    struct tn__checkpoint_run *run = tn__checkpoint_here;
    tn__checkpoint *checkpoint = run->checkpoint;

    if (run->again)
        return fill(run, tensor);
    if (!tn__vector_room(&checkpoint->slots, &checkpoint->capacity, checkpoint->n_slots + 1,
                         sizeof *checkpoint->slots))
        return TN_ERR_MEMORY;
    checkpoint->slots[checkpoint->n_slots] = (struct slot){ .wanted = !keeps,
                                                            .dtype = tensor->dtype,
                                                            .ndim = (int16_t)tensor->view.ndim,
                                                            .numel = tensor->numel,
                                                            .device = tensor->device };
    if (!keeps) {
        atomic_fetch_add_explicit(&checkpoint->refs, 1, memory_order_relaxed);
        saved->checkpoint = checkpoint;
        saved->slot = checkpoint->n_slots;
    }
    checkpoint->n_slots++;
    return TN_OK;
}

void tn__checkpoint_release(tn__checkpoint *checkpoint, int64_t slot)
{
    bool mine = runs_here(checkpoint);
    tn_tensor *value;

    if (!mine)
        pthread_mutex_lock(&checkpoint->lock);
    value = checkpoint->slots[slot].value;
    checkpoint->slots[slot].value = NULL;
    checkpoint->slots[slot].wanted = false;
    if (!mine)
        pthread_mutex_unlock(&checkpoint->lock);
    if (value != NULL)
        tn_tensor_drop(value);
    tn__checkpoint_drop(checkpoint);
}

/* ---- the second run -------------------------------------------------------------------------- */

/* Returns the inputs with their histories, so that the second run records what the first did. They
 * belong to the scope. */
static tn_status inputs(tn__checkpoint *checkpoint, tn_tensor **in)
{
    for (int64_t i = 0; i < checkpoint->n_in; i++) {
        tn__saved *saved = &checkpoint->in[i];
        tn_tensor *tensor;
        tn_status status;

        in[i] = TN_NONE;
        if (saved->storage == NULL && saved->checkpoint == NULL)
            continue;
        status = tn__node_saved_value(saved, &tensor);
        if (status != TN_OK)
            return status;
        if (tensor == NULL)
            /* PyTorch's wording */
            return tn_fail(TN_ERR_RUNTIME,
                           "checkpoint: input %lld: one of the variables needed for gradient "
                           "computation has been modified by an inplace operation",
                           (long long)i);
        in[i] = tn__scope_push(tensor);
        if (in[i] == NULL)
            return tn_error_last_code();
        if (checkpoint->edges[i].node != NULL && tensor->autograd == NULL) {
            status = tn__grad_attach_edge(&checkpoint->edges[i], tensor);
            if (status != TN_OK)
                return status;
        }
    }
    return TN_OK;
}

static tn_status call_again(tn__checkpoint *checkpoint, struct tn__checkpoint_run *run,
                            tn_tensor **tensors)
{
    struct tn__checkpoint_run *outer = tn__checkpoint_here;
    tn_status status = inputs(checkpoint, tensors);

    for (int64_t i = 0; i < checkpoint->n_out; i++)
        tensors[checkpoint->n_in + i] = NULL;
    if (status == TN_OK) {
        tn__checkpoint_here = run;
        status = tn__error_status_of(
            checkpoint->call(checkpoint->user, tensors, tensors + checkpoint->n_in),
            "the function of a checkpoint");
        tn__checkpoint_here = outer;
    }
    if (status == TN_OK)
        status = run->status;
    if (status == TN_OK && run->next != checkpoint->n_slots)
        /* PyTorch's words */
        status = tn_fail(TN_ERR_RUNTIME,
                         "checkpoint: A different number of tensors was saved during the original "
                         "forward and recomputation, %lld and %lld; expected the same calls in "
                         "both runs of the function",
                         (long long)checkpoint->n_slots, (long long)run->next);
    return status;
}

static tn_status compute(tn__checkpoint *checkpoint)
{
    struct tn__checkpoint_run run = { .checkpoint = checkpoint, .again = true };
    uint64_t scope = tn_scope_begin();
    tn_tensor **tensors = tn_malloc((size_t)(checkpoint->n_in + checkpoint->n_out + 1) *
                                    sizeof(tn_tensor *));
    bool random = (checkpoint->flags & TN_CHECKPOINT_NEW_RANDOM) == 0;
    tn_status status = tn_grad_begin(true);
    tn_status cast = tn__autocast_begin_with(&checkpoint->autocast);

    if (status == TN_OK)
        status = cast;
    if (tensors == NULL)
        status = TN_ERR_MEMORY;
    if (random)
        tn__random_begin(&checkpoint->random, true);
    atomic_store(&checkpoint->runner, self());
    if (status == TN_OK)
        status = call_again(checkpoint, &run, tensors);
    if (random)
        tn__random_end(&checkpoint->random);
    tn_autocast_end();
    tn_grad_end();
    tn_scope_end(scope); /* drops the graph of the second run */
    atomic_store(&checkpoint->runner, NULL);
    tn_free(tensors);
    return status;
}

tn_status tn__checkpoint_value(tn__checkpoint *checkpoint, int64_t slot, tn_tensor **out)
{
    tn_status status = TN_OK;

    *out = NULL;
    if (runs_here(checkpoint))
        return tn_fail(TN_ERR_RUNTIME,
                       "checkpoint: backward reached a tensor of the function before the function "
                       "returned; expected gradients of it to be computed outside");
    pthread_mutex_lock(&checkpoint->lock);
    if (checkpoint->slots[slot].value == NULL)
        status = compute(checkpoint);
    if (status == TN_OK) {
        *out = checkpoint->slots[slot].value;
        checkpoint->slots[slot].value = NULL;
    }
    pthread_mutex_unlock(&checkpoint->lock);
    if (status == TN_OK && *out == NULL)
        status = tn_fail(TN_ERR_RUNTIME, "checkpoint: a tensor was not computed again");
    return status;
}

/* ---- the first run --------------------------------------------------------------------------- */

static tn__checkpoint *make(tn_checkpoint_function function, tn_tensor *const *in, int64_t n_in,
                            int64_t n_out, uint32_t flags)
{
    size_t saved = (size_t)n_in * sizeof(tn__saved);
    tn__checkpoint *checkpoint = tn_calloc(1, sizeof *checkpoint + saved +
                                                  (size_t)n_in * sizeof(tn__edge));
    tn_status status = TN_OK;

    if (checkpoint == NULL)
        return NULL;
    atomic_init(&checkpoint->refs, 1);
    pthread_mutex_init(&checkpoint->lock, NULL);
    checkpoint->call = function;
    checkpoint->n_in = n_in;
    checkpoint->n_out = n_out;
    checkpoint->flags = flags;
    checkpoint->edges = (tn__edge *)(void *)((char *)checkpoint->in + saved);
    tn__autocast_get(&checkpoint->autocast);
    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        if (tn__is_none(in[i]))
            continue;
        status = tn__grad_edge(in[i], &checkpoint->edges[i]);
        if (status == TN_OK) {
            tn__node_keep(checkpoint->edges[i].node);
            status = tn__node_save(&checkpoint->in[i], in[i], 0, false, false);
        }
    }
    if (status == TN_OK)
        return checkpoint;
    tn__checkpoint_drop(checkpoint);
    return NULL;
}

/* Calls the function in a scope of its own, which ends with what it does not return. */
static tn_status call_in_scope(tn_checkpoint_function function, void *user, tn_tensor *const *in,
                               tn_tensor **out, int64_t n_out)
{
    uint64_t scope = tn_scope_begin();
    tn_status status = tn__error_status_of(function(user, in, out), "the function of a checkpoint");

    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        if (out[i] == NULL)
            status = tn_fail(TN_ERR_RUNTIME, "checkpoint: the function returned no output %lld",
                             (long long)i);
    if (status != TN_OK)
        for (int64_t i = 0; i < n_out; i++)
            out[i] = NULL;
    tn_scope_end_with(scope, out, status == TN_OK ? n_out : 0);
    return status;
}

tn_status tn_checkpoint_call(tn_checkpoint_function function, void *user,
                             void (*release)(void *user), tn_tensor *const *in, int64_t n_in,
                             tn_tensor **out, int64_t n_out, uint32_t flags)
{
    struct tn__checkpoint_run run = { 0 }, *outer = tn__checkpoint_here;
    tn_status status = TN_OK;

    if (!tn__given(function != NULL, "tn_checkpoint_call: function") ||
        !tn__given(in != NULL || n_in <= 0, "tn_checkpoint_call: in") ||
        !tn__given(out != NULL || n_out <= 0, "tn_checkpoint_call: out"))
        status = TN_ERR_VALUE;
    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        out[i] = NULL;
    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        if (in[i] == NULL)
            status = tn__error_null_input("tn_checkpoint_call: input");
    if (status == TN_OK && (flags & ~(uint32_t)TN_CHECKPOINT_NEW_RANDOM) != 0)
        status = tn_fail(TN_ERR_VALUE,
                         "tn_checkpoint_call: flags: unknown, got 0x%x; expected "
                         "TN_CHECKPOINT_NEW_RANDOM (1) or 0",
                         flags);
    if (status == TN_OK && tn__grad_on()) {
        run.checkpoint = make(function, in, n_in, n_out, flags);
        status = run.checkpoint != NULL ? TN_OK : tn_error_last_code();
    }
    if (run.checkpoint == NULL) {
        if (status == TN_OK)
            status = call_in_scope(function, user, in, out, n_out);
        if (release != NULL)
            release(user);
        return status;
    }
    run.checkpoint->user = user; /* from here on the checkpoint releases `user` */
    run.checkpoint->release = release;
    atomic_store(&run.checkpoint->runner, self());
    tn__checkpoint_here = &run;
    if ((flags & TN_CHECKPOINT_NEW_RANDOM) == 0)
        tn__random_begin(&run.checkpoint->random, false);
    status = call_in_scope(function, user, in, out, n_out);
    if ((flags & TN_CHECKPOINT_NEW_RANDOM) == 0)
        tn__random_end(&run.checkpoint->random);
    tn__checkpoint_here = outer;
    atomic_store(&run.checkpoint->runner, NULL);
    tn__checkpoint_drop(run.checkpoint);
    return status;
}
