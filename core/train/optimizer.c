/* SPDX-License-Identifier: MIT
 *
 * The optimizer object: parameters, their state by name, options. The rule is a plugin's. */
#include "core/base/vector.h"
#include "core/train/private.h"

#include <math.h>

/* ---- life ------------------------------------------------------------------------------------ */

tn_optimizer *tn__optimizer_keep(tn_optimizer *optimizer)
{
    atomic_fetch_add_explicit(&optimizer->refs, 1, memory_order_relaxed);
    return optimizer;
}

static void param_clear(tn__param *param)
{
    for (int64_t i = 0; i < param->count; i++) {
        tn_free(param->states[i].name);
        tn_tensor_drop(param->states[i].tensor);
    }
    tn_free(param->states);
    tn_tensor_drop(param->tensor);
}

void tn_optimizer_drop(tn_optimizer *optimizer)
{
    if (optimizer == NULL ||
        atomic_fetch_sub_explicit(&optimizer->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int64_t i = 0; i < optimizer->count; i++)
        param_clear(&optimizer->params[i]);
    tn_free(optimizer->params);
    tn__options_release(optimizer->keep);
    tn_free(optimizer->data);
    tn_free(optimizer);
}

static tn_status take_parameters(tn_optimizer *optimizer, tn_tensor *const *parameters,
                                 int64_t count)
{
    if (count <= 0)
        /* PyTorch's words */
        return tn_fail(TN_ERR_VALUE, "optimizer %s got an empty parameter list",
                       optimizer->def->name);
    optimizer->params = tn_calloc((size_t)count, sizeof *optimizer->params);
    if (optimizer->params == NULL)
        return TN_ERR_MEMORY;
    tn__map seen = { 0 };
    tn_status status = TN_OK;
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn_tensor *tensor = parameters[i];
        if (tensor == NULL) {
            status = tn__error_null_input("optimizer: parameter");
        } else if (tn__is_none(tensor)) {
            status = tn_fail(TN_ERR_TYPE,
                             "optimizer %s: parameter %lld: it is TN_NONE; expected a tensor",
                             optimizer->def->name, (long long)i);
        } else if (!tn_tensor_is_leaf(tensor)) {
            status = tn_fail(
                TN_ERR_VALUE,
                "optimizer %s: can't optimize a non-leaf Tensor: operator %s made parameter %lld",
                optimizer->def->name, tn_tensor_grad_op(tensor), (long long)i);
        } else {
            int is_new = tn__map_add(&seen, tensor);
            if (is_new < 0)
                status = TN_ERR_MEMORY;
            else if (is_new == 0)
                tn_log(TN_LOG_WARNING,
                       "optimizer %s: parameter %lld occurs twice; expected each "
                       "once",
                       optimizer->def->name, (long long)i);
            else
                optimizer->params[optimizer->count++].tensor = tn_tensor_keep(tensor);
        }
    }
    tn__map_free(&seen);
    return status;
}

static tn_status run_check(tn_optimizer *optimizer)
{
    if (optimizer->def->check == NULL)
        return TN_OK;
    const char *before = tn__error_plugin(optimizer->plugin != NULL ? optimizer->plugin->id : "");
    tn_status status = tn__error_status_of(optimizer->def->check(optimizer), optimizer->def->name);
    tn__error_plugin(before);
    return status;
}

static tn_status fill(tn_optimizer *optimizer, const tn__spec *spec, tn_tensor *const *parameters,
                      int64_t count)
{
    char what[128];
    tn_snprint(what, sizeof what, "optimizer %s", optimizer->def->name);
    tn_status status = tn__options_fill(optimizer->def->options, optimizer->data, what, spec->text,
                                        spec->values, spec->names, spec->columns, spec->count,
                                        &optimizer->keep);
    if (status == TN_OK)
        status = run_check(optimizer);
    if (status == TN_OK)
        status = take_parameters(optimizer, parameters, count);
    return status;
}

