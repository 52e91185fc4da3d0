/* SPDX-License-Identifier: MIT
 *
 * Backward hooks. A call with such hooks puts one identity node on its inputs and another on its
 * outputs. In a backward, gradients reach the node of the outputs first, which runs the pre hooks,
 * and later the node of the inputs, which runs the full hooks. The nodes keep the hooks that were
 * registered at the time of the call. */
#include "core/module/hooks.h"

struct node {
    int64_t values;   /* number of positional values of the pack */
    int64_t count;    /* number of tracked values; 0: there is no node */
    int64_t *tracked; /* indices of the tracked values in the pack */
};

/* A backward that has passed the node of the outputs but not yet the node of the inputs. */
struct pass {
    struct pass *next;
    pthread_t thread; /* each backward runs in one thread; several may share a graph */
    tn_pack *grad_output;
};

struct tn__backward {
    _Atomic int32_t refs;
    tn_module *module; /* owned reference */
    tn__hook_row before, full;
    struct node input, output;
    pthread_mutex_t lock;
    struct pass *passes;
};

/* ---- creation and reference count ------------------------------------------------------------ */

static tn__backward *passage_keep(tn__backward *passage)
{
    atomic_fetch_add_explicit(&passage->refs, 1, memory_order_relaxed);
    return passage;
}

void tn__backward_drop(tn__backward *passage)
{
    if (passage == NULL || atomic_fetch_sub_explicit(&passage->refs, 1, memory_order_acq_rel) != 1)
        return;
    while (passage->passes != NULL) {
        struct pass *pass = passage->passes;
        passage->passes = pass->next;
        tn_pack_drop(pass->grad_output);
        tn_free(pass);
    }
    tn__hook_row_drop(&passage->before);
    tn__hook_row_drop(&passage->full);
    tn_module_drop(passage->module);
    tn_free(passage->input.tracked);
    tn_free(passage->output.tracked);
    pthread_mutex_destroy(&passage->lock);
    tn_free(passage);
}

static void release(void *user)
{
    tn__backward_drop(user);
}

tn_status tn__backward_new(tn_module *module, tn__backward **out)
{
    tn__backward *passage = tn_calloc(1, sizeof *passage);

    *out = NULL;
    if (passage == NULL)
        return TN_ERR_MEMORY;
    atomic_init(&passage->refs, 1);
    pthread_mutex_init(&passage->lock, NULL);
    passage->module = tn_module_keep(module);
    passage->full.at = passage->full.few;
    tn_status status = tn__module_hooks_take(module, TN__HOOK_BACKWARD_PRE, &passage->before);
    if (status == TN_OK)
        status = tn__module_hooks_take(module, TN__HOOK_BACKWARD, &passage->full);
    if (status == TN_OK && passage->before.count + passage->full.count > 0) {
        *out = passage;
        return TN_OK;
    }
    tn__backward_drop(passage);
    return status;
}

/* ---- data that a backward keeps between the two nodes ---------------------------------------- */

/* Removes the pack that leave_pass() stored for this thread. The caller owns the result; NULL if
 * there is no pack. */
static tn_pack *take_pass(tn__backward *passage)
{
    struct pass **at = &passage->passes, *found;
    tn_pack *grad_output = NULL;

    pthread_mutex_lock(&passage->lock);
    while (*at != NULL && !pthread_equal((*at)->thread, pthread_self()))
        at = &(*at)->next;
    found = *at;
    if (found != NULL)
        *at = found->next;
    pthread_mutex_unlock(&passage->lock);
    if (found != NULL)
        grad_output = found->grad_output;
    tn_free(found);
    return grad_output;
}

/* Stores a pack for this thread and takes it over. An earlier backward of this thread may have left
 * a pack because it never reached the inputs: that pack is dropped. */
