/* SPDX-License-Identifier: MIT
 *
 * From the parameters of a group to calls of an operator that steps many of them: those that are
 * alike (device, dtype, steps taken) go together, each with its gradient and its state. */
#include "optim.h"

#include <string.h>

/* The strides that an element-wise walk over both would want; of other shapes it is not asked. */
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
        return gradient; /* what does not fit is the operator's to refuse */
    copy = like(parameter);
    return copy != NULL ? tn_copy_(copy, gradient) : NULL;
}

/* State `name` of a parameter, made of zeros at first, in the dtype and the order of the parameter:
 * it follows where that was converted. */
static tn_tensor *state_of(tn_optimizer *self, int64_t index, const char *name,
                           tn_tensor *parameter)
{
    tn_tensor *before = tn_optimizer_state(self, index, name), *state;
    if (before != NULL && tn_tensor_dtype(before) == tn_tensor_dtype(parameter) &&
        same_order(before, parameter))
        return before;
    state = like(parameter);
    if (state != NULL)
        state = before != NULL ? tn_copy_(state, before) : tn_fill_(state, 0.0);
    if (state == NULL || tn_optimizer_set_state(self, index, name, state) != TN_OK)
        return NULL;
    return state;
}

/* A step of a rule. */
struct walk {
    tn_optimizer *self;
    const tn_step_args *args;
    const struct optim_rule *rule;
};

/* Puts parameter i with what belongs to it at the end of the list. */
static tn_status gather(const struct walk *walk, int64_t i, tn_tensor **list, int64_t *n)
{
    const struct optim_rule *rule = walk->rule;
    tn_tensor *parameter = walk->args->parameters[i];
    list[(*n)++] = parameter;
    list[(*n)++] = in_its_order(walk->args->gradients[i], parameter);
    for (int64_t k = 0; k < rule->n_states; k++)
        list[(*n)++] = state_of(walk->self, walk->args->index[i], rule->states[k], parameter);
    for (int64_t k = *n - 1 - rule->n_states; k < *n; k++)
        if (list[k] == NULL)
            return tn_error_last_code();
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

static bool alike(const struct walk *walk, int64_t i, int64_t k, bool fresh)
{
    tn_tensor *const *parameters = walk->args->parameters;
    return is_fresh(walk, k) == fresh &&
           tn_tensor_dtype(parameters[i]) == tn_tensor_dtype(parameters[k]) &&
           tn_tensor_device(parameters[i]) == tn_tensor_device(parameters[k]) &&
           steps_of(walk, i) == steps_of(walk, k);
}

tn_status optim_step(tn_optimizer *self, const tn_step_args *args, const struct optim_rule *rule)
{
    const struct walk walk = { self, args, rule };
    size_t room = (size_t)(args->count * (2 + rule->n_states));
    tn_tensor **list = tn_malloc(room * sizeof(tn_tensor *) + (size_t)args->count);
    tn_status status = TN_OK;
    if (list == NULL)
        return TN_ERR_MEMORY;
    bool *taken = (bool *)(list + room);
    memset(taken, 0, (size_t)args->count);
    for (int64_t first = 0; first < args->count && status == TN_OK; first++) {
        int64_t n = 0;
        if (taken[first])
            continue;
        bool fresh = is_fresh(&walk, first);
        for (int64_t i = first; i < args->count && status == TN_OK; i++) {
            if (taken[i] || (i > first && !alike(&walk, first, i, fresh)))
                continue;
            taken[i] = true;
            status = gather(&walk, i, list, &n);
        }
        if (status == TN_OK)
            status = rule->run(args->options, steps_of(&walk, first), fresh, list, n);
    }
    tn_free(list);
    return status;
}