static tn_optimizer *from_spec(const tn__spec *spec, tn_tensor *const *parameters, int64_t count)
{
    if (spec->type[0] == '\0') {
        tn_fail(TN_ERR_FORMAT, "optimizer: wrong form, got %q; expected Name(name=value, ...)",
                spec->text);
        return NULL;
    }
    const tn__entry *entry = tn__registry_use(TN_KIND_tn_optimizer_def, spec->type);
    if (entry == NULL)
        return NULL;
    tn_optimizer *optimizer = tn_calloc(1, sizeof *optimizer);
    if (optimizer == NULL)
        return NULL;
    atomic_init(&optimizer->refs, 1);
    optimizer->def = (const tn_optimizer_def *)entry->contribution;
    optimizer->plugin = entry->plugin;
    optimizer->initial_rate = NAN;
    optimizer->data = tn_calloc(1, optimizer->def->data_size > 0 ? optimizer->def->data_size : 1);
    if (optimizer->data != NULL && fill(optimizer, spec, parameters, count) == TN_OK)
        return optimizer;
    tn_optimizer_drop(optimizer);
    return NULL;
}

tn_optimizer *tn_optimizer_parse(tn_tensor *const *parameters, int64_t count, const char *text)
{
    if (text == NULL || (parameters == NULL && count > 0)) {
        tn__error_null_input("tn_optimizer_parse: argument");
        return NULL;
    }
    tn__spec *spec = tn__spec_parse(text);
    tn_optimizer *optimizer = spec != NULL ? from_spec(spec, parameters, count) : NULL;
    tn__spec_free(spec);
    return optimizer;
}

tn_optimizer *tn_optimizer_newv(tn_module *module, const char *format, va_list args)
{
    if (module == NULL || format == NULL) {
        tn__error_null_input("tn_optimizer_new: argument");
        return NULL;
    }
    char *text = tn__text_from_format(format, args);
    if (text == NULL)
        return NULL;
    tn_optimizer *optimizer = NULL;
    tn__walk walk = { NULL, 0, 0 };
    if (tn__walk_collect(module, TN_SLOT_PARAMETER, false, &walk) == TN_OK) {
        tn_tensor **parameters = tn_calloc((size_t)walk.count + 1, sizeof(tn_tensor *));
        for (int64_t i = 0; i < walk.count && parameters != NULL; i++)
            parameters[i] = walk.at[i].tensor;
        if (parameters != NULL)
            optimizer = tn_optimizer_parse(parameters, walk.count, text);
        tn_free(parameters);
        tn__walk_free(&walk);
    }
    tn_free(text);
    return optimizer;
}

tn_optimizer *tn_optimizer_new(tn_module *module, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_optimizer *optimizer = tn_optimizer_newv(module, format, args);
    va_end(args);
    return optimizer;
}

/* ---- stepping -------------------------------------------------------------------------------- */

/* What the checked boundary says of a rule that was called. */
static tn_status judge(const tn_optimizer *optimizer, const tn__check_thread *thread,
                       tn_status status)
{
    return tn__check_leave(thread, optimizer->plugin != NULL ? optimizer->plugin->id : "",
                           optimizer->def->name, tn__error_status_of(status, optimizer->def->name));
}