static tn_status leave_pass(tn__backward *passage, tn_pack *grad_output)
{
    struct pass *pass = tn_malloc(sizeof *pass);

    tn_pack_drop(take_pass(passage));
    if (pass == NULL) {
        tn_pack_drop(grad_output);
        return TN_ERR_MEMORY;
    }
    *pass = (struct pass){ .thread = pthread_self(), .grad_output = grad_output };
    pthread_mutex_lock(&passage->lock);
    pass->next = passage->passes;
    passage->passes = pass;
    pthread_mutex_unlock(&passage->lock);
    return TN_OK;
}

/* ---- packs of gradients ---------------------------------------------------------------------- */

static const tn_value no_value = { .kind = TN_VALUE_NONE };

/* Returns a pack with one value for each positional value of the module's pack. Values that are not
 * tracked or have no gradient are of kind NONE. */
static tn_pack *pack_of(const struct node *node, tn_tensor *const *gradients)
{
    tn_pack *pack = tn_pack_new();
    tn_status status = pack != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < node->values && status == TN_OK; i++)
        status = tn_pack_add(pack, NULL, no_value);
    for (int64_t i = 0; i < node->count && status == TN_OK; i++)
        if (!tn__is_none(gradients[i]))
            status = tn_pack_set(pack, node->tracked[i], tn_value_tensor(gradients[i]));
    if (status == TN_OK)
        return pack;
    tn_pack_drop(pack);
    return NULL;
}

static bool no_gradient(tn_value value)
{
    return value.kind == TN_VALUE_NONE ||
           (value.kind == TN_VALUE_TENSOR && tn__is_none(value.as.tensor));
}

/* Gets the gradients of the tracked values from a pack. The scope owns them. */
static tn_status unpack(const struct node *node, const tn_pack *pack, const char *what,
                        tn_tensor **gradients)
{
    for (int64_t i = 0; i < node->count; i++) {
        tn_value value = tn_pack_at(pack, node->tracked[i]);

        gradients[i] = TN_NONE;
        if (no_gradient(value))
            continue;
        if (value.kind != TN_VALUE_TENSOR)
            return tn_fail(TN_ERR_TYPE, "hook: %s %lld: wrong type, got %s; expected a tensor",
                           what, (long long)node->tracked[i], tn__value_kind_name(value.kind));
        gradients[i] = tn_tensor_to_scope(tn_tensor_keep(value.as.tensor));
        if (gradients[i] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* ---- the node of the outputs ----------------------------------------------------------------- */

static tn_status check_count(const tn_pack *replaced, int64_t expected, const char *hook,
                             const char *what)
{
    int64_t count = tn_pack_positional(replaced), named = tn_pack_count(replaced) - count;

    if (count == expected && named == 0)
        return TN_OK;
    /* PyTorch's wording */
    return tn_fail(TN_ERR_RUNTIME,
                   "%s returned an invalid number of %s, got %lld, but expected %lld", hook, what,
                   (long long)(count + named), (long long)expected);
}

static tn_status run_before(tn__backward *passage, tn_pack **grad_output)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < passage->before.count && status == TN_OK; i++) {
        const tn__hook *hook = passage->before.at[i];
        tn__hook_turn turn;
        tn_pack *replaced;

        status = tn__hook_turn_begin(&turn);
        if (status != TN_OK)
            return status;
        status = ((tn_backward_pre_hook)hook->function)(hook->user, passage->module, *grad_output,
                                                        turn.replacement, &turn.outcome);
        status = tn__hook_turn_end(&turn, status, "backward pre hook", "new grad_output",
                                   &replaced);
        if (replaced == NULL)
            continue;
        status = check_count(replaced, passage->output.values, "Backward pre hook", "grad_output");
        if (status != TN_OK) {
            tn_pack_drop(replaced);
            continue;
        }
        tn_pack_drop(*grad_output);
        *grad_output = replaced;
    }
    return status;
}

/* Calls full backward hook `i`. */
static tn_status run_full(tn__backward *passage, int64_t i, const tn_pack *grad_input,
                          const tn_pack *grad_output, tn_pack **replaced)
{
    const tn__hook *hook = passage->full.at[i];
    tn__hook_turn turn;
    tn_status status = tn__hook_turn_begin(&turn);

    *replaced = NULL;
    if (status != TN_OK)
        return status;
    status = ((tn_backward_hook)hook->function)(hook->user, passage->module, grad_input,
                                                grad_output, turn.replacement, &turn.outcome);
    return tn__hook_turn_end(&turn, status, "backward hook", "new grad_input", replaced);
}

/* Runs the full hooks here because no input requires a gradient. There is no gradient that they
 * could replace. */
static tn_status run_full_at_outputs(tn__backward *passage, const tn_pack *grad_output)
{
    tn_pack *grad_input = pack_of(&passage->input, NULL);
    tn_status status = grad_input != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < passage->full.count && status == TN_OK; i++) {
        tn_pack *replaced;

        status = run_full(passage, i, grad_input, grad_output, &replaced);
        for (int64_t k = 0; status == TN_OK && replaced != NULL && k < tn_pack_count(replaced); k++)
            if (!no_gradient(tn_pack_at(replaced, k)))
                /* PyTorch's wording */
                status = tn_fail(TN_ERR_RUNTIME,
                                 "Backward hook for Modules where no input requires gradient "
                                 "should always return None or None for all gradients.");
        tn_pack_drop(replaced);
    }
    tn_pack_drop(grad_input);
    return status;
}

