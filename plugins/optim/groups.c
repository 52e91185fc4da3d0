/* SPDX-License-Identifier: MIT
 *
 * Calls an operator that steps many parameters at once for the parameters of a group. Parameters
 * with the same device, dtype and number of steps go into one call, each with its gradient and its
 * states. As in PyTorch, a complex parameter is stepped as the real tensor of its real and
 * imaginary parts; its states are complex. */
#include "optim.h"

#include <string.h>

/* Returns true if both tensors have the same strides, so that an elementwise loop over both is
 * efficient. Also returns true if their numbers of dimensions differ, because the operator then
 * reports the error. */
static bool same_order(const tn_tensor *a, const tn_tensor *b)
{
    tn_ints shape = tn_tensor_shape(a), x = tn_tensor_strides(a), y = tn_tensor_strides(b);
    if (x.count != y.count)
        return true;
    for (int64_t d = 0; d < shape.count; d++)
        if (shape.at[d] != 1 && x.at[d] != y.at[d])
            return false;
    return true;
}

static tn_tensor *like(tn_tensor *parameter)
{
    return tn_tensor_empty_strided(tn_tensor_shape(parameter), tn_tensor_strides(parameter),
                                   tn_tensor_dtype(parameter), tn_tensor_device(parameter));
}

static tn_tensor *in_its_order(tn_tensor *gradient, tn_tensor *parameter)
{
    tn_tensor *copy;
    if (same_order(gradient, parameter) ||
        tn_tensor_dtype(gradient) != tn_tensor_dtype(parameter) ||
        tn_tensor_device(gradient) != tn_tensor_device(parameter))
        return gradient; /* the operator reports the mismatch */
    copy = like(parameter);
    return copy != NULL ? tn_copy_(copy, gradient) : NULL;
}

tn_tensor *optim_real(tn_tensor *tensor)
{
    if (tensor == NULL || (TN_MASK_COMPLEX & TN_BIT(tn_tensor_dtype(tensor))) == 0)
        return tensor;
    return tn_view_as_real(tensor);
}

/* Returns the state `name` of a parameter, creating it with elements `start` if it does not exist.
 * If the parameter's dtype or strides have changed, the state is converted to them. */
static tn_tensor *state_of(tn_optimizer *self, int64_t index, const char *name, double start,
                           tn_tensor *parameter)
{
    tn_tensor *before = tn_optimizer_state(self, index, name), *state, *done = NULL;
    if (before != NULL && tn_tensor_dtype(before) == tn_tensor_dtype(parameter) &&
        same_order(before, parameter))
        return before;
    state = like(parameter);
    if (state != NULL)
        done = before != NULL ? tn_copy_(state, before) : tn_fill_(optim_real(state), start);
    if (done == NULL || tn_optimizer_set_state(self, index, name, state) != TN_OK)
        return NULL;
    return state;
}

/* The arguments of one optim_step(). */
struct walk {
    tn_optimizer *self;
    const tn_step_args *args;
    const struct optim_rule *rule;
};