/* State follows its parameter to the device where tn_module_to took it. */
static tn_status follow(tn__param *param)
{
    const tn_device *device = tn_tensor_device(param->tensor);
    for (int64_t i = 0; i < param->count; i++) {
        tn_tensor *state = param->states[i].tensor;
        if (tn__likely(tn_tensor_device(state) == device))
            continue;
        tn_meta meta;
        tn__tensor_meta(state, &meta);
        meta.flags = 0;
        meta.offset = 0;
        tn_tensor *moved = tn__tensor_make(&meta, device);
        if (moved == NULL)
            return tn_error_last_code();
        tn_status status = tn__copy(moved, state);
        if (status == TN_OK)
            status = tn_tensor_swap(state, moved);
        tn_tensor_drop(moved);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status step_one(tn_optimizer *optimizer, int64_t index, tn_tensor *gradient)
{
    tn__param *param = &optimizer->params[index];
    uint64_t scope = tn_scope_begin();
    tn_status status = follow(param);
    if (status == TN_OK) {
        tn__check_thread thread;
        param->steps++;
        tn__check_enter(&thread);
        status = judge(optimizer, &thread,
                       optimizer->def->step(optimizer, index, param->tensor, gradient));
        if (status != TN_OK)
            param->steps--;
    }
    tn_scope_end(scope);
    if (status != TN_OK)
        tn_error_prefix("optimizer %s, parameter %lld: ", optimizer->def->name, (long long)index);
    return status;
}

static tn_tensor *gradient_of(const tn__param *param)
{
    tn_tensor *gradient = tn_tensor_grad(param->tensor);
    return gradient != NULL && !tn__is_none(gradient) ? gradient : NULL;
}

static tn_status step_each(tn_optimizer *optimizer)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < optimizer->count && status == TN_OK; i++) {
        tn_tensor *gradient = gradient_of(&optimizer->params[i]);
        if (gradient != NULL)
            status = step_one(optimizer, i, gradient);
    }
    return status;
}

/* All parameters that have a gradient, in one call of the rule. */
static tn_status step_all(tn_optimizer *optimizer)
{
    size_t room = (size_t)optimizer->count;
    tn_tensor **tensors = tn_malloc(2 * room * sizeof(tn_tensor *) + room * sizeof(int64_t));
    if (tensors == NULL)
        return TN_ERR_MEMORY;
    tn_tensor **gradients = tensors + room;
    int64_t *index = (int64_t *)(void *)(gradients + room), count = 0;
    tn_status status = TN_OK;
    uint64_t scope = tn_scope_begin();
    for (int64_t i = 0; i < optimizer->count && status == TN_OK; i++) {
        tn_tensor *gradient = gradient_of(&optimizer->params[i]);
        if (gradient == NULL)
            continue;
        status = follow(&optimizer->params[i]);
        tensors[count] = optimizer->params[i].tensor;
        gradients[count] = gradient;
        index[count++] = i;
    }
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        optimizer->params[index[i]].steps++;
    if (status == TN_OK && count > 0) {
        tn__check_thread thread;
        tn__check_enter(&thread);
        status = judge(optimizer, &thread,
                       optimizer->def->step_all(optimizer, count, index, tensors, gradients));
        for (int64_t i = 0; i < count && status != TN_OK; i++)
            optimizer->params[index[i]].steps--;
    }
    tn_scope_end(scope);
    tn_free(tensors);
    return status == TN_OK ? TN_OK : tn_error_prefix("optimizer %s: ", optimizer->def->name);
}

tn_status tn_optimizer_step(tn_optimizer *optimizer)
{
    if (optimizer == NULL)
        return tn__error_null_input("tn_optimizer_step: argument");
    const char *before = tn__error_plugin(optimizer->plugin != NULL ? optimizer->plugin->id : "");
    tn_grad_begin(false);
    tn_status status = optimizer->def->step_all != NULL ? step_all(optimizer)
                                                        : step_each(optimizer);
    tn_grad_end();
    tn__error_plugin(before);
    return status;
}