static tn_status output_backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                                 tn_tensor **gin)
{
    tn__backward *passage = user;
    tn_pack *grad_output = pack_of(&passage->output, gout);
    tn_status status = grad_output != NULL ? TN_OK : tn_error_last_code();

    (void)ctx;
    if (status == TN_OK)
        status = run_before(passage, &grad_output);
    if (status == TN_OK)
        status = unpack(&passage->output, grad_output, "grad_output", gin);
    if (status == TN_OK && passage->input.count > 0)
        return leave_pass(passage, grad_output);
    if (status == TN_OK)
        status = run_full_at_outputs(passage, grad_output);
    tn_pack_drop(grad_output);
    return status;
}

/* ---- the node of the inputs ------------------------------------------------------------------ */

static tn_status run_full_at_inputs(tn__backward *passage, tn_pack **grad_input,
                                    const tn_pack *grad_output)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < passage->full.count && status == TN_OK; i++) {
        tn_pack *replaced;

        status = run_full(passage, i, *grad_input, grad_output, &replaced);
        if (replaced == NULL)
            continue;
        status = check_count(replaced, passage->input.values, "Backward hook", "grad_input");
        if (status != TN_OK) {
            tn_pack_drop(replaced);
            continue;
        }
        tn_pack_drop(*grad_input);
        *grad_input = replaced;
    }
    return status;
}

static tn_status input_backward(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                                tn_tensor **gin)
{
    tn__backward *passage = user;
    const struct node *node = &passage->input;
    tn_pack *grad_output = take_pass(passage), *grad_input;
    tn_status status;

    (void)ctx;
    /* If the outputs do not depend on an input, the gradient of that input is zeros here. */
    memcpy(gin, gout, (size_t)node->count * sizeof *gin);
    /* Nothing is left to do if the gradients did not come through the outputs of this call, or if
     * there are no full hooks. */
    if (grad_output == NULL || passage->full.count == 0) {
        tn_pack_drop(grad_output);
        return TN_OK;
    }
    grad_input = pack_of(node, gin);
    status = grad_input != NULL ? TN_OK : tn_error_last_code();
    if (status == TN_OK)
        status = run_full_at_inputs(passage, &grad_input, grad_output);
    if (status == TN_OK)
        status = unpack(node, grad_input, "grad_input", gin);
    tn_pack_drop(grad_input);
    tn_pack_drop(grad_output);
    return status;
}

/* ---- inserting the nodes --------------------------------------------------------------------- */

/* Returns the inputs themselves: each output shares the memory of its input. */
static tn_status pass_inputs(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                             tn_tensor **out)
{
    const tn__backward *passage = user;

    (void)ctx;
    memcpy(out, in, (size_t)passage->input.count * sizeof *out);
    return TN_OK;
}

