/* SPDX-License-Identifier: MIT
 *
 * The state of an optimizer: its parameters, and for each parameter the number of its steps and
 * state tensors by name. */
#include "core/base/vector.h"
#include "core/tensor/capture.h"
#include "lib/train/private.h"

const char *tn_optimizer_type(const tn_optimizer *optimizer)
{
    return tn__not_null(optimizer, "tn_optimizer_type: optimizer") ? optimizer->def->name : "";
}

void *tn_optimizer_user(const tn_optimizer *optimizer)
{
    return tn__not_null(optimizer, "tn_optimizer_user: optimizer") ? optimizer->def->user : NULL;
}

int64_t tn_optimizer_count(const tn_optimizer *optimizer)
{
    return tn__not_null(optimizer, "tn_optimizer_count: optimizer") ? optimizer->count : 0;
}

tn__param *tn__optimizer_param(const tn_optimizer *optimizer, int64_t index)
{
    if (optimizer == NULL) {
        tn_error_null("optimizer");
        return NULL;
    }
    if (index >= 0 && index < optimizer->count)
        return &optimizer->params[index];
    tn__error_index(index, optimizer->count, "optimizer %s: parameter: ", optimizer->def->name);
    return NULL;
}

tn_tensor *tn_optimizer_parameter(const tn_optimizer *optimizer, int64_t index)
{
    tn__param *param = tn__optimizer_param(optimizer, index);
    return param != NULL ? param->tensor : NULL;
}

const char *tn_optimizer_parameter_name(const tn_optimizer *optimizer, int64_t index)
{
    tn__param *param = tn__optimizer_param(optimizer, index);
    return param != NULL ? param->name : NULL;
}

static tn__param_state *state_find(tn__param *param, const char *name)
{
    for (int64_t i = 0; i < param->count; i++)
        if (strcmp(param->states[i].name, name) == 0)
            return &param->states[i];
    return NULL;
}

tn_tensor *tn_optimizer_state(tn_optimizer *optimizer, int64_t index, const char *name)
{
    tn__param *param = tn__optimizer_param(optimizer, index);
    if (param == NULL || !tn__given(name != NULL, "tn_optimizer_state: name"))
        return NULL;
    tn__param_state *state = state_find(param, name);
    return state != NULL ? state->tensor : NULL;
}

tn_status tn__optimizer_state_store(tn__param *param, const char *name, tn_tensor *tensor)
{
    tn__param_state *state = state_find(param, name);
    char *copy;

    if (state != NULL) {
        tn_tensor *before = state->tensor;

        state->tensor = tn_tensor_keep(tensor);
        tn_tensor_drop(before);
        return TN_OK;
    }
    if (!tn__vector_room(&param->states, &param->capacity, param->count + 1, sizeof *param->states))
        return TN_ERR_MEMORY;
    copy = tn_strdup(name);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    param->states[param->count++] = (tn__param_state){ copy, tn_tensor_keep(tensor) };
    return TN_OK;
}

void tn__optimizer_state_clear(tn__param *param)
{
    for (int64_t i = 0; i < param->count; i++) {
        tn_free(param->states[i].name);
        tn_tensor_drop(param->states[i].tensor);
    }
    tn_free(param->states);
    param->states = NULL;
    param->count = param->capacity = 0;
}

tn_status tn_optimizer_set_state(tn_optimizer *optimizer, int64_t index, const char *name,
                                 tn_tensor *tensor)
{
    if (name == NULL || tensor == NULL)
        return tn__error_null_of("tn_optimizer_set_state", "name, tensor", name, tensor);
    if (tn__is_none(tensor))
        return tn_fail(TN_ERR_TYPE, "optimizer state \"%s\": it is TN_NONE; expected a tensor",
                       name);
    tn__param *param = tn__optimizer_param(optimizer, index);
    if (param == NULL)
        return tn_error_last_code();
    char what[128];
    tn_snprint(what, sizeof what, "optimizer %s: state \"%s\"", optimizer->def->name, name);
    tn_status status = tn__capture_refuse_on(
        tn_tensor_device(tensor), what,
        "each launch would set it again; expected a step before the recording begins, which "
        "makes the states and writes a changed learning rate");
    return status == TN_OK ? tn__optimizer_state_store(param, name, tensor) : status;
}

int64_t tn_optimizer_state_count(const tn_optimizer *optimizer, int64_t index)
{
    const tn__param *param = tn__optimizer_param(optimizer, index);
    return param != NULL ? param->count : -1;
}

const char *tn_optimizer_state_name(const tn_optimizer *optimizer, int64_t index, int64_t state)
{
    const tn__param *param = tn__optimizer_param(optimizer, index);
    if (param == NULL)
        return NULL;
    if (state >= 0 && state < param->count)
        return param->states[state].name;
    tn__error_index(state, param->count,
                    "optimizer %s: parameter %lld: state: ", optimizer->def->name,
                    (long long)index);
    return NULL;
}

int64_t tn_optimizer_steps(const tn_optimizer *optimizer, int64_t index)
{
    const tn__param *param = tn__optimizer_param(optimizer, index);
    return param != NULL ? param->steps : -1;
}

tn_status tn_optimizer_set_steps(tn_optimizer *optimizer, int64_t index, int64_t steps)
{
    tn__param *param = tn__optimizer_param(optimizer, index);
    if (param == NULL)
        return tn_error_last_code();
    if (steps < 0 || steps >= (int64_t)9e15) /* as in a state that is loaded */
        return tn_fail(TN_ERR_VALUE,
                       "optimizer %s: steps: out of range, got %lld; expected 0 to 9e15",
                       optimizer->def->name, (long long)steps);
    param->steps = steps;
    return TN_OK;
}
