/* SPDX-License-Identifier: MIT
 *
 * Recomputation (tn_recompute_call, as PyTorch calls it): functions whose intermediate tensors are
 * not kept for backward but computed again. While such a function runs, its nodes save only numbers
 * of slots. The first of these nodes that backward reaches runs the function once more, and what
 * the nodes of this second run save, in the same order, fills the slots. */
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

struct tn__recompute {
    _Atomic int32_t refs;
    pthread_mutex_t lock;
    tn_recompute_function call;
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

struct tn__recompute_run {
    tn__recompute *recompute;
    bool again; /* the second run */
    int64_t next;
    tn_status status;
};

_Thread_local struct tn__recompute_run *tn__recompute_here TN__TLS_NEAR;

/* Returns an address that only this thread has. */
static const void *self(void)
{
    return &tn__recompute_here;
}

static bool runs_here(tn__recompute *recompute)
{
    return atomic_load(&recompute->runner) == self();
}

tn__recompute *tn__recompute_keep(tn__recompute *recompute)
{
    if (recompute != NULL)
        atomic_fetch_add_explicit(&recompute->refs, 1, memory_order_relaxed);
    return recompute;
}

void tn__recompute_drop(tn__recompute *recompute)
{
    if (atomic_fetch_sub_explicit(&recompute->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int64_t i = 0; i < recompute->n_in; i++) {
        tn__node_saved_drop(&recompute->in[i]);
        if (recompute->edges[i].node != NULL)
            tn__node_drop(recompute->edges[i].node);
    }
    for (int64_t i = 0; i < recompute->n_slots; i++)
        if (recompute->slots[i].value != NULL)
            tn_tensor_drop(recompute->slots[i].value);
    if (recompute->release != NULL)
        recompute->release(recompute->user);
    pthread_mutex_destroy(&recompute->lock);
    tn_free(recompute->random.taken);
    tn_free(recompute->slots);
    tn_free(recompute);
}

int64_t tn__recompute_inputs(tn__recompute *recompute, tn__saved **inputs)
{
    *inputs = recompute->in;
    return recompute->n_in;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* In the second run: fills the next slot. */
static tn_status fill(struct tn__recompute_run *run, tn_tensor *tensor)
{
    tn__recompute *recompute = run->recompute;
    struct slot *slot = run->next < recompute->n_slots ? &recompute->slots[run->next] : NULL;

    run->next++;
    if (slot == NULL || run->status != TN_OK)
        return run->status;
    if (slot->dtype != tensor->dtype || slot->ndim != tensor->view.ndim ||
        slot->numel != tensor->numel || slot->device != tensor->device) {
        tn__text text = { 0 };

        tn__tensor_text(&text, tensor);
        tn__text_put(&text, "", 1);
        /* PyTorch's wording */
        run->status = tn_fail(TN_ERR_RUNTIME,
                              "recompute: Recomputed values for the following tensors have "
                              "different metadata than during the forward pass: tensor %lld, got "
                              "%s; expected %s on %s with %d dimensions and %lld elements",
                              (long long)(run->next - 1), text.failed ? "another" : text.at,
                              tn_dtype_name((tn_dtype)slot->dtype), slot->device->name,
                              (int)slot->ndim, (long long)slot->numel);
        tn__text_free(&text);
        return run->status;
    }
    if (!slot->wanted || slot->value != NULL)
        return TN_OK;
    slot->value = tn__tensor_alias(tensor);
    return slot->value != NULL ? TN_OK : tn_error_last_code();
}

tn_status tn__recompute_save(tn__saved *saved, tn_tensor *tensor, bool keeps)
{
    struct tn__recompute_run *run = tn__recompute_here;
    tn__recompute *recompute = run->recompute;

    if (run->again)
        return fill(run, tensor);
    if (!tn__vector_room(&recompute->slots, &recompute->capacity, recompute->n_slots + 1,
                         sizeof *recompute->slots))
        return TN_ERR_MEMORY;
    recompute->slots[recompute->n_slots] = (struct slot){ .wanted = !keeps,
                                                          .dtype = tensor->dtype,
                                                          .ndim = (int16_t)tensor->view.ndim,
                                                          .numel = tensor->numel,
                                                          .device = tensor->device };
    if (!keeps) {
        atomic_fetch_add_explicit(&recompute->refs, 1, memory_order_relaxed);
        saved->recompute = recompute;
        saved->slot = recompute->n_slots;
    }
    recompute->n_slots++;
    return TN_OK;
}

void tn__recompute_release(tn__recompute *recompute, int64_t slot)
{
    bool mine = runs_here(recompute);
    tn_tensor *value;

    if (!mine)
        pthread_mutex_lock(&recompute->lock);
    value = recompute->slots[slot].value;
    recompute->slots[slot].value = NULL;
    recompute->slots[slot].wanted = false;
    if (!mine)
        pthread_mutex_unlock(&recompute->lock);
    if (value != NULL)
        tn_tensor_drop(value);
    tn__recompute_drop(recompute);
}

/* ---- the second run -------------------------------------------------------------------------- */

/* Returns the inputs with their histories, so that the second run records what the first did. They
 * belong to the scope. */
static tn_status inputs(tn__recompute *recompute, tn_tensor **in)
{
    for (int64_t i = 0; i < recompute->n_in; i++) {
        tn__saved *saved = &recompute->in[i];
        tn_tensor *tensor;
        tn_status status;

        in[i] = TN_NONE;
        if (saved->storage == NULL && saved->recompute == NULL)
            continue;
        status = tn__node_saved_value(saved, &tensor);
        if (status != TN_OK)
            return status;
        if (tensor == NULL)
            /* PyTorch's wording */
            return tn_fail(TN_ERR_RUNTIME,
                           "recompute: input %lld: one of the variables needed for gradient "
                           "computation has been modified by an inplace operation",
                           (long long)i);
        in[i] = tn__scope_push(tensor);
        if (in[i] == NULL)
            return tn_error_last_code();
        if (recompute->edges[i].node != NULL && tensor->autograd == NULL) {
            status = tn__grad_attach_edge(&recompute->edges[i], tensor);
            if (status != TN_OK)
                return status;
        }
    }
    return TN_OK;
}

static tn_status call_again(tn__recompute *recompute, struct tn__recompute_run *run,
                            tn_tensor **tensors)
{
    struct tn__recompute_run *outer = tn__recompute_here;
    tn_status status = inputs(recompute, tensors);
    uint64_t mark = tn_error_mark();

    for (int64_t i = 0; i < recompute->n_out; i++)
        tensors[recompute->n_in + i] = NULL;
    if (status == TN_OK) {
        tn__recompute_here = run;
        status = tn_error_returned(
            recompute->call(recompute->user, tensors, tensors + recompute->n_in), mark,
            "the function of a recomputation");
        tn__recompute_here = outer;
    }
    if (status == TN_OK)
        status = run->status;
    if (status == TN_OK && run->next != recompute->n_slots)
        /* PyTorch's wording */
        status = tn_fail(TN_ERR_RUNTIME,
                         "recompute: A different number of tensors was saved during the original "
                         "forward and recomputation, %lld and %lld; expected the same calls in "
                         "both runs of the function",
                         (long long)recompute->n_slots, (long long)run->next);
    return status;
}

static tn_status compute(tn__recompute *recompute)
{
    struct tn__recompute_run run = { .recompute = recompute, .again = true };
    uint64_t scope = tn_scope_begin();
    tn_tensor **tensors = tn_malloc((size_t)(recompute->n_in + recompute->n_out + 1) *
                                    sizeof(tn_tensor *));
    bool random = (recompute->flags & TN_RECOMPUTE_NEW_RANDOM) == 0;
    tn_status status = tn_grad_begin(true);
    tn_status cast = tn__autocast_begin_with(&recompute->autocast);

    if (status == TN_OK)
        status = cast;
    if (tensors == NULL)
        status = TN_ERR_MEMORY;
    if (random)
        tn__random_begin(&recompute->random, true);
    atomic_store(&recompute->runner, self());
    if (status == TN_OK)
        status = call_again(recompute, &run, tensors);
    if (random)
        tn__random_end(&recompute->random);
    tn_autocast_end();
    tn_grad_end();
    tn_scope_end(scope); /* drops the graph of the second run */
    atomic_store(&recompute->runner, NULL);
    tn_free(tensors);
    return status;
}

tn_status tn__recompute_value(tn__recompute *recompute, int64_t slot, tn_tensor **out)
{
    tn_status status = TN_OK;

    *out = NULL;
    if (runs_here(recompute))
        return tn_fail(TN_ERR_RUNTIME,
                       "recompute: backward reached a tensor of the function before the function "
                       "returned; expected backward after the function has returned");
    pthread_mutex_lock(&recompute->lock);
    if (recompute->slots[slot].value == NULL)
        status = compute(recompute);
    if (status == TN_OK) {
        *out = recompute->slots[slot].value;
        recompute->slots[slot].value = NULL;
    }
    pthread_mutex_unlock(&recompute->lock);
    if (status == TN_OK && *out == NULL)
        status = tn_fail(TN_ERR_RUNTIME, "recompute: the second run did not compute a tensor "
                                         "that the first run has saved; expected the same calls "
                                         "in both runs");
    return status;
}

/* ---- the first run --------------------------------------------------------------------------- */

static tn__recompute *make(tn_recompute_function function, tn_tensor *const *in, int64_t n_in,
                           int64_t n_out, uint32_t flags)
{
    size_t saved = (size_t)n_in * sizeof(tn__saved);
    tn__recompute *recompute = tn_calloc(1, sizeof *recompute + saved +
                                                (size_t)n_in * sizeof(tn__edge));
    tn_status status = TN_OK;

    if (recompute == NULL)
        return NULL;
    atomic_init(&recompute->refs, 1);
    pthread_mutex_init(&recompute->lock, NULL);
    recompute->call = function;
    recompute->n_in = n_in;
    recompute->n_out = n_out;
    recompute->flags = flags;
    recompute->edges = (tn__edge *)(void *)((char *)recompute->in + saved);
    tn__autocast_get(&recompute->autocast);
    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        if (tn__is_none(in[i]))
            continue;
        status = tn__grad_edge(in[i], &recompute->edges[i]);
        if (status == TN_OK) {
            tn__node_keep(recompute->edges[i].node);
            status = tn__node_save(&recompute->in[i], in[i], (int32_t)i, false, false);
        }
    }
    if (status == TN_OK)
        return recompute;
    tn__recompute_drop(recompute);
    return NULL;
}

/* Calls the function in a scope of its own. The end of the scope drops the tensors that the
 * function does not return. */
static tn_status call_in_scope(tn_recompute_function function, void *user, tn_tensor *const *in,
                               tn_tensor **out, int64_t n_out)
{
    uint64_t scope = tn_scope_begin(), mark = tn_error_mark();
    tn_status status = tn_error_returned(function(user, in, out), mark,
                                         "the function of a recomputation");

    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        if (out[i] == NULL)
            status = tn_fail(TN_ERR_RUNTIME,
                             "recompute: the function returned no output %lld; "
                             "expected a tensor in each element of `out`",
                             (long long)i);
    if (status != TN_OK)
        for (int64_t i = 0; i < n_out; i++)
            out[i] = NULL;
    tn_scope_end_with(scope, out, status == TN_OK ? n_out : 0);
    return status;
}

tn_status tn_recompute_call(tn_recompute_function function, void *user, void (*release)(void *user),
                            tn_tensor *const *in, int64_t n_in, tn_tensor **out, int64_t n_out,
                            uint32_t flags)
{
    struct tn__recompute_run run = { 0 }, *outer = tn__recompute_here;
    tn_status status = TN_OK;

    if (!tn__given(function != NULL, "tn_recompute_call: function") ||
        !tn__given(in != NULL || n_in <= 0, "tn_recompute_call: in") ||
        !tn__given(out != NULL || n_out <= 0, "tn_recompute_call: out"))
        status = TN_ERR_VALUE;
    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        out[i] = NULL;
    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        if (in[i] == NULL)
            status = tn__tensor_bad_at(NULL, "tn_recompute_call: in", i);
    if (status == TN_OK && (flags & ~(uint32_t)TN_RECOMPUTE_NEW_RANDOM) != 0)
        status = tn_fail(TN_ERR_VALUE,
                         "tn_recompute_call: flags: unknown, got 0x%x; expected "
                         "TN_RECOMPUTE_NEW_RANDOM (1) or 0",
                         flags);
    if (status == TN_OK && tn__grad_on()) {
        run.recompute = make(function, in, n_in, n_out, flags);
        status = run.recompute != NULL ? TN_OK : tn_error_last_code();
    }
    if (run.recompute == NULL) {
        if (status == TN_OK)
            status = call_in_scope(function, user, in, out, n_out);
        if (release != NULL)
            release(user);
        return status;
    }
    run.recompute->user = user; /* from here on `recompute` releases `user` */
    run.recompute->release = release;
    atomic_store(&run.recompute->runner, self());
    tn__recompute_here = &run;
    if ((flags & TN_RECOMPUTE_NEW_RANDOM) == 0)
        tn__random_begin(&run.recompute->random, false);
    status = call_in_scope(function, user, in, out, n_out);
    if ((flags & TN_RECOMPUTE_NEW_RANDOM) == 0)
        tn__random_end(&run.recompute->random);
    tn__recompute_here = outer;
    atomic_store(&run.recompute->runner, NULL);
    tn__recompute_drop(run.recompute);
    return status;
}
