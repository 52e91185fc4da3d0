/* SPDX-License-Identifier: MIT
 *
 * Numbers of optimizers in tensors on the device: those that a rule keeps as states, and, for
 * optimizers that are `capturable`, the number of the step and the learning rate. No number that
 * changes is then passed from the host, so that a recorded step can be replayed. The tensors are
 * states of the parameters, "step" and "lr"; all parameters of a batch share them. */
#include "optim.h"

static int64_t place_of(const struct optim_batch *batch, int64_t member)
{
    return batch->args->index[batch->members[member]];
}

/* Returns how many parameters of the optimizer have exactly this tensor as their state `name`. */
static int64_t holders(tn_optimizer *self, const char *name, const tn_tensor *tensor)
{
    int64_t count = tn_optimizer_count(self), found = 0;

    for (int64_t i = 0; i < count; i++)
        found += tn_optimizer_state(self, i, name) == tensor;
    return found;
}

/* Returns the state `name` of the batch. It is the state of the first member, converted or copied
 * if it has another dtype or if parameters outside the batch share it; if there is none, a new
 * tensor with `value`. All members of the batch get it as their state. */
static tn_tensor *shared(const struct optim_batch *batch, const char *name, tn_dtype dtype,
                         double value)
{
    tn_tensor *parameter = batch->args->parameters[batch->members[0]];
    tn_tensor *tensor = tn_optimizer_state(batch->self, place_of(batch, 0), name);
    int64_t within = 0;

    for (int64_t i = 0; i < batch->count && tensor != NULL; i++)
        within += tn_optimizer_state(batch->self, place_of(batch, i), name) == tensor;
    if (tensor == NULL || tn_tensor_ndim(tensor) != 0) {
        tensor = tn_tensor_full(TN_SCALAR_SHAPE, value, dtype, tn_tensor_device(parameter));
        within = 0;
    } else if (tn_tensor_dtype(tensor) != dtype) {
        tensor = tn_cast(tensor, dtype);
        within = 0;
    } else if (within < holders(batch->self, name, tensor)) {
        tensor = tn_copy(tensor);
        within = 0;
    }
    if (tensor == NULL || within == batch->count)
        return tensor;
    for (int64_t i = 0; i < batch->count; i++)
        if (tn_optimizer_set_state(batch->self, place_of(batch, i), name, tensor) != TN_OK)
            return NULL;
    return tensor;
}

tn_tensor *optim_step_number(const struct optim_batch *batch)
{
    return tn_add_scalar_(shared(batch, "step", TN_F32, (double)(batch->steps - 1)), 1);
}

tn_status optim_step_number_set(const struct optim_batch *batch)
{
    for (int64_t i = 0; i < batch->count; i++) {
        tn_tensor *step = tn_optimizer_state(batch->self, place_of(batch, i), "step");

        if (step != NULL && tn_fill_(step, (double)batch->steps) == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

tn_dtype optim_number_type(const tn_tensor *parameter)
{
    tn_dtype dtype = tn_tensor_dtype(parameter);

    return dtype == TN_F64 || dtype == TN_C128 ? TN_F64 : TN_F32;
}

tn_tensor *optim_number(const struct optim_batch *batch, const char *name, double start)
{
    tn_tensor *parameter = batch->args->parameters[batch->members[0]];

    return shared(batch, name, optim_number_type(parameter), start);
}

tn_tensor *optim_rate(const struct optim_batch *batch, double rate)
{
    return optim_number(batch, "lr", rate);
}

bool optim_number_same(tn_optimizer *self, int64_t a, int64_t b, const char *name)
{
    tn_tensor *x = tn_optimizer_state(self, a, name), *y = tn_optimizer_state(self, b, name);
    uint64_t mark = tn_error_mark();
    bool same;

    if (x == y || x == NULL || y == NULL)
        return x == y;
    same = tn_tensor_item(x) == tn_tensor_item(y); /* NaN if it cannot be read: they are apart */
    tn_error_restore(mark);
    return same;
}

tn_status optim_rate_changed(tn_optimizer *self, int64_t group, double rate,
                             struct optim_rate *held)
{
    int64_t count = tn_optimizer_count(self);

    if (held->written && held->value == rate)
        return TN_OK;
    for (int64_t i = 0; i < count; i++) {
        tn_tensor *tensor = tn_optimizer_group_of(self, i) == group
                                ? tn_optimizer_state(self, i, "lr")
                                : NULL;

        /* Setting the state again is refused while a stream records: the record would not have the
         * rates of later steps, but write this one at each launch. */
        if (tensor != NULL && (tn_optimizer_set_state(self, i, "lr", tensor) != TN_OK ||
                               tn_fill_(tensor, rate) == NULL))
            return tn_error_last_code();
    }
    held->written = true;
    held->value = rate;
    return TN_OK;
}