/* Appends parameter i, its gradient and its states to the list. */
static tn_status gather(const struct walk *walk, int64_t i, tn_tensor **list, int64_t *n)
{
    const struct optim_rule *rule = walk->rule;
    tn_tensor *parameter = walk->args->parameters[i];
    list[(*n)++] = parameter;
    list[(*n)++] = in_its_order(walk->args->gradients[i], parameter);
    for (int64_t k = 0; k < rule->n_states; k++)
        list[(*n)++] = state_of(walk->self, walk->args->index[i], rule->states[k],
                                rule->starts != NULL ? rule->starts[k] : 0, parameter);
    for (int64_t k = *n - 2 - rule->n_states; k < *n; k++) {
        list[k] = optim_real(list[k]);
        if (list[k] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

static bool is_fresh(const struct walk *walk, int64_t i)
{
    return walk->rule->n_states > 0 &&
           tn_optimizer_state(walk->self, walk->args->index[i], walk->rule->states[0]) == NULL;
}

static int64_t steps_of(const struct walk *walk, int64_t i)
{
    return tn_optimizer_steps(walk->self, walk->args->index[i]);
}

static bool same_numbers(const struct walk *walk, int64_t i, int64_t k)
{
    for (int64_t m = 0; m < walk->rule->n_numbers; m++)
        if (!optim_number_same(walk->self, walk->args->index[i], walk->args->index[k],
                               walk->rule->numbers[m].name))
            return false;
    return true;
}

static bool alike(const struct walk *walk, int64_t i, int64_t k, bool fresh)
{
    tn_tensor *const *parameters = walk->args->parameters;
    return is_fresh(walk, k) == fresh &&
           tn_tensor_dtype(parameters[i]) == tn_tensor_dtype(parameters[k]) &&
           tn_tensor_device(parameters[i]) == tn_tensor_device(parameters[k]) &&
           steps_of(walk, i) == steps_of(walk, k) && same_numbers(walk, i, k);
}

/* Sets call->number[] to the rule's numbers. With `capturable`, sets call->step and call->rate to
 * tensors with the number of the step and the learning rate. Without it, only updates a step tensor
 * that exists, so that a later capturable step starts from the right number. */
static tn_status set_numbers(const struct optim_rule *rule, const struct optim_batch *batch,
                             struct optim_call *call)
{
    call->step = call->rate = TN_NONE;
    for (int64_t i = 0; i < rule->n_numbers; i++) {
        call->number[i] = optim_number(batch, rule->numbers[i].name, rule->numbers[i].start);
        if (call->number[i] == NULL)
            return tn_error_last_code();
    }
    if (!rule->capturable)
        return rule->counts ? optim_step_number_set(batch) : TN_OK;
    call->rate = optim_rate(batch, rule->rate);
    if (call->rate != NULL && rule->counts)
        call->step = optim_step_number(batch);
    return call->rate != NULL && call->step != NULL ? TN_OK : tn_error_last_code();
}

/* Undoes the increment of the step tensor, because a step that failed does not count. */
static tn_status uncount(tn_status status, tn_tensor *step)
{
    uint64_t mark = tn_error_mark();

    if (step != TN_NONE)
        (void)tn_add_scalar_(step, -1);
    tn_error_restore(mark);
    return status;
}

/* Runs the operator for the parameters of one batch. */
static tn_status run_batch(const struct walk *walk, const int64_t *members, int64_t count,
                           bool fresh, tn_tensor **list)
{
    const struct optim_batch batch = { walk->self, walk->args, members, count,
                                       steps_of(walk, members[0]) };
    struct optim_call call = {
        .options = walk->args->options, .steps = batch.steps, .fresh = fresh, .list = list
    };
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = gather(walk, members[i], list, &call.n);
    if (status == TN_OK)
        status = set_numbers(walk->rule, &batch, &call);
    if (status != TN_OK)
        return status;
    status = walk->rule->run(&call);
    return status == TN_OK ? TN_OK : uncount(status, call.step);
}

tn_status optim_step(tn_optimizer *self, const tn_step_args *args, const struct optim_rule *rule)
{
    const struct walk walk = { self, args, rule };
    size_t count = (size_t)args->count, room = count * (size_t)(2 + rule->n_states);
    tn_tensor **list = tn_malloc(room * sizeof(tn_tensor *) + count * (sizeof(int64_t) + 1));
    tn_status status = TN_OK;
    if (list == NULL)
        return TN_ERR_MEMORY;
    int64_t *members = (int64_t *)(void *)(list + room);
    bool *taken = (bool *)(members + count);
    memset(taken, 0, count);
    if (rule->capturable)
        status = optim_rate_changed(self, args->group, rule->rate, rule->held);
    for (int64_t first = 0; first < args->count && status == TN_OK; first++) {
        int64_t n = 0;
        if (taken[first])
            continue;
        bool fresh = is_fresh(&walk, first);
        for (int64_t i = first; i < args->count; i++) {
            if (taken[i] || (i > first && !alike(&walk, first, i, fresh)))
                continue;
            taken[i] = true;
            members[n++] = i;
        }
        status = run_batch(&walk, members, n, fresh, list);
    }
    tn_free(list);
    return status;
}