static tn_status pass_outputs(tn_function_ctx *ctx, void *user, tn_tensor *const *in,
                              tn_tensor **out)
{
    const tn__backward *passage = user;

    memcpy(out, in, (size_t)passage->output.count * sizeof *out);
    return tn_function_set_materialize_grads(ctx, false);
}

/* PyTorch's name for these nodes, which occurs in its messages. */
#define NODE_NAME "BackwardHookFunction"

static const tn_function input_function = {
    .name = NODE_NAME, .forward = pass_inputs, .backward = input_backward, .release = release
};
static const tn_function output_function = {
    .name = NODE_NAME, .forward = pass_outputs, .backward = output_backward, .release = release
};

static bool requires_grad(tn_value value)
{
    return value.kind == TN_VALUE_TENSOR && !tn__is_none(value.as.tensor) &&
           tn__requires_grad(value.as.tensor);
}

/* Finds the values of the pack that require a gradient. Stores their indices in the node, and the
 * tensors in the first half of the array *tensors; the second half is for the outputs. The caller
 * frees *tensors with tn_free(). */
static tn_status track(struct node *node, const tn_pack *pack, tn_tensor ***tensors)
{
    int64_t count = 0;

    node->values = tn_pack_positional(pack);
    *tensors = NULL;
    for (int64_t i = 0; tn__grad_on() && i < node->values; i++)
        count += requires_grad(tn_pack_at(pack, i));
    if (count == 0)
        return TN_OK;
    node->tracked = tn_calloc((size_t)count, sizeof *node->tracked);
    *tensors = tn_calloc((size_t)count * 2, sizeof **tensors);
    if (node->tracked == NULL || *tensors == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < node->values; i++) {
        tn_value value = tn_pack_at(pack, i);
        if (!requires_grad(value))
            continue;
        node->tracked[node->count] = i;
        (*tensors)[node->count++] = value.as.tensor;
    }
    return TN_OK;
}

/* Passes the tracked tensors through the function and puts the results into the pack. */
static tn_status put_node(tn__backward *passage, const tn_function *function, struct node *node,
                          tn_tensor **tensors, tn_pack *pack)
{
    tn_tensor **out = tensors + node->count;
    tn_status status = tn_function_call(function, passage_keep(passage), tensors, node->count, out,
                                        node->count);

    for (int64_t i = 0; i < node->count && status == TN_OK; i++)
        status = tn_pack_set(pack, node->tracked[i], tn_value_tensor(out[i]));
    return status;
}

tn_status tn__backward_input(tn__backward *passage, const tn_pack *input, tn_pack **fresh)
{
    tn_tensor **tensors;
    tn_status status = track(&passage->input, input, &tensors);

    *fresh = NULL;
    if (status == TN_OK && passage->input.count > 0) {
        tn_pack *pack = tn_pack_new();

        status = pack != NULL ? TN_OK : TN_ERR_MEMORY;
        for (int64_t i = 0; i < tn_pack_count(input) && status == TN_OK; i++)
            status = tn_pack_add(pack, tn_pack_name(input, i), tn_pack_at(input, i));
        if (status == TN_OK)
            status = put_node(passage, &input_function, &passage->input, tensors, pack);
        if (status == TN_OK)
            *fresh = pack;
        else
            tn_pack_drop(pack);
    }
    tn_free(tensors);
    return status;
}

tn_status tn__backward_output(tn__backward *passage, tn_pack *output)
{
    tn_tensor **tensors;

    if (tn_pack_positional(output) < tn_pack_count(output)) {
        tn__log(TN_LOG_WARNING,
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                "Tensors; this %s gave %q by name",
                passage->module->type, tn_pack_name(output, tn_pack_positional(output)));
        return TN_OK;
    }
    tn_status status = track(&passage->output, output, &tensors);
    if (status == TN_OK && passage->output.count > 0)
        status = put_node(passage, &output_function, &passage->output, tensors, output);
    tn_free(tensors);
    return status;
}
