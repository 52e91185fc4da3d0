/* SPDX-License-Identifier: MIT
 *
 * Pruning methods: reading their specs, and calling the code of their plugins. */
#include "core/base/vector.h"
#include "lib/prune/prune.h"
#include "core/tensor/boundary.h"

/* ---- reading --------------------------------------------------------------------------------- */

static const char *plugin_of(const tn__prune_step *step)
{
    return step->entry->plugin != NULL ? step->entry->plugin->id : "";
}

static tn_status fill_options(tn__prune_step *step)
{
    const tn_prune_def *def = tn__prune_def(step);
    const tn__spec *spec = step->spec;
    const char *before;
    tn_status status;

    if (def->options == NULL && spec->count > 0)
        return tn_fail(TN_ERR_VALUE, "%s: options: unknown, got %q; expected none", def->name,
                       spec->text);
    step->data = tn_calloc(1, def->data_size > 0 ? def->data_size : 1);
    if (step->data == NULL)
        return TN_ERR_MEMORY;
    if (def->options == NULL)
        return TN_OK;
    status = tn__options_fill(def->options, step->data, def->name, spec->text, spec->values,
                              spec->names, spec->columns, spec->count, &step->option_block);
    if (status != TN_OK || def->check == NULL)
        return status;
    before = tn__error_plugin(plugin_of(step));
    status = tn__error_status_of(def->check(def, step->data), def->name);
    tn__error_plugin(before);
    return status;
}

static tn_status add_step(tn__prune_steps *steps, const char *text)
{
    tn__prune_step *step;

    if (!tn__vector_room(&steps->at, &steps->capacity, steps->count + 1, sizeof *steps->at))
        return TN_ERR_MEMORY;
    step = &steps->at[steps->count];
    *step = (tn__prune_step){ .spec = tn__spec_parse(text) };
    if (step->spec == NULL)
        return tn_error_last_code();
    steps->count++;
    step->entry = tn__registry_use(TN_KIND_tn_prune_def, step->spec->type);
    return step->entry != NULL ? fill_options(step) : tn_error_last_code();
}

/* Adds the method in element i of a list. Elements must fulfil the rules of PyTorch's containers of
 * methods. */
static tn_status read_one(tn__prune_steps *steps, const char *name, const tn__spec *list, int64_t i)
{
    const tn_value *value = &list->values[i];

    if (value->kind != TN_VALUE_SPEC && value->kind != TN_VALUE_STRING)
        return tn_fail(
            TN_ERR_TYPE,
            "methods: %s is not a pruning method; expected names of methods with their options",
            tn__value_kind_name(value->kind));
    if (list->names[i] != NULL && (name == NULL || strcmp(list->names[i], name) != 0))
        return tn_fail(
            TN_ERR_VALUE,
            "methods: can only add methods acting on the parameter named '%s', found '%s'",
            name != NULL ? name : "", list->names[i]);
    return add_step(steps, value->as.s);
}

tn_status tn__prune_steps_read(tn__prune_steps *steps, const char *name, const char *methods)
{
    tn__text text = { 0 };
    tn__spec *list;
    char *whole;
    tn_status status;

    tn__text_add(&text, "methods(%s)", methods);
    whole = tn__text_take(&text);
    list = whole != NULL ? tn__spec_parse(whole) : NULL;
    status = list != NULL ? TN_OK : tn_error_last_code();
    for (int64_t i = 0; status == TN_OK && i < list->count; i++)
        status = read_one(steps, name, list, i);
    if (status == TN_OK && steps->count == 0)
        status = tn_fail(TN_ERR_FORMAT, "methods: none, got %q; expected at least one", methods);
    tn__spec_free(list);
    tn_free(whole);
    return status;
}

void tn__prune_steps_free(tn__prune_steps *steps)
{
    for (int64_t i = 0; i < steps->count; i++) {
        tn__spec_free(steps->at[i].spec);
        tn__options_release(steps->at[i].option_block);
        tn_free(steps->at[i].data);
    }
    tn_free(steps->at);
    *steps = (tn__prune_steps){ 0 };
}

/* ---- calling --------------------------------------------------------------------------------- */

/* The state of a call of a method's function. The call runs in a scope of its own, with gradients
 * off. */
struct turn {
    const tn__prune_step *step;
    const char *before;
    uint64_t scope;
    tn__boundary_thread thread;
};

static tn_status turn_begin(struct turn *turn, const tn__prune_step *step)
{
    tn_status status = tn__plugin_use(step->entry->plugin);

    if (status != TN_OK)
        return status;
    turn->step = step;
    turn->before = tn__error_plugin(plugin_of(step));
    turn->scope = tn_scope_begin();
    tn_grad_begin(false);
    tn__boundary_enter(&turn->thread);
    return TN_OK;
}

static tn_status turn_end(struct turn *turn, tn_status status, tn_tensor **result)
{
    const char *name = tn__prune_def(turn->step)->name;

    status = tn__boundary_leave(&turn->thread, plugin_of(turn->step), name,
                                tn__error_status_of(status, name));
    tn_grad_end();
    tn_scope_end_with(turn->scope, result, result != NULL && status == TN_OK ? 1 : 0);
    tn__error_plugin(turn->before);
    return status;
}

tn_tensor *tn__prune_step_mask(const tn__prune_step *step, tn_tensor *scores, tn_tensor *mask)
{
    const tn_prune_def *def = tn__prune_def(step);
    tn_tensor *made = NULL;
    struct turn turn;
    uint64_t failures;
    tn_status status = turn_begin(&turn, step);

    if (status != TN_OK)
        return NULL;
    failures = tn_error_mark();
    made = def->mask(def, step->data, scores, mask);
    if (made == NULL)
        status = tn_error_mark() != failures || tn_failed() ? tn_error_last_code() : TN_ERR_RUNTIME;
    else if (tn__is_none(made))
        status = tn_fail(TN_ERR_TYPE, "%s: mask: its result is TN_NONE; expected a tensor",
                         def->name);
    else if (tn__prune_same_shape(made, mask, "mask: its result") != TN_OK)
        status = tn_error_prefix("%s: ", def->name);
    return turn_end(&turn, status, &made) == TN_OK ? made : NULL;
}

tn_status tn__prune_step_net(const tn__prune_step *step, tn_prune_net *args)
{
    const tn_prune_def *def = tn__prune_def(step);
    struct turn turn;
    tn_status status = turn_begin(&turn, step);

    if (status != TN_OK)
        return status;
    args->def = def;
    args->options = step->data;
    status = args->method != NULL ? def->channels(args) : def->compact(args);
    return turn_end(&turn, status, NULL);
}