tn_status tn_optimizer_zero_grad(tn_optimizer *optimizer)
{
    if (optimizer == NULL)
        return tn__error_null_input("tn_optimizer_zero_grad: argument");
    for (int64_t i = 0; i < optimizer->count; i++) {
        tn_status status = tn_tensor_set_grad(optimizer->params[i].tensor, TN_NONE);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* ---- what it holds --------------------------------------------------------------------------- */

const char *tn_optimizer_type(const tn_optimizer *optimizer)
{
    return tn__not_null(optimizer, "tn_optimizer_type: optimizer") ? optimizer->def->name : "";
}

void *tn_optimizer_data(const tn_optimizer *optimizer)
{
    return tn__not_null(optimizer, "tn_optimizer_data: optimizer") ? optimizer->data : NULL;
}

void *tn_optimizer_user(const tn_optimizer *optimizer)
{
    return tn__not_null(optimizer, "tn_optimizer_user: optimizer") ? optimizer->def->user : NULL;
}

int64_t tn_optimizer_count(const tn_optimizer *optimizer)
{
    return tn__not_null(optimizer, "tn_optimizer_count: optimizer") ? optimizer->count : 0;
}

static tn__param *param_at(const tn_optimizer *optimizer, int64_t index)
{
    if (optimizer == NULL) {
        tn__error_null_input("optimizer: argument");
        return NULL;
    }
    if (index >= 0 && index < optimizer->count)
        return &optimizer->params[index];
    tn_fail(TN_ERR_INDEX,
            "optimizer %s: parameter: index out of range, got %lld; expected less than %lld",
            optimizer->def->name, (long long)index, (long long)optimizer->count);
    return NULL;
}

tn_tensor *tn_optimizer_parameter(const tn_optimizer *optimizer, int64_t index)
{
    tn__param *param = param_at(optimizer, index);
    return param != NULL ? param->tensor : NULL;
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
    tn__param *param = param_at(optimizer, index);
    if (param == NULL || !tn__given(name != NULL, "tn_optimizer_state: name"))
        return NULL;
    tn__param_state *state = state_find(param, name);
    return state != NULL ? state->tensor : NULL;
}

tn_status tn_optimizer_set_state(tn_optimizer *optimizer, int64_t index, const char *name,
                                 tn_tensor *tensor)
{
    if (name == NULL || tensor == NULL)
        return tn__error_null_input("tn_optimizer_set_state: argument");
    if (tn__is_none(tensor))
        return tn_fail(TN_ERR_TYPE, "optimizer state \"%s\": it is TN_NONE; expected a tensor",
                       name);
    tn__param *param = param_at(optimizer, index);
    if (param == NULL)
        return tn_error_last_code();
    tn__param_state *state = state_find(param, name);
    if (state != NULL) {
        tn_tensor *before = state->tensor;
        state->tensor = tn_tensor_keep(tensor);
        tn_tensor_drop(before);
        return TN_OK;
    }
    if (!tn__vector_room(&param->states, &param->capacity, param->count + 1, sizeof *param->states))
        return TN_ERR_MEMORY;
    char *copy = tn_strdup(name);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    param->states[param->count++] = (tn__param_state){ copy, tn_tensor_keep(tensor) };
    return TN_OK;
}

int64_t tn_optimizer_state_count(const tn_optimizer *optimizer, int64_t index)
{
    const tn__param *param = param_at(optimizer, index);
    return param != NULL ? param->count : -1;
}

const char *tn_optimizer_state_name(const tn_optimizer *optimizer, int64_t index, int64_t state)
{
    const tn__param *param = param_at(optimizer, index);
    if (param == NULL)
        return NULL;
    if (state >= 0 && state < param->count)
        return param->states[state].name;
    tn_fail(TN_ERR_INDEX,
            "optimizer %s: state: index out of range, got %lld for parameter %lld; expected less "
            "than %lld",
            optimizer->def->name, (long long)state, (long long)index, (long long)param->count);
    return NULL;
}

int64_t tn_optimizer_steps(const tn_optimizer *optimizer, int64_t index)
{
    const tn__param *param = param_at(optimizer, index);
    return param != NULL ? param->steps : -1;
}

tn_status tn_optimizer_set_steps(tn_optimizer *optimizer, int64_t index, int64_t steps)
{
    tn__param *param = param_at(optimizer, index);
    if (param == NULL)
        return tn_error_last_code();
    if (steps < 0)
        return tn_fail(TN_ERR_VALUE, "optimizer %s: steps: negative, got %lld; expected 0 or more",
                       optimizer->def->name, (long long)steps);
    param->steps = steps;
    return TN_OK;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool is_numeric(const tn_option *option)
{
    return option->kind == TN_OPTION_KIND_FLOAT || option->kind == TN_OPTION_KIND_INT ||
           option->kind == TN_OPTION_KIND_BOOL;
}

static const tn_option *numeric_option(const tn_optimizer *optimizer, const char *name)
{
    const tn_option *option = tn__options_find(optimizer->def->options, name);
    if (option == NULL) {
        tn__text known = { 0 };
        for (const tn_option *row = optimizer->def->options;
             row != NULL && row->kind != TN_OPTION_KIND_END; row++)
            if (is_numeric(row))
                tn__text_add(&known, "%s%s", known.length > 0 ? ", " : "", row->name);
        tn_fail(TN_ERR_KEY, "optimizer %s: no option %q; numbers it has: %s", optimizer->def->name,
                name, known.at != NULL ? known.at : "none");
        tn__text_free(&known);
        return NULL;
    }
    if (!is_numeric(option)) {
        tn_fail(TN_ERR_TYPE, "option %q of optimizer %s: not a number", name, optimizer->def->name);
        return NULL;
    }
    return option;
}

static double option_read(const tn_option *option, const void *data)
{
    const char *at = (const char *)data + option->offset;
    if (option->kind == TN_OPTION_KIND_FLOAT)
        return *(const double *)(const void *)at;
    if (option->kind == TN_OPTION_KIND_INT)
        return (double)*(const int64_t *)(const void *)at;
    return *(const bool *)(const void *)at ? 1.0 : 0.0;
}

static void option_write(const tn_option *option, void *data, double value)
{
    char *at = (char *)data + option->offset;
    if (option->kind == TN_OPTION_KIND_FLOAT)
        *(double *)(void *)at = value;
    else if (option->kind == TN_OPTION_KIND_INT)
        *(int64_t *)(void *)at = (int64_t)value;
    else
        *(bool *)(void *)at = value != 0.0;
}

tn_status tn_optimizer_get(const tn_optimizer *optimizer, const char *option, double *value)
{
    if (optimizer == NULL || option == NULL || value == NULL)
        return tn__error_null_input("tn_optimizer_get: argument");
    const tn_option *row = numeric_option(optimizer, option);
    if (row == NULL)
        return tn_error_last_code();
    *value = option_read(row, optimizer->data);
    return TN_OK;
}

tn_status tn_optimizer_set(tn_optimizer *optimizer, const char *option, double value)
{
    if (optimizer == NULL || option == NULL)
        return tn__error_null_input("tn_optimizer_set: argument");
    const tn_option *row = numeric_option(optimizer, option);
    if (row == NULL)
        return tn_error_last_code();
    if (row->kind == TN_OPTION_KIND_INT && !(fabs(value) < 9e15 && value == floor(value)))
        return tn_fail(TN_ERR_VALUE,
                       "option %q of optimizer %s: wrong value, got %g; expected an integer",
                       option, optimizer->def->name, value);
    if (row->kind == TN_OPTION_KIND_BOOL && value != 0.0 && value != 1.0)
        return tn_fail(TN_ERR_VALUE,
                       "option %q of optimizer %s: wrong value, got %g; expected 0 or 1", option,
                       optimizer->def->name, value);
    double before = option_read(row, optimizer->data);
    option_write(row, optimizer->data, value);
    tn_status status = run_check(optimizer);
    if (status != TN_OK)
        option_write(row, optimizer->data, before);
    return status;
}

int64_t tn_optimizer_spec(const tn_optimizer *optimizer, char *out, size_t size)
{
    if (optimizer == NULL) {
        tn__error_null_input("tn_optimizer_spec: argument");
        return -1;
    }
    tn__text text = { 0 };
    tn__text_add(&text, "%s(", optimizer->def->name);
    if (optimizer->def->options != NULL)
        tn__options_print(optimizer->def->options, optimizer->data, true, &text);
    tn__text_put(&text, ")", 1);
    return tn__text_give(&text, out, size);
}
